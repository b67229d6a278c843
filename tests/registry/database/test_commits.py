"""Waiting for commits: who waits is told when to ask, and asks anyway where nobody tells."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from registry.database.commits import BUSY_SECONDS, CommitWait, LogWatch

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@contextmanager
def open_database(folder: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    path = folder / "some.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("CREATE TABLE notes (text)")
        yield path, connection


@contextmanager
def open_wait(path: Path) -> Iterator[CommitWait]:
    with closing(CommitWait(path)) as commits:
        yield commits


def count_turns(commits: CommitWait, seconds: float) -> int:
    """How often it says that it is worth asking, within so long."""
    end, turns = time.monotonic() + seconds, 0
    while time.monotonic() < end and commits.wait():
        turns += 1
    return turns


def read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


@needs_inotify
def test_it_rests_while_nobody_writes(tmp_path: Path) -> None:
    with open_database(tmp_path) as (path, _), open_wait(path) as commits:
        assert commits.is_told
        count_turns(commits, BUSY_SECONDS)
        # A loaded machine makes fewer turns, never more.
        assert count_turns(commits, 0.3) <= 4


@needs_inotify
def test_a_write_by_another_connection_ends_the_rest(tmp_path: Path) -> None:
    with open_database(tmp_path) as (path, connection), open_wait(path) as commits:
        count_turns(commits, BUSY_SECONDS)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            before = read_version(connection)
            other.execute("INSERT INTO notes VALUES ('a')")
        assert commits.wait()
        assert read_version(connection) != before


@needs_inotify
def test_a_log_that_is_gone_is_not_relied_upon(tmp_path: Path) -> None:
    with open_database(tmp_path) as (path, _), open_wait(path) as commits:
        log = path.with_name("some.db-wal")
        os.rename(log, path.with_name("elsewhere"))
        assert commits.wait()
        assert not commits.is_told


def test_without_a_log_it_is_asked_all_the_time(tmp_path: Path) -> None:
    with open_wait(tmp_path / "none.db") as commits:
        assert not commits.is_told
        assert commits.wait()


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="a file system without inotify")
def test_on_a_file_system_that_does_not_tell_it_is_asked_all_the_time() -> None:
    # procfs stands for each file system that is not known to tell, as NFS.
    assert LogWatch.open(Path("/proc/self/comm")) is None


def test_stopping_ends_a_wait_and_all_later_ones(tmp_path: Path) -> None:
    with open_database(tmp_path) as (path, _), open_wait(path) as commits:
        thread = threading.Thread(target=count_turns, args=(commits, 3600.0))
        thread.start()
        commits.stop()
        thread.join()
        assert not commits.wait()
