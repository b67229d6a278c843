"""Drafts: a server's code, tools and cases as an author wrote them, parsed and not yet proved."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from forge.drafts.calls import CALL, split_call
from forge.drafts.inherit import inherit_code
from forge.drafts.suite import carry_tests
from sandbox.bundle.apispec import Access
from sandbox.bundle.example import (
    FAILURES,
    MAX_EXAMPLES,
    AnswersInvalid,
    Example,
    find_code_problem,
    parse_answers,
    to_json,
)
from sandbox.bundle.model import (
    NAME,
    Bundle,
    RequestPattern,
    ToolDefinition,
    find_file_arguments,
    find_refusals_problem,
)
from sandbox.bundle.permissions import (
    CLOCK,
    RANDOM,
    build_request_pattern,
    find_place_problem,
    is_readable,
    parse_permission,
)
from sandbox.schemas.validator import SchemaViolation

MAX_CODE = 256 * 1024
MAX_TOOLS = 64
BY_FILE = "The text, or file:///PATH of a file on this machine (a person grants which)."
MAX_TESTS = 128 * 1024
MAX_PACKAGES = 16
MAX_WHY = 4_000
MAX_DESCRIPTION = 4_000
MAX_VALUE = 64 * 1024
"""The longest JSON text of one schema, or of one case."""
MAX_REQUESTS = 64
MAX_PROBLEMS = 30
MAX_KEPT_TOOLS = 2_000
"""Tools that a draft keeps as its parent has them cost it a name each."""
_FIELDS = frozenset(
    "name description title input_schema output_schema access idempotent destructive operation "
    "requests permissions calls refusals".split()
)
_NETWORK = re.compile(r"network:[a-z0-9.-]{1,253}(:\d{1,5})?\Z")
ASKED_LOCALLY = ("env", "fs")
"""The kinds of permissions that reach this machine."""
_NONE = (
    "is none of network:HOST, env:NAME, fs:/PATH:ro, call:SERVER.TOOL, tls:HOST:PORT, dns:ZONE, "
    f"tcp:HOST:PORT, {CLOCK} and {RANDOM}"
)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(==[A-Za-z0-9.!+_-]{1,50})?\Z")
_CASE = frozenset({"tool", "arguments", "result", "failure", "code", "answers"})


@dataclass(frozen=True)
class Draft:
    """The content of a future bundle. `examples` are the given ones and the parent's for kept
    tools, `tests` is the whole suite; `permissions` are all that the tools request, `packages` the
    PyPI packages that the code imports; `why` describes the change. Without code it is a
    specification. `calls` are the operations (`GET /zones/{id}`) that a tool's own code calls, by
    the tool's name; `forge.drafts.calls.resolve_calls` makes its requests of them.
    """

    source_code: str
    tools: tuple[ToolDefinition, ...]
    examples: tuple[Example, ...]
    permissions: tuple[str, ...] = ()
    why: str = ""
    tests: str = ""
    packages: tuple[str, ...] = ()
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def is_specification(self) -> bool:
        return not self.source_code

    def compute_digest(self) -> str:
        """Return the sha256 of everything but `why`, in hex, so that a resubmitted draft is
        recognized whatever its explanation.
        """
        tools = [asdict(tool) for tool in self.tools]
        cases = [to_json(example) for example in self.examples]
        parts: list[Any] = [
            self.source_code,
            tools,
            cases,
            self.permissions,
            self.tests,
            self.packages,
        ]
        if self.calls:
            parts.append({name: list(called) for name, called in self.calls.items()})
        content = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def parse_draft(
    given: Mapping[str, Any],
    parent: Bundle | None = None,
    parents_examples: Collection[Example] = (),
    earlier: str = "",
    free: Collection[str] = (),
) -> Draft | tuple[SchemaViolation, ...]:
    """Parse the draft in `submit`'s `code`, `tools`, `cases`, `tests`, `packages` and `why`, or
    return its problems, each with a JSON pointer.

    With a parent, missing fields of a tool and missing code come from the parent's tool of that
    name, and so do its examples where none is given. `earlier` are the tests of the previous draft
    or the parent; they stay, except those that are `free` to change
    (`forge.drafts.suite.carry_tests`).
    """
    problems: list[SchemaViolation] = []
    specified = "code" not in given and _is_specification(given)
    code = _parse_text(
        given.get("code", "" if parent or specified else None), "/code", MAX_CODE, problems
    )
    tests = _parse_text(given.get("tests", ""), "/tests", MAX_TESTS, problems)
    why = _parse_text(given.get("why", ""), "/why", MAX_WHY, problems)
    known = {tool.name: tool for tool in parent.tools} if parent else {}
    tools = tuple(_parse_tools(given.get("tools"), known, problems))
    examples = tuple(
        _parse_examples(given.get("cases", []), tools, _list_tool_names(given), problems)
    )
    packages = tuple(_parse_packages(given.get("packages", []), problems))
    if problems:
        return tuple(problems[:MAX_PROBLEMS])
    suite = carry_tests(tests, earlier, why, known.keys() - {tool.name for tool in tools}, free)
    if not isinstance(suite, str):
        return suite[:MAX_PROBLEMS]
    told = {example.tool for example in examples}
    names = {tool.name for tool in tools if not tool.operation}
    kept = [e for e in parents_examples if e.tool in names and e.tool not in told]
    if parent and not specified:
        code = inherit_code(code, parent.source_code, [t.name for t in tools if t.name in known])
    wanted = {p for tool in given["tools"] for p in tool.get("permissions", ())}
    granted = tuple(sorted(wanted))
    calls = {t["name"]: tuple(t["calls"]) for t in given["tools"] if t.get("calls")}
    return Draft(code, tools, (*examples, *kept), granted, why, suite, packages, calls)


def _is_specification(given: Mapping[str, Any]) -> bool:
    """Whether code is still to come: there are tests, and a tool that is new or changed."""
    tools = given.get("tools")
    new = isinstance(tools, list) and any(
        isinstance(item, dict) and item.keys() != {"name"} for item in tools
    )
    return bool(given.get("tests")) and new


def _list_tool_names(given: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of all given tools, also of invalid ones."""
    tools = given.get("tools")
    found = (t.get("name") for t in tools if isinstance(t, dict)) if isinstance(tools, list) else ()
    return frozenset(name for name in found if isinstance(name, str))


