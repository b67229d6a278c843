"""Run the commands of the how-to pages in fresh homes, and compare what they print with the pages.

    python scripts/howto.py [PAGE…]           # says where a page differs
    python scripts/howto.py --fill [PAGE…]    # writes what is missing below a command

A block of ```console has commands (`$ …`) and what they print. A line `…` stands for any lines, and
what differs from run to run (ids, times, dates, digests) is not compared. `ID` in a command without
output is the last id that was shown. The example API answers at 127.0.0.1:8080 on the page, at
another port here. `<!-- first: COMMAND -->` runs a command that the page does not show,
`<!-- api: OPTIONS -->` gives the API these options, `<!-- answer: QUESTION = TEXT -->` answers a
question. Servers run on the WASM engine, or on `<!-- engine: docker -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.terminal import open_shell, read_terminal

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "howto"
BINARIES = Path(sys.executable).parent
SHOWN_AT = "127.0.0.1:8080"
PIN = "a-pin-of-mine"
SECONDS = 90.0
"""A command that is silent for so long is ended."""
ANSWERS = (
    ("Choose a PIN", PIN),
    ("confirmation", PIN),
    ("[y/N]", "y"),
    ("PIN", PIN),
)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_DIRECTIVE = re.compile(r"<!-- (first|api|answer|engine): (.*?) -->")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ID = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{16}\b")
_VARYING = (
    # Before ids: what a date or an amount begins with may be as long as one.
    (
        re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z|[+-]\d\d:?\d\d)?)?"),
        "TIME",
    ),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|MB|kB|bytes|B|h|hours|days)\b"), "AMOUNT"),
    (re.compile(r"\bsha256:[0-9a-f]+…?|\b(?=[0-9a-f]*\d)[0-9a-f]{4,64}\b…?"), "ID"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"\b(\d+|an?) (second|minute|hour)s? ago|\b(just )?now$"), "TIME"),
    (re.compile(r"/tmp/\S+?(?=[\s,;:'\"]|$)"), "PATH"),  # nosec B108 # a pattern of what is shown
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A command of a page and the lines that stand below it."""

    command: str
    printed: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What of a page is run."""

    steps: tuple[Step, ...]
    first: tuple[str, ...]
    api: tuple[str, ...]
    answers: tuple[tuple[str, str], ...]
    engine: str = "wasm"


@dataclass(frozen=True)
class Shown:
    """What a command printed at a terminal."""

    step: Step
    lines: tuple[str, ...]
    latest: str
    """The last id that was shown before."""


def read_page(text: str) -> Page:
    """The commands of a page's blocks, with what it says of how to run them."""
    told = _DIRECTIVE.findall(text)
    answers = [value.partition(" = ") for kind, value in told if kind == "answer"]
    return Page(
        tuple(step for block in _BLOCK.findall(text) for step in _read_steps(block)),
        tuple(value for kind, value in told if kind == "first"),
        tuple(word for kind, value in told if kind == "api" for word in value.split()),
        tuple((question, answer) for question, _, answer in answers),
        next((value for kind, value in told if kind == "engine"), "wasm"),
    )


def _read_steps(block: str) -> Iterator[Step]:
    command, printed = "", list[str]()
    for line in block.splitlines():
        if command.endswith("\\"):
            command = command[:-1].rstrip() + " " + line.strip()
        elif line.startswith("$ "):
            if command:
                yield Step(command, tuple(printed))
            command, printed = line[2:], []
        else:
            printed.append(line)
    if command:
        yield Step(command, tuple(printed))


def run_page(page: Page, place: Path) -> Iterator[Shown]:
    """Run a page's commands in a home below `place`, and beside them the example API."""
    environment = {**prepare_environment(place), "TOOLWRIGHT_ENGINE": page.engine}
    with serve_example(place, page.api) as port:
        for command in page.first:
            _type(_at(command, port), environment, place, page.answers)
        renamed, latest = dict[str, str](), ""
        for step in page.steps:
            command = step.command
            for shown, real in renamed.items():
                command = re.sub(rf"\b{shown[:4]}[0-9a-f]*\b", real, command)
            command = re.sub(r"\bID\b", latest, command)
            typed = _type(_at(command, port), environment, place, page.answers)
            lines = tuple(_as_shown(line, place, port) for line in typed)
            ids = _ID.findall("\n".join(lines))
            renamed |= dict(zip(_ID.findall("\n".join(step.printed)), ids, strict=False))
            yield Shown(step, lines, latest)
            latest = ids[-1] if ids else latest
        # It ends what the commands started behind them, which works in `place`.
        _type("toolwright kill", environment, place, ())


