"""What a session promises, whichever engine is behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle, read_bundle
from sandbox.bundle.report import Proof
from sandbox.credentials.source import CredentialSource
from sandbox.errors import CallTimedOut, Frozen, LoadFailed, SessionBroken
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Outcome, Runner
from sandbox.stages.prove import prove_bundle
from sandbox.wire.exchange import Caps
from sandbox.wire.policy import Origin, Policy
from tests.engine.conftest import Engine
from tests.engine.samples import FETCH, RUN, Gate, body, broker, bundle
from tests.sandbox.local import LocalRunner
from tests.sandbox.stages.test_prove import BAD, BUNDLES, check_bad, check_good
from tests.world.powerdns import PowerDNS, powerdns

__all__ = ["powerdns"]

Matrix = dict[tuple[str, str, str], str]


def matrix(proof: Proof) -> Matrix:
    """The verdict of every stage and cell."""
    found: Matrix = {(report.stage, "", ""): report.verdict for report in proof.reports}
    for report in proof.reports:
        found |= {(report.stage, c.operation, c.case): c.verdict for c in report.cases}
    return found


@asynccontextmanager
async def uncaged() -> AsyncIterator[Runner]:
    yield LocalRunner()


def called(engine: Engine, of: Bundle, tool: str, upstream: Any, **arguments: Any) -> Outcome:
    async def run() -> Outcome:
        async with engine() as runner, runner.open(of, broker(of, upstream)) as session:
            return await session.call(tool, arguments)

    return asyncio.run(run())


def test_good_and_bad_bundles_get_the_verdicts_they_deserve(engine: Engine) -> None:
    async def run() -> dict[str, Proof]:
        async with engine() as runner:
            names = ("good", *BAD)
            return {name: await prove_bundle(read_bundle(BUNDLES / name), runner) for name in names}

    proofs = asyncio.run(run())
    check_good(proofs.pop("good"))
    for name, proof in proofs.items():
        check_bad(name, proof)


def test_every_cell_is_what_an_uncaged_runtime_gets(engine: Engine) -> None:
    async def run(name: str) -> None:
        made = read_bundle(BUNDLES / name)
        async with engine() as runner:
            assert matrix(await prove_bundle(made, runner)) == matrix(
                await prove_bundle(made, LocalRunner())
            )

    for name in ("good", "unvalidated_answer"):
        asyncio.run(run(name))


def test_powerdns_is_proved_against_its_own_document_and_itself(
    engine: Engine, powerdns: PowerDNS
) -> None:
    at = f"{powerdns.url}/api/docs"
    document = parse_document(powerdns.ask("GET", "/api/docs").body, "powerdns", url=at)
    made = compile_document(document).bundle
    here = frozenset({Origin("http", powerdns.host, powerdns.port)})
    declared = {credential.name: credential for credential in made.credentials}
    credentials = CredentialSource(declared, lambda name: powerdns.key)

    async def run() -> Proof:
        async with LiveHttp(here) as live, engine() as runner:
            real = Broker(Policy(()), live, credentials=credentials)
            return await prove_bundle(made, runner, live=real)

    proof = asyncio.run(run())
    assert [report.verdict for report in proof.reports] == ["passed"] * 3
    assert len({case.operation for case in proof.reports[1].cases}) == 36


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (404, b'{"error": "gone"}', "http"),
        (200, b'{"cut', "malformed"),
        (200, b"[" * 100_000, "malformed"),
        (200, b"[" * 300 + b"]" * 300, "too_large"),
        (200, b"[NaN]", "malformed"),
        (200, b'{"n": 123456789012345678901234567890}', None),
        (200, b'{"a": 1, "a": 2, "\xc3\xa9": "\\ud800"}', None),
        (200, b'{"f": 1e400}', "too_large"),
    ],
)
def test_hostile_json_is_told_as_an_uncaged_runtime_tells_it(
    engine: Engine, status: int, content: bytes, kind: str | None
) -> None:
    of = bundle(FETCH, "fetch")
    outcome = called(engine, of, "fetch", body(content, status), key="a")
    expected = called(uncaged, of, "fetch", body(content, status), key="a")
    assert (outcome.failure and outcome.failure.kind) == kind
    assert outcome.result == expected.result
    assert outcome.exchanges[0].response == expected.exchanges[0].response


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("1 / 0", "bug"),
        ("raise SystemExit(1)", "bug"),
        ("def f(): f()\nf()", "bug"),
        ("got = {1, 2}", "bug"),
        ("got = float('nan')", "bug"),
        ("http.request('GET', '/items/..')", "refused"),
        ("http.request('DELETE', '/items/a')", "refused"),
        ("http.request('GET', 'https://evil.test/items/a')", "refused"),
        ("http.request('GET', '/items/{k}', path={'k': '..'})", "arguments"),
        ("x = 1\nfor _ in range(300): x = [x]\ngot = x", "too_large"),
    ],
)
def test_faults_of_the_code_are_structured_failures(engine: Engine, code: str, kind: str) -> None:
    outcome = called(engine, bundle(RUN, "run"), "run", body(b"{}"), code=code)
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert outcome.result["isError"] is True


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def (:\n", "line 1: SyntaxError"),
        ("X = 1\nY = X / 0\n", "line 2: ZeroDivisionError"),
        ("import numpy\n", "line 1: ModuleNotFoundError"),
        ("X = 1\n", "no @tool fetch"),
        ("def f(): f()\nf()\n", "line 1: RecursionError"),
    ],
)
def test_code_that_does_not_load_is_refused_with_its_line(
    engine: Engine, source: str, told: str
) -> None:
    with pytest.raises(LoadFailed, match=told):
        called(engine, bundle(source, "fetch"), "fetch", body(b"{}"))


def test_a_call_without_end_is_cut_and_ends_its_session(engine: Engine) -> None:
    of = bundle(RUN, "run")

    async def run() -> None:
        async with engine() as runner, runner.open(of, broker(of, body(b"{}"))) as session:
            with pytest.raises(CallTimedOut):
                await session.call("run", {"code": "while True: pass"}, 0.2)
            with pytest.raises(SessionBroken):
                await session.call("run", {"code": ""})

    asyncio.run(run())


def test_the_brake_cuts_what_computes_and_what_waits(engine: Engine) -> None:
    of = bundle(RUN, "run")
    wait = {"code": "http.request('GET', '/items/a')"}

    async def run() -> None:
        kill_switch, gate = KillSwitch(), Gate(2)
        async with engine(kill_switch=kill_switch) as runner:
            async with runner.open(of, broker(of, gate)) as session:
                waiting = asyncio.ensure_future(session.call("run", wait))
                await gate.arrived.wait()
                computing = asyncio.ensure_future(session.call("run", {"code": "while 1: pass"}))
                await asyncio.sleep(0)
                kill_switch.engage()
                for task in (waiting, computing):
                    with pytest.raises(Frozen):
                        await task
            with pytest.raises(Frozen):
                async with runner.open(of, broker(of, gate)):
                    raise AssertionError("opened")

    asyncio.run(run())


def test_calls_run_side_by_side_while_they_wait(engine: Engine) -> None:
    of = bundle(FETCH, "fetch", author="compiler")

    async def run() -> None:
        gate = Gate(4)
        async with engine() as runner, runner.open(of, broker(of, gate)) as session:
            outcomes = await asyncio.gather(
                *(session.call("fetch", {"key": str(n)}) for n in range(12))
            )
        assert all(outcome.ok for outcome in outcomes)
        sent = [outcome.exchanges[0].request.url.rpartition("/")[2] for outcome in outcomes]
        assert sent == [str(n) for n in range(12)]

    asyncio.run(run())


def test_a_cancelled_call_leaves_the_session_usable(engine: Engine) -> None:
    of = bundle(RUN, "run")
    wait = {"code": "http.request('GET', '/items/a')"}

    async def run() -> None:
        gate = Gate(2)
        async with engine() as runner, runner.open(of, broker(of, gate)) as session:
            call = asyncio.ensure_future(session.call("run", wait))
            await gate.arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await session.call("run", {"code": "got = 1"})).structured == {"got": 1}

    asyncio.run(run())


def test_requests_past_the_cap_are_refused(engine: Engine) -> None:
    of = bundle(RUN, "run")
    code = """