def _parse_packages(given: Any, problems: list[SchemaViolation]) -> Iterator[str]:
    if not isinstance(given, list) or len(given) > MAX_PACKAGES:
        problems.append(
            SchemaViolation("/packages", f"is not an array of at most {MAX_PACKAGES} names")
        )
        return
    for at, item in enumerate(given):
        if isinstance(item, str) and _PACKAGE.match(item):
            yield item
        else:
            problems.append(
                SchemaViolation(f"/packages/{at}", "is no NAME or NAME==VERSION of PyPI")
            )


def _parse_text(value: Any, where: str, limit: int, problems: list[SchemaViolation]) -> str:
    if not isinstance(value, str):
        problems.append(
            SchemaViolation(where, "is not a text" if value is not None else "is missing")
        )
        return ""
    if len(value) > limit:
        problems.append(SchemaViolation(where, f"is longer than {limit} characters"))
    try:
        value.encode()
    except UnicodeEncodeError:
        problems.append(SchemaViolation(where, "holds half of a surrogate pair"))
    return value


def _parse_tools(
    given: Any, known: Mapping[str, ToolDefinition], problems: list[SchemaViolation]
) -> Iterator[ToolDefinition]:
    if not isinstance(given, list) or not given:
        problems.append(SchemaViolation("/tools", "is not an array of at least one tool"))
        return
    names: set[str] = set()
    for at, item in enumerate(given[:MAX_KEPT_TOOLS]):
        where = f"/tools/{at}"
        found = list(_find_tool_problems(item, where, known))
        if isinstance(item, dict) and item.get("name") in names:
            found.append(SchemaViolation(f"{where}/name", "is the name of an earlier tool"))
        problems += found
        if not found:
            names.add(item["name"])
            yield _build_tool(item, known.get(item["name"]))
    written = sum(not isinstance(item, dict) or item.keys() != {"name"} for item in given)
    if written > MAX_TOOLS or len(given) > MAX_KEPT_TOOLS:
        problems.append(SchemaViolation("/tools", f"holds more than {MAX_TOOLS} tools"))


