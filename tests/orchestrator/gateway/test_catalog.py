"""The catalog: what a thread is at loading says nothing to another, nor of what came since."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.gateway.catalog import Catalog, RegisteredServer
from orchestrator.settings import Settings
from registry.models import Entry, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle, RequestPattern
from tests.registry.samples import REPORTS, bundle

SECONDS = 30.0


class SlowShelf(Bundles):
    """A shelf that takes long once to read the bundle of `slow`."""

    slow = ""

    def load_bundle(self, entry: Entry) -> Bundle:
        if entry.name == self.slow:
            self.slow = ""
            self.reached.set()
            assert self.ready.wait(SECONDS)
        return super().load_bundle(entry)

    @contextmanager
    def load_slowly(self, roster: Catalog, server: str, slow: str) -> Iterator[None]:
        """Another thread loads a server, and is at reading `slow` for the time of the block."""
        self.slow, self.reached, self.ready = slow, threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as threads:
            loading: Future[RegisteredServer] = threads.submit(roster.get_server, server)
            try:
                assert self.reached.wait(SECONDS)
                yield
            finally:
                self.ready.set()
            loading.result(SECONDS)


@pytest.fixture
def shelf(settings: Settings, store: Store) -> SlowShelf:
    """A server whose one tool reads, and calls one of another server that writes."""
    shelf = SlowShelf(settings.home, store.servers)
    called, calling = bundle("mail"), bundle("report")
    called = replace(called, tools=(replace(called.tools[0], name="send", access="write"),))
    asks = (RequestPattern("CALL", "call:mail.send"),)
    calling = replace(
        calling,
        tools=(replace(calling.tools[0], requests=asks),),
        permissions=("call:mail.send",),
    )
    for made in (called, calling):
        shelf.publish_bundle(made, build_entry(made, 10.0), REPORTS, None)
    return shelf


@pytest.fixture
def roster(settings: Settings, store: Store, shelf: SlowShelf) -> Catalog:
    return Catalog(store, shelf, SignedPolicy(store, build_authority(settings)))


def test_a_tool_that_calls_one_that_writes_is_a_write_also_while_a_thread_loads_its_server(
    roster: Catalog, shelf: SlowShelf
) -> None:
    with shelf.load_slowly(roster, "report", slow="mail"):
        assert roster.find_tool("report", "list_zones").access == "write"
    assert roster.find_tool("report", "list_zones").access == "write"


def test_a_server_that_was_loaded_while_the_catalogue_changed_is_not_kept(
    roster: Catalog, shelf: SlowShelf, store: Store
) -> None:
    with shelf.load_slowly(roster, "mail", slow="mail"):
        store.servers.set_state("mail", "quarantined", 20.0, "terminal", "it looks wrong")
        roster.forget_servers()
    assert roster.get_server("mail").entry.state == "quarantined"