refused = 0
for n in range(30):
    try:
        http.request("GET", "/items/a")
    except Exception as error:
        refused += error.kind == "refused"
got = refused
"""

    async def run() -> Outcome:
        within = broker(of, body(b"{}"), Caps(exchanges=20))
        async with engine() as runner, runner.open(of, within) as session:
            return await session.call("run", {"code": code})

    outcome = asyncio.run(run())
    assert outcome.structured == {"got": 10}
    assert len(outcome.exchanges) == 30


def test_a_memory_bomb_ends_the_call_or_the_session_but_nothing_else(engine: Engine) -> None:
    of = bundle(RUN, "run")
    bomb = {"code": "x = []\nwhile True: x.append(bytearray(1 << 20))"}

    async def run() -> None:
        async with engine() as runner:
            async with runner.open(of, broker(of, body(b"{}"))) as session:
                try:
                    outcome = await session.call("run", bomb)
                    assert outcome.failure is not None
                    assert outcome.failure.kind == "bug"
                except SessionBroken:
                    pass
            async with runner.open(of, broker(of, body(b"{}"))) as session:
                assert (await session.call("run", {"code": "got = 2"})).structured == {"got": 2}

    asyncio.run(run())


def test_the_listed_tools_are_the_bundles(engine: Engine) -> None:
    of = bundle(FETCH, "fetch")

    async def run() -> None:
        async with engine() as runner, runner.open(of, broker(of, body(b"{}"))) as session:
            listed = await session.list_tools()
            assert [tool["name"] for tool in listed] == ["fetch"]
            assert listed[0] == {**of.tools[0].build_listing(of.base_url)}

    asyncio.run(run())
