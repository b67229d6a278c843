"""What a user does, through clients that none of us wrote and through both protocols by hand.

All of them are connected to one home at once, each with a `toolwright serve` of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.functional.home import SECONDS, Home, new_home, until
from tests.functional.peer import MODERN, MOVING, Peer, text
from tests.functional.test_clients import SEVEN
from tests.world.fastmcp import fastmcp_python
from tests.world.harbour import SLOW_SECONDS, HarbourApi, cut, harbour_api, slow_reports
from tests.world.inspector import inspect
from tests.world.node import node
from tests.world.puppets.puppet import HERE, Puppet
from tests.world.site import Asked, Page, Site, site

__all__ = ["fastmcp_python"]

CLIENTS = (
    "raw-2024-11-05",
    "raw-2026-07-28",
    "python-legacy",
    "python-2026-07-28",
    "typescript-sdk",
    "typescript-legacy",
    "typescript-2026-07-28",
    "fastmcp",
)
WHO_LEAVE = (
    "raw-2024-11-05",
    "raw-2026-07-28",
    "python-legacy",
    "python-2026-07-28",
    "typescript-2026-07-28",
    "fastmcp",
)
ANSWER_SECONDS = "1.5"
LARGE = 3 * 1024 * 1024
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Archive", "version": "1"},
    "servers": [{"url": "/"}],
    "paths": {
        "/everything": {
            "get": {
                "operationId": "everything",
                "summary": "Everything in the archive",
                "responses": {
                    "200": {
                        "description": "One long text.",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {"text": {"type": "string"}},
                                    "required": ["text"],
                                }
                            }
                        },
                    }
                },
            }
        }
    },
}
JSON = (("Content-Type", "application/json"),)
BOOKING = {
    "berth": 1,
    "boat": {"name": "Wanderer", "kind": "sail", "length": 5},
    "arrival": "2030-05-01",
    "nights": 2,
}
TASKS = "io.modelcontextprotocol/tasks"
DECLARED: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}}
}
LIST = {"tool": "harbour.list_berths"}
BOOK = "harbour.book_berth"

Client = Peer | Puppet
Connect = Callable[[str], Client]


@pytest.fixture(scope="module")
def home(component: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home whose calls are answered with a handle soon. The engine makes no difference."""
    directory = tmp_path_factory.mktemp("clients")
    with new_home(directory, "wasm", TOOLWRIGHT_ANSWER_SECONDS=ANSWER_SECONDS) as made:
        yield made


