"""Why a call failed, by the version that was called, wherever calls are listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.called_tools import CalledTools
from orchestrator.control.page import render_panels
from orchestrator.control.rooms.place import Place
from orchestrator.settings import Settings, load_settings
from orchestrator.views.records import encode_call, render_outcome
from registry.models import CallFailure, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle
from tests.registry.samples import REPORTS, bundle, invocation

REFUSED = invocation(
    "c1",
    failure=CallFailure("refused", "refused"),
    exchanges=({"refusal": "refused", "reason": "the request is larger than the caps allow"},),
)


def build_version(version: int, operation: str) -> Bundle:
    """A version whose first tool is that operation of its API, or, without one, code."""
    first = replace(bundle().tools[0], operation=operation)
    return replace(bundle(), version=version, tools=(first, *bundle().tools[1:]))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database_url) as opened:
        yield opened


def test_a_refused_request_is_its_callers_by_the_version_that_was_called(
    settings: Settings, store: Store
) -> None:
    shelf = Bundles(settings.home, store.servers)
    for made in (build_version(1, "listZones"), build_version(2, "")):
        shelf.publish_bundle(made, build_entry(made, 1.0), REPORTS, None)
    called = CalledTools(store.servers, shelf)
    assert render_outcome(REFUSED, called) == "refused (input)"
    assert encode_call(REFUSED, called)["cause"]["kind"] == "input"
    assert render_outcome(replace(REFUSED, version=2), called) == "refused (bug)"
    store.calls.record(REFUSED, 2.0)
    listed = render_panels(store, Place("calls"), settings)["calls"]
    assert "input: the request is larger" in listed
    assert "bug" not in listed


def test_a_call_of_a_version_that_is_gone_is_told_by_its_row(
    settings: Settings, store: Store
) -> None:
    called = CalledTools(store.servers, Bundles(settings.home, store.servers))
    assert render_outcome(REFUSED, called) == "refused (bug)"
