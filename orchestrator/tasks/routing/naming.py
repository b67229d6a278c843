"""Which words of a task the identifiers of a tool name: its name, its server's, its parameters',
the values that those may have, and the fields of its answer.

A person saw these when the server was registered, and they are what the tool does. Descriptions are
prose of whoever wrote them, as long as they like: they order what is found, and here they count for
nothing, so that a text stuffed with words lets nothing be called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from orchestrator.tasks.model import Reading
from orchestrator.tasks.planning.binding import to_singular
from orchestrator.tasks.reading.values import scan_values
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, VERBS, split_words, stem_word
from sandbox.bundle.model import ToolDefinition

MAX_DEPTH = 6
MAX_NAMES = 100
MAX_ENUM = 100
MAX_TITLE = 5
MAX_PATH = 200
"""Words of a server's title that count: it is a stranger's, and shown to whoever confirms it."""
_SEEKING = frozenset(f"{VERBS['read']} {VERBS['search']} give tell".split())
_BEFORE_NOUNS = _SEEKING | {"a", "an", "the", "my", "our", "your", "this", "that", "of"}
_TELLING = frozenset("if than or like who when how some then first finally so as".split())
"""Words that search leaves out and that make it another question."""
NEUTRAL = (
    STOP_WORDS
    | _SEEKING
    | w.POLITE
    | frozenset("all every each current currently today please thanks thank s".split())
    | frozenset("details detail info information overview".split())
) - _TELLING
"""Words that say nothing of what is wanted: function words, polite ones, verbs of showing."""
_TOKEN = re.compile(r"\S+")
_SILENT = re.compile(
    r"\b(?:at\s+the\s+moment|right\s+now|at\s+present|(?:look|pull|bring)\s+up|"
    r"(?:whole|full|complete)\s+list|(?<=have\s)got|(?<=we\s)got|(?<=there\s)got)\b",
    re.IGNORECASE,
)
"""Phrases of words that say nothing together."""
_ASKED = (
    (r"how\s+long", "length duration minutes hours seconds"),
    (r"how\s+much", "price amount cost total balance fee"),
    (r"how\s+old", "age"),
    (r"how\s+(?:big|large)", "size area capacity"),
    (r"how\s+(?:high|tall)", "height"),
    (r"how\s+wide", "width"),
    (r"how\s+heavy", "weight"),
    (r"how\s+(?:warm|hot|cold)", "celsius fahrenheit temperature degrees"),
    (r"when", "date time due day start end at on"),
    (r"who", "name owner author customer artist assignee creator"),
)
"""What a question asks for, and fields that have that of a thing."""
_ASKED_OF_MANY = ((r"who\s+are\s+(?:the|our|your)", "name"),)


@dataclass(frozen=True)
class Naming:
    """`unnamed` are the words of a task that say what is wanted and that no identifier of the tool
    has. `is_whole`: there are none, and the task says all of the tool's name but its verb.
    `is_many`: it does, and says that there are several (`the invoices`, not `the invoice`).
    """

    unnamed: tuple[str, ...] = ()
    is_whole: bool = False
    is_many: bool = False


def name_words(
    task: str, tool: ToolDefinition, server: str, title: str, reading: Reading
) -> Naming:
    """What a tool's identifiers name of a task without the values that went into its arguments."""
    known = list_identifiers(tool, server, title)
    rest = strip_values(task, reading, known)
    said = list_said(_strip_asked(rest, known, is_one=bool(reading.evidence)))
    sets = _sets_value(said, tool, reading)
    silent = NEUTRAL | _SETTING if sets else NEUTRAL
    verb = next((word for word in split_words(tool.name) if any(word in v for v in _SAME)), "")
    unnamed = tuple(
        dict.fromkeys(
            word
            for word in said
            if word not in silent and not _is_ordered(word, [verb]) and not _has_form(word, known)
        )
    )
    stems = {_find_form(word) for word in [*said, *_list_kinds(task, reading)]}
    verbs = w.READING_VERBS | _SEEKING | (_CHANGING if sets else frozenset())
    own = [word for word in split_words(tool.name) if word not in verbs]
    # `get_all` and `get_by_id` say how many are given, and not of what.
    own = [word for word in own if word not in _SAYING_LITTLE] or own
    wanted = [_find_form(word) for word in own if not _is_ordered(word, said)]
    unnamed = tuple(dict.fromkeys((*unnamed, *_find_other_head(said, wanted, reading))))
    told = all(each in stems for each in wanted) or (
        _has_code(reading) and _says_verb(task, _find_own_verb(tool))
    )
    whole = not unnamed and bool(wanted) and told
    many = any(_find_form(word) in wanted and word != to_singular(word) for word in said)
    return Naming(unnamed, whole, whole and many)