@pytest.fixture(scope="module")
def harbour(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        host = api.url.removeprefix("http://")
        home.person("forge", "list berths", "--source", api.url, "--allow", host)
        yield api


@pytest.fixture(scope="module")
def gate() -> threading.Event:
    """While it is not set, the archive does not answer."""
    opened = threading.Event()
    opened.set()
    return opened


@pytest.fixture(scope="module")
def archive(home: Home, gate: threading.Event) -> Iterator[Site]:
    """An API with one operation, whose answer is large."""
    large = Page(json.dumps({"text": "x" * LARGE}).encode(), headers=JSON)

    def everything(asked: Asked) -> Page:
        gate.wait(SECONDS)
        return large

    document = Page(json.dumps(DOCUMENT).encode(), headers=JSON)
    with site({"/openapi.json": document, "/everything": everything}) as here:
        home.person("source", "allow", here.url.removeprefix("http://"))
        yield here


@pytest.fixture(scope="module")
def connect(home: Home, node_modules: Path, fastmcp_python: Path) -> Iterator[Connect]:
    """Starts a client of that name; all of them end with the module."""
    environment = {**home.environment, "MODULES": str(node_modules)}
    puppets: Mapping[str, list[str]] = {
        "python": [sys.executable, str(HERE / "python_client.py")],
        "typescript": [node(), str(HERE / "node_client.cjs")],
    }
    serve = ("serve", "--no-control")
    launched = home.launch(*serve)
    with ExitStack() as open_ones:

        def connected(name: str) -> Client:
            family, _, kind = name.partition("-")
            client: Client
            if family == "raw":
                client = Peer(home, *serve, version=kind, with_progress=True)
            elif family == "fastmcp":
                shim = [str(fastmcp_python), str(HERE / "python_client.py"), family]
                client = Puppet(shim, launched, environment)
            else:
                client = Puppet([*puppets[family], kind], launched, environment)
            open_ones.callback(client.close)
            client.greet()
            return client

        yield connected


@pytest.fixture(scope="module")
def clients(harbour: HarbourApi, connect: Connect) -> Mapping[str, Client]:
    """All of them, connected at once."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(CLIENTS, pool.map(connect, CLIENTS), strict=True))


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def client(name: str, clients: Mapping[str, Client]) -> Client:
    return clients[name]


def test_it_lists_the_seven_tools_and_finds_what_was_forged(client: Client) -> None:
    assert client.names() == SEVEN
    found = client.value("find", task="list the berths")
    assert found["candidates"][0]["tool"] == LIST["tool"]


def test_it_forges_and_hears_of_the_progress_then_gets_a_large_answer_by_its_handle(
    name: str, client: Client, archive: Site, gate: threading.Event
) -> None:
    server = "archive_" + name.replace("-", "_")
    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": server}
    gate.clear()
    try:
        job = client.value("forge", **order)["job"]
        until(lambda: client.value("status", job=job)["state"] == "running", "it runs")
        # It cannot end before the archive answers.
        asked = client.begin_call("status", job=job, wait=25)
        until(lambda: client.heard(asked), "progress is heard")
    finally:
        gate.set()
    client.end(asked)
    state = follow(client, job=job)
    assert state["state"] == "done", state["message"]
    heard = client.heard(asked)
    assert len(heard) >= 2
    assert heard == sorted(heard)
    gate.clear()
    try:
        handle = client.value("call_read", tool=f"{server}.everything")
    finally:
        gate.set()
    assert handle["state"] == "running"
    assert len(follow_call(client, handle)["body"]["text"]) == LARGE


def test_a_large_answer_is_given_whole_also_where_it_came_before_its_client_asked_for_it(
    clients: Mapping[str, Client], home: Home, archive: Site, gate: threading.Event
) -> None:
    client = clients["raw-2026-07-28"]
    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": "unasked"}
    assert follow(client, job=client.value("forge", **order)["job"])["state"] == "done"
    gate.clear()
    try:
        handle = client.value("call_read", tool="unasked.everything")
    finally:
        gate.set()
    assert handle["state"] == "running"
    until(lambda: json.loads(home.run("logs", "unasked", "--json").stdout), "it is recorded")
    assert len(follow_call(client, handle)["body"]["text"]) == LARGE


def test_a_call_that_it_gives_up_is_cut_at_the_api_and_others_go_on(
    client: Client, harbour: HarbourApi
) -> None:
    before = slow_reports(harbour)
    running = client.begin_call(
        "call_read", tool="harbour.occupancy_report", arguments={"seconds": SLOW_SECONDS}
    )
    until(lambda: slow_reports(harbour) > before, "the call arrived")
    client.cancel(running)
    until(lambda: cut(harbour), "the connection was closed")
    assert follow_call(client, client.value("call_read", **LIST))["body"]


def test_a_write_waits_for_a_person_and_is_done_when_one_approved_it(
    client: Client, home: Home, harbour: HarbourApi
) -> None:
    before = len(harbour.received("POST"))
    arguments = {"body": BOOKING}
    waits = follow_call(client, client.value("call_write", tool=BOOK, arguments=arguments))
    assert waits["state"] == "pending"
    assert len(harbour.received("POST")) == before
    home.run("approve", waits["approval"], "--pin-file", str(home.pin_file))
    done = follow(client, approval=waits["approval"])
    assert done["state"] == "done", done
    assert len(harbour.received("POST")) == before + 1
    (booked,) = httpx.get(f"{harbour.url}/bookings", trust_env=False, timeout=60).json()
    httpx.delete(
        f"{harbour.url}/bookings/{booked['id']}", trust_env=False, timeout=60
    ).raise_for_status()


@pytest.mark.parametrize("name", WHO_LEAVE)
def test_a_forge_goes_on_although_its_client_has_left_and_is_found_after_it_came_back(
    name: str, connect: Connect, clients: Mapping[str, Client], archive: Site, gate: threading.Event
) -> None:
    first = connect(name)
    server = "left_" + name.replace("-", "_")
    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": server}
    gate.clear()
    try:
        job = first.value("forge", **order)["job"]
        assert first.close() == 0
    finally:
        gate.set()
    again = clients[name]
    state = follow(again, job=job)
    assert state["state"] == "done", state["message"]
    read = again.value("call_read", tool=f"{server}.everything")
    assert follow_call(again, read)["status"] == 200


def follow(client: Client, **of: str) -> dict[str, Any]:
    """The status of a job or an approval that has ended or waits for somebody."""

    def reached() -> dict[str, Any] | None:
        status: dict[str, Any] = client.value("status", **of, wait=2)
        return None if status["state"] in MOVING else status

    return until(reached, f"{of} settles")


def follow_call(client: Client, value: Any) -> Any:
    """What a call gives, also where a busy machine takes longer over it than the home's clients
    wait.
    """
    while value.get("state") == "running":
        value = client.value("status", call=value["call"], wait=25)
    if "result" not in value:
        return value
    assert not value["result"].get("isError"), value
    return value["result"]["structuredContent"]


def test_the_inspector_forges_follows_and_asks_to_write_in_a_process_for_each(
    clients: Mapping[str, Client], home: Home, archive: Site, node_modules: Path
) -> None:
    """Its command line makes one request and leaves, so it cancels nothing and hears nothing."""
    command = home.launch("serve", "--no-control")
    given = ("TOOLWRIGHT_", "PYTHONPATH")
    environment = {k: v for k, v in home.environment.items() if k.startswith(given)}

    def called(name: str, /, **arguments: Any) -> Any:
        written = [f"{key}={_word(value)}" for key, value in arguments.items()]
        words = [word for each in written for word in ("--tool-arg", each)]
        done = inspect(command, "tools/call", "--tool-name", name, *words, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["structuredContent"]

    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": "inspected"}
    job = called("forge", **order)["job"]
    until(lambda: called("status", job=job, wait=25)["state"] == "done", "it is forged")
    waits = called("call_write", tool=BOOK, arguments={"body": BOOKING})
    if waits["state"] == "running":
        # It took long; its process is gone and its call with it, but not what waits.
        (waits,) = until(lambda: clients["raw-2024-11-05"].value("status")["approvals"], "it waits")
    home.person("reject", waits["approval"])


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_all_of_them_call_at_once(clients: Mapping[str, Client]) -> None:
    begun = [(c, c.begin_call("call_read", **LIST)) for c in clients.values() for _ in range(3)]
    for client, identity in begun:
        answer = client.end(identity)["result"]["structuredContent"]
        assert follow_call(client, answer)["status"] == 200


def test_a_freeze_stops_all_of_them_at_once_and_still_shows_until_a_person_lifts_it(
    clients: Mapping[str, Client], home: Home, harbour: HarbourApi
) -> None:
    before = slow_reports(harbour)
    slow = {"tool": "harbour.occupancy_report", "arguments": {"seconds": SLOW_SECONDS}}
    begun = {name: client.begin_call("call_read", **slow) for name, client in clients.items()}
    until(lambda: slow_reports(harbour) == before + len(begun), "all calls arrived")
    killed = home.read("kill", "--reason", "a test")
    assert (killed["processes"], killed["acknowledged"]) == (len(clients), len(clients))
    for name, client in clients.items():
        client.end(begun[name])
        refused = client.call("call_read", **LIST)
        assert refused["isError"], name
        assert "frozen" in text(refused)
        assert client.value("status")["frozen"]
    home.person("unfreeze")
    for client in clients.values():
        until(partial(_allowed, client), "calls are allowed")


def _allowed(client: Client) -> bool:
    return not client.call("call_read", **LIST).get("isError")


def test_one_server_by_itself_runs_by_the_configuration_that_its_client_was_given(
    home: Home, harbour: HarbourApi, tmp_path: Path
) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**home.environment, "HOME": str(tmp_path)}
        return replace(home, environment=environment).run("run", *words, "--client", "cursor")

    path = tmp_path / ".cursor" / "mcp.json"
    assert run("harbour", "--print").returncode == 0
    assert not path.exists()
    assert run("harbour").returncode == 0
    entry = json.loads(path.read_text())["mcpServers"]["harbour"]
    started = Home(home.path, {**home.environment, **entry["env"]})
    words = entry["args"][entry["args"].index("run") :]
    with Peer(started, *words, "--no-control") as peer:
        assert "list_berths" in peer.names()
        assert peer.value("list_berths")["status"] == 200
    assert run("harbour", "--remove").returncode == 0
    assert json.loads(path.read_text()) == {"mcpServers": {}}
    assert run("absent").returncode == 1
    assert run("./harbour").returncode == 2


def declared(peer: Peer, method: str, **params: Any) -> dict[str, Any]:
    """The result of a request that declares the tasks extension, or its error."""
    answer = peer.request(method, {**params, "_meta": DECLARED})
    told: dict[str, Any] = answer.get("result") or answer["error"]
    return told


def ended(peer: Peer, task: str) -> dict[str, Any]:
    def state() -> dict[str, Any]:
        told = declared(peer, "tasks/get", taskId=task)
        assert told["resultType"] == "complete"
        return told if told["status"] != "working" else {}

    return until(state, "the task ended")


def test_who_declares_tasks_gets_them_for_forging_doing_and_slow_calls(
    clients: Mapping[str, Client], archive: Site, harbour: HarbourApi, home: Home
) -> None:
    peer = clients["raw-2026-07-28"]
    assert isinstance(peer, Peer)
    offered = peer.request("server/discover")["result"]["capabilities"]
    assert offered["extensions"] == {TASKS: {}}
    order = {"task": "read all", "source": f"{archive.url}/openapi.json", "name": "tasked"}
    forge = declared(peer, "tools/call", name="forge", arguments=order)
    assert (forge["resultType"], forge["status"]) == ("task", "working")
    assert "content" not in forge
    made = ended(peer, forge["taskId"])
    assert made["status"] == "completed"
    assert made["result"]["structuredContent"]["state"] == "done"
    slow = {"tool": "harbour.occupancy_report", "arguments": {"seconds": 3}}
    for name, arguments in (("call_read", slow), ("do", {"task": "report", **slow})):
        begun = declared(peer, "tools/call", name=name, arguments=arguments)
        assert begun["resultType"] == "task", begun
        result = ended(peer, begun["taskId"])["result"]
        assert result["structuredContent"]["status"] == 200
        assert "related-task" not in json.dumps(result)
        if name == "call_read":
            # Also to who asks another process of the home, as after a restart.
            with Peer(home, "serve", "--no-control", version=MODERN) as other:
                again = ended(other, begun["taskId"])["result"]
            assert again["structuredContent"] == result["structuredContent"]
    refused = declared(peer, "tools/call", name="forge", arguments={"task": "x", "name": "???"})
    assert refused["resultType"] == "complete"


def test_a_task_is_cancelled_and_what_is_none_or_was_not_declared_is_refused(
    clients: Mapping[str, Client], harbour: HarbourApi
) -> None:
    peer = clients["raw-2026-07-28"]
    assert isinstance(peer, Peer)
    slow = {"tool": "harbour.occupancy_report", "arguments": {"seconds": SLOW_SECONDS}}
    task = declared(peer, "tools/call", name="call_read", arguments=slow)["taskId"]
    assert peer.request("tasks/get", {"taskId": task})["error"]["code"] == -32021
    for _ in range(2):
        assert declared(peer, "tasks/cancel", taskId=task)["resultType"] == "complete"
    assert ended(peer, task)["status"] == "cancelled"
    until(lambda: cut(harbour), "the connection was closed")
    for unknown in ("call.0000", "job.0000", "job.", "nothing", ""):
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            assert declared(peer, method, taskId=unknown)["code"] == -32602
    assert declared(peer, "tasks/list")["code"] == -32601
    old = clients["raw-2024-11-05"]
    assert isinstance(old, Peer)
    assert old.request("tasks/get", {"taskId": task})["error"]["code"] == -32601
    handle = peer.value("call_read", **slow)
    assert handle["state"] == "running"
