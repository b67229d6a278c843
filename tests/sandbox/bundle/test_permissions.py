"""Permissions: their texts, and the paths that nobody is given."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sandbox.broker.host.files import LocalFiles
from sandbox.bundle.permissions import (
    Permission,
    check_nesting,
    check_path,
    parse_permission,
    parse_permissions,
)
from sandbox.errors import PathRefused


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("network:API.example.com", "network:api.example.com:443"),
        ("network:api.example.com.:8443", "network:api.example.com:8443"),
        ("network:[2001:DB8::1]:80", "network:[2001:db8::1]:80"),
        ("env:API_KEY", "env:API_KEY"),
        ("fs:/data/x:ro", "fs:/data/x:ro"),
        ("fs:/data/x:rw", "fs:/data/x:rw"),
    ],
)
def test_a_permission_has_one_plain_form(text: str, normal: str) -> None:
    assert str(parse_permission(text)) == normal
    assert parse_permission(normal) == parse_permission(text)


@pytest.mark.parametrize(
    "text",
    [
        "network:",
        "network:*.example.com",
        "network:host/path",
        "network:user@host",
        "network:host:0",
        "network:host:99999",
        "network:0x7f000001",
        "network:2130706433",
        "network:127.1",
        "env:",
        "env:A=B",
        "env:LD_PRELOAD",
        "env:PATH",
        "env:HTTPS_PROXY",
        "env:NODE_OPTIONS",
        "env:PYTHONPATH",
        "fs:/data",
        "fs:data:ro",
        "fs:/data/../etc:ro",
        "fs:/data/:ro",
        "fs://data:ro",
        "fs:/data:rwx",
        "fs:/da,ta:ro",
        "fs:/da:ta:ro",
        "fs:/data\n:ro",
        "exec:/bin/sh",
        "",
    ],
)
def test_what_is_no_permission_grants_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_permission(text)
    assert parse_permissions([text, "env:OK"]) == (Permission("env", "OK"),)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/etc",
        "/etc/passwd",
        "/proc",
        "/proc/self/environ",
        "/sys",
        "/dev/null",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/var",
        "/var/lib/docker",
        "/home",
        "/home/alice",
        "/home/alice/.ssh",
        "/home/alice/.config/gh",
        "/root",
        "/root/.netrc",
        str(Path.home()),
        str(Path.home() / ".ssh" / "id_rsa"),
    ],
)
def test_the_systems_own_and_home_dot_files_are_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        check_path(path)


def test_a_plain_directory_and_a_plain_file_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    check_path(str(tmp_path))
    check_path(str(tmp_path / "file"))


def test_links_sockets_fifos_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    (tmp_path / "real" / "sub").mkdir()
    for name in ("link", "link/sub", "fifo", "socket", "missing"):
        with pytest.raises(PathRefused):
            check_path(str(tmp_path / name))


def test_our_own_places_and_what_holds_them_are_refused(tmp_path: Path) -> None:
    ours = tmp_path / "holder" / "toolwright"
    ours.mkdir(parents=True)
    (ours / "vault.json").write_text("{}")
    (tmp_path / "beside").mkdir()
    (tmp_path / "way").symlink_to(ours)
    for private in (ours, tmp_path / "way"):
        for refused in (ours, ours / "vault.json", ours.parent, tmp_path):
            with pytest.raises(PathRefused):
                check_path(str(refused), [private])
        check_path(str(tmp_path / "beside"), [private])


def test_a_path_inside_one_that_may_be_written_is_refused() -> None:
    outer, inner = Permission("fs", "/d", writable=True), Permission("fs", "/d/in")
    with pytest.raises(PathRefused, match="may be written"):
        check_nesting([inner, outer])
    check_nesting([Permission("fs", "/d"), inner])
    check_nesting([outer, Permission("fs", "/dx")])


class Granted:
    """A directory to read, one to write, and something secret beside them."""

    def __init__(self, place: Path) -> None:
        self.ro, self.rw = place / "ro", place / "rw"
        self.ro.mkdir()
        self.rw.mkdir()
        (place / "secret").write_text("secret")
        (self.ro / "a.txt").write_text("content")
        self.files = LocalFiles(
            [Permission("fs", str(self.ro)), Permission("fs", str(self.rw), True)]
        )


@pytest.fixture
def granted(tmp_path: Path) -> Granted:
    return Granted(tmp_path)


def test_granted_files_are_read_listed_and_written(granted: Granted) -> None:
    assert granted.files.read_file(f"{granted.ro}/a.txt") == b"content"
    assert b'"a.txt"' in granted.files.list_entries(str(granted.ro))
    granted.files.write_file(f"{granted.rw}/new", b"1")
    granted.files.write_file(f"{granted.rw}/new", b"2")
    assert [path.name for path in granted.rw.iterdir()] == ["new"]
    assert granted.files.read_file(f"{granted.rw}/new") == b"2"


def test_what_was_not_granted_is_refused(granted: Granted) -> None:
    for path in ("/etc/passwd", f"{granted.ro}/../secret", f"{granted.ro}x", "a.txt", "", "/"):
        with pytest.raises(PathRefused):
            granted.files.read_file(path)
    with pytest.raises(PathRefused):
        granted.files.write_file(f"{granted.ro}/a.txt", b"x")
    assert (granted.ro / "a.txt").read_text() == "content"


def test_no_link_leads_out_of_what_was_granted(granted: Granted) -> None:
    (granted.rw / "file").symlink_to(granted.rw.parent / "secret")
    (granted.rw / "folder").symlink_to(granted.rw.parent)
    for path in ("file", "folder/secret"):
        with pytest.raises(PathRefused):
            granted.files.read_file(f"{granted.rw}/{path}")
        with pytest.raises(PathRefused):
            granted.files.write_file(f"{granted.rw}/{path}", b"x")
    with pytest.raises(PathRefused):
        granted.files.list_entries(f"{granted.rw}/folder")
    assert (granted.rw.parent / "secret").read_text() == "secret"


def test_a_grant_whose_directory_became_a_link_is_void(granted: Granted) -> None:
    (granted.ro / "a.txt").unlink()
    granted.ro.rmdir()
    granted.ro.symlink_to(granted.rw.parent)
    with pytest.raises(PathRefused):
        granted.files.read_file(f"{granted.ro}/secret")


def test_devices_fifos_and_directories_are_not_read(granted: Granted) -> None:
    os.mkfifo(granted.ro / "fifo")
    (granted.ro / "sub").mkdir()
    for name in ("fifo", "sub"):
        with pytest.raises(PathRefused):
            granted.files.read_file(f"{granted.ro}/{name}")