def prepare_environment(place: Path) -> Mapping[str, str]:
    """A user with nothing but the compiled WASM component, who types in this checkout."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    cache = os.environ.get("TOOLWRIGHT_CACHE") or str(Path.home() / ".cache/toolwright/wasm")
    for name in ("examples",):
        (place / name).symlink_to(ROOT / name)
    return {
        **kept,
        "PATH": f"{BINARIES}:{kept.get('PATH', os.defpath)}",
        "HOME": str(place),
        "TOOLWRIGHT_HOME": str(place / ".toolwright"),
        "TOOLWRIGHT_CACHE": cache,
        "COLUMNS": "96",
        "TERM": "dumb",
        # Seconds: a command on a loaded machine waits for the resident process, as on a quiet one.
        "TOOLWRIGHT_RESIDENT": "20",
    }


@contextmanager
def serve_example(place: Path, options: Sequence[str]) -> Iterator[int]:
    """examples/harbour on a free port."""
    script = ROOT / "examples" / "harbour" / "api.py"
    log = place / "requests.jsonl"
    words = [sys.executable, str(script), "--port", "0", "--log", str(log), *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(re.findall(r"\d+", process.stdout.readline())[0])
        finally:
            process.terminate()


def _as_shown(line: str, place: Path, port: int) -> str:
    """The line as it is on a machine whose user is `you` and whose API has the page's port."""
    changes = (
        (f"127.0.0.1:{port}", SHOWN_AT),
        (str(BINARIES), "/home/you/.local/bin"),
        (str(place), "/home/you"),
        (str(ROOT), "/home/you/toolwright"),
    )
    for real, shown in changes:
        line = line.replace(real, shown)
    return line


def _at(command: str, port: int) -> str:
    return command.replace(SHOWN_AT, f"127.0.0.1:{port}")


def _type(
    command: str,
    environment: Mapping[str, str],
    place: Path,
    answers: Sequence[tuple[str, str]],
) -> tuple[str, ...]:
    """What a command prints at a terminal at which its questions are answered."""
    shown, answered = "", 0
    with open_shell(command, environment, place) as (process, terminal):
        while part := read_terminal(terminal, SECONDS):
            shown += part
            question = shown[answered:]
            asked = question.rstrip().rpartition("\n")[2]
            if question.endswith((": ", "? ")) and (answer := _find_answer(asked, answers)):
                os.write(terminal, answer.encode() + b"\n")
                answered = len(shown)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            # It waits for an answer that nobody gives.
            process.terminate()
    return tuple(_clean(shown))


def _find_answer(asked: str, answers: Sequence[tuple[str, str]]) -> str:
    """The answer to the first question that stands in what was asked."""
    return next((text for question, text in (*answers, *ANSWERS) if question in asked), "")


def _clean(shown: str) -> Iterator[str]:
    """The lines that stand at the terminal in the end."""
    for line in _CONTROL.sub("", shown).strip("\r\n").split("\n"):
        yield line.rstrip("\r").rpartition("\r")[2].rstrip()


def find_difference(expected: Sequence[str], lines: Sequence[str]) -> str:
    """The first expected line that was not printed where it stands; "" where all were."""
    wanted = [_level(line) for line in expected if line.strip()]
    printed = [_level(line) for line in lines if line.strip()]
    at, is_loose = 0, False
    for line in wanted:
        if line.strip() == "…":
            is_loose = True
            continue
        places = range(at, len(printed)) if is_loose else range(at, min(at + 1, len(printed)))
        found = next((place for place in places if _is_alike(line, printed[place])), None)
        if found is None:
            return line
        at, is_loose = found + 1, False
    return "" if is_loose or at == len(printed) else f"(more was printed: {printed[at]})"


def _is_alike(expected: str, line: str) -> bool:
    """`…` at the end of an expected line stands for the rest of it."""
    if expected.endswith("…"):
        return line.startswith(expected.removesuffix("…").rstrip())
    return line == expected


def _level(line: str) -> str:
    """The line without what differs from run to run."""
    for pattern, replacement in _VARYING:
        line = pattern.sub(replacement, line)
    return line.strip()


def fill(text: str, shown: Sequence[Shown]) -> str:
    """The page with what was printed below each command that has nothing below it."""
    for each in shown:
        if each.step.printed:
            continue
        first = each.step.command.split("\\")[0][:40]
        pattern = re.compile(rf"^\$ {re.escape(first)}(?:[^\n]*\\\n)*[^\n]*\n(?=\$ |```)", re.M)
        found = pattern.search(text)
        if found is not None:
            command = re.sub(r"\bID\b", each.latest[:4], found[0])
            filled = command + "".join(f"{line}\n" for line in each.lines if line)
            text = text[: found.start()] + filled + text[found.end() :]
    return text


def main() -> None:
    names = [word for word in sys.argv[1:] if word != "--fill"]
    pages = [Path(name) for name in names] or [ROOT / "docs" / "index.md", *PAGES.glob("*.md")]
    different = 0
    for path in sorted(pages):
        text = path.read_text("utf-8")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            shown = list(run_page(read_page(text), Path(scratch)))
        if "--fill" in sys.argv:
            path.write_text(fill(text, shown), "utf-8")
            continue
        for each in shown:
            if difference := find_difference(each.step.printed, each.lines):
                different += 1
                print(f"{path.name}: $ {each.step.command}\n  differs at: {difference}")
                print("\n".join(f"  | {line}" for line in each.lines))
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
