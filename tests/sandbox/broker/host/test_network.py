"""The network besides HTTP: what is granted is answered, all else refused before it leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.draft import Draft, parse_draft
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import ReplayBroker
from sandbox.broker.host.network import NetworkAccess
from sandbox.broker.host.tools import KnownCalls
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission, build_request_pattern, parse_permission
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Outcome
from sandbox.session.recorded_case import RecordedCase
from sandbox.session.recording import CallLog
from sandbox.stages.cases import prove_cases
from sandbox.stages.prove import prove_bundle
from sandbox.stages.recorded import prove_recorded
from sandbox.stages.static.stage import prove_static
from sandbox.wire.exchange import (
    Capture,
    Release,
    WireRequest,
    WireResponse,
    WriteMode,
    digest_request,
)
from sandbox.wire.policy import Policy
from tests.engine.samples import body, bundle
from tests.sandbox.local import LocalRunner
from tests.world.network import line_server, name_server, tls_server

EXAMPLES = Path(__file__).parents[4] / "examples"
SECONDS = 60.0
"""What an answer may take that comes; a busy machine may need some."""
SOURCE = """
from toolwright import network, tool

@tool
def dns(name="", type="A", server=""):
    return network.dns(name, type, server)

@tool
def tls(host="", port=0):
    return network.tls_peer(host, port)

@tool
def tcp(host="", port=0, data="", until="", max_bytes=65536):
    return {"got": network.tcp(host, port, data, until, max_bytes).decode()}
