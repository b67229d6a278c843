"""Search of tools: FTS5 and, with the extra `semantic`, sentence vectors find candidates;
`registry.search.ranking` scores their words, and both together order them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, insert, text

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.engine import Database
from registry.models import CALLABLE, Entry, RegisteredTool, Route, ToolMatch
from registry.search.calibration import (
    MatchEvidence,
    Ranked,
    collect_evidence,
    estimate_probability,
    find_vetoes,
)
from registry.search.encoder import is_installed, load_encoder
from registry.search.ranking import WEIGHTS, SearchCandidate, TermStatistics, rank_candidates
from registry.search.vectors import BATCH, Likeness, VectorIndex, digest_tool
from registry.search.words import (
    SearchQuery,
    SearchTerm,
    find_intent,
    parse_query,
    split_words,
    stem_word,
)

MAX_TERMS = 40
"""How many of a task's words, the rarest, are used for ranking."""
MAX_SOUGHT = 20
"""How many of those are searched for: common words match nearly every tool, and are slow."""
MAX_RANKED = 50
"""How many tools are ranked: the first in FTS5's own order (bm25)."""
MAX_NEAREST = 20
"""How many more are ranked for their meaning."""
MIN_YARD, MIN_COSINE = 0.15, 0.3
"""The least that a best score counts for: where nothing fits, the least bad is not made good."""
MAX_COMPARED = 1_000
"""How many characters of a text are used for ranking."""
MAX_TEXT = 4_000
MAX_PARAMETERS = 100


@dataclass(frozen=True)
class Weighed:
    """The candidates of a task, best first, and the evidence for the first; None without one."""

    ranked: tuple[Ranked, ...]
    evidence: MatchEvidence | None
    by_meaning: bool


class SearchIndex(Repository):
    def __init__(self, database: Database, process: str = "") -> None:
        super().__init__(database, process)
        self._vectors = VectorIndex(database)

    def find_tools(self, task: str, k: int = 10) -> tuple[ToolMatch, ...]:
        """The matches of `route`."""
        return self.route(task, k).matches

    def route(self, task: str, k: int = 10) -> Route:
        """The `k` tools that fit a task best, best first; equals in order of their names.

        Only servers that may be called are searched. Any text is a valid task; without vectors, one
        without a word that occurs in the index finds nothing. A match's score is between 0 and 1,
        where 1 is a tool that matches every word of the task as well as possible.
        """
        with self._database.read() as connection:
            weighed = self._weigh(connection, task, max(k, MAX_RANKED))
            scores = {each.tool.id: each.yard for each in weighed.ranked[:k]}
            matches = _load_matches(connection, scores)
        by_meaning = weighed.by_meaning
        if weighed.evidence is None or not matches:
            return Route((), 0.0, (), by_meaning)
        probability = estimate_probability(weighed.evidence, by_meaning)
        vetoes = find_vetoes(task, weighed.ranked[0].tool, matches[0])
        return Route(matches, probability, vetoes, by_meaning)

    def explain(self, task: str, without: Collection[tuple[str, str]] = ()) -> Weighed:
        """What `route` decides by, as if the tools `without` (server and name) were not there."""
        with self._database.read() as connection:
            return self._weigh(connection, task, MAX_RANKED + len(without), without)

    def fill_vectors(self, most: int = BATCH) -> int:
        """Encode up to `most` tools that have no vector yet; how many were. 0 without the extra.

        Raises EncoderUnusable.
        """
        if not is_installed() or not self._vectors.is_lacking():
            return 0
        encoder = load_encoder()
        return self._vectors.fill(encoder, most) if encoder else 0

    def clear_vectors(self) -> None:
        """Remove all vectors: tools are found by their words only."""
        self._vectors.clear()

    def _weigh(
        self,
        connection: Connection,
        task: str,
        most: int,
        without: Collection[tuple[str, str]] = (),
    ) -> Weighed:
        likeness = self._compare_meaning(task)
        query = parse_query(task)
        registry = _load_statistics(connection, query)
        known = registry.select_rarest(query.terms, MAX_TERMS)
        found = self._find_candidates(connection, known, likeness, most)
        if without:
            found = [tool for tool in found if (tool.entry, tool.tool) not in without]
        if not found:
            return Weighed((), None, likeness is not None)
        unknown = (term for term in query.terms if not registry.has_term(term))
        query = replace(query, terms=(*known, *unknown))
        ranked = _rank(query, registry, found, likeness)
        spread = (likeness.mean, likeness.deviation) if likeness else None
        evidence = collect_evidence(task, query, registry, ranked, spread)
        return Weighed(tuple(ranked), evidence, likeness is not None)

    def _compare_meaning(self, task: str) -> Likeness | None:
        if not task.strip() or not is_installed() or self._vectors.is_empty():
            return None
        encoder = load_encoder()
        if encoder is None:
            return None
        return self._vectors.compare(encoder.encode(task[:MAX_COMPARED]), MAX_NEAREST)

    def _find_candidates(
        self,
        connection: Connection,
        known: Sequence[SearchTerm],
        likeness: Likeness | None,
        most: int,
    ) -> list[SearchCandidate]:
        found = _search_words(connection, known[:MAX_SOUGHT], most) if known else []
        if likeness:
            ids = set(likeness.nearest) - {tool.id for tool in found}
            rows = connection.execute(_NEAREST, {"ids": json.dumps(sorted(ids))}).mappings()
            found += [SearchCandidate(**row) for row in rows]
        return found


