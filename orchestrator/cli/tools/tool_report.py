"""One tool of a registered server for whoever is about to call it: what it takes, a call that it
takes, what it may do, how far it is trusted and what it wants for more, its last calls.

Names and texts of a tool are a stranger's: they are bounded and shown without what nobody sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.approvals.dates import format_age
from orchestrator.called_tools import CalledTools
from orchestrator.cli.terminal import out, print_table, print_text
from orchestrator.cli.tools.argument_hint import (
    ArgumentNote,
    build_sample,
    list_arguments,
    list_fields,
    list_values,
    render_example_call,
)
from orchestrator.results.shape import write_json
from orchestrator.views.records import render_outcome
from registry.models import Entry, Invocation, RegisteredTool
from registry.trust import (
    EXEMPT_SUCCESSES,
    STANDARD_PERCENT,
    STANDARD_SUCCESSES,
    TRUSTED_PERCENT,
    TRUSTED_SUCCESSES,
    WINDOW,
    Standing,
)
from sandbox import exactjson

LAST_CALLS = 5
MAX_ROWS = 40
MAX_EXAMPLE = 40
MAX_TEXT = 600
MAX_MEANING = 120
MAX_LINE = 400


def encode_tool(
    entry: Entry,
    tool: RegisteredTool,
    level: str,
    standings: tuple[Standing, Standing],
    granted: Iterable[str],
    calls: Iterable[Invocation],
    called: CalledTools,
) -> dict[str, Any]:
    """The JSON object that `toolwright show SERVER.TOOL --json` prints. `standings` are the
    server's and the tool's own, `calls` this tool's latest, newest first.
    """
    listed = tool.definition
    schema = listed.get("inputSchema") or {}
    last = tuple(calls)
    worked = next((call.arguments for call in last if _is_example(call)), None)
    name = f"{entry.name}.{tool.name}"
    server, own = standings
    return {
        "tool": name,
        "version": entry.version,
        "state": entry.state,
        "title": str(listed.get("title") or ""),
        "description": str(listed.get("description") or ""),
        "level": level,
        "group": tool.group,
        "input_schema": schema,
        "output_schema": listed.get("outputSchema") or {},
        "arguments": [
            {
                **_encode_argument(each, schema),
                "fields": [_encode_argument(f, schema) for f in list_fields(each, schema)],
            }
            for each in list_arguments(schema)
        ],
        "example": render_example_call(name, schema, worked),
        "permissions": list(entry.permissions),
        "granted": sorted(granted),
        "trust_level": server.level,
        "to_more_trust": list(explain_rise(server, own, level)),
        "calls": [
            {
                "call": call.id,
                "started": call.started,
                "outcome": render_outcome(call, called),
                "latency_ms": round(call.latency_ms, 3),
            }
            for call in last[:LAST_CALLS]
        ],
    }


def _encode_argument(note: ArgumentNote, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": note.name,
        "types": note.types,
        "required": note.required,
        "description": note.description,
        "example": build_sample(note.schema, schema),
        "values": list_values(note.schema, schema),
    }


def _is_example(call: Invocation) -> bool:
    """Whether a call succeeded and its arguments fit a line."""
    return call.succeeded and len(write_json(dict(call.arguments))) <= MAX_LINE


def explain_rise(server: Standing, own: Standing, level: str) -> Iterator[str]:
    """What a server wants for the next level, and a tool that writes for asking no more."""
    if server.level == "probationary":
        yield _render_rung("standard", STANDARD_SUCCESSES, STANDARD_PERCENT, server)
    elif server.level == "standard":
        yield _render_rung("trusted", TRUSTED_SUCCESSES, TRUSTED_PERCENT, server)
    elif server.level == "experimental":
        yield "experimental servers do not rise: a next version has to pass every stage"
    elif server.level == "degraded":
        yield "degraded servers do not rise: a next version that repairs it starts again"
    if level == "write":
        yield (
            f"its writes ask each time until the server is trusted and {EXEMPT_SUCCESSES} calls of "
            f"this tool, approved one by one, succeeded ({own.version_successes} so far)"
        )
    elif level == "destructive":
        yield "its writes ask each time; what deletes always does, whatever its record and rules"


def _render_rung(level: str, successes: int, percent: int, server: Standing) -> str:
    ratio = f", {server.ratio:.0%} so far" if server.ratio is not None else ""
    return (
        f"{level} wants {successes} successes ({server.ladder_successes} so far) and more than "
        f"{percent} % of the last {WINDOW} calls that count{ratio}"
    )


def print_tool(tool: Mapping[str, Any], now: float) -> None:
    """Print what `encode_tool` made."""
    told = f"{tool['tool']} (version {tool['version']}, {tool['state']}): {tool['level']}"
    print_text(told, "bold")
    print_text((tool["description"] or tool["title"])[:MAX_TEXT])
    out.print()
    rows = [row for each in tool["arguments"] for row in _render_rows(each)]
    if rows:
        print_table(("argument", "type", "required", "example", "what it is"), rows[:MAX_ROWS])
    else:
        print_text("It takes no arguments.")
    if len(rows) > MAX_ROWS:
        print_text(f"… and {len(rows) - MAX_ROWS} more, which --json lists")
    print_text(f"\nFor example: {tool['example']}\n")
    print_text("permissions: " + (", ".join(tool["permissions"]) or "none"))
    print_text("granted: " + (", ".join(tool["granted"]) or "nothing"))
    print_text(f"trust: {tool['trust_level']}")
    for line in tool["to_more_trust"]:
        print_text(f"  {line}")
    if tool["calls"]:
        out.print()
        print_table(
            ("call", "when", "outcome", "ms"), (_render_call(c, now) for c in tool["calls"])
        )
    else:
        print_text("It was not called yet.")


def _render_rows(argument: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """An argument and what it holds; its example is that of its parts, where it has any."""
    held = (argument, *argument["fields"])
    for each in held:
        is_whole = any(other["name"].startswith(f"{each['name']}.") for other in held)
        yield (
            str(each["name"])[:60],
            each["types"],
            "yes" if each["required"] else "",
            "" if is_whole else _render_example(each["example"]),
            _render_meaning(each),
        )


def _render_meaning(argument: Mapping[str, Any]) -> str:
    """What an argument is, and the values that its schema lists."""
    words = " ".join(argument["description"].split())[:MAX_MEANING]
    values = ", ".join(map(_render_example, argument["values"]))
    if not values:
        return words
    cut = values if len(values) <= MAX_MEANING else values[:MAX_MEANING] + "…"
    return f"{words} Values: {cut}".strip()


def _render_example(value: Any) -> str:
    """A value as it is typed behind `key=`: a text itself, others as JSON."""
    text = value if isinstance(value, str) else exactjson.dumps(value).decode()
    return " ".join(text.split())[:MAX_EXAMPLE]


def _render_call(call: Mapping[str, Any], now: float) -> tuple[str, ...]:
    when = format_age(call["started"], now)
    return call["call"], when, call["outcome"], f"{call['latency_ms']:.0f}"
