"""The servers' directory as catalogue: what comes, changes, goes and comes back."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import UnknownTool
from orchestrator.forging.edits import GONE_LOOKS, LOOKED_AT_ONCE, READ_AT_ONCE, EditWatcher
from orchestrator.forging.order import ForgeResult
from registry.database.files import lock_file
from registry.errors import RowNotFound
from registry.models import Entry, build_entry
from registry.servers import files
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from registry.store import Store
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, ToolDefinition, read_bundle, write_bundle
from sandbox.bundle.permissions import build_request_pattern
from sandbox.bundle.report import Proof, StageReport
from sandbox.errors import EngineUnavailable
from tests.engine.samples import bundle

CODE = "from toolwright import tool\n\n@tool\ndef ready():\n    return {}\n"
PASSED, FAILED = (StageReport("cases", verdict, 1.0) for verdict in ("passed", "failed"))
EXAMPLE = b'{"cases": [{"tool": "ready", "arguments": {}, "result": {"n": 1}}]}'


def server(name: str = "one", version: int = 1) -> Bundle:
    made = bundle(CODE, "ready", pure=True)
    return replace(made, name=name, version=version, permissions=())


@dataclass
class Stages:
    """A forge whose stages say what the test says; everything else is the real one."""

    store: Store
    shelf: Bundles
    report: StageReport = PASSED
    trouble: Exception | None = None
    proved: int = 0

    def now(self) -> float:
        return 1000.0

    async def prove_bundle(self, bundle: Bundle, *_: Any) -> Proof:
        self.proved += 1
        if self.trouble:
            raise self.trouble
        return Proof(bundle.compute_digest(), (self.report,))

    async def adopt_bundle(
        self, bundle: Bundle, report: Any, examples: tuple[Example, ...] = ()
    ) -> ForgeResult:
        proof = await self.prove_bundle(bundle)
        try:
            version = self.store.servers.get(bundle.name).version + 1
        except RowNotFound:
            version = 1
        made = replace(bundle, version=version)
        entry = self.shelf.publish_bundle(
            made, build_entry(made, 1.0), proof.reports, None, examples
        )
        return ForgeResult(entry, made, proof)


@dataclass
class Place:
    home: Path
    store: Store
    stages: Stages
    edits: EditWatcher

    def at(self, name: str) -> Path:
        return self.home / "servers" / name

    def put(self, made: Bundle) -> None:
        self.stages.shelf.publish_bundle(made, build_entry(made, 1.0), (PASSED,), None)

    def drop(self, made: Bundle) -> None:
        self.at(made.name).mkdir(parents=True)
        write_bundle(made, self.at(made.name))

    def look(self, times: int = 2) -> None:
        async def looked() -> None:
            for _ in range(times):
                await self.edits.publish_edits()

        asyncio.run(looked())

    def state(self, name: str) -> str:
        return self.store.servers.get(name).state

    def refused(self) -> list[str]:
        return [row.subject for row in self.store.audit.find() if row.kind == "edit.refused"]


@pytest.fixture
def place(tmp_path: Path, store: Store) -> Place:
    stages = Stages(store, Bundles(tmp_path, store.servers))

    def tool_of(server: str, tool: str) -> ToolDefinition:
        try:
            return stages.shelf.load_bundle(store.servers.get(server)).get_tool(tool)
        except (RowNotFound, KeyError) as error:
            raise UnknownTool(f"{server}.{tool}") from error

    edits = EditWatcher(tmp_path, store, stages.shelf, lambda: stages, tool_of, now=stages.now)  # type: ignore[arg-type]
    return Place(tmp_path, store, stages, edits)


def test_a_bundle_dropped_in_is_usable_once_it_is_at_rest(place: Place) -> None:
    place.drop(server())
    place.look(1)
    assert place.store.servers.find_summaries() == ()
    place.look(1)
    assert place.store.servers.get("one").version == 1


class Committing(ServerTable):
    """Rows whose next version is looked at between its commit and the renaming of its files."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def publish(self, *given: Any, **named: Any) -> Entry:
        made = super().publish(*given, **named)
        self.meanwhile()
        return made


def test_a_version_whose_files_are_not_yet_in_place_is_no_edit(place: Place) -> None:
    place.put(server())
    place.look(1)
    place.stages.trouble = EngineUnavailable("nothing is to be proved")
    rows = Committing(place.store.servers._database)
    rows.meanwhile = lambda: place.look(3)
    fresh = replace(server(version=2), source_code=CODE + "\n")
    Bundles(place.home, rows).publish_bundle(fresh, build_entry(fresh, 2.0), (PASSED,), None)
    place.look(3)
    current = place.store.servers.get("one")
    assert (current.version, current.digest) == (2, fresh.compute_digest())
    assert (place.stages.proved, place.refused()) == (0, [])


