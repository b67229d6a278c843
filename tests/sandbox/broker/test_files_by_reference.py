"""A tool's large input: the caller names a file, the tool gets its text."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE
from forge.drafts.draft import BY_FILE, Draft, parse_draft
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.broker.host.local import LocalAccess
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.policy import Policy
from tests.sandbox.computing import computing, takes
from tests.sandbox.local import LocalRunner

CODE = '''
from toolwright import tool


@tool
def halve(log, level="ERROR"):
    """Lines of a level."""
    return {"lines": sum(1 for line in log.splitlines() if level in line), "size": len(log)}
'''
LOG: dict[str, Any] = {"type": "string", "x-toolwright-file": True, "maxLength": 8_000_000}


def bundle(**log: Any) -> Bundle:
    made = computing(CODE)
    schema = takes(log={**LOG, **log}, level={"type": "string"})
    schema["required"] = ["log"]
    return replace(made, tools=(replace(made.tools[0], input_schema=schema),))


def called(granted: Path, arguments: dict[str, Any], **log: Any) -> tuple[Outcome, CallLog]:
    rights = (Permission("fs", str(granted)),)
    local = LocalAccess(lambda: rights, lambda name: None)
    broker, tape = Broker(Policy(()), Cassette(()), local=local), CallLog()

    async def work() -> Outcome:
        async with LocalRunner().open(bundle(**log), broker) as session:
            return await session.call("halve", arguments, tape=tape)

    return asyncio.run(work()), tape


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    place = tmp_path / "my logs"
    place.mkdir()
    lines = [
        f"{n} {'ERROR' if n % 10 == 0 else 'INFO'} something happened\n" for n in range(180_000)
    ]
    (place / "app.log").write_text("".join(lines))
    return place


def test_a_log_of_five_megabytes_is_named_and_not_pasted(logs: Path) -> None:
    path = logs / "app.log"
    assert path.stat().st_size > 5_000_000
    outcome, tape = called(logs, {"log": path.as_uri()})
    assert outcome.structured == {"lines": 18_000, "size": path.stat().st_size}
    (exchange,) = tape.exchanges
    assert (exchange.request.method, exchange.request.url) == ("READ", path.as_uri())


def test_a_text_is_still_a_text(logs: Path) -> None:
    outcome, tape = called(logs, {"log": "1 ERROR x\n2 WARN file:///y", "level": "WARN"})
    assert outcome.structured == {"lines": 1, "size": 26}
    assert not tape.exchanges


def test_what_nobody_granted_is_not_read(logs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("ERROR")
    for url in (secret.as_uri(), f"{logs.as_uri()}/../secret", "file:///etc/passwd"):
        outcome, _ = called(logs, {"log": url})
        assert outcome.failure is not None
        assert outcome.failure.kind == "arguments"
        assert "toolwright grant SERVER fs:" in outcome.failure.message


def test_only_marked_arguments_are_files(logs: Path) -> None:
    uri = (logs / "app.log").as_uri()
    outcome, tape = called(logs, {"log": "a", "level": uri})
    assert outcome.ok
    assert not tape.exchanges


def test_a_file_is_held_to_the_arguments_schema(logs: Path) -> None:
    uri = (logs / "app.log").as_uri()
    outcome, _ = called(logs, {"log": uri}, maxLength=1000)
    assert outcome.failure is not None
    assert outcome.failure.kind == "arguments"
    (logs / "binary").write_bytes(b"\xff\xfe\x00")
    outcome, _ = called(logs, {"log": (logs / "binary").as_uri()})
    assert outcome.failure is not None
    assert "UTF-8" in outcome.failure.message


def test_callers_are_told_how_to_name_a_file() -> None:
    tool = {**EXAMPLE["tools"][0], "input_schema": bundle().tools[0].input_schema}
    made = parse_draft({**json.loads(json.dumps({**EXAMPLE, "tools": [tool], "cases": []}))})
    assert isinstance(made, Draft)
    assert made.tools[0].input_schema["properties"]["log"]["description"] == BY_FILE
    assert made.tools[0].files == ("log",)
