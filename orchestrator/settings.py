"""Settings and paths of an installation; the only module that reads the environment."""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from orchestrator.errors import BandsUnordered, HomeUnusable, SettingInvalid, UnknownEngine
from orchestrator.prices import FILE, ModelPrice, PriceTable
from registry.database.files import create_secret
from registry.models import Bands
from sandbox.budget import PROCESS_MB

MILLION = 1_000_000
MAX_NUMBER = 999_999_999.0
FREE = ModelPrice(0.0, 0.0)
RESTORING = Path(".restore", "commit")
"""Is in a home where `registry.backup.swap` has not finished to put a restored one in its place."""
PROBE_REQUESTS = 10
PROBE_SECONDS = 3.0


@dataclass(frozen=True)
class Budget:
    """Limits on the use of models. `forges` is how many forges in any 24 hours may have a model
    write. Tokens count in both directions; 0 tokens or 0 money means no limit. Prices are per
    million tokens and go before `prices`, the table by models; a model that neither knows costs
    nothing. `month_money` is for any 30 days.
    """

    forges: int = 3
    forge_tokens: int = 200_000
    day_tokens: int = 1_000_000
    forge_money: float = 0.0
    day_money: float = 0.0
    month_money: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0
    prices: PriceTable = field(default_factory=PriceTable)

    def compute_cost(
        self, tokens_in: int, tokens_out: int, model: str = "", cached: int = 0
    ) -> float:
        """The cost of a model's tokens, of which `cached` of those that went in came from its
        cache, in the currency of the prices. Raises PricesInvalid.
        """
        price = ModelPrice(self.price_in, self.price_out)
        if price == FREE and model:
            price = self.prices.find_price(model) or FREE
        less = 0.0 if price.cached is None else cached * (price.tokens_in - price.cached)
        return (tokens_in * price.tokens_in - less + tokens_out * price.tokens_out) / MILLION


@dataclass(frozen=True)
class DecisionBands:
    """From which P(the first is right) on what is done; `margin` is how far the first has to be
    ahead of the second (`Route.margin`), `adapt` from where on a tool that is to be made is so near
    a registered one that its server is extended.

    A tool taken at P >= .70 without a veto was the wrong one for .7 % of tasks that a tool fits and
    for 3.2 % of those that none does; P < .10 for 4.5 % of those whose first was right.
    """

    act: float = 0.85
    confirm: float = 0.40
    adapt: float = 0.70
    forge: float = 0.10
    margin: float = 0.05

    def build_search_bands(self) -> Bands:
        """The bands of a route's verdict: what comes to `adapt` can be reused."""
        return Bands(reuse=self.adapt, forge=self.forge)


def load_bands(given: Mapping[str, str]) -> DecisionBands:
    """TOOLWRIGHT_ROUTE_ACT, _CONFIRM, _ADAPT, _FORGE and _MARGIN: numbers from 0 to 1, where
    forge <= confirm <= adapt <= act. Raises SettingInvalid, BandsUnordered.
    """
    usual = DecisionBands()
    bands = DecisionBands(
        act=_parse_number(given, "TOOLWRIGHT_ROUTE_ACT", usual.act, 1.0),
        confirm=_parse_number(given, "TOOLWRIGHT_ROUTE_CONFIRM", usual.confirm, 1.0),
        adapt=_parse_number(given, "TOOLWRIGHT_ROUTE_ADAPT", usual.adapt, 1.0),
        forge=_parse_number(given, "TOOLWRIGHT_ROUTE_FORGE", usual.forge, 1.0),
        margin=_parse_number(given, "TOOLWRIGHT_ROUTE_MARGIN", usual.margin, 1.0),
    )
    if not bands.forge <= bands.confirm <= bands.adapt <= bands.act:
        raise BandsUnordered(bands.forge, bands.confirm, bands.adapt, bands.act)
    return bands


OPENAI = "https://api.openai.com/v1"


EndpointRole = Literal["author", "reader", "extractor", "fallback"]
"""Who asks: `author` writes code and answers what tasks ask, `reader` reads tasks for a second
time, `extractor` reads documentation. `fallback` is asked where the others do not answer.
"""
OTHER_ROLES: tuple[EndpointRole, ...] = ("reader", "extractor", "fallback")
KEY = "OPENAI_API_KEY"
"""The key's name, in the environment and, where that has none, in the vault."""


