"""The kind of a task in Chinese, by characters that stand in it."""

from __future__ import annotations

import re
from dataclasses import replace

from orchestrator.tasks.routing.kinds import TaskIntent

_POLITE = re.compile(
    r"^(?:请问|请你|请|麻烦你|麻烦|劳驾|你好|您好|帮我|帮忙|给我|替我|现在|[\s,。!])+"
)
_READING = re.compile(
    r"^(?:列出|显示|展示|查询|查找|查看|查一下|查一查|查|获取|取得|读取|告诉我|搜索|搜寻|搜|找出|找|计算|"
    r"把.{1,60}?(?:换算|转换|翻译)|换算|转换|统计|比较|翻译|检查|检索|看看|看一下|打印|返回)"
)
_WRITING = re.compile(
    r"^(?:删除|删掉|移除|创建|新建|添加|增加|修改|更改|更新|设置|发送|发|预订|预定|取消|启动|停止|支付|"
    r"上传|关闭|打开|重启|写入)|(?:并|然后|再)(?:删除|删掉|修改|更新|发送|取消)|^把.{1,80}?(?:删|改|设|发|移|取消|关)"
)
_DATA = re.compile(r"什么|哪|谁|几|多少|多大|多高|多远|多久|怎么样|怎样|吗|何时|如何[?]?$")
_ADVICE = re.compile(
    r"为什么|为何|怎么(?!样)|如何|应该|该不该|要不要|值得|建议|推荐|觉得|认为|能不能|可不可以|可以.{0,40}吗|"
    r"能.{0,40}吗|会.{0,40}怎样|是什么意思|解释|的区别|万一|会怎么样|^什么是"
)
_NEGATION = re.compile(r"不要|别(?!的|人)|不用|不必|无需|没有|勿|不想|不能|不")
_CONDITION = re.compile(r"如果|假如|假设|要是|倘若|假使|除非|也许|可能")
_STATEMENT = re.compile(
    r"^(?:我们?|你们?|他们?|她们?|它们?|这|那|昨天|今天我|有人)|了$|了[。!]|已经|很|非常|太.{1,6}了|[他她]说"
)
_WISH = re.compile(r"^我们?(?:想|要|需要|想要|希望)(?:看|知道|查|了解|查看|查询|得到|获取)")
_MAKING = re.compile(
    r"^(?:做|制作|创建|写|编写|开发|构建|打造|生成|建)(?:一个|个|一款)?.{0,40}(?:工具|MCP|mcp|连接器)"
)
_LATER = re.compile(r"什么.$|天知道|以后|之后再|稍后|改天|开玩笑|算了")
_QUOTED = re.compile(r"^[\s\ufffc,。.]*$")


def classify_chinese(text: str) -> TaskIntent:
    """The kind of a task; `text` has quotations replaced."""
    return replace(_classify(text), language="zh")


def _classify(text: str) -> TaskIntent:
    said = _POLITE.sub("", text.strip()).rstrip("。.! ")
    if _QUOTED.match(said):
        return TaskIntent("remark", "quotation")
    if _LATER.search(said):
        return TaskIntent("remark", "retraction")
    if _ADVICE.search(said):
        return TaskIntent("advice", "how or why")
    if _CONDITION.search(said):
        return TaskIntent("remark", "hypothesis")
    negated = _NEGATION.search(said)
    if negated and negated.start() == 0:
        return TaskIntent("remark", "negation")
    if _MAKING.match(said):
        return TaskIntent("creation", "making", not negated, "write")
    wish = _WISH.match(said)
    if wish is None and _STATEMENT.search(said) and not _DATA.search(said):
        return TaskIntent("remark", "statement")
    certain = not negated
    if _WRITING.search(said):
        return TaskIntent("command", "imperative", certain, "write")
    if _READING.match(said) or wish:
        return TaskIntent("command", "wish" if wish else "imperative", certain, "read")
    if _DATA.search(said):
        return TaskIntent("command", "question", certain, "read")
    return TaskIntent("command", "terse", False, None)
