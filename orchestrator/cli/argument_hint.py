"""What a tool takes, for a person whose call it did not take: its arguments and an example."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from orchestrator.approvals.text import escape_line

MAX_NAMED = 20
MAX_WORDS = 120
_SAMPLES: dict[str, Any] = {
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def render_arguments(tool: str, schema: Mapping[str, Any]) -> list[str]:
    """Lines that name each argument of a tool, whether it is required, and a call that has those
    that are. The schema is a stranger's: nothing in it is invisible or without bound here.
    """
    properties = schema.get("properties")
    named = dict(properties) if isinstance(properties, Mapping) else {}
    required = [name for name in schema.get("required") or () if isinstance(name, str)]
    order = sorted(named, key=lambda name: name not in required)
    lines = [_render_argument(name, named[name], name in required) for name in order[:MAX_NAMED]]
    if len(order) > MAX_NAMED:
        lines.append(f"  … and {len(order) - MAX_NAMED} more: toolwright show {tool.split('.')[0]}")
    example = f"For example: {render_example_call(tool, schema)}"
    return [f"{tool} takes:", *(lines or ["  nothing"]), example]


def render_example_call(tool: str, schema: Mapping[str, Any]) -> str:
    """The command that calls a tool with a value for each argument that is required."""
    properties = schema.get("properties")
    named = dict(properties) if isinstance(properties, Mapping) else {}
    required = [name for name in schema.get("required") or () if isinstance(name, str)]
    example = {name: _build_sample(named.get(name)) for name in required[:MAX_NAMED]}
    given = [json.dumps(example, ensure_ascii=False)] if example else []
    return escape_line(shlex.join(["toolwright", "call", tool, *given]))


def _render_argument(name: str, schema: Any, required: bool) -> str:
    about = schema if isinstance(schema, Mapping) else {}
    kind = about.get("type", "")
    kinds = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    facts = ", ".join(filter(None, (kinds, "required" if required else "")))
    words = str(about.get("description") or "")[:MAX_WORDS]
    told = f"  {name[:60]}{f' ({facts})' if facts else ''}{f': {words}' if words else ''}"
    return escape_line(told)


def _build_sample(schema: Any) -> Any:
    """A value of that type, such as its description gives as an example."""
    about = schema if isinstance(schema, Mapping) else {}
    for key in ("examples", "enum"):
        if isinstance(about.get(key), list) and about[key]:
            return about[key][0]
    for key in ("example", "default", "const"):
        if key in about:
            return about[key]
    kind = about.get("type")
    return _SAMPLES.get(kind[0] if isinstance(kind, list) and kind else str(kind), "…")