"""
ASKING = bundle(SOURCE, "dns", "tls", "tcp", pure=True)


def asked(
    tool: str,
    granted: Collection[str],
    writes: WriteMode = None,
    private: Collection[tuple[str, int]] = (),
    **arguments: Any,
) -> tuple[Outcome, Broker]:
    given = tuple(map(parse_permission, granted))
    access = NetworkAccess(lambda: given, lambda: private, seconds=SECONDS, server_seconds=SECONDS)
    broker = Broker(Policy(()), body(b"{}"), writes=writes, local=access)
    return called(broker, tool, **arguments), broker


def called(broker: Broker, tool: str, tape: CallLog | None = None, **arguments: Any) -> Outcome:
    async def work() -> Outcome:
        async with LocalRunner().open(ASKING, broker) as session:
            return await session.call(tool, arguments, tape=tape)

    return asyncio.run(work())


def failure(outcome: Outcome) -> tuple[str, str]:
    assert outcome.failure is not None
    return outcome.failure.kind, outcome.failure.message


def test_a_certificate_that_nobody_vouches_for_is_told_with_the_problem(tmp_path: Path) -> None:
    with tls_server(tmp_path) as port:
        outcome, _ = asked("tls", [f"tls:localhost:{port}"], host="localhost", port=port)
    told = outcome.structured
    assert (told["verified"], told["names"], told["serial"]) == (False, ["shop.test"], "4711")
    assert "self-signed" in told["problem"].replace(" ", "-")
    assert told["not_after"] == "2031-05-06T07:08:09+00:00"
    assert told["subject"] == told["issuer"] == "CN=shop.test"
    assert told["protocol"].startswith("TLSv1.")
    assert len(told["fingerprint_sha256"]) == 64


def test_any_host_on_a_port_is_any_public_host(tmp_path: Path) -> None:
    with line_server({}) as lines:
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port}
        any_host = [f"tls:*:{lines.port}"]
        kind, message = failure(asked("tls", any_host, private=[tuple(at.values())], **at)[0])
        assert (kind, "private address" in message) == ("refused", True)
        assert failure(asked("tls", ["tls:*:443"], **at)[0])[0] == "refused"
        assert failure(asked("tls", [f"tcp:127.0.0.1:{lines.port}"], **at)[0])[0] == "refused"
        assert lines.asked == []


def test_a_name_that_leads_to_a_private_address_needs_a_word_of_its_own() -> None:
    async def inside(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with line_server({b"hello": b"world"}) as lines:
        target = ("inside.test", lines.port)
        given = (Permission("tcp", f"inside.test:{lines.port}"),)
        at: dict[str, Any] = {"host": "inside.test", "port": lines.port, "data": "hello\n"}
        for private, kind in (((), "refused"), ((target,), "")):
            access = NetworkAccess(lambda: given, lambda p=private: p, inside)  # type: ignore[misc]
            outcome = called(Broker(Policy(()), body(b"{}"), local=access), "tcp", **at)
            assert (outcome.failure.kind if outcome.failure else "") == kind
        assert lines.asked == [b"hello"]


def test_a_name_is_asked_of_the_server_that_is_granted_for_its_zone() -> None:
    zone = {("www.shop.test", "A"): ("192.0.2.7", "192.0.2.8"), ("shop.test", "TXT"): ('"a b"',)}
    with name_server(zone) as port:
        server = f"127.0.0.1:{port}"
        granted = [f"dns:shop.test@{server}"]
        one, _ = asked("dns", granted, name="WWW.shop.test.", server=server)
        answers = ["192.0.2.7", "192.0.2.8"]
        assert one.structured == {"answers": answers, "rcode": "NOERROR", "ttl": 300}
        text, _ = asked("dns", granted, name="shop.test", type="TXT", server=server)
        assert text.structured["answers"] == ['"a b"']
        none, _ = asked("dns", granted, name="no.shop.test", server=server)
        assert none.structured == {"answers": [], "rcode": "NXDOMAIN", "ttl": None}
        for name, at in (
            ("shop.test.evil.test", server),
            ("myshop.test", server),
            ("www.shop.test", ""),
            ("www.shop.test", "127.0.0.2:53"),
        ):
            assert failure(asked("dns", granted, name=name, server=at)[0])[0] == "refused"
        anything, _ = asked("dns", [f"dns:*@{server}"], name="else.test", server=server)
        assert anything.structured["rcode"] == "NXDOMAIN"


def test_a_long_answer_of_the_name_system_comes_over_tcp() -> None:
    records = tuple(f"192.0.2.{n}" for n in range(100))
    with name_server({("many.test", "A"): records}) as port:
        server = f"127.0.0.1:{port}"
        outcome, _ = asked("dns", [f"dns:many.test@{server}"], name="many.test", server=server)
    assert sorted(outcome.structured["answers"]) == sorted(records)


def test_one_request_has_one_bounded_answer() -> None:
    with line_server({b"who": b"first\nsecond\n"}) as lines:
        granted = [f"tcp:127.0.0.1:{lines.port}"]
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port, "data": "who\r\n"}
        assert asked("tcp", granted, **at)[0].structured == {"got": "first\nsecond\n"}
        assert asked("tcp", granted, **at, until="\n")[0].structured == {"got": "first\n"}
        assert asked("tcp", granted, **at, max_bytes=3)[0].structured == {"got": "fir"}
        elsewhere = {**at, "host": "127.0.0.2"}
        assert failure(asked("tcp", granted, **elsewhere)[0])[0] == "refused"


def test_what_never_answers_ends_in_time() -> None:
    with line_server({}, silent=True) as lines:
        given = (Permission("tcp", f"127.0.0.1:{lines.port}"),)
        access = NetworkAccess(lambda: given, seconds=0.2)
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port, "data": "x\n"}
        outcome = called(Broker(Policy(()), body(b"{}"), local=access), "tcp", **at)
    kind, message = failure(outcome)
    assert (kind, "within 0.2 s" in message) == ("unreachable", True)


def test_what_is_sent_waits_for_a_person_like_a_write() -> None:
    with line_server({b"hello": b"hi"}) as lines:
        granted = [f"tcp:127.0.0.1:{lines.port}"]
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port}
        held, broker = asked("tcp", granted, Capture(), **at, data="hello\n")
        assert failure(held)[0] == "captured"
        assert broker.captured is not None
        assert broker.captured.method == "TALK"
        assert broker.captured.body == b"hello\n"
        release = Release(digest_request(broker.captured))
        assert not asked("tcp", granted, release, **at, data="other\n")[0].ok
        assert lines.asked == []
        assert asked("tcp", granted, release, **at, data="hello\n")[0].structured == {"got": "hi"}
        assert lines.asked == [b"hello"]


def test_frozen_and_ungranted_ask_nothing() -> None:
    with line_server({}) as lines:
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port, "data": "x\n"}
        assert failure(asked("tcp", [], **at)[0])[0] == "refused"
        access = NetworkAccess(lambda: (Permission("tcp", f"127.0.0.1:{lines.port}"),))
        kill_switch = KillSwitch()
        kill_switch.engage()
        frozen = Broker(Policy(()), body(b"{}"), local=access, kill_switch=kill_switch)
        assert failure(called(frozen, "tcp", **at))[0] == "frozen"
        assert lines.asked == []


def test_what_was_recorded_is_answered_again_without_a_network() -> None:
    tape = CallLog()
    with line_server({b"hello": b"hi"}) as lines:
        at: dict[str, Any] = {"host": "127.0.0.1", "port": lines.port, "data": "hello\n"}
        access = NetworkAccess(lambda: (Permission("tcp", f"127.0.0.1:{lines.port}"),))
        called(Broker(Policy(()), body(b"{}"), local=access), "tcp", tape, **at)
    replay = ReplayBroker(tuple(tape.exchanges))
    assert called(replay, "tcp", **at).structured == {"got": "hi"}
    assert not replay.surprises


def test_what_fails_on_our_side_is_told_to_the_code_at_once() -> None:
    class Broken:
        async def send(self, request: WireRequest) -> WireResponse:
            raise ZeroDivisionError("a mistake of ours")

    broker = Broker(Policy(()), body(b"{}"), local=Broken())
    kind, message = failure(called(broker, "tls", host="a.test", port=443))
    assert (kind, "ZeroDivisionError" in message) == ("refused", True)
    assert "a mistake" not in message


@pytest.mark.parametrize(
    "arguments",
    [
        {"tool": "dns", "name": "a b"},
        {"tool": "dns", "name": "a.test", "type": "AXFR"},
        {"tool": "dns", "name": "x" * 300},
        {"tool": "tls", "host": "a.test/x", "port": 443},
        {"tool": "tls", "host": "0x7f.1", "port": 443},
        {"tool": "tls", "host": "a.test", "port": 70000},
        {"tool": "tcp", "host": "a.test", "port": 1, "max_bytes": 1 << 30},
        {"tool": "tcp", "host": "a.test", "port": 1, "data": "x" * 100_000},
    ],
)
def test_what_is_no_well_formed_question_is_refused(arguments: dict[str, Any]) -> None:
    outcome, _ = asked(granted=["dns:*", "tls:*:443"], **arguments)
    assert failure(outcome)[0] == "refused"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("tls:Shop.test:443", "tls:shop.test:443"),
        ("tls:*:443", "tls:*:443"),
        ("dns:*", "dns:*"),
        ("dns:shop.test", "dns:shop.test"),
        ("dns:shop.test@9.9.9.9", "dns:shop.test@9.9.9.9:53"),
        ("tcp:whois.iana.org:43", "tcp:whois.iana.org:43"),
        ("call:a.b_c", "call:a.b_c"),
    ],
)
def test_a_permission_has_one_plain_form(text: str, plain: str) -> None:
    assert str(parse_permission(text)) == plain
    assert (build_request_pattern(text) is not None) == (text == plain)


@pytest.mark.parametrize(
    "text",
    [
        "tcp:*:43",
        "tcp:shop.test",
        "tls:*",
        "tls:shop.test",
        "tls:*.test:443",
        "dns:",
        "dns:127.0.0.1",
        "dns:shop.test@",
        "call:a",
        "call:a.b.c",
        "call:*.b",
    ],
)
def test_what_is_no_permission_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is n"):
        parse_permission(text)


@pytest.mark.parametrize(("permission", "loud"), [("tls:*:443", 1), ("dns:*", 1), ("dns:a.b", 0)])
def test_a_wide_permission_is_said_aloud(permission: str, loud: bool) -> None:
    assert bool(parse_permission(permission).warning) == loud


def test_code_that_uses_what_its_bundle_does_not_declare_is_found() -> None:
    for permissions, missing in (
        ((), {"network"}),
        (("dns:*",), {"tls", "tcp"}),
        (("dns:*", "tls:*:443", "tcp:a.test:1"), set()),
    ):
        findings = prove_static(replace(ASKING, permissions=permissions)).findings
        told = " ".join(f.reason for f in findings if f.rule == "undeclared-use")
        assert all(word in told for word in missing)
        assert bool(told) == bool(missing)


def test_a_tool_that_talks_is_a_write() -> None:
    (pattern,) = filter(None, [build_request_pattern("tcp:a.test:1")])
    talking = replace(ASKING.tools[2], requests=(pattern,))
    made = replace(ASKING, tools=(talking,), permissions=("tcp:a.test:1",))
    rules = {finding.rule for finding in prove_static(made).findings}
    assert "unsafe-read" in rules


def test_a_recorded_call_is_a_case_of_later_versions() -> None:
    made, draft = example("mooring")
    (one, *_) = draft.examples
    answers = KnownCalls(one.answers)
    tape = CallLog(calls=answers)

    async def work() -> Outcome:
        broker = Broker(Policy(()), body(b"{}"))
        async with LocalRunner().open(made, broker) as session:
            return await session.call(one.tool, one.arguments, tape=tape)

    assert asyncio.run(work()).ok
    kept = RecordedCase("it", one.tool, one.arguments, tuple(tape.exchanges))
    report = asyncio.run(prove_recorded(made, (kept,), LocalRunner()))
    assert report.verdict == "passed", report.cases
    lost = RecordedCase("it", one.tool, one.arguments, tuple(tape.exchanges)[:2])
    assert asyncio.run(prove_recorded(made, (lost,), LocalRunner())).verdict == "failed"


def example(name: str, **instead: str) -> tuple[Bundle, Draft]:
    """An example's bundle, with some of its texts replaced."""
    draft = (EXAMPLES / name / "draft.json").read_text()
    code = (EXAMPLES / name / "server.py").read_text()
    for old, new in instead.items():
        draft, code = draft.replace(old, new), code.replace(old, new)
    read = parse_draft({**json.loads(draft), "code": code})
    assert isinstance(read, Draft), read
    return build_bundle(read, Purpose("an example", name, "0")), read


