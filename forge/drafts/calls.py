"""Operations that a tool's own code calls: `calls` of a draft's tool become its requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.example import Example, ExampleAnswer
from sandbox.bundle.model import RequestPattern, ToolDefinition
from sandbox.bundle.verbs import is_creation
from sandbox.schemas.validator import SchemaViolation
from sandbox.wire.policy import SAFE_METHODS

if TYPE_CHECKING:
    from forge.drafts.draft import Draft

CALL = "METHOD /path of an operation, such as GET /zones/{id}"
_CALL = re.compile(r"(GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS) (/[^\s?#]{0,400})\Z")
_SLOT = re.compile(r"\{[^{}/]*\}|:[A-Za-z_][A-Za-z0-9_]*(?=/|\Z)|<[^<>/]*>")
MAX_LISTED = 20


def split_call(text: str) -> tuple[str, str] | None:
    """The method and the path; None where a text is no call."""
    found = _CALL.match(text)
    return (found[1], found[2]) if found else None


def resolve_calls(
    draft: Draft, spec: APISpec | None, base_url: str
) -> Draft | tuple[SchemaViolation, ...]:
    """The draft with the requests, the access and the credentials of each tool's `calls`, and with
    the whole URLs of the requests that its cases answer; or what is wrong with them. `spec` is the
    API's document, None where there is none.
    """
    problems: list[SchemaViolation] = []
    tools = []
    for at, tool in enumerate(draft.tools):
        names = draft.calls.get(tool.name, ())
        if not names:
            tools.append(tool)
            continue
        found = _find_operations(names, spec, f"/tools/{at}/calls", problems)
        if tool.operation:
            reason = "a tool is one operation, or calls several with code of its own"
            problems.append(SchemaViolation(f"/tools/{at}/calls", reason))
        tools.append(_apply_calls(tool, found, f"/tools/{at}", problems))
    examples = tuple(_complete_example(each, base_url) for each in draft.examples)
    if problems:
        return tuple(problems)
    return replace(draft, tools=tuple(tools), examples=examples)


def _find_operations(
    names: Sequence[str], spec: APISpec | None, where: str, problems: list[SchemaViolation]
) -> tuple[Operation, ...]:
    operations = spec.operations if spec else ()
    known = {
        _name_call(o.method, path): o for o in operations for path in (o.path, o.written) if path
    }
    found = []
    for at, name in enumerate(names):
        method, path = split_call(name) or ("", "")
        operation = known.get(_name_call(method, path))
        if operation is not None:
            found.append(operation)
            continue
        listed = ", ".join(f"{o.method.upper()} {o.path}" for o in operations[:MAX_LISTED])
        reason = f"is no operation of the API, which has {listed or 'none'}"
        if spec is None:
            reason = "there is no API: give `api`, or a parent that has one"
        problems.append(SchemaViolation(f"{where}/{at}", reason))
    return tuple(found)


def _name_call(method: str, path: str) -> tuple[str, str]:
    return method.upper(), _SLOT.sub("{}", path)


def _apply_calls(
    tool: ToolDefinition,
    operations: Sequence[Operation],
    where: str,
    problems: list[SchemaViolation],
) -> ToolDefinition:
    own = tuple(RequestPattern(o.method.upper(), o.url, o.document) for o in operations)
    writes = any(o.access == "write" or o.method.upper() not in SAFE_METHODS for o in operations)
    asked = {frozenset(map(frozenset, o.security)) for o in operations}
    if len(asked) > 1:
        reason = "its operations want different credentials: make a tool of each"
        problems.append(SchemaViolation(f"{where}/calls", reason))
    changes = (o for o in operations if o.access == "write")
    removes = any(not is_creation(o.method.upper(), o.id, o.summary) for o in changes)
    return replace(
        tool,
        requests=tuple(dict.fromkeys((*tool.requests, *own))),
        access="write" if writes else tool.access,
        destructive=tool.destructive or removes,
        security=operations[0].security if operations else (),
    )


def _complete_example(example: Example, base_url: str) -> Example:
    return replace(example, answers=tuple(_complete(a, base_url) for a in example.answers))


def _complete(answer: ExampleAnswer, base_url: str) -> ExampleAnswer:
    method, _, url = answer.tool.partition(" ")
    if not answer.is_http or "://" in url:
        return answer
    return replace(answer, tool=f"{method} {base_url.rstrip('/')}{url}")
