"""What commands print at a terminal."""

from __future__ import annotations

import json
from io import BytesIO, StringIO, TextIOWrapper

from rich.console import Console

from orchestrator.cli.terminal import (
    Screen,
    print_json,
    print_noted_table,
    print_table,
    use_screen,
)

ID = "62a214b42b74ff27"


def print_rows(width: int, *notes: str) -> list[str]:
    console = Console(
        file=StringIO(), width=width, soft_wrap=True, force_terminal=True, color_system=None
    )
    with use_screen(Screen(console, console)):
        print_noted_table(("job", "state"), [(ID, "waiting")] * len(notes), notes)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_the_note_of_a_row_stands_below_it_in_the_width_of_the_terminal() -> None:
    lines = print_rows(
        60, "no model is configured \x1b[31mand\nthe client's cannot be asked " * 2, ""
    )
    assert lines[:2] == ["job               state", f"{ID}  waiting"]
    assert lines[2].startswith("  no model is configured")
    assert all(line.startswith("  ") for line in lines[2:-1])
    assert max(map(len, lines)) <= 60
    assert lines[-1] == f"{ID}  waiting"
    assert "\x1b" not in "".join(lines)


def test_an_id_is_whole_also_on_a_narrow_terminal() -> None:
    assert f"{ID}  waiting" in print_rows(10, "a note")


def test_a_row_is_one_line_where_no_terminal_shows_it() -> None:
    console = Console(file=StringIO(), width=20, highlight=False)
    with use_screen(Screen(console, console)):
        print_table(("tool", "task"), [("nursery.list_plants", "all\nthat is green")])
        print_noted_table(("job",), [(ID,)], ["a note that is longer than twenty"])
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "tool                 task",
        "nursery.list_plants  all that is green",
        "job",
        ID,
        "  a note that is longer than twenty",
    ]


def print_calls(width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    with use_screen(Screen(console, console)):
        print_table(
            ("call", "when", "tool", "outcome", "task"),
            [
                (ID, "7 minutes ago", "nursery.list_plants", "arguments (input)", "all green ones"),
                (ID, "a day ago", "nursery.get_plant", "ok", ""),
            ],
        )
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_no_word_of_a_table_is_broken_where_the_terminal_has_room_for_it() -> None:
    for width in (70, 80, 100, 200):
        lines = print_calls(width)
        words = {word for line in lines for word in line.split()}
        assert {"nursery.list_plants", "minutes", "arguments", "(input)", "green"} <= words
        assert max(map(len, lines)) <= width
    assert len(print_calls(200)) == 3


def test_a_row_is_a_block_of_lines_where_its_columns_have_no_room() -> None:
    assert print_calls(54) == [
        f"call     {ID}",
        "when     7 minutes ago",
        "tool     nursery.list_plants",
        "outcome  arguments (input)",
        "task     all green ones",
        "",
        f"call     {ID}",
        "when     a day ago",
        "tool     nursery.get_plant",
        "outcome  ok",
    ]


def test_a_long_word_is_broken_before_the_columns_of_a_row_are_parted() -> None:
    console = Console(file=StringIO(), width=50, force_terminal=True, color_system=None)
    with use_screen(Screen(console, console)):
        print_table(("name", "goes to"), [("key", "https://api.example.com:8443/v2/accounts")])
    head, *lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert head.split() == ["name", "goes", "to"]
    assert "".join(lines).split()[0] == "key"


def test_a_tools_name_is_whole_on_a_narrow_terminal_too() -> None:
    assert "nursery.list_plants" in " ".join(print_calls(50))


def test_a_table_without_rows_shows_its_heads() -> None:
    console = Console(file=StringIO(), width=20, force_terminal=True, color_system=None)
    with use_screen(Screen(console, console)):
        print_table(("tool", "task"), [])
    assert console.file.getvalue().split() == ["tool", "task"]  # type: ignore[attr-defined]


def test_json_is_valid_where_the_output_has_no_bytes_for_a_letter() -> None:
    written = BytesIO()
    file = TextIOWrapper(written, encoding="latin-1", errors="backslashreplace")
    console = Console(file=file, width=80)
    with use_screen(Screen(console, console)):
        print_json({"name": "K\u00f6nig \u25c2"})
    file.flush()
    assert b"\\u25c2" in written.getvalue()
    assert json.loads(written.getvalue().decode("latin-1")) == {"name": "K\u00f6nig \u25c2"}
