"""What a hostile server can say over its pipe, in real containers: bounded, dropped, or its end."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import docker
import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.engines.docker.engine import (
    ContainerLabels,
    DockerRunner,
    connect_engine,
    list_containers,
)
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken, SessionStopped
from sandbox.session.interface import Limits, Outcome
from sandbox.session.pipe import PipeSession
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy

pytestmark = pytest.mark.docker
CALL = "000000000003"
"""The id of a session's first call: the two before it load the bundle and shake hands."""
URL = "https://api.example.com/things"
MEGABYTE = 1024 * 1024
SMALL = Limits(line_bytes=MEGABYTE, answer_bytes=4 * MEGABYTE, stderr_bytes=4096, strays=8)
ANY = {"type": "object"}
SOURCE = """
import base64
import fcntl
import os
import time

from toolwright import http, tool


def wire():
    # The runtime keeps its stdout to itself; hostile code finds it all the same.
    for fd in range(3, 32):
        try:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                return fd
        except OSError:
            pass


@tool
def say(chunks, times=1, to=None, then="answer"):
    out = wire() if to is None else to
    for _ in range(times):
        for chunk in chunks:
            data = base64.b64decode(chunk)
            while data:
                data = data[os.write(out, data):]
    if then == "exit":
        os._exit(3)
    while then == "hang":
        time.sleep(60)
    return {"said": True}


@tool
def fetch():
    return http.request("GET", "/things")
"""


class Recorded:
    """An upstream that answers everything and remembers it."""

    def __init__(self) -> None:
        self.requests: list[WireRequest] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.requests.append(request)
        return WireResponse(200, (("content-type", "application/json"),), b"{}")


def bundle(source: str = SOURCE) -> Bundle:
    wanted = (RequestPattern("GET", URL),)
    return Bundle(
        name="hostile",
        version=1,
        title="Hostile",
        base_url="https://api.example.com",
        source_code=source,
        tools=(
            ToolDefinition("say", "Says it.", ANY, ANY, "read"),
            ToolDefinition("fetch", "Fetches.", ANY, ANY, "read", requests=wanted),
        ),
        provenance=Provenance("written by hand", ""),
        permissions=("network:api.example.com:443",),
    )


@pytest.fixture(scope="module")
def engine(base_image: str) -> Iterator[tuple[docker.DockerClient, str]]:
    client = connect_engine()
    yield client, base_image
    client.close()


class Cage:
    """Runs hostile code in containers of its own, and sees that none is left."""

    def __init__(self, client: docker.DockerClient, image: str) -> None:
        self._client, self._image = client, image
        self.upstream = Recorded()
        self.instance = f"session-{time.time_ns()}"

    @asynccontextmanager
    async def session(
        self, limits: Limits = SMALL, source: str = SOURCE
    ) -> AsyncIterator[PipeSession]:
        made = bundle(source)
        labels = ContainerLabels(self.instance, "test")
        async with DockerRunner(self._client, self._image, labels, limits=limits) as runner:
            broker = Broker(build_read_policy(made), self.upstream)
            async with runner.open(made, broker) as session:
                yield cast(PipeSession, session)

    def run(self, work: Callable[[PipeSession], Awaitable[Any]], **more: Any) -> Any:
        async def opened() -> Any:
            async with self.session(**more) as session:
                return await work(session)

        try:
            return asyncio.run(opened())
        finally:
            self._check_gone()

    def _check_gone(self) -> None:
        # A container that ended by itself is removed by the engine, which may take a moment.
        end = time.monotonic() + 60
        while list_containers(self._client, instance=self.instance):
            assert time.monotonic() < end, "a container is left"

    def say(self, *chunks: bytes, limits: Limits = SMALL, **more: Any) -> Outcome:
        """The outcome of a call whose tool writes that to the wire before it answers."""
        given = {"chunks": [base64.b64encode(chunk).decode() for chunk in chunks], **more}

        async def work(session: PipeSession) -> Outcome:
            return await session.call("say", given, seconds=60)

        return cast(Outcome, self.run(work, limits=limits))


@pytest.fixture
def cage(engine: tuple[docker.DockerClient, str]) -> Cage:
    return Cage(*engine)


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def answer(result: Any, identity: Any = CALL) -> bytes:
    return line({"jsonrpc": "2.0", "id": identity, "result": result})


