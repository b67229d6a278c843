"""For tests of tools that ask for something: answers instead of an API.

with answers((404, {"error": "no such zone"})) as asked:
    with pytest.raises(HttpError):
        get_zone(zone="x")
assert asked[0].method == "GET"
"""

from __future__ import annotations

import json
from contextlib import contextmanager

from .answers import Answer
from .calls import Call, playing
from .errors import BROKER_KINDS, RequestFailed
from .requests import WireRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

BASE_URL = "https://api.test"
"""What relative paths extend while a tool is tested."""
_NETWORK = {"dns": "network.dns", "tls": "network.tls_peer", "tcp": "network.tcp"}
PROGRESS = "progress"


@contextmanager
def answers(*replies: Any) -> Iterator[list[WireRequest]]:
    """Answer what tools ask for in this block with each reply once, in order, the last from then
    on. Gives the list of what was asked (`method`, `url`, `headers`, `body`).

    A reply is `(status, body)` or `(status, body, headers)`, where a body that is no text or bytes
    is sent as JSON, or one of the kinds in which no answer comes: `"timeout"`, `"unreachable"`,
    `"too_large"`, `"rate_limited"`, `"refused"`. Files and values are asked for as `READ`, `LIST`
    and `WRITE` of `file:///…` and `env:NAME`, tools of other servers as `CALL` of
    `call:SERVER.TOOL`: 200 with what the tool gives, 500 with {"kind": …, "message": …}.
    """
    upstream = _Played(replies)
    with playing(Call("test", None, upstream)):  # type: ignore[arg-type]
        yield upstream.asked


@contextmanager
def tools(*known: Mapping[str, Any]) -> Iterator[list[WireRequest]]:
    """Answer calls of other servers' tools in this block by what is called: each of `known` is
    `{"tool": "server.tool", "arguments": {…}, "result": …}`, or has the message of a `failure` in
    place of the result. What is asked of the network is known as the tools `network.dns`,
    `network.tls_peer` and `network.tcp`. Gives the list of what was asked.
    """
    upstream = _Known(known)
    with playing(Call("test", None, upstream)):  # type: ignore[arg-type]
        yield upstream.asked


class _Played:
    """A transport whose answers are known before."""

    checks_arguments = True
    base_url = BASE_URL

    def __init__(self, replies: tuple[Any, ...]) -> None:
        self._replies = [_checked(reply) for reply in replies]
        self.asked: list[WireRequest] = []

    def send(self, request: WireRequest, call: Call) -> Answer:
        self.asked.append(request)
        if not self._replies:
            raise RequestFailed("refused", "the test has no answer for this request")
        at = min(len(self.asked), len(self._replies)) - 1
        reply = self._replies[at]
        if isinstance(reply, str):
            raise RequestFailed(reply, "as the test wants it")
        return reply

    def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes, call: Call) -> Answer:
        if kind == PROGRESS:
            return Answer(204, [], b"")
        if kind == "call":
            method, url = "CALL", f"call:{wanted['tool']}"
        elif kind == "dns":
            place = f"//{wanted['server']}/" if wanted["server"] else ""
            method, url = "READ", f"dns:{place}{wanted['name']}?type={wanted['type']}"
        elif kind in ("tls", "tcp"):
            place = f"{wanted['host']}:{wanted['port']}"
            method, url = "READ" if kind == "tls" else "TALK", f"{kind}://{place}"
        elif kind == "file":
            method, url = str(wanted["op"]).upper(), f"file://{wanted['path']}"
        else:
            method, url = "READ", f"env:{wanted['name']}"
        return self.send(WireRequest(method, url, [], body), call)


class _Known(_Played):
    """A transport that answers calls of the tools that it knows, and nothing else."""

    def __init__(self, known: tuple[Mapping[str, Any], ...]) -> None:
        super().__init__(())
        self._known = known

    def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes, call: Call) -> Answer:
        if kind not in _NETWORK:
            return super().ask(kind, wanted, body, call)
        self.asked.append(WireRequest("READ", f"{kind}:", [], body))
        asked = {**wanted, "data": body.decode("utf-8", "replace")} if kind == "tcp" else wanted
        for each in self._known:
            if each["tool"] == _NETWORK[kind] and {**asked, **each["arguments"]} == asked:
                if "failure" in each:
                    raise RequestFailed("unreachable", each["failure"])
                return Answer(200, [], _bytes(each["result"]))
        raise RequestFailed("refused", "the test has no answer for this question")

    def send(self, request: WireRequest, call: Call) -> Answer:
        self.asked.append(request)
        asked = json.loads(request.body) if request.method == "CALL" else None
        for each in self._known:
            if request.url == f"call:{each['tool']}" and asked == each["arguments"]:
                if "failure" in each:
                    return Answer(500, [], _bytes({"kind": "tool", "message": each["failure"]}))
                result = each["result"]
                given = result if isinstance(result, dict) else {"result": result}
                return Answer(200, [], _bytes(given))
        raise RequestFailed("refused", "the test has no answer for this call")


def _checked(reply: Any) -> Answer | str:
    if isinstance(reply, str):
        if reply not in BROKER_KINDS:
            raise ValueError(f"{reply!r} is none of {', '.join(sorted(BROKER_KINDS))}")
        return reply
    status, body, *more = reply
    headers = {"content-type": "application/json"} if _is_json(body) else {}
    headers |= {name.lower(): value for name, value in (more[0] if more else {}).items()}
    return Answer(status, list(headers.items()), _bytes(body))


def _is_json(body: Any) -> bool:
    return body is not None and not isinstance(body, str | bytes)


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes) or body is None:
        return body or b""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()
