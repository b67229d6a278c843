"""Lookups: an id that a task does not say, found by the name that it does say, in a list of the
same server.

Pure. A list is only taken for one where the names agree plainly: its rows are of the kind of thing
that the argument identifies, each with such an id and with a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from orchestrator.tasks.model import PATH, REF, Reading
from orchestrator.tasks.planning.binding import (
    ResultField,
    agrees_by_type,
    list_result_fields,
    to_singular,
)
from orchestrator.tasks.planning.pages import SMALL, find_most, find_page_size, takes_pages
from orchestrator.tasks.planning.ranking import find_superlative
from orchestrator.tasks.reading.parameters import ToolParameter, list_parameters
from orchestrator.tasks.reading.values import Value, ValueKind, scan_values
from orchestrator.tasks.routing import words as w
from orchestrator.tasks.routing.naming import (
    NEUTRAL,
    find_answer_schema,
    list_identifiers,
    list_same_verbs,
)
from registry.search.languages import strip_accents
from registry.search.words import VERBS, split_words, stem_word
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.accepted import get_place
from sandbox.schemas.validator import get_checker

MAX_ROWS = 1_000
MAX_PAGES = 3
MAX_NAME = 200
MAX_TOLD = 500
"""Of a tool's description."""
MAX_MORE, FIELDS_MORE = 40, 2
_NAMES = frozenset(
    {("name",), ("title",), ("label",), ("subject",), ("display", "name"), ("full", "name")}
)
_IDENTIFYING = frozenset("id uuid guid number no code key ref reference slug serial".split())
_VERBS = w.READING_VERBS | w.WRITING_VERBS | w.MAKING | frozenset(" ".join(VERBS.values()).split())
_SAYING_LITTLE = frozenset("all by id the a an of one detail details info".split())
_NAMING: frozenset[ValueKind] = frozenset({"name", "quoted"})
_NO_NAMING: frozenset[ValueKind] = frozenset({"currency", "letter", "range", "vague"})
_ALSO_NAMING: frozenset[ValueKind] = _NAMING | {"domain", "email"}
_HEADS = frozenset(
    "agreement archive award benefit board book budget calendar card chart club code committee "
    "condition contract cost count critic dashboard data database day deadline desk detail "
    "directory director directories event fair fee festival file folder form format group guide "
    "guideline handbook history idea index industry info information instruction issue job journal "
    "law ledger letter library line link list log machine management manager manual map market "
    "meeting menu month name news newsletter night note notice number office option order overview "
    "owner page paper party path period phase plan plate policy portal price problem procedure "
    "process program programme project queue quote rate rating record register registry regulation "
    "report request review role rule sale schedule season section sector service setting sheet "
    "shop site size standard star statement statistic status store story summary survey system "
    "table tax team template term time title total tracker training type union unit update value "
    "week workflow year".split()
)
"""Nouns that make a compound of the thing before them, also where they have a capital: the employee
Handbook is no employee.
"""
_ARTICLES = frozenset({"the", "a", "an"})
_HONORIFICS = frozenset("dr frau herr miss mme mr mrs ms prof professor".split())
_WORD = re.compile(r"[^\W_]+")
_CALLED = re.compile(r"\A(?:called|named|(?:en)?titled)\s+(?=\S)", re.IGNORECASE)
_CLAUSE_END = re.compile(r"\s*(?:[.?!]\s*)?\Z")


@dataclass(frozen=True)
class Lookup:
    """A read of the same server whose rows may hold the id that `parameter`, by its dotted name,
    wants. `identity` and
    `names` are fields of a row; `is_paged` says that one call may give the first rows only, `most`
    is the argument by which the tool follows pages, "" where it has none. A list of fewer rows than
    `page_size` is whole.
    """

    parameter: str
    schema: Mapping[str, Any]
    tool: str
    identity: ResultField
    names: tuple[ResultField, ...]
    is_paged: bool = False
    most: str = ""
    page_size: int = SMALL


