"""Definitions of the seven tools that Toolwright offers its clients, in a fixed order."""

from __future__ import annotations

from typing import Any

_TASK = {
    "type": "string",
    "maxLength": 4000,
    "description": "The user's wish, in their words; audited.",
}
_WORDS = {
    "task": {"type": "string", "maxLength": 4000},
    "reason": {"type": "string", "maxLength": 4000},
    "session": {"type": "string", "maxLength": 200},
}
"""What the audit keeps of who acts and why. They are explained where a model meets them first."""
_SESSION = {**_WORDS["session"], "description": "The conversation's id."}
_REASON = {**_WORDS["reason"], "description": "Why; approvers see it."}
_TOOL = {
    "type": "string",
    "maxLength": 100,
    "description": "`server.tool`, from `find`.",
}
_SERVER = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"}
_ARGUMENTS = {"type": "object", "description": "By its inputSchema."}


def _build_tool(
    name: str,
    title: str,
    description: str,
    properties: dict[str, Any],
    required: tuple[str, ...],
    read_only: bool,
    destructive: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
        },
    }


TOOLS = (
    _build_tool(
        "find",
        "Find tools",
        "Registered tools that fit a task, best first, with schemas. Call this first. If none "
        "fits, `forge`.",
        {
            "task": _TASK,
            "k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        },
        ("task",),
        read_only=True,
    ),
    _build_tool(
        "call_read",
        "Call a reading tool",
        "Call a tool that only reads. After 25 s you get an id for `status`. With `session`, a "
        "large answer is a sample and a handle, of which arguments may have parts: "
        '{"$ref":"r1","path":"$.a[0]"}.',
        {"tool": _TOOL, "arguments": _ARGUMENTS, **_WORDS, "session": _SESSION},
        ("tool",),
        read_only=True,
    ),
    _build_tool(
        "call_write",
        "Call a writing tool",
        "Call a tool that writes. Unless exempt, nothing is sent until a person approves the exact "
        "request: you get an approval id for `status`; tell the user what waits.",
        {"tool": _TOOL, "arguments": _ARGUMENTS, **_WORDS, "reason": _REASON},
        ("tool",),
        read_only=False,
        destructive=True,
    ),
    _build_tool(
        "do",
        "Do a task",
        "Do a task in words: it is routed, called and answered, or what is missing is asked, once "
        "a step: answer with `run` and `answer` as the result says. With `tool` it is run; with "
        "`tool` `none` a server is forged from `source`. Writes wait for a person.",
        {
            "tool": {**_TOOL, "description": f"{_TOOL['description']} Or `none`."},
            "arguments": _ARGUMENTS,
            "source": {
                "type": "string",
                "maxLength": 2000,
                "description": "Where the API is, if one has to be forged: URL, host or path.",
            },
            "run": {
                "type": "string",
                "maxLength": 64,
                "description": "A run that asked something, instead of a task.",
            },
            "answer": {"type": "object", "description": "The answer to what the run asked."},
            **_WORDS,
            "task": _TASK,
            "session": _SESSION,
        },
        (),
        read_only=False,
        destructive=True,
    ),
    _build_tool(
        "forge",
        "Forge a server",
        "Make, prove and register a server from an API's description; where it only computes or "
        "changes a server, from code that you write: the job then waits with a brief. Waits up "
        "to 25 s, then answers with a job for `status`. New hosts and credentials wait for a "
        "person.",
        {
            "source": {
                "type": "string",
                "maxLength": 2000,
                "description": "Path or URL of a description or documentation, or a host; `none` "
                "where no API is needed.",
            },
            "parent": {
                **_SERVER,
                "description": "The server to change.",
            },
            "name": {
                **_SERVER,
                "description": "Its name; the parent's for its next version.",
            },
            "base_url": {
                "type": "string",
                "maxLength": 2000,
            },
            "author": {
                "type": "string",
                "maxLength": 8,
                "enum": ["client", "openai", "sampling", "none"],
                "description": "Who writes code: `client` is you, by `submit`.",
            },
            **_WORDS,
        },
        ("task",),
        read_only=False,
    ),
    _build_tool(
        "submit",
        "Submit for a job",
        "Hand in what a job's brief asks for: code, or an API's `document`. Then ask `status`.",
        {
            "job": {"type": "string", "maxLength": 64},
            "code": {
                "type": "string",
                "maxLength": 262_144,
            },
            "tools": {
                "type": "array",
                "items": {"type": "object"},
                "description": "As the brief says.",
            },
            "cases": {
                "type": "array",
                "items": {"type": "object"},
            },
            "tests": {
                "type": "string",
                "maxLength": 131_072,
                "description": "A pytest suite.",
            },
            "packages": {
                "type": "array",
                "items": {"type": "string", "maxLength": 200},
                "maxItems": 16,
                "description": "Of PyPI; a person allows them.",
            },
            "acceptance": {
                "type": "array",
                "items": {"type": "object"},
                "description": "Calls by another reading of the task.",
            },
            "api": {
                "type": "object",
                "description": "Quoted from documentation.",
            },
            "why": {
                "type": "string",
                "maxLength": 4000,
            },
            "decline": {
                "type": "string",
                "maxLength": 4000,
                "description": "Alone: why not; ends the job.",
            },
            "document": {
                "type": "string",
                "maxLength": 2_000_000,
                "description": "OpenAPI 3.1 or what the brief says.",
            },
            **_WORDS,
        },
        ("job",),
        read_only=False,
    ),
    _build_tool(
        "status",
        "Show what goes on",
        "What goes on; a job, call or approval, up to `wait` seconds until it changes; of a "
        "`session` what was done and why, or the part of its kept `result`.",
        {
            "job": {"type": "string", "maxLength": 64},
            "call": {"type": "string", "maxLength": 64},
            "approval": {"type": "string", "maxLength": 64},
            "brief": {
                "type": "string",
                "maxLength": 9,
                "enum": ["compute", "http", "composite"],
            },
            "result": {"type": "string", "maxLength": 20},
            "path": {"type": "string", "maxLength": 1000},
            "offset": {"type": "integer", "minimum": 0},
            "wait": {"type": "number", "minimum": 0, "maximum": 25, "default": 0},
            "session": _WORDS["session"],
        },
        (),
        read_only=True,
    ),
)
