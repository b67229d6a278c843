"""`toolwright replay`: what was recorded is run again offline, and every difference is told."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done
from orchestrator.errors import AmbiguousId
from orchestrator.replay.replay import ReplayResult
from orchestrator.settings import Settings, load_settings
from registry.errors import RowNotFound
from registry.models import build_entry
from registry.secrets.vault import Secret
from registry.store import Store
from sandbox.errors import Frozen
from sandbox.session.recording import FROZEN_TIME_NS, CallRecording, pack_recording
from sandbox.wire.exchange import WireResponse
from tests.crash.documents import OBJECT, described, reading
from tests.engine.samples import bundle
from tests.functional.home import ROOT, Home
from tests.granted import allow, bind_to
from tests.world.site import Asked, Page, site

CANARY = "c4nary-öpen/sesame+1"
JSON = (("Content-Type", "application/json"),)
CLOCKWORK = """
import datetime, uuid
from toolwright import tool

@tool
def look(n):
    return {"now": datetime.datetime.now().timestamp(), "id": str(uuid.uuid4()), "n": n}

@tool
def fail(n):
    return {"n": 1 // 0}
"""


Again = Callable[[str, Any], tuple[ReplayResult, ...]]
TABLES = ("invocations", "recordings", "reports", "jobs")


@dataclass(frozen=True)
class Past:
    """A home in which some things were done, and their ids. The API is gone.

    `again` replays one of them, on the engine that is given or the one it was done on.
    """

    home: Path
    engine: str
    again: Again
    read: str
    fault: str
    looks: tuple[str, str]
    failed: str
    run: str
    proposal: str
    forged: str

    def settings(self, home: Path | None = None) -> Settings:
        return load_settings(home=home or self.home, engine=self.engine)


@pytest.fixture(scope="module")
def past(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    home = tmp_path_factory.mktemp("past")
    settings = load_settings(home=home, engine=engine_name)
    with site() as api:
        operation = {
            "operationId": "getThing",
            "summary": "Get the thing",
            "security": [{"k": []}, {}],
        }
        scheme = {"type": "apiKey", "in": "query", "name": "key"}
        document = described(
            {"/thing": reading(OBJECT, **operation), "/gone": reading(OBJECT, operationId="gone")},
            securitySchemes={"k": scheme},
        )
        api.pages["/openapi.json"] = Page(document)
        api.pages[f"/thing?key={quote(CANARY, safe='')}"] = telling
        ids = asyncio.run(lived(settings, api.url))
        # The pure tools once more, by another process.
        other = asyncio.run(called(settings, "clockwork.look", n=7))
    with replaying(settings) as again:
        yield Past(home, engine_name, again, looks=(ids.pop("look"), other), **ids)


@contextmanager
def replaying(settings: Settings) -> Iterator[Again]:
    """Replays in one process for as long as the block runs."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "replay")))

        async def replayed(id: str, engine: Any) -> tuple[ReplayResult, ...]:
            async with app.replays(engine) as replays:
                return await replays.replay_recorded(id)

        try:
            yield lambda id, engine: runner.run(replayed(id, engine))
        finally:
            runner.run(stack.aclose())


def telling(asked: Asked) -> Page:
    """An answer that gives the secret away."""
    body = {"name": "oar", "asked": asked.path, "secret": CANARY}
    return Page(json.dumps(body).encode(), headers=(*JSON, ("X-Key", quote(CANARY, safe=""))))


async def lived(settings: Settings, url: str) -> dict[str, str]:
    async with open_app(settings, "do") as app:
        allow(settings, app.store, url)
        app.vault.put("things", "k", Secret(CANARY))
        bind_to(settings, app.store, "things", "k", url, "query:key")
        made = replace(bundle(CLOCKWORK, "look", "fail", pure=True), name="clockwork")
        app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None)
        return {
            "forged": await worked(app, "forge", source=url, name="things"),
            "read": await invoked(app, "things.get_thing"),
            "fault": await invoked(app, "things.gone"),
            "look": await invoked(app, "clockwork.look", n=7),
            "failed": await invoked(app, "clockwork.fail", n=7),
            "run": await worked(app, "do", task="things.get_thing"),
            "proposal": await worked(app, "do", task="thank you"),
        }


