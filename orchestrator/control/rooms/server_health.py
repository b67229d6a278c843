"""A server's health and what it cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from orchestrator.control.texts import ShownText, cut_text
from orchestrator.server_report import SHOWN, encode_health
from registry.jobs.model_usage import ModelUsage
from registry.models import Entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid


@dataclass(frozen=True)
class ShownRepair:
    state: str
    created: float
    told: ShownText


@dataclass(frozen=True)
class CheckedDocument:
    """When a server's description was looked at, and what was found."""

    checked: float
    found: ShownText


@dataclass(frozen=True)
class ServerHealth:
    """Failures by cause, undocumented answers by tool, repairs, what was learned, and models' cost.
    `trial` names the version that is on trial, "" for none.
    """

    causes: tuple[tuple[ShownText, int], ...]
    last_cause: ShownText
    drifting: tuple[tuple[ShownText, int], ...]
    repairs: tuple[ShownRepair, ...]
    trial: str
    learned: tuple[ShownText, ...]
    document: CheckedDocument | None
    cost: str


def view_health(store: Store, shelf: Bundles, name: str) -> ServerHealth:
    """Raises RowNotFound."""
    entry = store.servers.get(name)
    health = encode_health(store, entry, _load_bundle(shelf, entry), time.time())
    trial = health["trial"]
    return ServerHealth(
        tuple((cut_text(kind), count) for kind, count in health["causes"].items()),
        cut_text(health["last_cause"]),
        tuple((cut_text(tool), count) for tool, count in health["drifting"].items()),
        tuple(
            ShownRepair(each["state"], each["created"], cut_text(each["message"] or each["cause"]))
            for each in health["repairs"][:SHOWN]
        ),
        f"version {trial['version']}" if trial and trial["ended"] is None else "",
        tuple(map(cut_text, health["learned"][:SHOWN])),
        _show_document(health["document"]),
        _describe_cost(store.model_usage.sum_for_server(name)),
    )


def _load_bundle(shelf: Bundles, entry: Entry) -> Bundle | None:
    try:
        return shelf.load_bundle(entry)
    except BundleInvalid:
        return None


def _show_document(document: dict[str, Any] | None) -> CheckedDocument | None:
    if not document:
        return None
    found = document["problem"] or f"sha256 {str(document['digest'])[:12]}"
    return CheckedDocument(float(document["checked"]), cut_text(str(found)))


def _describe_cost(usage: ModelUsage) -> str:
    if not usage.calls:
        return "nothing: no model was asked about it"
    tokens = f"{usage.tokens_in} tokens in, {usage.tokens_out} out"
    return f"{usage.cost:.4f} for {usage.calls} questions to models ({tokens})"
