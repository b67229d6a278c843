"""The tags of an operation; in 3.2 they have parents and kinds."""

from __future__ import annotations

from collections.abc import Mapping

from forge.openapi.references import Node
from forge.prose import visible

MAX_TAGS = 16
MAX_PARENTS = 4
_NOT_FOR_FINDING = frozenset({"audience", "badge"})
"""Kinds of tag that say something else than where an operation belongs."""


def declared(root: Node) -> dict[str, Node]:
    """The document's own list of tags, by name."""
    return {_text(tag, "name"): tag for tag in root.get("tags").elements()}


def of(operation: Node, known: Mapping[str, Node]) -> tuple[str, ...]:
    """The tags that an operation bears, those that say where it belongs first; before them the
    first one's whole line where it has parents: `Animals / Pets`. `known` are the declared tags.

    https://spec.openapis.org/oas/v3.2.0.html#tag-object
    """
    bears = [visible(tag.value, 60) for tag in operation.get("tags").elements()[:MAX_TAGS]]
    names = list(dict.fromkeys(filter(None, bears)))
    names.sort(key=lambda name: _text(known.get(name), "kind") in _NOT_FOR_FINDING)
    line = _line(names[0], known) if names else []
    return (" / ".join(line), *names) if len(line) > 1 else tuple(names)


def _line(name: str, known: Mapping[str, Node]) -> list[str]:
    line = [name]
    while len(line) <= MAX_PARENTS:
        parent = _text(known.get(line[0]), "parent")
        if not parent or parent in line or parent not in known:
            break
        line.insert(0, parent)
    return line


def _text(tag: Node | None, key: str) -> str:
    return visible(tag.get(key).value, 60) if tag is not None else ""