@dataclass(frozen=True)
class SaidName:
    """What a task calls the thing whose id is wanted. `is_plain`: by its form it is a name, and
    nothing else of the task is left unread. `is_loose`: it is but what is left of the words, which
    says nothing of which tool is meant.
    """

    text: str
    is_plain: bool
    is_loose: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the list: its place, its id, what it is called, and a few more of its fields."""

    index: int
    identity: Any
    name: str
    more: Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """The rows that are called as the task says, and the first of all that were read. `is_whole`:
    the list has no more rows than those. `near` are rows of people with the family name that the
    task says behind a title (`Dr Weiss`): somebody has to be asked whether they are meant.
    """

    matches: tuple[Row, ...]
    rows: tuple[Row, ...]
    is_whole: bool
    near: tuple[Row, ...] = ()


def find_lookup(
    target: ToolDefinition,
    siblings: Iterable[ToolDefinition],
    parameter: str,
    *,
    is_callable: Callable[[ToolDefinition], bool] = lambda tool: False,
) -> Lookup | None:
    """The one list that gives ids for a required argument of a tool, or for one that narrows what
    it gives; None where there is none, or several. `siblings` are the tools of its server; of those
    that need arguments themselves only such are taken as `is_callable` says that the task has them.
    """
    wanted = next((p for p in list_parameters(target.input_schema) if p.name == parameter), None)
    if wanted is None or not (_is_identity(wanted) or is_filter(wanted)):
        return None
    noun = _find_noun(wanted, target)
    found = [
        lookup
        for tool in siblings
        if tool.name != target.name
        and tool.access == "read"
        and (lookup := _match_list(tool, wanted, noun)) is not None
        and (not tool.input_schema.get("required") or is_callable(tool))
    ]
    return found[0] if len(found) == 1 and noun else None


def _is_identity(wanted: ToolParameter) -> bool:
    """A field of a body has to say of what it is the id: its own `id` may be one that is new."""
    if not wanted.required or wanted.enum or wanted.items is not None:
        return False
    if len(wanted.pointer) > 2 or (len(wanted.pointer) == 2 and len(wanted.words) == 1):
        return False
    if wanted.words in _NAMES or wanted.is_choosing or wanted.is_boolean:
        return False
    in_path = get_place(wanted.schema)[0] == "path"
    return bool(wanted.words) and (in_path or wanted.words[-1] in _IDENTIFYING)


def is_filter(wanted: ToolParameter) -> bool:
    """Whether an argument that may be left out says of whom the rows are wanted: `customer_id`."""
    plain = not (wanted.enum or wanted.items or wanted.is_choosing or wanted.is_boolean)
    named = len(wanted.words) > 1 and wanted.words[-1] in _IDENTIFYING
    return plain and named and len(wanted.pointer) == 1 and not wanted.required


def _find_noun(wanted: ToolParameter, target: ToolDefinition) -> tuple[str, ...]:
    """What the argument identifies: `zone` for `zone_id`, else what its tool is about."""
    if len(wanted.words) > 1 and wanted.words[-1] in _IDENTIFYING:
        return tuple(map(to_singular, wanted.words[:-1]))
    owner = re.search(rf"([^/{{}}]+)/\{{{re.escape(wanted.pointer[-1])}\}}", target.path)
    return _to_noun(split_words(owner[1] if owner else target.name))


def find_noun(tool: str) -> tuple[str, ...]:
    """What a tool is about, by its name: `customer` of `update_customer`."""
    return _to_noun(split_words(tool))


def _to_noun(words: Sequence[str]) -> tuple[str, ...]:
    """A name's noun in the singular, without its verb, which stands first or last."""
    words = [word for word in words if word not in _SAYING_LITTLE]
    if words and words[0] in _VERBS:
        words = words[1:]
    elif len(words) > 1 and words[-1] in _VERBS:
        words = words[:-1]
    return tuple(map(to_singular, words))


def _match_list(
    tool: ToolDefinition, wanted: ToolParameter, noun: tuple[str, ...]
) -> Lookup | None:
    fields = [
        each
        for each in list_result_fields(find_answer_schema(tool))
        if each.lists == 1 and each.names[-2] is None
    ]
    about = find_noun(tool.name)
    rows = [each for each in fields if noun in (each.owner, about)]
    exact = [each for each in rows if each.label == wanted.words]
    short = [each for each in rows if each.label == wanted.words[-1:]]
    identities = [each for each in exact or short if agrees_by_type(wanted.types, each.types)]
    if len(identities) != 1 or wanted.words[-1] not in (*_IDENTIFYING, *identities[0].label):
        return None
    (identity,) = identities
    called = _NAMES | {noun, *((*noun, *name) for name in (("name",), ("title",)))}
    names = tuple(
        each
        for each in rows
        if each.names[:-1] == identity.names[:-1]
        and each.label in called
        and "string" in each.types
        and each != identity
    )
    if not names:
        return None
    paged, most = takes_pages(tool), find_most(tool)
    size = find_page_size(tool)
    return Lookup(wanted.name, wanted.schema, tool.name, identity, names, paged, most, size)


