"""The tool that a task's words mean by an earlier answer of the session: "show the first one".

Words that point at an answer say little that a search finds. What is found here is shown with the
remembered values before it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.errors import UnknownTool
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.results.mentions import MemoryValue, resolve_mentions
from orchestrator.tasks.routing.naming import NEUTRAL, list_identifiers, list_said
from orchestrator.tasks.run.state import get_server
from orchestrator.tasks.run.taking import recall_arguments
from registry.errors import RegistryError
from registry.search.words import VERBS, stem_word
from registry.sessions.memory import SessionMemory
from sandbox.bundle.model import ToolDefinition
from sandbox.errors import BundleInvalid

_SAYING_LITTLE = NEUTRAL | frozenset((" ".join(VERBS.values()) + " how many much").split())


def find_remembered_tool(
    roster: Catalog, memory: SessionMemory, task: str, candidates: Iterable[str]
) -> str:
    """The only read, of the servers that gave what the words mention and of the `candidates`
    (`server.tool`), that takes nothing but what is mentioned and that the rest of the words is
    about; "" where there is none, or several. What gave what is mentioned is not asked again.
    """
    mentions = resolve_mentions(task, memory)
    if not mentions:
        return ""
    rest = _list_rest(task, mentions)
    asked = {mention.tool for mention in mentions}
    found = [
        f"{server.entry.name}.{tool.name}"
        for server, tool in _iterate_reads(roster, mentions, candidates)
        if f"{server.entry.name}.{tool.name}" not in asked
        and _takes_mentioned(task, memory, tool.input_schema)
        and rest <= list_identifiers(tool, server.entry.name, server.entry.title)
    ]
    return found[0] if len(found) == 1 else ""


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
