"""Values that a step takes of earlier answers of its session: by their handles, which whoever asked
gave, or because its words mean them ("the second one", "that data").

Only what whoever asked gave is looked through for handles, once, where it comes in. A value that
holds a reference itself is not taken: what an API answered is never read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import ReferenceRefused
from orchestrator.results.keeper import ResultKeeper
from orchestrator.results.mentions import MemoryValue, resolve_mentions
from orchestrator.results.references import list_taken_sources
from orchestrator.tasks.planning.binding import to_singular
from orchestrator.tasks.run.flow import holds_reference
from registry.search.words import split_words
from registry.sessions.kept_results import ResultSource
from registry.sessions.memory import SessionMemory
from sandbox.schemas.keywords import declared_types
from sandbox.schemas.validator import get_checker

Taken = dict[str, dict[str, list[str]]]
"""By argument, the servers whose answers its value is of, each with the places it may talk to."""
_WRAPPING = frozenset({"body", "result"})


@dataclass(frozen=True)
class Recalled:
    """A value for an argument that the task's words mean, and of which tool's answer."""

    value: Any
    words: str
    tool: str


def take_kept(
    results: ResultKeeper, session: str, arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], Taken]:
    """Arguments that whoever asked gave, with the values of kept results that they refer to.
    Recorded in the audit. Raises ReferenceRefused.
    """
    found = results.look_up(session, arguments)
    problems = [f"{each.where}: {each.reason}" for each in found.problems]
    sources = list_taken_sources(found)
    problems += [
        f"/{name}: the value holds a `$ref` itself; give the path of what is needed of it"
        for name in sources
        if holds_reference(found.arguments[name])
    ]
    if problems:
        raise ReferenceRefused("the task", problems)
    if found.used:
        results.table.record_uses("do", found.used, results.now())
    return dict(found.arguments), {name: _encode(each) for name, each in sources.items()}


def encode_servers(results: ResultKeeper, tool: str) -> dict[str, list[str]]:
    """The source of what a tool answered, as `Taken` has it."""
    return _encode(results.find_sources((tool.partition(".")[0],)))


def _encode(sources: Iterable[ResultSource]) -> dict[str, list[str]]:
    return {source.server: sorted(source.places) for source in sources}


def parse_sources(taken: Mapping[str, Sequence[str]]) -> tuple[ResultSource, ...]:
    """The sources of one argument."""
    return tuple(ResultSource(name, frozenset(places)) for name, places in taken.items())


def recall_arguments(
    task: str, memory: SessionMemory, schema: Mapping[str, Any], missing: Sequence[str]
) -> dict[str, Recalled]:
    """The missing arguments that earlier answers of the session give, where the task's words mean
    one, and just one value of it fits the argument by name and type. Pure.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    mentions = resolve_mentions(task, memory)
    recalled: dict[str, Recalled] = {}
    for name in missing:
        wanted = properties.get(name)
        fits = [
            Recalled(value, mention.words, mention.tool)
            for mention in mentions
            for value in _iterate_fitting(name, wanted, mention, alone=len(missing) == 1)
        ]
        if len(fits) == 1 and not holds_reference(fits[0].value):
            recalled[name] = fits[0]
    return recalled


def _iterate_fitting(name: str, schema: Any, mention: MemoryValue, *, alone: bool) -> Iterator[Any]:
    """The values of what is mentioned that an argument of that name and schema can be. One that has
    no name of its own is taken where no other argument is missing (`alone`).
    """
    types = declared_types(schema)
    if not types or not isinstance(schema, Mapping):
        return
    value, checker = mention.value, get_checker({"properties": {name: schema}})

    def is_fitting(each: Any) -> bool:
        return each is not None and checker.find_problem({name: each}) is None

    if isinstance(value, Mapping) and not types & {"object"}:
        words = tuple(split_words(name))
        exact = [inner for key, inner in value.items() if tuple(split_words(str(key))) == words]
        nouns = _list_nouns(mention)
        owned = [
            inner
            for key, inner in value.items()
            if any((noun, *split_words(str(key))) == words for noun in nouns)
        ]
        yield from filter(is_fitting, (exact or owned)[:1])
    elif alone and is_fitting(value):
        yield value


def _list_nouns(mention: MemoryValue) -> frozenset[str]:
    """What a mentioned value is, by the names on its path and of the tool that answered it."""
    names = [*re.findall(r"[^\W\d]\w*", mention.path), mention.tool.partition(".")[2]]
    words = (word for name in names if name not in _WRAPPING for word in split_words(name))
    return frozenset(map(to_singular, words))
