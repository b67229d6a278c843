"""Which GraphQL document a request carries (https://graphql.github.io/graphql-over-http)."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

MAX_DOCUMENT = 64 * 1024
_OPERATION = re.compile(r"\s*(query|mutation)\b[^{}]*\{")
_PLAIN = re.compile(r"[\w\s(){}\[\]:$!,.=|@-]*\Z", re.ASCII)
_MEMBERS = frozenset({"query", "variables"})

Kind = Literal["query", "mutation"]


def kind_of(document: str) -> Kind | None:
    """What a document of one operation does; None for any other, and for one with texts or comments
    in it, in which a second operation could hide.
    """
    if len(document) > MAX_DOCUMENT or not _PLAIN.match(document):
        return None
    head = _OPERATION.match(document)
    if head is None or _end(document, head.end()) != len(document.rstrip()):
        return None
    return "mutation" if head[1] == "mutation" else "query"


def _end(document: str, start: int) -> int:
    """Where the brace that was opened just before `start` is closed; -1 where it is not."""
    depth = 1
    for at in range(start, len(document)):
        depth += {"{": 1, "}": -1}.get(document[at], 0)
        if not depth:
            return at + 1
    return -1


def carried(body: bytes) -> str | None:
    """The document of a request's JSON body; None where there is not just one, or the body says
    more than which document and with which variables.
    """
    try:
        given = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not given.keys() <= _MEMBERS:
        return None
    document = given.get("query")
    return document if isinstance(document, str) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: two readers could take another of two."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made
