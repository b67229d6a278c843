"""Operators on single values: what a careless conversion does to an argument or to an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.mutants.mutant import Changed, Operator
from bench.mutants.shapes import ITEM, Spot, spots
from bench.mutants.site import Site

_NUMBER = "isinstance(value, (int, float)) and not isinstance(value, bool)"
_INTEGER = "isinstance(value, int) and not isinstance(value, bool)"
_STRING = "isinstance(value, str)"


@dataclass(frozen=True)
class Edit:
    """`change` is what becomes of a `value` for which `when` holds; `kinds` are the JSON types that
    have such values.
    """

    name: str
    what: str
    kinds: frozenset[str]
    when: str
    change: str

    def code(self) -> str:
        return f"lambda value: ({self.change}) if {self.when} else value"


def _edit(name: str, what: str, kinds: str, when: str, change: str) -> Edit:
    return Edit(name, what, frozenset(kinds.split()), when, change)


EDITS: tuple[Edit, ...] = (
    _edit("lower-cased", "A text in small letters", "string", _STRING, "value.lower()"),
    _edit("upper-cased", "A text in capital letters", "string", _STRING, "value.upper()"),
    _edit("trimmed", "A text without white space at its ends", "string", _STRING, "value.strip()"),
    _edit(
        "unicode-stripped",
        "A text without what is not ASCII",
        "string",
        _STRING,
        "value.encode('ascii', 'ignore').decode()",
    ),
    _edit(
        "plus-to-space", "A plus sign becomes a space", "string", _STRING, "value.replace('+', ' ')"
    ),
    _edit(
        "slash-lost", "Slashes are taken out of a text", "string", _STRING, "value.replace('/', '')"
    ),
    _edit(
        "quotes-lost", "Quotation marks are taken out", "string", _STRING, "value.replace('\"', '')"
    ),
    _edit(
        "lines-joined",
        "Line feeds become spaces",
        "string",
        _STRING,
        "' '.join(value.split('\\n'))",
    ),
    _edit(
        "commas-lost", "A text up to its first comma", "string", _STRING, "value.partition(',')[0]"
    ),
    _edit("cut-short", "A text's first 24 characters", "string", _STRING, "value[:24]"),
    _edit("cut-long", "A text's first 255 characters", "string", _STRING, "value[:255]"),
    _edit("off-by-one", "An integer and one", "integer", _INTEGER, "value + 1"),
    _edit(
        "through-float",
        "An integer as a floating-point number",
        "integer",
        _INTEGER,
        "int(float(value))",
    ),
    _edit(
        "thirty-two-bits", "An integer's lower 32 bits", "integer", _INTEGER, "value & 0xffffffff"
    ),
    _edit("absolute", "A number without its sign", "integer number", _NUMBER, "abs(value)"),
    _edit("rounded", "A number without its fraction", "number", _NUMBER, "round(value)"),
    _edit("number-as-text", "A number as a text", "integer number", _NUMBER, "str(value)"),
    _edit(
        "text-as-number",
        "Digits as a number",
        "string",
        f"{_STRING} and value.isdecimal()",
        "int(value)",
    ),
    _edit(
        "boolean-as-text",
        "A boolean as Python writes it",
        "boolean",
        "isinstance(value, bool)",
        "str(value)",
    ),
    _edit(
        "boolean-as-number",
        "A boolean as 0 or 1",
        "boolean",
        "isinstance(value, bool)",
        "int(value)",
    ),
    _edit("negated", "A boolean's opposite", "boolean", "isinstance(value, bool)", "not value"),
    _edit(
        "first-item", "A list's first item only", "array", "isinstance(value, list)", "value[:1]"
    ),
    _edit(
        "last-item-lost",
        "A list without its last item",
        "array",
        "isinstance(value, list)",
        "value[:-1]",
    ),
    _edit("reversed", "A list backwards", "array", "isinstance(value, list)", "value[::-1]"),
    _edit(
        "list-joined",
        "A list as a text",
        "array",
        "isinstance(value, list)",
        "','.join(map(str, value))",
    ),
    _edit(
        "ten-items", "A list's first ten items", "array", "isinstance(value, list)", "value[:10]"
    ),
    _edit(
        "single-unwrapped",
        "A list of one as its item",
        "array",
        "isinstance(value, list) and len(value) == 1",
        "value[0]",
    ),
)
"""Applied to arguments, to fields of bodies, and to fields of answers."""


def argument_operators() -> Iterator[Operator]:
    for edit in EDITS:
        yield Operator(
            f"argument-{edit.name}", f"{edit.what} (argument)", partial(_arguments, edit)
        )


def answer_operators() -> Iterator[Operator]:
    for edit in EDITS:
        yield Operator(f"answer-{edit.name}", f"{edit.what} (answer)", partial(_answers, edit))


def inputs(site: Site) -> Iterator[tuple[str, Spot]]:
    """Every argument and every place in it, with the argument's name."""
    defs: Mapping[str, Any] = site.tool.input_schema.get("$defs", {})
    for argument in site.arguments():
        for spot in spots(argument.schema, defs):
            yield argument.name, spot


def outputs(site: Site) -> Iterator[Spot]:
    """Every place in the answer's body that the output schema knows."""
    schema = site.tool.output_schema
    body = schema.get("properties", {}).get("body")
    if body:
        yield from spots(body, schema.get("$defs", {}))


def told(name: str, spot: Spot) -> str:
    return "/".join((name, *spot.path))


def _arguments(edit: Edit, site: Site) -> Changed:
    for name, spot in inputs(site):
        if spot.kinds & edit.kinds and not _is_whole_item(spot):
            code = f"{name} = _at({name}, {spot.path!r}, {edit.code()})"
            yield told(name, spot), partial(site.prefixed, code)


def _answers(edit: Edit, site: Site) -> Changed:
    for spot in outputs(site):
        if spot.kinds & edit.kinds and not _is_whole_item(spot):
            change = f"answer.body = _at(answer.body, {spot.path!r}, {edit.code()})"
            yield told("", spot), partial(site.woven, f"answer = REQUEST\n{change}\nreturn answer")


def _is_whole_item(spot: Spot) -> bool:
    """A path that ends at the items of a list in a list says nothing that its list does not."""
    return spot.path[-2:] == (ITEM, ITEM)


OPERATORS: tuple[Operator, ...] = (*argument_operators(), *answer_operators())
