"""The search's index of tools, in a row for each server."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from itertools import repeat
from struct import pack
from typing import Any

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, String, Table, Text, text

revision = "0004"
down_revision = "0003"

FOUND = text("""
    SELECT documents.entry, documents.id, documents.tool, tools.access, documents.words,
           CAST(documents.stems AS BLOB), CAST(documents.worths AS BLOB),
           CAST(documents.example_stems AS BLOB)
    FROM search_documents AS documents
    JOIN entries ON entries.name = documents.entry
    JOIN tools ON tools.entry = entries.name AND tools.version = entries.version
         AND tools.name = documents.tool
    ORDER BY documents.id""")
GIVEN = text("SELECT seq FROM sqlite_sequence WHERE name = 'search_documents'")
FORGET_GIVEN = text("DELETE FROM sqlite_sequence WHERE name = 'search_documents'")
KEEP_GIVEN = text("INSERT INTO sqlite_sequence (name, seq) VALUES ('search_documents', :given)")


def upgrade() -> None:
    """Move them there."""
    servers = op.create_table(
        "search_servers",
        Column("id", Integer, primary_key=True),
        Column("entry", String(40), ForeignKey("entries.name"), nullable=False, unique=True),
        Column("ids", LargeBinary, nullable=False),
        Column("tools", Text, nullable=False),
        Column("access", Text, nullable=False),
        Column("words", Text, nullable=False),
        Column("sizes", LargeBinary, nullable=False),
        Column("postings", LargeBinary, nullable=False),
        Column("example_sizes", LargeBinary, nullable=False),
        Column("example_postings", LargeBinary, nullable=False),
    )
    _move_documents(servers)
    _drop_columns()


def _drop_columns() -> None:
    """Make the table of documents anew, without what was moved. SQLite 3.34 drops no column."""
    connection = op.get_bind()
    given = connection.execute(GIVEN).scalar()
    connection.execute(
        text("CREATE TEMP TABLE kept AS SELECT id, entry, tool, meaning FROM search_documents")
    )
    op.drop_table("search_documents")
    op.create_table(
        "search_documents",
        Column("id", Integer, primary_key=True),
        Column("entry", String(40), ForeignKey("entries.name"), nullable=False, index=True),
        Column("tool", String(40), nullable=False),
        Column("meaning", String(64), nullable=False, index=True),
        sqlite_autoincrement=True,
    )
    connection.execute(
        text(
            "INSERT INTO search_documents (id, entry, tool, meaning) "
            "SELECT id, entry, tool, meaning FROM kept ORDER BY id"
        )
    )
    connection.execute(text("DROP TABLE kept"))
    # An id that was given is never given again.
    connection.execute(FORGET_GIVEN)
    connection.execute(KEEP_GIVEN, {"given": given or 0})


def _move_documents(servers: Table) -> None:
    connection = op.get_bind()
    by_entry: dict[str, list[Sequence[Any]]] = defaultdict(list)
    for entry, *document in connection.execute(FOUND):
        by_entry[entry].append(document)
    for entry, rows in by_entry.items():
        ids, tools, access, words, stems, worths, examples = zip(*rows, strict=True)
        connection.execute(
            servers.insert(),
            {
                "entry": entry,
                "ids": array("q", ids).tobytes(),
                "tools": "\n".join(tools),
                "access": "".join("r" if each == "read" else "w" for each in access),
                "words": "\n".join(words),
                "sizes": _count(stems),
                "postings": b"".join(map(_pack, stems, worths)),
                "example_sizes": _count(examples),
                "example_postings": b"".join(map(_pack, examples, repeat(b""))),
            },
        )


def _pack(stems: bytes, worths: bytes) -> bytes:
    # What a damaged row lacks counts for nothing.
    count = len(stems) // 8
    known = worths[: 4 * count].ljust(4 * count, b"\0") if worths else pack("=f", 1.0) * count
    pairs = zip(array("q", stems[: 8 * count]), array("f", known), strict=True)
    return b"".join(pack("=qfi", key, worth, 0) for key, worth in pairs)


def _count(stems: Sequence[bytes]) -> bytes:
    return array("i", (len(each) // 8 for each in stems)).tobytes()