@dataclass(frozen=True)
class EndpointSettings:
    """An OpenAI-compatible endpoint. `model` is "" for the only one that it lists; `key_name` is
    what its key is called in the vault, where `key` has none.
    """

    url: str
    model: str = ""
    key: str = field(default="", repr=False)
    key_name: str = KEY


@dataclass(frozen=True)
class ModelSettings:
    """An OpenAI-compatible endpoint, with the names of the `openai` package, and our limits.

    Nothing is asked unless the model or the base URL is named. `others` are the endpoints of roles
    that have one of their own. `seconds` bounds one answer, `answer_tokens` its length; `effort` is
    how much models that reason are to reason, "" for what they do by themselves.
    """

    base_url: str = ""
    model: str = ""
    others: Mapping[EndpointRole, EndpointSettings] = field(default_factory=dict)
    key: str = field(default="", repr=False)
    seconds: float = 300.0
    answer_tokens: int = 16_000
    effort: str = ""
    budget: Budget = field(default_factory=Budget)

    @property
    def wanted(self) -> bool:
        return bool(self.model or self.base_url)

    @property
    def url(self) -> str:
        return self.base_url or OPENAI

    @property
    def main(self) -> EndpointSettings:
        return EndpointSettings(self.url, self.model, self.key)

    def list_endpoints(self, role: EndpointRole) -> tuple[EndpointSettings, ...]:
        """The endpoints that are asked in a role, one after the other where one does not answer."""
        chosen = [self.others.get(role, self.main)]
        if "fallback" in self.others:
            chosen.append(self.others["fallback"])
        return tuple(dict.fromkeys(chosen))


def load_model_settings(
    given: Mapping[str, str], prices: PriceTable | None = None
) -> ModelSettings:
    """OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL and TOOLWRIGHT_…. Raises SettingInvalid."""
    usual, settings = Budget(), ModelSettings()
    main = ModelSettings(
        base_url=given.get("OPENAI_BASE_URL", "").strip().rstrip("/"),
        model=given.get("OPENAI_MODEL", "").strip(),
        key=given.get(KEY, "").strip(),
    )
    found = ((role, _load_endpoint(given, role, main.main)) for role in OTHER_ROLES)
    return replace(
        main,
        others={role: endpoint for role, endpoint in found if endpoint is not None},
        seconds=_parse_number(given, "TOOLWRIGHT_MODEL_SECONDS", settings.seconds),
        answer_tokens=int(_parse_number(given, "TOOLWRIGHT_MODEL_TOKENS", settings.answer_tokens)),
        effort=given.get("TOOLWRIGHT_MODEL_EFFORT", "").strip(),
        budget=Budget(
            forges=int(_parse_number(given, "TOOLWRIGHT_FORGES_PER_DAY", usual.forges)),
            forge_tokens=int(_parse_number(given, "TOOLWRIGHT_FORGE_TOKENS", usual.forge_tokens)),
            day_tokens=int(_parse_number(given, "TOOLWRIGHT_DAY_TOKENS", usual.day_tokens)),
            forge_money=_parse_number(given, "TOOLWRIGHT_FORGE_MONEY", usual.forge_money),
            day_money=_parse_number(given, "TOOLWRIGHT_DAY_MONEY", usual.day_money),
            month_money=_parse_number(given, "TOOLWRIGHT_MONTH_MONEY", usual.month_money),
            price_in=_parse_number(given, "TOOLWRIGHT_PRICE_IN", usual.price_in),
            price_out=_parse_number(given, "TOOLWRIGHT_PRICE_OUT", usual.price_out),
            prices=prices or usual.prices,
        ),
    )


def _load_endpoint(
    given: Mapping[str, str], role: EndpointRole, main: EndpointSettings
) -> EndpointSettings | None:
    """The endpoint of a role, by TOOLWRIGHT_READER_MODEL, _BASE_URL and _API_KEY and their like:
    another model of the main endpoint, or another endpoint, which never gets the main one's key.
    """
    prefix = f"TOOLWRIGHT_{role.upper()}"
    model = given.get(f"{prefix}_MODEL", "").strip()
    url = given.get(f"{prefix}_BASE_URL", "").strip().rstrip("/")
    if not url or url == main.url:
        return replace(main, model=model) if model else None
    key_name = f"{prefix}_API_KEY"
    return EndpointSettings(url, model, given.get(key_name, "").strip(), key_name)


def _parse_number(
    given: Mapping[str, str], name: str, usual: float, most: float = MAX_NUMBER
) -> float:
    """A number from 0 to `most`."""
    text = given.get(name, "").strip()
    try:
        value = float(text) if text else usual
    except ValueError as error:
        raise SettingInvalid(name, text, most) from error
    if not 0 <= value <= most:
        raise SettingInvalid(name, text, most)
    return value


