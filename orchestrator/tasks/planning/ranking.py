"""Superlatives: which rows of a list are the cheapest, the newest or the three largest.

Pure. An API's answer stays as it is; what is ranked is told beside it. A superlative is read where
the rows have exactly one field that it can mean, and told where the whole list was answered and
every row has such a value. All else stays a word of the task that nothing took.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from orchestrator.results.opening import unwrap_graphql
from orchestrator.tasks.planning.pages import (
    find_following,
    find_most,
    find_page_size,
    find_row_fields,
    is_paging,
    list_answer_rows,
    takes_pages,
)
from orchestrator.tasks.reading.parameters import list_parameters, resolve_schema
from orchestrator.tasks.routing.naming import find_answer_schema
from registry.search.words import split_words, stem_word
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.keywords import declared_types

MAX_ROWS = 1_000
MAX_SHOWN = 10
MAX_TEXT = 80
SEVERAL = 5
"""Rows that are told of where the task names no number."""
MAX_FIELDS = 200

_Meaning = Literal["money", "made", "size", "length", "weight", "speed", "height"]
_FIELDS: Mapping[_Meaning, frozenset[str]] = {
    "money": frozenset("price cost fare fee".split()),
    "made": frozenset(
        "created creation added placed ordered registered published posted issued opened submitted "
        "built released joined".split()
    ),
    "size": frozenset("size area capacity volume amount total population".split()),
    "length": frozenset("length duration distance".split()),
    "weight": frozenset("weight mass".split()),
    "speed": frozenset("speed".split()),
    "height": frozenset("height elevation altitude".split()),
}
"""Words of fields by what they measure."""
_WORDS: Mapping[str, tuple[_Meaning, bool]] = {
    "cheapest": ("money", False),
    "least expensive": ("money", False),
    "most expensive": ("money", True),
    "dearest": ("money", True),
    "priciest": ("money", True),
    "newest": ("made", True),
    "latest": ("made", True),
    "most recent": ("made", True),
    "oldest": ("made", False),
    "earliest": ("made", False),
    "biggest": ("size", True),
    "largest": ("size", True),
    "smallest": ("size", False),
    "longest": ("length", True),
    "shortest": ("length", False),
    "heaviest": ("weight", True),
    "lightest": ("weight", False),
    "fastest": ("speed", True),
    "slowest": ("speed", False),
    "tallest": ("height", True),
    "highest": ("height", True),
    "lowest": ("height", False),
}
"""What superlatives measure, and whether they mean the highest value."""
_COUNTS = {w: n for n, w in enumerate("two three four five six seven eight nine ten".split(), 2)}
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(_COUNTS)})"
_SAID = "|".join(_WORDS).replace(" ", r"\s+")
_SUPERLATIVE = re.compile(
    rf"(?P<is>\b(?:is|are|was|were)\s+)?(?P<the>\bthe\s+)?(?:\b(?P<before>{_COUNT})\s+)?"
    rf"\b(?P<word>{_SAID})\b"
    rf"(?:\s+(?P<after>{_COUNT})\b)?(?P<first>\s+(?:ones?\s+)?first\b)?",
    re.IGNORECASE,
)
_ANY = re.compile(r"\b(?:[^\W\d_]{3,}est|most|least|best|worst)\b", re.IGNORECASE)
_CHOOSING = re.compile(rf"\b(?:{_SAID}|last)\b", re.IGNORECASE)
_PLACES = frozenset(
    "of for from in by with on to at than not except second third fourth fifth 2nd 3rd 4th 5th "
    "next and or t never without".split()
)
"""Words before a superlative that make it part of something else."""
_POSSESSIVE = re.compile(r"\w['\u2019]s\b|s['\u2019]\s", re.IGNORECASE)
_NEAR = 3
"""Words behind a superlative of which one names what is listed."""
_UNITS = frozenset("currency unit units uom".split())
_NAMES = ("name", "title", "label", "subject")
_NO_MEASURE = frozenset({"id", "uuid", "code", "key", "ref", "number", "no"})


@dataclass(frozen=True)
class Ranking:
    """What a task asks of a list: its rows with the highest or lowest values of a field. `count`
    rows are wanted, several where it is None. `words` is the task without the superlative.
    """

    field: str
    is_highest: bool
    count: int | None
    said: str
    words: str


def find_ranking(task: str, tool: ToolDefinition) -> Ranking | None:
    """The one superlative of a task, where the tool lists what it is said of and its rows have one
    field that it can mean; None where anything of this is open.
    """
    found = [*_SUPERLATIVE.finditer(task)]
    if tool.access != "read" or len(found) != 1 or len(_ANY.findall(task)) != 1:
        return None
    (match,) = found
    kept = f"{task[: match.start()]} {task[match.end() :]}"
    noun = _find_noun(task[match.end() :], kept, tool)
    before = split_words(task[: match.start()])[-1:]
    if noun is None or _PLACES & {*before} or (match["before"] and match["after"]):
        return None
    meaning, is_highest = _WORDS[" ".join(match["word"].lower().split())]
    field = _find_field(meaning, tool)
    if field is None or _sorts_itself(tool) or (takes_pages(tool) and not find_most(tool)):
        return None
    number = (match["before"] or match["after"] or "").lower()
    count = _COUNTS.get(number) or (int(number) if number else None)
    if count is None and not (match["first"] or noun.endswith("s")):
        count = 1
    said = match["word"]
    return Ranking(field, is_highest, count, said, re.sub(r"\s+", " ", kept).strip(" ,"))


def find_superlative(task: str) -> str:
    """The first superlative of a task that may choose rows of a list, "" for none."""
    found = _CHOOSING.search(task)
    return found[0] if found else ""


def _sorts_itself(tool: ToolDefinition) -> bool:
    """Whether an argument has orders to choose from, of which the task's words may be one."""
    return any(p.is_sorting and p.enum for p in list_parameters(tool.input_schema))


