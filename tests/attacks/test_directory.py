"""A directory entry, a copy of its package and a page of a search, written by somebody hostile."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from forge.directory import package as reading
from forge.directory.build import MOST_TITLE, MOST_TOPICS
from forge.directory.package import read_description
from forge.directory.search import find_services
from forge.directory.service import Directory, Package
from forge.errors import MemberMissing
from orchestrator.approvals.needs import allow_needs, is_met
from orchestrator.approvals.services import choose_service
from orchestrator.errors import ForgeWaits, OrchestratorError
from orchestrator.forging.contact.services import (
    DirectorySettings,
    ServiceFinder,
    list_doubts,
    read_results,
)
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import load_settings
from registry.models import Job
from registry.needs import ServiceNeed
from registry.store import Store
from tests.forge.directory.samples import description, directory
from tests.granted import consents, person

TASK = "berths at Mooring"
PRIVATE = (
    "http://127.0.0.1:8081",
    "https://127.0.0.1",
    "https://10.0.0.5",
    "https://[::1]",
    "https://169.254.169.254",
    "https://2130706433",
    "https://router.local",
    "https://localhost:8443",
)


def offered(tmp_path: Path, here: Directory, **more: Any) -> tuple[ServiceNeed, Any]:
    """What an order waits for, and what is allowed once a person chose the first."""
    settings = load_settings(home=tmp_path / "home")
    signer = person(settings.pin)
    with Store.open(settings.database_url, "test") as store:
        given = consents(settings, store)
        finder = ServiceFinder(given, DirectorySettings(**more), lambda: here)
        with pytest.raises(ForgeWaits) as waits:
            finder.choose_service(ForgeOrder(task=TASK))
        need = waits.value.need
        assert isinstance(need, ServiceNeed)
        job = Job("j1", "forge", {}, created=1.0, updated=1.0, state="waiting", needs=need)
        assert not is_met(given, job)
        allow_needs(store.grants, given, job, "ann", signer, (), 1)
        assert is_met(given, job)
        return need, (given.find_hosts(), given.find_private_hosts())


@pytest.mark.parametrize("server", PRIVATE)
def test_an_entry_at_a_private_host_is_shown_and_its_host_not_allowed(
    tmp_path: Path, server: str
) -> None:
    entry = description(server=server, origin=f"{server}/openapi.json")
    need, (hosts, private) = offered(
        tmp_path, directory(tmp_path / "p.tgz", {"mooring.example": entry})
    )
    assert need.services[0].doubts == ("local",)
    assert hosts == private == frozenset()
    with pytest.raises(OrchestratorError, match="--choice 1"):
        choose_service(need, 0, "j1")


def test_an_entry_at_a_public_host_is_allowed_with_one_yes_and_at_public_addresses_alone(
    tmp_path: Path,
) -> None:
    need, (hosts, private) = offered(
        tmp_path, directory(tmp_path / "p.tgz", {"mooring.example": description()})
    )
    assert choose_service(need, 0, "j1") == need
    assert hosts == {"api.mooring.example:443", "mooring.example:443"}
    assert private == frozenset()


@pytest.mark.parametrize(
    "server",
    ["https://evil.example", "https://mooring.example.evil.example", "https://xmooring.example"],
)
def test_an_entry_whose_description_names_another_host_has_to_be_chosen(
    tmp_path: Path, server: str
) -> None:
    here = directory(tmp_path / "p.tgz", {"mooring.example": description(server=server)})
    need, _ = offered(tmp_path, here)
    assert need.services[0].doubts == ("other_host",)
    with pytest.raises(OrchestratorError, match="not its provider's"):
        choose_service(need, 0, "j1")


def test_a_further_server_of_another_host_has_to_be_seen_too(tmp_path: Path) -> None:
    entry = description()
    entry["servers"].append({"url": "https://evil.example"})
    here = directory(tmp_path / "p.tgz", {"mooring.example": entry})
    assert list_doubts(here.read_row(0)) == ("other_host",)


def test_a_host_below_the_providers_is_its_own(tmp_path: Path) -> None:
    here = directory(tmp_path / "p.tgz", {"mooring.example": description()})
    assert list_doubts(here.read_row(0)) == ()


def test_an_entry_stuffed_with_words_is_found_by_no_more_of_them_and_never_before_a_name(
    tmp_path: Path,
) -> None:
    many = " ".join(a + b + c for a in "bcdfgklm" for b in "aeiou" for c in "bcdfgklmnprt")
    words = f"trello cards weather forecast {many}"
    entries = {
        "evil.example": description(words, text=words, path="/" + words.replace(" ", "/")),
        "trello.example": description("Trello", text="Boards and cards."),
    }
    here = directory(tmp_path / "p.tgz", entries)
    number = here.numbers["evil.example"]
    stems = [
        stem
        for stem, line in here.postings.items()
        for field in line.split("\t")
        if number in accumulate(map(int, field.split()))
    ]
    assert MOST_TITLE + MOST_TOPICS >= len(stems) - 2 > MOST_TOPICS
    row = here.read_row(number)
    assert len(row.title) + len(row.summary) <= 240
    found = find_services("trello cards", 5, here)
    assert [each.service.provider for each in found] == ["trello.example"]


def test_an_honest_entry_is_found_by_what_it_is_about(tmp_path: Path) -> None:
    entries = {
        "meteo.example": description("Weather forecast", text="Weather by coordinates."),
        **{f"filler{n}.example": description(f"Thing {n}", text="Other") for n in range(40)},
    }
    here = directory(tmp_path / "p.tgz", entries)
    found = find_services("weather forecast by coordinates", 5, here)
    assert [each.service.provider for each in found] == ["meteo.example"]


def test_a_tarball_with_another_digest_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "p.tgz"
    here = directory(place, {"mooring.example": description()})
    directory(place, {"mooring.example": description(server="https://evil.example")})
    with pytest.raises(MemberMissing, match="another sha512"):
        read_description(place, "mooring.example", here.package)


def test_the_tarball_of_the_index_is_read(tmp_path: Path) -> None:
    place = tmp_path / "p.tgz"
    here = directory(place, {"mooring.example": description()})
    assert json.loads(read_description(place, "mooring.example", here.package)) == description()


@pytest.mark.parametrize("identity", ["../secret", "a/../../secret", "/etc/passwd", "..", "a\0b"])
def test_a_member_path_that_leads_elsewhere_is_not_read(tmp_path: Path, identity: str) -> None:
    (tmp_path / "copy" / "api").mkdir(parents=True)
    (tmp_path / "secret.json").write_text("{}")
    with pytest.raises(MemberMissing, match="no entry"):
        read_description(tmp_path / "copy", identity, Package("p", "1", ""))


def test_a_link_in_a_copy_is_not_followed_out_of_it(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    os.symlink(tmp_path / "secret.json", copy / "mooring.example.json")
    with pytest.raises(MemberMissing, match="no plain file"):
        read_description(copy, "mooring.example", Package("p", "1", ""))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_no_plain_file_is_not_read(tmp_path: Path, kind: bytes) -> None:
    place = tmp_path / "p.tgz"
    with tarfile.open(place, "w:gz") as archive:
        member = tarfile.TarInfo("package/api/mooring.example.json")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(MemberMissing, match="no plain file"):
        read_description(place, "mooring.example", pinned(place))


def test_an_oversized_member_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "p.tgz"
    size = reading.MAX_DESCRIPTION + 1
    with tarfile.open(place, "w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo("package/api/mooring.example.json")
        member.size = size
        archive.addfile(member, io.BytesIO(bytes(size)))
    with pytest.raises(MemberMissing, match="more than"):
        read_description(place, "mooring.example", pinned(place))


def pinned(place: Path) -> Package:
    """The package as an index would name it that was made from this very tarball."""
    digest = base64.b64encode(hashlib.sha512(place.read_bytes()).digest()).decode()
    return Package("p", "1", f"sha512-{digest}")


@pytest.mark.parametrize(
    "url",
    [
        *PRIVATE,
        "http://docs.example/api",
        "https://user@docs.example/",
        "file:///etc/passwd",
        "https://db/api",
        "https://docs.example/\u202e",
    ],
)
def test_a_page_of_a_search_that_leads_into_a_private_network_is_not_offered(url: str) -> None:
    answer = {"results": [{"url": url, "title": "Mooring API"}]}
    assert read_results(json.dumps(answer).encode()) == ()


def test_a_public_page_of_a_search_is_offered_and_has_to_be_chosen() -> None:
    answer = {"results": [{"url": "https://docs.example/api", "title": "Mooring \u202eAPI"}]}
    (page,) = read_results(json.dumps(answer).encode())
    assert (page.location, page.doubts) == ("https://docs.example/api", ("page",))
    assert page.hosts == ("docs.example:443",)
    assert page.title == "Mooring API"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"results": 5}', b'{"results": [5, null, {}]}', b"[" * 100_000]
)
def test_an_answer_of_a_search_that_is_none_offers_nothing(content: bytes) -> None:
    assert read_results(content) == ()
