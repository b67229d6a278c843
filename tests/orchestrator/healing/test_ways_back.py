"""Ways back into use: a repair that is due again, the version before, and no page that a server was
not made from.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ForgeFailed
from orchestrator.forging.descriptions import SUBMITTED
from orchestrator.forging.forge import Forge
from orchestrator.healing.monitor import Healing
from orchestrator.healing.versions import plan_rollback, roll_back
from registry.health.repairs import REPAIR_PAUSE
from registry.models import Entry, Job, build_entry
from registry.servers.bundles import Bundles
from registry.servers.quarantine import explain_quarantine
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import StageReport
from tests.engine.samples import bundle
from tests.registry.samples import invocation

CODE = "from toolwright import tool\n\n@tool\ndef ready():\n    return {}\n"
PAGE = "https://api.example/openapi.json"
FAILED_AT = 1_000.0
PASSED, FAILED = (StageReport("cases", verdict, 1.0) for verdict in ("passed", "failed"))


@dataclass
class Pages:
    """Descriptions that are all gone; `asked` are the places that were looked at."""

    asked: list[str] = field(default_factory=list)

    async def load_document(self, source: str, report: Any) -> str:
        self.asked.append(source)
        return "HTTP 404"


@dataclass
class Place:
    store: Store
    pages: Pages
    forge: Forge
    now: float = FAILED_AT

    def publish(self, version: int, source: str = PAGE, report: StageReport = PASSED) -> Entry:
        made: Bundle = replace(bundle(CODE, "ready", pure=True), version=version, permissions=())
        made = replace(made, source_code=f"{CODE}# {version}\n")
        made = replace(made, provenance=replace(made.provenance, source=source))
        entry = replace(build_entry(made, 1.0), source=PAGE)
        return self.forge.shelf.publish_bundle(made, entry, (report,), None)

    def retry(self) -> Job | None:
        healing = Healing(
            self.store, self.forge.shelf, lambda: None, lambda _: False, lambda: self.now
        )
        return healing.retry_repair()

    def roll_back(self) -> Entry:
        plan = plan_rollback(self.store.servers, self.forge.shelf, "sample", None)
        return roll_back(self.store, self.forge.shelf, plan, "terminal", "", 2_000.0)


@pytest.fixture
def place(tmp_path: Path, store: Store) -> Place:
    pages = Pages()
    unused: Any = None
    given: Any = pages
    shelf = Bundles(tmp_path, store.servers)
    forge = Forge(store.servers, unused, shelf, unused, unused, unused, given)
    return Place(store, pages, forge)


def fail_repair(place: Place) -> None:
    request = {"server": "sample", "version": 1, "call": "c1", "cause": "its fields moved"}
    job = Job("r1", "repair", request, FAILED_AT, FAILED_AT)
    assert place.store.repairs.queue_repair(job, FAILED_AT)
    claimed = place.store.jobs.claim("r1", "main", FAILED_AT)
    assert claimed is not None
    place.store.jobs.finish("r1", claimed.attempt, "failed", None, FAILED_AT)


@pytest.mark.parametrize("state", ["active", "quarantined"])
def test_a_failed_repair_is_queued_again_after_its_pause_and_once(place: Place, state: Any) -> None:
    place.publish(1)
    place.store.servers.set_state("sample", state, FAILED_AT, "trust", "it failed")
    fail_repair(place)
    place.now = FAILED_AT + REPAIR_PAUSE - 1
    assert place.retry() is None
    place.now += 2
    again = place.retry()
    assert again is not None
    assert again.id != "r1"
    assert again.request == place.store.jobs.get("r1").request
    assert place.retry() is None


def test_a_repair_of_what_works_or_is_archived_is_not_queued_again(place: Place) -> None:
    place.publish(1)
    fail_repair(place)
    place.now = FAILED_AT + REPAIR_PAUSE + 1
    call = invocation("c2", entry="sample", tool="ready", started=FAILED_AT + 1)
    place.store.calls.record(call, now=FAILED_AT + 1)
    assert place.retry() is None
    place.store.servers.archive("sample", place.now, "terminal")
    assert place.retry() is None


def test_rolling_back_lifts_a_quarantine_and_its_ladder_starts_again(place: Place) -> None:
    place.publish(1)
    place.publish(2)
    calls = (invocation(f"c{n}", "bug", entry="sample", tool="ready", version=2) for n in range(5))
    place.store.calls.record_many([*calls], now=1_500.0)
    assert "`toolwright rollback sample`" in explain_quarantine(place.store.servers, "sample")
    back = place.roll_back()
    assert (back.version, place.store.servers.get("sample").state) == (3, "active")
    assert explain_quarantine(place.store.servers, "sample") == ""
    standing = place.store.standings.get("sample")
    assert (standing.level, standing.window, standing.counted) == ("probationary", 0, 5)


def test_rolling_back_to_what_was_never_proved_is_no_way_out_of_experimental(place: Place) -> None:
    place.publish(1, report=FAILED)
    place.publish(2)
    place.store.servers.set_state("sample", "quarantined", 1_500.0, "cases", "its cases fail")
    place.roll_back()
    assert place.store.servers.get("sample").state == "experimental"


def compile_again(place: Place, entry: Entry) -> str:
    with pytest.raises(ForgeFailed) as told:
        asyncio.run(place.forge.compile_again(entry, lambda step: None))
    return str(told.value)


def test_a_server_of_a_handed_in_description_is_never_made_from_a_page(place: Place) -> None:
    # The entry names a page all the same, as one does that was ordered with a source.
    said = compile_again(place, place.publish(1, source=SUBMITTED))
    assert "was handed in" in said
    assert place.pages.asked == []


def test_a_server_of_a_page_is_made_from_that_page_alone(place: Place) -> None:
    assert "HTTP 404" in compile_again(place, place.publish(1))
    assert place.pages.asked == [PAGE]
