"""Words of a task that are a value though nothing in their form says so, and may be none."""

from __future__ import annotations

import re

from orchestrator.tasks.reading.assignment import Assignment
from orchestrator.tasks.reading.fitting import NOTHING, fit_value
from orchestrator.tasks.reading.named import list_labels
from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS

_PLACED = re.compile(
    r"\b(?:in|at|for|near|around|of)\s+(?P<place>[a-zäöüßéèñøåæ][\w'-]{2,40})(?=\s*(?:$|[.,;?!]|\b(?:on|for|at|today|"
    r"tomorrow|with|please|now|in|and)\b))"
)
_SOUGHT = re.compile(
    r"\b(?:search(?:\s+\w+){0,2}?\s+for|look(?:\s+\w+){0,2}?\s+for|find|about|containing|matching|"
    r"mentioning|query|google)\s+(?P<text>[^.,;?!\n\0]{2,200})",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"\b(?:search(?:\s+\w+){1,2}?\s+for|about|containing|matching|mentioning|named|called)\s+"
    r"(?P<text>[^.,;?!\n\0]{2,200})",
    re.IGNORECASE,
)
_GENERAL_WORDS = frozenset(
    "advance celsius detail details dollars english euros example fahrenheit free french full "
    "general german here home instance kilometers kilometres me meters metres miles month order "
    "particular private progress public rent sale short spanish summary them there time today "
    "tomorrow tonight total town us use week year yesterday".split()
)
"""Words behind a preposition that are no place."""


_LAST_WORD = re.compile(r"\s+(?P<word>[a-z][\w-]{1,60})\s*(?=$|[.,;?!])")
_WORD_BEHIND = re.compile(
    r"\s+(?P<word>[a-z][\w-]{1,60})(?=\s*(?:$|[.,;?!])|\s+(?:at|for|from|in|of|on|to|with)\b)"
)
_LEADING = re.compile(r"\b(?:the|of|in|into|at|for|from|on|by|to)\s+\Z", re.IGNORECASE)
_WORD_KINDS = frozenset({"", "name", "id", "place", "person"})


def read_last_words(state: Assignment) -> None:
    """A plain word behind a parameter's name where a clause ends: `of the project lantern`; behind
    that of a required one also before a preposition.
    """
    for parameter in state.list_open():
        if "string" not in parameter.types or parameter.enum or parameter.is_choosing:
            continue
        if parameter.kind not in _WORD_KINDS:
            continue
        behind = _WORD_BEHIND if parameter.required else _LAST_WORD
        found = {
            match["word"]: match
            for label, _ in list_labels(parameter)
            for mention in state.find_mentions(label)
            if _LEADING.search(state.task[max(0, mention.start() - 8) : mention.start()])
            and (match := behind.match(state.task, mention.end()))
            and match["word"] not in STOP_WORDS | w.READING_VERBS | w.DEICTIC | _GENERAL_WORDS
        }
        if len(found) == 1:
            ((word, match),) = found.items()
            covered = state.list_covered(match.start(), match.end())
            state.assign(parameter, word, match.group().strip(), covered)
            state.doubtful.append(parameter.name)


def read_written(state: Assignment) -> None:
    """The one text that a write needs, at the end of a task: `a note with the text buy milk`."""
    for parameter in _list_written(state):
        found = [
            match
            for label, _ in list_labels(parameter)
            for match in re.finditer(
                rf"\bwith\s+(?:the\s+|a\s+)?{label}\s+(?P<text>[^\s\"'][^,;:\n\"]{{0,300}})\Z",
                state.task,
                re.IGNORECASE,
            )
        ]
        if len(found) == 1 and _is_unused_span(state, *found[0].span("text")):
            start, end = found[0].span("text")
            text = found[0]["text"].strip().removesuffix(".")
            state.assign(parameter, text, text, state.list_covered(start, end))
            state.doubtful.append(parameter.name)


def read_fields(state: Assignment) -> None:
    """Fields that a write takes by their names, each with what it becomes: `a flag with key
    dark-mode and name Dark mode`. What may be two fields is neither.
    """
    wanted = [
        (p, label)
        for p in state.list_open()
        if (p.required or len(p.pointer) > 1) and "string" in p.types and p.kind in _WORD_KINDS
        if not (p.enum or p.is_choosing or p.items)
        for label, _ in list_labels(p)
    ]
    found = _FIELDS.search(state.task)
    if not wanted or found is None:
        return
    said: dict[tuple[str, ...], tuple[ToolParameter, re.Match[str], int]] = {}
    start = found.start("fields")
    for part in _NEXT_FIELD.split(found["fields"]):
        at = state.task.index(part, start)
        start = at + len(part)
        owners = {
            p.pointer: (p, match, at)
            for p, label in wanted
            if (match := re.match(rf"{label}(?:\s*[=:]\s*|\s+)(?P<text>\S.*)", part, re.I))
            and not (p.kind == "id" and " " in match["text"].strip())
        }
        if len(owners) == 1 and not said.keys() & owners.keys():
            said |= owners
    for parameter, match, at in said.values():
        text = match["text"].strip().strip("\"'`").removesuffix(".")
        span = at + match.start("text"), at + match.end("text")
        if text and _is_unused_span(state, *span):
            state.assign(parameter, text, match.group(), state.list_covered(*span))
            state.doubtful.append(parameter.name)


