"""Placement of a credential's text in a request: header, query, cookie or body field."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import quote, quote_plus, unquote_plus

from sandbox import exactjson
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import Headers, WireRequest

MAX_TEXT = 64 * 1024


def place_credential(request: WireRequest, location: str, name: str, text: str) -> WireRequest:
    """The request with the text at that location, replacing what the sandbox put there.

    Raises CredentialRefused for a text that is not allowed there, or a body of another type.
    """
    if location == "query":
        return set_query_parameter(request, name, text)
    if location == "cookie":
        return set_cookie(request, name, text)
    if location == "body":
        return set_body_field(request, name, text)
    return set_header(request, name, text)


def set_header(request: WireRequest, name: str, text: str) -> WireRequest:
    if len(text) > MAX_TEXT or any((ord(c) < 32 and c != "\t") or ord(c) == 127 for c in text):
        raise CredentialRefused(f"what goes into the header {name} has a line break; set it anew")
    return replace(request, headers=_replace_header(request.headers, name, text))


def set_query_parameter(request: WireRequest, name: str, text: str) -> WireRequest:
    path, mark, query = request.url.partition("?")
    kept = [pair for pair in query.split("&") if mark and not _is_named(pair, name)]
    pair = f"{quote(name, safe='')}={quote(text, safe='')}"
    return replace(request, url=f"{path}?{'&'.join([*filter(None, kept), pair])}")


def set_cookie(request: WireRequest, name: str, text: str) -> WireRequest:
    earlier = request.get_header("Cookie") or ""
    pairs = [pair.strip() for pair in earlier.split(";") if pair.strip()]
    kept = [pair for pair in pairs if pair.partition("=")[0].strip() != name]
    value = "; ".join([*kept, f"{name}={quote(text, safe='')}"])
    return replace(request, headers=_replace_header(request.headers, "Cookie", value))


def set_body_field(request: WireRequest, name: str, text: str) -> WireRequest:
    """The request with the text in its body: at a JSON pointer (RFC 6901), or in a form field."""
    kind = (request.get_header("Content-Type") or "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and not name.startswith("/"):
        pairs = [pair for pair in request.body.split(b"&") if pair]
        kept = [pair for pair in pairs if not _is_named(pair.decode("utf-8", "replace"), name)]
        own = f"{quote_plus(name)}={quote_plus(text)}".encode()
        return replace(request, body=b"&".join([*kept, own]))
    if name.startswith("/") and (kind == "application/json" or kind.endswith("+json")):
        return replace(request, body=_set_json_member(request.body, name, text))
    raise CredentialRefused(f"the request has no body with a place {name} for the credential")


def _set_json_member(body: bytes, pointer: str, text: str) -> bytes:
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


def _replace_header(headers: Headers, name: str, value: str) -> Headers:
    kept = tuple((key, old) for key, old in headers if key.lower() != name.lower())
    return (*kept, (name, value))