def _find_noun(behind: str, kept: str, tool: ToolDefinition) -> str | None:
    """The word for what the list has, which stands near behind the superlative, or in the clause
    that ends with it; None where another thing is ranked.
    """
    listed = {stem_word(word) for word in split_words(tool.name)}
    if _POSSESSIVE.search(behind):
        return None
    near = split_words(behind)[:_NEAR]
    words = near or split_words(kept)
    return next((word for word in words if stem_word(word) in listed), None)


def _find_field(meaning: _Meaning, tool: ToolDefinition) -> str | None:
    """The one field of a list's rows that has the meaning; None for none or several."""
    schema = find_answer_schema(tool)
    properties = find_row_fields(tool)
    if len(properties) > MAX_FIELDS:
        return None
    is_measure = _is_moment if meaning == "made" else _is_number
    fields = [
        str(name)
        for name, part in properties.items()
        if is_measure(str(name), resolve_schema(part, schema) or {})
    ]
    named = [name for name in fields if _FIELDS[meaning] & {*split_words(name)}]
    if not named and meaning == "made":
        named = [name for name in fields if split_words(name) in (["date"], ["timestamp"])]
    if not named and meaning == "size" and len(fields) == 1:
        named = fields
    return named[0] if len(named) == 1 else None


def _is_number(name: str, schema: Mapping[str, Any]) -> bool:
    """Also a text: many APIs write prices so. What it holds is looked at once it is there."""
    types = _list_types(schema)
    words = {*split_words(name)}
    known = any(words & each for each in _FIELDS.values())
    is_text = "string" in types and not schema.get("enum") and "format" not in schema and known
    return not words & _NO_MEASURE and bool(types & {"integer", "number"} or is_text)


def _is_moment(name: str, schema: Mapping[str, Any]) -> bool:
    parts = [schema, *(p for p in schema.get("anyOf") or [] if isinstance(p, Mapping))]
    return any(part.get("format") in ("date", "date-time") for part in parts)


