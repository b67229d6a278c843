"""What a list that was answered leaves out, or does not: further pages, words of the task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from itertools import islice
from typing import Any

from orchestrator.results.opening import unwrap_graphql
from orchestrator.tasks.reading.choices import TaskWords
from orchestrator.tasks.reading.parameters import ToolParameter, list_parameters, resolve_schema
from orchestrator.tasks.routing.naming import find_answer_schema
from registry.search.words import split_words, stem_word
from sandbox.bundle.model import ToolDefinition, follow_pointer
from sandbox.schemas.accepted import PAGES, get_place
from sandbox.schemas.keywords import declared_types

SMALL = 10
"""A list of fewer rows is no page of a longer one, though its tool takes a page."""
_PAGING = frozenset("page offset cursor skip limit start after top per".split())


def takes_pages(tool: ToolDefinition) -> bool:
    """Whether one call of a list may give its first rows only."""
    return bool(find_most(tool)) or any(map(is_paging, list_parameters(tool.input_schema)))


def find_most(tool: ToolDefinition) -> str:
    """The argument by which a tool follows pages, "" where it has none."""
    properties = tool.input_schema.get("properties") or {}
    return next((name for name, each in properties.items() if get_place(each)[0] == PAGES), "")


def is_paging(parameter: ToolParameter) -> bool:
    return parameter.is_counting or bool(_PAGING & {*parameter.words})


def describe_page(tool: ToolDefinition, arguments: Mapping[str, Any], answer: Any) -> str:
    """What is to be said of a list that may go on behind what was answered, "" where it is whole,
    or where who asked said which part is wanted.
    """
    most = find_most(tool)
    paging = {p.name for p in list_parameters(tool.input_schema) if is_paging(p)}
    paging |= {most} if most else set()
    if not paging or paging & arguments.keys():
        return ""
    rows, goes_on = list_answer_rows(answer), find_following(tool, answer)
    if rows is None or goes_on is False or (goes_on is None and len(rows) < find_page_size(tool)):
        return ""
    how = f"; `{most}` follows the pages" if most else ""
    return f"There {'are' if goes_on else 'may be'} more than these {len(rows)}{how}."


def find_following(tool: ToolDefinition, answer: Any) -> bool | None:
    """Whether an answer says that its list goes on; None where it does not say."""
    paging = tool.paging
    if paging is None:
        return None
    if paging.style in ("cursor", "id") and paging.more:
        told = follow_pointer(answer, paging.more)
        return told if isinstance(told, bool) else None
    if paging.style not in ("cursor", "url"):
        return None
    named = follow_pointer(answer, paging.next)
    return isinstance(named, str | int) and not isinstance(named, bool) and named != ""


def describe_count(tool: ToolDefinition, arguments: Mapping[str, Any], answer: Any) -> str:
    """How many there are of what a list answered, for who asks that: as the answer says itself, or
    as its rows are where it is whole; "" where neither is known.
    """
    opened = unwrap_graphql(answer)
    fields = opened.items() if isinstance(opened, Mapping) else ()
    totals = [
        (str(name), value)
        for name, value in fields
        if isinstance(value, int) and not isinstance(value, bool)
        if _TOTALS & {*split_words(str(name))} and not _OF_PAGES & {*split_words(str(name))}
    ]
    rows = list_answer_rows(answer)
    if rows is None or not _is_listed(tool, opened):
        return ""
    if len(totals) == 1:
        name, count = totals[0]
        return f"{_count(count)} (`{name}`)."
    paging = {p.name for p in list_parameters(tool.input_schema) if is_paging(p)}
    is_part = paging & arguments.keys() or describe_page(tool, arguments, answer)
    return "" if is_part else f"{_count(len(rows))}."


def _count(number: int) -> str:
    return f"There {'is' if number == 1 else 'are'} {number}"


def _is_listed(tool: ToolDefinition, answer: Any) -> bool:
    """Whether the list of an answer is what the tool lists: an order's `lines` are no orders."""
    if not isinstance(answer, Mapping):
        return True
    about = {stem_word(word) for word in (*split_words(tool.name), *_LISTS)}
    return any(
        isinstance(value, list) and {stem_word(word) for word in split_words(str(name))} & about
        for name, value in answer.items()
    )


_LISTS = "content data entries hits items list nodes objects records results rows values".split()
_TOTALS = frozenset({"total", "count"})
_OF_PAGES = frozenset("page pages per limit".split())


def find_page_size(tool: ToolDefinition) -> int:
    """How many rows a page has that nobody gave a size for; where the schema does not say, how many
    rows are taken for one.
    """
    counting = [p for p in list_parameters(tool.input_schema) if p.is_counting]
    sizes = [p.schema.get("default") for p in counting]
    return sizes[0] if len(sizes) == 1 and isinstance(sizes[0], int) and sizes[0] > 0 else SMALL


