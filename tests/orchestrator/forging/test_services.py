"""Public APIs that an order may mean: offered, chosen by a person, described, and judged again."""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.directory.service import Directory
from forge.readers.document import Document, parse_document
from orchestrator.approvals.needs import allow_needs, describe_wait, is_met, show_need
from orchestrator.approvals.services import choose_service
from orchestrator.errors import ForgeFailed, ForgeWaits, OrchestratorError, SourceMissing
from orchestrator.forging.contact.services import DirectorySettings, ServiceFinder, find_name
from orchestrator.forging.descriptions import Descriptions
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from registry.needs import HostNeed, Need, ServiceNeed, need_from_json, need_json
from registry.secrets.vault import FileVault
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import WireRequest, WireResponse
from tests.forge.directory.samples import description, directory
from tests.granted import allow, consents, person

TASK = "list berths at Mooring"
ORIGIN = "https://mooring.example/openapi.json"
SEARCH = "https://search.example"


@dataclass
class Internet:
    """The world outside: what it answers by URL, and what it was asked."""

    pages: Mapping[str, bytes] = field(default_factory=dict)
    asked: list[WireRequest] = field(default_factory=list)
    private: list[frozenset[Any]] = field(default_factory=list)

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        body = self.pages.get(request.url)
        return WireResponse(200 if body is not None else 404, (), body or b"Not Found")

    def open(self, private: frozenset[Any]) -> Internet:
        self.private.append(private)
        return self


@dataclass(frozen=True)
class Place:
    settings: Settings
    store: Store
    here: Directory
    tarball: Path
    net: Internet = field(default_factory=Internet)

    def open_finder(self, **more: Any) -> ServiceFinder:
        return ServiceFinder(
            consents(self.settings, self.store), DirectorySettings(**more), lambda: self.here
        )

    def find(self, order: ForgeOrder, **more: Any) -> Document:
        vault = FileVault(
            self.settings.home / "vault.json", key=KeyFile(self.settings.home / "vault.key")
        )
        finder = self.open_finder(**more)
        given = Descriptions(finder.consents, vault, KillSwitch(), self.net.open, finder)
        return asyncio.run(given.find_document(order, lambda step: None))

    def wait(self, order: ForgeOrder, **more: Any) -> Need:
        with pytest.raises(ForgeWaits) as waits:
            self.find(order, **more)
        return waits.value.need

    def allow(self, need: Need, choice: int = 0) -> None:
        given = consents(self.settings, self.store)
        job = _waiting(need)
        assert not is_met(given, job)
        signer = person(self.settings.pin)
        allow_needs(self.store.grants, given, job, "ann", signer, (), choice)
        assert is_met(given, job)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    settings = load_settings(home=tmp_path / "home")
    person(settings.pin)
    tarball = tmp_path / "p.tgz"
    here = directory(
        tarball,
        {
            "mooring.example": description(),
            "harbours.example/mooring": description(
                "Mooring of Harbours",
                "https://api.harbours.example",
                origin="https://harbours.example/openapi.json",
            ),
        },
    )
    with Store.open(settings.database_url, "test") as store:
        yield Place(settings, store, here, tarball)


def test_an_order_without_an_address_waits_for_a_choice_and_nothing_is_asked(place: Place) -> None:
    need = place.wait(ForgeOrder(task=TASK))
    assert isinstance(need, ServiceNeed)
    first = need.services[0]
    assert (first.title, first.host, first.updated, first.operations, first.scheme) == (
        "Mooring",
        "api.mooring.example:443",
        "2022-03-04",
        1,
        "https",
    )
    assert first.hosts == ("mooring.example:443", "api.mooring.example:443")
    assert place.net.asked == []
    assert need_from_json(json.loads(json.dumps(need_json(need)))) == need
    shown = show_need(need, "j1")
    assert shown["services"][0]["host"] == "api.mooring.example:443"
    told = describe_wait("j1", need)
    for said in ("Mooring", "api.mooring.example:443", "1 operation;", "2022-03-04", "--choice N"):
        assert said in told


