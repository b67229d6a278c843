"""Content blocks of a tool result: validation, extraction and redaction.

https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from sandbox import exactjson
from sandbox.sanitize import clean_json, is_clean_json, is_plain_json, unescape_html
from sandbox.wire.redaction import MARK, Redaction

MAX_BLOCKS = 1000
MAX_MEDIA = 16 * 1024 * 1024
"""Base64 characters of all images, recordings and documents of one result."""

_MIME = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,120}(?:; ?[\w.+-]{1,40}=[\w.+\"-]{1,80}){0,4}\Z", re.A)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:[!-~]{1,2000}\Z")

MAX_PAGE = 256 * 1024
"""Characters in which an HTML page is looked for, and of it that are read for its text."""
_PAGE = re.compile(
    r"^[ \t]*(?:<\?xml[^<>]*>\s*)?(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE | re.MULTILINE
)
_TAG = re.compile(r"(<[?!/a-zA-Z][^<>]*>)")
_TAG_NAME = re.compile(r"<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)")
_UNSHOWN = frozenset({"script", "style", "svg"})
_INLINE = frozenset("a abbr b code em i kbd samp small span strong sub sup tt u var".split())


def find_content_problem(content: Any) -> str:
    """The reason why a value is no valid `content` of a tool result; "" if it is valid."""
    if not isinstance(content, list) or len(content) > MAX_BLOCKS:
        return f"its content is no list of at most {MAX_BLOCKS} blocks"
    if not all(isinstance(block, dict) for block in content):
        return "a block of its content is no object"
    if sum(map(_measure_media, content)) > MAX_MEDIA:
        return f"its content has more than {MAX_MEDIA} characters of base64"
    return next(filter(None, map(_find_block_problem, content)), "")


def is_media_type(text: str) -> bool:
    return _MIME.match(text) is not None


def is_uri(value: Any) -> bool:
    return isinstance(value, str) and _URI.match(value) is not None


def join_texts(content: Any) -> str:
    """The text of a result's text blocks, joined by line feeds."""
    blocks = content if isinstance(content, list) else ()
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def clean_answer(value: Any) -> Any:
    """As `clean_json`. Most answers hold nothing to be cleaned, which their JSON text shows in a
    tenth of the time.
    """
    try:
        is_clean = is_clean_json(orjson.dumps(value))
    except TypeError:  # An integer beyond 64 bits or half a surrogate pair, or no plain JSON.
        is_clean = False
    return value if is_clean else clean_json(value)


def extract_page_text(message: str) -> str:
    """A message with the text alone of an HTML page in it, each line once: many servers answer an
    error with a page whose styles and scripts come before its first word.
    """
    page = _PAGE.search(message, 0, MAX_PAGE)
    if page is None:
        return message
    told = "".join(_list_shown(message[page.start() : page.start() + MAX_PAGE]))
    lines = dict.fromkeys(" ".join(line.split()) for line in unescape_html(told).splitlines())
    text = "\n".join(filter(None, lines))
    return f"{message[: page.start()]}{text or '(an HTML page without text)'}"


def _list_shown(page: str) -> Iterator[str]:
    """The pieces of a page that a browser shows as text, with a line break for each element that is
    a block.
    """
    hidden = ""
    for piece in _TAG.split(page):
        tag = _TAG_NAME.match(piece)
        name = tag["name"].lower() if tag else ""
        if hidden:
            hidden = "" if tag and tag["end"] and name == hidden else hidden
        elif tag:
            hidden = name if name in _UNSHOWN and not tag["end"] else ""
            yield "" if name in _INLINE else "\n"
        elif not piece.startswith(("<!", "<?")):
            yield piece


def get_media_data(block: Mapping[str, Any]) -> str | None:
    """The base64 data of an image, audio or embedded resource block; None for other blocks."""
    inner = block.get("resource")
    data = None
    if block.get("type") == "resource" and isinstance(inner, Mapping):
        data = inner.get("blob")
    elif block.get("type") in ("image", "audio"):
        data = block.get("data")
    return data if isinstance(data, str) else None


def holds_media(content: Any) -> bool:
    """Whether a result's content has base64, which is searched for secrets in its bytes."""
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, Mapping) and get_media_data(block) for block in blocks)


