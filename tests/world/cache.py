"""Where downloaded parts of the outside world are kept between test runs."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2] / ".cache"


class Unavailable(Exception):
    """A part of the outside world cannot be had on this machine. The message is the skip reason."""


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The directory of that name, made once: whole or not at all, also by several processes.

    `make` fills a directory that is put in place when it returns. Raises what `make` raises.
    """
    ready = ROOT / "world" / name
    if ready.is_dir():
        return ready
    with _lock(ready.parent / f"{name}.lock"):
        if not ready.is_dir():
            partial = ready.parent / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(ready)
    return ready


def run(command: Sequence[str], directory: Path, seconds: float = 300.0) -> str:
    """The output of a command that fetches something. Raises Unavailable with its last words."""
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=True,
        )
    except FileNotFoundError as error:
        raise Unavailable(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} took longer than {seconds:g} s") from error
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip().splitlines() or ["no output"]
        raise Unavailable(f"{' '.join(command[:2])} failed: {words[-1][:200]}") from error
    return done.stdout


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    (ROOT / ".gitignore").write_text("*\n")
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
