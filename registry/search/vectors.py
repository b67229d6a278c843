"""Vectors of the registered tools: stored beside the index, compared in memory.

A tool's vector is that of one text (`describe_tool`), stored by the text's digest, so that a new
version with the same words costs nothing. Vectors only order what is found, and say how sure that
is; a stranger's text can move its own vector and no other.
"""

from __future__ import annotations

import hashlib
import json
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from sqlalchemy import delete, insert, text

from registry.database import tables
from registry.database.engine import Database
from registry.database.rows import fetch_rows
from registry.models import RegisteredTool
from registry.search.documents import KEYS
from registry.search.encoder import DIMENSIONS, SentenceEncoder
from registry.search.words import split_words

MAX_TEXT = 700
"""Characters of a tool that are encoded; longer texts were no better found."""
BATCH = 64
COVERED = 0.9
"""The part of a registry's tools that have a vector, from which vectors are compared."""
ADAPTER = "adapter.f16"
"""384 rows of 384 numbers of 16 bits (IEEE 754), little-endian."""


@dataclass(frozen=True)
class Likeness:
    """Cosines of a task with the tools of the registry, by document id.

    `nearness` is the same for the task's vector as `turn_vector` gives it, which orders the tools
    better and says less of whether any fits; `nearest` are the best by it. `usual_nearness` is its
    mean, `mean` and `deviation` are those of the cosines, all of the whole registry.
    """

    cosines: Mapping[int, float]
    nearness: Mapping[int, float]
    nearest: tuple[int, ...]
    mean: float
    usual_nearness: float
    deviation: float


class VectorIndex:
    """The vectors of one registry's tools, kept in memory up to the last publication."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._seen = (-1, -1)
        self._ids = array(KEYS)
        self._matrix: Any = None
        self._documents = 0

    def is_empty(self) -> bool:
        with self._database.look() as connection:
            return not fetch_rows(connection, _ANY, {})

    def is_lacking(self) -> bool:
        """Whether a tool has no vector yet."""
        with self._database.read() as connection:
            return connection.execute(_LACKING, {"most": 1}).first() is not None

    def fill(self, encoder: SentenceEncoder, most: int = BATCH) -> int:
        """Encode up to `most` tools that have no vector yet; how many were."""
        with self._database.read() as connection:
            rows = connection.execute(_LACKING, {"most": most}).all()
        made = {}
        for meaning, tool, listed in rows:
            words = describe_tool(tool, json.loads(listed))
            # What is stored under a digest has to be of that text.
            if digest_text(words) == meaning:
                made[meaning] = encoder.encode(words).tobytes()
            else:
                made[meaning] = bytes(4 * DIMENSIONS)
        if made:
            values = [{"meaning": key, "vector": vector} for key, vector in made.items()]
            with self._database.write() as connection:
                statement = insert(tables.vectors).prefix_with("OR IGNORE")
                connection.execute(statement, values)
        return len(made)

    def clear(self) -> None:
        """Remove all vectors."""
        if not self.is_empty():
            with self._database.write() as connection:
                connection.execute(delete(tables.vectors))

    def compare(self, vector: Any, nearest: int) -> Likeness | None:
        """The likeness of a task's vector; None while too few tools have one: what is usual could
        not be told, and those that have one would stand before the others for that alone.
        """
        numpy: Any = import_module("numpy")
        with self._lock:
            self._refresh(numpy)
            ids, matrix, documents = self._ids, self._matrix, self._documents
        if not len(ids) or len(ids) < COVERED * documents:
            return None
        both = matrix @ numpy.stack([vector, turn_vector(vector)], axis=1)
        cosines, nearness = both[:, 0], both[:, 1]
        count = min(nearest, len(ids))
        best = numpy.argpartition(-nearness, count - 1)[:count]
        best = best[numpy.argsort(-nearness[best], kind="stable")]
        return Likeness(
            _Cosines(ids, cosines),
            _Cosines(ids, nearness),
            tuple(ids[each] for each in best),
            float(cosines.mean()),
            float(nearness.mean()),
            max(float(cosines.std()), 1e-6),
        )

    def _refresh(self, numpy: Any) -> None:
        with self._database.read() as connection:
            seen = tuple(connection.execute(_SEEN).one())
            if seen == self._seen:
                return
            rows = connection.execute(_VECTORS).all()
            self._documents = connection.execute(_COUNT).scalar_one()
        self._ids = array(KEYS, (row[0] for row in rows))
        whole = b"".join(row[1] for row in rows)
        self._matrix = numpy.frombuffer(whole, numpy.float32).reshape(len(rows), DIMENSIONS)
        self._seen = seen


class _Cosines(Mapping[int, float]):
    """Cosines by document id; ids are in rising order."""

    def __init__(self, ids: Sequence[int], cosines: Any) -> None:
        self._ids, self._cosines = ids, cosines

    def __getitem__(self, key: int) -> float:
        place = bisect_left(self._ids, key)
        if place == len(self._ids) or self._ids[place] != key:
            raise KeyError(key)
        return float(self._cosines[place])

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def turn_vector(vector: Any) -> Any:
    """A task's vector, turned towards those of the tools that such tasks mean; of length 1.

    The matrix was fitted on public tasks by `python -m bench.adapter`, and is of tasks only: the
    vectors of tools stay as the model gives them.
    """
    numpy: Any = import_module("numpy")
    turned = _load_matrix() @ vector
    return (turned / max(float(numpy.linalg.norm(turned)), 1e-12)).astype(numpy.float32)


@cache
def _load_matrix() -> Any:
    numpy: Any = import_module("numpy")
    kept = files("registry.search").joinpath("minilm", ADAPTER).read_bytes()
    halves = numpy.frombuffer(kept, numpy.dtype("<f2"))
    return halves.reshape(DIMENSIONS, DIMENSIONS).astype(numpy.float32)


def describe_tool(name: str, definition: Mapping[str, Any]) -> str:
    """The text of a tool that is encoded: its name in words, description and parameters."""
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    properties = properties if isinstance(properties, Mapping) else {}
    described = "; ".join(
        f"{key} {value.get('description', '') if isinstance(value, Mapping) else ''}".strip()
        for key, value in properties.items()
    )
    said = f"{definition.get('title', '')} {definition.get('description', '')}".strip()
    return f"{' '.join(split_words(name))}: {said} Parameters: {described}"[:MAX_TEXT]


def digest_tool(tool: RegisteredTool) -> str:
    """The digest under which a tool's vector is kept."""
    return digest_text(describe_tool(tool.name, tool.definition))


def digest_text(words: str) -> str:
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


_LACKING = text("""
    SELECT documents.meaning, documents.tool, min(tools.listed)
    FROM search_documents AS documents
    JOIN entries ON entries.name = documents.entry
    JOIN tools ON tools.entry = entries.name AND tools.version = entries.version
         AND tools.name = documents.tool
    WHERE NOT EXISTS (SELECT 1 FROM search_vectors WHERE meaning = documents.meaning)
    GROUP BY documents.meaning LIMIT :most""")
_ANY = text("SELECT 1 FROM search_vectors LIMIT 1")
_COUNT = text("SELECT count(*) FROM search_documents")
_SEEN = text(
    "SELECT coalesce((SELECT max(id) FROM search_changes), 0), "
    "coalesce((SELECT max(rowid) FROM search_vectors), 0)"
)
_VECTORS = text(f"""
    SELECT documents.id, vectors.vector FROM search_documents AS documents
    JOIN search_vectors AS vectors ON vectors.meaning = documents.meaning
    WHERE length(vectors.vector) = {4 * DIMENSIONS} ORDER BY documents.id""")
