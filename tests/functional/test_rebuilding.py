"""The base image built again: every server is proved on it before it moves there."""

from __future__ import annotations

import asyncio
import io
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import open_app
from orchestrator.calls import Call, Done
from orchestrator.cli.rebuild import rebuild_and_reprove
from orchestrator.healing.reprove import ReproofResult
from orchestrator.settings import Settings
from registry.models import Entry, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.bases import list_kept_bases
from sandbox.engines.docker.engine import Client, connect_engine
from sandbox.engines.docker.image import (
    BaseImage,
    build_context,
    compute_base_reference,
    find_base_image,
)
from tests.crash.engine import private_engine
from tests.crash.installation import Installation
from tests.sandbox.computing import CASES, computing, takes

pytestmark = pytest.mark.docker
LOCAL = """
from datetime import datetime

from toolwright import tool


@tool
def offset(year):
    local = datetime(year, 1, 1).astimezone().utcoffset()
    return {"year": year, "minutes": int(local.total_seconds() // 60)}
"""
YEAR = {"type": "integer", "minimum": 1990, "maximum": 2030}
ELSEWHERE = "ENV TZ=XXX-09:00"
"""Another time zone, which only a server that looks at the clock on the wall notices."""


@pytest.fixture(scope="module")
def settings(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Of a home on an engine of its own: the base image is one for all that an engine runs."""
    with tempfile.TemporaryDirectory(prefix="engine") as directory:
        with private_engine(Path(directory), base_image) as engine:
            with pytest.MonkeyPatch.context() as environment:
                environment.setenv("DOCKER_HOST", engine.host)
                home = tmp_path_factory.mktemp("rebuilding") / "home"
                yield replace(Installation.made(home, "docker").settings, spares=0)


def local() -> Bundle:
    (tool,) = computing().tools
    tool = replace(tool, name="offset", description="Minutes east.", input_schema=takes(year=YEAR))
    return replace(computing(LOCAL, tool), name="local")


HERE = tuple(Example("offset", {"year": y}, {"year": y, "minutes": 0}) for y in (2001, 2011))


def layered(line: str) -> Callable[[Client, Callable[[str], None]], BaseImage]:
    """Builds the base with one more line."""

    def build(client: Client, progress: Callable[[str], None]) -> BaseImage:
        file = f"FROM {compute_base_reference()}\n{line}\n".encode()
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as archive:
            member = tarfile.TarInfo("Dockerfile")
            member.size = len(file)
            archive.addfile(member, io.BytesIO(file))
        context.seek(0)
        name = f"{compute_base_reference()}-next"
        return BaseImage(name, build_context(client, context, name, {}, {}))

    return build


def put(settings: Settings, store: Store, bundle: Bundle, cases: tuple[Example, ...]) -> Entry:
    """A server as it was proved on the present base."""
    with closing(connect_engine()) as client:
        base = find_base_image(client)
    assert base is not None
    made = replace(bundle, provenance=replace(bundle.provenance, base_image=base.id))
    return Bundles(settings.home, store.servers).publish_bundle(
        made, build_entry(made, time.time()), (), None, cases
    )


async def called(settings: Settings, server: str, tool: str, **arguments: Any) -> Any:
    async with open_app(settings, "call") as app:
        reply = await app.dispatch.call_tool(Call(server, tool, arguments))
        assert isinstance(reply, Done), reply
        assert reply.outcome.ok, reply.outcome.failure
        return reply.outcome.structured


def test_a_server_moves_to_the_new_base_only_where_it_is_as_good_there(settings: Settings) -> None:
    told: list[ReproofResult] = []

    async def act() -> None:
        with Store.open(settings.database_url) as store:
            before = put(settings, store, local(), HERE).base_image
            put(settings, store, computing(), CASES)
            built = await rebuild_and_reprove(settings, print, told.append, layered(ELSEWHERE))
            assert built.changed
            assert built.image != before
            assert tuple(told) == built.servers
            found = {each.server: each for each in told}
            assert (found["halves"].verdict, found["halves"].version) == ("renewed", 2)
            assert (found["local"].verdict, found["local"].version) == ("failed", 1)
            assert "offset case 1" in found["local"].reason
            assert f"it stays on {before}" in found["local"].reason
            assert store.servers.get("halves").base_image == built.image
            assert store.servers.get("local").base_image == before
            kinds = {(row.kind, row.subject) for row in store.audit.find()}
            assert {("reproved", "halves"), ("reprove.failed", "local")} <= kinds
            with closing(connect_engine()) as client:
                assert set(list_kept_bases(client)) == {before}
        assert await called(settings, "local", "offset", year=2020) == {"year": 2020, "minutes": 0}
        assert await called(settings, "halves", "halve", number=3) == {"half": 1.5}

    asyncio.run(act())


def test_a_base_that_comes_out_as_it_was_proves_nothing_anew(settings: Settings) -> None:
    def same(client: Client, progress: Callable[[str], None]) -> BaseImage:
        present = find_base_image(client)
        assert present is not None
        repository, _, tag = f"{compute_base_reference()}-next".rpartition(":")
        client.api.tag(present.id, repository, tag)
        return BaseImage(f"{repository}:{tag}", present.id)

    told: list[ReproofResult] = []
    built = asyncio.run(rebuild_and_reprove(settings, print, told.append, same))
    assert (built.changed, built.servers, told) == (False, (), [])
