"""What a waiting job needs is shown, allowed with the PIN alone, and then seen to be there."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.needs import (
    allow_needs,
    count_budgets,
    engine_need,
    hash_needs,
    is_met,
    list_need_items,
    render_need,
    render_way,
    show_need,
    suite_need,
)
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.control.page import render_panels
from orchestrator.errors import OrchestratorError
from orchestrator.processes.liveness import read_start_time
from orchestrator.settings import Settings
from registry.models import Job, Process
from registry.needs import (
    AllowedNeed,
    BudgetLine,
    BudgetNeed,
    CredentialNeed,
    FileNeed,
    HostNeed,
    Need,
    OrderNeed,
    PackageNeed,
    PermissionNeed,
    UnfreezeNeed,
    join_needs,
    need_from_json,
    need_json,
)
from registry.secrets.pin import verify_pin
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.errors import BaseImageMissing, ComponentMissing, EngineUnavailable, PathRefused
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import Plane
from tests.registry.samples import job

HERE = str(Path(__file__).resolve())
NEEDS: tuple[AllowedNeed, ...] = (
    BudgetNeed(BudgetLine("job", "tokens", 1001, 1000), 0),
    HostNeed("api.example.com:443"),
    PermissionNeed("lengths", ("clock", "fs:/my data:ro")),
    PackageNeed(("a", "b-c"), ("a==1", "b_c")),
    suite_need(("test_a", "test_b"), "def test_a(): ..."),
    FileNeed(HERE),
    OrderNeed(
        (
            HostNeed("api.example.com:443"),
            HostNeed("other.example.com:443"),
            PackageNeed(("a",), ("a==1",)),
            FileNeed(HERE),
            PermissionNeed("lengths", ("call:harbour.book_berth",)),
        )
    ),
)
OTHERS: tuple[Need, ...] = (
    CredentialNeed("https://api.example.com/", "It asks for a key."),
    engine_need(ComponentMissing("none")),
    engine_need(BaseImageMissing("base")),
    engine_need(EngineUnavailable("no socket")),
    UnfreezeNeed(),
)


@pytest.fixture
def consents(settings: Settings, store: Store) -> Grants:
    return open_grants(SignedPolicy(store, build_authority(settings)))


@pytest.fixture
def signer(settings: Settings) -> Signer:
    found = verify_pin(settings.pin, PIN, 1.0).signer
    assert found is not None
    return found


def parked(store: Store, needs: Need | None) -> Job:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    return store.drafts.park_job("j1", 1, {"brief": "write it"}, 3.0, "waits", needs)


@pytest.mark.parametrize("needs", [*NEEDS, *OTHERS])
def test_a_need_is_stored_and_read_back_and_shown_with_what_and_how(needs: Need) -> None:
    assert need_from_json(json.loads(json.dumps(need_json(needs)))) == needs
    shown = show_need(needs, "j1")
    assert shown["kind"] == needs.kind
    assert (shown["what"], shown["how"]) == (render_need(needs), render_way(needs, "j1"))
    assert shown["what"]
    assert shown["how"]


def test_no_need_is_an_empty_object() -> None:
    assert need_json(None) == {}
    assert need_from_json({}) is None
    assert show_need(None, "j1") == {}


@pytest.mark.parametrize("needs", NEEDS)
def test_what_is_allowed_is_there_and_once_more_is_once_more(
    store: Store, consents: Grants, signer: Signer, needs: Need
) -> None:
    waiting = parked(store, needs)
    assert not is_met(consents, waiting)
    allow_needs(store.grants, consents, waiting, "ann", signer, ())
    assert is_met(consents, waiting)


def test_one_question_names_all_that_it_asks_and_is_met_by_all_of_it(
    store: Store, consents: Grants, signer: Signer
) -> None:
    order = NEEDS[-1]
    assert isinstance(order, OrderNeed)
    items = list_need_items(order)
    assert len(items) == len({*items}) >= len(order.parts)
    for part, said in zip(order.parts, ("api.ex", "other.", "pypi:a", HERE, "call:"), strict=True):
        assert any(item.startswith(f"{part.kind}: ") and said in item for item in items)
    waiting = parked(store, order)
    for part in order.parts[:-1]:
        allow_needs(store.grants, consents, replace(waiting, needs=part), "ann", signer, ())
    assert not is_met(consents, waiting)
    fewer = replace(waiting, needs=join_needs(order.parts[1:]))
    assert hash_needs(fewer.needs) != hash_needs(order)


def test_where_a_path_is_asked_for_nothing_is_allowed_but_at_the_terminal(
    plane: Plane, store: Store, consents: Grants, signer: Signer
) -> None:
    waiting = parked(store, NEEDS[-1])
    with pytest.raises(OrchestratorError, match="toolwright allow j1"):
        allow_needs(store.grants, consents, waiting, "page", signer)
    html = render_panels(store)["waiting"]
    assert "toolwright allow j1" in html
    assert HERE in html
    assert "/jobs/j1/allow" not in html
    body = {"pin": PIN, "digest": hash_needs(waiting.needs)}
    refused = plane.ask("POST", "/jobs/j1/allow", json=body)
    assert (refused.status_code, "toolwright allow j1" in refused.text) == (409, True)
    assert not store.grants.find_grants()


def test_a_path_that_nobody_may_be_given_is_refused_before_anything_is_granted(
    store: Store, consents: Grants, signer: Signer, tmp_path: Path
) -> None:
    waiting = parked(store, OrderNeed((HostNeed("h:1"), FileNeed(str(tmp_path / "vault.json")))))
    with pytest.raises(PathRefused):
        allow_needs(store.grants, consents, waiting, "ann", signer, (tmp_path,))
    assert not store.grants.find_grants()


def test_a_credential_is_there_once_another_than_before_is(store: Store, consents: Grants) -> None:
    waiting = parked(store, CredentialNeed("https://api.example.com/", "It asks.", "before"))
    marks = {"": False, "before": False, "after": True}
    assert {mark: is_met(consents, waiting, lambda url, m=mark: m) for mark in marks} == marks


def test_a_job_is_not_allowed_without_the_digest_of_what_was_shown(
    plane: Plane, store: Store, consents: Grants
) -> None:
    waiting = parked(store, NEEDS[1])
    answer = plane.ask("POST", "/jobs/j1/allow", json={"pin": PIN})
    assert (answer.status_code, "digest" in answer.text) == (400, True)
    assert not is_met(consents, waiting)


def test_a_budget_is_the_jobs_own_and_grows_with_each_yes(
    store: Store, consents: Grants, signer: Signer
) -> None:
    waiting = parked(store, NEEDS[0])
    for count in (1, 2, 3):
        allow_needs(store.grants, consents, waiting, "ann", signer)
        assert count_budgets(consents, "j1") == count
    assert count_budgets(consents, "j2") == 0


def test_what_nobody_signed_is_no_budget(store: Store, consents: Grants, signer: Signer) -> None:
    waiting = parked(store, NEEDS[0])
    allow_needs(store.grants, consents, waiting, "ann", Signer.generate())
    assert count_budgets(consents, "j1") == 0
    assert not is_met(consents, waiting)


def test_a_freeze_is_not_allowed_away(store: Store, consents: Grants, signer: Signer) -> None:
    waiting = parked(store, UnfreezeNeed())
    store.processes.freeze(4.0, "ann", "")
    assert not is_met(consents, waiting)
    with pytest.raises(OrchestratorError, match="nothing that a person could allow"):
        allow_needs(store.grants, consents, waiting, "ann", signer)
    store.processes.unfreeze(5.0, "ann", signer.sign)
    assert is_met(consents, waiting)


def test_a_parked_job_is_taken_past_the_queue_once(store: Store) -> None:
    parked(store, NEEDS[0])
    taken = store.jobs.claim_waiting("j1", "p2", 5.0)
    assert taken is not None
    assert (taken.state, taken.owner, taken.attempt, taken.needs) == ("running", "p2", 2, None)
    assert store.jobs.claim_waiting("j1", "p3", 6.0) is None
    assert store.jobs.find_waiting() == ()


def test_only_parked_jobs_with_a_need_are_looked_at_again(store: Store) -> None:
    waiting = parked(store, NEEDS[1])
    assert store.jobs.find_waiting() == (waiting,)
    store.jobs.resume("j1", "ann", 5.0)
    assert store.jobs.find_waiting() == ()


def test_a_job_that_is_resumed_needs_nothing_any_more(store: Store) -> None:
    parked(store, NEEDS[0])
    assert store.jobs.resume("j1", "ann", 5.0) is not None
    assert store.jobs.resume("j1", "ann", 5.0) is None
    claimed = store.jobs.claim("j1", "p2", 6.0)
    assert claimed is not None
    assert claimed.needs is None


def test_the_page_shows_it_as_text_and_allows_it_with_the_pin_alone(
    plane: Plane, store: Store, consents: Grants
) -> None:
    started = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), started, "serve", 0.0, 0.0))
    waiting = parked(store, suite_need(("<b>test</b>",), "def test(): ..."))
    html = render_panels(store)["waiting"]
    assert "&lt;b&gt;test&lt;/b&gt;" in html
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
    assert store.jobs.get("j1").state == "queued"
    assert "Waiting for you (0)" in render_panels(store)["waiting"]


def test_a_job_that_waits_for_code_alone_is_not_the_persons(store: Store) -> None:
    parked(store, None)
    assert "Waiting for you (0)" in render_panels(store)["waiting"]