def find_said_name(
    task: str,
    target: ToolDefinition,
    server: str,
    title: str,
    reading: Reading,
    parameter: str,
    named: Set[str] = frozenset(),
) -> SaidName | None:
    """What a task says in place of the id that `parameter` wants; None where it says the id, or
    nothing, or asks for several things, or another required argument is missing too. `named` are
    more stems of words that are no names.
    """
    noun = find_owner_noun(target, parameter)
    if [name for name in reading.missing if name != parameter] or reading.problem:
        return None
    if _asks_for_several(task, target, noun):
        return None
    rest = task
    for name, evidence in reading.evidence.items():
        if name != parameter and evidence:
            rest = _blank(rest, evidence)
    scanned = scan_values(rest)
    values = [value for value in scanned if value.kind not in _NO_NAMING]
    if (read := _find_value(reading.arguments, parameter)) is not None:
        return _take_read_name(read, values, reading, parameter)
    known = list_identifiers(target, server, title) | list_same_verbs(target) | named
    unnamed = [m for m in _WORD.finditer(rest) if not _is_known(m[0], known)]
    if not unnamed:
        return None
    if len(values) == 1 and values[0].kind in _ALSO_NAMING:
        (value,) = values
        beside = [m for m in unnamed if m.start() < value.start or value.end < m.end()]
        if _owns_thing(rest[value.end :], noun):
            return None
        # What a description says is a stranger's word: enough to ask, not to know.
        told = {stem_word(word) for word in split_words(target.description[:MAX_TOLD])}
        if all(_is_known(m[0], known | told) for m in beside):
            text = str(value.value)[:MAX_NAME]
            plain = value.kind == "quoted" or _is_name(value.kind, text)
            return SaidName(text, plain and not beside)
    elif any(value.kind not in _NAMING for value in values):
        return None
    start, end = unnamed[0].start(), unnamed[-1].end()
    if any(v.kind == "vague" and start <= v.start < end for v in scanned):
        # `since 1 January` is no name.
        return None
    text = _CALLED.sub("", rest[start:end].strip())
    # `the recipe Leek soup`: a capital behind the thing's own name, up to the end.
    before = split_words(rest[:start])[-1:]
    behind = bool(before) and to_singular(before[0]) in noun
    ends = _CLAUSE_END.match(rest, end) is not None
    plain = text[:1].isupper() and behind and ends and _is_name("name", text)
    if behind:
        return SaidName(text[:MAX_NAME], plain) if len(text) <= MAX_NAME else None
    return _find_plain_words(rest, start, end, noun)


def _blank(text: str, evidence: str) -> str:
    """A task without the words for a value, and without the one before it that says when."""
    said = re.compile(rf"(?:\b(?:after|before|by|on|since|till|until)\s+)?{re.escape(evidence)}")
    return said.sub(lambda found: " " * len(found[0]), text)


def _find_plain_words(text: str, start: int, end: int, noun: Sequence[str]) -> SaidName | None:
    """The words that alone are left of an order and stand together, behind an article or before
    the thing's own name: `the front door`, `the movie night scene`. A list has to have one that is
    called just so.
    """
    while start and _IN_WORD.match(text[start - 1]):
        start -= 1
    while end < len(text) and _IN_WORD.match(text[end]):
        end += 1
    if (silent := _SILENT_BEFORE.search(text[:start])) is not None:
        # `the good morning scene`: words that mostly say nothing may be part of a name.
        start = silent.start("words")
    said, article = text[start:end], _ARTICLE_BEFORE.search(text[:start])
    following = split_words(text[end : end + 60])[:1]
    is_thing = bool(following) and following[0] in noun
    if not (article or is_thing) or len(said) > MAX_NAME or not _PHRASE.fullmatch(said):
        return None
    if find_superlative(f"{said} {' '.join(noun)}"):
        return None
    return SaidName(said, False, is_loose=True)


_IN_WORD = re.compile(r"[\w-]")
_SILENT_BEFORE = re.compile(
    r"\b(?:the|my|our)\s+(?P<words>(?:(?!(?:as|at|by|for|from|in|of|on|or|to|with)\b)[\w-]{1,40}\s+){1,3})\Z",
    re.IGNORECASE,
)
_ARTICLE_BEFORE = re.compile(r"\b(?:the|my|our|of)\s+\Z", re.IGNORECASE)
_PHRASE = re.compile(
    r"(?!(?:all|any|each|every|first|last|next|other|same)\b)"
    r"[^\W_][\w'-]*(?: (?!(?:and|as|at|by|for|from|in|of|on|or|to|with)\b)[^\W_][\w'-]*){0,4}",
    re.IGNORECASE,
)
"""Up to five words without one between them that joins two things."""


def _owns_thing(behind: str, noun: Sequence[str]) -> bool:
    """Whether a name is but that of whose the thing is: `Rex's stay` is no stay called Rex."""
    owned = re.match(r"['\u2019]s\s+(?:\w+\s+){0,2}?(\w+)", behind)
    return owned is not None and to_singular(owned[1].lower()) in noun


_BELONGING = frozenset("by for from in of on since that to which with".split())