def _find_tool_problems(
    item: Any, where: str, known: Mapping[str, ToolDefinition]
) -> Iterator[SchemaViolation]:
    if not isinstance(item, dict):
        yield SchemaViolation(where, "is not an object")
        return
    name = item.get("name")
    if not isinstance(name, str) or not NAME.match(name):
        yield SchemaViolation(
            f"{where}/name", "is no name of lower-case letters, digits and underscores"
        )
        return
    for key in sorted(map(str, item.keys() - _FIELDS)):
        yield SchemaViolation(
            f"{where}/{key[:40]}", f"is unknown; a tool has {', '.join(sorted(_FIELDS))}"
        )
    parent = known.get(name)
    for key in ("description", "input_schema", "output_schema"):
        if key not in item and parent is None:
            yield SchemaViolation(f"{where}/{key}", "is missing")
    for key, problem in _FIELD_PROBLEMS.items():
        if key in item and (reason := problem(item[key])):
            yield SchemaViolation(f"{where}/{key}", reason)
    yield from _find_permission_problems(item.get("permissions"), f"{where}/permissions")
    requests = item.get("requests", parent.requests if parent else ()) or _list_asked_requests(item)
    requests = requests or item.get("calls")
    if item.get("access", "read") == "write" and not requests:
        yield SchemaViolation(
            f"{where}/access", "a tool without requests writes nothing: it is `read`"
        )


def _build_tool(item: Mapping[str, Any], parent: ToolDefinition | None) -> ToolDefinition:
    """Build the tool from an item that has no problems."""
    fields = {key: value for key, value in item.items() if key not in ("permissions", "calls")}
    if "requests" in fields:
        fields["requests"] = tuple(RequestPattern(**request) for request in fields["requests"])
    if asked := _list_asked_requests(item):
        own = fields.get("requests", parent.requests if parent else ())
        fields["requests"] = tuple(dict.fromkeys((*own, *asked)))
    if "input_schema" in fields:
        fields["input_schema"] = _describe_file_arguments(fields["input_schema"])
    if parent is not None:
        return replace(parent, **fields)
    return ToolDefinition(**{"access": "read", **fields})


def _list_asked_requests(item: Mapping[str, Any]) -> tuple[RequestPattern, ...]:
    """Return the requests that a tool's permissions allow it to make of the host."""
    named = item.get("permissions", ())
    listed = named if isinstance(named, list) else ()
    found = (build_request_pattern(text) for text in listed if isinstance(text, str))
    return tuple(pattern for pattern in found if pattern is not None)


