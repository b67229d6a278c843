"""Which tools fit a task in words: BM25 over the tools' names, descriptions and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import log
from typing import Any

from sqlalchemy import Connection, TextClause, delete, insert, text

from registry import schema
from registry.audit import Ledger
from registry.records import CALLABLE, Entry, Match, Tool

WEIGHTS = {"name": 4.0, "description": 2.0, "parameters": 1.0, "context": 1.0}
IMPLIED = 0.3
"""What a hit on an implied word is worth, compared with the task's own word."""
MAX_TERMS = 24
"""How many of a task's words are looked for, with what they imply."""
MAX_TASK = 4_000
MAX_TEXT = 4_000
MAX_PARAMETERS = 100

STOP_WORDS = frozenset(
    "a about an and any are as at be by can could do does for from give has have hello help how i "
    "if in into is it its let like me my need now of on or our please should so some tell than "
    "that the their them then there these this those to up us want was we what when where which "
    "who will with would you your".split()
)

VERBS = {
    "read": "list show get fetch display retrieve read view see print enumerate",
    "create": "create add new make insert register",
    "update": "update change modify edit set patch rename alter",
    "delete": "delete remove drop destroy erase",
    "search": "search find query lookup",
}
"""Verbs that name one intent: a task that says "show" means the tool that says "list" too."""

_CLASS = {verb: f"verb{name}" for name, verbs in VERBS.items() for verb in verbs.split()}
_MANY = dict.fromkeys(("all", "every", "each"), "list")
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# FTS5's least weight of a term (`fts5_aux.c`, fts5Bm25GetData).
_FTS5_LEAST = 1e-6
_DIGITS = re.compile(r"\d+|\D+")


class Search(Ledger):
    def search(self, task: str, k: int = 10) -> tuple[Match, ...]:
        """The `k` tools that fit a task best, best first; equals in order of their names.

        Only servers that may be called are searched. Any text is a valid task; one without a word
        that occurs in the index finds nothing.
        """
        with self._database.read() as connection:
            terms = _rarest(connection, query_terms(task))
            if not terms:
                return ()
            size = connection.execute(_SIZE).scalar_one()
            values: dict[str, Any] = {"k": k}
            for number, (term, found) in enumerate(terms.items()):
                values[f"term{number}"] = f'"{term.word}"'
                values[f"factor{number}"] = -term.weight * _reweight(size, found)
            rows = connection.execute(_query(len(terms)), values)
            return tuple(Match(**row) for row in rows.mappings())


@dataclass(frozen=True)
class Term:
    """A word to look for, how much a hit is worth, and the word of the task it stands for."""

    word: str
    weight: float
    origin: str


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
    return {
        "entry": entry.name,
        "tool": tool.name,
        "name": " ".join(name),
        "description": " ".join(described),
        "parameters": " ".join(words(_parameters(listed["inputSchema"]))),
        "context": " ".join([*server, *_classes(name)]),
    }


def words(phrase: str) -> list[str]:
    """The words of a text or an identifier, in lower case.

    `camelCase`, `snake_case` and paths are split; a word with digits is kept whole and split.
    """
    found = []
    for word in _WORD.findall(phrase):
        for part in _CASE.sub(" ", word).lower().split():
            pieces = _DIGITS.findall(part)
            found += [part, *pieces] if len(pieces) > 1 else [part]
    return found


def query_terms(task: str) -> list[Term]:
    """What to look for: the words of a task without stop words, and what they imply.

    Words are letters and digits only, so that nothing in a task is read as FTS5 syntax once it is
    quoted (https://www.sqlite.org/fts5.html, section 3.1).
    """
    wanted = dict.fromkeys(word for word in words(task[:MAX_TASK]) if word not in STOP_WORDS)
    terms: dict[str, Term] = {}
    for word in wanted:
        terms[word] = Term(word, 1.0, word)
        for implied in (_CLASS.get(word), _MANY.get(word)):
            if implied and implied not in wanted:
                terms.setdefault(implied, Term(implied, IMPLIED, word))
    return list(terms.values())


def _classes(name: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_CLASS[word] for word in name if word in _CLASS))


def _rarest(connection: Connection, terms: list[Term]) -> dict[Term, int]:
    """The terms of the task's rarest words, with the number of documents that have each."""
    found = {}
    for term in terms:
        count = connection.execute(_FREQUENCY, {"term": f'"{term.word}"'}).scalar_one()
        if count:
            found[term] = count
    rarity: dict[str, int] = {}
    for term, count in found.items():
        rarity[term.origin] = min(count, rarity.get(term.origin, count))
    kept = sorted(rarity, key=lambda word: (rarity[word], word))[:MAX_TERMS]
    return {term: count for term, count in found.items() if term.origin in kept}


def _reweight(size: int, found: int) -> float:
    """What turns SQLite's weight of a term into one that stays positive.

    FTS5 gives a term next to no weight where over half of the documents have it, as "zone" in a
    registry whose only server is about zones. Lucene's form of the same weight does not.
    """
    odds = (size - found + 0.5) / (found + 0.5)
    return log(1 + odds) / max(log(odds), _FTS5_LEAST)


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
_FREQUENCY = text("SELECT count(*) FROM search_index WHERE search_index MATCH :term")
_SIZE = text("SELECT count(*) FROM search_documents")
_RANK = f"bm25(search_index, {', '.join(str(weight) for weight in WEIGHTS.values())})"
_STATES = ", ".join(f"'{state}'" for state in CALLABLE)


@cache
def _query(terms: int) -> TextClause:
    # LIMIT keeps SQLite from merging the selects into one, in which bm25() cannot be used.
    hits = " UNION ALL ".join(
        f"SELECT * FROM (SELECT rowid AS id, {_RANK} * :factor{number} AS score "
        f"FROM search_index WHERE search_index MATCH :term{number} LIMIT -1)"
        for number in range(terms)
    )
    return text(f"""
        SELECT found.entry, found.tool, found.score, versions.title,
               versions.description AS entry_description,
               json_extract(tools.listed, '$.description') AS description
        FROM (
            SELECT documents.entry, documents.tool, entries.version, sums.score
            FROM (SELECT id, sum(score) AS score FROM ({hits}) AS hits GROUP BY id) AS sums
            JOIN search_documents AS documents ON documents.id = sums.id
            JOIN entries ON entries.name = documents.entry
            WHERE entries.state IN ({_STATES})
            ORDER BY score DESC, documents.entry, documents.tool
            LIMIT :k
        ) AS found
        JOIN versions ON versions.entry = found.entry AND versions.version = found.version
        JOIN tools ON tools.entry = found.entry AND tools.version = found.version
             AND tools.name = found.tool
        ORDER BY found.score DESC, found.entry, found.tool""")
