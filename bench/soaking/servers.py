"""The servers of a soak: most behave; one in ten ignores SIGTERM, one crashes, one floods."""

from __future__ import annotations

from typing import Literal

from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition

Kind = Literal["plain", "stubborn", "crashing", "flooding"]
OBJECT = {"type": "object"}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MISCHIEF: dict[Kind, str] = {"stubborn": "hang", "crashing": "crash", "flooding": "flood"}
"""The tool of a server that does not behave."""

CALLING = """
from toolwright import http, tool


@tool
def get_items():
    return http.request("GET", "/items")


@tool
def add_item(n):
    return http.request("POST", "/items", json={"n": n})
"""
STUBBORN = """
import os
import signal
import time


def forever(*_):
    while True:
        time.sleep(60)


os._exit = forever
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)


@tool
def hang():
    forever()
"""
ENDLESS = """
@tool
def hang():
    while True:
        pass
"""
CRASHING = """
import os


@tool
def crash():
    os._exit(3)
"""
GREEDY = """
@tool
def crash():
    return {"size": len([0] * 10**9)}
"""
FLOODING = """
@tool
def flood():
    for _ in range(2000):
        print("x" * 1000)
    return {"text": "y" * 200000}
"""


def kind_of(number: int) -> Kind:
    kinds: dict[int, Kind] = {3: "stubborn", 5: "crashing", 7: "flooding"}
    return kinds.get(number % 10, "plain")


def bundle(number: int, url: str, engine: str) -> Bundle:
    """The server of that number, for the API at a URL."""
    kind, own = kind_of(number), engine == "wasm"
    code = {
        "plain": "",
        "stubborn": ENDLESS if own else STUBBORN,
        "crashing": GREEDY if own else CRASHING,
        "flooding": FLOODING,
    }[kind]
    read, write = RequestPattern("GET", f"{url}/items"), RequestPattern("POST", f"{url}/items")
    tools = [
        ToolDefinition("get_items", "Read.", OBJECT, OBJECT, "read", requests=(read,)),
        ToolDefinition("add_item", "Write.", NUMBER, OBJECT, "write", requests=(write,)),
    ]
    if kind in MISCHIEF:
        tools.append(ToolDefinition(MISCHIEF[kind], "Misbehave.", OBJECT, OBJECT, "read"))
    return Bundle(
        name=f"soak_{number:02}",
        version=1,
        title=f"Soak {number}",
        base_url=url,
        source_code=CALLING + code,
        tools=tuple(tools),
        provenance=Provenance("written by hand", ""),
        permissions=(f"network:{url.removeprefix('http://')}",),
    )
