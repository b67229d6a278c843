"""Which tools fit a task in words: FTS5 finds those that may, `registry.ranking` orders them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, insert, text

from registry import schema
from registry.audit import Ledger
from registry.ranking import WEIGHTS, Candidate, Registry, rank
from registry.records import CALLABLE, Entry, Match, Tool
from registry.wording import Task, Term, intent, read_task, words

MAX_TERMS = 40
"""How many of a task's words, the rarest, tools are compared by."""
MAX_SOUGHT = 20
"""How many of those find the tools to compare: common words find nearly all, and take long."""
MAX_RANKED = 50
"""How many tools are compared: those that FTS5's own order puts first."""
MAX_COMPARED = 1_000
"""How many characters of a text are compared."""
MAX_TEXT = 4_000
MAX_PARAMETERS = 100


class Search(Ledger):
    def search(self, task: str, k: int = 10) -> tuple[Match, ...]:
        """The `k` tools that fit a task best, best first; equals in order of their names.

        Only servers that may be called are searched. Any text is a valid task; one without a word
        that occurs in the index finds nothing. A score is the share, from 0 to 1, of what a tool
        could have that fits this task best.
        """
        asked = read_task(task)
        with self._database.read() as connection:
            registry = _registry(connection, asked)
            known = registry.rarest(asked.terms, MAX_TERMS)
            if not known:
                return ()
            found = _candidates(connection, known[:MAX_SOUGHT], max(k, MAX_RANKED))
            unknown = (term for term in asked.terms if not registry.has(term))
            asked = replace(asked, terms=(*known, *unknown))
            best = rank(asked, registry, found)[:k]
            return _matches(connection, {tool.id: score for tool, score in best})


def index(connection: Connection, entry: Entry) -> None:
    """Make the tools of an entry what is found of that server, in place of any before."""
    documents = schema.documents
    connection.execute(_FORGET, {"entry": entry.name})
    connection.execute(delete(documents).where(documents.c.entry == entry.name))
    if entry.tools:
        connection.execute(insert(documents), [document(entry, tool) for tool in entry.tools])
    connection.execute(_LEARN, {"entry": entry.name})


def document(entry: Entry, tool: Tool) -> dict[str, str]:
    """What is indexed of a tool: a `search_documents` row."""
    listed = tool.definition
    name = words(tool.name)
    described = words(f"{listed.get('title', '')} {listed['description']}"[:MAX_TEXT])
    server = words(f"{entry.name} {entry.title}"[:MAX_TEXT])
    intents = dict.fromkeys(filter(None, map(intent, name)))
    return {
        "entry": entry.name,
        "tool": tool.name,
        "name": " ".join(name),
        "description": " ".join(described),
        "parameters": " ".join(words(_parameters(listed["inputSchema"]))),
        "context": " ".join([*intents, *server]),
    }


def _registry(connection: Connection, task: Task) -> Registry:
    looked_for = _spellings(task.terms)
    quoted = json.dumps([f'"{word}"' for word in looked_for])
    counts = connection.execute(_FREQUENCIES, {"words": quoted}).scalars()
    size = connection.execute(_SIZE).scalar_one()
    return Registry(size, dict(zip(looked_for, counts, strict=True)))


def _spellings(terms: Iterable[Term]) -> list[str]:
    return list(dict.fromkeys(word for term in terms for word in term.spellings))


def _candidates(connection: Connection, terms: Iterable[Term], most: int) -> list[Candidate]:
    """Those that have one of the terms.

    Words are letters and digits only, so that nothing in a task is read as FTS5 syntax once it is
    quoted (https://www.sqlite.org/fts5.html, section 3.1).
    """
    values = {"words": " OR ".join(f'"{word}"' for word in _spellings(terms)), "most": most}
    return [Candidate(**row) for row in connection.execute(_CANDIDATES, values).mappings()]


def _matches(connection: Connection, scores: Mapping[int, float]) -> tuple[Match, ...]:
    rows = connection.execute(_MATCHES, {"ids": json.dumps(list(scores))}).mappings()
    found = {row["id"]: row for row in rows}
    return tuple(
        Match(
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


def _parameters(schema: Mapping[str, Any]) -> str:
    """Names and descriptions of a tool's arguments and of the fields of a body among them."""
    found: list[str] = []
    for name, value in islice(_properties(schema), MAX_PARAMETERS):
        found += [name, _description(value)]
        for inner, field in islice(_properties(value), MAX_PARAMETERS):
            found += [inner, _description(field)]
    return " ".join(found)[:MAX_TEXT]


def _properties(schema: Any) -> Iterable[tuple[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.items() if isinstance(properties, dict) else ()


def _description(schema: Any) -> str:
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
    SELECT found.id, found.entry, found.tool, tools.access, documents.name,
           substr(documents.description, 1, {MAX_COMPARED}) AS description,
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
