"""The words of a task as rules read them for one tool, and what of them is in doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Any

from forge.addresses import find_locations
from orchestrator.tasks.model import Reading
from orchestrator.tasks.planning.binding import to_singular
from orchestrator.tasks.planning.pages import (
    find_most,
    find_row_fields,
    find_row_schema,
    is_paging,
)
from orchestrator.tasks.planning.ranking import MAX_ROWS, find_ranking, find_superlative
from orchestrator.tasks.reading.foreign import write_plainly
from orchestrator.tasks.reading.parameters import list_parameters
from orchestrator.tasks.reading.read import read_arguments
from orchestrator.tasks.routing.intent import is_english
from orchestrator.tasks.routing.naming import (
    NEUTRAL,
    find_answer_schema,
    list_identifiers,
    list_said,
)
from orchestrator.tasks.routing.words import WRITING_VERBS
from registry.search.words import STOP_WORDS, VERBS, WEAK_WORDS, split_words, stem_word
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.accepted import get_place

MAX_DEPTH = 8
MAX_VALUES = 200
MAX_VALUE = 80
"""Of what a schema lists."""


def read_words(
    task: str, tool: ToolDefinition, known: Mapping[str, Any], about: str, *, spares: bool = True
) -> Reading:
    """The arguments of a tool as the task's words say them, beside those that are known. `about`
    names its server: such words are no values. With `spares` what would only narrow a list is not
    missing where all of it is asked for: its API says whether it has to be there.
    """
    # A URL is read where the tool takes one; else it says where the API is.
    words = (
        _COUNTING.sub("which", task)
        if "uri" in json.dumps(tool.input_schema)
        else plain_words(task, tool, about)
    )
    ranking = find_ranking(words, tool)
    words = ranking.words if ranking is not None else words
    reading = read_arguments(
        words,
        tool.input_schema,
        given=known,
        now=datetime.now().replace(tzinfo=LocalZone()),
        about=f"{about} {tool.name} {tool.description[:500]}",
        tool=tool.name,
    )
    reading = _doubt_numbers(words, _doubt_written(task, reading, tool), tool, about)
    reading = _note_unread(words, tool, reading, about, every=ranking is not None)
    if ranking is not None:
        reading = _ask_for_all(reading, tool, ranking.said)
    else:
        reading = _note_superlative(words, tool, reading)
    reading = _doubt_fields(tool, reading)
    reading = _note_named(words, tool, _note_order(words, tool, reading))
    reading = _note_negations(task, _note_owner(words, tool, reading))
    return _spare_filters(words, tool, reading) if spares else reading


def _spare_filters(task: str, tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading of words that ask for all that a tool lists (`list the appointments`) without
    the days, states and pages among what it misses; as it is where it misses anything else.
    """
    about = {stem_word(word) for word in split_words(tool.name)}
    all_of = any(stem_word(w) in about and to_singular(w) != w for w in split_words(task))
    narrowing = {
        p.name
        for p in list_parameters(tool.input_schema)
        if get_place(p.schema)[0] == "query"
        and (p.kind in ("date", "datetime") or p.enum or p.is_boolean or is_paging(p))
        and not p.is_choosing
    }
    lists = tool.access == "read" and find_row_schema(find_answer_schema(tool)) is not None
    if not (lists and all_of and {*reading.missing} <= narrowing) or reading.unused:
        return reading
    return replace(reading, missing=())


class LocalZone(tzinfo):
    """This machine's time zone, with the offset that each day has: `10 June at 9:00` is in summer
    time also where it is said in winter.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if moment is None:
            return None
        return moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "local"


def _note_superlative(task: str, tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading with a superlative told that stands by a number of rows: the newest three are
    not the first three of a list in whatever order it has.
    """
    counting = {p.name for p in list_parameters(tool.input_schema) if p.is_counting}
    said = find_superlative(task) if counting & reading.origins.keys() else ""
    known = {*reading.unused, *split_words(" ".join(reading.evidence.values()))}
    if not said or {*split_words(said)} & known:
        return reading
    return replace(reading, unused=(*reading.unused, said))


