"""The tool that a task's words mean by an earlier answer of the session: "show the first one".

Words that point at an answer say little that a search finds. What is found here is shown with the
remembered values before it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.errors import UnknownTool
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.results.mentions import MemoryValue, resolve_mentions
from orchestrator.tasks.routing.naming import NEUTRAL, list_identifiers, list_said
from orchestrator.tasks.run.state import get_server
from orchestrator.tasks.run.taking import recall_arguments
from registry.errors import RegistryError
from registry.search.words import VERBS, split_words, stem_word
from registry.sessions.memory import SessionCall, SessionMemory
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import BundleInvalid
from sandbox.schemas.validator import get_checker

_SAYING_LITTLE = NEUTRAL | frozenset((" ".join(VERBS.values()) + " how many much").split())


def find_remembered_tool(
    roster: Catalog, memory: SessionMemory, task: str, candidates: Iterable[str]
) -> str:
    """The only read that takes nothing but what is mentioned and that the rest of the words is
    about: of the servers that gave what the words mention, else of those of the `candidates`
    (`server.tool`); "" where there is none, or several. What gave what is mentioned is not asked
    again.
    """
    mentions = resolve_mentions(task, memory)
    if not mentions:
        return ""
    rest = _list_rest(task, mentions)
    asked = {mention.tool for mention in mentions}
    giving = {get_server(mention.tool) for mention in mentions}
    found = [
        f"{server.entry.name}.{tool.name}"
        for server, tool in _iterate_reads(roster, mentions, candidates)
        if f"{server.entry.name}.{tool.name}" not in asked
        and _takes_mentioned(task, memory, tool.input_schema)
        and (server.entry.name in giving or not _takes_bare_id(tool.input_schema))
        and rest <= list_identifiers(tool, server.entry.name, server.entry.title)
    ]
    own = [name for name in found if get_server(name) in giving]
    return (own or found)[0] if len(own or found) == 1 else ""


def find_repeated_call(roster: Catalog, memory: SessionMemory, task: str) -> SessionCall | None:
    """The read that words ask for once more (`that data again`, `show it`): they mention the whole
    of its answer and say nothing else; None where they do not.
    """
    mentions = resolve_mentions(task, memory)
    if len(mentions) != 1 or _list_rest(task, mentions) - {stem_word("again")}:
        return None
    (mention,) = mentions
    words = {*split_words(task)}
    if _ITEM.search(mention.path) or (isinstance(mention.value, list) and not words & _WHOLE):
        return None
    call = next((each for each in memory.exchanges if each.call == mention.call), None)
    if call is None or call.access != "read":
        return None
    try:
        tool = roster.find_tool(get_server(call.tool), call.tool.partition(".")[2])
    except (UnknownTool, RegistryError, BundleInvalid):
        return None
    fits = get_checker(tool.input_schema).find_problem(dict(call.arguments)) is None
    return call if tool.access == "read" and fits else None


_ITEM = re.compile(r"\[\d+\]\Z")
_WHOLE = frozenset(
    "again data result results answer answers list output response rows items entries".split()
)
_BARE = frozenset("id uuid guid number no code key ref reference slug".split())


def _takes_bare_id(schema: Mapping[str, Any]) -> bool:
    """Whether an argument is an id that does not say of what: one of another server's things is
    none of this one's.
    """
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return any({*split_words(str(name))} <= _BARE for name in names)


def _list_rest(task: str, mentions: Iterable[MemoryValue]) -> frozenset[str]:
    """The stems of the words that say more than what is mentioned."""
    for mention in mentions:
        task = task.replace(mention.words, " ")
    return frozenset(stem_word(word) for word in list_said(task) if word not in _SAYING_LITTLE)


def _iterate_reads(
    roster: Catalog, mentions: Iterable[MemoryValue], candidates: Iterable[str]
) -> Iterable[tuple[RegisteredServer, ToolDefinition]]:
    names = list(candidates)
    giving = {get_server(mention.tool) for mention in mentions}
    for name in dict.fromkeys([*giving, *map(get_server, names)]):
        try:
            server = roster.get_server(name)
        except (UnknownTool, RegistryError, BundleInvalid):
            continue
        for tool in server.tools.values():
            chosen = name in giving or f"{name}.{tool.name}" in names
            if chosen and tool.access == "read":
                yield server, tool


def _takes_mentioned(task: str, memory: SessionMemory, schema: Mapping[str, Any]) -> bool:
    required = schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    return bool(names) and recall_arguments(task, memory, schema, names).keys() == {*names}
