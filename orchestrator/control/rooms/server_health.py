"""A server's health and what it cost."""

from __future__ import annotations

import time

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_facts,
    render_section,
    render_time,
)
from orchestrator.server_report import SHOWN, encode_health
from registry.jobs.model_usage import ModelUsage
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid


def render_health(store: Store, shelf: Bundles, name: str) -> str:
    """Failures by cause, repairs, what was learned, and models' cost. Raises RowNotFound."""
    entry = store.servers.get(name)
    health = encode_health(store, entry, _load_bundle(shelf, entry), time.time())
    causes = " ".join(
        f"{render_badge('failed')} {escape_text(kind)}: {count}"
        for kind, count in health["causes"].items()
    )
    drifting = ", ".join(
        f"{escape_text(tool)}: {count}" for tool, count in health["drifting"].items()
    )
    repairs = "<br>".join(
        f"{render_badge(each['state'])} {render_time(each['created'])} "
        f"{escape_text(each['message'] or each['cause'])}"
        for each in health["repairs"][:SHOWN]
    )
    trial = health["trial"]
    running = trial and trial["ended"] is None
    facts = render_facts(
        (
            ("last 50 calls", causes or f"{render_badge('ok')} none failed"),
            ("last cause", escape_text(health["last_cause"])),
            ("undocumented answers", drifting),
            ("repairs", repairs or "none"),
            ("on trial", f"version {trial['version']}" if running else ""),
            ("learned", "<br>".join(map(escape_text, health["learned"][:SHOWN]))),
            ("its description", _render_document(health["document"])),
            ("cost", _render_cost(store.model_usage.sum_for_server(name))),
        )
    )
    return render_section("Health and cost", facts)


def _load_bundle(shelf: Bundles, entry: Entry) -> Bundle | None:
    try:
        return shelf.load_bundle(entry)
    except BundleInvalid:
        return None


def _render_document(document: dict[str, object] | None) -> str:
    if not document:
        return ""
    told = document["problem"] or f"sha256 {str(document['digest'])[:12]}"
    return f"looked at {render_time(float(str(document['checked'])))}: {escape_text(str(told))}"


def _render_cost(usage: ModelUsage) -> str:
    if not usage.calls:
        return "nothing: no model was asked about it"
    tokens = f"{usage.tokens_in} tokens in, {usage.tokens_out} out"
    return f"{usage.cost:.4f} for {usage.calls} questions to models ({tokens})"