def _rank(
    query: SearchQuery,
    registry: TermStatistics,
    found: Sequence[SearchCandidate],
    likeness: Likeness | None,
) -> list[Ranked]:
    """Best first: the sum of both scores, each by its best one. A tool without a vector counts as
    one that is as near as the usual.
    """
    yards = rank_candidates(query, registry, found)
    if likeness is None:
        return [Ranked(tool, score, None, score) for tool, score in yards]
    cosines = {tool.id: likeness.cosines.get(tool.id) for tool, _ in yards}
    best_yard = max(MIN_YARD, *(score for _, score in yards))
    best_cosine = max([MIN_COSINE, *(each for each in cosines.values() if each is not None)])
    ranked = []
    for tool, score in yards:
        cosine = cosines[tool.id]
        near = likeness.mean if cosine is None else cosine
        ranked.append(Ranked(tool, score, cosine, score / best_yard + near / best_cosine))
    ranked.sort(key=lambda each: -each.fused)
    return ranked


def index_entry(connection: Connection, entry: Entry) -> None:
    """Index the tools of an entry, in place of the server's earlier ones."""
    documents = tables.documents
    connection.execute(_FORGET, {"entry": entry.name})
    connection.execute(delete(documents).where(documents.c.entry == entry.name))
    if entry.tools:
        connection.execute(insert(documents), [build_document(entry, tool) for tool in entry.tools])
    connection.execute(_LEARN, {"entry": entry.name})


def build_document(entry: Entry, tool: RegisteredTool) -> dict[str, str]:
    """The `search_documents` row of a tool."""
    listed = tool.definition
    name = split_words(tool.name)
    described = split_words(f"{listed.get('title', '')} {listed['description']}"[:MAX_TEXT])
    server = split_words(f"{entry.name} {entry.title}"[:MAX_TEXT])
    intents = dict.fromkeys(filter(None, map(find_intent, name)))
    return {
        "entry": entry.name,
        "tool": tool.name,
        "words": " ".join(name),
        "name": _stem_words(name),
        "description": _stem_words(described),
        "parameters": _stem_words(split_words(_collect_parameters(listed["inputSchema"]))),
        "context": _stem_words([*intents, *server]),
        "meaning": digest_tool(tool),
    }


def _stem_words(said: Iterable[str]) -> str:
    return " ".join(map(stem_word, said))


def _load_statistics(connection: Connection, task: SearchQuery) -> TermStatistics:
    looked_for = _list_spellings(task.terms)
    quoted = json.dumps([f'"{stem_word(word)}"' for word in looked_for])
    counts = connection.execute(_FREQUENCIES, {"words": quoted}).scalars()
    size = connection.execute(_SIZE).scalar_one()
    return TermStatistics(size, dict(zip(looked_for, counts, strict=True)))


def _list_spellings(terms: Iterable[SearchTerm]) -> list[str]:
    return list(dict.fromkeys(word for term in terms for word in term.spellings))


def _search_words(
    connection: Connection, terms: Iterable[SearchTerm], most: int
) -> list[SearchCandidate]:
    """The tools that contain one of the terms, at most `most`.

    Words are letters and digits only, so that nothing in a task is read as FTS5 syntax once it is
    quoted (https://www.sqlite.org/fts5.html, section 3.1).
    """
    values = {
        "words": " OR ".join(f'"{stem_word(word)}"' for word in _list_spellings(terms)),
        "most": most,
    }
    return [SearchCandidate(**row) for row in connection.execute(_CANDIDATES, values).mappings()]