def test_an_installation_that_died_after_its_row_is_settled_and_is_no_edit(place: Place) -> None:
    place.put(server())
    rows = Committing(place.store.servers._database)
    fresh = replace(server(version=2), source_code=CODE + "\n")

    def die() -> None:
        raise InterruptedError

    rows.meanwhile = die
    staged = place.home / "servers" / files.UNDER_WAY / f"{files.STAGING}-one-{'0' * 16}"
    files._stage_bundle(staged, fresh, (), {})
    with pytest.raises(InterruptedError):
        rows.publish(build_entry(fresh, 2.0), (), now=2.0)
    place.look(4)
    assert place.store.servers.get("one").version == 2
    assert read_bundle(place.at("one")).compute_digest() == fresh.compute_digest()
    assert (place.stages.proved, place.refused()) == (0, [])


def test_a_half_written_bundle_is_not_picked_up_and_not_complained_about(place: Place) -> None:
    place.at("one").mkdir(parents=True)
    (place.at("one") / "server.py").write_text(CODE)
    place.look(4)
    assert (place.store.servers.find_summaries(), place.refused()) == ((), [])
    write_bundle(server(), place.at("one"))
    place.look()
    assert place.store.servers.get("one").version == 1


def test_a_directory_that_is_deleted_archives_its_server_and_one_that_is_back_revives_it(
    place: Place,
) -> None:
    place.put(server())
    place.look()
    place.at("one").rename(place.home / "aside")
    place.look(GONE_LOOKS - 1)
    assert place.state("one") == "active"
    place.look(1)
    assert place.state("one") == "archived"
    assert files.check_consistency(place.home, place.store.servers) == ()
    (place.home / "aside").rename(place.at("one"))
    place.look()
    assert place.state("one") == "active"
    said = [row.payload for row in place.store.audit.find() if row.kind == "state"]
    assert [payload.count('"by":"files"') for payload in said] == [1, 1]


def test_a_directory_that_is_gone_for_a_moment_changes_nothing(place: Place) -> None:
    place.put(server())
    place.look()
    for _ in range(3):
        place.at("one").rename(place.home / "aside")
        place.look(GONE_LOOKS - 1)
        (place.home / "aside").rename(place.at("one"))
        place.look(1)
    assert place.state("one") == "active"


@pytest.mark.parametrize("alive", [True, False])
def test_a_server_whose_next_version_is_being_put_in_place_is_not_archived(
    place: Place, alive: bool
) -> None:
    place.put(server())
    place.look()
    newer = server(version=2)
    under_way = place.home / "servers" / files.UNDER_WAY
    staged = under_way / f"{files.STAGING}-one-{'a' * 16}"
    with lock_file(place.home / "servers" / files.LOCK) if alive else nullcontext():
        # Between the two renames: the one who installs it was killed there, or is still at it.
        staged.mkdir()
        write_bundle(newer, staged)
        place.store.servers.publish(build_entry(newer, 2.0), now=2.0)
        place.at("one").rename(under_way / f"{files.RETIRED}-one-{'b' * 16}")
        place.look(GONE_LOOKS + 1)
        assert place.state("one") == "active"
        assert place.at("one").exists() is not alive
    place.look(GONE_LOOKS + 1)
    assert place.state("one") == "active"
    assert read_bundle(place.at("one")) == newer


def test_what_a_person_archived_stays_archived(place: Place) -> None:
    place.put(server())
    place.store.servers.archive("one", 1.0, "terminal")
    place.look(6)
    assert place.state("one") == "archived"


def test_a_quarantined_server_comes_back_quarantined(place: Place) -> None:
    place.put(server())
    place.store.servers.set_state("one", "quarantined", 1.0, "trust")
    place.look()
    place.at("one").rename(place.home / "aside")
    place.look(GONE_LOOKS)
    (place.home / "aside").rename(place.at("one"))
    place.look()
    assert place.state("one") == "quarantined"


def test_a_home_whose_servers_are_all_away_archives_nothing(place: Place) -> None:
    place.put(server())
    place.look()
    (place.home / "servers").rename(place.home / "unmounted")
    place.look(GONE_LOOKS + 3)
    assert place.state("one") == "active"


def test_a_checkout_of_many_takes_up_each_that_changed_and_none_that_did_not(place: Place) -> None:
    for name in ("one", "two", "three"):
        place.put(server(name))
    place.look()
    (place.at("one") / "server.py").write_text(f"{CODE}# changed\n")
    (place.at("two") / "server.py").write_text(CODE)
    shutil.rmtree(place.at("three"))
    place.drop(server("four"))
    place.look(GONE_LOOKS + 1)
    versions = {
        each.name: (each.version, each.state) for each in place.store.servers.find_summaries()
    }
    assert versions == {
        "one": (2, "active"),
        "two": (1, "active"),
        "three": (1, "archived"),
        "four": (1, "active"),
    }


Harm = Callable[[Place], None]


def _file(place: Place) -> None:
    place.at("bad").write_text("no directory")


