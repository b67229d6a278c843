"""A forged server's tools as a client's list shows them when the server stands by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.bundle import ToolDefinition
from sandbox.cleantext import clean_json

_PROOF_KEYWORDS = frozenset({"x-in"})


def flat(tool: ToolDefinition, base_url: str) -> dict[str, Any]:
    """The tool without what costs a model's context and helps no caller: the output schema, which
    stays in the bundle (results are checked against it before they are delivered), a title that the
    description begins with, and the marks that only the proving stages read.
    """
    whole = tool.listed(base_url)
    meta = whole["_meta"]["toolwright"]
    said = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": clean_json(unmarked(tool.input_schema)),
        "annotations": _telling(whole["annotations"]),
        "_meta": {"toolwright": {key: meta[key] for key in ("method", "path") if key in meta}},
    }
    return said


def unmarked(schema: Any) -> Any:
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


def _telling(annotations: Mapping[str, bool]) -> dict[str, bool]:
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