async def called(settings: Settings, tool: str, **arguments: Any) -> str:
    async with open_app(settings, "call") as app:
        return await invoked(app, tool, **arguments)


async def invoked(app: App, tool: str, **arguments: Any) -> str:
    server, _, name = tool.partition(".")
    reply = await app.dispatch.call_tool(Call(server, name, arguments))
    assert isinstance(reply, Done)
    return reply.invocation


async def worked(app: App, kind: Any, **request: Any) -> str:
    job = app.jobs.create_job(kind, request)
    claimed = app.store.jobs.claim(job.id, app.process, time.time())
    assert claimed is not None
    await app.jobs.run_job(claimed)
    assert app.store.jobs.get(job.id).state == "done", app.store.jobs.get(job.id).message
    return job.id


@pytest.fixture
def changed(past: Past) -> Iterator[Past]:
    """The same past, whose rows are what they were after the test."""
    with connected(past) as database:
        before = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}
    yield past
    with connected(past) as database:
        for name, rows in before.items():
            places = ",".join("?" * len(rows[0]))
            database.execute(f"DELETE FROM {name}")
            database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


@pytest.fixture
def copy(past: Past, tmp_path: Path) -> Past:
    """The same past in a home of its own, replayed by a process that has not seen it before."""
    home = tmp_path / "home"
    shutil.copytree(past.home, home)

    def again(id: str, engine: Any) -> tuple[ReplayResult, ...]:
        with replaying(past.settings(home)) as replayed:
            return replayed(id, engine)

    return replace(past, home=home, again=again)


def one(past: Past, id: str, engine: Any = None) -> ReplayResult:
    (found,) = past.again(id, engine)
    return found


def told(replay: ReplayResult) -> tuple[str, str, str]:
    assert replay.difference is not None, replay
    assert replay.verdict == "different"
    return replay.difference.where, replay.difference.expected, replay.difference.got


def stored(past: Past) -> Store:
    return Store.open(past.settings().database_url)


@contextmanager
def connected(past: Past) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(past.home / "toolwright.db")) as connection, connection:
        yield connection


def edited(past: Past, statement: str, *values: Any) -> None:
    with connected(past) as database:
        database.execute(statement, values)


def rerecorded(past: Past, id: str, change: Callable[[CallRecording], CallRecording]) -> None:
    with stored(past) as store:
        content = pack_recording(change(store.calls.get_recording(id).recording))
    edited(past, "UPDATE recordings SET content = ? WHERE invocation = ?", content, id)


@pytest.mark.parametrize("name", ["read", "fault", "failed"])
def test_a_call_comes_to_the_same_again_without_its_api(past: Past, name: str) -> None:
    found = one(past, getattr(past, name)[:10])
    assert (found.verdict, found.notes, found.reason) == ("same", (), "")
    assert (found.id, found.engine, found.version) == (getattr(past, name), past.engine, 1)


def test_a_replay_is_no_call_and_moves_no_trust(past: Past) -> None:
    with stored(past) as store:
        before = (
            store.calls.find(limit=1000),
            store.standings.get("things"),
            store.approvals.find(),
        )
    for id in (past.read, past.run, past.forged):
        past.again(id, None)
    with stored(past) as store:
        after = (
            store.calls.find(limit=1000),
            store.standings.get("things"),
            store.approvals.find(),
        )
        assert store.audit.verify_chains() is None
    assert after == before


def test_no_form_of_a_secret_is_in_any_file_of_the_home(past: Past) -> None:
    raw = CANARY.encode()
    forms = (raw, quote(CANARY, safe="").encode(), base64.b64encode(raw))
    with stored(past) as store:
        kept = store.calls.get_recording(past.read).recording
        assert kept.exchanges[0].request.url.endswith("/thing")
        answer = kept.exchanges[0].response
        assert answer is not None
        assert b"[redacted]" in answer.body
    contents = [repr(kept).encode(), str(kept.exchanges).encode()]
    contents += [path.read_bytes() for path in past.home.rglob("*") if path.is_file()]
    assert not [form for form in forms for content in contents if form in content]


