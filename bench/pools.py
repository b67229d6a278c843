"""The public pools of the routing benchmark as indexes in memory, with what else they are compared
with: sentence vectors, and plain FTS5.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bench.search import pool_tools, registry_entries
from registry.search.documents import SearchDocument, pack_documents
from registry.search.encoder import SentenceEncoder
from registry.search.index import MAX_COMPARED, MAX_NEAREST, build_document
from registry.search.postings import Postings
from registry.search.vectors import Likeness, describe_tool, turn_vector
from registry.search.words import parse_query, split_words, stem_word, write_english

FIELDS = "4.0, 2.0, 1.0"
"""Weights of name, description and parameters in plain FTS5."""


class Pool:
    """The tools of one pool. `cache` keeps their vectors, `encoder` None leaves them out."""

    def __init__(
        self, data: Path, name: str, encoder: SentenceEncoder | None, cache: Path | None
    ) -> None:
        self.name, self.encoder, self._cache = name, encoder, cache
        self.rows = pool_tools(data, name)
        self._documents: dict[int, SearchDocument] = {}
        self._texts: dict[int, str] = {}
        for entry, tools in registry_entries(self.rows.values()):
            for tool, row in zip(entry.tools, tools, strict=True):
                self._documents[row["id"]] = build_document(row["id"], entry, tool)
                self._texts[row["id"]] = describe_tool(tool.name, tool.definition)

    @cached_property
    def _whole(self) -> Postings:
        return self._index(self._documents)

    def _index(self, ids: Collection[int]) -> Postings:
        postings = Postings()
        postings.extend(pack_documents(self._documents[id] for id in sorted(ids)))
        return postings

    def index_tools(self, ids: Collection[int]) -> Postings:
        """An index of these tools alone; of all where none is named."""
        return self._index(ids) if ids else self._whole

    def list_documents(self) -> list[SearchDocument]:
        return [self._documents[id] for id in sorted(self._documents)]

    def get_key(self, id: int) -> tuple[str, str]:
        document = self._documents[id]
        return document.entry, document.tool

    @cached_property
    def _vectors(self) -> tuple[Any, Any]:
        """Ids in rising order, and the tools' vectors."""
        assert self.encoder is not None
        path = self._cache and self._cache / f"tools_{self.name}.npz"
        if path and path.exists():
            kept = np.load(path)
            ids, matrix = kept["ids"], kept["v"]
        else:
            ids = np.array(sorted(self._texts))
            matrix = np.stack([self.encoder.encode(self._texts[id]) for id in ids])
            if path:
                np.savez(path, ids=ids, v=matrix)
        return ids, matrix

    def compare(
        self, vector: Any, ids: Collection[int], turn: Callable[[Any], Any] = turn_vector
    ) -> Likeness:
        """The likeness of a task's vector with these tools, all where none is named."""
        kept, matrix = self._vectors
        if ids:
            chosen = np.isin(kept, list(ids))
            kept, matrix = kept[chosen], matrix[chosen]
        cosines, near = matrix @ vector, matrix @ turn(vector)
        best = np.argsort(-near, kind="stable")[:MAX_NEAREST]
        return Likeness(
            dict(zip(map(int, kept), map(float, cosines), strict=True)),
            dict(zip(map(int, kept), map(float, near), strict=True)),
            tuple(int(kept[each]) for each in best),
            float(cosines.mean()),
            float(near.mean()),
            max(float(cosines.std()), 1e-6),
        )

    def get_vectors(self) -> tuple[Any, Any]:
        return self._vectors


class PlainSearch:
    """FTS5 with its own stemmer and order (bm25), over the tools of a pool."""

    def __init__(self, rows: Mapping[int, Mapping[str, Any]]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE tools USING fts5(name, told, taken)")
        self._connection.executemany(
            "INSERT INTO tools(rowid, name, told, taken) VALUES (?, ?, ?, ?)",
            (
                (
                    row["id"],
                    _stem(row["name"]),
                    _stem(row["desc"]),
                    _stem(" ".join(f"{name} {told}" for name, told in row["params"])),
                )
                for row in rows.values()
            ),
        )

    def find(self, task: str, most: int, among: Sequence[int] = ()) -> tuple[int, ...]:
        """The best tools, of those named where any are; frequencies are those of the whole pool."""
        words = dict.fromkeys(stem_word(term.word) for term in parse_query(task).terms)
        if not words:
            return ()
        query = " OR ".join(f'"{word}"' for word in words)
        found = self._connection.execute(
            f"SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {FIELDS})", (query,)
        )
        left: Iterator[int] = (id for (id,) in found if not among or id in among)
        return tuple(id for id, _ in zip(left, range(most), strict=False))


def _stem(text: str) -> str:
    return " ".join(map(stem_word, split_words(text)))


def encode_tasks(
    encoder: SentenceEncoder, tasks: Sequence[str], cache: Path | None
) -> dict[str, Any]:
    """The vectors of the tasks; those that are new are added to `cache`."""
    path = cache and cache / "tasks.npz"
    known: dict[str, Any] = {}
    if path and path.exists():
        kept = np.load(path)
        known = dict(zip(map(str, kept["tasks"]), kept["v"], strict=True))
    new = [task for task in dict.fromkeys(tasks) if task not in known]
    known |= {task: encoder.encode(write_english(task)[:MAX_COMPARED]) for task in new}
    if path and new:
        np.savez(path, tasks=np.array(list(known)), v=np.stack(list(known.values())))
    return known