EngineName = Literal["docker", "wasm", "auto"]
INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Environment variables that an unconfined server inherits, as from any MCP client."""
ENGINES: tuple[EngineName, ...] = ("docker", "wasm", "auto")
ENGINE_FILE = "engine"
"""The file of a home that has the engine which `setup --engine` was told."""
MAX_ENGINE_NAME = 100


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
    (common clients cut at 60 s); `silence_seconds` is how long `kill` lets a process be silent
    before it kills it; `spares` is how many empty containers wait for the next bundle;
    `vault_key` is the file that the vault's key is in, which lies outside `home`, and `own_key`
    whether somebody named it; `recordings_mb` is how much is kept of what calls took in, for
    `toolwright replay`; answers of more than `result_bytes` are kept for `kept_seconds` where the
    client named its session, at most `kept_session_mb` for one and `kept_mb` for all; `calls_mb` is
    what a process holds of all its calls at once. `probe_requests` and `probe_seconds` bound what a
    forge asks of the API that it makes a
    server for; 0 requests are none. `semantic` is whether tools are also found by their meaning,
    where the extra of that name is installed; `bands` are the probabilities by
    which a task is routed. `public_url` is where a phone reaches the control
    plane, for the links of messages; by default its own URL. `directory_copy` is a copy of the
    package that has the descriptions of public APIs, a tarball or a directory, which is asked
    instead of the network; `search_url` the SearXNG instance that is asked for what has none.
    `kept_engine` is what `setup --engine` keeps in the home, where nothing else says which.
    """

    home: Path
    database_url: str
    instance: str
    answer_seconds: float = 25.0
    idle_seconds: float = 60.0
    approval_seconds: float = 24 * 3600.0
    silence_seconds: float = 0.5
    spares: int = 1
    container_runtime: str | None = None
    engine: EngineName = "auto"
    kept_engine: EngineName | None = None
    cache: Path = Path("cache")
    recordings_mb: int = 256
    result_bytes: int = 6_000
    kept_seconds: float = 3600.0
    kept_session_mb: int = 16
    kept_mb: int = 128
    calls_mb: int = PROCESS_MB
    probe_requests: int = PROBE_REQUESTS
    probe_seconds: float = PROBE_SECONDS
    public_url: str = ""
    semantic: bool = True
    bands: DecisionBands = DecisionBands()
    directory_copy: Path | None = None
    search_url: str = ""
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
    def database(self) -> Path | None:
        """The database's file; None where it is not SQLite's."""
        path = self.database_url.removeprefix("sqlite:///")
        return None if path == self.database_url or "?" in path else Path(path)

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


def locate_home(environment: Mapping[str, str]) -> Path:
    """Where the home is, which need not be there."""
    named = environment.get("TOOLWRIGHT_HOME")
    return Path(named or Path.home() / ".toolwright").expanduser().absolute()


