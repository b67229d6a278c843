"""Which tools fit a task in words: BM25 over the tools' names, descriptions and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, insert, text

from registry import schema
from registry.audit import Ledger
from registry.records import CALLABLE, Entry, Match, Tool

WEIGHTS = {"name": 4.0, "description": 2.0, "parameters": 1.0, "context": 1.0}
MAX_TERMS = 8
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
            rows = connection.execute(_QUERY, {"match": " OR ".join(terms), "k": k})
            return tuple(Match(**row) for row in rows.mappings())


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


def query_terms(task: str) -> list[str]:
    """FTS5 expressions for the words of a task, without stop words and repetitions.

    Every word is a quoted string of letters and digits (https://www.sqlite.org/fts5.html, section
    3.1), so that nothing in the task is read as syntax.
    """
    wanted = dict.fromkeys(word for word in words(task[:MAX_TASK]) if word not in STOP_WORDS)
    return list(dict.fromkeys(map(_expression, wanted)))


def _expression(word: str) -> str:
    alternatives = (word, _CLASS.get(word), _MANY.get(word))
    quoted = [f'"{alternative}"' for alternative in alternatives if alternative]
    return f"({' OR '.join(quoted)})" if len(quoted) > 1 else quoted[0]


def _classes(name: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_CLASS[word] for word in name if word in _CLASS))


def _rarest(connection: Connection, terms: list[str]) -> list[str]:
    counted = []
    for term in terms:
        found = connection.execute(_FREQUENCY, {"match": term}).scalar_one()
        if found:
            counted.append((found, term))
    return [term for _, term in sorted(counted)[:MAX_TERMS]]


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
_FREQUENCY = text("SELECT count(*) FROM search_index WHERE search_index MATCH :match")
_RANK = f"bm25(search_index, {', '.join(str(weight) for weight in WEIGHTS.values())})"
_STATES = ", ".join(f"'{state}'" for state in CALLABLE)
# bm25() is the better the lower it is (https://www.sqlite.org/fts5.html, section 5.1.1).
_QUERY = text(f"""
    SELECT found.entry, found.tool, found.score, versions.title,
           versions.description AS entry_description,
           json_extract(tools.listed, '$.description') AS description
    FROM (
        SELECT documents.entry, documents.tool, entries.version, -{_RANK} AS score
        FROM search_index
        JOIN search_documents AS documents ON documents.id = search_index.rowid
        JOIN entries ON entries.name = documents.entry
        WHERE search_index MATCH :match AND entries.state IN ({_STATES})
        ORDER BY score DESC, documents.entry, documents.tool
        LIMIT :k
    ) AS found
    JOIN versions ON versions.entry = found.entry AND versions.version = found.version
    JOIN tools ON tools.entry = found.entry AND tools.version = found.version
         AND tools.name = found.tool
    ORDER BY found.score DESC, found.entry, found.tool""")
