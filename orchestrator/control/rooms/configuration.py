"""Settings: what this installation was started with, by which variable each is set, and a check of
all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.control.notify.targets import list_sealed_targets, load_notice_targets
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.settings import Settings
from registry.errors import RegistryError
from registry.search.encoder import is_installed
from registry.secrets.vault import open_vault
from registry.store import Store

VERDICTS = {"ok": "ok", "warning": "waiting", "failed": "failed"}
MAX_CHECKS = 100
MAX_VERDICT = 40


@dataclass(frozen=True)
class RunningProcess:
    kind: ShownText
    pid: int
    started: float


@dataclass(frozen=True)
class SettingLine:
    """What a setting is, its value, and the variable or the command that sets it. The value is a
    text, a path (`is_code`) or processes.
    """

    name: str
    value: ShownText | str
    set_by: str = ""
    is_code: bool = False
    processes: tuple[RunningProcess, ...] = ()


@dataclass(frozen=True)
class SettingGroup:
    title: str
    lines: tuple[SettingLine, ...]


@dataclass(frozen=True)
class CheckLine:
    """A check of `toolwright doctor`; `colour` is the class of its verdict."""

    name: ShownText
    verdict: ShownText
    colour: str
    found: ShownText
    hint: ShownText


@dataclass(frozen=True)
class CheckReport:
    """The checks, and what they come to in a sentence."""

    told: str
    checks: tuple[CheckLine, ...]


def view_settings(settings: Settings, store: Store) -> tuple[SettingGroup, ...]:
    """What this installation was started with. Settings come from the environment."""
    return (
        SettingGroup("This installation", _list_home(settings, store)),
        SettingGroup("Calls and approvals", _list_limits(settings)),
        SettingGroup("Models and search", _list_models(settings)),
    )


def _list_home(settings: Settings, store: Store) -> tuple[SettingLine, ...]:
    processes = tuple(
        RunningProcess(cut_text(each.kind), each.pid, each.started)
        for each in store.processes.find()
    )
    pin = "set" if settings.pin.exists() else "not set"
    return (
        SettingLine("home", cut_text(str(settings.home)), "TOOLWRIGHT_HOME", is_code=True),
        SettingLine(
            "engine that runs servers",
            cut_text(settings.engine),
            "TOOLWRIGHT_ENGINE, toolwright setup --engine",
        ),
        SettingLine("running processes", "none", processes=processes),
        SettingLine("PIN", pin, "toolwright setup"),
        SettingLine("messages to you", _list_targets(settings), "toolwright push add"),
        SettingLine(
            "address for phones", cut_text(settings.public_url) or "none", "TOOLWRIGHT_PUBLIC_URL"
        ),
    )


def _list_targets(settings: Settings) -> ShownText | str:
    """The names of those that are told of what waits."""
    try:
        notices = load_notice_targets(open_vault(settings))
        names = [*list_sealed_targets(settings.push), *(each.name for each in notices)]
    except RegistryError as error:
        return cut_text(str(error))
    return ", ".join(map(cut_text, names)) or "none"


def _list_limits(settings: Settings) -> tuple[SettingLine, ...]:
    return (
        SettingLine(
            "a call keeps its client waiting",
            f"{settings.answer_seconds:g} s at most",
            "TOOLWRIGHT_ANSWER_SECONDS",
        ),
        SettingLine(
            "an approval waits",
            f"{settings.approval_seconds / 3600:g} h at most",
            "TOOLWRIGHT_APPROVAL_SECONDS",
        ),
        SettingLine(
            "an answer is given whole",
            f"up to {settings.result_bytes:,} bytes",
            "TOOLWRIGHT_RESULT_BYTES",
        ),
        SettingLine(
            "recordings for replays",
            f"{settings.recordings_mb} MB",
            "TOOLWRIGHT_RECORDINGS_MB",
        ),
        SettingLine("all calls at once", f"{settings.calls_mb} MB", "TOOLWRIGHT_CALLS_MB"),
        SettingLine(
            "a forge asks the API",
            f"{settings.probe_requests} requests at most",
            "TOOLWRIGHT_PROBE_REQUESTS",
        ),
    )


def _list_models(settings: Settings) -> tuple[SettingLine, ...]:
    model, budget = settings.of_model, settings.of_model.budget
    return (
        SettingLine(
            "model that writes code",
            cut_text(model.model or model.base_url) or "none: your client writes it",
            "OPENAI_MODEL",
        ),
        SettingLine("tokens in a day", f"{budget.day_tokens:,}", "TOOLWRIGHT_DAY_TOKENS"),
        SettingLine("forges in a day", f"{budget.forges}", "TOOLWRIGHT_FORGES_PER_DAY"),
        SettingLine("search by meaning", _describe_meaning(settings), "TOOLWRIGHT_SEMANTIC"),
        SettingLine(
            "a task is done unasked from",
            f"{settings.bands.act:.0%} sure",
            "TOOLWRIGHT_ROUTE_ACT",
        ),
        SettingLine(
            "web search for descriptions",
            cut_text(settings.search_url) or "none",
            "TOOLWRIGHT_SEARCH_URL",
        ),
    )


def build_report(checks: Iterable[Mapping[str, object]]) -> CheckReport:
    """What `toolwright doctor --json` found."""
    lines = tuple(map(_build_check, [*checks][:MAX_CHECKS]))
    wrong = sum(each.colour != "ok" for each in lines)
    end = f"{wrong} to look at" if wrong else "all in order"
    return CheckReport(f"{len(lines)} checks, {end}.", lines)


def _build_check(check: Mapping[str, object]) -> CheckLine:
    name, verdict, found, hint = (
        str(check.get(each, "")) for each in ("name", "verdict", "found", "hint")
    )
    return CheckLine(
        cut_text(name),
        cut_text(verdict, MAX_VERDICT),
        VERDICTS.get(verdict, "failed"),
        cut_text(found),
        cut_text(hint),
    )


def _describe_meaning(settings: Settings) -> str:
    if not settings.semantic:
        return "off"
    return "on" if is_installed() else "off: the extra `semantic` is not installed"
