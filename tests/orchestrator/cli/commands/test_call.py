"""`toolwright call`: what is recorded of where it was made."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.calls import Call, Done, RefusedCall
from orchestrator.cli.commands.call import MadeCall, call_command
from sandbox.session.interface import Failure, Outcome
from tests.registry.samples import BLANK


@pytest.mark.parametrize(
    ("words", "reason", "session"),
    [
        ((), "called at the terminal", "terminal"),
        (("--from-page",), "called on the control page", "page"),
    ],
)
def test_a_call_is_recorded_as_made_where_a_person_made_it(
    words: tuple[str, ...], reason: str, session: str, tmp_path: Path
) -> None:
    made: list[Call] = []

    def make_call(call: Call) -> MadeCall:
        made.append(call)
        return RefusedCall(call, "a test"), []

    own = {"TOOLWRIGHT_HOME": str(tmp_path / "none")}
    CliRunner().invoke(call_command, ["lifts.close", "{}", *words], obj=make_call, env=own)
    assert [(call.reason, call.session) for call in made] == [(reason, session)]
    assert "--from-page" not in CliRunner().invoke(call_command, ["--help"]).output


def test_a_call_that_an_api_answers_otherwise_now_says_what_becomes_of_it(
    tmp_path: Path,
) -> None:
    failure = Failure("http", "HTTP 404 Not Found", 404)
    standing = BLANK
    why = "drift: the API answers 404 where its description has an operation; job r1 mends it"

    def make_call(call: Call) -> MadeCall:
        return Done(
            call, "c1", Outcome("list", {}, failure), standing, cause=why, is_drift=True
        ), []

    own = {"TOOLWRIGHT_HOME": str(tmp_path / "none")}
    told = CliRunner().invoke(call_command, ["lifts.list", "{}"], obj=make_call, env=own)
    assert told.exit_code == 1
    assert f"(Why: {why})" in " ".join(told.stderr.split())