def list_answer_rows(answer: Any) -> list[Any] | None:
    """The one list of an answer: itself, or the only field of it that is one; in a GraphQL answer
    of what its one field gives.
    """
    answer = unwrap_graphql(answer)
    if isinstance(answer, list):
        return answer
    fields = answer.values() if isinstance(answer, Mapping) else ()
    lists = [field for field in fields if isinstance(field, list)]
    return lists[0] if len(lists) == 1 else None


def describe_unapplied(task: str, tool: ToolDefinition, evidence: Mapping[str, str]) -> str:
    """What is to be said of words that are a state of a list's rows and that no argument took, ""
    where there are none: `boats in stock`, where the tool lists all. `evidence` are the words of
    the task that went into arguments.
    """
    named = {*split_words(" ".join([tool.name, tool.path, *evidence.values()]))}
    known = {stem_word(word) for word in named}
    said = TaskWords(task.lower(), task)
    found = dict.fromkeys(
        row
        for words in _list_states(tool)
        if (row := said.find_row(words)) and not {stem_word(word) for word in words} <= known
    )
    found |= dict.fromkeys(_list_past_states(task, tool, known))
    told = ", ".join(repr(row) for row in [*found][:MAX_TOLD])
    return f"It is not narrowed by {told}, for which it has no argument." if told else ""


MAX_TOLD = 5
MAX_STATES = 200
_ASKING = frozenset({"is", "has", "are"})


def _list_past_states(task: str, tool: ToolDefinition, known: Set[str]) -> Iterator[str]:
    """Words that say of the things themselves what a day of the rows tells: `returned loans`,
    `loans that were returned` for `returned_on`.
    """
    things = {stem_word(word) for word in split_words(tool.name)}
    for name in islice(find_row_fields(tool), MAX_STATES):
        words = split_words(str(name))
        if len(words) != 2 or words[1] not in _DAYS or stem_word(words[0]) in known:
            continue
        if not (words[0].endswith("ed") or words[0] in _PAST_WORDS):
            continue
        said = re.search(
            rf"\b{re.escape(words[0])}(?:\s+(?P<thing>[^\W\d_]+)|(?P<end>\s*[.,;?!]?\s*\Z))",
            task,
            re.IGNORECASE,
        )
        if said is not None and (said["end"] is not None or stem_word(said["thing"]) in things):
            yield words[0]


_DAYS = frozenset("at date day on time".split())
_PAST_WORDS = frozenset("born bought built due lent made paid sent sold taken".split())


def _list_states(tool: ToolDefinition) -> Iterator[list[str]]:
    """The words of the flags and of the enumerated values that the rows of a list have."""
    schema, count = find_answer_schema(tool), 0
    for name, part in find_row_fields(tool).items():
        field = resolve_schema(part, schema) or {}
        if "boolean" in declared_types(field):
            yield [word for word in split_words(str(name)) if word not in _ASKING]
        values = field.get("enum")
        for value in values if isinstance(values, list) else ():
            if isinstance(value, str) and count < MAX_STATES:
                count += 1
                yield split_words(value[:80])


def _open_graphql(own: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of what `unwrap_graphql` makes of an answer."""
    value = _find_only_field(_get_fields(own).get("data"), root)
    fields = _get_fields(value) if value is not None else {}
    if value is None or "pageInfo" not in fields:
        return own if value is None else value
    made = {name: part for name, part in fields.items() if name != "pageInfo"}
    if "edges" in made and "nodes" not in made:
        edges = resolve_schema(made.pop("edges"), root) or {}
        edge = resolve_schema(edges.get("items", {}), root) or {}
        made["nodes"] = {"type": "array", "items": _get_fields(edge).get("node", {})}
    return {**value, "properties": made}


def _find_only_field(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of the one field of an object, where that is an object or list."""
    fields = _get_fields(resolve_schema(part, root) or {}) if part is not None else {}
    value = resolve_schema(next(iter(fields.values())), root) if len(fields) == 1 else None
    return value if value is not None and declared_types(value) & {"array", "object"} else None


def _get_fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    return fields if isinstance(fields, Mapping) else {}


def find_row_fields(tool: ToolDefinition) -> Mapping[str, Any]:
    """The fields of the rows that a tool lists, with their schemas; none where it lists none."""
    return _get_fields(find_row_schema(find_answer_schema(tool)) or {})


def find_row_schema(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of a row: of the list that is answered, or of its only field that is one."""
    own = _open_graphql(resolve_schema(schema, schema) or {}, schema)
    parts = _get_fields(own).values()
    lists = [own, *(resolve_schema(part, schema) or {} for part in parts)]
    rows = [each["items"] for each in lists if "array" in declared_types(each) and "items" in each]
    return resolve_schema(rows[0], schema) if len(rows) == 1 else None
