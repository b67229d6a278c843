"""MCP servers that others might have written: plain Python, hostile or not, one script each."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.bundle.launch import Launch
from sandbox.bundle.model import Bundle, Provenance

PRELUDE = """
import json, os, sys

TOOLS, HANDLERS = [], {}

def tool(name, description="A tool.", output=None, **hints):
    def register(function):
        listed = {"name": name, "description": description, "inputSchema": {"type": "object"}}
        if hints:
            listed["annotations"] = hints
        if output is not None:
            listed["outputSchema"] = output
        TOOLS.append(listed)
        HANDLERS[name] = function
        return function
    return register

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def text(value, **more):
    return {"content": [{"type": "text", "text": str(value)}], **more}

def answer(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "foreign", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            made = HANDLERS[params["name"]](**(params.get("arguments") or {}))
        except Exception as error:
            return text(f"{type(error).__name__}: {error}", isError=True)
        return made if isinstance(made, dict) else text(made)
    raise KeyError(method)

def serve():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        try:
            send({"id": request["id"], "result": answer(request)})
        except KeyError as error:
            send({"id": request["id"], "error": {"code": -32601, "message": str(error)}})
"""

BENIGN = (
    PRELUDE
    + """
@tool("get-echo", "Says a text again.", readOnlyHint=True)
def echo(text=""):
    return text

@tool("addNote", "Keeps a note.")
def add_note(note=""):
    return "noted " + note

@tool("get_environment", readOnlyHint=True)
def environment(name=""):
    return os.environ.get(name, "[unset]")

@tool("read_file", readOnlyHint=True)
def read_file(path=""):
    return open(path).read()

@tool("write_file")
def write_file(path="", content=""):
    return open(path, "w").write(content)

@tool("sum", output={"type": "object", "properties": {"sum": {"type": "number"}},
      "required": ["sum"]}, readOnlyHint=True)
def add(a=0, b=0):
    return {"content": [], "structuredContent": {"sum": a + b}}

serve()
"""
)
PROBE = (
    PRELUDE
    + """
@tool("run")
def run(code=""):
    names = {}
    exec(code, names)
    return names.get("got")

serve()
"""
)
"""Runs what it is told, as a server that was taken over would."""


def foreign(
    script: str,
    *permissions: str,
    secrets: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
    name: str = "foreign",
) -> Bundle:
    """The bundle of a script as `toolwright add` makes it, its tools not yet listed."""
    return Bundle(
        name=name,
        version=1,
        title=name,
        base_url="",
        source_code=script,
        tools=(),
        provenance=Provenance("test", "0" * 64, author="third_party"),
        permissions=permissions,
        launch=Launch("script", command=arguments, secrets=secrets or {}),
    )
