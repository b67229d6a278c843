"""Lookups in a run: the read that finds the id of what a task names, as a step before the one that
needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import UnknownTool
from orchestrator.tasks.model import Reading
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.planning.lookup import (
    MAX_PAGES,
    MAX_ROWS,
    Found,
    Lookup,
    SaidName,
    find_lookup,
    find_owner_noun,
    find_rows,
    find_said_name,
    is_filter,
)
from orchestrator.tasks.reading.parameters import list_parameters
from orchestrator.tasks.reading.read import read_arguments
from orchestrator.tasks.reading.values import scan_values
from orchestrator.tasks.routing.decision import PROVEN
from orchestrator.tasks.routing.naming import list_identifiers
from orchestrator.tasks.run.restrictions import is_restricted
from orchestrator.tasks.run.state import RunState, StepState, list_results
from registry.errors import RegistryError
from registry.search.words import split_words
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import BundleInvalid


@dataclass(frozen=True)
class NamedLookup:
    """A list of `server` that may have the id of what the task calls `said`. `arguments` are those
    that the list needs itself, as the task says them, `evidence` its words for them.
    """

    server: str
    lookup: Lookup
    said: SaidName
    arguments: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        return f"{self.server}.{self.lookup.tool}"


def find_named_lookup(
    parts: TaskParts, task: str, server: str, tool: ToolDefinition, reading: Reading
) -> NamedLookup | None:
    """How the one argument that a task says by a name gets its id; None where no argument is."""
    try:
        member = parts.roster.get_server(server)
    except (UnknownTool, BundleInvalid, RegistryError):
        return None
    read = [name for name, origin in reading.origins.items() if origin == "task"]
    entry, listed = member.entry, {}

    def is_callable(each: ToolDefinition) -> bool:
        found = _read_needs(task, each, f"{entry.name} {entry.title}", reading)
        if found is not None:
            listed[each.name] = found
        return found is not None

    filters = () if reading.missing else _list_filters(task, tool, reading)
    for parameter in reading.missing or (*read, *filters):
        lookup = find_lookup(tool, member.tools.values(), parameter, is_callable=is_callable)
        if lookup is None:
            continue
        needs = listed.get(lookup.tool, Reading())
        both = replace(reading, evidence={**needs.evidence, **reading.evidence})
        words = list_identifiers(member.tools[lookup.tool], "", "") if needs.evidence else ()
        said = find_said_name(
            task, tool, entry.name, entry.title, both, parameter, frozenset(words)
        )
        if said is not None and not _overlap(said.text, needs):
            return NamedLookup(server, lookup, said, needs.arguments, needs.evidence)
    return None


def _list_filters(task: str, tool: ToolDefinition, reading: Reading) -> tuple[str, ...]:
    """The one argument of a list by which its rows are narrowed to those of somebody whom the task
    names: `jobs of Ann Lee`. Of several the one whose thing it says (`of the customer Ann Lee`).
    """
    owned = [
        (value, match["noun"] if (match := _OWNED.search(task[: value.start])) else None)
        for value in scan_values(task)
        if value.kind in ("name", "quoted") and value.text in reading.unused
        if _OWNED.search(task[: value.start]) or _OWNS.match(task, value.end)
    ]
    if tool.access != "read" or len(owned) != 1:
        return ()
    noun = split_words(owned[0][1] or "")
    open_ones = [
        p.name
        for p in list_parameters(tool.input_schema)
        if is_filter(p) and p.name not in reading.origins
        if not noun or {*noun} & {*find_owner_noun(tool, p.name)}
    ]
    return tuple(open_ones) if len(open_ones) == 1 else ()


_OWNED = re.compile(
    r"\b(?:(?:of|for|by|from|with)\s+(?:the\s+)?(?:(?P<noun>[a-z]+)\s+)?|(?:does|did|has|have)\s+)\Z",
    re.IGNORECASE,
)
_OWNS = re.compile(r"['\u2019]s\b")


def _read_needs(task: str, each: ToolDefinition, about: str, reading: Reading) -> Reading | None:
    """The arguments that a list needs, as the task says them plainly; None where it does not."""
    required = [*each.input_schema.get("required", ())]
    given = {
        name: reading.arguments[name]
        for name in required
        if name in reading.arguments
        and name not in reading.doubtful
        and reading.origins.get(name) in ("task", "given")
    }
    found = read_arguments(
        task,
        each.input_schema,
        given=given,
        about=f"{about} {each.name} {each.description[:500]}",
        tool=each.name,
    )
    said = all(found.origins.get(name) in ("task", "given") for name in required)
    if found.missing or found.problem or not said or {*required} & {*found.doubtful}:
        return None
    evidence = {n: found.evidence.get(n) or reading.evidence.get(n, "") for n in required}
    return Reading({n: found.arguments[n] for n in required}, evidence=evidence)


def _overlap(said: str, needs: Reading) -> bool:
    """Whether a name is one of the values that went into the list's own arguments."""
    values = {str(value).casefold() for value in needs.arguments.values()}
    return any(value in said.casefold() or said.casefold() in value for value in values)


def read_by_name(reading: Reading, named: NamedLookup) -> Reading:
    """The reading as if the id that is looked up was there, said by the name."""
    parameter, said = named.lookup.parameter, named.said
    read = " ".join([said.text, *named.evidence.values()])
    doubtful = tuple(name for name in reading.doubtful if name != parameter)
    return replace(
        reading,
        arguments=_leave_out(reading.arguments, parameter.split(".")),
        evidence={**named.evidence, **reading.evidence, parameter: said.text},
        missing=tuple(name for name in reading.missing if name != parameter),
        unused=tuple(each for each in reading.unused if each.strip("\"'`") not in read),
        doubtful=doubtful if said.is_plain else (*doubtful, parameter),
    )


