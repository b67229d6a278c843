"""Values that go into a parameter by their kind, a preposition or an enumeration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from datetime import datetime
from itertools import pairwise
from typing import Any

from orchestrator.tasks.reading.assignment import LINK, Assignment
from orchestrator.tasks.reading.choices import (
    TaskWords,
    find_choice,
    find_state,
    find_truth,
    is_likely,
    list_choices,
)
from orchestrator.tasks.reading.fitting import NOTHING, fit_value, is_confident
from orchestrator.tasks.reading.named import counts_several, is_beside_name, list_labels
from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.units import UNITS, Unit
from orchestrator.tasks.reading.values import Value
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, split_words, stem_word

_FROM = frozenset("from source origin start since after begin base beginning".split())
_TO = frozenset("to target destination end until till before quote recipient into".split())
_FROM_SAID = re.compile(r"\b(?:from|since|after|starting|between)\s+(?:the\s+|on\s+)?\Z", re.I)
_TO_SAID = re.compile(r"\b(?:to|until|till|before|through|into|and)\s+(?:the\s+)?\Z", re.I)
_BY_SAID = re.compile(r"\bby\s+\Z", re.I)
_FIRST = frozenset("from start begin beginning".split())
_LAST = frozenset("to end until till through".split())
_FOR_SAID = re.compile(r"\b(?:at|by|for|from|in|of|to|with)\s+(?:the\s+)?\Z", re.I)
_AT_SAID = re.compile(r"\b(?:in|at|near|around)\s+\Z", re.I)
_QUANTITIES = frozenset("count quantity qty".split())
_WORD_BEFORE = re.compile(r"\b([^\W\d_]+)\s+(?:number\s+|no\.?\s+)?#?\Z")
_THINGS = re.compile(r"\s+[^\W\d_]{3,30}\b")
_MADE = frozenset("author artist person writer painter composer".split())
_UNIT_SAID = re.compile(r"\b(?:to|in|into)\s+([a-z\u00b0%/]{1,14})\b")
_IN_SAID = re.compile(r"\b(?:in|into|as)\s+\Z", re.I)


def read_coordinates(state: Assignment) -> None:
    pairs = [(at, v) for at, v in state.list_free() if v.kind == "coordinates"]
    latitude = [p for p in state.list_open() if p.kind == "latitude" and p.is_numeric]
    longitude = [p for p in state.list_open() if p.kind == "longitude" and p.is_numeric]
    if len(pairs) == len(latitude) == len(longitude) == 1:
        ((at, value),) = pairs
        state.assign(latitude[0], value.value[0], value.text, [at])
        state.assign(longitude[0], value.value[1], value.text, [at])


def read_moments(state: Assignment) -> None:
    """A day with a time of day for the one moment that is wanted: `move it to tomorrow at 3pm`. In
    which time zone the API means it, no name says.
    """
    open_ones = state.list_open()
    if any(p.kind == "time" and "string" in p.types for p in open_ones):
        return
    joined = [
        (first, second)
        for (first, a), (second, b) in pairwise(state.list_free())
        if {a.kind, b.kind} == {"date", "time"} and _JOINED.fullmatch(state.lower, a.end, b.start)
    ]
    wanted = _prefer_beginning([p for p in open_ones if p.kind == "datetime"])
    if len(joined) != 1 or len(wanted) != 1 or state.zone is None:
        return
    (places,) = joined
    said = {state.values[at].kind: state.values[at] for at in places}
    moment = datetime.fromisoformat(f"{said['date'].value}T{said['time'].value}")
    start, end = state.values[places[0]].start, state.values[places[1]].end
    (parameter,) = wanted
    state.assign(
        parameter, moment.replace(tzinfo=state.zone).isoformat(), state.task[start:end], places
    )
    state.doubtful.append(parameter.name)


def _prefer_beginning(moments: list[ToolParameter]) -> list[ToolParameter]:
    """Of several moments the only one that is required, or that with which something begins."""
    required = [p for p in moments if p.required] or moments
    return [p for p in required if _FROM & {*p.words}] if len(required) > 1 else required


def read_periods(state: Assignment) -> None:
    """`this week` for the two days between which something is looked for. Whether the last day
    counts, and with which a week begins, nothing says.
    """
    periods = [(at, v) for at, v in state.list_free() if v.kind == "period"]
    ends = [p for p in state.list_open() if p.kind in ("date", "datetime") and not p.required]
    last = [p for p in ends if _TO & {*p.words}]
    # `start_before` is an end.
    first = [p for p in ends if _FROM & {*p.words} and p not in last]
    if not len(periods) == len(first) == len(last) == 1:
        return
    ((at, value),) = periods
    if _BEYOND.search(state.lower[: value.start]):
        return
    for parameter, day, hour in zip((*first, *last), value.value, _HOURS, strict=True):
        if parameter.kind == "date":
            state.assign(parameter, day, value.text, [at])
        elif state.zone is not None:
            moment = datetime.fromisoformat(f"{day}T{hour}").replace(tzinfo=state.zone)
            state.assign(parameter, moment.isoformat(), value.text, [at])
        state.doubtful.append(parameter.name)


_BEYOND = re.compile(r"\b(?:after|before|by|since|till|until)\s+\Z")
"""Words before a week by which not all of it is meant."""
_HOURS = ("00:00:00", "23:59:59")
_JOINED = re.compile(r"\s*,?\s*(?:(?:at|by|from|on|@)\s+(?:the\s+)?)?")


def read_directions(state: Assignment) -> None:
    """`from A to B`, `since DATE`, `to EUR` for parameters whose names say the direction."""
    for said, names in ((_FROM_SAID, _FROM), (_TO_SAID, _TO), (_IN_SAID, _TO)):
        for parameter in state.list_open():
            if parameter.is_boolean or not _has_direction(parameter, names, state):
                continue
            if _is_wanted_elsewhere(parameter, state):
                continue
            found = [
                (at, value, fitted)
                for at, value in state.list_free()
                if said.search(state.task[max(0, value.start - 30) : value.start])
                and (fitted := _fit_directed(state, value, parameter)) is not NOTHING
                and (is_confident(value, parameter) or said is not _IN_SAID)
            ]
            if len(found) == 1:
                ((at, value, fitted),) = found
                start = _find_evidence(state, value)
                state.assign(parameter, fitted, state.task[start : value.end], [at])
                if (value.kind, parameter.kind) == ("date", "datetime") or _is_of_year(
                    state, value
                ):
                    state.doubtful.append(parameter.name)


def _is_of_year(state: Assignment, value: Value) -> bool:
    """Whether a number behind `from` may be a year itself and not the first of several: `books from
    2011`.
    """
    last = re.match(r"\s+(?:on|onwards?|to|until|till|through)\b", state.lower[value.end :])
    said = re.search(
        r"\bfrom\s+(?:the\s+)?(?:year\s+)?\Z", state.lower[max(0, value.start - 60) : value.start]
    )
    return value.kind == "number" and said is not None and last is None


def _find_evidence(state: Assignment, value: Value) -> int:
    """Where the words for a value begin: of a time with the word that says its direction."""
    before = state.lower[: value.start].rstrip()
    if value.kind in ("date", "datetime") and (said := _TIMING.search(before)):
        return said.start()
    return len(before) - len("between") if before.endswith("between") else value.start


_TIMING = re.compile(r"\b(?:since|after|before|between|until|till|from|starting)\Z")


def _fit_directed(state: Assignment, value: Value, parameter: ToolParameter) -> Any:
    """A value behind a direction; of a day that is to be a moment its beginning, or its end where
    the day still counts: `until 5 March`.
    """
    if (value.kind, parameter.kind) != ("date", "datetime") or state.zone is None:
        return fit_value(value, parameter, is_named=False)
    counts = re.search(r"\b(?:to|until|till|through|and)\s+\Z", state.lower[: value.start])
    hour = _HOURS[1 if counts is not None and _TO & {*parameter.words} else 0]
    return datetime.fromisoformat(f"{value.value}T{hour}").replace(tzinfo=state.zone).isoformat()


def doubt_times(state: Assignment) -> None:
    """`closed after 1 March` may be meant for another field than `opened_after`, of two fields of
    days only one is meant, and what is after a day is not on it.
    """
    for parameter in state.parameters:
        if parameter.kind not in ("date", "datetime"):
            continue
        for at in state.places.get(parameter.pointer, ()):
            if state.values[at].kind in ("date", "datetime"):
                _doubt_time(state, parameter, state.values[at])


def _doubt_time(state: Assignment, parameter: ToolParameter, value: Value) -> None:
    before = state.lower[: value.start]
    own = {stem_word(word) for word in parameter.words}
    names = next((names for names in (_FROM, _TO) if names & {*parameter.words}), frozenset())
    rivals = [p for p in state.list_open() if p.kind == parameter.kind and names & {*p.words}]
    is_named = any(
        words == len(parameter.words) and _is_before(state, label, value)
        for label, words in list_labels(parameter)
    )
    event, side = _EVENT.search(before), _SIDE.search(before)
    strange = event is not None and stem_word(event[1]) not in own
    # `after` a day leaves it out, and `from` it takes it in; nothing says so of other names.
    word = side[1] if side is not None else ""
    beside = word not in ("", *parameter.words) and (not names or word != "since")
    said = _FROM_SAID if names is _FROM else _TO_SAID
    # What is due tomorrow is not due before tomorrow.
    bounds = _BOUNDING & {*parameter.words} and len(parameter.pointer) == 1
    aside = bool(bounds) and not is_named and said.search(before) is None
    doubted = (rivals and not is_named) or strange or beside or aside
    if doubted and parameter.name not in state.doubtful:
        state.doubtful.append(parameter.name)


def _is_before(state: Assignment, label: str, value: Value) -> bool:
    return re.search(rf"\b{label}{LINK.pattern}\Z", state.lower[: value.start]) is not None


_BOUNDING = frozenset("after before from since till until".split())
_SIDE = re.compile(r"\b(after|before|since)\s+\Z")
_EVENT = re.compile(
    r"\b([a-z]{2,20}ed|born|bought|built|due|made|paid|sent|sold|taken|written)\s+"
    r"(?:(?:on|or|after|before|between|from|since|starting|until|till|to)\s+){1,3}"
    r"(?:[^\s]+\s+){0,4}(?:and\s+)?\Z"
)


def _is_wanted_elsewhere(parameter: ToolParameter, state: Assignment) -> bool:
    """Whether another parameter of the kind needs the only value of it: in `move meeting 1 to
    TIME` the time is its start, and not the end that may be left out.
    """
    needing = [p for p in state.list_open() if p.required and p.kind == parameter.kind]
    values = [v for _, v in state.list_free() if is_confident(v, parameter)]
    return bool(parameter.kind and needing and not parameter.required and len(values) == 1)


def _has_direction(parameter: ToolParameter, names: Set[str], state: Assignment) -> bool:
    """Whether a parameter's name says a direction.

    A stay lasts from its arrival to its departure, and a trip leads from its departure to its
    arrival.
    """
    words = {*parameter.words}
    if parameter.kind in ("date", "datetime") and (way := _WAYS.get(parameter.words[-2:])):
        return way is names
    ends = words & {"arrival", "departure"}
    if not ends:
        return bool(names & words)
    if parameter.kind not in ("date", "datetime"):
        return ("departure" in ends) == (names is _FROM)
    both = {word for p in state.parameters if p.kind == parameter.kind for word in p.words}
    return {"arrival", "departure"} <= both and ("arrival" in ends) == (names is _FROM)


_WAYS: Mapping[tuple[str, ...], Set[str]] = {
    ("check", "in"): _FROM,
    ("check", "out"): _TO,
    ("checkin",): _FROM,
    ("checkout",): _TO,
    ("pick", "up"): _FROM,
    ("drop", "off"): _TO,
}
"""Names of what begins and ends a stay or a loan."""


def read_conversion(state: Assignment) -> None:
    """`5 km to miles` for a number, the unit that it is in, and the unit that it is wanted in."""
    amounts = [(at, v) for at, v in state.list_free() if v.kind == "number" and v.unit is not None]
    wanted = [
        unit for said in _UNIT_SAID.findall(state.lower) if (unit := UNITS.get(said)) is not None
    ]
    open_ones = state.list_open()
    numbers = [p for p in open_ones if p.is_numeric and p.required and p.unit is None]
    given = [p for p in open_ones if p.enum and _FROM & {*p.words}]
    made = [p for p in open_ones if p.enum and _TO & {*p.words}]
    if not len(amounts) == len(wanted) == len(numbers) == len(given) == len(made) == 1:
        return
    ((at, value),) = amounts
    source, target = _find_unit(given[0], value.unit), _find_unit(made[0], wanted[0])
    if source is not None and target is not None:
        state.assign(numbers[0], value.value, value.text, [at])
        state.assign(given[0], source, value.text)
        state.assign(made[0], target, wanted[0].name)


def _find_unit(parameter: ToolParameter, unit: Unit | None) -> str | None:
    found = [v for v in parameter.enum if isinstance(v, str) and UNITS.get(v.lower()) == unit]
    return found[0] if len(found) == 1 and unit is not None else None


def read_amount_currency(state: Assignment) -> None:
    """`100 EUR`: the currency of the amount goes where a currency is asked for."""
    amounts = [v for v in state.values if v.kind == "number" and v.currency not in ("", "?")]
    money = {str(v.value) for v in state.values if v.kind == "currency"}
    paired = any(str(state.arguments.get(p.name, "")) in money for p in state.parameters)
    open_ones = [
        p
        for p in state.list_open()
        if "string" in p.types
        and (p.kind == "currency" or (paired and p.kind == "" and _FROM & {*p.words}))
    ]
    sources = [p for p in open_ones if _FROM & {*p.words}] or open_ones
    if len(amounts) == 1 and len(sources) == 1:
        told = amounts[0].currency
        if not sources[0].enum or told in sources[0].enum:
            state.assign(sources[0], told, amounts[0].text)


def read_choices(state: Assignment) -> None:
    """Words of enumerations."""
    said = TaskWords(state.blank_used(state.lower), state.task)
    chosen: dict[tuple[str, ...], tuple[Any, str]] = {}
    for parameter in state.list_open():
        if not parameter.enum or parameter.items is not None:
            continue
        found = find_choice(said, parameter)
        if found is not None and _is_event(state, *found):
            continue
        if found is not None and _names_things(state, parameter, found[1]):
            if not parameter.required:
                continue
            state.doubtful.append(parameter.name)
        if found is not None:
            chosen[parameter.pointer] = found
        elif not (parameter.is_choosing or parameter.required):
            # `high and urgent tickets` are not the tickets of every priority.
            state.unread += [evidence for _, evidence in list_choices(said, parameter)]
    told = [evidence.lower() for _, evidence in chosen.values()]
    named = {
        evidence.lower(): parameter.pointer
        for parameter in state.list_open()
        if (evidence := chosen.get(parameter.pointer, (None, ""))[1])
        and told.count(evidence.lower()) > 1
        and is_beside_name(state, parameter, evidence)
    }
    for parameter in state.list_open():
        if parameter.pointer not in chosen:
            continue
        value, evidence = chosen[parameter.pointer]
        owner = named.get(evidence.lower())
        if owner not in (None, parameter.pointer):
            continue
        if told.count(evidence.lower()) == 1 or owner is not None:
            state.assign(parameter, value, evidence, _find_texts(state, evidence))
            if is_likely(value, evidence) or _is_timed(state, evidence):
                state.doubtful.append(parameter.name)
        else:
            state.ambiguous.add(parameter.pointer)
            if not parameter.required:
                state.unread.append(evidence)


def _names_things(state: Assignment, parameter: ToolParameter, evidence: str) -> bool:
    """Whether a word of an enumeration is but the task's word for what the tool is about: `list the
    vans` asks `list_vans` for all of them, and `list the vans of kind van` for some. In `the daily
    report` another word says what it is about.
    """
    things = {stem_word(word) for word in state.things}
    said = [stem_word(word) for word in split_words(state.task)]
    own = [stem_word(word) for word in split_words(evidence)]
    if not {*own} <= things or any(said.count(word) != 1 for word in own):
        return False
    following = said[said.index(own[-1]) + 1 :][:1]
    return not {*following} & things and not is_beside_name(state, parameter, evidence)


def _is_event(state: Assignment, value: Any, evidence: str) -> bool:
    """Whether a word says what happened, and no state: `opened after 1 March` is not `open`."""
    if split_words(str(value)) == split_words(evidence) or not evidence.endswith("ed"):
        return False
    pattern = rf"\b{re.escape(evidence)}\s+(?:{_WHEN})\b"
    said = re.search(pattern, state.task, re.IGNORECASE) is not None
    return said or _is_timed(state, evidence)


def _is_timed(state: Assignment, evidence: str) -> bool:
    """Whether a time stands behind a word: `placed yesterday` may be a state, or when it began."""
    behind = re.compile(rf"\b{re.escape(evidence)}\s+(?:(?:{_WHEN})\s+){{0,2}}\Z", re.IGNORECASE)
    timed = ("date", "datetime", "period", "vague")
    return evidence.endswith("ed") and any(
        value.kind in timed and behind.search(state.task[: value.start]) for value in state.values
    )


_WHEN = "after|before|between|by|from|in|last|next|on|since|this|to|today|until|with|yesterday"


def _find_texts(state: Assignment, evidence: str) -> list[int]:
    said = evidence.lower().strip("\"'`")
    return [
        at
        for at, v in state.list_free()
        if said in (str(v.value).lower(), v.text.lower())
        or (v.kind == "letter" and said.endswith(f" {v.text.lower()}"))
    ]


