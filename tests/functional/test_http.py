"""`toolwright serve --http`: the same front for clients that cannot start a process."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from orchestrator.frontends.http import MAX_OPEN
from orchestrator.processes.termination import TERMINATED
from tests.functional.home import Home, new_home
from tests.functional.peer import MOVING
from tests.functional.test_clients import SEVEN
from tests.world.bridge import served as listening
from tests.world.conformance import conform

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}
SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")


@pytest.fixture(scope="module")
def home(component: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with new_home(tmp_path_factory.mktemp("http"), "wasm") as made:
        yield made


@pytest.fixture(scope="module")
def url(home: Home) -> Iterator[str]:
    command = home.command("serve", "--http", "--port", "0", "--no-control")
    with subprocess.Popen(
        command, env=home.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("MCP at ").strip()
        process.terminate()


@pytest.fixture(scope="module")
def token(url: str, home: Home) -> str:
    """What a person gives to a client."""
    shown = home.run("serve", "--http", "--url").stdout.splitlines()
    assert shown[0] == "http://127.0.0.1:8970/mcp"
    return shown[1].removeprefix("Authorization: ")


@contextmanager
def with_token(url: str, token: str) -> Iterator[str]:
    """A URL that leads there with the token, for clients that cannot be given one."""
    target = url.removesuffix("/mcp")

    async def forward(request: Request) -> Response:
        client: httpx.AsyncClient = request.app.state.client
        headers = [*request.headers.items(), ("authorization", token)]
        asked = client.build_request(
            request.method,
            target + request.url.path,
            headers=headers,
            content=await request.body(),
        )
        answer = await client.send(asked, stream=True)
        return StreamingResponse(answer.aiter_raw(), answer.status_code, dict(answer.headers))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with httpx.AsyncClient(trust_env=False, timeout=120) as app.state.client:
            yield

    route = Route("/{path:path}", forward, methods=["GET", "POST", "DELETE"])
    with listening(Starlette(routes=[route], lifespan=lifespan)) as here:
        yield f"{here}/mcp"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_lists_and_finds_over_http(mode: Any, url: str, token: str) -> None:
    async def scenario() -> None:
        async with create_mcp_http_client(headers={"Authorization": token}) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == SEVEN
                found = await client.call_tool("find", {"task": "anything"})
                assert found.structured_content == {
                    "candidates": [],
                    "none": "forge",
                    "verdict": "forge",
                    "probability": 0.0,
                }

    asyncio.run(scenario())


def test_no_file_is_read_for_a_client_over_http_not_even_an_allowed_one(
    url: str, token: str, home: Home, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text(
        "# Notes\n\nGET /v1/things. The password is hunter2.\n\n    curl https://h/v1\n"
    )
    home.person("source", "allow", str(notes))

    async def scenario() -> None:
        async with create_mcp_http_client(headers={"Authorization": token}) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport) as client:
                order = {"task": "make it", "source": str(notes)}
                begun = await client.call_tool("forge", order)
                assert begun.structured_content
                of = {"job": begun.structured_content["job"], "wait": 25}
                while True:
                    told = (await client.call_tool("status", of)).structured_content
                    assert told
                    if told["state"] not in MOVING:
                        break
                assert (told["state"], "over HTTP" in told["message"]) == ("failed", True)
                assert "hunter2" not in str(told)

    asyncio.run(scenario())


def test_nothing_is_served_without_the_token_which_only_its_owner_can_read(
    url: str, token: str, home: Home
) -> None:
    assert home.settings.http_token.stat().st_mode & 0o777 == 0o600
    wrong: list[list[tuple[str, str]]] = [
        [],
        [("authorization", "Bearer wrong")],
        [("authorization", token.removeprefix("Bearer "))],
        [("authorization", token), ("authorization", "Bearer other")],
        [("cookie", f"token={token}")],
    ]
    for headers in wrong:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            answer = httpx.request(
                method,
                url,
                headers=[*ACCEPT.items(), *headers],
                json=PING,
                trust_env=False,
                timeout=60,
            )
            assert answer.status_code == 401, (method, headers)
            assert "mcp-session-id" not in answer.headers
    asked = f"{url}?access_token={token.removeprefix('Bearer ')}"
    assert (
        httpx.post(asked, headers=ACCEPT, json=PING, trust_env=False, timeout=60).status_code == 401
    )


def _open_session(client: httpx.Client, url: str) -> str:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params = {**about, "clientInfo": {"name": "one that ends nothing", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = client.post(url, json=asked)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["mcp-session-id"])


def test_sessions_that_nobody_ended_make_room_for_new_ones_but_not_one_whose_client_listens(
    url: str, token: str
) -> None:
    headers = {**ACCEPT, "authorization": token}
    with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
        listening, left = _open_session(client, url), _open_session(client, url)

        def ping(session: str) -> int:
            return client.post(url, json=PING, headers={"mcp-session-id": session}).status_code

        with client.stream("GET", url, headers={"mcp-session-id": listening}) as stream:
            assert stream.status_code == 200
            used = _open_session(client, url)
            for _ in range(MAX_OPEN + 1):
                _open_session(client, url)
                assert ping(used) == 200
            assert (ping(listening), ping(left)) == (200, 404)


def test_the_scheme_of_the_token_is_of_any_case(url: str, token: str) -> None:
    headers = {**ACCEPT, "authorization": token.replace("Bearer", "bearer")}
    with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
        assert _open_session(client, url)


def test_its_end_is_no_error_while_clients_listen_and_wait_for_answers(
    home: Home, token: str, tmp_path: Path
) -> None:
    command = home.command("serve", "--http", "--port", "0", "--no-control")
    with (
        (tmp_path / "stderr").open("w") as stderr,
        subprocess.Popen(
            command, env=home.environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
        httpx.Client(trust_env=False, timeout=60) as client,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("MCP at ").strip()
        client.headers = httpx.Headers({**ACCEPT, "authorization": token})
        session = {"mcp-session-id": _open_session(client, url)}
        of = {"job": _begin_forge(client, url, session), "wait": 25}
        waiting = {"name": "status", "arguments": of}
        asked = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": waiting}
        with (
            client.stream("GET", url, headers=session),
            client.stream("POST", url, headers=session, json=asked),
        ):
            process.terminate()
            assert process.wait(60) == TERMINATED
    assert (tmp_path / "stderr").read_text() == ""


def _begin_forge(client: httpx.Client, url: str, session: dict[str, str]) -> str:
    """A job that waits for a person."""
    order = {"name": "forge", "arguments": {"task": "x", "source": "http://127.0.0.1:1/"}}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": order}
    told = client.post(url, json=asked, headers=session).text.partition("data: ")[2]
    return str(json.loads(told)["result"]["structuredContent"]["job"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ],
)
def test_another_site_s_page_is_refused_even_with_the_token(
    wrong: dict[str, str], url: str, token: str
) -> None:
    headers = {**ACCEPT, "authorization": token, **wrong}
    answer = httpx.post(url, headers=headers, json=PING, trust_env=False, timeout=60)
    assert answer.status_code in (403, 421)


@pytest.mark.parametrize(
    ("argument", "refused"),
    [
        ([[1, 2]] * 100_000, True),
        ([{"a": "b"}] * 100_001, True),
        ('a,b,[{"' * 200_000, False),
        ([1] * 190_000, False),
    ],
    ids=["lists", "objects", "one text", "fewer"],
)
def test_a_message_of_more_values_than_are_read_at_once_is_refused(
    argument: Any, refused: bool, url: str, token: str
) -> None:
    found = {"name": "find", "arguments": {"task": argument}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": found}
    headers = {**ACCEPT, "authorization": token}
    answer = httpx.post(url, headers=headers, json=asked, trust_env=False, timeout=60)
    told = answer.json()["error"]["message"]
    assert (answer.status_code == 413) is refused, told
    # A request that belongs to no session gets no further than to the SDK.
    assert ("200,000 values" if refused else "session") in told


def test_it_passes_the_conformance_suite_s_scenarios_of_a_front(
    url: str, token: str, node_modules: Path, tmp_path: Path
) -> None:
    with with_token(url, token) as open_url:
        for scenario in SCENARIOS:
            options = ("--scenario", scenario, "--spec-version", "2025-11-25")
            assert conform(open_url, tmp_path / scenario, *options) == {scenario: set()}
        options = ("--scenario", "server-stateless", "--spec-version", "2026-07-28")
        failed = conform(open_url, tmp_path / "stateless", *options)["server-stateless"]
    # What is left wants diagnostic tools of the suite's own.
    assert failed == {
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-missing-capability-http-400",
        "sep-2575-server-no-log-without-loglevel",
        "sep-2575-server-rejects-undeclared-capability",
    }