_FIELDS = re.compile(r"\bwith\s+(?:the\s+|an?\s+)?(?P<fields>[^;:\n]{1,500})\Z", re.IGNORECASE)
_NEXT_FIELD = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)


def read_reasons(state: Assignment) -> None:
    """What stands behind `because`, for the one reason that a write needs: `reject report 3 because
    two receipts are missing`.
    """
    wanted = [p for p in state.list_open() if p.required and p.words[-1:] == ("reason",)]
    found = [*_BECAUSE.finditer(state.task)]
    if len(wanted) != 1 or len(found) != 1 or wanted[0].enum:
        return
    start, end = found[0].span("text")
    if "string" in wanted[0].types and _is_unused_span(state, start, end):
        text = found[0]["text"].strip().removesuffix(".")
        state.assign(wanted[0], text, found[0].group(), state.list_covered(start, end))
        state.doubtful.append(wanted[0].name)


_BECAUSE = re.compile(r"\b(?:because|due\s+to)\s+(?P<text>[^\s;\n][^;\n]{0,500})\Z", re.IGNORECASE)


def _list_written(state: Assignment) -> list[ToolParameter]:
    """The one open parameter that is a text to write and has to be given, else none."""
    wanted = [
        p
        for p in state.list_open()
        if p.required and p.words[-1:] and p.words[-1] in _WRITTEN and "string" in p.types
    ]
    is_free = len(wanted) == 1 and not (wanted[0].enum or wanted[0].is_choosing)
    return wanted if is_free else []


def read_sought(state: Assignment) -> None:
    """What is searched for, for the one required parameter that is a text to search by. One that
    may be left out takes what a thing is about: `tickets about printers`, not `about the tickets`.
    """
    texts = [p for p in state.list_open() if p.kind == "text" and not p.enum]
    needed = [p for p in texts if p.required]
    wanted = needed or [p for p in texts if len(p.pointer) == 1 and not p.is_choosing]
    pattern = _SOUGHT if needed else _ABOUT
    found = [*pattern.finditer(state.blank_used(state.lower) if state.lower else "")]
    if len(wanted) != 1 or len(found) != 1:
        return
    start, end = found[0].span("text")
    text = state.task[start:end].strip()
    text = re.sub(r"^(?:the|a|an|all|any)\s+", "", text)
    if not needed and {*text.lower().split()} & {*state.things, *w.DEICTIC}:
        return
    if text and _is_unused_span(state, start, end):
        state.assign(wanted[0], text, found[0].group(), state.list_covered(start, end))
        state.doubtful.append(wanted[0].name)


def read_behind_colon(state: Assignment) -> None:
    """What stands behind the colon of a task, for the one text that a write needs: `comment on
    APP-12: fixed in build 77`.
    """
    wanted = _list_written(state)
    found = [*_BEHIND_COLON.finditer(state.task)]
    if not wanted or len(found) != 1:
        return
    start, end = found[0].span("text")
    if _is_unused_span(state, start, end):
        (parameter,), text = wanted, state.task[start:end].strip().strip("\"'")
        state.assign(parameter, text, found[0]["text"], state.list_covered(start, end))
        state.doubtful.append(parameter.name)


_WRITTEN = frozenset("text message comment note body content description".split())
_BEHIND_COLON = re.compile(r":\s+(?P<text>[^\s:][^:\n]{0,2000})\Z")


def _is_unused_span(state: Assignment, start: int, end: int) -> bool:
    return not any(
        at in state.used and start <= value.start < end for at, value in enumerate(state.values)
    )


def read_sole_name(state: Assignment) -> None:
    """The one name of a task for the one parameter that is a name and that nothing else fills. What
    is quoted beside it is the likelier name.
    """
    wanted = [p for p in state.list_open() if p.kind == "name" and not p.enum]
    found = [(at, value) for at, value in state.list_free() if value.kind == "name"]
    quoted = any(value.kind == "quoted" for _, value in state.list_free())
    if len(wanted) != 1 or len(found) != 1 or wanted[0].is_choosing or quoted:
        return
    ((at, value),) = found
    fitted = fit_value(value, wanted[0], is_named=False)
    if fitted is not NOTHING:
        state.assign(wanted[0], fitted, value.text, [at])
        state.doubtful.append(wanted[0].name)


def read_lower_places(state: Assignment) -> None:
    """A place that is written without a capital, which has to be shown: `weather in bergen`."""
    places = [p for p in state.list_open() if p.kind == "place" and not p.enum]
    wanted = [p for p in places if p.required] or [p for p in places if not p.is_choosing]
    found = [
        match
        for match in _PLACED.finditer(state.blank_used(state.task))
        if match["place"] not in STOP_WORDS | w.READING_VERBS | w.DEICTIC
    ]
    if len(wanted) == 1 and len(found) == 1 and found[0]["place"] not in _GENERAL_WORDS:
        state.assign(wanted[0], found[0]["place"], found[0].group())
        state.doubtful.append(wanted[0].name)
