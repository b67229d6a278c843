"""What commands print at a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from orchestrator.cli.terminal import Screen, print_noted_table, print_table, use_screen

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