@pytest.mark.parametrize(
    "name", ["container_logs", "dns_propagation", "mooring", "ssl_expiry", "whois"]
)
def test_an_example_passes_its_cases(name: str) -> None:
    made, draft = example(name)
    assert prove_static(made).findings == ()
    broker = Broker(Policy(()), body(b"{}"))
    report = asyncio.run(
        prove_cases(made, draft.examples, lambda: LocalRunner().open(made, broker))
    )
    assert [case for case in report.cases if case.verdict != "passed"] == []


@pytest.mark.parametrize("name", ["container_logs", "ssl_expiry"])
def test_an_example_passes_every_stage(name: str) -> None:
    made, draft = example(name)
    proof = asyncio.run(prove_bundle(made, LocalRunner(), examples=draft.examples))
    assert proof.passed, proof.reports


def run(made: Bundle, tool: str, **arguments: Any) -> Any:
    """What a tool gives on the real network, with all that its bundle declares."""
    given = tuple(map(parse_permission, made.permissions))
    access = NetworkAccess(lambda: given, seconds=SECONDS, server_seconds=SECONDS)
    broker = Broker(Policy(()), body(b"{}"), local=access)

    async def work() -> Outcome:
        async with LocalRunner().open(made, broker) as session:
            return await session.call(tool, arguments)

    outcome = asyncio.run(work())
    assert outcome.ok, outcome.failure
    return outcome.structured


