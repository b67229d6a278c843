"""Table of kept results: large answers of calls, which a session refers to by their handles."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, hash_text, to_compact_json
from sandbox import exactjson

HANDLE = re.compile(r"r([1-9][0-9]{0,8})\Z", re.ASCII)
FORGOTTEN_SECONDS = 7 * 86400.0
"""How long a session's numbers are remembered past its last result, so that an old handle never
names another result.
"""
MAX_SESSION_RESULTS = 200
TEXT = 200
GoneReason = Literal["unknown", "expired", "dropped"]


@dataclass(frozen=True)
class ResultSource:
    """A server whose data a result holds, and the places that it may talk to, as permissions
    (`network:api.example:443`); `anywhere` stands for all places.
    """

    server: str
    places: frozenset[str] = frozenset()


@dataclass(frozen=True)
class KeptResult:
    """A result of a session. `value` is any JSON value, `size` the bytes of its JSON text. `call`
    is the id of the call or job that it came of, `tool` is `server.tool`.
    """

    number: int
    call: str
    tool: str
    created: float
    expires: float
    size: int
    sources: tuple[ResultSource, ...] = ()
    value: Any = field(default=None, repr=False)

    @property
    def handle(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True)
class MissingResult:
    """Why a handle names nothing that can be read."""

    handle: str
    reason: GoneReason
    tool: str = ""


@dataclass(frozen=True)
class KeepLimits:
    """How long a result is kept, in seconds, and the most bytes of a session and of all."""

    seconds: float = 3600.0
    session_bytes: int = 16 << 20
    all_bytes: int = 128 << 20


class KeptResultTable(Repository):
    """A session is whatever its client calls it; who gives another name sees nothing of it. The
    name itself is not stored.
    """

    def keep(
        self,
        session: str,
        result: KeptResult,
        limits: KeepLimits,
    ) -> KeptResult | None:
        """Keep a result and give it its number; the session's earlier result of the same call where
        there is one. None where it is larger than a session may keep, or `session` is "".

        What has expired goes, and the oldest where there is no room. Raises ValueError, TypeError
        or RecursionError for a value that is not JSON.
        """
        written = exactjson.dumps(result.value)
        size = len(written)
        if not session or size > min(limits.session_bytes, limits.all_bytes):
            return None
        kept, key, now = tables.kept_results, hash_text(session), result.created
        with self._database.write() as connection:
            _drop_expired(connection, now)
            mine = kept.c.session == key
            same = mine & (kept.c.call == result.call) & kept.c.content.is_not(None)
            row = connection.execute(select(kept).where(same)).mappings().first()
            if row is not None:
                return _parse_row(row)
            _make_room(connection, key, size, limits)
            last = connection.execute(select(func.max(kept.c.number)).where(mine)).scalar_one()
            number = int(last or 0) + 1
            values = {
                "session": key,
                "number": number,
                "call": clean_text(result.call, 32),
                "tool": clean_text(result.tool, TEXT),
                "created": now,
                "expires": now + limits.seconds,
                "size": size,
                "sources": _write_sources(result.sources),
                "content": zlib.compress(written, 1),
            }
            connection.execute(insert(kept), values)
            told = {"handle": f"r{number}", "tool": result.tool, "bytes": size}
            self._append_audit_row(connection, "result.kept", result.call, told, now)
        return _parse_row(values)

    def find(self, session: str, handle: str, now: float) -> KeptResult | MissingResult:
        """The session's result of that handle, or why there is none."""
        match = HANDLE.match(handle)
        if match is None or not session:
            return MissingResult(handle, "unknown")
        kept = tables.kept_results
        query = select(kept).where(
            kept.c.session == hash_text(session), kept.c.number == int(match[1])
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            return MissingResult(handle, "unknown")
        if row["expires"] <= now:
            return MissingResult(handle, "expired", row["tool"])
        if row["content"] is None:
            return MissingResult(handle, "dropped", row["tool"])
        return _parse_row(row)

    def find_handles(self, session: str, now: float) -> Mapping[str, str]:
        """The handles of the session's results that can be read, by the id of their calls."""
        kept = tables.kept_results
        query = (
            select(kept.c.call, kept.c.number)
            .where(kept.c.session == hash_text(session), kept.c.expires > now)
            .where(kept.c.content.is_not(None))
        )
        if not session:
            return {}
        with self._database.read() as connection:
            return {row.call: f"r{row.number}" for row in connection.execute(query)}

    def record_uses(self, tool: str, uses: Iterable[tuple[KeptResult, str]], now: float) -> None:
        """Say in the audit that values of kept results, by their paths, go into a tool's call."""
        with self._database.write() as connection:
            for result, path in uses:
                told = {"handle": result.handle, "of": result.tool, "path": path, "tool": tool}
                self._append_audit_row(connection, "result.used", result.call, told, now)

    def drop_expired(self, now: float) -> None:
        """Remove the content of what has expired."""
        kept = tables.kept_results
        over = select(kept.c.number).where(kept.c.expires <= now, kept.c.content.is_not(None))
        with self._database.read() as connection:
            if connection.execute(over.limit(1)).first() is None:
                return
        with self._database.write() as connection:
            _drop_expired(connection, now)


def _drop_expired(connection: Connection, now: float) -> None:
    kept = tables.kept_results
    over = kept.c.expires <= now
    connection.execute(
        update(kept).where(over, kept.c.content.is_not(None)).values(content=None, size=0)
    )
    # A session's highest number stays while anything of it is remembered.
    newest = select(kept.c.session).where(kept.c.expires > now - FORGOTTEN_SECONDS)
    connection.execute(delete(kept).where(kept.c.session.not_in(newest)))


def _make_room(connection: Connection, session: str, size: int, limits: KeepLimits) -> None:
    """Drop the oldest results until one of that size fits in."""
    kept = tables.kept_results
    held = select(kept.c.session, kept.c.number, kept.c.size).where(kept.c.content.is_not(None))
    rows = connection.execute(held.order_by(kept.c.created, kept.c.number)).all()
    mine = [row for row in rows if row.session == session]
    own, whole = sum(row.size for row in mine), sum(row.size for row in rows)
    dropped = set()
    for row in (*mine, *rows):
        crowded = own + size > limits.session_bytes or len(mine) >= MAX_SESSION_RESULTS
        full = whole + size > limits.all_bytes
        if (row.session, row.number) in dropped or not (
            full or (crowded and row.session == session)
        ):
            continue
        dropped.add((row.session, row.number))
        whole -= row.size
        if row.session == session:
            own -= row.size
            mine = [each for each in mine if each.number != row.number]
    for key, number in dropped:
        gone = (kept.c.session == key) & (kept.c.number == number)
        connection.execute(update(kept).where(gone).values(content=None, size=0))


def _write_sources(sources: Iterable[ResultSource]) -> str:
    return to_compact_json({each.server: sorted(each.places) for each in sources})


def _parse_row(row: RowMapping | Mapping[str, Any]) -> KeptResult:
    own = ("number", "call", "tool", "created", "expires", "size")
    sources = json.loads(row["sources"])
    return KeptResult(
        **{name: row[name] for name in own},
        sources=tuple(ResultSource(name, frozenset(sources[name])) for name in sources),
        value=exactjson.loads(zlib.decompress(row["content"])),
    )