def _leave_out(arguments: Mapping[str, Any], pointer: Sequence[str]) -> dict[str, Any]:
    """Arguments without one of them, or without a field of one."""
    name, inner = pointer[0], pointer[1:]
    before = arguments.get(name)
    kept = {key: value for key, value in arguments.items() if key != name}
    if inner and isinstance(before, Mapping):
        kept[name] = _leave_out(before, inner)
    return kept


def find_lists(
    parts: TaskParts, server: str, tool: ToolDefinition, missing: Sequence[str]
) -> dict[str, str]:
    """For those of a tool's missing arguments that are ids, the read of its server that gives them
    with names.
    """
    try:
        siblings = parts.roster.get_server(server).tools.values()
    except (UnknownTool, BundleInvalid, RegistryError):
        return {}
    found = {name: find_lookup(tool, siblings, name) for name in missing}
    return {name: f"{server}.{each.tool}" for name, each in found.items() if each is not None}


def may_look_up(parts: TaskParts, step: StepState, named: NamedLookup) -> bool:
    """Whether the list is read unasked: the words plainly want it, or whoever asked chose the tool,
    and its server has done well, or is new and nobody else's.
    """
    level = parts.suggestions.store.standings.get(named.server).level
    is_new = level == "probationary" and not is_restricted(parts, named.tool)
    chosen = step.get("choice") in ("given", "choose")
    return (level in PROVEN or is_new) and (chosen or bool(step.get("looks_up")))


def insert_lookup(
    state: RunState, step: StepState, named: NamedLookup, *, is_asked: bool, most: int = 0
) -> RunState:
    """The run with the read that finds the id before the step that needs it. `most` rows are asked
    for where its first page did not have it.
    """
    lookup, said = named.lookup, named.said
    identity = f"find_more_{step['id']}" if most else f"find_{step['id']}"
    wanted = f"the {lookup.parameter} of {said.text!r}"
    told = f"It finds {wanted}, with which {step['tool']} is called then."
    finding: StepState = {
        "id": identity,
        "task": f"find {wanted}",
        "after": list(step["after"]),
        "uses": "",
        "pick": "",
        "tool": named.tool,
        "arguments": {**named.arguments, **({lookup.most: min(most, MAX_ROWS)} if most else {})},
        "origins": {},
        "choice": "confirm" if is_asked else "act",
        "reasons": list(step.get("reasons") or []),
        "doubts": [told] if is_asked else [],
        "read_by": step.get("read_by", ""),
        "finds": step["id"],
    }
    waiting: StepState = {**step, "after": [*step["after"], identity], "found_by": identity}
    steps: dict[str, StepState] = {}
    for name, each in state["steps"].items():
        if name == step["id"]:
            steps |= {identity: finding, name: waiting}
        else:
            steps[name] = each
    return {"steps": steps, "current": identity, "strategy": "composed"}


def drop_lookup(state: RunState, finding: StepState) -> RunState:
    """The run without a lookup that was not confirmed: the id is asked for, or first which tool is
    meant where words alone said so.
    """
    identity, waiting = finding["id"], state["steps"][finding["finds"]]
    after = [name for name in waiting["after"] if name != identity]
    kept: StepState = {**waiting, "after": after, "found_by": ""}
    if waiting.get("choice") == "confirm" and not waiting.get("rounds"):
        kept |= {"choice": "choose", "tool": "", "arguments": {}, "rounds": 1}
    steps = {name: each for name, each in state["steps"].items() if name != identity}
    return {"steps": {**steps, waiting["id"]: kept}, "current": waiting["id"]}


def find_done_list(state: RunState, step: StepState, named: NamedLookup) -> str:
    """The step that has the list already: the lookup made for it, or an earlier step that read it
    whole; "" for none.
    """
    if step.get("found_by"):
        return step["found_by"]
    same = (
        each["id"]
        for each in state["steps"].values()
        if each["id"] in step["after"]
        and each.get("tool") == named.tool
        and each.get("end") == "done"
        and (each.get("resolved") or {}) == named.arguments
        and not each.get("each")
    )
    return next(same, "")


def list_found(state: RunState, named: NamedLookup, finding: str) -> Found:
    """What of the list is called as the task says."""
    return find_rows(named.lookup, named.said.text, list_results(state).get(finding))


def count_more(state: RunState, step: StepState, named: NamedLookup, found: Found) -> int:
    """How many rows the next pages would have, where the first has not what is looked for."""
    tried = step.get("found_by", "").startswith("find_more_")
    if found.matches or found.is_whole or tried or not named.lookup.most:
        return 0
    return len(found.rows) * MAX_PAGES


def describe_match(named: NamedLookup, found: Found, *, writes: bool) -> list[str]:
    """What has to be shown of an id that was looked up before it is used."""
    name, said = named.lookup.parameter, named.said.text
    doubts = []
    if found.matches == found.near:
        (row,) = found.near
        doubts.append(f"{said!r} is read as {row.name!r}, the only such name in {named.tool}.")
    elif writes:
        doubts.append(f"{name} is that of {said!r} in what {named.tool} answered.")
    if not found.is_whole:
        doubts.append(f"{named.tool} may have more that are called {said!r}.")
    return doubts


def list_choices(named: NamedLookup, found: Found) -> list[Mapping[str, Any]]:
    """The rows that may be meant, as a question shows them."""
    rows = found.matches or found.rows
    key = named.lookup.parameter
    return [{key: row.identity, "name": row.name, **row.more} for row in rows]
