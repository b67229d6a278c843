"""Where things are, and the few knobs; the only place that reads the environment."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.errors import HomeUnusable, UnknownEngine

EngineName = Literal["docker", "wasm", "auto"]
ENGINES: tuple[EngineName, ...] = ("docker", "wasm", "auto")


@dataclass(frozen=True)
class Settings:
    """One installation: everything it keeps is under `home`, but for the compiled WASM component,
    which all homes of a user share in `cache`. Times are seconds.

    `answer_seconds` is how long a tool call may keep a client waiting before it gets a handle
    (common clients cut at 60 s); `spares` is how many empty containers wait for the next bundle.
    """

    home: Path
    database_url: str
    instance: str
    answer_seconds: float = 25.0
    idle_seconds: float = 60.0
    approval_seconds: float = 24 * 3600.0
    spares: int = 1
    container_runtime: str | None = None
    engine: EngineName = "auto"
    cache: Path = Path("cache")

    @property
    def servers(self) -> Path:
        return self.home / "servers"

    @property
    def vault(self) -> Path:
        return self.home / "vault.json"

    @property
    def pin(self) -> Path:
        return self.home / "pin.json"

    @property
    def control(self) -> Path:
        return self.home / "control.json"

    @property
    def reserve(self) -> Path:
        return self.home / "reserve"

    @property
    def heads(self) -> Path:
        return self.home / "audit"

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints.db"


def load_settings(
    environment: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    engine: str | None = None,
) -> Settings:
    """The settings of the environment: TOOLWRIGHT_HOME, TOOLWRIGHT_DATABASE_URL and so on; `home`
    and `engine` go before it.

    Makes the home directory (mode 0700) and its identity. Raises HomeUnusable, UnknownEngine.
    """
    given = os.environ if environment is None else environment
    home = home or Path(given.get("TOOLWRIGHT_HOME") or Path.home() / ".toolwright")
    home = home.expanduser().absolute()
    chosen = engine or given.get("TOOLWRIGHT_ENGINE") or "auto"
    if chosen not in ENGINES:
        raise UnknownEngine(chosen, ENGINES)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        instance = _identity(home / "instance")
    except OSError as error:
        raise HomeUnusable(str(home), error.strerror or str(error)) from error
    return Settings(
        home=home,
        database_url=given.get("TOOLWRIGHT_DATABASE_URL") or f"sqlite:///{home / 'toolwright.db'}",
        instance=instance,
        answer_seconds=float(given.get("TOOLWRIGHT_ANSWER_SECONDS") or Settings.answer_seconds),
        approval_seconds=float(
            given.get("TOOLWRIGHT_APPROVAL_SECONDS") or Settings.approval_seconds
        ),
        spares=int(given.get("TOOLWRIGHT_SPARES") or Settings.spares),
        container_runtime=given.get("TOOLWRIGHT_CONTAINER_RUNTIME") or None,
        engine=chosen,
        cache=_cache(given),
    )


def _cache(given: Mapping[str, str]) -> Path:
    """The user's cache directory (XDG Base Directory specification)."""
    own = given.get("TOOLWRIGHT_CACHE")
    shared = Path(given.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).absolute() if own else shared / "toolwright" / "wasm"


def _identity(path: Path) -> str:
    """The installation's random name, made on first use; two first uses agree on one."""
    try:
        with path.open("x") as file:
            file.write(uuid.uuid4().hex[:12])
    except FileExistsError:
        pass
    return path.read_text().strip() or "unnamed"
