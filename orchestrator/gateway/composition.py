"""Tools that call tools of other servers: their access class, and the limits on such calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.calls import split_tool_name
from orchestrator.errors import UnknownTool
from sandbox.broker.host.tools import list_calls
from sandbox.bundle.example import Example, ExampleAnswer
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.bundle.report import Finding
from sandbox.errors import BundleInvalid
from sandbox.schemas.validator import get_checker

MAX_DEPTH = 3
"""How deep calls may lie in a client's call."""

Find = Callable[[str, str], ToolDefinition]
"""A server's tool as it counts. Raises UnknownTool, BundleInvalid."""


def raise_classes(bundle: Bundle, find: Find) -> Bundle:
    """The bundle with each tool of the class of its strongest step."""
    if not any(list_calls(tool) for tool in bundle.tools):
        return bundle
    return replace(
        bundle, tools=tuple(_raise_tool(tool, bundle.name, find) for tool in bundle.tools)
    )


def find_composition_problems(bundle: Bundle, find: Find) -> tuple[Finding, ...]:
    """What is wrong with the calls that a bundle's tools declare."""
    return tuple(
        finding for tool in bundle.tools for finding in _find_problems(tool, bundle.name, find)
    )


def find_answer_problems(examples: Sequence[Example], find: Find) -> tuple[Finding, ...]:
    """What examples have a called tool be asked or answer that its schemas do not admit: such a
    case proves a call that fails when it is made.
    """
    return tuple(
        Finding("cases", f"/cases/{at}/answers/{number}", "composition", reason)
        for at, example in enumerate(examples)
        for number, answer in enumerate(example.answers)
        for reason in check_known_answer(answer, find)
    )


def check_known_answer(
    answer: ExampleAnswer, find: Find, *, is_fault: bool = False
) -> Iterator[str]:
    """What a called tool's schemas do not admit of an answer; one that `is_fault` may be any."""
    parts = None if answer.is_http else split_tool_name(answer.tool)
    called = _find_called(*parts, find) if parts else None
    if called is None:
        return  # A request, the network beside HTTP, or a tool that is told of elsewhere.
    wrong = get_checker(called.input_schema).find_problem(answer.arguments)
    if wrong:
        yield f"{answer.tool} does not take these arguments: {wrong}"
    if answer.failure or is_fault:
        return
    unlike = get_checker(called.output_schema).find_problem(answer.structured)
    if unlike:
        what = f"{unlike.where or '/'}: {unlike.reason}"
        yield f"{answer.tool} does not give this: {what}; {_describe_result(called)}"


def _describe_result(tool: ToolDefinition) -> str:
    fields = tool.output_schema.get("properties")
    named = ", ".join(list(fields)[:20]) if isinstance(fields, Mapping) and fields else "an object"
    return f"its result has {named}"


def list_inner_tools(tool: ToolDefinition, find: Find) -> tuple[str, ...]:
    """Every `server.tool` that a tool may call, and that those may, each once, in their order."""
    found: dict[str, None] = {}
    waiting = [(name, 1) for name in list_calls(tool)]
    while waiting:
        name, depth = waiting.pop(0)
        parts = split_tool_name(name)
        if name in found or parts is None or depth > MAX_DEPTH:
            continue
        found[name] = None
        called = _find_called(*parts, find)
        waiting += [(each, depth + 1) for each in list_calls(called)] if called else []
    return tuple(found)


def _raise_tool(tool: ToolDefinition, server: str, find: Find) -> ToolDefinition:
    steps = tuple(called for _, called in _list_steps(tool, server, find) if called is not None)
    if not any(step.access == "write" for step in steps):
        return tool
    destructive = tool.destructive or any(step.destructive for step in steps)
    return replace(tool, access="write", destructive=destructive)


def _find_problems(tool: ToolDefinition, server: str, find: Find) -> Iterator[Finding]:
    for name, called in _list_steps(tool, server, find):
        if name.partition(".")[0] == server:
            reason = f"{name} is of this server: call the function"
        elif called is None:
            reason = f"there is no tool {name}"
        elif called.access == "write" and tool.access == "read":
            reason = f"{name} writes, so this tool is a `write` too"
        elif _measure_depth(called, (server, name.partition(".")[0]), find) >= MAX_DEPTH:
            reason = f"calls lie more than {MAX_DEPTH} deep in each other, or come back to {server}"
        else:
            continue
        yield Finding("tools.json", f"{tool.name}/permissions", "composition", reason)


def _list_steps(
    tool: ToolDefinition, server: str, find: Find
) -> Iterator[tuple[str, ToolDefinition | None]]:
    """The tools that it calls by name, None for one that there is not."""
    for name in list_calls(tool):
        parts = split_tool_name(name)
        own = parts is None or parts[0] == server
        yield name, None if parts is None or own else _find_called(*parts, find)


def _find_called(server: str, tool: str, find: Find) -> ToolDefinition | None:
    try:
        return find(server, tool)
    except (UnknownTool, BundleInvalid):
        return None


def _measure_depth(tool: ToolDefinition, above: tuple[str, ...], find: Find) -> int:
    """How deep calls lie in a tool's; MAX_DEPTH where one comes back to a server above."""
    deepest = 0
    for name in list_calls(tool):
        server, _, called = name.partition(".")
        if server in above or len(above) > MAX_DEPTH:
            return MAX_DEPTH
        found = _find_called(server, called, find)
        if found is not None:
            deepest = max(deepest, 1 + _measure_depth(found, (*above, server), find))
    return deepest
