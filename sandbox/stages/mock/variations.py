"""Further cases for tools whose code decides: each argument alone and missing, values of many
kinds, every enumerated value, and the code's own constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox.schemas.samples import USUAL, SampleStyle, Variant
from sandbox.stages.contract.places import ArgumentPlace
from sandbox.stages.mock.branches import CodeDecisions
from sandbox.wire.exchange import Headers, WireResponse

MAX_TURNS = 40
MAX_ALONE = 24
MAX_LITERALS = 60
MAX_ITEMS = 300
LONG = 'Long tëxt, with "quotes", \\slashes/ and\nlines. ' * 8

FLAVOURS: Mapping[str, SampleStyle] = {
    "long": SampleStyle(LONG, 2**53 + 1, 2, True),
    "many": SampleStyle(None, 2**31, 12, True),
    "low": SampleStyle("  Padded  ", -(2**53) - 1, 1, False, deep=True),
    "empty": SampleStyle("", 0, 0, False),
    "blank": SampleStyle("", 0, 2, False, deep=True),
    "null": SampleStyle(null=True, deep=True),
    "digits": SampleStyle("0042", 0, 3, True),
    "list": SampleStyle("1,2,3", 100.25, 3),
    "word": SampleStyle("null", -1, 2),
    "deep": SampleStyle(deep=True),
    **{f"deep-{turn}": SampleStyle(turn=turn, deep=True) for turn in range(1, 6)},
}
LINES = SampleStyle("4719\n4720")
_WORDS = re.compile(r"[A-Za-z0-9]+")
_NOT_IN_HEADERS = re.compile(r"[\x00-\x20\x7f]")
# No path may have them, encoded or not: `sandbox.wire.policy`.
_NOT_IN_PATHS = re.compile(r"[\x00-\x1f\x7f/\\]")
_STATUSES = (301, 304, 400, 403, 405, 409, 410, 412, 418, 422, 451, 501, 502, 503, 504, 599)
_SUCCESSES = (200, 201, 202, 203, 204, 206, 226)
_JSON = (("content-type", "application/json"),)
_UNKNOWN: Mapping[str, Any] = {
    "Extra-Field": {"List": [4, 3, 3, 1, *range(12)], "Null": None, "Big": 2**60 + 1, "Zero": 0},
    "Text": '  4715, "é" +/  ',
    "of": [],
    "no": False,
}
"""JSON where the operation documents none, or any."""
_HEADERS: Headers = (
    ("etag", '"v-4713"'),
    ("link", '<https://api.example/next?page=2>; rel="next"'),
    ("location", "/items/4714"),
    ("x-ratelimit-remaining", "41"),
)
_ANSWERS: Mapping[str, WireResponse] = {
    "text": WireResponse(200, (("content-type", "text/plain"),), b"plain text, 4711. " * 40),
    "bytes": WireResponse(
        200, (("content-type", "image/png"),), b"\x89PNG\r\n\x1a\n" + bytes(range(250))
    ),
    "markup": WireResponse(200, (("content-type", "application/xml"),), b"<a><b>4712</b></a>"),
}
PLAIN_VALUES: tuple[Any, ...] = (None, False, 0, "", [], {})


@dataclass(frozen=True)
class Variation:
    """The difference of one further case from the usual call: the style of values, arguments left
    out or alone, or the answer: another one, a JSON value as its body, or further headers. `only`
    and `without` name arguments; `broken` names one with a line feed, which no header or path can
    hold.
    """

    name: str
    flavour: SampleStyle = USUAL
    only: str = ""
    without: str = ""
    response: WireResponse | None = None
    value: tuple[Any, ...] = ()
    headers: Headers = ()
    variant: Variant = "full"
    broken: str = ""


def adapt_style(flavour: SampleStyle, place: ArgumentPlace, joined: bool) -> SampleStyle:
    """The style adapted to a place: plain words where texts are `joined`, no white space in a
    header, nothing null or empty in a path, and nothing that separates its segments.
    """
    is_path = place.location == "path"
    text = flavour.text
    if text and joined:
        text = " ".join(_WORDS.findall(text)) or None
    elif text and place.location == "header":
        text = _NOT_IN_HEADERS.sub("-", text)
    elif text and is_path:
        text = _NOT_IN_PATHS.sub("-", text)
    return replace(
        flavour,
        text=None if is_path and text in ("", ".", "..") else text,
        null=flavour.null and not is_path,
        items=max(1, flavour.items) if is_path and flavour.items is not None else flavour.items,
    )


def build_variations(schema: Mapping[str, Any], decided: CodeDecisions) -> tuple[Variation, ...]:
    """The further cases of a tool with this input schema; none where its code decides nothing."""
    if decided.plain:
        return ()
    wanted = frozenset(decided.words)
    made = [
        Variation("bare", variant="minimal"),
        *(Variation(name, replace(f, wanted=wanted)) for name, f in FLAVOURS.items()),
        *_vary_absences(schema),
        *(Variation(f"turn:{n}", SampleStyle(turn=n)) for n in range(_count_turns(schema))),
        *(Variation(f"line:{name}", broken=name) for name in _list_line_arguments(schema)),
        *_vary_literals(decided, wanted),
        *_vary_answers(decided),
    ]
    named = {f"more:{variation.name}": variation for variation in made}
    return tuple(replace(variation, name=name) for name, variation in named.items())


def _list_line_arguments(schema: Mapping[str, Any]) -> list[str]:
    """The arguments that go into headers and paths, which are lines."""
    placed = {
        name: str(part.get("x-in"))
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, Mapping)
    }
    return [name for name, place in placed.items() if place.startswith(("header:", "path:"))]


def _vary_absences(schema: Mapping[str, Any]) -> Iterator[Variation]:
    needed = set(schema.get("required", ()))
    optional = [name for name in schema.get("properties", {}) if name not in needed]
    for name in optional[:MAX_ALONE]:
        yield Variation(f"only:{name}", only=name)
        yield Variation(f"without:{name}", without=name)


def _count_turns(schema: Any) -> int:
    """The number of values of the longest enumeration in a schema, at most MAX_TURNS."""
    longest, waiting = 0, [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            listed = part.get("enum")
            longest = max(longest, len(listed) if isinstance(listed, list) else 0)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return min(longest, MAX_TURNS)


def _vary_literals(decided: CodeDecisions, wanted: frozenset[str]) -> Iterator[Variation]:
    if wanted:
        yield Variation("words:all", SampleStyle(wanted=wanted, deep=True))
    for at, word in enumerate(decided.words[:MAX_LITERALS]):
        flavour = SampleStyle(word, wanted=frozenset({word}), deep=True)
        yield Variation(f"word:{at}", flavour)
    for number in decided.numbers:
        for near in (number - 1, number, number + 1):
            flavour = SampleStyle(number=near, wanted=wanted, deep=True)
            yield Variation(f"number:{near:g}", flavour)
        if 0 <= number <= 5_000:
            size = int(number) + 1
            text = ("Aé " * (size // 3 + 1))[:size]
            deep = size <= MAX_ITEMS
            yield Variation(f"length:{size}", SampleStyle(text, wanted=wanted, deep=deep))
            if size <= MAX_ITEMS:
                yield Variation(f"items:{size}", SampleStyle(items=size, wanted=wanted, deep=True))


def _vary_answers(decided: CodeDecisions) -> Iterator[Variation]:
    near = [int(n) + step for n in decided.numbers for step in (-1, 0, 1) if 200 <= n <= 599]
    for status in dict.fromkeys([*_STATUSES, *(n for n in near if 300 <= n <= 599)]):
        told = f'{{"error": {{"message": "undocumented-{status}-6093", "of": ["x", "y"]}}}}'
        yield Variation(f"status:{status}", response=WireResponse(status, _JSON, told.encode()))
    for status in dict.fromkeys([*_SUCCESSES, *(n for n in near if 200 <= n <= 299)]):
        yield Variation(f"status:{status}", response=WireResponse(status))
    yield Variation("answer:headers", headers=_HEADERS)
    yield Variation("answer:json", value=(_UNKNOWN,))
    for name, response in _ANSWERS.items():
        yield Variation(f"answer:{name}", response=response)
    for value in PLAIN_VALUES:
        yield Variation(f"value:{value!r}", value=(value,))
