"""What a person looks for an operation under: a tag of the document, or the path's first part."""

from __future__ import annotations

import re
from collections import Counter

from forge.naming import snake
from forge.prose import shorten
from sandbox.apispec import APISpec, Operation

MAX_GROUP = 40
_VERSION = re.compile(r"v\d+(\.\d+)*|\d+(\.\d+)*|api|rest", re.IGNORECASE)


def groups(api: APISpec) -> dict[str, str]:
    """The group of each operation by id. Operations without a tag go by their path."""
    depth = _depth(api)
    return {
        o.id: shorten(o.tags[0] if o.tags else _by_path(o, depth), MAX_GROUP)
        for o in api.operations
    }


def _depth(api: APISpec) -> int:
    """How many fixed parts the paths of untagged operations begin with in common."""
    paths = [_parts(operation) for operation in api.operations if not operation.tags]
    depth = 0
    while len(paths) > 1 and all(len(path) > depth + 1 for path in paths):
        if len(Counter(path[depth] for path in paths)) > 1:
            break
        depth += 1
    return depth


def _by_path(operation: Operation, depth: int) -> str:
    parts = _parts(operation)
    return snake(parts[min(depth, len(parts) - 1)]) if parts else ""


def _parts(operation: Operation) -> list[str]:
    parts = [p for p in operation.path.split("/") if p and "{" not in p]
    return [p for p in parts if not _VERSION.fullmatch(p)] or parts