def read_truths(state: Assignment) -> None:
    masked = state.blank_used(state.lower)
    for parameter in state.list_open():
        if parameter.is_boolean and not parameter.is_choosing:
            found = find_truth(masked, state.task, parameter.words)
            if found is not None:
                state.assign(parameter, found[0], found[1])


def read_states(state: Assignment) -> None:
    """Other words for the one flag that is a state: `empty` for `free`."""
    said = TaskWords(state.blank_used(state.lower), state.task)
    found = [
        (parameter, state_said)
        for parameter in state.list_open()
        if parameter.is_boolean
        and not parameter.is_choosing
        and (state_said := find_state(said, parameter)) is not None
    ]
    if len(found) == 1:
        ((parameter, (value, evidence)),) = found
        state.assign(parameter, value, evidence)
        state.doubtful.append(parameter.name)


def read_single_days(state: Assignment) -> None:
    """The one day of a task for both ends of a range of days: `the events on 2026-12-01`. Whether
    its last day counts, no name says.
    """
    dates = [(at, v) for at, v in state.list_free() if v.kind == "date"]
    ends = [p for p in state.list_open() if p.kind == "date" and not p.required]
    first = [p for p in ends if _FIRST & {*p.words}]
    last = [p for p in ends if _LAST & {*p.words}]
    if not len(dates) == len(first) == len(last) == 1 or len(ends) != 2:
        return
    ((at, value),) = dates
    before = state.task[max(0, value.start - 30) : value.start]
    if _FROM_SAID.search(before) or _TO_SAID.search(before) or _BY_SAID.search(before):
        return
    for parameter in (*first, *last):
        state.assign(parameter, value.value, value.text, [at])
        state.doubtful.append(parameter.name)