def _unreadable(place: Place) -> None:
    place.drop(server("bad"))
    (place.at("bad") / "tools.json").write_text("[" * 100_000)


def _other_name(place: Place) -> None:
    place.at("bad").mkdir(parents=True)
    write_bundle(server("good"), place.at("bad"))


def _pipe(place: Place) -> None:
    place.at("bad").mkdir(parents=True)
    (place.at("bad") / "bundle.toml").symlink_to("/dev/zero")


def _tests(place: Place) -> None:
    place.drop(server("bad"))
    (place.at("bad") / "tests").mkdir()
    (place.at("bad") / "tests" / "cases.json").write_bytes(b"\xff{")


@pytest.mark.parametrize("harm", [_file, _unreadable, _other_name, _pipe, _tests])
def test_a_bad_one_keeps_no_other_from_being_taken_up(harm: Harm, place: Place) -> None:
    (place.home / "servers").mkdir()
    harm(place)
    place.drop(server("zebra"))
    place.look(4)
    assert [each.name for each in place.store.servers.find_summaries()] == ["zebra"]
    assert place.refused() in (["bad"], [])


def test_what_is_refused_is_told_once(place: Place) -> None:
    place.stages.trouble = None
    place.drop(replace(server(), source_code="def ("))
    (place.at("one") / "tools.json").write_text("{}")
    place.look(6)
    assert place.refused() == ["one"]


def test_an_edit_that_no_engine_could_prove_is_tried_again(place: Place) -> None:
    place.stages.trouble = EngineUnavailable("away")
    place.drop(server())
    place.look(3)
    assert place.store.servers.find_summaries() == ()
    assert place.refused() == ["one"]
    place.stages.trouble = None
    place.look(1)
    assert place.store.servers.get("one").version == 1


def calling(name: str, *called: str, access: Any = "read") -> Bundle:
    """A server whose tool declares to call these."""
    made = server(name)
    asked = tuple(filter(None, (build_request_pattern(f"call:{each}") for each in called)))
    permissions = tuple(f"call:{each}" for each in called)
    tool = replace(made.tools[0], requests=asked, access=access)
    return replace(made, tools=(tool,), permissions=permissions)


@pytest.mark.parametrize(
    ("edited", "wrong"),
    [
        (("writer.ready",), "writes, so this tool is a `write` too"),
        (("above.ready",), "come back to one"),
        (("deep.ready",), "more than 3 deep"),
        (("one.ready",), "is of this server"),
        (("two.nothing",), "there is no tool two.nothing"),
        (("two.ready", "nowhere.ready"), "there is no tool nowhere.ready"),
    ],
)
def test_an_edit_that_calls_what_it_may_not_is_refused(
    edited: tuple[str, ...], wrong: str, place: Place
) -> None:
    place.put(server("two"))
    place.put(replace(calling("writer"), tools=(replace(server().tools[0], access="write"),)))
    place.put(calling("below", "two.ready"))
    place.put(calling("lower", "below.ready"))
    place.put(calling("deep", "lower.ready"))
    place.put(calling("one", "two.ready"))
    place.put(calling("above", "one.ready"))
    place.look()
    write_bundle(calling("one", *edited), place.at("one"))
    place.look(4)
    assert place.store.servers.get("one").version == 1
    (row,) = [row for row in place.store.audit.find() if row.kind == "edit.refused"]
    assert wrong in row.payload
    write_bundle(calling("one", "below.ready"), place.at("one"))
    place.look()
    assert place.store.servers.get("one").version == 2


def test_servers_that_call_each_other_may_come_in_any_order(place: Place) -> None:
    place.drop(calling("a", "b.ready"))
    place.drop(calling("b", "c.ready"))
    place.look(3)
    assert place.store.servers.find_summaries() == ()
    place.drop(server("c"))
    place.look(4)
    assert [each.name for each in place.store.servers.find_summaries()] == ["a", "b", "c"]


@pytest.mark.parametrize(("report", "kind"), [(PASSED, "tests.passed"), (FAILED, "edit.refused")])
def test_tests_that_are_changed_are_tried_on_the_version_in_use(
    report: StageReport, kind: str, place: Place
) -> None:
    place.put(server())
    place.look()
    assert place.stages.proved == 0
    place.stages.report = report
    (place.at("one") / "tests" / "cases.json").write_bytes(EXAMPLE)
    place.look(4)
    assert place.stages.proved == 1
    assert next(iter(place.store.audit.find())).kind == kind
    assert place.store.servers.get("one").version == 1


def test_an_edit_is_found_among_many_servers_though_a_look_reads_only_some(place: Place) -> None:
    for number in range(LOOKED_AT_ONCE + READ_AT_ONCE):
        place.at(f"empty{number}").mkdir(parents=True)
    made = replace(server(), name="zulu")
    place.drop(made)
    place.look(2)
    assert place.store.servers.find_states() == {}
    place.look(10)
    assert place.store.servers.find_states() == {"zulu": "active"}
