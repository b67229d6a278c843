"""Bad input, through the command line and through MCP: an error that says what to do, no trace."""

from __future__ import annotations

import itertools
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.client import FINAL, Served, served
from tests.crash.documents import (
    BAD_FILES,
    BAD_PLACES,
    HALF_BROKEN,
    OBJECT,
    TREE,
    described,
    reading,
)
from tests.crash.installation import Installation
from tests.world.site import Page, Site, site

REFUSED, WAITS = 1, 3


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, any_engine: str) -> Iterator[Installation]:
    """One installation for all bad documents, in which no trace of any may be left."""
    home = tmp_path_factory.mktemp("documents") / "home"
    installation = Installation.made(home, any_engine, TOOLWRIGHT_SPARES="0")
    before = installation.listed()
    yield installation
    assert installation.listed() == before == []
    assert installation.troubles() == []


@pytest.fixture(scope="module")
def client(shared: Installation) -> Iterator[Served]:
    with served(shared) as client:
        yield client


@pytest.fixture
def pages() -> Iterator[Site]:
    with site() as here:
        yield here


def check_refused(installation: Installation, client: Served, source: str, words: str) -> str:
    """Forge from it both ways; both must fail with a single line, and that of the terminal is
    returned. A file that a person allowed is named as one.
    """
    line = check_refused_at_terminal(installation, source, words)
    job = client.forged(source)
    assert (job["state"], job["result"]) == ("failed", None)
    assert words in job["message"]
    assert "\n" not in job["message"]
    assert len(job["message"]) < 1000
    check_untouched(installation)
    return line


def check_refused_at_terminal(installation: Installation, source: str, words: str) -> str:
    result = installation.run("forge", "list things", "--source", source)
    assert result.exit_code == REFUSED
    # What is wrong already with the words has no job.
    line = (result.stdout or result.stderr).strip()
    assert words in line
    assert "\n" not in line
    assert len(line) < 1000
    assert "Traceback" not in result.stderr
    check_untouched(installation)
    return line


def check_untouched(installation: Installation) -> None:
    assert installation.troubles() == []
    servers = installation.home / "servers"
    assert not servers.exists() or [p.name for p in servers.iterdir() if p.is_dir()] == []


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_is_no_api_description_is_refused(
    kind: str, shared: Installation, client: Served, tmp_path: Path
) -> None:
    content, words = BAD_FILES[kind]
    path = tmp_path / kind
    path.write_bytes(content)
    allowed = ("source", "allow", str(path), "--pin-file", str(shared.pin_file))
    assert shared.run(*allowed).exit_code == 0
    line = check_refused(shared, client, str(path), words)
    assert kind in line
    assert line.endswith((".", "`."))


@pytest.mark.parametrize("kind", BAD_PLACES)
def test_a_path_that_cannot_be_read_is_refused(
    kind: str, shared: Installation, client: Served, tmp_path: Path
) -> None:
    make, words = BAD_PLACES[kind]
    make(tmp_path / kind)
    check_refused_at_terminal(shared, str(tmp_path / kind), words)
    # A client is not told what there is, but that a person has to allow it.
    assert client.forged(str(tmp_path / kind))["state"] == "waiting"
    check_untouched(shared)


def test_a_port_where_nobody_listens_is_named(shared: Installation, client: Served) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        shared.allow(url)
        line = check_refused(shared, client, url, "gives no answer")
    assert "Check the address" in line


def test_a_name_that_does_not_resolve_is_named(shared: Installation, client: Served) -> None:
    shared.allow("http://no-such-host.invalid:80")
    check_refused(shared, client, "http://no-such-host.invalid", "does not resolve")


def test_an_endless_body_is_cut(shared: Installation, client: Served, pages: Site) -> None:
    pages.pages["/openapi.json"] = Page(chunks=lambda: itertools.repeat(b" " * 65536))
    shared.allow(pages.url)
    check_refused(shared, client, f"{pages.url}/openapi.json", "larger than")


@pytest.mark.parametrize("hops", [("/b", "/a"), ("/b", "/a?again"), ("/a",)])
def test_a_redirect_loop_ends(
    hops: tuple[str, ...], shared: Installation, client: Served, pages: Site
) -> None:
    places = itertools.pairwise(("/a", *hops))
    pages.pages |= {at: Page(status=302, headers=(("Location", to),)) for at, to in places}
    shared.allow(pages.url)
    check_refused(shared, client, f"{pages.url}/a", "no API description was found")
    assert len(pages.asked) < 200


def test_a_document_is_not_fetched_from_where_it_redirects_to_on_another_host(
    shared: Installation, client: Served, pages: Site
) -> None:
    with site({"/openapi.json": Page(described({"/a": reading(OBJECT)}))}) as other:
        target = f"{other.url}/openapi.json"
        pages.pages["/openapi.json"] = Page(status=302, headers=(("Location", target),))
        shared.allow(pages.url)
        check_refused(shared, client, f"{pages.url}/openapi.json", "no API description")
        assert other.asked == []


def test_nothing_is_sent_to_a_host_that_nobody_allowed(
    installation: Installation, pages: Site
) -> None:
    result = installation.run("forge", "list things", "--source", pages.url)
    host = pages.url.removeprefix("http://")
    assert result.exit_code == WAITS
    assert f"toolwright source allow {host}" in result.stdout
    assert pages.asked == []


def test_a_private_server_is_asked_for_though_its_documents_host_is_allowed(
    installation: Installation, pages: Site
) -> None:
    with site({"/a": Page(b'{"name": "x"}')}) as server:
        document = described({"/a": reading(OBJECT)}, server.url)
        pages.pages["/openapi.json"] = Page(document)
        installation.allow(pages.url)
        host = server.url.removeprefix("http://")
        result = installation.run("forge", "list things", "--source", pages.url)
        assert result.exit_code == WAITS
        assert f"toolwright source allow {host}" in result.stdout
        assert installation.listed() == []
        with served(installation) as client:
            job = client.forged(pages.url)
            assert job["state"] == "waiting"
            assert f"toolwright source allow {host}" in job["message"]
            assert server.asked == []
            installation.allow(server.url)
            assert client.followed(job["job"], FINAL)["state"] == "done"
    assert len(installation.listed()) == 1
    assert installation.troubles() == []


def test_a_document_half_broken_keeps_the_rest_and_lists_each_problem(
    installation: Installation, pages: Site
) -> None:
    pages.pages["/openapi.json"] = Page(described(HALF_BROKEN, schemas={"Tree": TREE}))
    for number in range(1, 5):
        pages.pages[f"/good/{number}"] = Page(b'{"name": "x"}')
    installation.allow(pages.url)
    source = f"{pages.url}/openapi.json"
    result = installation.run("forge", "list things", "--source", source, "--json")
    assert result.exit_code == 0, result.stdout
    forged = json.loads(result.stdout)["result"]
    assert len(forged["tools"]) == 4
    problems = forged["problems"]
    for path in HALF_BROKEN:
        pointer = "/paths/" + path.replace("/", "~1")
        named = [p for p in problems if p.startswith(f"{source}#{pointer}")]
        assert bool(named) == path.startswith("/broken"), problems
    assert all(problem.partition(": ")[2] for problem in problems)
    assert len(installation.listed()) == 1
    assert installation.troubles() == []
