"""The disk of the home is full: what cannot be kept is not begun, and nothing is half-kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.crash.client import served
from tests.crash.disk import Disk, small_disk
from tests.crash.documents import OBJECT, described, reading
from tests.crash.installation import Installation, until
from tests.world.harbour import HarbourApi, harbour_api
from tests.world.site import Asked, Page, site

FAILED = 1
FOR_ITS_ROWS = 512 * 1024
"""Room for all that a forge writes but its bundle."""
BOAT = {"name": "Late", "kind": "sail", "length": 7.5}
BOOKING = {"body": {"berth": 4, "boat": BOAT, "arrival": "2030-06-01", "nights": 2}}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    directory = tmp_path / "disk"
    directory.mkdir()
    with small_disk(directory) as disk:
        yield disk


@pytest.fixture
def small(disk: Disk, any_engine: str) -> Installation:
    return Installation.made(disk.directory / "home", any_engine, TOOLWRIGHT_SPARES="0")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path) as api:
        yield api


def test_calls_on_a_full_disk_are_refused_or_recorded_later(
    small: Installation, disk: Disk, api: HarbourApi
) -> None:
    small.allow(api.url)
    with served(small) as client:
        assert client.forged(api.url, name="harbour")["state"] == "done"
        disk.fill()
        read = client.value("call_read", tool="harbour.list_berths")
        assert read["status"] == 200
        # Once it is known that this one has no room, none is begun.
        again = until(lambda: _find_refusal(client.call("call_read", tool="harbour.list_berths")))
        assert "earlier calls could not be recorded yet" in again
        assert "free space on its disk" in again
        for asked in (
            client.call("call_write", tool="harbour.book_berth", arguments=BOOKING),
            client.call("forge", task="x", source=api.url, name="second"),
        ):
            assert asked["isError"]
            assert "disk is full" in asked["content"][0]["text"]
        assert client.value("find", task="list the berths")["candidates"]
        disk.empty()
        until(lambda: client.value("status")["recent"])
        write = client.value("call_write", tool="harbour.book_berth", arguments=BOOKING)
        assert write["state"] == "pending"
    assert api.received("POST") == []
    assert [entry["tool_id"] for entry in small.listed()] == ["harbour"]
    assert small.troubles() == []


def _find_refusal(result: Mapping[str, Any]) -> str:
    return str(result["content"][0]["text"]) if result.get("isError") else ""


def test_commands_on_a_full_disk_say_so_in_a_line_and_change_nothing(
    small: Installation, disk: Disk
) -> None:
    disk.fill()
    pin = ("--pin-file", str(small.pin_file))
    for words in (
        ("forge", "x", "--source", "127.0.0.1:1"),
        ("source", "allow", "127.0.0.1:1", *pin),
        ("unfreeze", *pin),
        ("list",),
    ):
        result = small.run(*words)
        assert result.exit_code == FAILED
        assert "ree space" in result.stderr
        assert result.stderr.count("\n") == 1
    disk.empty()
    with small.store() as store:
        assert (store.jobs.find(), store.grants.find_grants()) == ((), ())
    assert small.troubles() == []


def filling(disk: Disk, left: int) -> Callable[[Asked], Page]:
    """A page that fills the disk when it is asked for, which is in the live stage."""

    def answer(asked: Asked) -> Page:
        disk.fill(left)
        return Page(b'{"name": "x"}')

    return answer


def large() -> bytes:
    """An API whose bundle takes more than a megabyte."""
    problem = {"type": "string", "enum": [f"problem {number:06}" for number in range(40_000)]}
    path = reading(OBJECT)
    content = {"application/json": {"schema": problem}}
    path["get"]["responses"]["404"] = {"description": "none", "content": content}
    return described({"/a": path})


def test_a_disk_with_no_room_for_a_bundle_keeps_nothing_of_it(
    small: Installation, disk: Disk
) -> None:
    with site({"/openapi.json": Page(large())}) as pages:
        small.allow(pages.url)
        pages.pages["/a"] = filling(disk, FOR_ITS_ROWS)
        words = ("forge", "x", "--source", pages.url, "--name", "large")
        result = small.run(*words)
        assert result.exit_code == FAILED
        assert result.stdout.startswith("No space left on device. Free space")
        assert small.listed() == []
        assert small.troubles() == []
        disk.empty()
        pages.pages["/a"] = Page(b'{"name": "x"}')
        assert small.run(*words).exit_code == 0
    assert [entry["tool_id"] for entry in small.listed()] == ["large"]
    assert small.troubles() == []


def test_a_job_that_ends_on_a_full_disk_is_told_when_there_is_room(
    small: Installation, disk: Disk
) -> None:
    with site({"/openapi.json": Page(large())}) as pages, served(small) as client:
        small.allow(pages.url)
        pages.pages["/a"] = filling(disk, 0)
        job = client.value("forge", task="x", source=pages.url, name="large")["job"]
        until(lambda: "not recorded yet" in client.said())
        disk.empty()
        ended = client.followed(job)
        assert (ended["state"], ended["result"]) == ("failed", None)
        assert "free space" in ended["message"]
    assert small.listed() == []
    assert small.troubles() == []