def read_quantities(state: Assignment) -> None:
    """`buy two tickets` for the one required number that says how many."""
    wanted = [
        p
        for p in state.list_open()
        if p.required and p.is_numeric and p.words and p.words[-1] in _QUANTITIES
    ]
    found = [
        (at, value)
        for at, value in state.list_free()
        if value.kind == "number"
        and not (value.unit or value.currency)
        and (behind := _THINGS.match(state.lower, value.end)) is not None
        and behind[0].strip() not in STOP_WORDS
    ]
    if len(wanted) == len(found) == 1:
        ((at, value),) = found
        fitted = fit_value(value, wanted[0], is_named=True)
        if fitted is not NOTHING:
            state.assign(wanted[0], fitted, value.text, [at])
            state.doubtful.append(wanted[0].name)


def read_by_kind(state: Assignment) -> None:
    """The only value of a kind, for the only (required) parameter of that kind."""
    for confident in (True, False):
        for parameter in state.list_open():
            if parameter.items is not None or parameter.is_boolean or parameter.enum:
                continue
            found = [
                (at, value, fitted)
                for at, value in state.list_free()
                if _goes_by_kind(value, parameter, confident)
                and not _is_of_another(state, value, parameter)
                and (fitted := fit_value(value, parameter, is_named=False)) is not NOTHING
            ]
            found = _prefer_codes(found, parameter)
            if len(found) != 1:
                continue
            ((at, value, fitted),) = found
            counts = value.kind == "number" and value.unit is None
            if counts and _counts_things(state, value, parameter):
                continue
            if _is_only_taker(state, parameter, value, confident):
                degrees = _DEGREES.match(state.lower, value.end)
                end = degrees.end() if degrees and _is_temperature(parameter) else value.end
                state.assign(parameter, fitted, state.task[value.start : end], [at])
                if value.kind == "name" and not parameter.required:
                    _doubt_filter(state, parameter, value)
                elif value.kind == "name" == parameter.kind:
                    _doubt_naming(state, parameter, value)