STRAYS = {
    "no JSON": b"hello, world\n",
    "no UTF-8": b"\xff\xfe\x00\x80\n",
    "no message": b"[1, 2, 3]\n",
    "another protocol": line({"jsonrpc": "1.0", "id": "999", "result": {}}),
    "an answer nobody asked for": answer({"content": []}, "999"),
    "an answer without an id": answer({"content": []}, None),
    "both result and error": line({"jsonrpc": "2.0", "id": "999", "result": {}, "error": {}}),
    "neither result nor error": line({"jsonrpc": "2.0", "id": "999"}),
    "nested too deep": b'{"jsonrpc": "2.0", "id": "999", "result": '
    + b"[" * 50_000
    + b"]" * 50_000
    + b"}\n",
    "a method that no server may call": line(
        {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}
    ),
    "a notification": line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
    "a request without parameters": line(
        {"jsonrpc": "2.0", "id": "r1", "method": "toolwright/request"}
    ),
}


@pytest.mark.parametrize("kind", STRAYS)
def test_a_few_strays_are_dropped_and_too_many_end_the_session(kind: str, cage: Cage) -> None:
    async def work(session: PipeSession) -> int:
        chunk = base64.b64encode(STRAYS[kind]).decode()
        outcome = await session.call("say", {"chunks": [chunk], "times": SMALL.strays})
        assert outcome.ok
        assert session.strays == SMALL.strays
        with pytest.raises(SessionBroken, match="nobody asked for"):
            await session.call("say", {"chunks": [chunk], "then": "hang"})
        with pytest.raises(SessionBroken, match="nobody asked for"):
            await session.call("fetch", {})
        return session.strays

    assert cage.run(work) == SMALL.strays + 1
    assert cage.upstream.requests == []


def test_an_endless_flood_of_strays_ends_the_session(cage: Cage) -> None:
    with pytest.raises(SessionBroken, match="nobody asked for"):
        cage.say(STRAYS["an answer nobody asked for"], times=10**9)


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_ends_the_session(end: bytes, cage: Cage) -> None:
    with pytest.raises(SessionBroken, match="longer than allowed"):
        cage.say(b"x" * (MEGABYTE + 1) + end, then="hang")


def test_a_session_that_says_too_much_before_it_answers_is_ended(cage: Cage) -> None:
    with pytest.raises(SessionBroken, match="more than it may before it answers"):
        cage.say(b"\n" * 4096, times=10**6)


