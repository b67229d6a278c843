"""The bundle that a runtime serves: its manifest, its tools and their code."""

from __future__ import annotations

import json
import os
import sys

from .byreference import marked
from .errors import LoadError
from .results import SOURCE, line_of
from .schema import Schema
from .values import UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType
    from typing import Any

MAX_MESSAGE = 2000
_VAR_KEYWORDS = 0x08
_NOT_PLAIN = 0x20 | 0x80 | 0x200
_TOOL_KEYS = (
    ("name", str),
    ("description", str),
    ("input_schema", dict),
    ("output_schema", dict),
    ("access", str),
)


class Tool:
    """A tool of `tools.json` with its function. `defaults` fills arguments that were not given,
    `files` are those that may name a file of the host. Arguments are checked against
    `accepted_schema`.
    """

    def __init__(self, definition: dict[str, Any], function: Callable[..., Any]) -> None:
        self.definition, self.function = definition, function
        code: CodeType = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.parameters = frozenset(code.co_varnames[code.co_posonlyargcount : count])
        self.takes_any = bool(code.co_flags & _VAR_KEYWORDS)
        own = len(getattr(function, "__defaults__", None) or ())
        optional = {*code.co_varnames[code.co_argcount - own : code.co_argcount]}
        optional.update(getattr(function, "__kwdefaults__", None) or ())
        self.defaults = dict.fromkeys(self.parameters - optional, UNSET)
        self.files = marked(definition["input_schema"])
        self.accepted_schema = Schema(definition.get("accepted_schema", definition["input_schema"]))
        self.output_schema = Schema(definition["output_schema"])

    def listed(self, base_url: str) -> dict[str, Any]:
        """The tool as `tools/list` shows it; `path` as the document has it."""
        given = self.definition
        meta = {"access": given["access"]}
        if given.get("operation"):
            meta["operation"] = given["operation"]
        if given.get("group"):
            meta["group"] = given["group"]
        requests = given.get("requests") or ()
        if requests:
            meta["method"] = requests[0]["method"]
            meta["path"] = given.get("path") or _relative(requests[0]["url"], base_url)
        return {
            "name": given["name"],
            "title": given.get("title") or given["name"],
            "description": given["description"],
            "inputSchema": given["input_schema"],
            "outputSchema": given["output_schema"],
            "annotations": {
                "readOnlyHint": given["access"] == "read",
                "destructiveHint": bool(given.get("destructive")),
                "idempotentHint": bool(given.get("idempotent")),
                "openWorldHint": bool(requests),
            },
            "_meta": {"toolwright": meta},
        }


class Bundle:
    """A loaded bundle."""

    def __init__(self, manifest: dict[str, Any], tools: dict[str, Tool]) -> None:
        self.manifest, self.tools = manifest, tools
        self.name = str(manifest.get("name") or "toolwright")
        self.base_url = str(manifest.get("base_url") or "")
        self.listed = [tool.listed(self.base_url) for tool in tools.values()]


def load(params: Mapping[str, Any]) -> Bundle:
    """Compile and run `server.py`, and match its tools. Raises LoadError, at most 2 kB long."""
    manifest, source = params.get("manifest"), params.get("source")
    definitions = _definitions(params.get("tools"))
    if not isinstance(manifest, dict) or not isinstance(source, str):
        raise LoadError("a bundle has a manifest and a source")
    functions = _functions(source)
    missing = [name for name in definitions if name not in functions]
    unknown = [name for name in functions if name not in definitions]
    if missing:
        raise LoadError(f"{SOURCE} has no @tool {', '.join(missing)}"[:MAX_MESSAGE])
    if unknown:
        lines = ", ".join(f"{n} (line {functions[n].__code__.co_firstlineno})" for n in unknown)
        raise LoadError(f"tools.json does not describe the @tool {lines}"[:MAX_MESSAGE])
    tools = {name: Tool(given, functions[name]) for name, given in definitions.items()}
    return Bundle(manifest, tools)


def read(directory: str) -> dict[str, Any] | None:
    """What `load` takes, from a directory of an exported image; None where no manifest is there.

    Raises LoadError where a file cannot be read.
    """
    if not os.path.exists(os.path.join(directory, "manifest.json")):
        return None
    try:
        tools = json.loads(_text(directory, "tools.json"))
        return {
            "manifest": json.loads(_text(directory, "manifest.json")),
            "tools": tools.get("tools") if isinstance(tools, dict) else tools,
            "source": _text(directory, "server.py"),
        }
    except (OSError, ValueError, RecursionError) as error:
        raise LoadError(f"{directory}: {error}"[:MAX_MESSAGE]) from error


def _text(directory: str, name: str) -> str:
    with open(os.path.join(directory, name), encoding="utf-8") as file:
        return file.read()


def _definitions(tools: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(tools, list):
        raise LoadError("tools is not an array")
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise LoadError(f"tools[{index}] is not an object")
        for key, kind in _TOOL_KEYS:
            if not isinstance(tool.get(key), kind):
                raise LoadError(f"tools[{index}] has no {key} of type {kind.__name__}")
        if not all(map(_is_pattern, tool.get("requests") or ())):
            raise LoadError(f"tools[{index}] has a request without method and url")
    return {tool["name"]: tool for tool in tools}


def _is_pattern(request: Any) -> bool:
    return isinstance(request, dict) and all(
        isinstance(request.get(key), str) for key in ("method", "url")
    )


def _functions(source: str) -> dict[str, Callable[..., Any]]:
    module = type(sys)("server")
    module.__file__ = SOURCE
    sys.modules[module.__name__] = module  # Data classes look theirs up.
    try:
        code = compile(source, SOURCE, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # nosec B102 # what the cage is for
    # Loading runs a stranger's code, which may raise anything, also SystemExit.
    except BaseException as error:
        raise LoadError(_located(error)) from error
    tools = [x for x in vars(module).values() if getattr(x, "toolwright_tool", None) is True]
    for function in tools:
        if not hasattr(function, "__code__") or function.__code__.co_flags & _NOT_PLAIN:
            name = str(getattr(function, "__name__", function))
            raise LoadError(f"{SOURCE}: @tool {name} is not a plain function"[:MAX_MESSAGE])
    return {function.__name__: function for function in tools}


def _located(error: BaseException) -> str:
    line = error.lineno if isinstance(error, SyntaxError) else line_of(error.__traceback__)
    reason = error.msg if isinstance(error, SyntaxError) else error
    try:
        message = f"{type(error).__name__}: {reason}"
    except BaseException:  # An exception's own __str__ is a stranger's code too.
        message = type(error).__name__
    return f"{SOURCE} line {line or '?'}: {message}"[:MAX_MESSAGE]


def _relative(url: str, base_url: str) -> str:
    base = base_url.rstrip("/")
    if base and url.startswith(base + "/"):
        return url[len(base) :]
    return "/" + url.partition("://")[2].partition("/")[2]
