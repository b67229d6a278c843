"""Texts of tool definitions that give a model orders, which descriptions have no business doing.

They catch what is written plainly. A text that was made to pass them will: what a tool may do is
decided by the gate and the cage, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.bundle import Bundle
from sandbox.instructions import BEFORE_CALLS, IGNORING, ROLE, SECRETS

MAX_TEXT = 100_000
_WORDS = re.IGNORECASE | re.DOTALL
_ORDERS = {
    "pretends to be markup that a model obeys": re.compile(
        r"<\s*/?\s*(?:important|system|secret|hidden|instructions?|assistant|admin)\s*>", _WORDS
    ),
    "tells a model to ignore what it was told": re.compile(
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|other|all|"
        r"any|system|user'?s?)\b.{0,40}\b(?:instructions?|rules|prompts?|messages?|guidelines|"
        r"directions)\b",
        _WORDS,
    ),
    "tells a model to keep something from the user": re.compile(
        r"\b(?:do not|don't|never|must not|without)\s+(?:ever\s+)?(?:tell|mention|inform|"
        r"notify|reveal|alert|ask)(?:ing)?\b"
        r".{0,60}\b(?:user|human|operator)\b",
        _WORDS,
    ),
    "gives orders about other tools": re.compile(
        r"\b(?:before|after|when(?:ever)?|instead of)\s+(?:you\s+)?(?:using|calling|use|call)"
        r"\s+(?:this|any|every|all|other|another|the other)\b.{0,80}\b(?:must|always|first|also)\b",
        _WORDS,
    ),
    "asks for secrets or for the conversation": re.compile(
        r"\b(?:read|open|send|include|attach|pass|copy|provide|append|cat|put|paste)\b.{0,80}"
        r"(?:~/\.|\.ssh\b|\bid_(?:rsa|ed25519)\b|\.aws/|\bmcp\.json|\.cursor/|/etc/passwd"
        r"|\bsystem prompt|\b(?:conversation|chat) history|\bprevious messages)",
        _WORDS,
    ),
    "pretends to be a turn of the conversation": ROLE,
    "tells a model to do otherwise than it was told": IGNORING,
    "gives orders for every call": BEFORE_CALLS,
    "asks for a secret of whoever calls": SECRETS,
    "holds encoded text that nobody reads": re.compile(r"[A-Za-z0-9+/_-]{400,}={0,2}"),
    "holds an image, which sends what it is asked for": re.compile(r"!\[[^\]]*\]\(\s*\w+:"),
}


def orders_in(text: str) -> str:
    """What is wrong with a text that a model reads; "" where nothing is."""
    for told, pattern in _ORDERS.items():
        found = pattern.search(text[:MAX_TEXT])
        if found:
            return f"it {told}: {' '.join(found[0].split())[:120]!r}"
    return ""


def orders(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """A tool's definition gives a model orders."""
    for tool in bundle.tools:
        for where, text in (
            ("title", tool.title),
            ("description", tool.description),
            *(("input_schema" + place, text) for place, text in _texts(tool.input_schema)),
            *(("output_schema" + place, text) for place, text in _texts(tool.output_schema)),
        ):
            problem = orders_in(text)
            if problem:
                yield f"{tool.name}/{where}", problem


def _texts(schema: Any) -> Iterator[tuple[str, str]]:
    """Every text of a schema, names and values: a model reads all of it."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        where, node = pending.pop()
        if isinstance(node, str):
            yield where, node
        elif isinstance(node, Mapping):
            for key, value in node.items():
                yield f"{where}/{key}"[:200], key
                pending.append((f"{where}/{key}"[:200], value))
        elif isinstance(node, list):
            pending += [(f"{where}/{at}", item) for at, item in enumerate(node)]
