"""Files and values of the host, as a forged server gets them over its pipe."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.host.local import LocalAccess
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.stages.static.stage import prove_static
from sandbox.wire.exchange import Capture, Release, WriteMode, digest_request
from sandbox.wire.policy import Policy
from tests.engine.conftest import Engine
from tests.engine.samples import body, bundle

SOURCE = """
from toolwright import environment, files, tool

@tool
def read(path=""):
    return {"text": files.read_text(path), "size": len(files.read(path))}

@tool
def entries(path=""):
    return {"names": [entry["name"] for entry in files.entries(path)]}

@tool
def write(path="", text=""):
    files.write(path, text)
    return {"done": True}

@tool
def secret(name=""):
    return {"length": len(environment.get(name)), "value": environment.get(name)}
"""
STRING = {"type": "string"}
ARGUMENTS = {"type": "object", "properties": dict.fromkeys(("path", "text", "name"), STRING)}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Bundle, Path]:
    (tmp_path / "a.txt").write_text("grüße")
    return replace(
        bundle(SOURCE, "read", "entries", "write", "secret", pure=True),
        permissions=("env:TOKEN", f"fs:{tmp_path}:rw"),
    ), tmp_path


def called(
    engine: Engine,
    made: Bundle,
    granted: tuple[Permission, ...],
    tool: str,
    writes: WriteMode = None,
    tape: CallLog | None = None,
    **arguments: Any,
) -> tuple[Outcome, Broker]:
    local = LocalAccess(lambda: granted, {"TOKEN": "token-4711-4711", "OTHER": "x"}.get)
    broker = Broker(Policy(()), body(b"{}"), writes=writes, local=local)

    async def work() -> Outcome:
        async with engine() as runner, runner.open(made, broker) as session:
            return await session.call(tool, arguments, tape=tape)

    return asyncio.run(work()), broker


def test_granted_files_are_read_listed_and_written(
    engine: Engine, made: tuple[Bundle, Path]
) -> None:
    server, place = made
    given = (Permission("fs", str(place), writable=True),)
    read, _ = called(engine, server, given, "read", path=f"{place}/a.txt")
    assert read.structured == {"text": "grüße", "size": 7}
    listed, _ = called(engine, server, given, "entries", path=str(place))
    assert listed.structured == {"names": ["a.txt"]}
    written, _ = called(engine, server, given, "write", path=f"{place}/b", text="new")
    assert written.ok
    assert (place / "b").read_text() == "new"


def test_what_was_not_granted_is_refused_whatever_the_bundle_declares(
    engine: Engine, made: tuple[Bundle, Path]
) -> None:
    server, place = made
    (place / "link").symlink_to("/etc/passwd")
    readable = (Permission("fs", str(place)),)
    for granted, tool, arguments in (
        ((), "read", {"path": f"{place}/a.txt"}),
        (readable, "read", {"path": "/etc/passwd"}),
        (readable, "read", {"path": f"{place}/../x"}),
        (readable, "read", {"path": f"{place}/link"}),
        (readable, "write", {"path": f"{place}/a.txt", "text": "x"}),
        (readable, "secret", {"name": "TOKEN"}),
        ((Permission("env", "TOKEN"),), "secret", {"name": "OTHER"}),
    ):
        outcome, _ = called(engine, server, granted, tool, **arguments)
        assert outcome.failure
        assert outcome.failure.kind == "refused"
    assert (place / "a.txt").read_text() == "grüße"


def test_a_value_reaches_the_code_and_nothing_else(
    engine: Engine, made: tuple[Bundle, Path]
) -> None:
    tape = CallLog()
    outcome, _ = called(
        engine, made[0], (Permission("env", "TOKEN"),), "secret", tape=tape, name="TOKEN"
    )
    assert outcome.structured == {"length": 15, "value": "[redacted]"}
    assert "token-4711" not in repr((outcome, tape))
    assert tape.exchanges[0].request.url == "env:TOKEN"


def test_a_write_is_held_for_approval_like_a_request(
    engine: Engine, made: tuple[Bundle, Path]
) -> None:
    server, place = made
    given = (Permission("fs", str(place), writable=True),)
    arguments = {"path": f"{place}/held", "text": "content"}
    held, broker = called(engine, server, given, "write", Capture(), **arguments)
    assert held.failure
    assert held.failure.kind == "captured"
    assert broker.captured
    assert broker.captured.method == "WRITE"
    assert broker.captured.body == b"content"
    assert not (place / "held").exists()
    digest = Release(digest_request(broker.captured))
    other, _ = called(engine, server, given, "write", digest, **{**arguments, "text": "other"})
    assert not other.ok
    assert not (place / "held").exists()
    done, _ = called(engine, server, given, "write", digest, **arguments)
    assert done.ok
    assert (place / "held").read_text() == "content"


def test_the_static_gate_admits_code_that_uses_them(made: tuple[Bundle, Path]) -> None:
    typed = tuple(replace(t, input_schema=ARGUMENTS) for t in made[0].tools)
    findings = prove_static(replace(made[0], tools=typed)).findings
    assert [f for f in findings if f.rule == "forbidden-import"] == []