def _asks_for_several(task: str, target: ToolDefinition, noun: Sequence[str]) -> bool:
    """Whether the things are said in the plural alone, which no name of the tool has: `which
    tickets has Ada` is about no ticket that is called so.
    """
    words = split_words(task)
    owned = [word for word, after in pairwise(words) if after in _BELONGING]
    if any(to_singular(word) != word and to_singular(word) in noun for word in owned):
        return not {*words} & {*noun}
    said = {*split_words(task)} - {*split_words(target.name)}
    many = {word for word in said if to_singular(word) != word and to_singular(word) in noun}
    return bool(many) and not said & {*noun}


def find_owner_noun(target: ToolDefinition, parameter: str) -> tuple[str, ...]:
    wanted = next((p for p in list_parameters(target.input_schema) if p.name == parameter), None)
    return _find_noun(wanted, target) if wanted is not None else ()


def _find_value(arguments: Any, parameter: str) -> Any:
    """The value of an argument, or of a field of one, by its dotted name; None for none."""
    for name in parameter.split("."):
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments


def _take_read_name(
    value: Any, values: Sequence[Value], reading: Reading, parameter: str
) -> SaidName | None:
    """A name that was read as the id because it stands behind the thing: `the film Metropolis`.
    Who writes `film id` says that it is one.
    """
    evidence = reading.evidence.get(parameter, "")
    if not isinstance(value, str) or {*split_words(evidence)} & _IDENTIFYING:
        return None
    kinds = {each.kind for each in values if each.value == value}
    if kinds and not kinds <= _ALSO_NAMING:
        return None
    if not kinds and parameter not in reading.doubtful:
        return None
    plain = kinds == {"quoted"} or (kinds == {"name"} and _is_name("name", value))
    return SaidName(value[:MAX_NAME], plain and not reading.unused)


def _is_name(kind: ValueKind, text: str) -> bool:
    """Whether capital letters make a name: not where its last word is a thing's (`Handbook`)."""
    words = split_words(text)
    return kind == "name" and bool(words) and to_singular(words[-1]) not in _HEADS


def _is_known(word: str, known: frozenset[str]) -> bool:
    return all(part in NEUTRAL or stem_word(part) in known for part in split_words(word))


def find_rows(lookup: Lookup, said: str, answer: Any) -> Found:
    """The rows of a list's answer that are called just as the task says, letter case, accents and
    an article in front aside, or whose id that is. At most 1,000 rows are looked at.
    """
    listed = answer
    for name in lookup.identity.names[:-2]:
        listed = listed.get(name) if isinstance(listed, Mapping) else None
    if not isinstance(listed, list):
        return Found((), (), False)
    checker, folded = get_checker({"properties": {lookup.parameter: lookup.schema}}), _fold(said)
    key, rows, matches = str(lookup.identity.names[-1]), [], []
    near, family = [], folded[1:] if folded and folded[0] in _HONORIFICS else ()
    for index, row in enumerate(islice(listed, MAX_ROWS)):
        identity = row.get(key) if isinstance(row, Mapping) else None
        if not isinstance(identity, str | int) or isinstance(identity, bool):
            continue
        if checker.find_problem({lookup.parameter: identity}) is not None:
            continue
        called = list(_iterate_names(lookup, row))
        rows.append(Row(index, identity, called[0] if called else "", _list_more(lookup, row)))
        if str(identity) == said:
            matches = [rows[-1]]
            break
        if any(folded and _fold(name) == folded for name in called):
            matches.append(rows[-1])
        elif family and any(_fold(name)[-len(family) :] == family for name in called):
            near.append(rows[-1])
    is_page = lookup.is_paged and len(listed) >= lookup.page_size
    is_whole = not is_page and len(listed) <= MAX_ROWS
    return Found(tuple(matches), tuple(rows), is_whole, tuple(near))


def _iterate_names(lookup: Lookup, row: Mapping[str, Any]) -> Iterator[str]:
    for field in lookup.names:
        value = row.get(str(field.names[-1]))
        if isinstance(value, str) and value and len(value) <= MAX_NAME:
            yield value


def _list_more(lookup: Lookup, row: Mapping[str, Any]) -> dict[str, Any]:
    """A few short fields by which a person tells rows of one name apart."""
    known = {str(field.names[-1]) for field in (lookup.identity, *lookup.names)}
    short = (
        (name, value)
        for name, value in row.items()
        if name not in known
        and isinstance(value, str | int | float)
        and len(str(value)) <= MAX_MORE
    )
    return dict(islice(short, FIELDS_MORE))


def _fold(text: str) -> tuple[str, ...]:
    """The words of a name without case and accents, and without an article in front."""
    words = tuple(_WORD.findall(strip_accents(text).casefold()))
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


def build_reference(lookup: Lookup, step: str, row: Row) -> dict[str, str]:
    """The reference to a row's id in what a step answered."""
    return {REF: step, PATH: lookup.identity.build_path(str(row.index))}