def _sets_value(said: Iterable[str], tool: ToolDefinition, reading: Reading) -> bool:
    """Whether a task orders a change by any verb for it, and says what becomes of which thing:
    `mark job 3 as done` for `update_job`.
    """
    return (
        tool.access != "read"
        and bool(_CHANGING & {*split_words(tool.name)} and _SETTING & {*said} - {"as"})
        and len(reading.evidence) > 1
    )


def _find_form(word: str) -> str:
    """The stem of a word; a booking is no book, so what ends in `ing` is by itself."""
    single = to_singular(word)
    return single if single.endswith("ing") and len(single) > 5 else stem_word(word)


def _has_form(word: str, known: Set[str]) -> bool:
    return _find_form(word) in known


def _find_other_head(said: Sequence[str], wanted: Sequence[str], reading: Reading) -> Iterator[str]:
    """The things that are wanted, where those that the tool is about only tell which: `customers
    with open jobs` are no jobs. What is theirs is wanted of them (`names of the customers`), and
    a word right before them tells which they are (`sales orders`).
    """
    values = {*split_words(" ".join(reading.evidence.values()))}
    many = [
        (word, after)
        for word, after in pairwise([*said, ""])
        if word != to_singular(word) and word not in NEUTRAL and word not in values
    ]
    forms = [_find_form(word) for word, _ in many]
    if forms and forms[0] not in wanted and {*forms[1:]} & {*wanted}:
        head, after = many[0]
        if after != "of" and _find_form(after) not in wanted:
            yield head


def _is_ordered(verb: str, said: Iterable[str]) -> bool:
    """Whether a verb of a tool's name is one for what a task orders by another: `add` for
    `create_job` and `post_books`.
    """
    return any(verb in verbs and verbs & {*said} for verbs in _SAME)


def list_same_verbs(tool: ToolDefinition) -> frozenset[str]:
    """The stems of the verbs by which the act of a tool's name is ordered too: `remove` for
    `delete_customer`.
    """
    own = {*split_words(tool.name)}
    return frozenset(stem_word(verb) for verbs in _SAME if verbs & own for verb in verbs)


_SAME = (
    frozenset(f"{VERBS['create']} post".split()),
    frozenset(VERBS["delete"].split()),
)
_SAYING_LITTLE = frozenset("all by id".split())
_CHANGING = frozenset(VERBS["update"].split())
_SETTING = _CHANGING | frozenset("mark make put turn switch adjust correct as".split())


def _has_code(reading: Reading) -> bool:
    """Whether an argument was read from a text of letters or dots and digits: `PX-100`, and not
    the `5` of `track 5`.
    """
    return any(
        re.search(r"\d", each) and re.search(r"[^\d\s]", each) for each in reading.evidence.values()
    )


def _find_own_verb(tool: ToolDefinition) -> str:
    """The stem of the verb in a tool's name that says itself what is done to what: `track` of
    `track_parcel`, none of `get_parcel` and of `boats_download`, which begins with what it is
    about. Beside a value it says as much as the whole name.
    """
    first = [word for word in split_words(tool.name)[:1] if word == to_singular(word)]
    usual = {*" ".join(VERBS.values()).split(), "give", "tell", "check", "look", "open", "do"}
    return stem_word(first[0]) if first and first[0] not in usual else ""


