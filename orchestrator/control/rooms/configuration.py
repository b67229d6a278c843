"""Settings: what this installation was started with, by which variable each is set, and a check of
all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.notify.targets import list_sealed_targets, load_notice_targets
from orchestrator.settings import Settings
from registry.errors import RegistryError
from registry.secrets.vault import open_vault
from registry.store import Store

VERDICTS = {"ok": "ok", "warning": "waiting", "failed": "failed"}
MAX_CHECKS = 100
Row = tuple[str, str, str]
"""What a setting is, its value as HTML, and the variable that sets it."""


def render_settings(settings: Settings, store: Store) -> str:
    """What this installation was started with. Settings come from the environment."""
    parts = (
        ("This installation", _list_home(settings, store)),
        ("Calls and approvals", _list_limits(settings)),
        ("Models and search", _list_models(settings)),
    )
    tables = "".join(
        f"<h3>{title}</h3>{render_table(('setting', 'value', 'set by'), rows, title)}"
        for title, rows in parts
    )
    told = (
        "<p>Settings are environment variables. They are read when a process starts, so a change "
        "counts after <code>toolwright control --stop</code> and for a client that is started "
        "anew.</p>"
    )
    check = (
        '<form class="fields check" data-post="/doctor"><div class="actions">'
        '<button class="primary">Check this installation</button>'
        "<small>Files, audit, sandboxes, engine and PIN, as <code>toolwright doctor</code>.</small>"
        "</div><output></output></form>"
    )
    leave = (
        "<h3>This browser</h3><p>Its log-in lasts twelve hours, or until you end it. "
        '<button class="quiet small" data-post="/logout" id="logout">Log out</button></p>'
        '<p><a href="/docs">The HTTP API of this page</a></p>'
    )
    return render_section("Settings", check + told + tables + leave)


def _list_home(settings: Settings, store: Store) -> tuple[Row, ...]:
    processes = "<br>".join(
        f"{escape_text(each.kind)} {each.pid}, begun {render_time(each.started)}"
        for each in store.processes.find()
    )
    pin = "set" if settings.pin.exists() else "not set"
    return (
        ("home", f"<code>{escape_text(str(settings.home))}</code>", _name("TOOLWRIGHT_HOME")),
        (
            "engine that runs servers",
            escape_text(settings.engine),
            f"{_name('TOOLWRIGHT_ENGINE')}, <code>toolwright setup --engine</code>",
        ),
        ("running processes", processes or "none", ""),
        ("PIN", pin, "<code>toolwright setup</code>"),
        ("messages to you", _list_targets(settings), "<code>toolwright push add</code>"),
        (
            "address for phones",
            escape_text(settings.public_url) or "none",
            _name("TOOLWRIGHT_PUBLIC_URL"),
        ),
    )


def _list_targets(settings: Settings) -> str:
    """The names of those that are told of what waits."""
    try:
        notices = load_notice_targets(open_vault(settings))
        names = [*list_sealed_targets(settings.push), *(each.name for each in notices)]
    except RegistryError as error:
        return escape_text(str(error))
    return ", ".join(map(escape_text, names)) or "none"


def _list_limits(settings: Settings) -> tuple[Row, ...]:
    return (
        (
            "a call keeps its client waiting",
            f"{settings.answer_seconds:g} s at most",
            _name("TOOLWRIGHT_ANSWER_SECONDS"),
        ),
        (
            "an approval waits",
            f"{settings.approval_seconds / 3600:g} h at most",
            _name("TOOLWRIGHT_APPROVAL_SECONDS"),
        ),
        (
            "an answer is given whole",
            f"up to {settings.result_bytes:,} bytes",
            _name("TOOLWRIGHT_RESULT_BYTES"),
        ),
        (
            "recordings for replays",
            f"{settings.recordings_mb} MB",
            _name("TOOLWRIGHT_RECORDINGS_MB"),
        ),
        ("all calls at once", f"{settings.calls_mb} MB", _name("TOOLWRIGHT_CALLS_MB")),
        (
            "a forge asks the API",
            f"{settings.probe_requests} requests at most",
            _name("TOOLWRIGHT_PROBE_REQUESTS"),
        ),
    )


def _list_models(settings: Settings) -> tuple[Row, ...]:
    model, budget = settings.of_model, settings.of_model.budget
    return (
        (
            "model that writes code",
            escape_text(model.model or model.base_url) or "none: your client writes it",
            _name("OPENAI_MODEL"),
        ),
        ("tokens in a day", f"{budget.day_tokens:,}", _name("TOOLWRIGHT_DAY_TOKENS")),
        ("forges in a day", f"{budget.forges}", _name("TOOLWRIGHT_FORGES_PER_DAY")),
        ("search by meaning", "on" if settings.semantic else "off", _name("TOOLWRIGHT_SEMANTIC")),
        (
            "a task is done unasked from",
            f"{settings.bands.act:.0%} sure",
            _name("TOOLWRIGHT_ROUTE_ACT"),
        ),
        (
            "web search for descriptions",
            escape_text(settings.search_url) or "none",
            _name("TOOLWRIGHT_SEARCH_URL"),
        ),
    )


def _name(variable: str) -> str:
    return f"<code>{variable}</code>"


def render_checks(checks: Iterable[Mapping[str, object]]) -> tuple[str, str]:
    """What `toolwright doctor --json` found: a sentence, and the checks as a table."""
    rows, wrong = [], 0
    for check in [*checks][:MAX_CHECKS]:
        name, verdict, found, hint = (
            str(check.get(each, "")) for each in ("name", "verdict", "found", "hint")
        )
        wrong += verdict != "ok"
        told = f"{escape_text(found)}{f'<br><small>{escape_text(hint)}</small>' if hint else ''}"
        rows.append(
            (escape_text(name), render_badge(verdict, VERDICTS.get(verdict, "failed")), told)
        )
    sentence = (
        f"{len(rows)} checks, all in order."
        if not wrong
        else f"{len(rows)} checks, {wrong} to look at."
    )
    return sentence, render_table(("check", "verdict", "found"), rows, "checks")
