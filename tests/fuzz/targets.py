"""What is fuzzed: functions of bytes that hold whatever strangers send to a promise.

Each takes any input and returns, or raises AssertionError or an exception that its function does
not promise, which is a finding. They are deterministic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from urllib.parse import unquote, urlsplit

import dns.message
import httpx
from urllib3.util import parse_url

from forge.compiler.compile import compile_document
from forge.errors import ForgeError
from forge.readers.document import parse_document
from forge.readers.openapi.reader import read_openapi
from sandbox.broker.host.dns import parse_answer
from sandbox.broker.host.tls import parse_certificate
from sandbox.bundle.model import Bundle, parse_files, render_files
from sandbox.errors import BundleInvalid, SessionBroken
from sandbox.wire.canonical import find_request_problem
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.framing import LineGuard, measure_depth, parse_message
from sandbox.wire.policy import Policy, build_read_policy, build_tool_policy
from sandbox.wire.redaction import Redaction

LINE_BYTES, SESSION_BYTES, NESTING = 4_096, 65_536, 32
SECRET = "sesame-4711/Ünlocked"
_TEXT = {"schema": {"type": "string"}, "required": True}
_FINE = {"responses": {"200": {"description": "fine"}}}
DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example/v1"}],
    "paths": {
        "/items": {
            "get": {"operationId": "listItems", **_FINE},
            "post": {
                "operationId": "addItem",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                **_FINE,
            },
        },
        "/items/{item}/parts/{part}": {
            "parameters": [
                {"name": "item", "in": "path", **_TEXT},
                {"name": "part", "in": "path", **_TEXT},
            ],
            "get": {"operationId": "getPart", **_FINE},
            "delete": {"operationId": "deletePart", **_FINE},
        },
    },
}
"""One server's description; what its tools may ask for is what requests are judged by."""
Target = Callable[[bytes], None]


def split_frames(data: bytes) -> None:
    """Lines are the same in whichever chunks they come, and a message keeps to its limits."""
    size, content = (data[0] or 1, data[1:]) if data else (1, b"")
    whole = _collect_lines((content,))
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    parts = _collect_lines(chunks)
    # Where a limit ends the stream, how much came before it depends on the chunks.
    assert whole is None or parts is None or whole == parts
    for line in parts or ():
        message = parse_message(line, NESTING)
        if message is not None:
            assert message["jsonrpc"] == "2.0"
            assert measure_depth(message, NESTING) <= NESTING


def _collect_lines(chunks: tuple[bytes, ...] | list[bytes]) -> list[bytes] | None:
    guard = LineGuard(LINE_BYTES, SESSION_BYTES)
    try:
        return [line for chunk in chunks for line in guard.split_lines(chunk)]
    except SessionBroken:
        return None


def judge_request(data: bytes) -> None:
    """A request that a policy lets through goes, for whoever parses its URL, to where it is
    declared.
    """
    head, _, body = data.partition(b"\n\n")
    first, *fields = head.decode("latin-1").split("\n")
    method, _, url = first.partition(" ")
    headers = tuple((name, value) for name, _, value in (f.partition(":") for f in fields))
    request = WireRequest(method, url, headers, body)
    problem = find_request_problem(request, Caps())
    for policy in _build_policies():
        rule = policy.find_rule(request)
        if problem or rule is None:
            continue
        assert rule.method == method
        for host, path in _read_url(url):
            assert host == rule.origin.host, host
            assert rule.path.match(path) or unquote(path) == unquote(urlsplit(url).path), path


def _read_url(url: str) -> list[tuple[str, str]]:
    """Host and path as each of three foreign parsers sees them."""
    one, two, three = urlsplit(url), httpx.URL(url), parse_url(url)
    return [
        (one.hostname or "", one.path or "/"),
        (two.host, two.raw_path.decode("ascii").partition("?")[0]),
        (three.host or "", three.path or "/"),
    ]


@cache
def _build_policies() -> tuple[Policy, ...]:
    bundle = _compile_bundle()
    return (
        build_read_policy(bundle),
        *(build_tool_policy(bundle, tool.name) for tool in bundle.tools),
    )


@cache
def _compile_bundle() -> Bundle:
    content = json.dumps(DESCRIPTION).encode()
    return compile_document(parse_document(content, "shop.json"), name="shop").bundle


FILES = ("bundle.toml", "tools.json", "server.py", "spec.json", "launch.json")


def load_bundle(data: bytes) -> None:
    """A bundle with one file replaced is refused with a reason, or is one that can be written."""
    name = FILES[data[0] % len(FILES)] if data else FILES[0]
    contents: Mapping[str, bytes] = {**_render_bundle(), name: data[1:]}
    try:
        bundle = parse_files(contents, "fuzzed")
    except BundleInvalid:
        return
    assert parse_files(render_files(bundle), "again") == bundle


@cache
def _render_bundle() -> Mapping[str, bytes]:
    return render_files(_compile_bundle())


def read_description(data: bytes) -> None:
    """An API description is refused with a reason, or read into operations."""
    try:
        parsed = read_openapi(parse_document(data, "fuzzed.yaml"))
    except ForgeError:
        return
    names = [operation.id for operation in parsed.spec.operations]
    assert len(names) == len(set(names)) > 0


def redact(data: bytes) -> None:
    """A secret is found wherever it stands, and an answer without it is left as it is."""
    redaction = Redaction([SECRET])
    at = data[0] % len(data) if data else 0
    secret = SECRET.encode()
    hidden = data[:at] + secret + data[at:]
    assert secret not in redaction.redact_bytes(hidden)
    text = hidden.decode("utf-8", "replace")
    assert SECRET not in redaction.redact_text(text)
    whole = redaction.redact_json({"a": [text], text: 1})
    assert SECRET not in json.dumps(whole, ensure_ascii=False)


def read_certificate(data: bytes) -> None:
    try:
        told = parse_certificate(data)
    except ValueError:
        return
    json.dumps(told)


def read_dns_answer(data: bytes) -> None:
    for kind in ("A", "TXT", "MX"):
        query = dns.message.make_query("example.org", kind, id=0x4711)
        try:
            told = parse_answer(query, b"\x47\x11" + data, kind)
        except ValueError:
            continue
        json.dumps(told)


TARGETS: Mapping[str, Target] = {
    "frames": split_frames,
    "requests": judge_request,
    "bundles": load_bundle,
    "descriptions": read_description,
    "redaction": redact,
    "certificates": read_certificate,
    "dns": read_dns_answer,
}