def test_a_pure_call_gives_the_same_bytes_in_another_process_where_the_engine_can(
    past: Past,
) -> None:
    with stored(past) as store:
        first, other = (store.calls.get(id) for id in past.looks)
    same = json.dumps(first.result) == json.dumps(other.result)
    assert same is (past.engine == "wasm")
    if same:
        assert first.result["structuredContent"]["now"] == FROZEN_TIME_NS / 1e9
    found = one(past, past.looks[1])
    assert (found.verdict == "same") is same
    if not same:
        assert told(found)[0].startswith("/result/structuredContent/")


def test_the_present_time_that_a_pure_tool_declared_is_recorded(past: Past, copy: Past) -> None:
    async def run() -> str:
        async with open_app(copy.settings(), "call") as app:
            made = app.forge.shelf.load_bundle(app.store.servers.get("clockwork"))
            made = replace(made, version=2, permissions=("clock", "random"))
            app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None)
            return await invoked(app, "clockwork.look", n=7)

    id = asyncio.run(run())
    with stored(copy) as store:
        now = store.calls.get(id).result["structuredContent"]["now"]
    assert now > FROZEN_TIME_NS / 1e9 + 86_400
    if past.engine == "wasm":
        assert one(copy, id).verdict == "same"


def test_a_call_is_run_in_the_version_that_it_ran_in(copy: Past) -> None:
    async def run() -> None:
        async with open_app(copy.settings(), "call") as app:
            made = app.forge.shelf.load_bundle(app.store.servers.get("clockwork"))
            other = replace(made, version=2, source_code=made.source_code.replace("1 // 0", "1"))
            app.forge.shelf.publish_bundle(other, build_entry(other, 1.0), (), None)

    asyncio.run(run())
    assert one(copy, copy.failed).verdict == "same"


def test_a_changed_server_is_a_difference(copy: Past) -> None:
    place = copy.home / "servers" / "things"
    for source in (place / "server.py", place / "history" / "1" / "server.py"):
        source.write_text(source.read_text() + "\n# another\n")
    for id in (copy.read, copy.forged):
        where, expected, got = told(one(copy, id))
        assert (where, expected) == ("/server", "things version 1 as it was registered")
        assert "not those that were registered" in got


def test_a_server_that_is_gone_is_a_difference(copy: Past) -> None:
    shutil.rmtree(copy.home / "servers" / "things")
    assert told(one(copy, copy.read))[0] == "/server"


def test_another_result_than_stored_is_a_difference(changed: Past) -> None:
    edited(changed, "UPDATE invocations SET result = replace(result, 'oar', 'ore')")
    found = told(one(changed, changed.read))
    assert found == ("/result/structuredContent/body/name", '"ore"', '"oar"')


def answered_otherwise(recording: CallRecording) -> CallRecording:
    (first,) = recording.exchanges
    return replace(
        recording, exchanges=(replace(first, response=WireResponse(200, JSON, b'{"name": "ore"}')),)
    )


def asked_otherwise(recording: CallRecording) -> CallRecording:
    (first,) = recording.exchanges
    other = replace(first.request, url=first.request.url + "?x=1")
    return replace(recording, exchanges=(replace(first, request=other),))


@pytest.mark.parametrize(
    ("change", "where", "expected", "got"),
    [
        (answered_otherwise, "/result/structuredContent/body/asked", '"', "nothing"),
        (asked_otherwise, "/exchanges/0/request/url", 'thing?x=1"', 'thing"'),
        (lambda r: replace(r, exchanges=()), "/exchanges/0", "nothing", "/thing"),
        (lambda r: replace(r, exchanges=r.exchanges * 2), "/exchanges/1", "/thing", "nothing"),
        (lambda r: replace(r, arguments={"x": 1}), "/arguments/x", "nothing", "1"),
        (lambda r: replace(r, base="other"), "/recording", "what the audit says", "was edited"),
    ],
)
def test_another_recording_is_a_difference(
    changed: Past,
    change: Callable[[CallRecording], CallRecording],
    where: str,
    expected: str,
    got: str,
) -> None:
    rerecorded(changed, changed.read, change)
    found = one(changed, changed.read)
    assert told(found)[0] == where
    assert expected in told(found)[1]
    assert got in told(found)[2]
    assert any("the database was edited" in note for note in found.notes)


