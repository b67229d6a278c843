"""What the page says where a text names a command of the terminal."""

from __future__ import annotations

import pytest

from orchestrator.control.clicks import name_clicks, split_services
from orchestrator.forging.contact.suggestions import describe_suggestions


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("lift it with `toolwright unfreeze`", "lift it with “Unfreeze” at the top"),
        (
            "grant it with `toolwright source allow localhost:9`",
            "grant it with “Allow a host” under Sources & secrets (localhost:9)",
        ),
        (
            "The key is missing. Run `toolwright secret set dns.token`.",
            "The key is missing. Use “Secrets” under Sources & secrets (dns.token).",
        ),
        (
            "`toolwright approve a1` or the control page decides it.",
            "“Approve” under Approvals decides it.",
        ),
        ("`toolwright jobs j1 --cancel` ends it", "“Cancel” beside it ends it"),
        (
            "To allow it: `toolwright grant mail network:api.example:443`",
            "To allow it: “Let it connect to a host” on its page under Servers",
        ),
        # Done at the terminal alone.
        ("`toolwright grant mail env:KEY` gives it", "`toolwright grant mail env:KEY` gives it"),
        (
            "`toolwright setup --engine-only` builds it",
            "`toolwright setup --engine-only` builds it",
        ),
        ("toolwright unfreeze", "toolwright unfreeze"),
        ("`toolwright `", "`toolwright `"),
        ("`toolwright unfreeze", "`toolwright unfreeze"),
    ],
)
def test_a_command_is_told_as_what_is_pressed_on_the_page(said: str, shown: str) -> None:
    assert name_clicks(said) == shown


def test_services_that_may_be_meant_are_taken_out_of_their_commands() -> None:
    lines = describe_suggestions("manage DNS records at 'Hetzner'")
    others, services = split_services(("One of these:", *lines))
    assert others == ("One of these:",)
    assert [each.source for each in services] == ["directory:hetzner.cloud"]
    assert "toolwright" not in services[0].title


@pytest.mark.parametrize(
    "line", ["x: toolwright forge 'cut at the…", "x: toolwright forge task", "no command"]
)
def test_a_line_that_names_no_whole_command_stays_as_it_is(line: str) -> None:
    assert split_services((line,)) == ((line,), ())