def _load_matches(connection: Connection, scores: Mapping[int, float]) -> tuple[ToolMatch, ...]:
    rows = connection.execute(_MATCHES, {"ids": json.dumps(list(scores))}).mappings()
    found = {row["id"]: row for row in rows}
    return tuple(
        ToolMatch(
            entry=found[key]["entry"],
            tool=found[key]["tool"],
            score=score,
            description=found[key]["description"],
            title=found[key]["title"],
            entry_description=found[key]["entry_description"],
            group=found[key]["group"] or "",
        )
        for key, score in scores.items()
    )


def _collect_parameters(schema: Mapping[str, Any]) -> str:
    """Names and descriptions of a tool's arguments and of the fields of a body among them."""
    found: list[str] = []
    for name, value in islice(_list_properties(schema), MAX_PARAMETERS):
        found += [name, _get_description(value)]
        for inner, field in islice(_list_properties(value), MAX_PARAMETERS):
            found += [inner, _get_description(field)]
    return " ".join(found)[:MAX_TEXT]


def _list_properties(schema: Any) -> Iterable[tuple[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.items() if isinstance(properties, dict) else ()


def _get_description(schema: Any) -> str:
    return str(schema.get("description", ""))[:200] if isinstance(schema, dict) else ""


_COLUMNS = ", ".join(WEIGHTS)
_FORGET = text(
    f"INSERT INTO search_index(search_index, rowid, {_COLUMNS}) "
    f"SELECT 'delete', id, {_COLUMNS} FROM search_documents WHERE entry = :entry"
)
_LEARN = text(
    f"INSERT INTO search_index(rowid, {_COLUMNS}) "
    f"SELECT id, {_COLUMNS} FROM search_documents WHERE entry = :entry"
)
_FREQUENCIES = text(
    "SELECT (SELECT count(*) FROM search_index WHERE search_index MATCH asked.value) "
    "FROM json_each(:words) AS asked ORDER BY asked.key"
)
_SIZE = text("SELECT count(*) FROM search_documents")
_RANK = f"bm25(search_index, {', '.join(str(weight) for weight in WEIGHTS.values())})"
_STATES = ", ".join(f"'{state}'" for state in CALLABLE)
_FIELDS = f"""found.id, found.entry, found.tool, tools.access, documents.words,
           documents.name, substr(documents.description, 1, {MAX_COMPARED}) AS description,
           substr(documents.parameters, 1, {MAX_COMPARED}) AS parameters,
           substr(documents.context, 1, {MAX_COMPARED}) AS context"""
_JOINED = """JOIN search_documents AS documents ON documents.id = found.id
    JOIN tools ON tools.entry = found.entry AND tools.version = found.version
         AND tools.name = found.tool"""
_CANDIDATES = text(f"""
    SELECT {_FIELDS}
    FROM (
        SELECT documents.id, documents.entry, documents.tool, entries.version
        FROM (SELECT rowid AS id, {_RANK} AS rank FROM search_index
              WHERE search_index MATCH :words LIMIT -1) AS hits
        JOIN search_documents AS documents ON documents.id = hits.id
        JOIN entries ON entries.name = documents.entry
        WHERE entries.state IN ({_STATES})
        ORDER BY hits.rank, documents.entry, documents.tool
        LIMIT :most
    ) AS found
    {_JOINED}""")
_NEAREST = text(f"""
    SELECT {_FIELDS}
    FROM (
        SELECT documents.id, documents.entry, documents.tool, entries.version
        FROM json_each(:ids) AS chosen
        JOIN search_documents AS documents ON documents.id = chosen.value
        JOIN entries ON entries.name = documents.entry
        WHERE entries.state IN ({_STATES})
    ) AS found
    {_JOINED}""")
_MATCHES = text("""
    SELECT documents.id, documents.entry, documents.tool, versions.title,
           versions.description AS entry_description,
           json_extract(tools.listed, '$.description') AS description,
           json_extract(tools.listed, '$._meta.toolwright.group') AS "group"
    FROM json_each(:ids) AS chosen
    JOIN search_documents AS documents ON documents.id = chosen.value
    JOIN entries ON entries.name = documents.entry
    JOIN versions ON versions.entry = entries.name AND versions.version = entries.version
    JOIN tools ON tools.entry = entries.name AND tools.version = entries.version
         AND tools.name = documents.tool""")
