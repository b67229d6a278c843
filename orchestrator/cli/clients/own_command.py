"""The command that starts this installation of Toolwright again, from any directory."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from orchestrator.errors import OrchestratorError
from sandbox.modulepath import RUN_MODULE

PACKAGE = "toolwright"
_UV_CACHE = re.compile(r"(?:archive|environments)-v\d+\Z")
Which = Callable[[str], str | None]


def find_own_command(
    prefix: Path = Path(sys.prefix),
    executable: Path = Path(sys.executable),
    origin: str | None = None,
    which: Which = shutil.which,
) -> tuple[str, ...]:
    """The command by its absolute path, since clients have a PATH of their own.

    `uvx` and `pipx run` keep their environments only for a while, so what was started by one is
    started by it again, from the same `origin` (a URL, "" for the package index). Raises
    OrchestratorError where it cannot be found.
    """
    runner = _detect_runner(prefix)
    if runner:
        return _build_runner_command(runner, _read_origin() if origin is None else origin, which)
    beside = executable.with_name(PACKAGE)
    return (str(beside),) if beside.exists() else (str(executable), *RUN_MODULE[1:], "orchestrator")


def _detect_runner(prefix: Path) -> str:
    """`uvx` or `pipx` for an environment that they keep only for a while, else ""."""
    parts = prefix.parts
    if any(map(_UV_CACHE.match, parts)):
        return "uvx"
    pairs = itertools.pairwise(parts)
    is_pipx = any(pair in (("pipx", ".cache"), (".cache", "pipx")) for pair in pairs)
    return "pipx" if is_pipx else ""


def _build_runner_command(runner: str, origin: str, which: Which) -> tuple[str, ...]:
    found = which(runner)
    if found is None:
        install = "uv tool install" if runner == "uvx" else "pipx install"
        raise OrchestratorError(
            f"this is an environment that {runner} made for a while, and {runner} is not on the "
            f"PATH to make it again. Install Toolwright to stay: {install} {PACKAGE}"
        )
    path = str(Path(found).absolute())
    if runner == "uvx":
        return (path, *(("--from", f"{PACKAGE} @ {origin}") if origin else ()), PACKAGE)
    return (path, "run", *(("--spec", origin) if origin else ()), PACKAGE)


def _read_origin() -> str:
    """The URL that the package was installed from (PEP 610); "" for the package index."""
    try:
        told = distribution(PACKAGE).read_text("direct_url.json")
        url = json.loads(told)["url"] if told else ""
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return ""
    return url if isinstance(url, str) else ""
