"""Definitions of the seven tools that Toolwright offers its clients, in a fixed order."""

from __future__ import annotations

from typing import Any

_WORDS = {
    "task": {
        "type": "string",
        "maxLength": 4000,
        "description": "What the user wants, in the user's words. Kept in the audit log.",
    },
    "reason": {
        "type": "string",
        "maxLength": 4000,
        "description": "Why you make this call. Kept in the audit log and shown to approvers.",
    },
    "session": {
        "type": "string",
        "maxLength": 200,
        "description": "Any id that ties the calls of one conversation together.",
    },
}
_TOOL = {
    "type": "string",
    "maxLength": 100,
    "description": "The tool as `server.tool`, as `find` names it.",
}
_SERVER = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"}
_ARGUMENTS = {"type": "object", "description": "The tool's arguments, by its inputSchema."}


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
            "idempotentHint": read_only,
            "openWorldHint": True,
        },
    }


TOOLS = (
    _build_tool(
        "find",
        "Find tools",
        "Find the registered tools that fit a task, best first, each with its schema, trust and "
        "whether it reads or writes. Call this first. If none fits, call `forge`.",
        {
            "task": _WORDS["task"],
            "k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
        },
        ("task",),
        read_only=True,
    ),
    _build_tool(
        "call_read",
        "Call a reading tool",
        "Call a registered tool that only reads. A tool that writes is refused here: use "
        "`call_write`. A call that takes longer than 25 s answers with a handle for `status`.",
        {"tool": _TOOL, "arguments": _ARGUMENTS, **_WORDS},
        ("tool",),
        read_only=True,
    ),
    _build_tool(
        "call_write",
        "Call a writing tool",
        "Call a registered tool that writes. Unless the tool has earned an exemption, nothing is "
        "sent: a person is shown the exact request, and you get an approval id to ask `status` "
        "about. Tell the user what waits for them.",
        {"tool": _TOOL, "arguments": _ARGUMENTS, **_WORDS},
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
        },
        (),
        read_only=False,
        destructive=True,
    ),
    _build_tool(
        "forge",
        "Forge a server",
        "Make a new server, prove it in a sandbox and register it: from an API's machine-readable "
        "description, or, for what only computes and for changes to a server, from code that you "
        "write: the job then waits with a brief. Answers at once with a job; follow it with "
        "`status`. New hosts and credentials wait for a person.",
        {
            "source": {
                "type": "string",
                "maxLength": 2000,
                "description": "Path or URL of an OpenAPI document or of documentation, or the "
                "host of the API; `none` where no API is needed.",
            },
            "parent": {
                **_SERVER,
                "description": "A registered server that your code is to change.",
            },
            "name": {
                **_SERVER,
                "description": "A name for the server; the parent's own for its next version.",
            },
            "base_url": {
                "type": "string",
                "maxLength": 2000,
                "description": "Replaces the server that the document names.",
            },
            "author": {
                "type": "string",
                "maxLength": 8,
                "enum": ["client", "openai", "sampling", "none"],
                "description": "Who writes code where it is needed: `client` is you, by `submit`; "
                "by default the endpoint that the user configured, else you.",
            },
            **_WORDS,
        },
        ("task",),
        read_only=False,
    ),
    _build_tool(
        "submit",
        "Submit for a job",
        "Hand in what a forge job asked for: the tests, code, tools and cases that its brief "
        "describes, or as `document` an API description (OpenAPI, JSON or YAML) that you wrote "
        "from the API's documentation. It goes through every stage like any other; `status` says "
        "what is wrong.",
        {
            "job": {"type": "string", "maxLength": 64},
            "code": {
                "type": "string",
                "maxLength": 262_144,
                "description": "The server.py.",
            },
            "tools": {
                "type": "array",
                "items": {"type": "object"},
                "description": "[{name, description, input_schema, output_schema}]",
            },
            "cases": {
                "type": "array",
                "items": {"type": "object"},
                "description": "[{tool, arguments, result}] or with failure instead of result.",
            },
            "tests": {
                "type": "string",
                "maxLength": 131_072,
                "description": "A pytest suite; without code it is kept and the code awaited.",
            },
            "packages": {
                "type": "array",
                "items": {"type": "string", "maxLength": 200},
                "maxItems": 16,
                "description": "NAME or NAME==VERSION of PyPI; a person has to allow them.",
            },
            "acceptance": {
                "type": "array",
                "items": {"type": "object"},
                "description": "What another reading of the task says of single calls.",
            },
            "why": {
                "type": "string",
                "maxLength": 4000,
                "description": "What this draft does, or changes.",
            },
            "decline": {
                "type": "string",
                "maxLength": 4000,
                "description": "Alone: why the task is not to be done. It ends the job.",
            },
            "document": {
                "type": "string",
                "maxLength": 2_000_000,
                "description": "An OpenAPI 3.1 document, or what the brief's schema "
                "asks for, instead of code.",
            },
            **_WORDS,
        },
        ("job",),
        read_only=False,
    ),
    _build_tool(
        "status",
        "Show what goes on",
        "Show jobs, waiting approvals, running calls and whether Toolwright is frozen; or one job, "
        "call or approval, waiting up to `wait` seconds for it to change.",
        {
            "job": {"type": "string", "maxLength": 64},
            "call": {"type": "string", "maxLength": 64},
            "approval": {"type": "string", "maxLength": 64},
            "wait": {"type": "number", "minimum": 0, "maximum": 25, "default": 0},
            "session": _WORDS["session"],
        },
        (),
        read_only=True,
    ),
)

INSTRUCTIONS = (
    "Toolwright routes tasks to registered MCP servers and forges new ones. Use `find` for a task; "
    "call what it finds with `call_read` or `call_write`. If nothing fits, `forge` with the API's "
    "URL, or without one what only computes, then follow the job with `status`. Writes wait for a "
    "person's approval outside this conversation: you cannot give it. Never ask the user for a PIN "
    "or secret here."
)
