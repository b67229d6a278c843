"""Values of the flat MCP front end: the requesting peer, JSON-RPC errors, extra methods, and tool
definitions and results as they are sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sandbox.bundle.model import ToolDefinition
from sandbox.sanitize import clean_json
from sandbox.session.interface import Failure
from sandbox.wire.content import clean_answer
from sandbox.wire.notifications import Hearer, LogListener, ignore_progress

Result = Mapping[str, Any]
Declared = Mapping[str, Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION, UNDECLARED, BUSY = -32022, -32021, -32603
FRESH = {"ttlMs": 0, "cacheScope": "private"}


@dataclass(frozen=True)
class Peer:
    """Whose request it is: what its answer may depend on, and what it is told meanwhile.

    `declared` are the client's capabilities, `logged` hears of a server's log where it wants to,
    `notify` sends a notification of that method and those parameters.
    """

    modern: bool
    declared: Declared
    identity: int | str
    notify: Callable[[str, Mapping[str, Any]], None]
    heard: Hearer = ignore_progress
    logged: LogListener | None = None


CallTool = Callable[[str, Mapping[str, Any], Peer], Awaitable[Result]]
Answer = Callable[[Mapping[str, Any], Peer], Awaitable[Result]]


class ExtraMethods(Protocol):
    """What a server answers beside its tools."""

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        """What is declared in a revision of the protocol beside `tools`."""
        ...

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        """What answers a method in that era, which may raise Refusal; None where nothing does."""
        ...


class NoExtraMethods:
    """A server of tools alone."""

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        return {}

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        return None


class RpcError(Exception):
    """A JSON-RPC error to be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


_PROOF_KEYWORDS = frozenset({"x-in"})


def flatten_tool(
    tool: ToolDefinition, base_url: str, takes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The tool, with the input schema `takes` where that is not its own, without what costs a
    model's context and helps no caller: the output schema, which stays in the bundle (results are
    checked against it before they are delivered), a title that the description begins with, and
    the marks that only the proving stages read.
    """
    whole = tool.build_listing(base_url)
    meta = whole["_meta"]["toolwright"]
    said = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": clean_json(strip_proof_keywords(takes or tool.input_schema)),
        "annotations": _select_annotations(whole["annotations"]),
        "_meta": {"toolwright": {key: meta[key] for key in ("method", "path") if key in meta}},
    }
    return said


def strip_proof_keywords(schema: Any) -> Any:
    """The schema without the keywords that say where a value goes on the wire."""
    root = {key: value for key, value in schema.items() if key not in _PROOF_KEYWORDS}
    if isinstance(root.get("properties"), Mapping):
        root["properties"] = {
            name: {key: v for key, v in value.items() if key not in _PROOF_KEYWORDS}
            if isinstance(value, Mapping)
            else value
            for name, value in root["properties"].items()
        }
    return root


def _select_annotations(annotations: Mapping[str, bool]) -> dict[str, bool]:
    """The annotations that differ from MCP's defaults (destructive and open, neither read-only nor
    idempotent), and readOnlyHint, which clients gate by.
    """
    if annotations["readOnlyHint"]:
        return {"readOnlyHint": True}
    told = {"readOnlyHint": False}
    if not annotations["destructiveHint"]:
        told["destructiveHint"] = False
    if annotations["idempotentHint"]:
        told["idempotentHint"] = True
    return told


def clean_result(result: Result, failure: Failure | None) -> Result:
    """The result of a call whose output schema the client was not given, without anything that its
    reader would not see.

    A successful answer that breaks its schema is delivered with a note and is no error: whoever is
    told that a write failed does it again.
    """
    if failure is not None and failure.kind == "schema":
        result = _add_schema_note(result, failure)
    clean: Result = clean_answer(result)
    return clean


def _add_schema_note(result: Result, failure: Failure) -> Result:
    kept = {key: value for key, value in result.items() if key != "isError"}
    if result.get("isError"):
        return kept
    note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
    return {**kept, "content": [{"type": "text", "text": note}, *result["content"]]}