def test_a_session_whose_answers_are_large_goes_on_for_good(cage: Cage) -> None:
    async def work(session: PipeSession) -> int:
        chunk = base64.b64encode(b"\n" * MEGABYTE).decode()
        for _ in range(2 * SMALL.answer_bytes // MEGABYTE):
            assert (await session.call("say", {"chunks": [chunk]})).ok
        return session.strays

    assert cage.run(work) == 0


def test_stderr_is_kept_up_to_its_cap_and_read_on(cage: Cage) -> None:
    async def work(session: PipeSession) -> int:
        chunk = base64.b64encode(b"e" * 65536).decode()
        outcome = await session.call("say", {"chunks": [chunk], "times": 16, "to": 2})
        assert outcome.ok
        return len(session.stderr)

    assert cage.run(work) == SMALL.stderr_bytes


def test_a_second_answer_to_the_same_call_is_a_stray(cage: Cage) -> None:
    async def work(session: PipeSession) -> tuple[Outcome, int]:
        forged = answer({"content": [], "structuredContent": {"forged": True}})
        chunk = base64.b64encode(forged).decode()
        first = await session.call("say", {"chunks": [chunk]})
        # Calls run side by side in the sandbox, so a later answer may overtake the true one.
        async with asyncio.timeout(60):
            while not session.strays:
                again = await session.call("say", {"chunks": []})
                assert again.structured == {"said": True}
        return first, session.strays

    first, strays = cage.run(work)
    assert first.structured == {"forged": True}
    assert strays == 1


BAD_RESULTS = {
    "no object": answer(42),
    "no content": answer({"structuredContent": {}}),
    "content of another type": answer({"content": "text"}),
    "blocks without a type": answer({"content": [{}]}),
    "an error": line({"jsonrpc": "2.0", "id": CALL, "error": {"message": "m" * 100_000}}),
    "an error of another type": line({"jsonrpc": "2.0", "id": CALL, "error": ["m" * 100_000]}),
}


@pytest.mark.parametrize("kind", BAD_RESULTS)
def test_a_result_that_is_none_is_the_servers_bug(kind: str, cage: Cage) -> None:
    outcome = cage.say(BAD_RESULTS[kind])
    assert outcome.failure is not None
    assert outcome.failure.kind == "bug"
    assert len(outcome.failure.message) <= 2000


def test_a_result_that_breaks_its_schema_is_told_so(cage: Cage) -> None:
    outcome = cage.say(answer({"content": [], "structuredContent": [1]}))
    assert outcome.failure is not None
    assert outcome.failure.kind == "schema"


def test_what_a_failure_says_of_itself_is_bounded(cage: Cage) -> None:
    said = {"kind": "k" * 9999, "status": "no", "retry_after": "no", "where": "w" * 9999}
    text = {"type": "text", "text": "t" * 9999}
    result = {"isError": True, "content": [text], "_meta": {"toolwright/error": said}}
    failure = cage.say(answer(result)).failure
    assert failure is not None
    sizes = (len(failure.kind), len(failure.message), len(failure.where))
    assert sizes == (40, 2000, 200)
    assert (failure.status, failure.retry_after) == (None, None)


def test_a_failure_that_is_a_page_says_the_text_of_the_page_and_keeps_the_page(cage: Cage) -> None:
    page = f"HTTP 404 Not Found\n\n<html><style>{'a{b:c}' * 999}</style><h1>No such car</h1></html>"
    outcome = cage.say(answer({"isError": True, "content": [{"type": "text", "text": page}]}))
    assert outcome.failure is not None
    assert outcome.failure.message == "HTTP 404 Not Found\n\nNo such car"
    assert outcome.text == page


def test_a_server_that_never_answers_is_given_up(cage: Cage) -> None:
    async def work(session: PipeSession) -> None:
        with pytest.raises(CallTimedOut, match="say gave no answer"):
            await session.call("say", {"chunks": [], "then": "hang"}, seconds=0.2)
        with pytest.raises(SessionBroken):
            await session.call("fetch", {})

    cage.run(work)


def test_a_call_whose_session_ends_for_anothers_silence_says_so(cage: Cage) -> None:
    async def work(session: PipeSession) -> None:
        other = asyncio.create_task(session.call("say", {"chunks": [], "then": "hang"}))
        with pytest.raises(CallTimedOut):
            await session.call("say", {"chunks": [], "then": "hang"}, seconds=0.2)
        with pytest.raises(SessionStopped, match=r"another call of its server, say, .* call again"):
            await other

    cage.run(work)


def test_a_server_that_exits_breaks_its_session_only(cage: Cage) -> None:
    async def work(session: PipeSession) -> Outcome:
        async with cage.session() as other:
            with pytest.raises(SessionBroken, match="its sandbox ended"):
                await session.call("say", {"chunks": [], "then": "exit"})
            return await other.call("fetch", {})

    outcome = cage.run(work)
    assert outcome.ok
    assert [request.url for request in cage.upstream.requests] == [URL]


REQUEST = {"kind": "http", "call": CALL, "method": "GET", "url": URL, "headers": []}
REFUSED = {
    "of no call": {**REQUEST, "call": "999"},
    "of another kind": {**REQUEST, "kind": "tcp"},
    "without a URL": {**REQUEST, "url": None},
    "to another path": {**REQUEST, "url": f"{URL}/1"},
    "to another host": {**REQUEST, "url": "https://evil.example.com/things"},
    "by another method": {**REQUEST, "method": "DELETE"},
    "with headers that are none": {**REQUEST, "headers": [["a"]]},
    "with its own credential": {**REQUEST, "headers": [["authorization", "Bearer x"]]},
    "with a body that is no base64": {**REQUEST, "body_base64": "?"},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_request_that_is_not_allowed_never_leaves(kind: str, cage: Cage) -> None:
    asked = {"jsonrpc": "2.0", "id": "x", "method": "toolwright/request", "params": REFUSED[kind]}
    assert cage.say(line(asked)).ok
    assert cage.upstream.requests == []


def test_requests_past_those_that_run_at_once_are_strays(cage: Cage) -> None:
    asked = {"jsonrpc": "2.0", "method": "toolwright/request", "params": REQUEST}
    flood = b"".join(line({**asked, "id": f"x{number}"}) for number in range(200))
    with pytest.raises(SessionBroken, match="nobody asked for"):
        cage.say(flood, then="hang")
    assert len(cage.upstream.requests) <= 16


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("import os\nos._exit(3)\n", SessionBroken, "its sandbox ended"),
        ("while True:\n    pass\n", SessionBroken, "did not start in time"),
        ("raise ValueError('v' * 10**6)\n", LoadFailed, "ValueError"),
        ("def broken(:\n", LoadFailed, "server.py"),
        (SOURCE.replace("def fetch", "def other"), LoadFailed, "fetch"),
        (SOURCE + "\nimport os\nos.write(wire(), b'x\\n' * 9)\n", SessionBroken, "nobody asked"),
    ],
)
def test_code_that_does_not_load_is_told_in_bounds(
    source: str, error: type[Exception], words: str, cage: Cage
) -> None:
    async def work(session: PipeSession) -> None:
        raise AssertionError("it has started")

    # Only what never loads is to run into this limit.
    limits = Limits(start_seconds=2.0 if "in time" in words else 60.0, strays=8)
    with pytest.raises(error, match=words) as raised:
        cage.run(work, limits=limits, source=source)
    assert len(str(raised.value)) <= 2000