def test_the_examples_work_on_servers_that_answer(tmp_path: Path) -> None:
    known = b"% note\r\nrefer: whois.nic.test\r\ndomain: TEST\r\n"
    with line_server({b"shop.test": known}) as lines:
        here = {"whois.iana.org": "127.0.0.1", "43": str(lines.port)}
        told = run(example("whois", **here)[0], "whois", domain="shop.test")
        assert told["refer"] == "whois.nic.test"
    with tls_server(tmp_path) as port:
        # The port goes first: its own digits may be 443.
        here = {"443": str(port), f"tls:*:{port}": f"tls:localhost:{port}"}
        made = example("ssl_expiry", **here)[0]
        told = run(made, "ssl_expiry", host="localhost", on="2031-05-01")
        assert (told["state"], told["days"]) == ("bad", 5)
    zone = {("www.shop.test", "A"): ("192.0.2.7",)}
    with name_server(zone) as new, name_server({}) as old:
        places = {
            "1.1.1.1:53": f"127.0.0.1:{new}",
            "8.8.8.8:53": f"127.0.0.1:{old}",
            "9.9.9.9:53": f"127.0.0.1:{new}",
        }
        made = example("dns_propagation", **places)[0]
        wanted = {"name": "www.shop.test", "type": "A", "expected": "192.0.2.7"}
        told = run(made, "dns_propagation", **wanted)
    assert told["missing"] == {f"127.0.0.1:{old}": ["NXDOMAIN"]}