def _is_of_another(state: Assignment, value: Value, parameter: ToolParameter) -> bool:
    """Whether a number or code stands behind the tool's word for another thing than the one whose
    id is wanted: `the owner of pet 11` says no `owner_id`.
    """
    before = _WORD_BEFORE.search(state.lower[max(0, value.start - 40) : value.start])
    if value.kind not in ("number", "code", "uuid") or before is None:
        return False
    if len(parameter.words) < 2 or parameter.words[-1] != "id":
        return False
    things = state.things - w.READING_VERBS - w.WRITING_VERBS
    said = stem_word(before[1])
    return said in map(stem_word, things) and said not in map(stem_word, parameter.words)


def _prefer_codes(
    found: list[tuple[int, Value, Any]], parameter: ToolParameter
) -> list[tuple[int, Value, Any]]:
    """Of a code and bare numbers the code, for an id that is a text: `set the price of TEA-1 to
    5.20`.
    """
    codes = [each for each in found if each[1].kind in ("code", "uuid")]
    numbers = [each for each in found if each[1].kind == "number"]
    if parameter.kind == "id" and len(codes) == 1 and len(numbers) == len(found) - 1:
        return codes
    return found


def _doubt_naming(state: Assignment, parameter: ToolParameter, value: Value) -> None:
    """`a ticket for Ada` may be one that Ada gets, and none that is called so."""
    before = state.task[max(0, value.start - 12) : value.start]
    if _FOR_SAID.search(before):
        state.doubtful.append(parameter.name)