def load_settings(
    environment: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    engine: str | None = None,
) -> Settings:
    """The settings of the environment: TOOLWRIGHT_HOME, TOOLWRIGHT_DATABASE_URL and so on; `home`
    and `engine` go before it.

    Makes the home directory (mode 0700) and its identity. Raises HomeUnusable, UnknownEngine,
    SettingInvalid, BandsUnordered.
    """
    given = os.environ if environment is None else environment
    home = home.expanduser().absolute() if home else locate_home(given)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (home / RESTORING).exists():
            # A restore was interrupted after its point of no return; loaded only then.
            importlib.import_module("registry.backup.swap").finish_swap(home)
        instance = _read_identity(home / "instance")
    except OSError as error:
        raise HomeUnusable(str(home), error.strerror or str(error)) from error
    kept = _read_kept_engine(home / ENGINE_FILE)
    return Settings(
        home=home,
        database_url=given.get("TOOLWRIGHT_DATABASE_URL") or f"sqlite:///{home / 'toolwright.db'}",
        instance=instance,
        answer_seconds=float(given.get("TOOLWRIGHT_ANSWER_SECONDS") or Settings.answer_seconds),
        approval_seconds=float(
            given.get("TOOLWRIGHT_APPROVAL_SECONDS") or Settings.approval_seconds
        ),
        silence_seconds=_parse_number(
            given, "TOOLWRIGHT_SILENCE_SECONDS", Settings.silence_seconds
        ),
        spares=int(given.get("TOOLWRIGHT_SPARES") or Settings.spares),
        container_runtime=given.get("TOOLWRIGHT_CONTAINER_RUNTIME") or None,
        engine=_choose_engine(given, engine, kept),
        kept_engine=kept,
        cache=_find_cache(given),
        calls_mb=int(_parse_number(given, "TOOLWRIGHT_CALLS_MB", Settings.calls_mb)),
        probe_requests=int(_parse_number(given, "TOOLWRIGHT_PROBE_REQUESTS", PROBE_REQUESTS)),
        probe_seconds=_parse_number(given, "TOOLWRIGHT_PROBE_SECONDS", PROBE_SECONDS),
        result_bytes=int(_parse_number(given, "TOOLWRIGHT_RESULT_BYTES", Settings.result_bytes)),
        kept_seconds=_parse_number(given, "TOOLWRIGHT_KEPT_SECONDS", Settings.kept_seconds),
        kept_session_mb=int(
            _parse_number(given, "TOOLWRIGHT_KEPT_SESSION_MB", Settings.kept_session_mb)
        ),
        kept_mb=int(_parse_number(given, "TOOLWRIGHT_KEPT_MB", Settings.kept_mb)),
        recordings_mb=int(given.get("TOOLWRIGHT_RECORDINGS_MB") or Settings.recordings_mb),
        semantic=given.get("TOOLWRIGHT_SEMANTIC") != "off",
        bands=load_bands(given),
        public_url=(given.get("TOOLWRIGHT_PUBLIC_URL") or "").rstrip("/"),
        directory_copy=_find_path(given.get("TOOLWRIGHT_DIRECTORY") or ""),
        search_url=(given.get("TOOLWRIGHT_SEARCH_URL") or "").strip().rstrip("/"),
        vault_key=_find_vault_key(given),
        own_key=bool(given.get("TOOLWRIGHT_VAULT_KEY_FILE")),
        inherited={name: given[name] for name in INHERITED if name in given},
        of_model=load_model_settings(given, PriceTable(home / FILE)),
    )


def load_engine_settings(
    environment: Mapping[str, str] | None = None, *, engine: str | None = None
) -> EngineSettings:
    """The engine's settings for a process without a home. Raises UnknownEngine."""
    given = os.environ if environment is None else environment
    return EngineSettings(_choose_engine(given, engine), _find_cache(given))


def describe_kept_engine(settings: Settings) -> str:
    """Which engine a home keeps, and what goes before it, in a sentence."""
    told = f"servers run on {settings.kept_engine}, as `toolwright setup` was told"
    if settings.engine != settings.kept_engine:
        return f"{told}, but this time on {settings.engine} (TOOLWRIGHT_ENGINE or --engine)"
    return f"{told}; `toolwright setup --engine auto` takes that back"


def _choose_engine(
    given: Mapping[str, str], engine: str | None, kept: EngineName | None = None
) -> EngineName:
    chosen = engine or given.get("TOOLWRIGHT_ENGINE") or kept or "auto"
    if chosen not in ENGINES:
        raise UnknownEngine(chosen, ENGINES)
    return chosen


def _read_kept_engine(path: Path) -> EngineName | None:
    """The engine that `setup --engine` keeps in a home; None where it keeps none."""
    try:
        with path.open() as file:
            name = file.read(MAX_ENGINE_NAME).strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise HomeUnusable(str(path), str(error)) from error
    if name not in ENGINES:
        raise UnknownEngine(name, ENGINES, str(path))
    return None if name == "auto" else name


def _find_path(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None


def _find_cache(given: Mapping[str, str]) -> Path:
    """The user's cache directory (XDG Base Directory specification)."""
    own = given.get("TOOLWRIGHT_CACHE")
    shared = Path(given.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).absolute() if own else shared / "toolwright" / "wasm"


def _find_vault_key(given: Mapping[str, str]) -> Path:
    """A file that was named, or one in the user's configuration (XDG Base Directory
    specification).
    """
    own = given.get("TOOLWRIGHT_VAULT_KEY_FILE")
    shared = Path(given.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(own).expanduser().absolute() if own else shared / "toolwright" / "vault.key"


def _read_identity(path: Path) -> str:
    """The installation's random id, created on first use; concurrent first uses agree on one."""
    # It gets its name with its content: one that is read while it is empty would be nobody's.
    return create_secret(path, uuid.uuid4().hex[:12].encode()).decode().strip() or "unnamed"