def _says_verb(task: str, verb: str) -> bool:
    """Whether a task says this verb as its own: not after another one, or after an article, where
    the same word is a noun (`show boat B1`, `open the track`).
    """
    said = split_words(task)
    at = next((at for at, word in enumerate(said) if verb and stem_word(word) == verb), None)
    return at is not None and not (_BEFORE_NOUNS & {*said[:at]})


def _strip_asked(task: str, known: Set[str], *, is_one: bool) -> str:
    """A question about one thing or several, without the words for what the tool's answer has."""
    for asked, fields in _ASKED if is_one else _ASKED_OF_MANY:
        if known & {stem_word(field) for field in fields.split()}:
            task = re.sub(rf"\A\W*{asked}\b", " ", task, flags=re.IGNORECASE)
    return task


def list_said(task: str) -> list[str]:
    """The words of a task; `phone number` says no more than `phone`, `number of phones` does."""
    words = split_words(_SILENT.sub(" ", task))
    return [
        word
        for before, word in pairwise(["", *words])
        if word != "number" or before in NEUTRAL or not before
    ]


def list_identifiers(tool: ToolDefinition, server: str, title: str) -> frozenset[str]:
    """The stems of a tool's identifiers, those of its first 100 fields and values each way."""
    words = [*split_words(tool.name), *split_words(server), *split_words(title)[:MAX_TITLE]]
    words += split_words(tool.path[:MAX_PATH])
    for schema in (tool.input_schema, find_answer_schema(tool)):
        for count, name in enumerate(_list_names(schema, MAX_DEPTH)):
            if count >= MAX_NAMES:
                break
            words += split_words(name[:100])
    # Who is an assignee is assigned something.
    words += [word[:-2] for word in words if len(word) > 5 and word.endswith("ee")]
    return frozenset(map(stem_word, words)) | frozenset(map(_find_form, words))


def find_answer_schema(tool: ToolDefinition) -> Mapping[str, Any]:
    """The schema of what the API answers, without the envelope that every compiled tool has."""
    schema = tool.output_schema or {}
    properties = schema.get("properties")
    body = properties.get("body") if isinstance(properties, Mapping) else None
    if not isinstance(body, Mapping):
        return schema
    return {**body, "$defs": schema["$defs"]} if "$defs" in schema else body


def strip_values(task: str, reading: Reading, known: Iterable[str]) -> str:
    """A task without the values that were read out of it; words that name an argument, or a value
    that the schema lists, stay.
    """
    kept = frozenset(known)
    for name, evidence in reading.evidence.items():
        if evidence and reading.origins.get(name.partition(".")[0], "task") == "task":
            task = task.replace(evidence, _keep_known(evidence, kept))
    return task


def _list_kinds(task: str, reading: Reading) -> Iterator[str]:
    """What the values say by their form: `100 EUR` says "currency"."""
    read = {evidence for evidence in reading.evidence.values() if evidence}
    for value in scan_values(task):
        if any(value.text in evidence for evidence in read):
            yield value.kind
            if value.currency:
                yield "currency"


def _keep_known(evidence: str, known: frozenset[str]) -> str:
    return " ".join(
        token
        for token in _TOKEN.findall(evidence)
        if (words := split_words(token)) and all(stem_word(word) in known for word in words)
    )


def _list_names(schema: Any, depth: int) -> Iterator[str]:
    """Names of properties and values of enumerations, wherever they stand in a schema."""
    if not isinstance(schema, Mapping) or depth < 1:
        return
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        yield str(name)
        yield from _list_names(part, depth - 1)
    listed = schema.get("enum")
    for value in listed[:MAX_ENUM] if isinstance(listed, list) else ():
        if isinstance(value, str):
            yield value
    for key in ("items", "additionalProperties"):
        yield from _list_names(schema.get(key), depth - 1)
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        for part in parts[:MAX_ENUM] if isinstance(parts, list) else ():
            yield from _list_names(part, depth - 1)
    defined = schema.get("$defs")
    for part in defined.values() if isinstance(defined, Mapping) else ():
        yield from _list_names(part, depth - 1)
