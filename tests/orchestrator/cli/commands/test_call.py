"""`toolwright call`: what is recorded of where it was made."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from orchestrator.calls import Call, RefusedCall
from orchestrator.cli.commands.call import MadeCall, call_command


@pytest.mark.parametrize(
    ("words", "reason", "session"),
    [
        ((), "called at the terminal", "terminal"),
        (("--from-page",), "called on the control page", "page"),
    ],
)
def test_a_call_is_recorded_as_made_where_a_person_made_it(
    words: tuple[str, ...], reason: str, session: str
) -> None:
    made: list[Call] = []

    def make_call(call: Call) -> MadeCall:
        made.append(call)
        return RefusedCall(call, "a test"), []

    CliRunner().invoke(call_command, ["lifts.close", "{}", *words], obj=make_call)
    assert [(call.reason, call.session) for call in made] == [(reason, session)]
    assert "--from-page" not in CliRunner().invoke(call_command, ["--help"]).output