def test_after_one_yes_the_description_is_fetched_from_its_origin(place: Place) -> None:
    place.net.pages = {ORIGIN: json.dumps(description()).encode()}
    order = ForgeOrder(task=TASK)
    place.allow(place.wait(order))
    found = place.find(order)
    assert found.url == ORIGIN
    assert not found.believed
    assert {request.url for request in place.net.asked} == {ORIGIN}
    assert all(
        not request.headers or "key" not in str(request.headers) for request in place.net.asked
    )
    assert place.net.private == [frozenset()]


def test_another_choice_is_taken_by_its_number(place: Place, tmp_path: Path) -> None:
    order = ForgeOrder(task="mooring berths")
    here = replace(
        place,
        here=directory(
            tmp_path / "q.tgz",
            {
                f"mooring.example/{name}": description(f"Berths {name}", path=f"/{name}")
                for name in ("one", "two", "three", "four")
            },
        ),
    )
    need = here.wait(order, copy=tmp_path / "q.tgz")
    assert isinstance(need, ServiceNeed)
    assert len(need.services) == 3
    here.allow(need, 2)
    found = here.find(order, copy=tmp_path / "q.tgz")
    assert found.name == need.services[1].location
    with pytest.raises(OrchestratorError, match="choices 1 to 3"):
        choose_service(need, 4, "j1")


def test_where_the_origin_has_it_no_longer_the_package_is_read(place: Place) -> None:
    fetched: list[Path] = []

    async def fetch() -> Path:
        fetched.append(place.tarball)
        return place.tarball

    ways = {"find_registry": lambda: "registry.example:443", "fetch_package": fetch}
    order = ForgeOrder(task=TASK)
    need = place.wait(order, **ways)
    assert isinstance(need, ServiceNeed)
    assert "registry.example:443" in need.services[0].hosts
    assert fetched == []
    place.allow(need)
    found = place.find(order, **ways)
    assert (found.name, found.url, found.believed) == ("directory:mooring.example", None, False)
    assert fetched == [place.tarball]


def test_with_a_local_copy_nothing_leaves_this_machine(place: Place) -> None:
    order = ForgeOrder(task=TASK)
    need = place.wait(order, copy=place.tarball)
    assert isinstance(need, ServiceNeed)
    assert need.services[0].hosts == ("api.mooring.example:443",)
    place.allow(need)
    assert place.find(order, copy=place.tarball).name == "directory:mooring.example"
    assert place.net.asked == []


def test_an_entry_may_be_named_as_the_source(place: Place) -> None:
    order = ForgeOrder(task="anything", source="directory:mooring.example")
    need = place.wait(order, copy=place.tarball)
    place.allow(need)
    assert place.find(order, copy=place.tarball).root["info"]["title"] == "Mooring"
    with pytest.raises(ForgeFailed, match="no entry"):
        place.find(replace(order, source="directory:none.example"))


@pytest.mark.parametrize(
    "task", ["compute the first hundred primes", "", "list the stars of the sky"]
)
def test_where_no_service_fits_none_is_offered(place: Place, task: str) -> None:
    with pytest.raises(SourceMissing):
        place.find(ForgeOrder(task=task))
    assert place.net.asked == []


def test_the_source_none_is_offered_no_service(place: Place) -> None:
    with pytest.raises(SourceMissing):
        place.find(ForgeOrder(task=TASK, source="none"))


def test_a_choice_for_one_task_is_none_for_another(place: Place) -> None:
    place.allow(place.wait(ForgeOrder(task=TASK), copy=place.tarball))
    other = ForgeOrder(task="free berths at Mooring")
    assert isinstance(place.wait(other, copy=place.tarball), ServiceNeed)