def test_another_component_or_image_is_told_and_compared_all_the_same(changed: Past) -> None:
    rerecorded(changed, changed.read, lambda recording: replace(recording, base="sha256:older"))
    notes = one(changed, changed.read).notes
    assert any("another than it ran in (sha256:older)" in note for note in notes)


def test_a_failure_of_another_kind_is_a_difference(changed: Past) -> None:
    edited(changed, "UPDATE invocations SET failure_kind = 'tool' WHERE id = ?", changed.failed)
    assert told(one(changed, changed.failed)) == ("/failure/kind", '"tool"', '"exception"')


def test_a_run_replays_its_calls_and_says_why_a_proposal_cannot_be(past: Past) -> None:
    found = one(past, past.run)
    assert (found.verdict, found.subject) == ("same", "things.get_thing")
    assert found.id.startswith(f"{past.run}-s1-1")
    proposed = one(past, past.proposal)
    assert proposed.verdict == "not replayed"
    assert "it made no call" in proposed.reason


def test_a_forge_is_replayed_by_its_stages(changed: Past) -> None:
    found = one(changed, changed.forged)
    assert (found.verdict, found.subject, found.version) == ("same", "things", 1)
    edited(changed, "UPDATE reports SET report = replace(report, '\"passed\"', '\"failed\"')")
    where, expected, got = told(one(changed, changed.forged))
    assert where.startswith("/mock/cases/")
    assert (expected, got) == ('"failed"', '"passed"')


def test_a_forge_that_registered_nothing_cannot_be_replayed(changed: Past) -> None:
    edited(changed, "UPDATE jobs SET state = 'failed', message = 'no such host', result = 'null'")
    found = one(changed, changed.forged)
    assert (found.verdict, "no such host" in found.reason) == ("not replayed", True)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM recordings", "not kept any more"),
        ("UPDATE recordings SET content = NULL", "too large"),
        ("UPDATE recordings SET content = x'00'", "damaged"),
        ("UPDATE invocations SET state = 'unknown'", "not known"),
        ("UPDATE invocations SET failure_kind = 'cancelled'", "the client cancelled it"),
        ("UPDATE invocations SET failure_kind = 'frozen'", "the kill switch ended it"),
    ],
)
def test_what_cannot_be_run_again_says_why(changed: Past, statement: str, reason: str) -> None:
    edited(changed, statement)
    found = one(changed, changed.read)
    assert (found.verdict, reason in found.reason) == ("not replayed", True), found


def test_nothing_is_replayed_while_frozen(copy: Past) -> None:
    with stored(copy) as store:
        store.processes.freeze(time.time(), by="test")
    with pytest.raises(Frozen):
        copy.again(copy.read, None)


def test_an_id_of_nothing_or_of_several_is_refused(changed: Past) -> None:
    for id in ("", "zz", "%"):
        with pytest.raises(RowNotFound):
            changed.again(id, None)
    with stored(changed) as store:
        for id in ("ff11", "ff12"):
            store.calls.record(replace(store.calls.get(changed.read), id=id), now=1.0)
    with pytest.raises(AmbiguousId, match="ff11, ff12"):
        changed.again("ff", None)


def test_the_command_prints_the_first_difference_and_leaves_with_its_status(copy: Past) -> None:
    environment = {"TOOLWRIGHT_HOME": str(copy.home), "PYTHONPATH": str(ROOT)}
    home = Home(copy.home, {**os.environ, **environment, "TOOLWRIGHT_ENGINE": copy.engine})
    same = home.run("replay", copy.read)
    assert (same.returncode, same.stdout.partition(":")[0]) == (0, "same"), same.stderr
    edited(copy, "UPDATE invocations SET result = replace(result, 'oar', 'ore')")
    words = home.run("replay", copy.read)
    assert words.returncode == 1
    assert "at /result/structuredContent/body/name" in words.stdout
    assert 'expected "ore"' in words.stdout
    other = home.run("replay", copy.proposal, "--json")
    said = json.loads(other.stdout)
    assert (other.returncode, said["verdict"]) == (4, "not replayed")
    assert "it made no call" in said["replays"][0]["reason"]
