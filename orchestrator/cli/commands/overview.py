"""`toolwright` without a command: what runs, what waits for you, and what to type next."""

from __future__ import annotations

from orchestrator.cli.next_steps import (
    choose_next_commands,
    print_next_commands,
    read_home_state,
    render_home_state,
)
from orchestrator.cli.terminal import print_json, print_text, report_errors
from orchestrator.settings import load_settings


@report_errors
def show_overview(as_json: bool) -> None:
    """Print the state of the home and three commands."""
    state = read_home_state(load_settings())
    if as_json:
        print_json({**vars(state), "next": choose_next_commands(state)})
        return
    for line in render_home_state(state):
        print_text(line)
    print_next_commands(state)
    print_text("`toolwright --help` lists all commands.")