def redact_tool_answer(answer: Mapping[str, Any], hide: Redaction) -> Mapping[str, Any]:
    """A server's answer to `tools/call` without the secrets; the same object if it holds none.

    Base64 data is searched in its decoded bytes and stays base64: searched as text, a long one
    contains any four letters somewhere. Texts that hold a secret only together lose their parts.
    """
    result = answer.get("result")
    content = result.get("content") if isinstance(result, Mapping) else None
    blocks = content if isinstance(content, list) else []
    held = [get_media_data(block) if isinstance(block, Mapping) else None for block in blocks]
    if isinstance(result, Mapping) and any(held):
        bare = [_replace_media(*pair, "") for pair in zip(blocks, held, strict=True)]
        left = _redact_json({**answer, "result": {**result, "content": bare}}, hide)
        kept = [data and hide.redact_base64(data) for data in held]
        if left["result"]["content"] is bare and kept == held:
            return _redact_split(answer, hide)
        full = zip(left["result"]["content"], kept, kept, strict=True)
        answer = {
            **left,
            "result": {**left["result"], "content": [_replace_media(*each) for each in full]},
        }
        return _redact_split(answer, hide)
    return _redact_split(_redact_json(answer, hide), hide)


def _redact_split(answer: Mapping[str, Any], hide: Redaction) -> Mapping[str, Any]:
    """The answer without the text blocks that hold a secret together."""
    result = answer.get("result")
    blocks = result.get("content") if isinstance(result, Mapping) else None
    if not isinstance(result, Mapping) or not isinstance(blocks, list) or len(blocks) < 2:
        return answer
    texts = [block.get("text") if isinstance(block, Mapping) else "" for block in blocks]
    touched = hide.find_split([text if isinstance(text, str) else "" for text in texts])
    if not touched:
        return answer
    made = [
        {**block, "text": MARK} if number in touched else block
        for number, block in enumerate(blocks)
    ]
    return {**answer, "result": {**result, "content": made}}


def _redact_json(answer: Mapping[str, Any], hide: Redaction) -> Mapping[str, Any]:
    written = exactjson.dumps(answer)
    if hide.redact_bytes(written) is written and (
        is_plain_json(written) or not _shows_secret(answer, hide)
    ):
        return answer
    clean: Mapping[str, Any] = hide.redact_json(answer)
    return clean


def _shows_secret(value: Any, hide: Redaction) -> bool:
    """Whether a string or name in a JSON value shows a secret once it is cleaned."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if hide.shows_secret(item):
                return True
        elif isinstance(item, Mapping):
            left += item
            left += item.values()
        elif isinstance(item, list | tuple):
            left += item
    return False


def _replace_media(block: Any, held: str | None, data: str | None) -> Any:
    """The block with `data` in place of its base64; unchanged if it holds none."""
    if held is None or not isinstance(block, Mapping):
        return block
    inner = block.get("resource")
    if block.get("type") == "resource" and isinstance(inner, Mapping):
        return {**block, "resource": {**inner, "blob": data}}
    return {**block, "data": data}


def _find_block_problem(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return "" if isinstance(block.get("text"), str) else "a text block has no text"
    if kind in ("image", "audio"):
        return _find_media_problem(block)
    if kind == "resource":
        return _find_resource_problem(block.get("resource"))
    if kind == "resource_link":
        return "" if _has_uri(block) and isinstance(block.get("name"), str) else "a link is none"
    return "a block of its content is of an unknown type"


def _find_media_problem(block: Mapping[str, Any]) -> str:
    if not isinstance(block.get("mimeType"), str) or not _MIME.match(block["mimeType"]):
        return "an image or a recording has no media type"
    return "" if _is_base64(block.get("data")) else "an image or a recording is not base64"


def _find_resource_problem(resource: Any) -> str:
    if not isinstance(resource, dict) or not _has_uri(resource):
        return "an embedded resource has no URI"
    kind = resource.get("mimeType")
    if kind is not None and (not isinstance(kind, str) or not _MIME.match(kind)):
        return "an embedded resource has no media type"
    if ("text" in resource) == ("blob" in resource):
        return "an embedded resource has to have either text or bytes"
    sound = isinstance(resource.get("text"), str) or _is_base64(resource.get("blob"))
    return "" if sound else "an embedded resource's content is neither text nor base64"


def _measure_media(block: Mapping[str, Any]) -> int:
    resource = block.get("resource")
    data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
    return len(data) if isinstance(data, str) else 0


def _has_uri(value: Mapping[str, Any]) -> bool:
    return is_uri(value.get("uri"))


def _is_base64(data: Any) -> bool:
    if not isinstance(data, str):
        return False
    try:
        binascii.a2b_base64(data.encode(), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return True
