"""Tasks that a tool is for: written by rules from its listing, by a model, or learned from use.

They help to find a tool and to order tools that are nearly alike, and never say how sure that is:
the probability of a match takes nothing from them. Those of rules are made anew whenever they are
needed; the others are rows, bounded per tool and per home, the oldest going first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, text

from registry.database.canonical import clean_text
from registry.database.rows import AnyConnection, fetch_rows
from registry.models import Invocation, RegisteredTool
from registry.search.words import (
    QUESTIONS,
    STOP_WORDS,
    find_intent,
    split_words,
    stem_word,
)

USED, MODEL = "used", "model"
"""Where an example is from: from a call that succeeded, or from a model when the tool was made."""
MAX_TASK = 300
MAX_OF_TOOL = 20
MAX_OF_HOME = 5_000
MAX_RULES = 8
LEAST_LIKE = 0.5
"""How much of its words a task has to have in common with an example."""
_SILENT = STOP_WORDS | QUESTIONS
PHRASES: Mapping[str, tuple[str, ...]] = {
    "verbread": ("show me {}", "which {} are there", "get {}"),
    "verbsearch": ("find {}", "look for {}", "search {}"),
    "verbcreate": ("create {}", "add a new {}", "make {}"),
    "verbupdate": ("change {}", "edit {}", "update {}"),
    "verbdelete": ("delete {}", "remove {}"),
}


class PastTask(NamedTuple):
    """A task for which a tool was called, with how often that was right and how often not."""

    entry: str
    tool: str
    task: str
    good: int
    bad: int


def write_examples(tool: RegisteredTool) -> tuple[str, ...]:
    """At most eight tasks that a tool is for, by its name, its parameters and the first sentence
    of its documentation. Pure; the same listing has the same ones.
    """
    listed = tool.definition
    name = split_words(tool.name)
    intent = next(filter(None, map(find_intent, name)), None)
    thing = " ".join(word for word in name if find_intent(word) is None)
    said = str(listed.get("description", "")).partition(". ")[0].strip()
    phrases = PHRASES.get(intent or "", ("{}",))
    found = [phrase.format(thing) for phrase in phrases if thing]
    schema = listed.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for taken in list(properties if isinstance(properties, dict) else ())[:3]:
        words = " ".join(split_words(str(taken)))
        found.append(f"{phrases[0].format(thing)} by {words}".strip())
    found += [said, " ".join(name)]
    return tuple(dict.fromkeys(each[:MAX_TASK] for each in found if each))[:MAX_RULES]


def add_examples(
    connection: Connection, entry: str, tool: str, tasks: Iterable[str], now: float
) -> None:
    """Keep a model's examples of a tool, in place of its earlier ones."""
    connection.execute(_REMOVE, {"entry": entry, "tool": tool, "origin": MODEL})
    for task in list(tasks)[:MAX_RULES]:
        _keep(connection, entry, tool, MODEL, task, 1, 0, now)


def learn_calls(connection: Connection, calls: Iterable[Invocation], now: float) -> None:
    """Keep the tasks whose calls succeeded."""
    learned = [call for call in calls if call.task.strip() and call.succeeded]
    for call in learned:
        _keep(connection, call.entry, call.tool, USED, call.task, 1, 0, now)
        key = {"entry": call.entry, "tool": call.tool, "origin": USED}
        connection.execute(_PRUNE_TOOL, {**key, "most": MAX_OF_TOOL})
    if learned:
        connection.execute(_PRUNE_HOME, {"most": MAX_OF_HOME, "origin": USED})


def count_refusal(connection: Connection, entry: str, tool: str, task: str, now: float) -> None:
    """Count it against a tool that it was not what a task meant."""
    if task.strip():
        _keep(connection, entry, tool, USED, task, 0, 1, now)


def forget_examples(connection: Connection, entry: str = "") -> int:
    """Remove what was learned from use, of one server where it is named; how much it was."""
    return connection.execute(_FORGET, {"entry": entry, "origin": USED}).rowcount


def _keep(
    connection: Connection,
    entry: str,
    tool: str,
    origin: str,
    task: str,
    good: int,
    bad: int,
    now: float,
) -> None:
    said = " ".join(clean_text(task, MAX_TASK).lower().split())
    values = {"entry": entry, "tool": tool, "origin": origin, "task": said, "used": now}
    connection.execute(_KEEP, {**values, "good": good, "bad": bad})


def find_past_tasks(connection: AnyConnection, entries: Iterable[str]) -> list[PastTask]:
    """The tasks for which tools of these servers were called, or said to be wrong."""
    values = {"entries": json.dumps([*entries]), "origin": USED}
    return [PastTask(*row) for row in fetch_rows(connection, _OF_ENTRIES, values)]


def measure_use(
    task: str, past: Collection[PastTask], tools: Collection[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """By tool, from -1 to 1, how clearly tasks like this one meant it before, or did not.

    Each of its past tasks counts by the share of words in common, from `LEAST_LIKE` on.
    """
    found: dict[tuple[str, str], float] = {}
    asked = _list_stems(task) if past else frozenset()
    for entry, tool, said, good, bad in past if asked else ():
        like = _measure_likeness(asked, _list_stems(said))
        if (entry, tool) in tools and like >= LEAST_LIKE:
            # A single success counts by half, so that one slip cannot turn the order for good.
            lean = (good - bad) / (good + bad + 1)
            strength = lean * (like - LEAST_LIKE) / (1 - LEAST_LIKE)
            best = found.get((entry, tool), 0.0)
            found[entry, tool] = strength if abs(strength) > abs(best) else best
    return found


def _list_stems(task: str) -> frozenset[str]:
    left = (word for word in split_words(task[:MAX_TASK]) if word not in _SILENT)
    return frozenset(map(stem_word, left))


def _measure_likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


_KEEP = text("""
    INSERT INTO search_examples (entry, tool, origin, task, good, bad, used)
    VALUES (:entry, :tool, :origin, :task, :good, :bad, :used)
    ON CONFLICT (entry, tool, origin, task) DO UPDATE
    SET good = min(good + excluded.good, 100), bad = min(bad + excluded.bad, 100),
        used = excluded.used""")
_REMOVE = text(
    "DELETE FROM search_examples WHERE entry = :entry AND tool = :tool AND origin = :origin"
)
_FORGET = text(
    "DELETE FROM search_examples WHERE origin = :origin AND (:entry = '' OR entry = :entry)"
)
_OF_ENTRIES = text("""
    SELECT examples.entry, tool, task, good, bad FROM json_each(:entries) AS chosen
    CROSS JOIN search_examples AS examples ON examples.entry = chosen.value
    WHERE origin = :origin""")
_PRUNE_TOOL = text("""
    DELETE FROM search_examples
    WHERE entry = :entry AND tool = :tool AND origin = :origin AND id NOT IN (
        SELECT id FROM search_examples
        WHERE entry = :entry AND tool = :tool AND origin = :origin
        ORDER BY used DESC, id DESC LIMIT :most)""")
_PRUNE_HOME = text(
    "DELETE FROM search_examples WHERE origin = :origin "
    "AND id <= (SELECT max(id) FROM search_examples) - :most"
)