def _doubt_filter(state: Assignment, parameter: ToolParameter, value: Value) -> None:
    """`tickets from Ada` may mean another person than their `owner`; `books by Ada` means their
    author, and `depots in Gent` those of the city.
    """
    before = state.task[max(0, value.start - 12) : value.start]
    made = parameter.kind == "person" and _MADE & {*parameter.words} and _BY_SAID.search(before)
    placed = parameter.kind == "place" and _AT_SAID.search(before)
    if not (made or placed):
        state.doubtful.append(parameter.name)


_MEASURING = frozenset(
    "above after at before below between from in over since than under until within".split()
)
"""Words before a number that make it a year or an amount: `books from 1815`."""


def _counts_things(state: Assignment, value: Value, parameter: ToolParameter) -> bool:
    """Whether a number is one of things that are not the parameter's: `show me 3 tickets`, but not
    `when was batch 17 brewed` for a "batch number", nor `when is invoice 771 due` for a tool that
    gets an invoice.
    """
    before = _WORD_BEFORE.search(state.lower[max(0, value.start - 40) : value.start])
    things = state.things - w.READING_VERBS - w.WRITING_VERBS
    own = {*parameter.words, *split_words(parameter.description), *things} - STOP_WORDS
    if before is not None and stem_word(before[1]) in {stem_word(word) for word in own}:
        return False
    if before is not None and (before[1] in _MEASURING or _is_of_several(state, value, parameter)):
        return True
    behind = re.match(r"\s+([^\W\d_]+)", state.lower[value.end :])
    if behind is None:
        return False
    word = behind[1]
    if _is_temperature(parameter) and _DEGREES.match(state.lower, value.end):
        return False
    if counts_several(parameter, word):
        return True
    known = word in STOP_WORDS | w.POLITE | {"because", "due"} or word.rstrip("s") in {
        x.rstrip("s") for x in parameter.words
    }
    return not known


