"""Full-text index of tools: FTS5 finds candidates, `registry.search.ranking` orders them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, insert, text

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.models import CALLABLE, Entry, RegisteredTool, ToolMatch
from registry.search.ranking import WEIGHTS, SearchCandidate, TermStatistics, rank_candidates
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
MAX_COMPARED = 1_000
"""How many characters of a text are used for ranking."""
MAX_TEXT = 4_000
MAX_PARAMETERS = 100


class SearchIndex(Repository):
    def find_tools(self, task: str, k: int = 10) -> tuple[ToolMatch, ...]:
        """The `k` tools that fit a task best, best first; equals in order of their names.

        Only servers that may be called are searched. Any text is a valid task; one without a word
        that occurs in the index finds nothing. A score is between 0 and 1, where 1 is a tool that
        matches every word of the task as well as possible.
        """
        asked = parse_query(task)
        with self._database.read() as connection:
            registry = _load_statistics(connection, asked)
            known = registry.select_rarest(asked.terms, MAX_TERMS)
            if not known:
                return ()
            found = _find_candidates(connection, known[:MAX_SOUGHT], max(k, MAX_RANKED))
            unknown = (term for term in asked.terms if not registry.has_term(term))
            asked = replace(asked, terms=(*known, *unknown))
            best = rank_candidates(asked, registry, found)[:k]
            return _load_matches(connection, {tool.id: score for tool, score in best})


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


def _find_candidates(
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
_CANDIDATES = text(f"""
    SELECT found.id, found.entry, found.tool, tools.access, documents.words,
           documents.name, substr(documents.description, 1, {MAX_COMPARED}) AS description,
           substr(documents.parameters, 1, {MAX_COMPARED}) AS parameters,
           substr(documents.context, 1, {MAX_COMPARED}) AS context
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
    JOIN search_documents AS documents ON documents.id = found.id
    JOIN tools ON tools.entry = found.entry AND tools.version = found.version
         AND tools.name = found.tool""")
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