def _list_types(schema: Mapping[str, Any]) -> Set[str]:
    alternatives = schema.get("anyOf")
    parts = [schema, *(alternatives if isinstance(alternatives, list) else ())]
    return {kind for part in parts if isinstance(part, Mapping) for kind in declared_types(part)}


def describe_ranking(
    task: str, tool: ToolDefinition, arguments: Mapping[str, Any], answer: Any
) -> str:
    """What is to be said of the superlative of a task once its list was answered, "" where there
    is none that is read.
    """
    ranking = find_ranking(task, tool)
    rows = list_answer_rows(answer) if ranking is not None else None
    if ranking is None or not rows:
        return ""
    if not _is_whole(tool, arguments, rows, answer):
        return f"Which of them {_tell(ranking)}, only the whole list can tell."
    values = _measure(ranking, rows)
    if values is None:
        reason = f"not each of these {len(rows)} has a `{ranking.field}` to compare"
        return f"Which of them {_tell(ranking)}, cannot be told: {reason}."
    order = sorted(range(len(rows)), key=values.__getitem__, reverse=ranking.is_highest)
    wanted = min(ranking.count or SEVERAL, len(rows))
    last = values[order[wanted - 1]]
    shown = [*order[:wanted], *(at for at in order[wanted:] if values[at] == last)]
    told = ", ".join(_show(rows[at], ranking.field) for at in shown[:MAX_SHOWN])
    more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    which = _DIRECTIONS[isinstance(last, datetime)][ranking.is_highest]
    return f"By `{ranking.field}`, the {which} of all {len(rows)}: {told}{more}."


_DIRECTIONS = (("lowest", "highest"), ("earliest", "latest"))


def _tell(ranking: Ranking) -> str:
    return f"{'is' if ranking.count == 1 else 'are'} the {ranking.said}"


def _is_whole(
    tool: ToolDefinition, arguments: Mapping[str, Any], rows: Sequence[Any], answer: Any
) -> bool:
    """Whether a list has no more rows than were answered."""
    opened = unwrap_graphql(answer)
    counted = opened.values() if isinstance(opened, Mapping) else ()
    if any(isinstance(each, int) and each > len(rows) for each in _list_totals(opened, counted)):
        return False
    if not takes_pages(tool):
        return True
    most = find_most(tool)
    paging = {p.name for p in list_parameters(tool.input_schema) if is_paging(p)} - {most}
    if paging & arguments.keys():
        return False
    goes_on = None if most in arguments else find_following(tool, answer)
    if goes_on is not None:
        return not goes_on
    bound = arguments.get(most) if most else None
    return len(rows) < (bound if isinstance(bound, int) else find_page_size(tool))


def _list_totals(answer: Any, values: Iterable[Any]) -> list[Any]:
    names = answer if isinstance(answer, Mapping) else ()
    return [v for n, v in zip(names, values, strict=True) if {"total", "count"} & {*split_words(n)}]


def _measure(ranking: Ranking, rows: Sequence[Any]) -> list[Any] | None:
    """The value of each row that is compared; None where one has none, or their units differ."""
    if not all(isinstance(row, Mapping) for row in rows):
        return None
    units = {name for row in rows for name in row if _UNITS & {*split_words(str(name))}}
    if any(len({str(row.get(name)) for row in rows}) > 1 for name in units):
        return None
    found = [row.get(ranking.field) for row in rows]
    readers: tuple[Callable[[Any], Any], ...] = (_read_number, _read_moment)
    for read in readers:
        values = [read(value) for value in found]
        if None not in values and len({getattr(v, "tzinfo", None) is None for v in values}) == 1:
            return values
    return None


def _read_number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _read_moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _show(row: Mapping[str, Any], field: str) -> str:
    """A row by its id, its name and the value."""
    ids = [name for name in row if str(name).lower() in ("id", "uuid", "number", "code", "key")]
    names = [name for name in row if split_words(str(name))[-1:] and str(name).lower() in _NAMES]
    kept = dict.fromkeys([*ids[:1], *names[:1], field])
    return " ".join(f"{name} {str(row[name])[:MAX_TEXT]}" for name in kept)
