"""Reading a tool's arguments out of a task in words, by rules and without a model.

A value goes into an argument where the task names the argument beside it, where a preposition or an
enumeration says so, or where just one value and one argument are of the same kind. What has two
readings is left out: required arguments are `missing` then, values are `unused`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from orchestrator.tasks.model import Reading
from orchestrator.tasks.reading import bounds, kinds, loose, named
from orchestrator.tasks.reading.assignment import Assignment
from orchestrator.tasks.reading.filling import fill_in
from orchestrator.tasks.reading.parameters import list_parameters, resolve_schema
from orchestrator.tasks.reading.values import scan_values
from registry.search.words import split_words
from sandbox.schemas.coercion import coerce_arguments
from sandbox.schemas.validator import get_checker

MAX_TASK = 4_000
MAX_UNUSED = 20
RULES = (
    named.read_full_names,
    named.read_titled,
    named.read_set,
    named.read_phones,
    named.read_sentences,
    loose.read_reasons,
    named.read_named,
    named.read_explicit,
    bounds.read_named_bounds,
    named.read_counts,
    bounds.read_bounds,
    loose.read_behind_colon,
    kinds.read_coordinates,
    kinds.read_conversion,
    kinds.read_moments,
    kinds.read_periods,
    kinds.read_directions,
    kinds.read_amount_currency,
    kinds.read_choices,
    kinds.read_truths,
    kinds.read_states,
    named.read_lists,
    named.read_word_lists,
    named.read_named_before,
    kinds.read_years,
    kinds.read_single_days,
    kinds.read_quantities,
    kinds.read_by_kind,
    loose.read_fields,
    loose.read_last_words,
    loose.read_written,
    loose.read_sought,
    loose.read_sole_name,
    loose.read_lower_places,
    kinds.doubt_times,
)
"""Every rule, the plainest first."""


def read_arguments(
    task: str,
    tool_schema: Mapping[str, Any],
    *,
    given: Mapping[str, Any] | None = None,
    memory: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    about: str = "",
    tool: str = "",
) -> Reading:
    """The arguments of a tool as a task says them.

    `given` are those that the caller named, `memory` values of earlier exchanges by argument name,
    `defaults` what a person set for arguments. Days such as `tomorrow` are read with `now` alone.
    `about` are the names that a person knows the server by, never a stranger's description: in the
    task they are no values. `tool` is its name: a number behind the thing that it is about counts
    no others. Of a task longer than 4,000 characters nothing is read.
    """
    if len(task) > MAX_TASK:
        task = ""
    parameters = list_parameters(tool_schema)
    labels = {parameter.words for parameter in parameters}
    # `ISBN` in capitals names an argument, and is no name itself.
    values = [
        value
        for value in scan_values(task, now)
        if value.kind != "name" or tuple(split_words(value.text)) not in labels
    ]
    things = frozenset(split_words(tool))
    zone = now.tzinfo if now is not None else None
    state = Assignment(task, parameters, values, given or {}, things, zone)
    for read in RULES:
        read(state)
    fill_in(state, tool_schema, memory or {}, defaults or {})
    return _build_reading(state, tool_schema, about)


def _build_reading(state: Assignment, schema: Mapping[str, Any], about: str) -> Reading:
    missing = tuple(p.name for p in state.parameters if p.required and p.pointer not in state.done)
    coerced = coerce_arguments(schema, state.arguments).arguments
    missing += tuple(_list_empty_objects(schema, coerced, missing))
    checked = {**schema, "required": []} if missing else schema
    # What misses inside an object is told as missing, and not as the problem of the object.
    unready = any(len(p.pointer) > 1 for p in state.parameters if p.name in missing)
    wrong = None if unready else get_checker(checked).find_problem(coerced)
    return Reading(
        arguments=coerced,
        origins=state.origins,
        evidence=state.evidence,
        missing=missing,
        unused=tuple(_list_unused(state, about))[:MAX_UNUSED],
        problem=f"{wrong.where or '/'}: {wrong.reason}" if wrong else "",
        doubtful=tuple(state.doubtful),
    )


def _list_empty_objects(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], missing: Collection[str]
) -> Iterator[str]:
    """Required objects of which nothing was said, and no field of which has to be: they are asked
    for as a whole, since a write without anything to write is not meant.
    """
    required = schema.get("required")
    known = {*arguments, *(name.partition(".")[0] for name in missing)}
    for name in required if isinstance(required, list) else ():
        part = resolve_schema((schema.get("properties") or {}).get(name), schema)
        if name not in known and part is not None and part.get("properties"):
            yield str(name)


def _list_unused(state: Assignment, about: str) -> Iterator[str]:
    known = {*split_words(about)}
    for _, value in state.list_free():
        if value.kind == "name" and {*split_words(value.text)} <= known:
            continue
        yield value.text
    read = {*split_words(" ".join(state.evidence.values()))}
    yield from (word for word in dict.fromkeys(state.unread) if not {*split_words(word)} <= read)
