"""Where things are, and the few knobs; the only place that reads the environment."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.errors import HomeUnusable, UnknownEngine
from orchestrator.modelsettings import ModelSettings, load_model_settings

EngineName = Literal["docker", "wasm", "auto"]
INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""What a server without a cage gets of our environment, as from any MCP client."""
ENGINES: tuple[EngineName, ...] = ("docker", "wasm", "auto")


@dataclass(frozen=True)
class EngineSettings:
    """Which engine runs servers, and with what.

    `cache` holds the compiled WASM component, `instance` labels containers, `runtime` is Docker's
    for them. `private` are places of ours that no server may be given, `inherited` the environment
    of a third-party server that a person chose to run without a cage.
    """

    name: EngineName
    cache: Path
    instance: str = "homeless"
    spares: int = 0
    runtime: str | None = None
    private: tuple[Path, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Settings:
    """One installation: everything it keeps is under `home`, but for the compiled WASM component,
    which all homes of a user share in `cache`. Times are seconds.

    `answer_seconds` is how long a tool call may keep a client waiting before it gets a handle
    (common clients cut at 60 s); `spares` is how many empty containers wait for the next bundle;
    `vault_key` is the file that the vault's key is in, which lies outside `home`, and `own_key`
    whether somebody named it; `recordings_mb` is how much is kept of what calls took in, for
    `toolwright replay`. `public_url` is where a phone reaches the control plane, for the links of
    messages; by default its own URL.
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
    recordings_mb: int = 256
    public_url: str = ""
    vault_key: Path = Path("vault.key")
    own_key: bool = False
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    of_model: ModelSettings = field(default_factory=ModelSettings)

    @property
    def of_engine(self) -> EngineSettings:
        return EngineSettings(
            self.engine,
            self.cache,
            self.instance,
            self.spares,
            self.container_runtime,
            (self.home, self.cache, self.vault_key),
            self.inherited,
        )

    @property
    def servers(self) -> Path:
        return self.home / "servers"

    @property
    def push(self) -> Path:
        return self.home / "push.json"

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
    def http_token(self) -> Path:
        return self.home / "http.token"

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

    Makes the home directory (mode 0700) and its identity. Raises HomeUnusable, UnknownEngine,
    SettingInvalid.
    """
    given = os.environ if environment is None else environment
    home = home or Path(given.get("TOOLWRIGHT_HOME") or Path.home() / ".toolwright")
    home = home.expanduser().absolute()
    chosen = _engine(given, engine)
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
        recordings_mb=int(given.get("TOOLWRIGHT_RECORDINGS_MB") or Settings.recordings_mb),
        public_url=(given.get("TOOLWRIGHT_PUBLIC_URL") or "").rstrip("/"),
        vault_key=_vault_key(given),
        own_key=bool(given.get("TOOLWRIGHT_VAULT_KEY_FILE")),
        inherited={name: given[name] for name in INHERITED if name in given},
        of_model=load_model_settings(given),
    )


def load_engine_settings(
    environment: Mapping[str, str] | None = None, *, engine: str | None = None
) -> EngineSettings:
    """The same for a process that has no home. Raises UnknownEngine."""
    given = os.environ if environment is None else environment
    return EngineSettings(_engine(given, engine), _cache(given))


def _engine(given: Mapping[str, str], engine: str | None) -> EngineName:
    chosen = engine or given.get("TOOLWRIGHT_ENGINE") or "auto"
    if chosen not in ENGINES:
        raise UnknownEngine(chosen, ENGINES)
    return chosen


def _cache(given: Mapping[str, str]) -> Path:
    """The user's cache directory (XDG Base Directory specification)."""
    own = given.get("TOOLWRIGHT_CACHE")
    shared = Path(given.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).absolute() if own else shared / "toolwright" / "wasm"


def _vault_key(given: Mapping[str, str]) -> Path:
    """A file that was named, or one in the user's configuration (XDG Base Directory
    specification).
    """
    own = given.get("TOOLWRIGHT_VAULT_KEY_FILE")
    shared = Path(given.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(own).expanduser().absolute() if own else shared / "toolwright" / "vault.key"


def _identity(path: Path) -> str:
    """The installation's random name, made on first use; two first uses agree on one."""
    try:
        with path.open("x") as file:
            file.write(uuid.uuid4().hex[:12])
    except FileExistsError:
        pass
    return path.read_text().strip() or "unnamed"