def _is_of_several(state: Assignment, value: Value, parameter: ToolParameter) -> bool:
    """Whether a number tells which of several things are meant: `fines of 120` are no fine 120."""
    said = _find_owner(state, value)
    if stem_word(said) == said or not said.endswith("s"):
        return False
    things = state.things - w.READING_VERBS
    own = {*parameter.words} if len(parameter.words) > 1 else things
    return stem_word(said) in {stem_word(word) for word in own}


def _find_owner(state: Assignment, value: Value) -> str:
    """The word that a value belongs to: `bonus` of `a bonus of 1500`; "" for none."""
    said = re.search(r"\b([a-z]+)\s+of\s+\Z", state.lower[max(0, value.start - 60) : value.start])
    return said[1] if said is not None else ""


def _is_only_taker(
    state: Assignment, parameter: ToolParameter, value: Value, confident: bool
) -> bool:
    takers = [
        p
        for p in state.list_open()
        if p.items is None
        and not p.is_boolean
        and not p.enum
        and _goes_by_kind(value, p, confident)
        and fit_value(value, p, is_named=False) is not NOTHING
    ]
    required = [p for p in takers if p.required]
    best = required or takers
    amounts = [p for p in best if p.is_numeric and not p.is_identifying]
    if value.kind == "number" and len(amounts) == 1 and _is_amount(state, value, amounts[0]):
        best = amounts
    exact = [p for p in best if p.kind == value.kind] or best
    return len(exact) == 1 and exact[0].pointer == parameter.pointer