def _ask_for_all(reading: Reading, tool: ToolDefinition, said: str) -> Reading:
    """The reading with all rows of a list asked for, of which a superlative wants some."""
    most = find_most(tool)
    if not most or most in reading.arguments:
        return reading
    return replace(
        reading,
        arguments={**reading.arguments, most: MAX_ROWS},
        origins={**reading.origins, most: "task"},
        evidence={**reading.evidence, most: said},
    )


def _doubt_numbers(task: str, reading: Reading, tool: ToolDefinition, about: str) -> Reading:
    """The reading with doubts where a number stands in a name, or behind what the tool only
    answers: `the book titled Catch 22` and `the book of author 22` are not the book 22.
    """
    own = list_identifiers(replace(tool, output_schema={}), about, "")
    answered = list_identifiers(replace(tool, name="", path="", input_schema={}), "", "") - own
    told = []
    for name, evidence in reading.evidence.items():
        if not evidence.isdecimal():
            continue
        before = task[: task.rfind(evidence)]
        said = _WORD_BEFORE.search(before)
        if _IN_NAME.search(before) or (said and stem_word(said[1].lower()) in answered):
            told.append(name)
    return replace(reading, doubtful=tuple(dict.fromkeys((*reading.doubtful, *told))))


_WORD_BEFORE = re.compile(r"([^\W\d_][\w'-]*)\s+(?:(?:is|of|equals)\s+)?\Z")


_IN_NAME = re.compile(
    r"\b(?:titled|entitled|named|called|(?:title|name)(?!\s+(?:of|for|from|in)\b))"
    r"\s+(?:[^\s,;.]+\s+){0,5}"
    r"(?!(?:number|no|id)\b)[^\W\d_][\w'-]*\s+\Z",
    re.IGNORECASE,
)
"""A word of a name before what may be the rest of it."""


def _doubt_written(task: str, reading: Reading, tool: ToolDefinition) -> Reading:
    """The reading with doubts where a text is no word of the task but the English of one: `Essen`
    may be a town.
    """
    listed = {p.name for p in list_parameters(tool.input_schema) if p.enum}
    lower = task.lower()
    told = [
        name
        for name, value in reading.arguments.items()
        if isinstance(value, str)
        and name not in listed
        and reading.origins.get(name) == "task"
        and {*split_words(reading.evidence.get(name, ""))} - {*split_words(lower)}
        and {*split_words(value)} - {*split_words(lower)}
        and not is_english(task)
    ]
    return replace(reading, doubtful=tuple(dict.fromkeys((*reading.doubtful, *told))))


def plain_words(task: str, tool: ToolDefinition | None = None, about: str = "") -> str:
    """A task without its URLs; who asks how many there are asks which there are. Where a tool and
    the names of its server are given, what is in another language is written by their words.
    """
    words = _ask_which(strip_addresses(task))
    return words if tool is None else write_plainly(words, list_identifiers(tool, about, ""))


def _ask_which(task: str) -> str:
    return _RAINING.sub("which weather", _COUNTING.sub("which", task))


_RAINING = re.compile(
    r"\A(?:is|will|does|was)\s+it\s+(?:be\s+|going\s+to\s+)?"
    r"(?:rain|snow|hail|thunder|drizzl|storm|freez|sunny|cloudy|windy|foggy)\w*",
    re.IGNORECASE,
)
"""What has no subject but `it` is the weather."""


def asks_for_count(task: str) -> bool:
    """Whether a task asks how many of something there are."""
    return _COUNTING.search(task) is not None


_COUNTING = re.compile(r"\bhow many\b", re.IGNORECASE)


def strip_addresses(task: str) -> str:
    """A task without the URLs in it, which say where an API is and not what is wanted of it; as it
    is where nothing else is said.
    """
    words = task
    for address in find_locations(task):
        if "://" in address:
            words = re.sub(rf"{_BEFORE}{re.escape(address)}[)\]>]?", "", words)
    return words.strip(" ,;:-") or task


