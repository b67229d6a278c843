"""Putting a credential's text into a request: header, query, cookie or a field of the body."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import quote, quote_plus, unquote_plus

from sandbox import exactjson
from sandbox.errors import CredentialRefused
from sandbox.exchange import Headers, WireRequest

MAX_TEXT = 64 * 1024


def put(request: WireRequest, location: str, name: str, text: str) -> WireRequest:
    """The request with the text there, in place of what the sandbox had put there itself.

    Raises CredentialRefused for a text that cannot stand there, or where there is no such body.
    """
    if location == "query":
        return in_query(request, name, text)
    if location == "cookie":
        return in_cookie(request, name, text)
    if location == "body":
        return in_body(request, name, text)
    return in_header(request, name, text)


def in_header(request: WireRequest, name: str, text: str) -> WireRequest:
    if len(text) > MAX_TEXT or any((ord(c) < 32 and c != "\t") or ord(c) == 127 for c in text):
        raise CredentialRefused(f"what goes into the header {name} has a line break; set it anew")
    return replace(request, headers=_with(request.headers, name, text))


def in_query(request: WireRequest, name: str, text: str) -> WireRequest:
    path, mark, query = request.url.partition("?")
    kept = [pair for pair in query.split("&") if mark and not _is_named(pair, name)]
    pair = f"{quote(name, safe='')}={quote(text, safe='')}"
    return replace(request, url=f"{path}?{'&'.join([*filter(None, kept), pair])}")


def in_cookie(request: WireRequest, name: str, text: str) -> WireRequest:
    earlier = request.header("Cookie") or ""
    pairs = [pair.strip() for pair in earlier.split(";") if pair.strip()]
    kept = [pair for pair in pairs if pair.partition("=")[0].strip() != name]
    value = "; ".join([*kept, f"{name}={quote(text, safe='')}"])
    return replace(request, headers=_with(request.headers, "Cookie", value))


def in_body(request: WireRequest, name: str, text: str) -> WireRequest:
    """`name` is a JSON pointer (RFC 6901), or the name of a form field."""
    kind = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and not name.startswith("/"):
        pairs = [pair for pair in request.body.split(b"&") if pair]
        kept = [pair for pair in pairs if not _is_named(pair.decode("utf-8", "replace"), name)]
        own = f"{quote_plus(name)}={quote_plus(text)}".encode()
        return replace(request, body=b"&".join([*kept, own]))
    if name.startswith("/") and (kind == "application/json" or kind.endswith("+json")):
        return replace(request, body=_in_json(request.body, name, text))
    raise CredentialRefused(f"the request has no body with a place {name} for the credential")


def _in_json(body: bytes, pointer: str, text: str) -> bytes:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
    try:
        root = exactjson.loads(body)
    except (ValueError, RecursionError) as error:
        raise CredentialRefused(f"the body is not JSON, so nothing goes to {pointer}") from error
    at = root
    for step in steps[:-1]:
        if isinstance(at, dict):
            at = at.setdefault(step, {})
    if not isinstance(at, dict):
        raise CredentialRefused(f"the body has no place {pointer} for the credential")
    at[steps[-1]] = text
    try:
        return exactjson.dumps(root)
    except (ValueError, TypeError):
        return json.dumps(root, ensure_ascii=False).encode()


def _is_named(pair: str, name: str) -> bool:
    return unquote_plus(pair.partition("=")[0]) == name


def _with(headers: Headers, name: str, value: str) -> Headers:
    kept = tuple((key, old) for key, old in headers if key.lower() != name.lower())
    return (*kept, (name, value))