def _is_amount(state: Assignment, value: Value, parameter: ToolParameter) -> bool:
    """Whether a number is how much of what the tool is about (`a bonus of 1500`), or how warm."""
    if _is_temperature(parameter) and _DEGREES.match(state.lower, value.end):
        return True
    return _find_owner(state, value) in state.things - w.READING_VERBS - w.WRITING_VERBS


def _is_temperature(parameter: ToolParameter) -> bool:
    return parameter.unit is not None and parameter.unit.measure == "temperature"


_DEGREES = re.compile(r"\s+degrees?\b")


def read_years(state: Assignment) -> None:
    """A year for the one argument that takes one: `the payslips for 2026`."""
    wanted = [p for p in state.list_open() if p.words[-1:] == ("year",) and not p.is_boolean]
    found = [
        (at, value)
        for at, value in state.list_free()
        if value.kind == "number"
        and re.fullmatch(r"(?:19|20)\d\d", value.text)
        and _OF_YEAR.search(state.lower[max(0, value.start - 60) : value.start])
    ]
    if len(wanted) != 1 or len(found) != 1 or len(wanted[0].words) != 1:
        return
    ((at, value),) = found
    fitted = fit_value(value, wanted[0], is_named=True)
    if fitted is not NOTHING:
        state.assign(wanted[0], fitted, value.text, [at])


_OF_YEAR = re.compile(r"\b(?:for|from|in|of)\s+(?:the\s+)?(?:year\s+)?\Z")


def _goes_by_kind(value: Value, parameter: ToolParameter, confident: bool) -> bool:
    """Whether a value may go into a parameter that the task does not name."""
    if value.kind == "number":
        if parameter.is_counting or parameter.is_paging:
            return False
        if parameter.is_numeric:
            same = value.unit is not None and parameter.unit is not None
            return same if confident else parameter.required
        return not confident and parameter.required and parameter.kind == "id"
    if confident:
        loose = value.kind == "quoted" and parameter.kind in ("place", "person")
        if parameter.kind in ("", "id", "name") or (loose and not parameter.required):
            return False
        return is_confident(value, parameter)
    if parameter.kind in ("", "name", "place", "person") and not parameter.required:
        return False
    return is_confident(value, parameter)
