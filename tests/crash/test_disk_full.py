"""The disk of the home is full: what cannot be kept is not begun, and nothing is half-kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.client import served
from tests.crash.disk import Disk, small_disk
from tests.crash.documents import OBJECT, described, reading
from tests.crash.installation import Installation, until
from tests.world.harbour import HarbourApi, harbour_api
from tests.world.site import Asked, Page, site

pytestmark = pytest.mark.docker
FAILED = 1
FOR_ITS_ROWS, FOR_NOTHING = 512 * 1024, 0
"""How much room a forge still has when its bundle is proved: all but the bundle's, or none."""
BOAT = {"name": "Late", "kind": "sail", "length": 7.5}
BOOKING = {"body": {"berth": 4, "boat": BOAT, "arrival": "2030-06-01", "nights": 2}}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    directory = tmp_path / "disk"
    directory.mkdir()
    with small_disk(directory) as disk:
        yield disk


@pytest.fixture
def small(disk: Disk, base_image: str) -> Installation:
    return Installation.made(disk.directory / "home", TOOLWRIGHT_SPARES="0")


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
        assert (store.jobs(), store.grants()) == ((), ())
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


@pytest.mark.parametrize("room", [FOR_ITS_ROWS, FOR_NOTHING])
def test_a_disk_that_fills_up_during_a_forge_registers_nothing(
    room: int, small: Installation, disk: Disk
) -> None:
    with site({"/openapi.json": Page(large())}) as pages:
        small.allow(pages.url)
        with served(small) as client:
            pages.pages["/a"] = filling(disk, room)
            job = client.value("forge", task="x", source=pages.url, name="large")["job"]
            if room == FOR_NOTHING:
                until(lambda: "not recorded yet" in client.said())
                disk.empty()
            ended = client.followed(job)
            assert (ended["state"], ended["result"]) == ("failed", None)
            assert "ree space" in ended["message"], ended
            assert small.listed() == []
            if room != FOR_NOTHING:
                disk.empty()
            pages.pages["/a"] = Page(b'{"name": "x"}')
            assert client.forged(pages.url, name="large")["state"] == "done"
    assert [entry["tool_id"] for entry in small.listed()] == ["large"]
    assert small.troubles() == []