_BEFORE = r"(?:[\s,;(\[<]*\b(?:from|at|see|via|on|the\s+API\s+is(?:\s+at)?))?[\s,;:(\[<]*"


def _note_unread(
    task: str, tool: ToolDefinition, reading: Reading, about: str, *, every: bool = False
) -> Reading:
    """The reading, with words of the task that neither its arguments nor what is known of the tool
    accounts for, where the tool has arguments left that they may have been meant for. The name of
    an argument that got no value accounts for nothing: `ordered by price` wants one for `ordering`.
    With `every` they are told in any case: the cheapest red boat is none of all boats. So is a
    value that rows of the answer may have: what is asked for are not all of them.
    """
    named = list_parameters(tool.input_schema)
    filled = {p.name: p.schema for p in named if {p.name, p.pointer[0]} & reading.origins.keys()}
    values = _list_row_values(tool)
    told = " ".join([tool.description, *reading.evidence.values()])
    read = replace(tool, input_schema={**tool.input_schema, "properties": filled})
    if values:
        read = replace(read, output_schema=_leave_out_values(tool.output_schema, MAX_DEPTH))
    known = list_identifiers(read, about, "") | {stem_word(word) for word in split_words(told)}
    words = list_said(_strip_until(task, reading))
    # The verb of an order is no value.
    words = words[1:] if words and words[0] in WRITING_VERBS else words
    gone = {*split_words(" ".join(reading.unused))}
    said = dict.fromkeys(word for word in words if word not in (NEUTRAL | _VERBS | gone))
    unread = [word for word in said if stem_word(word) not in known and word.isalnum()]
    if len(filled) == len(named) and not every:
        unread = [word for word in unread if word in values]
    return replace(reading, unused=(*reading.unused, *unread[:5]))


def _strip_until(task: str, reading: Reading) -> str:
    """A task without the `until` before a value that was read."""
    read = [re.escape(each) for each in reading.evidence.values() if each]
    return re.sub(rf"\b(?:until|till)\s+(?={'|'.join(read)})", "", task) if read else task


def _list_row_values(tool: ToolDefinition) -> frozenset[str]:
    """The words of the values that fields of a list's rows may have, and of what a write answers:
    they say which rows are meant, or what is to be written.
    """
    answer = find_answer_schema(tool)
    if tool.access == "read" and find_row_schema(answer) is None:
        return frozenset()
    listed = _list_values(answer, MAX_DEPTH)
    return frozenset(word for value in islice(listed, MAX_VALUES) for word in split_words(value))


def _list_values(schema: Any, depth: int) -> Iterator[str]:
    """The texts of enumerations, wherever they stand in a schema."""
    if depth < 1:
        return
    if isinstance(schema, Mapping):
        listed = schema.get("enum")
        for value in listed[:MAX_VALUES] if isinstance(listed, list) else ():
            if isinstance(value, str):
                yield value[:MAX_VALUE]
        for part in schema.values():
            yield from _list_values(part, depth - 1)
    elif isinstance(schema, list):
        for part in schema[:MAX_VALUES]:
            yield from _list_values(part, depth - 1)


def _leave_out_values(schema: Any, depth: int) -> Any:
    """A schema without its enumerations."""
    if depth < 1:
        return {}
    if isinstance(schema, Mapping):
        return {
            key: _leave_out_values(part, depth - 1)
            for key, part in schema.items()
            if key != "enum" or not isinstance(part, list)
        }
    if isinstance(schema, list):
        return [_leave_out_values(part, depth - 1) for part in schema[:MAX_VALUES]]
    return schema


def _note_negations(task: str, reading: Reading) -> Reading:
    """The reading with the words told that turn what was read into its opposite: `customers not in
    London` are none of those in London.
    """
    read = {word for each in reading.evidence.values() for word in split_words(each)}
    negating = _NEGATING if is_english(task) else _NEGATING | _NEGATING_ELSEWHERE
    plain = _QUOTED.sub(" ", task)
    told = [word for word in split_words(plain) if word in negating and word not in read]
    return replace(reading, unused=tuple(dict.fromkeys((*reading.unused, *told))))