def test_with_a_base_url_the_entrys_own_server_is_not_allowed(place: Place) -> None:
    order = ForgeOrder(task=TASK, base_url="http://127.0.0.1:9")
    need = place.wait(order, copy=place.tarball)
    assert isinstance(need, ServiceNeed)
    assert (need.services[0].hosts, need.services[0].doubts) == ((), ())


def test_a_description_that_names_another_server_than_its_entry_has_to_be_chosen(
    place: Place,
) -> None:
    order = ForgeOrder(task=TASK)
    place.allow(place.wait(order))
    allow(place.settings, place.store, "http://10.0.0.5:8081")
    finder = place.open_finder()
    lure = json.dumps(description(server="http://10.0.0.5:8081")).encode()
    bundle = compile_document(parse_document(lure, "x")).bundle
    with pytest.raises(ForgeWaits) as waits:
        finder.check_servers(bundle, order)
    need = waits.value.need
    assert isinstance(need, ServiceNeed)
    told = describe_wait("j1", need)
    assert "10.0.0.5:8081" in told
    assert "api.mooring.example:443" in told
    with pytest.raises(OrchestratorError, match="--choice 1"):
        choose_service(need, 0, "j1")
    place.allow(need, 1)
    finder.check_servers(bundle, order)


def test_a_description_that_names_its_entrys_server_asks_for_nothing_more(place: Place) -> None:
    order = ForgeOrder(task=TASK)
    place.allow(place.wait(order))
    honest = parse_document(json.dumps(description()).encode(), "x")
    place.open_finder().check_servers(compile_document(honest).bundle, order)


def test_of_a_search_only_the_services_name_leaves_once_that_is_allowed(place: Place) -> None:
    results = {"results": [{"url": "https://docs.example/mooring", "title": "Mooring docs"}]}
    found = f"{SEARCH}/search?q=Mooring%20API%20documentation&format=json"
    place.net.pages = {
        found: json.dumps(results).encode(),
        "https://docs.example/mooring": json.dumps(description()).encode(),
    }
    order = ForgeOrder(task="list secret berths at Mooring")
    place.allow(place.wait(order, search_url=SEARCH))
    place.net.asked.clear()
    need = place.wait(order, search_url=SEARCH)
    assert isinstance(need, HostNeed)
    assert (need.host, "no other word" in need.instead) == ("search.example:443", True)
    assert not any("search.example" in request.url for request in place.net.asked)
    place.allow(need)
    pages = place.wait(order, search_url=SEARCH)
    assert isinstance(pages, ServiceNeed)
    assert pages.services[0].location == "https://docs.example/mooring"
    sent = [request.url for request in place.net.asked if "search.example" in request.url]
    assert sent == [found]
    assert not any("docs.example" in request.url for request in place.net.asked)
    place.allow(pages, 1)
    assert place.find(order, search_url=SEARCH).url == "https://docs.example/mooring"


def test_a_search_that_gives_no_json_says_what_to_set(place: Place) -> None:
    order = ForgeOrder(task="invoices in Lexoffice")
    place.allow(place.wait(order, search_url=SEARCH))
    with pytest.raises(ForgeFailed, match=r"settings\.yml"):
        place.find(order, search_url=SEARCH)


def test_without_a_search_a_name_that_nobody_knows_leads_nowhere(place: Place) -> None:
    with pytest.raises(SourceMissing):
        place.find(ForgeOrder(task="invoices in Lexoffice"))
    assert place.net.asked == []


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("invoices in Lexoffice", "Lexoffice"),
        ("orders from Big Cartel today", "Big Cartel"),
        ("sort a list by name", ""),
        ("at " * 100_000, ""),
    ],
)
def test_the_name_in_a_task_is_the_capitalised_words_behind_a_preposition(
    task: str, name: str
) -> None:
    assert find_name(task) == name


def _waiting(need: Need) -> Job:
    return Job("j1", "forge", {}, created=1.0, updated=1.0, state="waiting", needs=need)


def digest(content: bytes) -> str:
    return f"sha512-{b64encode(hashlib.sha512(content).digest()).decode()}"
