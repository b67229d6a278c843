"""Mentions of earlier answers in a task's words: "that data", "the second one", "it".

Pure. What a mention stands for is a guess at what somebody means: it is shown before it is used,
and nothing is done on it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.results.shape import render_segment
from registry.sessions.memory import SessionCall, SessionMemory

MAX_MENTIONS = 5
MAX_WORDS = 4_000
ORIGIN: Literal["memory"] = "memory"
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMBERS = {word: number for number, word in enumerate((*_ORDINALS, "ninth", "tenth"), 1)}
_ITEM = re.compile(
    r"\b(?:the\s+)?(?P<which>" + "|".join(_NUMBERS) + r"|last|\d{1,4}(?:st|nd|rd|th))"
    r"\s+(?P<noun>[^\W\d_]{2,30})\b"
    r"|(?:\bnumber\s+|#)(?P<number>\d{1,4})\b",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"\b(?:that|this|those|these|the(?:\s+same)?)\s+"
    r"(?P<noun>data|results?|answers?|list|output|response|rows|items|entries)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:that|this|those|these|the\s+same)\s+(?P<noun>[^\W\d_]{2,30})\b", re.I)
_PRONOUN = re.compile(
    r"\b(?P<word>(?:that|this)\s+one|it|them|those|these|that|this)\b"
    r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:to|in|into|from|with|by|for|as|and|again|on)\b)",
    re.IGNORECASE,
)
_GENERIC = frozenset({"one", "ones", "item", "entry", "row", "result", "record", "element"})


@dataclass(frozen=True)
class MemoryValue:
    """What words of a task stand for: `value`, the whole or a part (`path`) of what a `call`
    answered. `handle` names that answer where it is kept, "" where it is not.
    """

    words: str
    value: Any
    path: str
    call: str
    tool: str
    handle: str = ""
    origin: Literal["memory"] = ORIGIN


def resolve_mentions(task: str, memory: SessionMemory) -> tuple[MemoryValue, ...]:
    """The values that a task's words may mean, out of the newest answers of its session; () where
    nothing is mentioned, or nothing is there that fits. English words are read.
    """
    answered = [
        each for each in memory.exchanges if each.outcome == "ok" and each.value is not None
    ]
    if not answered:
        return ()
    found: dict[tuple[int, int], MemoryValue] = {}
    for span, words, value in _iterate_mentions(task[:MAX_WORDS], answered):
        if not any(begin < span[1] and span[0] < end for begin, end in found):
            found[span] = MemoryValue(words, *value)
    return tuple(found[span] for span in sorted(found)[:MAX_MENTIONS])


_Found = tuple[Any, str, str, str, str]


def _iterate_mentions(
    task: str, answered: list[SessionCall]
) -> Iterator[tuple[tuple[int, int], str, _Found]]:
    """The mentions of each kind, the most telling first."""
    last = answered[0]
    for match in _ITEM.finditer(task):
        value = _find_item(match, answered)
        if value is not None:
            yield match.span(), match[0], value
    for match in _WHOLE.finditer(task):
        yield match.span(), match[0], _take(last, *_find_main(last.value))
    for match in _NAMED.finditer(task):
        for each in answered:
            place = _find_named(each, match["noun"])
            if place is not None:
                yield match.span(), match[0], _take(each, *place)
                break
    for match in _PRONOUN.finditer(task):
        value, path = _find_main(last.value)
        if match[0].lower().endswith("one") and isinstance(value, list) and len(value) == 1:
            value, path = value[0], path + render_segment(0)
        yield match.span(), match[0], _take(last, value, path)


def _find_item(match: re.Match[str], answered: list[SessionCall]) -> _Found | None:
    """The element of a list that is counted to, of the newest answer with such a list."""
    noun = (match["noun"] or "one").lower()
    for each in answered:
        value, path = _find_main(each.value)
        if not isinstance(value, list) or not (noun in _GENERIC or _is_about(each, path, noun)):
            continue
        index = _read_index(match, len(value))
        if not 0 <= index < len(value):
            return None
        return _take(each, value[index], path + render_segment(index))
    return None


def _read_index(match: re.Match[str], count: int) -> int:
    which = (match["which"] or match["number"]).lower()
    if which == "last":
        return count - 1
    digits = re.match(r"\d+", which)
    return (int(digits[0]) if digits else _NUMBERS[which]) - 1


def _find_main(value: Any) -> tuple[Any, str]:
    """What an answer is about, and its path: its body, and of an object the one list in it."""
    path = "$"
    if isinstance(value, Mapping) and "status" in value and "body" in value:
        value, path = value["body"], "$.body"
    elif isinstance(value, Mapping) and value.keys() == {"result"}:
        value, path = value["result"], "$.result"
    if isinstance(value, Mapping):
        lists = [key for key, inner in value.items() if isinstance(inner, list)]
        if len(lists) == 1:
            return value[lists[0]], path + render_segment(lists[0])
    return value, path


def _find_named(each: SessionCall, noun: str) -> tuple[Any, str] | None:
    """What an answer holds under a noun of the task: a key's value, or the whole of an answer that
    is about it.
    """
    value, path = _find_main(each.value)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key.lower() == noun.lower():
                return inner, path + render_segment(key)
    return (value, path) if _is_about(each, path, noun.lower()) else None


def _is_about(each: SessionCall, path: str, noun: str) -> bool:
    """Whether a noun names what a tool or a list in its answer is about: `zone`, `list_zones`."""
    words = re.findall(
        r"[^\W_]+", f"{each.tool.partition('.')[2].replace('_', ' ')} {path}".lower()
    )
    singular = noun.removesuffix("s")
    return any(word.removesuffix("s") == singular for word in words)


def _take(each: SessionCall, value: Any, path: str) -> _Found:
    return value, path, each.call, each.tool, each.handle
