"""A service that tools ask, a good draft of a server for it, and how it may be subtly wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Answer = Mapping[str, Any]

ASK_OBJECT = '''def ask(method, template, **given):
    """The object that the API answers."""
    body = http.request(method, BASE + template, **given).body
    if not isinstance(body, dict):
        raise ToolError("the API answered no object")
    return body


'''
"""What code that asks an API directly has in common."""


@dataclass(frozen=True)
class World:
    """One call, and all that the service answers to whoever asks about it."""

    tool: str
    arguments: Mapping[str, Any]
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Variant:
    """The good code with texts replaced. `reader` says that no stage can tell it from a right
    server: only whoever reads the task again. `description` is added to the tool's own.
    """

    name: str
    changes: tuple[tuple[str, str], ...]
    reader: bool = False
    description: str = ""

    def apply(self, code: str) -> str:
        """Raises ValueError where a text is not there exactly once."""
        for old, new in self.changes:
            if code.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} stands {code.count(old)} times in the code")
            code = code.replace(old, new)
        return code


@dataclass(frozen=True)
class Service:
    """`shown` are the worlds of the draft's cases, `hidden` those of the checks that no stage sees,
    `read` those of which a second reading claims what the task says, by its quotation.
    """

    name: str
    task: str
    code: str
    tools: Sequence[Mapping[str, Any]]
    shown: Sequence[World]
    hidden: Sequence[World]
    bad: Sequence[Variant]
    read: Sequence[tuple[str, World]] = ()
    good: Sequence[Variant] = field(default_factory=tuple)


def build_schema(**properties: Any) -> dict[str, Any]:
    """An object schema; a property whose name ends in `_` is optional."""
    return {
        "type": "object",
        "properties": {name.rstrip("_"): part for name, part in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
        "additionalProperties": False,
    }


def answer_request(
    url: str, body: Any = None, status: int = 200, method: str = "GET", json: Any = None
) -> Answer:
    """What an API answers to a request, as a case has it."""
    sent = {"sent": json} if json else {}
    return {"request": f"{method} {url}", **sent, "status": status, "body": body}


def answer_call(tool: str, arguments: Mapping[str, Any], body: Any) -> Answer:
    """What a tool of another server that calls an API gives."""
    result = {"status": 200, "body": body}
    return {"tool": tool, "arguments": dict(arguments), "result": result}


def fail_call(tool: str, arguments: Mapping[str, Any], message: str) -> Answer:
    return {"tool": tool, "arguments": dict(arguments), "failure": message}
