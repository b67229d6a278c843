"""From nothing to a first answer: the commands of README.md, typed as they stand there.

    python -m bench.newcomer [--readme FILE] [--docker]

Builds the wheel, then types the README's three commands at a terminal, in an empty user directory
without any cache: what pipx and pip fetch, the WASM component, the home and its PIN are all made
anew. The API is examples/harbour, on the port that the README names. Without `--docker` no engine
answers. Prints the count of commands and how long each took, with its parts. pipx itself and the
wheel are made ready before; they are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.terminal import open_shell, read_terminal

ROOT = Path(__file__).parents[1]
SECONDS = 600.0
PIN = "newcomer-4711"
NO_ENGINE = "unix:///nonexistent/docker.sock"
ANSWERS = (("Choose a PIN", PIN), ("confirmation", PIN), ("[y/N]", "y"), ("PIN", PIN))
PARTS = ("compiling the WASM component", "WASM component:", "building toolwright-base", "[y/N]")
"""What stands at the terminal where a part of a command ends and the next one begins."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROGRAMS = ("pipx ", "uvx ", "toolwright ")


@dataclass(frozen=True)
class TypedCommand:
    """A command that ended: `moments` are seconds from its start until a text stood there, `cpu`
    the processor seconds of all that it started.
    """

    command: str
    seconds: float
    cpu: float
    shown: str
    status: int
    moments: Mapping[str, float]


def read_commands(readme: str) -> tuple[str, ...]:
    """The commands of the README's first block of code that begins with an installation, without
    their comments.
    """
    block: list[str] = []
    is_fenced = False
    for line in [*readme.splitlines(), ""]:
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            block.append(re.sub(r"\s+#.*", "", line.strip()))
            continue
        if block and block[0].startswith(("pipx install ", "uvx ")):
            return tuple(each for each in block if each.startswith(_PROGRAMS))
        block.clear()
    return ()


def type_command(command: str, environment: Mapping[str, str], place: Path) -> TypedCommand:
    """Type a command into a shell and answer what it asks, until it ends."""
    begun, worked, shown, asked_from = time.monotonic(), _read_cpu(), "", 0
    answers, moments = list(ANSWERS), dict[str, float]()
    with open_shell(command, environment, place) as (process, terminal):
        while part := read_terminal(terminal, SECONDS):
            shown += part
            for text in PARTS:
                if text in shown:
                    moments.setdefault(text, time.monotonic() - begun)
            question = shown[asked_from:]
            waits = question.rstrip().endswith(":")
            if waits and answers and answers[0][0] in question:
                os.write(terminal, answers.pop(0)[1].encode() + b"\n")
                asked_from = len(shown)
        status = process.wait(SECONDS)
    seconds, cpu = time.monotonic() - begun, _read_cpu() - worked
    return TypedCommand(command, seconds, cpu, shown, status, moments)


def _read_cpu() -> float:
    """Processor seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def serve_harbour(port: str, log: Path) -> Iterator[None]:
    """The example API, on that port."""
    script = ROOT / "examples" / "harbour" / "api.py"
    words = [sys.executable, str(script), "--port", port, "--log", str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            started = process.stdout.readline()
            if not started:
                raise SystemExit(f"port {port}, which the README names, is not free.")
            assert json.loads(started)["port"] == int(port)
            yield
        finally:
            process.terminate()


def prepare_machine(place: Path, with_docker: bool) -> dict[str, str]:
    """Build the wheel in `place`/dist and install pipx; the environment of a new user."""
    tools = place / "tools"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    pip = [str(tools / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "pipx"], check=True)
    wheel = ["wheel", "--no-deps", "--wheel-dir", str(place / "dist")]
    subprocess.run([*pip, *wheel, str(ROOT)], check=True)
    user = place / "user"
    user.mkdir()
    binaries = f"{user / '.local' / 'bin'}:{tools / 'bin'}"
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PIP_") or name in ("LANG", "TERM", "PATH", "DOCKER_HOST")
    }
    environment = {
        **kept,
        "HOME": str(user),
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "COLUMNS": "100",
        # Nothing may outlive the directory that all this is in.
        "TOOLWRIGHT_RESIDENT": "off",
        "TERM": "dumb",
    }
    return environment if with_docker else {**environment, "DOCKER_HOST": NO_ENGINE}


def print_command(typed: TypedCommand) -> None:
    print(f"$ {typed.command}")
    for line in _CONTROL.sub("", typed.shown).rstrip().split("\n"):
        # What a line that is written again and again, such as a spinner's, ends as.
        print(line.rstrip("\r").rpartition("\r")[2])
    print(f"--- {typed.seconds:.1f} s, {typed.cpu:.1f} s of CPU, exit {typed.status}", end="")
    for text, moment in typed.moments.items():
        print(f"; {text!r} after {moment:.1f} s", end="")
    print(flush=True)


def type_all(
    commands: Sequence[str], environment: Mapping[str, str], place: Path
) -> list[TypedCommand]:
    """Type the commands one after the other, until one fails."""
    done = []
    for command in commands:
        done.append(type_command(command, environment, place))
        print_command(done[-1])
        if done[-1].status:
            break
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--docker", action="store_true", help="let Docker answer")
    args = parser.parse_args()
    commands = read_commands(args.readme.read_text())
    port = re.search(r"//127\.0\.0\.1:(\d+)", " ".join(commands))
    if port is None:
        raise SystemExit(f"{args.readme} has no block that installs Toolwright and forges an API.")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        environment = prepare_machine(place, args.docker)
        with serve_harbour(port[1], place / "requests.jsonl"):
            done = type_all(commands, environment, place)
    total = sum(each.seconds for each in done)
    cpu = sum(each.cpu for each in done)
    print(f"{len(done)} of {len(commands)} commands, {total:.1f} s, {cpu:.1f} s of CPU")
    raise SystemExit(len(done) < len(commands) or done[-1].status)


if __name__ == "__main__":
    main()
