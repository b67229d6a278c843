"""Calling tools through an MCP client: which tool is an operation's, and what its arguments are."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.types import Tool

from bench.reality.model import Answer, Arguments

_OPERATION = re.compile(r"\b(GET|PUT|POST|PATCH|DELETE|HEAD|OPTIONS) (/\S*?)[.:,]?(?=\s|$)")


class NoTool(Exception):
    """No tool of the list is the operation's."""


@dataclass(frozen=True)
class FilePart:
    """A file of a form, as a scenario names it."""

    name: str
    content: bytes
    content_type: str = "text/plain"


def find_tool(tools: Iterable[Tool], operation: str) -> Tool:
    """The tool of `METHOD /path`, which descriptions name, or of that name. Raises NoTool."""
    for tool in tools:
        if _plain(tool.name) == _plain(operation):
            return tool
        named = {" ".join(found) for found in _OPERATION.findall(tool.description or "")}
        if operation in named:
            return tool
    raise NoTool(f"no tool is {operation}")


def fit_arguments(tool: Tool, arguments: Arguments) -> dict[str, Any]:
    """The arguments under the names that the tool has for them. A body whose properties are the
    tool's own arguments is spread out; FastMCP calls a parameter of the same name `NAME__path`,
    and a body that is a list as its schema is titled.
    """
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    known = {_plain(name): name for name in properties}
    fitted: dict[str, Any] = {}
    for name, value in arguments.items():
        if name == "body" and "body" not in properties and isinstance(value, Mapping):
            fitted.update((key, _plain_file(part)) for key, part in value.items())
            continue
        if name == "body" and "body" not in properties and isinstance(value, list):
            lists = [key for key, schema in properties.items() if schema.get("type") == "array"]
            fitted.update((key, value) for key in lists if key not in arguments)
            continue
        placed = (f"{name}__{place}" for place in ("path", "query", "header"))
        own = next((each for each in placed if each in properties), name)
        fitted[own if own in properties else known.get(_plain(name), name)] = value
    return fitted


def encode_files(value: Any) -> Any:
    """Files as Toolwright takes them: base64 with a name and a type."""
    if isinstance(value, FilePart):
        return {
            "base64": base64.b64encode(value.content).decode(),
            "filename": value.name,
            "content_type": value.content_type,
        }
    if isinstance(value, Mapping):
        return {name: encode_files(part) for name, part in value.items()}
    if isinstance(value, list):
        return [encode_files(part) for part in value]
    return value


def read_answer(result: Mapping[str, Any], wrapped: bool) -> Answer:
    """The answer in a tool's result as JSON; `wrapped` where its structured content is Toolwright's
    `{"status", "headers", "body"}`.
    """
    texts, data, links = [], [], []
    for block in result.get("content") or ():
        if block.get("type") == "text":
            texts.append(block["text"])
        elif block.get("type") in ("image", "audio"):
            data.append(base64.b64decode(block["data"]))
        elif block.get("type") == "resource":
            inner = block["resource"]
            if "blob" in inner:
                data.append(base64.b64decode(inner["blob"]))
            else:
                texts.append(inner.get("text", ""))
        elif block.get("type") == "resource_link":
            links.append(str(block.get("uri", "")))
    text = "\n".join(texts)
    structured = result.get("structuredContent")
    if wrapped and isinstance(structured, Mapping) and "body" in structured:
        body = structured["body"]
    elif not wrapped and isinstance(structured, Mapping) and list(structured) == ["result"]:
        body = structured["result"]
    elif structured is not None:
        body = structured
    else:
        body = _decode(texts)
    return Answer(body, text, bool(result.get("isError")), tuple(data), tuple(links))


def _decode(texts: list[str]) -> Any:
    """The first text that is JSON, decoded: notes stand beside it; else the whole text."""
    for text in texts:
        try:
            return json.loads(text)
        except ValueError:
            continue
    return "\n".join(texts)


def _plain(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "", name.lower())


def _plain_file(value: Any) -> Any:
    return value.content.decode("latin-1") if isinstance(value, FilePart) else value
