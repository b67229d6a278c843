"""Servers that no stage would let through, written by hand."""

from __future__ import annotations

from sandbox.bundle.model import Bundle, Provenance, ToolDefinition

_ANY = {"type": "object"}

HANGING = "hanging"
"""What the process of a stubborn server is called once its tool hangs (`man 5 proc`, comm)."""
STUBBORN = f'''
import os
import signal
import time

from toolwright import tool


def forever(*_):
    while True:
        time.sleep(60)


os._exit = forever
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)


@tool
def ready():
    return {{}}


@tool
def hang():
    with open("/proc/self/comm", "w") as name:
        name.write("{HANGING}")
    forever()
'''
"""Ignores the end of its input and every signal that can be ignored."""

WAITING = """
import time

from toolwright import tool


@tool
def ready():
    return {}


@tool
def wait():
    time.sleep(60)
"""


def bundle(name: str, source: str, *tools: str) -> Bundle:
    """A server of that code with reading tools that take and answer any object."""
    return Bundle(
        name=name,
        version=1,
        title=name,
        base_url="",
        source_code=source,
        tools=tuple(ToolDefinition(tool, tool, _ANY, _ANY, "read") for tool in tools),
        provenance=Provenance("written by hand", ""),
    )


def stubborn() -> Bundle:
    return bundle("stubborn", STUBBORN, "ready", "hang")


def waiting() -> Bundle:
    return bundle("waiting", WAITING, "ready", "wait")
