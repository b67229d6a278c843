"""Reading a tool's arguments out of a task in words, by rules and without a model.

A value goes into an argument where the task names the argument beside it, where a preposition or an
enumeration says so, or where just one value and one argument are of the same kind. What has two
readings is left out: required arguments are `missing` then, values are `unused`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.tasks.model import Reading, ValueOrigin
from orchestrator.tasks.reading.choices import find_choice, find_truth
from orchestrator.tasks.reading.fitting import NOTHING, fit_value, is_confident
from orchestrator.tasks.reading.parameters import Parameter, list_parameters
from orchestrator.tasks.reading.values import Value, scan_values
from orchestrator.tasks.routing import words as w
from registry.search.words import STOP_WORDS, split_words
from sandbox.schemas.coercion import coerce_arguments
from sandbox.schemas.validator import get_checker

MAX_TASK = 4_000
MAX_UNUSED = 20
_LINK = re.compile(
    r"(?:\s*(?:=|:|#)\s*|\s+)(?:(?:is|of|to|number|no\.?|named|called|id|code|equals|as|the|at|in|by|"
    r"for|on|with)\s+){0,2}#?\s*",
    re.IGNORECASE,
)
_EXPLICIT = re.compile(
    r"\s*(?:=|:)\s*(?P<a>[\w.@+-]{1,100})|\s+(?:named|called)\s+(?P<b>[\w.@+-]{1,100})"
)
_FROM = frozenset("from source origin departure start since after begin base beginning".split())
_TO = frozenset("to target destination arrival end until till before quote recipient into".split())
_FROM_SAID = re.compile(r"\b(?:from|since|after|starting|between)\s+(?:the\s+|on\s+)?\Z", re.I)
_TO_SAID = re.compile(r"\b(?:to|until|till|before|through|into|and)\s+(?:the\s+)?\Z", re.I)
_IN_SAID = re.compile(r"\b(?:in|into|as)\s+\Z", re.I)
_PLACED = re.compile(
    r"\b(?:in|at|for|near|around|of)\s+(?P<place>[a-zäöüßéèñøåæ][\w'-]{2,40})(?=\s*(?:$|[.,;?!]|\b(?:on|for|at|today|"
    r"tomorrow|with|please|now|in|and)\b))"
)
_SOUGHT = re.compile(
    r"\b(?:search(?:\s+\w+){0,2}?\s+for|look(?:\s+\w+){0,2}?\s+for|find|about|containing|matching|"
    r"mentioning|query|google)\s+(?P<text>[^.,;?!\n\0]{2,200})",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\b(?:first|top|last|latest|newest|at\s+most|up\s+to|max(?:imum)?|limit(?:\s+of|\s+to)?|only|"
    r"no\s+more\s+than|oldest)\s+\Z",
    re.IGNORECASE,
)
_ROW = re.compile(
    r"\s*(?:=|:)?\s*(?P<row>[\w-]{1,60}(?:\s*,\s*(?!and\b)[\w-]{1,60}){1,20}"
    r"(?:,?\s+and\s+[\w-]{1,60})?)"
)
_RESULTS = re.compile(r"\A\s+(?:\w+\s+)?(?:results?|items?|entries|rows|hits|matches)\b", re.I)
_GENERIC = frozenset(
    "id number name code no key ref reference value type data text list item".split()
)


def read_arguments(
    task: str,
    tool_schema: Mapping[str, Any],
    *,
    given: Mapping[str, Any] | None = None,
    memory: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    about: str = "",
) -> Reading:
    """The arguments of a tool as a task says them.

    `given` are those that the caller named, `memory` values of earlier exchanges by argument name,
    `defaults` what a person set for arguments. Days such as `tomorrow` are read with `now` alone.
    `about` is text on the tool (its server, title, description): names in it are no values. Of a
    task longer than 4,000 characters nothing is read.
    """
    if len(task) > MAX_TASK:
        task = ""
    reader = _Reader(task, list_parameters(tool_schema), scan_values(task, now), given or {})
    reader.read()
    reader.fill_in(memory or {}, defaults or {})
    return reader.build_reading(tool_schema, about)


class _Reader:
    """The state of one reading: what went where, and which words are used up."""

    def __init__(
        self,
        task: str,
        parameters: Sequence[Parameter],
        values: Sequence[Value],
        given: Mapping[str, Any],
    ) -> None:
        self._task, self._lower = task, task.lower()
        if len(self._lower) != len(task):
            self._lower = task  # letters whose lower case is longer would shift every place
        self._parameters, self._values = parameters, values
        self._arguments: dict[str, Any] = {**given}
        self._origins: dict[str, ValueOrigin] = dict.fromkeys(given, "given")
        self._evidence: dict[str, str] = {}
        self._done: set[tuple[str, ...]] = {p.pointer for p in parameters if p.pointer[0] in given}
        self._ambiguous: set[tuple[str, ...]] = set()
        self._used: set[int] = set()
        self._doubtful: list[str] = []

    def read(self) -> None:
        """Every rule, the plainest first."""
        self._read_named()
        self._read_counts()
        self._read_coordinates()
        self._read_directions()
        self._read_choices()
        self._read_truths()
        self._read_lists()
        self._read_word_lists()
        self._read_by_kind()
        self._read_sought()
        self._read_lower_places()

    def _open(self) -> list[Parameter]:
        return [p for p in self._parameters if p.pointer not in self._done | self._ambiguous]

    def _free(self) -> list[tuple[int, Value]]:
        return [(at, v) for at, v in enumerate(self._values) if at not in self._used]

    def _assign(
        self,
        parameter: Parameter,
        value: Any,
        evidence: str,
        used: Iterable[int] = (),
        origin: ValueOrigin = "task",
    ) -> None:
        place = self._arguments
        for name in parameter.pointer[:-1]:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                return
            place = inner
        place[parameter.pointer[-1]] = value
        self._done.add(parameter.pointer)
        self._used.update(used)
        self._origins.setdefault(parameter.name, origin)
        self._evidence.setdefault(parameter.name, evidence[:200])

    def _read_named(self) -> None:
        """Values beside the name of a parameter: `berth 12`, `limit = 5`, `zone named "x"`."""
        claims: dict[tuple[str, ...], list[tuple[int, int, Any, str]]] = {}
        for parameter in self._open():
            if parameter.is_boolean or parameter.enum:
                continue
            found = list(self._find_named(parameter))
            best = max((words for words, *_ in found), default=0)
            claims[parameter.pointer] = [each for each in found if each[0] == best]
        owners: dict[int, list[tuple[int, tuple[str, ...]]]] = {}
        for pointer, found in claims.items():
            for words, at, *_ in found:
                owners.setdefault(at, []).append((words, pointer))
        for parameter in self._open():
            mine = [
                each
                for each in claims.get(parameter.pointer, [])
                if not any(
                    words >= each[0] and pointer != parameter.pointer
                    for words, pointer in owners[each[1]]
                )
            ]
            distinct = {at: (value, evidence) for _, at, value, evidence in mine}
            if len(distinct) == 1:
                ((at, (value, evidence)),) = distinct.items()
                self._assign(parameter, value, evidence, [at] if at >= 0 else [])
            elif distinct:
                self._ambiguous.add(parameter.pointer)
        self._read_explicit()

    def _find_named(self, parameter: Parameter) -> Iterator[tuple[int, int, Any, str]]:
        """(words of the label, number of the value, value, evidence) of each mention."""
        for label, size in _list_labels(parameter):
            for found in re.finditer(rf"\b{label}s?\b", self._lower):
                at = self._find_value_at(found.end())
                if at is None:
                    continue
                value = fit_value(self._values[at], parameter, is_named=True)
                if value is not NOTHING:
                    yield size, at, value, self._task[found.start() : self._values[at].end]
            for at, said in enumerate(self._values):
                behind = re.compile(rf"\s+{label}s?\b").match(self._lower, said.end)
                if said.kind != "number" or behind is None or not parameter.is_numeric:
                    continue
                value = fit_value(said, parameter, is_named=True)
                if value is not NOTHING:
                    yield size, at, value, self._task[said.start : behind.end()]

    def _find_value_at(self, end: int) -> int | None:
        """The value that begins right behind a label, after words that link them."""
        link = _LINK.match(self._task, end)
        starts = {end, link.end() if link else end}
        for at, value in self._values_by_start():
            if value.start in starts or (value.start - 1 in starts and value.kind == "quoted"):
                return at
            hashed = value.kind == "code" and value.text.startswith("#")
            if hashed and value.start + 1 in starts:
                return at
        return None

    def _values_by_start(self) -> list[tuple[int, Value]]:
        return self._free()

    def _read_explicit(self) -> None:
        """`name=frontend`, `zone named frontend`: a word that is no value by its form."""
        for parameter in self._open():
            if "string" not in parameter.types or parameter.enum or parameter.is_choosing:
                continue
            if parameter.kind not in ("", "name", "id", "place", "person", "text"):
                continue
            found = {
                said: match
                for label, _ in _list_labels(parameter)
                for mention in re.finditer(rf"\b{label}\b", self._lower)
                if (match := _EXPLICIT.match(self._task, mention.end()))
                and (said := match["a"] or match["b"] or "")
            }
            if len(found) == 1:
                ((said, match),) = found.items()
                self._assign(parameter, said.rstrip("."), match.group().strip(),
                             self._list_covered(match.start(), match.end()))  # fmt: skip

    def _list_covered(self, start: int, end: int) -> list[int]:
        return [at for at, v in enumerate(self._values) if start <= v.start and v.end <= end]

    def _read_counts(self) -> None:
        """`first 5`, `top 10`, `20 results` for the parameter that limits the results."""
        counting = [p for p in self._open() if p.is_counting]
        for at, value in self._free():
            if len(counting) != 1 or value.kind != "number" or value.unit or value.currency:
                continue
            before = _COUNTED.search(self._task[max(0, value.start - 20) : value.start])
            if before or _RESULTS.match(self._task[value.end : value.end + 60]):
                fitted = fit_value(value, counting[0], is_named=True)
                if fitted is not NOTHING and counting[0].pointer not in self._done:
                    self._assign(counting[0], fitted, value.text, [at])

    def _read_coordinates(self) -> None:
        pairs = [(at, v) for at, v in self._free() if v.kind == "coordinates"]
        latitude = [p for p in self._open() if p.kind == "latitude" and p.is_numeric]
        longitude = [p for p in self._open() if p.kind == "longitude" and p.is_numeric]
        if len(pairs) == len(latitude) == len(longitude) == 1:
            ((at, value),) = pairs
            self._assign(latitude[0], value.value[0], value.text, [at])
            self._assign(longitude[0], value.value[1], value.text, [at])

    def _read_directions(self) -> None:
        """`from A to B`, `since DATE`, `to EUR` for parameters whose names say the direction."""
        for said, names in ((_FROM_SAID, _FROM), (_TO_SAID, _TO), (_IN_SAID, _TO)):
            for parameter in self._open():
                if not names & {*parameter.words} or parameter.is_boolean:
                    continue
                found = [
                    (at, value, fitted)
                    for at, value in self._free()
                    if said.search(self._task[max(0, value.start - 30) : value.start])
                    and (fitted := fit_value(value, parameter, is_named=False)) is not NOTHING
                    and (is_confident(value, parameter) or said is not _IN_SAID)
                ]
                if len(found) == 1:
                    ((at, value, fitted),) = found
                    self._assign(parameter, fitted, value.text, [at])
        self._read_amount_currency()

    def _read_amount_currency(self) -> None:
        """`100 EUR`: the currency of the amount goes where a currency is asked for."""
        amounts = [v for v in self._values if v.kind == "number" and v.currency not in ("", "?")]
        money = {str(v.value) for v in self._values if v.kind == "currency"}
        paired = any(str(self._arguments.get(p.name, "")) in money for p in self._parameters)
        open_ones = [
            p
            for p in self._open()
            if "string" in p.types
            and (p.kind == "currency" or (paired and p.kind == "" and _FROM & {*p.words}))
        ]
        sources = [p for p in open_ones if _FROM & {*p.words}] or open_ones
        if len(amounts) == 1 and len(sources) == 1:
            told = amounts[0].currency
            if not sources[0].enum or told in sources[0].enum:
                self._assign(sources[0], told, amounts[0].text)

    def _read_choices(self) -> None:
        """Words of enumerations."""
        masked = self._mask()
        chosen: dict[tuple[str, ...], tuple[Any, str]] = {}
        for parameter in self._open():
            inner = parameter.items if parameter.items is not None else parameter
            if not inner.enum or parameter.items is not None:
                continue
            found = find_choice(masked, self._task, inner)
            if found is not None:
                chosen[parameter.pointer] = found
        said = [evidence.lower() for _, evidence in chosen.values()]
        for parameter in self._open():
            if parameter.pointer not in chosen:
                continue
            value, evidence = chosen[parameter.pointer]
            if said.count(evidence.lower()) == 1:
                self._assign(parameter, value, evidence, self._find_texts(evidence))
            else:
                self._ambiguous.add(parameter.pointer)

    def _find_texts(self, evidence: str) -> list[int]:
        said = evidence.lower().strip("\"'`")
        return [at for at, v in self._free() if str(v.value).lower() == said]

    def _mask(self) -> str:
        """The task without the words of its first verb and of values that are used."""
        return self._blank_used(self._lower)

    def _blank_used(self, text: str) -> str:
        for at in self._used:
            value = self._values[at]
            text = text[: value.start] + "\0" * (value.end - value.start) + text[value.end :]
        return text

    def _read_truths(self) -> None:
        masked = self._mask()
        for parameter in self._open():
            if parameter.is_boolean and not parameter.is_choosing:
                found = find_truth(masked, self._task, parameter.words)
                if found is not None:
                    self._assign(parameter, found[0], found[1])

    def _read_lists(self) -> None:
        """Every value of the kind that the items of the one list take."""
        lists = [p for p in self._open() if p.items is not None and not p.is_choosing]
        for parameter in lists:
            items = parameter.items
            assert items is not None
            if items.enum:
                found = find_choice(self._mask(), self._task, items, many=True)
                if found is not None and sum(bool(p.items and p.items.enum) for p in lists) == 1:
                    self._assign(parameter, found[0], found[1])
                continue
            named = self._find_listed(parameter, items)
            if named:
                values = [fitted for _, fitted in named]
                evidence = ", ".join(self._values[at].text for at, _ in named)
                self._assign(parameter, values, evidence, [at for at, _ in named])

    def _read_word_lists(self) -> None:
        """`tags red, blue and green`: bare words in a row behind the name of a list."""
        for parameter in self._open():
            if parameter.items is None or parameter.items.enum or parameter.is_choosing:
                continue
            if "string" not in parameter.items.types or parameter.items.kind not in ("", "name"):
                continue
            found = [
                row
                for label, _ in _list_labels(parameter)
                for mention in re.finditer(rf"\b{label}\b", self._lower)
                if (row := _ROW.match(self._task, mention.end()))
            ]
            if len(found) == 1:
                words = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found[0]["row"].strip())
                covered = self._list_covered(*found[0].span("row"))
                self._assign(parameter, words, found[0].group().strip(), covered)

    def _find_listed(self, parameter: Parameter, items: Parameter) -> list[tuple[int, Any]]:
        """Values in a row behind the list's name, or all of the kind where no other parameter takes
        that kind.
        """
        for label, _ in _list_labels(parameter):
            for mention in re.finditer(rf"\b{label}s?\b", self._lower):
                row = self._follow_row(mention.end(), items)
                if row:
                    return row
        rivals = [
            p for p in self._open()
            if p.pointer != parameter.pointer and (p.items or p).kind == items.kind
        ]  # fmt: skip
        if rivals or items.kind in ("", "id", "name", "text"):
            return []
        return [
            (at, fitted)
            for at, value in self._free()
            if is_confident(value, items)
            and (fitted := fit_value(value, items, is_named=False)) is not NOTHING
        ]

    def _follow_row(self, end: int, items: Parameter) -> list[tuple[int, Any]]:
        row: list[tuple[int, Any]] = []
        link = _LINK.match(self._task, end)
        place = link.end() if link else end
        joint = re.compile(r"\s*(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+|&)\s*")
        for at, value in self._free():
            if value.start != place:
                continue
            fitted = fit_value(value, items, is_named=True)
            if fitted is NOTHING:
                break
            row.append((at, fitted))
            following = joint.match(self._task, value.end)
            if following is None:
                break
            place = following.end()
        return row

    def _read_by_kind(self) -> None:
        """The only value of a kind, for the only (required) parameter of that kind."""
        for confident in (True, False):
            for parameter in self._open():
                if parameter.items is not None or parameter.is_boolean or parameter.enum:
                    continue
                found = [
                    (at, value, fitted)
                    for at, value in self._free()
                    if _goes_by_kind(value, parameter, confident)
                    and (fitted := fit_value(value, parameter, is_named=False)) is not NOTHING
                ]
                if len(found) != 1:
                    continue
                ((at, value, fitted),) = found
                if self._is_only_taker(parameter, value, confident):
                    self._assign(parameter, fitted, value.text, [at])

    def _is_only_taker(self, parameter: Parameter, value: Value, confident: bool) -> bool:
        takers = [
            p
            for p in self._open()
            if p.items is None
            and not p.is_boolean
            and not p.enum
            and _goes_by_kind(value, p, confident)
            and fit_value(value, p, is_named=False) is not NOTHING
        ]
        required = [p for p in takers if p.required]
        best = required or takers
        exact = [p for p in best if p.kind == value.kind] or best
        return len(exact) == 1 and exact[0].pointer == parameter.pointer

    def _read_sought(self) -> None:
        """What is searched for, for the one required parameter that is a text to search by."""
        wanted = [p for p in self._open() if p.kind == "text" and p.required and not p.enum]
        found = [*_SOUGHT.finditer(self._mask() if self._lower else "")]
        if len(wanted) != 1 or len(found) != 1:
            return
        start, end = found[0].span("text")
        text = self._task[start:end].strip()
        text = re.sub(r"^(?:the|a|an|all|any)\s+", "", text)
        if text and self._arguments_are_elsewhere(start, end):
            self._assign(wanted[0], text, found[0].group(), self._list_covered(start, end))
            self._doubtful.append(wanted[0].name)

    def _arguments_are_elsewhere(self, start: int, end: int) -> bool:
        return not any(
            at in self._used and start <= value.start < end for at, value in enumerate(self._values)
        )

    def _read_lower_places(self) -> None:
        """A place that is written without a capital: `weather in bergen`."""
        wanted = [p for p in self._open() if p.kind == "place" and p.required and not p.enum]
        found = [
            match
            for match in _PLACED.finditer(self._blank_used(self._task))
            if match["place"] not in STOP_WORDS | w.READING_VERBS | w.DEICTIC
        ]
        if len(wanted) == 1 and len(found) == 1 and found[0]["place"] not in _GENERAL_WORDS:
            self._assign(wanted[0], found[0]["place"], found[0].group())
            self._doubtful.append(wanted[0].name)

    def fill_in(self, memory: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        """What the task does not say: from defaults of a person, memory, the schema's default, and
        last its example. Only required arguments are filled in.
        """
        for parameter in self._parameters:
            if parameter.pointer in self._done or not parameter.required:
                continue
            for value, origin in self._list_others(parameter, memory, defaults):
                if get_checker({**_without_place(parameter.schema)}).find_problem(value) is None:
                    self._assign(parameter, value, "", (), origin)
                    break

    def _list_others(
        self, parameter: Parameter, memory: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> Iterator[tuple[Any, ValueOrigin]]:
        name, schema = parameter.name, parameter.schema
        if name in defaults:
            yield defaults[name], "default"
        if name in memory and not parameter.is_choosing:
            yield memory[name], "memory"
        if "default" in schema:
            yield schema["default"], "default"
        if len(parameter.enum) == 1:
            yield parameter.enum[0], "default"
        if parameter.is_choosing or parameter.pointer in self._ambiguous:
            return
        examples = schema.get("examples")
        if isinstance(examples, list) and examples:
            yield examples[0], "example"
        elif "example" in schema:
            yield schema["example"], "example"

    def build_reading(self, schema: Mapping[str, Any], about: str) -> Reading:
        missing = tuple(
            p.name for p in self._parameters if p.required and p.pointer not in self._done
        )
        coerced = coerce_arguments(schema, self._arguments).arguments
        checked = {**schema, "required": []} if missing else schema
        wrong = None if missing and self._has_nested(missing) else get_checker(
            checked
        ).find_problem(coerced)  # fmt: skip
        return Reading(
            arguments=coerced,
            origins=self._origins,
            evidence=self._evidence,
            missing=missing,
            unused=tuple(self._list_unused(about))[:MAX_UNUSED],
            problem=f"{wrong.where or '/'}: {wrong.reason}" if wrong else "",
            doubtful=tuple(self._doubtful),
        )

    def _has_nested(self, missing: Sequence[str]) -> bool:
        pointers = {p.name: p.pointer for p in self._parameters}
        return any(len(pointers[name]) > 1 for name in missing)

    def _list_unused(self, about: str) -> Iterator[str]:
        known = {*split_words(about)}
        for _, value in self._free():
            if value.kind == "name" and {*split_words(value.text)} <= known:
                continue
            yield value.text


_GENERAL_WORDS = frozenset(
    "general total order full detail details summary short particular use advance celsius "
    "fahrenheit "
    "english german french spanish euros dollars kilometres kilometers miles metres meters today "
    "tomorrow tonight yesterday week month year example instance free sale rent me us them there "
    "here home town public private time progress".split()
)


def _list_labels(parameter: Parameter) -> list[tuple[str, int]]:
    """The ways to name a parameter, as patterns, with how many words each has: `berth id`,
    `berth`; `name` of `body.name`.
    """
    words = [*parameter.words]
    labels = [words]
    if len(words) > 1 and words[-1] in _GENERIC:
        labels.append(words[:-1])
    if len(words) > 1 and words[0] in ("max", "min", "is", "has", "with", "filter", "by", "the"):
        labels.append(words[1:])
    plain = [label for label in labels if label and all(len(word) < 64 for word in label)]
    short = [label for label in plain if len(" ".join(label)) > 1]
    made = {r"[\s_-]?".join(map(re.escape, label)): len(label) for label in short}
    return sorted(made.items(), key=lambda pair: -pair[1])


def _goes_by_kind(value: Value, parameter: Parameter, confident: bool) -> bool:
    """Whether a value may go into a parameter that the task does not name."""
    if value.kind == "number":
        if parameter.is_counting:
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


def _without_place(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in schema.items() if not key.startswith("x-")}