_NEGATING = frozenset("not except excluding without neither nor never".split())
_NEGATING_ELSEWHERE = frozenset(
    "nicht kein keine keinen ohne außer ausser no sin excepto salvo menos pas sans sauf".split()
)
_QUOTED = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`")


def _note_named(task: str, tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading with the word told that stands behind the name of a filter that got no value,
    also where it is one that mostly says nothing: `flags with tag search`.
    """
    things = {stem_word(word) for word in split_words(tool.name)}
    read = {*split_words(" ".join((*reading.evidence.values(), *reading.unused)))}
    told = []
    for each in list_parameters(tool.input_schema):
        if each.required or each.is_boolean or not each.words or each.name in reading.origins:
            continue
        label = r"[\s_-]?".join(map(re.escape, each.words))
        found = re.search(rf"\bwith\s+(?:the\s+)?{label}\s+(?P<word>[^\W\d_]+)", task, re.I)
        word = found["word"].lower() if found is not None else ""
        if word and word not in STOP_WORDS | read and stem_word(word) not in things:
            told.append(word)
    return replace(reading, unused=(*reading.unused, *told)) if tool.access == "read" else reading


def _note_order(task: str, tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading with the field told by which a list is wanted, where no argument took it: `list
    the members by name`.
    """
    fields = {stem_word(word) for name in _list_row_names(tool) for word in split_words(name)}
    read = {*split_words(" ".join((*reading.evidence.values(), *reading.unused)))}
    told = [
        match[0]
        for match in _BY_FIELD.finditer(task)
        if stem_word(match["field"].lower()) in fields and match["field"].lower() not in read
    ]
    if tool.access != "read" or not told or reading.unused:
        return reading
    return replace(reading, unused=(told[0],))


def _doubt_fields(tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading with doubts where a word went into an argument as a form of its value and is a
    field of the rows itself: the devices that are `locked` need be no locks.
    """
    fields = {*_list_row_names(tool)}
    told = [
        name
        for name, said in reading.evidence.items()
        if said in fields and reading.origins.get(name) == "task"
        if said not in (name, str(reading.arguments.get(name, said)).lower())
        if isinstance(reading.arguments.get(name), str)
    ]
    return replace(reading, doubtful=tuple(dict.fromkeys((*reading.doubtful, *told))))


def _list_row_names(tool: ToolDefinition) -> list[str]:
    return [str(name) for name in islice(find_row_fields(tool), MAX_VALUES)]


_BY_FIELD = re.compile(r"\bby\s+(?:the\s+)?(?P<field>[^\W\d_]{2,40})\b", re.IGNORECASE)


def _note_owner(task: str, tool: ToolDefinition, reading: Reading) -> Reading:
    """The reading with `my` told where the tool takes a person whom it may mean."""
    people = [p for p in list_parameters(tool.input_schema) if _OWNERS & {*p.words}]
    mine = [word for word in split_words(task) if word in ("my", "mine")]
    if tool.access != "read" or not mine or any(p.name in reading.origins for p in people):
        return reading
    return replace(reading, unused=(*reading.unused, mine[0])) if people else reading


_OWNERS = frozenset(
    "assignee attendee author creator member owner participant reporter user".split()
)


_VERBS = frozenset(" ".join(VERBS.values()).split()) | STOP_WORDS | WEAK_WORDS


def list_doubts(reading: Reading) -> tuple[str, ...]:
    """What of a reading has to be shown before it is used, in words."""
    doubts = [f"{value!r} of the task went into no argument." for value in reading.unused[:5]]
    doubts += [f"{name} may be meant otherwise." for name in reading.doubtful[:5]]
    shown = {"example": "is the documentation's example", "memory": "is of an earlier exchange"}
    doubts += [
        f"{name} {shown[origin]}." for name, origin in reading.origins.items() if origin in shown
    ]
    return tuple(doubts)
