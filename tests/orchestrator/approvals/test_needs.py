"""What a waiting job needs is shown, allowed with the PIN alone, and then seen to be there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import psutil
import pytest

from orchestrator.clearance import Clearance
from orchestrator.consents import Consents
from orchestrator.errors import OrchestratorError
from orchestrator.needs import (
    allow,
    budget_needs,
    budgets,
    host_needs,
    is_met,
    permission_needs,
    unfreeze_needs,
)
from orchestrator.panels import panels
from orchestrator.pin import authority
from orchestrator.settings import Settings
from registry.pin import verify_pin
from registry.records import Job, Process
from registry.signing import Signer
from registry.store import Store
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import Plane
from tests.registry.samples import job

NEEDS = (
    budget_needs("j1", "<b>3 servers</b>", 0),
    host_needs("api.example.com:443"),
    permission_needs("j1", "lengths", ("clock", "random")),
)


@pytest.fixture
def consents(settings: Settings, store: Store) -> Consents:
    return Consents(store, Clearance(store, authority(settings)).key)


@pytest.fixture
def signer(settings: Settings) -> Signer:
    found = verify_pin(settings.pin, PIN, 1.0).signer
    assert found is not None
    return found


def parked(store: Store, needs: Mapping[str, str]) -> Job:
    store.create_job(job())
    store.claim_job("j1", "p1", 2.0)
    return store.park_job("j1", 1, {"brief": "write it"}, 3.0, "waits", needs)


@pytest.mark.parametrize("needs", NEEDS)
def test_what_is_allowed_is_there_and_once_more_is_once_more(
    store: Store, consents: Consents, signer: Signer, needs: Mapping[str, str]
) -> None:
    waiting = parked(store, needs)
    assert not is_met(consents, waiting)
    allow(store, consents, waiting, "ann", signer)
    assert is_met(consents, waiting)


def test_a_budget_is_the_jobs_own_and_grows_with_each_yes(
    store: Store, consents: Consents, signer: Signer
) -> None:
    waiting = parked(store, NEEDS[0])
    for count in (1, 2, 3):
        allow(store, consents, waiting, "ann", signer)
        assert budgets(consents, "j1") == count
    assert budgets(consents, "j2") == 0


def test_what_nobody_signed_is_no_budget(store: Store, consents: Consents, signer: Signer) -> None:
    waiting = parked(store, NEEDS[0])
    allow(store, consents, waiting, "ann", Signer.fresh())
    assert budgets(consents, "j1") == 0
    assert not is_met(consents, waiting)


def test_a_freeze_is_not_allowed_away(store: Store, consents: Consents, signer: Signer) -> None:
    waiting = parked(store, unfreeze_needs())
    store.freeze(4.0, "ann", "")
    assert not is_met(consents, waiting)
    with pytest.raises(OrchestratorError, match="nothing that a person could allow"):
        allow(store, consents, waiting, "ann", signer)
    store.unfreeze(5.0, "ann")
    assert is_met(consents, waiting)


def test_a_parked_job_is_taken_past_the_queue_once(store: Store) -> None:
    parked(store, NEEDS[0])
    taken = store.take_job("j1", "p2", 5.0)
    assert taken is not None
    assert (taken.state, taken.owner, taken.attempt, taken.needs) == ("running", "p2", 2, {})
    assert store.take_job("j1", "p3", 6.0) is None
    assert store.needing_jobs() == ()


def test_only_parked_jobs_with_a_need_are_looked_at_again(store: Store) -> None:
    waiting = parked(store, NEEDS[1])
    assert store.needing_jobs() == (waiting,)
    store.resume_job("j1", "ann", 5.0)
    assert store.needing_jobs() == ()


def test_a_job_that_is_resumed_needs_nothing_any_more(store: Store) -> None:
    parked(store, NEEDS[0])
    assert store.resume_job("j1", "ann", 5.0) is not None
    assert store.resume_job("j1", "ann", 5.0) is None
    claimed = store.claim_job("j1", "p2", 6.0)
    assert claimed is not None
    assert claimed.needs == {}


def test_the_page_shows_it_as_text_and_allows_it_with_the_pin_alone(
    plane: Plane, store: Store, consents: Consents
) -> None:
    started = psutil.Process().create_time()
    store.register_process(Process("w", os.getpid(), started, "serve", 0.0, 0.0))
    waiting = parked(store, NEEDS[0])
    html = panels(store)["waiting"]
    assert "&lt;b&gt;3 servers&lt;/b&gt;" in html
    found = re.search(r'data-post="(/jobs/j1/allow)"[^>]*data-digest="([0-9a-f]{64})"', html)
    assert found is not None
    path, digest = found.groups()
    for body, status in (
        ({"pin": "wrong!", "digest": digest}, 403),
        ({"pin": PIN, "digest": "0" * 64}, 409),
    ):
        assert plane.ask("POST", path, json=body).status_code == status
        assert not is_met(consents, waiting)
    assert plane.ask("POST", path, json={"pin": PIN, "digest": digest}).status_code == 200
    assert is_met(consents, waiting)


def test_a_job_that_waits_for_code_alone_is_not_the_persons(store: Store) -> None:
    parked(store, {})
    assert "Waiting for you (0)" in panels(store)["waiting"]
