"""GraphQL documents in request bodies (https://graphql.github.io/graphql-over-http)."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from sandbox.wire.exchange import WireRequest

MAX_DOCUMENT = 64 * 1024
_OPERATION = re.compile(r"\s*(query|mutation)\b[^{}]*\{")
_PLAIN = re.compile(r"[\w\s(){}\[\]:$!,.=|@-]*\Z", re.ASCII)
_MEMBERS = frozenset({"query", "variables"})
_JSON = re.compile(r'application/json(?: *; *charset=(?:utf-8|"utf-8"))?\Z', re.IGNORECASE)

Kind = Literal["query", "mutation"]


def classify_document(document: str) -> Kind | None:
    """The kind of a document with one operation; None for any other, and for a document with string
    literals or comments, in which a second operation could hide.
    """
    if len(document) > MAX_DOCUMENT or not _PLAIN.match(document):
        return None
    head = _OPERATION.match(document)
    if head is None or _find_end(document, head.end()) != len(document.rstrip()):
        return None
    return "mutation" if head[1] == "mutation" else "query"


def _find_end(document: str, start: int) -> int:
    """The position behind the brace that closes the one opened before `start`; -1 if none does."""
    depth = 1
    for at in range(start, len(document)):
        depth += {"{": 1, "}": -1}.get(document[at], 0)
        if not depth:
            return at + 1
    return -1


def extract_document(body: bytes) -> str | None:
    """The document of a request's JSON body; None if parsers could read the body in two ways, or it
    has members other than `query` and `variables`.
    """
    try:
        given = json.loads(
            body.decode(), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not given.keys() <= _MEMBERS:
        return None
    document = given.get("query")
    variables = given.get("variables", {})
    return document if isinstance(document, str) and isinstance(variables, dict) else None


def is_plain_request(request: WireRequest) -> bool:
    """Whether a request is a POST whose document stands in its JSON body and nowhere else: servers
    also take one from a query, from a form, or by the name of one that they keep.
    """
    types = [value for name, value in request.headers if name.lower() == "content-type"]
    return request.method == "POST" and len(types) == 1 and _JSON.match(types[0]) is not None


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. Raises ValueError for duplicate names, which parsers read differently."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