def _describe_file_arguments(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Describe in the schema how a caller names a file for each argument that may be one."""
    named = find_file_arguments(schema)
    if not named:
        return schema
    parts = dict(schema["properties"])
    for name in named:
        told = str(parts[name].get("description", ""))
        if "file:///" not in told:
            parts[name] = {**parts[name], "description": f"{told} {BY_FILE}".strip()}
    return {**schema, "properties": parts}


def _parse_examples(
    given: Any,
    tools: Collection[ToolDefinition],
    named: Collection[str],
    problems: list[SchemaViolation],
) -> Iterator[Example]:
    """Parse the cases. Cases of `named` tools that are invalid themselves are skipped silently."""
    if not isinstance(given, list) or len(given) > MAX_EXAMPLES:
        problems.append(
            SchemaViolation("/cases", f"is not an array of at most {MAX_EXAMPLES} cases")
        )
        return
    known = {tool.name: tool for tool in tools}
    for at, item in enumerate(given):
        tool = item.get("tool") if isinstance(item, dict) else None
        if isinstance(tool, str) and tool in named and tool not in known:
            continue
        found = list(_find_case_problems(item, f"/cases/{at}", known))
        problems += found
        if not found:
            failure = item.get("failure")
            answers = parse_answers(item.get("answers", []))
            yield Example(
                item["tool"],
                item["arguments"],
                item.get("result"),
                failure,
                answers,
                code=item.get("code", ""),
            )


def _find_case_problems(
    item: Any, where: str, known: Mapping[str, ToolDefinition]
) -> Iterator[SchemaViolation]:
    if not isinstance(item, dict):
        yield SchemaViolation(where, "is not an object")
        return
    for key in sorted(map(str, item.keys() - _CASE)):
        yield SchemaViolation(
            f"{where}/{key[:40]}", f"is unknown; a case has {', '.join(sorted(_CASE))}"
        )
    tool = item.get("tool")
    if not isinstance(tool, str) or tool not in known:
        yield SchemaViolation(
            f"{where}/tool",
            f"names none of the draft's tools: {str(tool)[:60]!r}. To take a tool out, leave it "
            "out of `tools` and name it in `why`; its earlier cases go with it",
        )
    elif known[tool].operation:
        reason = (
            "calls an operation of its API, which is tried against a mock; leave its cases out, or "
            "write a test with toolwright.testing.answers"
        )
        yield SchemaViolation(f"{where}/tool", reason)
    if not isinstance(item.get("arguments"), dict):
        yield SchemaViolation(f"{where}/arguments", "is not an object")
    if ("result" in item) == ("failure" in item):
        yield SchemaViolation(where, "has to have either a result or a failure")
    if "failure" in item and item["failure"] not in FAILURES:
        yield SchemaViolation(f"{where}/failure", f"is none of {', '.join(FAILURES)}")
    if problem := find_code_problem(item):
        yield SchemaViolation(f"{where}/code", problem)
    try:
        parse_answers(item.get("answers", []))
    except AnswersInvalid as error:
        yield SchemaViolation(f"{where}{error.where}", error.reason)
    if too_long := _check_length(item):
        yield SchemaViolation(where, too_long)


def _check_length(value: Any) -> str:
    try:
        length = len(json.dumps(value, allow_nan=False))
    except (ValueError, TypeError, RecursionError) as error:
        return f"is no JSON: {error}"
    return f"is longer than {MAX_VALUE} characters of JSON" if length > MAX_VALUE else ""


def _check_refusals(value: Any) -> str:
    return find_refusals_problem(value) or next(filter(None, map(_check_prose, value.values())), "")


def _check_schema(value: Any) -> str:
    if not isinstance(value, dict) or value.get("type") != "object":
        return 'is no schema with "type": "object" at its root'
    return _check_length(value)


def _check_prose(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        return "is no text"
    return f"is longer than {MAX_DESCRIPTION} characters" if len(value) > MAX_DESCRIPTION else ""


def _check_requests(value: Any) -> str:
    if not isinstance(value, list) or len(value) > MAX_REQUESTS:
        return f"is not an array of at most {MAX_REQUESTS} requests"
    for item in value:
        texts = isinstance(item, dict) and item.keys() == {"method", "url"}
        if not texts or not all(isinstance(part, str) for part in item.values()):
            return "holds what is no {method, url}"
    return ""


def _check_calls(value: Any) -> str:
    if not isinstance(value, list) or len(value) > MAX_REQUESTS:
        return f"is not an array of at most {MAX_REQUESTS} operations"
    if all(isinstance(item, str) and split_call(item) for item in value):
        return ""
    return f"holds what is no {CALL}"


def _check_permission_list(value: Any) -> str:
    if isinstance(value, list) and len(value) <= MAX_REQUESTS:
        return ""
    return f"is not an array of at most {MAX_REQUESTS} permissions"


def _find_permission_problems(given: Any, where: str) -> Iterator[SchemaViolation]:
    for at, item in enumerate(given[:MAX_REQUESTS] if isinstance(given, list) else ()):
        if reason := _check_permission(item):
            yield SchemaViolation(f"{where}/{at}", reason)


def _check_permission(item: Any) -> str:
    """Return why a tool may not request this permission; "" where it may."""
    text = item if isinstance(item, str) else ""
    if text in (CLOCK, RANDOM) or _NETWORK.match(text) or build_request_pattern(text) is not None:
        return ""
    try:
        found = parse_permission(text)
    except ValueError as error:
        return f"{_NONE}: {str(error)[:200]}" if text.startswith(("fs:", "env:")) else _NONE
    # A person is shown what is asked for as words between spaces.
    if (found.kind != "env" and not is_readable(found)) or any(map(str.isspace, text)):
        return _NONE
    refused = find_place_problem(Path(found.name)) if found.kind == "fs" else ""
    return f"{text[:200]} is granted to no server: {refused}" if refused else ""


_FIELD_PROBLEMS = {
    "description": _check_prose,
    "title": _check_prose,
    "input_schema": _check_schema,
    "output_schema": _check_schema,
    "access": lambda value: "" if value in get_args(Access) else "is neither read nor write",
    "idempotent": lambda value: "" if isinstance(value, bool) else "is neither true nor false",
    "destructive": lambda value: "" if isinstance(value, bool) else "is neither true nor false",
    "operation": lambda value: "" if isinstance(value, str) else "is no operation id",
    "requests": _check_requests,
    "permissions": _check_permission_list,
    "refusals": _check_refusals,
    "calls": _check_calls,
}
