"""Counting what an installation holds: containers, open files, memory, rows, files, mounts."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.soaking.verdict import Figures
from sandbox.engines.docker.containers import ENGINE_ERRORS
from sandbox.engines.docker.engine import connect_engine, list_containers

MEGABYTE = 1024 * 1024
MOUNTS = Path("/proc/self/mountinfo")


@dataclass
class Engine:
    """The containers of one installation, and what the kernel held for those that are gone."""

    instance: str
    docker: bool
    _paths: set[str] = field(default_factory=set)

    def containers(self) -> Counter[str]:
        """How many there are, by the process that started them."""
        return Counter(each["Labels"].get("toolwright.process", "") for each in self._listed())

    def remember(self) -> None:
        """Note the mounts and network namespaces of the containers that run now."""
        if not self.docker:
            return
        with closing(connect_engine()) as client:
            for each in list_containers(client, instance=self.instance):
                with suppress(*ENGINE_ERRORS):
                    self._paths |= set(_kernel_paths(client.api.inspect_container(each["Id"])))

    def left(self) -> int:
        """How many of those that were noted are still there. Only while no container runs."""
        if not self._paths:
            return 0
        mounted = {line.split()[4] for line in MOUNTS.read_text().splitlines()}
        return sum(path in mounted or Path(path).exists() for path in self._paths)

    def _listed(self) -> tuple[Mapping[str, Any], ...]:
        if not self.docker:
            return ()
        with closing(connect_engine()) as client:
            return list_containers(client, instance=self.instance)


def _kernel_paths(container: Mapping[str, Any]) -> Iterator[str]:
    merged = ((container.get("GraphDriver") or {}).get("Data") or {}).get("MergedDir")
    key = (container.get("NetworkSettings") or {}).get("SandboxKey")
    yield from (path for path in (merged, key) if path)


def figures(pids: Mapping[str, int]) -> Mapping[str, Figures]:
    """Those of the processes that still run, by name."""
    found = {}
    for name, pid in pids.items():
        with suppress(psutil.NoSuchProcess, OSError):
            process = psutil.Process(pid)
            with process.oneshot():
                own = _read_own_memory(pid) / MEGABYTE
                found[name] = Figures(pid, process.num_fds(), own, process.num_threads())
    return found


def _read_own_memory(pid: int) -> int:
    """Bytes that a process wrote and no other has. A mapped component is left out: its pages are
    the kernel's cache, and each instance that maps them would count them again.
    """
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Private_Dirty:\s+(\d+) kB$", rollup, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def rows(database: Path) -> Mapping[str, int]:
    """How many rows each table has."""
    with closing(_opened(database)) as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%index_%'"
        names = [name for (name,) in connection.execute(query)]
        return {name: _count(connection, f'SELECT count(*) FROM "{name}"') for name in names}


def write_states(database: Path) -> Mapping[int, str]:
    """The state of every write that asked for an approval, by its number."""
    with closing(_opened(database)) as connection:
        query = "SELECT json_extract(arguments, '$.n'), state FROM approvals"
        return {int(number): state for number, state in connection.execute(query)}


def survivors(home: Path) -> int:
    """How many processes were started for this home and still run."""
    return sum(_belongs(process, home) for process in psutil.process_iter())


def files(directory: Path) -> int:
    return sum(path.is_file() for path in directory.rglob("*"))


def _belongs(process: psutil.Process, home: Path) -> bool:
    with suppress(psutil.Error):
        running = process.status() != psutil.STATUS_ZOMBIE
        return running and process.environ().get("TOOLWRIGHT_HOME") == str(home)
    return False


def _opened(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)


def _count(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])
