"""Values that stand beside the name of a parameter: `berth 12`, `limit = 5`, `tags a, b and c`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.tasks.reading.assignment import LINK, Assignment
from orchestrator.tasks.reading.choices import TaskWords, find_choice
from orchestrator.tasks.reading.fitting import NOTHING, fit_value, is_confident
from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.units import UNITS
from orchestrator.tasks.reading.values import Value
from registry.search.words import split_words
from sandbox.schemas.accepted import get_place

MAX_COUNTED = 100
"""More than so many things are a year, a status or a model, where nothing says that they count."""
_EXPLICIT = re.compile(
    r"\s*(?:=|:)\s*(?P<a>[\w.@+-]{1,100})|\s+(?:named|called)\s+(?P<b>[\w.@+-]{1,100})"
)
_MADE = re.compile(
    r"\b(?:an?|another|new)\s+"
    r"(?:(?!(?:and|at|by|for|from|in|into|of|on|or|that|to|which|with)\b)[\w-]{1,40}\s+){1,4}"
    r"(?:named|called|titled)\s+(?=\S)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b(?:first|top|last|latest|newest|at\s+most|up\s+to|max(?:imum)?|limit(?:\s+of|\s+to)?|only|"
    r"no\s+more\s+than|oldest)\s+\Z",
    re.IGNORECASE,
)
_CHOOSING = re.compile(r"last|latest|newest|oldest|top", re.IGNORECASE)
_ROW = re.compile(
    r"\s*(?:=|:)?\s*(?P<row>[\w-]{1,60}(?:\s*,\s*(?!and\b)[\w-]{1,60}){1,20}"
    r"(?:,?\s+and\s+[\w-]{1,60})?)"
)
_RESULTS = re.compile(
    r"\A\s+(?:\w+\s+)?(?:results?|items?|entries|rows|hits|matches|per\s+page)\b", re.I
)
_GENERIC = frozenset(
    "id number name code no key ref reference value type data text list item".split()
)
_JOINT = re.compile(r"\s*(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+|&)\s*")


def read_named(state: Assignment) -> None:
    """Values beside the name of a parameter: `berth 12`, `limit = 5`, `zone named "x"`."""
    claims: dict[tuple[str, ...], list[tuple[int, int, Any, str]]] = {}
    for parameter in state.list_open():
        if parameter.is_boolean or parameter.enum:
            continue
        found = list(_find_named(state, parameter))
        best = max((words for words, *_ in found), default=0)
        claims[parameter.pointer] = [each for each in found if each[0] == best]
    owners: dict[int, list[tuple[int, tuple[str, ...]]]] = {}
    for pointer, found in claims.items():
        for words, at, *_ in found:
            owners.setdefault(at, []).append((words, pointer))
    for parameter in state.list_open():
        mine = [
            each
            for each in claims.get(parameter.pointer, [])
            if not any(
                pointer != parameter.pointer
                and words >= each[0]
                and not (words == each[0] and _is_nearer(state, parameter, pointer, each))
                for words, pointer in owners[each[1]]
            )
        ]
        distinct = {at: (value, evidence) for _, at, value, evidence in mine}
        if len(distinct) == 2:
            distinct = _keep_aim(state, distinct)
        if len(distinct) == 1:
            ((at, (value, evidence)),) = distinct.items()
            state.assign(parameter, value, evidence, [at] if at >= 0 else [])
        elif distinct:
            state.ambiguous.add(parameter.pointer)


def _keep_aim(
    state: Assignment, found: Mapping[int, tuple[Any, str]]
) -> dict[int, tuple[Any, str]]:
    """Of two values the one that something is brought to: `from rack A to rack B`. Where it comes
    from stays a value that went nowhere.
    """
    before = {
        at: state.lower[: state.values[at].end - len(evidence)]
        for at, (_, evidence) in found.items()
    }
    aims = [at for at, text in before.items() if re.search(r"\b(?:in)?to\s+(?:the\s+)?\Z", text)]
    sources = [at for at, text in before.items() if re.search(r"\bfrom\s+(?:the\s+)?\Z", text)]
    return {aims[0]: found[aims[0]]} if len(aims) == len(sources) == 1 else dict(found)


def _is_nearer(
    state: Assignment,
    parameter: ToolParameter,
    other: tuple[str, ...],
    mention: tuple[int, int, Any, str],
) -> bool:
    """Whether a mention is of this parameter and not of another one of the same name: of the upper
    one, unless the task names just before what the lower one is part of (`vet name`).
    """
    _, at, _, evidence = mention
    before = split_words(state.task[: max(0, state.values[at].end - len(evidence))][-40:])[-2:]
    own, theirs = (
        len(pointer) > 1 and bool({*split_words(pointer[-2])} & {*before})
        for pointer in (parameter.pointer, other)
    )
    return own if own != theirs else len(parameter.pointer) < len(other)


def _find_named(state: Assignment, parameter: ToolParameter) -> Iterator[tuple[int, int, Any, str]]:
    """(words of the label, number of the value, value, evidence) of each mention."""
    for label, size in list_labels(parameter):
        for found in state.find_mentions(f"{label}s?"):
            at = state.find_value_behind(found.end())
            fitted = state.fit_free(at, parameter)
            if at is not None and counts_several(parameter, found.group()):
                # `orders of Jon Dahl` are his, and none that has his name for an id; `fines of 120`
                # are not the fine 120.
                named = state.values[at].kind in ("name", "quoted")
                counted = state.lower[found.end() :].lstrip().startswith("of ")
                fitted = NOTHING if named or counted else fitted
            if at is not None and fitted is not NOTHING:
                yield size, at, fitted, state.task[found.start() : state.values[at].end]
            counts = not parameter.is_numeric or counts_several(parameter, found.group())
            before = None if counts else state.find_value_before(found.start())
            fitted = state.fit_free(before, parameter)
            if before is not None and fitted is not NOTHING:
                yield size, before, fitted, state.task[state.values[before].start : found.end()]


def counts_several(parameter: ToolParameter, said: str) -> bool:
    """Whether a number before this word says how many: `2 boats` is not the boat 2."""
    names_one = parameter.is_identifying or get_place(parameter.schema)[0] == "path"
    return names_one and said.endswith("s") and not parameter.words[-1].endswith("s")


def read_titled(state: Assignment) -> None:
    """`titled "Broken sink"`, `called Broken sink`: the title, up to where the clause ends. Without
    quotation marks only what a call needs is read so, what a list is narrowed by, or what is made
    is called (`create a pet called Rex`), and it may have ended elsewhere.
    """
    wanted = _list_titles(state)
    found = [*_TITLED.finditer(state.task)]
    if not len(wanted) == len(found) == 1:
        return
    ((parameter,), (said,)) = wanted, found
    if _OF_ANOTHER.search(state.task[: said.start()]) and said.group().lower() in _CALLED:
        return
    behind = [(at, v) for at, v in state.list_free() if v.start == said.end()]
    for at, value in behind:
        if value.kind in ("quoted", "domain", "email", "url", "uuid", "code", "path"):
            evidence = state.task[said.start() : value.end]
            state.assign(parameter, value.value, evidence, [at])
            return
    plain = _TITLE.match(state.task, said.end())
    is_made = any(made.end() == said.end() for made in _MADE.finditer(state.task))
    # What a list is narrowed by: `patients called Berg`.
    is_filter = len(parameter.pointer) == 1
    if plain is not None and (parameter.required or is_made or is_filter):
        covered = state.list_covered(*plain.span("title"))
        evidence = state.task[said.start() : plain.end()]
        state.assign(parameter, plain["title"], evidence, covered)
        state.doubtful.append(parameter.name)


def _list_titles(state: Assignment) -> list[ToolParameter]:
    """The parameters that may be the title of what a task is about: of several those that a call
    needs, those nearest to the top (`vet.name` is another thing's), and a plain name.
    """
    wanted = [
        p
        for p in state.list_open()
        if p.words[-1:] and p.words[-1] in _TITLES and "string" in p.types
        if not (p.enum or p.is_choosing)
    ]
    wanted = [p for p in wanted if p.required] or wanted
    least = min((len(p.pointer) for p in wanted), default=0)
    wanted = [p for p in wanted if len(p.pointer) == least]
    return [p for p in wanted if p.words == ("name",)] or wanted


_CALLED = frozenset({"called ", "named "})
_OF_ANOTHER = re.compile(
    r"\b(?:at|by|for|from|in|into|of|on|to)\s+(?:the|an?|my|our|his|her|its|their)\s+[\w-]{1,40}\s+\Z",
    re.IGNORECASE,
)
"""`to the team`, of which `called Rockets` tells the name, and not of what is added to it."""
_TITLES = frozenset("title name subject summary".split())
_TITLED = re.compile(
    r"(?:\b(?:(?:en)?titled|called|named|with\s+(?:the\s+)?(?:title|name|subject|summary))|"
    r"(?<=[,:]\s)(?:title|subject|summary))\s+"
    r"(?=[^\W_]|[\"\u201c'`\u00ab\u201e])",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"(?P<title>[^\W_][^;\n\"]{0,200}?)"
    r"(?=\s*(?:\Z|[,:.!?](?:\s|\Z)|[;\n\"])|\s+(?:for|with|and|in|on|to|at|by|from|due|assigned|as)\b)",
    re.IGNORECASE,
)


def read_phones(state: Assignment) -> None:
    """`phone 0171 555 20`: the digits behind the name of what takes a telephone number."""
    for parameter in state.list_open():
        if not _PHONES & {*parameter.words} or "string" not in parameter.types or parameter.enum:
            continue
        found = [
            match
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if (match := _PHONE.match(state.task, mention.end()))
        ]
        if len(found) == 1:
            span = found[0].span("phone")
            covered = state.list_covered(*span)
            state.assign(parameter, found[0]["phone"], found[0]["phone"], covered)


_PHONES = frozenset("phone telephone tel mobile cell cellphone fax".split())
_PHONE = re.compile(
    r"(?:\s*(?:=|:)\s*|\s+)(?:(?:number|is|no\.?)\s+){0,2}"
    r"(?P<phone>\+?\(?\d[\d ()./-]{3,24}\d)(?![\w-])"
)


def read_full_names(state: Assignment) -> None:
    """The two words of a person's name for a first and a last name: `a student named Lisa Bell`."""
    first = [p for p in state.list_open() if {*p.words[:1]} & _FIRST and p.words[1:] == ("name",)]
    last = [p for p in state.list_open() if {*p.words[:1]} & _LAST and p.words[1:] == ("name",)]
    names = [
        (at, value)
        for at, value in state.list_free()
        if value.kind in ("name", "quoted") and len(str(value.value).split()) == 2
    ]
    if not len(first) == len(last) == len(names) == 1:
        return
    ((at, value),) = names
    for parameter, part in zip((*first, *last), str(value.value).split(), strict=True):
        state.assign(parameter, part, value.text, [at])
        state.doubtful.append(parameter.name)


_FIRST = frozenset({"first", "given"})
_LAST = frozenset({"last", "family"})


def read_explicit(state: Assignment) -> None:
    """`name=frontend`, `zone named frontend`: a word that is no value by its form."""
    for parameter in state.list_open():
        if "string" not in parameter.types or parameter.enum or parameter.is_choosing:
            continue
        if parameter.kind not in ("", "name", "id", "place", "person", "text"):
            continue
        found = {
            said: match
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if (match := _EXPLICIT.match(state.task, mention.end()))
            and (said := match["a"] or match["b"] or "")
        }
        if len(found) == 1:
            ((said, match),) = found.items()
            state.assign(parameter, said.rstrip("."), match.group().strip(),
                         state.list_covered(match.start(), match.end()))  # fmt: skip


def read_sentences(state: Assignment) -> None:
    """Several words behind a text's name and a colon, up to the end of the clause: `reason: two
    receipts missing` says more than its first word.
    """
    for parameter in state.list_open():
        if "string" not in parameter.types or parameter.enum or parameter.is_choosing:
            continue
        if parameter.kind not in ("", "text") or parameter.is_identifying:
            continue
        found = [
            match
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if (match := _SENTENCE.match(state.task, mention.end()))
        ]
        if len(found) == 1:
            covered = state.list_covered(*found[0].span("text"))
            state.assign(parameter, found[0]["text"], found[0]["text"], covered)
            state.doubtful.append(parameter.name)


_SENTENCE = re.compile(
    r"\s*:\s+(?P<text>[^\W_][^\s,;:.=\"]*(?: (?!(?:and|with)\b)[^\s,;:.=\"]+){1,40})"
    r"(?=\s*(?:[,;.!]\s|[.!]?\s*\Z))"
)


def is_beside_name(state: Assignment, parameter: ToolParameter, said: str) -> bool:
    """Whether words of the task stand right beside the parameter's name: `severity high`."""
    words = re.escape(said.lower())
    return any(
        re.search(rf"\b{label}{LINK.pattern}{words}\b|\b{words}\s+{label}\b", state.lower)
        for label, _ in list_labels(parameter)
    )


def read_named_before(state: Assignment) -> None:
    """A name before the name of a parameter: `the Blue room`. The thing may as well be called so
    as a whole.
    """
    for parameter in state.list_open():
        if "string" not in parameter.types or parameter.enum or parameter.is_choosing:
            continue
        if not parameter.required or parameter.kind not in ("", "name", "id", "place", "person"):
            continue
        found = {
            at
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if (at := state.find_name_before(mention.start())) is not None
        }
        if len(found) == 1:
            value = state.values[at := found.pop()]
            state.assign(parameter, value.value, value.text, [at])
            state.doubtful.append(parameter.name)


def read_counts(state: Assignment) -> None:
    """`first 5`, `top 10`, `20 results` for the parameter that limits the results."""
    counting = [p for p in state.list_open() if p.is_counting]
    for at, value in state.list_free():
        if len(counting) != 1 or value.kind != "number" or value.unit or value.currency:
            continue
        before = _COUNTED.search(state.task[max(0, value.start - 20) : value.start])
        behind = _RESULTS.match(state.task[value.end : value.end + 60])
        if before or behind or _is_asked_for(state, value):
            fitted = fit_value(value, counting[0], is_named=True)
            most = counting[0].schema.get("maximum")
            if isinstance(most, int | float) and value.value > most:
                # `boats at most 20000` limits their price, where no page has as many.
                continue
            if fitted is not NOTHING and counting[0].pointer not in state.done:
                # What is newest is not what comes first.
                plain = before is not None and not _CHOOSING.match(before[0])
                said = before[0] if plain and before is not None else ""
                evidence = state.task[value.start - len(said) : value.end]
                state.assign(counting[0], fitted, evidence, [at])


def _is_asked_for(state: Assignment, value: Value) -> bool:
    """Whether a number says how many of a tool's things are wanted: `list 2 boats`, but not `list
    404 errors` nor `list 12 volt lamps`.
    """
    if value.value > MAX_COUNTED:
        return False
    behind = _THINGS.match(state.lower, value.end)
    asked = _ASKED.fullmatch(state.lower, 0, value.start) is not None
    return asked and behind is not None and behind["things"] in state.things


_ASKED = re.compile(
    r"\s*(?:please\s+)?(?:list|show|get|give|fetch|find|display|print)\s+(?:(?:me|us)\s+)?"
)
_THINGS = re.compile(r"\s+(?P<things>[^\W\d_]{2,40}s)\b")


def read_set(state: Assignment) -> None:
    """`change the title of ticket 3 to Slow search`: what the field that is changed becomes."""
    said = _SET.fullmatch(state.task)
    if said is None:
        return
    start, end = said.span("value")
    named = [
        p
        for p in state.list_open()
        if not (p.items or p.is_choosing)
        for label, _ in list_labels(p)
        if re.fullmatch(rf"{_OWNER}{label}(?:\s+{_FIELD})?", said["field"], re.IGNORECASE)
    ]
    parameter = _choose_own(named)
    if parameter is None:
        return
    text = said["value"]
    exact = [(at, v) for at, v in state.list_free() if (v.start, v.end) == (start, end)]
    if exact:
        fitted = fit_value(exact[0][1], parameter, is_named=True)
        if fitted is not NOTHING:
            state.assign(parameter, fitted, text, [exact[0][0]])
    elif "string" in parameter.types and not parameter.enum and parameter.kind in _PLAIN:
        state.assign(parameter, text, text, state.list_covered(start, end))
        state.doubtful.append(parameter.name)


def _choose_own(named: Sequence[ToolParameter]) -> ToolParameter | None:
    """The one field that is named; of several in a body the one of the thing itself: a pet's `name`
    beside its vet's.
    """
    if len(named) == 1:
        return named[0]
    own = [p for p in named if all(_is_inside(each, p.pointer[:-1]) for each in named)]
    return own[0] if len(own) == 1 and len(own[0].pointer) > 1 else None


def _is_inside(parameter: ToolParameter, above: tuple[str, ...]) -> bool:
    return parameter.pointer[:-1][: len(above)] == above


_PLAIN = frozenset({"", "name", "text", "place", "person"})
_OWNER = r"(?:[^\n]{1,40}(?:['\u2019]s?|\s#?\d[\w.-]{0,40})\s+)?"
_FIELD = r"(?:date|field|number|value)"
_SET = re.compile(
    r"(?:[^\n]{0,60}?[,;:.!])?\s*(?:please\s+)?(?:set|change|update|edit|modify|switch)\s+(?:(?:the|its|their)\s+)?"
    r"(?P<field>[^\W\d_][\w '\u2019-]{0,80}?)(?:\s+(?:of|for|on|in)\s+[^\n]{1,200}?)?"
    r"\s+(?:to|into|as)\s+"
    r"(?P<value>\S(?:[^\n]{0,2000}?\S)?)\s*[.!]?\s*",
    re.IGNORECASE,
)


def read_lists(state: Assignment) -> None:
    """Every value of the kind that the items of the one list take."""
    lists = [p for p in state.list_open() if p.items is not None and not p.is_choosing]
    said = TaskWords(state.blank_used(state.lower), state.task)
    for parameter in lists:
        items = parameter.items
        assert items is not None
        if items.enum:
            found = find_choice(said, items, many=True)
            if found is not None and sum(bool(p.items and p.items.enum) for p in lists) == 1:
                # A word that is no value of the list is not seen: more may be meant.
                state.assign(parameter, found[0], found[1])
                state.doubtful.append(parameter.name)
            continue
        named = _find_listed(state, parameter, items)
        if named:
            values = [fitted for _, fitted in named]
            evidence = ", ".join(state.values[at].text for at, _ in named)
            state.assign(parameter, values, evidence, [at for at, _ in named])


def _find_listed(
    state: Assignment, parameter: ToolParameter, items: ToolParameter
) -> list[tuple[int, Any]]:
    """Values in a row behind the list's name, or all of the kind where no other parameter takes
    that kind.
    """
    for label, _ in list_labels(parameter):
        for mention in state.find_mentions(f"{label}s?"):
            row = _follow_row(state, mention.end(), items)
            if row:
                return row
    rivals = [
        p for p in state.list_open()
        if p.pointer != parameter.pointer and (p.items or p).kind == items.kind
    ]  # fmt: skip
    if rivals or items.kind in ("", "id", "name", "text"):
        return []
    return [
        (at, fitted)
        for at, value in state.list_free()
        if is_confident(value, items)
        and (fitted := fit_value(value, items, is_named=False)) is not NOTHING
    ]


def _follow_row(state: Assignment, end: int, items: ToolParameter) -> list[tuple[int, Any]]:
    row: list[tuple[int, Any]] = []
    link = LINK.match(state.task, end)
    place = link.end() if link else end
    for at, value in state.list_free():
        if value.start != place:
            continue
        fitted = fit_value(value, items, is_named=True)
        if fitted is NOTHING:
            break
        row.append((at, fitted))
        following = _JOINT.match(state.task, value.end)
        if following is None:
            break
        place = following.end()
    return row


def read_word_lists(state: Assignment) -> None:
    """`tags red, blue and green`: bare words in a row behind the name of a list."""
    for parameter in state.list_open():
        if parameter.items is None or parameter.items.enum or parameter.is_choosing:
            continue
        if "string" not in parameter.items.types or parameter.items.kind not in ("", "name"):
            continue
        found = [
            row
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if (row := _ROW.match(state.task, mention.end()))
        ]
        if len(found) == 1:
            words = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[0]["row"].strip())
            covered = state.list_covered(*found[0].span("row"))
            state.assign(parameter, words, found[0].group().strip(), covered)


def list_labels(parameter: ToolParameter) -> list[tuple[str, int]]:
    """The ways to name a parameter, as patterns, with how many words each has: `berth id`,
    `berth`; `name` of `body.name`; `weight` of `weight_kg`.
    """
    words = [*parameter.words]
    labels = [words]
    # Whoever changes a weight does not say `weight kg`.
    if len(words) > 1 and (words[-1] in _GENERIC or words[-1] in UNITS):
        labels.append(words[:-1])
    if len(words) > 1 and words[0] in ("max", "min", "is", "has", "with", "filter", "by", "the"):
        labels.append(words[1:])
    plain = [label for label in labels if label and all(len(word) < 64 for word in label)]
    short = [label for label in plain if len(" ".join(label)) > 1]
    made = {r"[\s_-]?".join(map(re.escape, label)): len(label) for label in short}
    return sorted(made.items(), key=lambda pair: -pair[1])
