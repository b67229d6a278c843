"""The state of one reading: what went into which argument, and which words are used up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import tzinfo
from itertools import islice
from typing import Any

from orchestrator.tasks.model import ValueOrigin
from orchestrator.tasks.reading.fitting import NOTHING, fit_value
from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.values import Value

MAX_MENTIONS = 30
MAX_EVIDENCE = 200
LINK = re.compile(
    r"(?:\s*(?:=|:|#)\s*|\s+)"
    r"(?:(?:is|of|to|number|no\.?|named|called|id|code|equals|as|the)\s+){0,2}#?\s*",
    re.IGNORECASE,
)
"""Words between a name and its value."""


class Assignment:
    """What a task says, the parameters that want values, and what went where.

    `done` are the pointers of parameters that have a value, `ambiguous` of those that several
    values fit; `used` are the numbers of values that went somewhere; `unread` are words that stand
    for a value and went nowhere; `places` are the numbers of those in each parameter; `things` are
    words for what the tool is about; `zone` is the time zone of whoever asks.
    """

    def __init__(
        self,
        task: str,
        parameters: Sequence[ToolParameter],
        values: Sequence[Value],
        given: Mapping[str, Any],
        things: Set[str] = frozenset(),
        zone: tzinfo | None = None,
    ) -> None:
        # Letters whose lower case is longer would shift every place.
        lower = task.lower()
        self.task, self.lower = task, lower if len(lower) == len(task) else task
        self.parameters, self.values, self.things = parameters, values, things
        self.zone = zone
        self.arguments: dict[str, Any] = {**given}
        self.origins: dict[str, ValueOrigin] = dict.fromkeys(given, "given")
        self.evidence: dict[str, str] = {}
        self.done: set[tuple[str, ...]] = {p.pointer for p in parameters if p.pointer[0] in given}
        self.ambiguous: set[tuple[str, ...]] = set()
        self.places: dict[tuple[str, ...], set[int]] = {}
        self.doubtful: list[str] = []
        self.unread: list[str] = []
        said = {*_list_texts(given)}
        self.used: set[int] = {
            at for at, value in enumerate(values) if str(value.value).lower() in said
        }
        self._starts = {value.start: at for at, value in enumerate(values)}
        self._covered = {
            place for value in values for place in range(value.start + 1, value.end)
        } | {value.start for value in values}
        self._ends = {value.end: at for at, value in enumerate(values)}

    def list_open(self) -> list[ToolParameter]:
        """The parameters that want a value."""
        return [p for p in self.parameters if p.pointer not in self.done | self.ambiguous]

    def list_free(self) -> list[tuple[int, Value]]:
        """The values that went nowhere, with their numbers."""
        return [(at, v) for at, v in enumerate(self.values) if at not in self.used]

    def assign(
        self,
        parameter: ToolParameter,
        value: Any,
        evidence: str,
        used: Iterable[int] = (),
        origin: ValueOrigin = "task",
    ) -> None:
        place = self.arguments
        for name in parameter.pointer[:-1]:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                return
            place = inner
        place[parameter.pointer[-1]] = value
        self.done.add(parameter.pointer)
        taken = {*used}
        self.places[parameter.pointer] = taken
        self.used |= taken
        if any(self.values[at].is_guessed for at in taken):
            self.doubtful.append(parameter.name)
        self.origins.setdefault(parameter.name, origin)
        self.evidence.setdefault(parameter.name, evidence[:MAX_EVIDENCE])

    def find_mentions(self, label: str) -> Iterable[re.Match[str]]:
        """Where a parameter is named, but for names that hold the word: `Bergen Harbour`."""
        found = islice(re.finditer(rf"\b{label}\b", self.lower), MAX_MENTIONS)
        return [each for each in found if each.start() not in self._covered]

    def fit_free(self, at: int | None, parameter: ToolParameter) -> Any:
        if at is None or at in self.used:
            return NOTHING
        return fit_value(self.values[at], parameter, is_named=True)

    def find_value_behind(self, end: int) -> int | None:
        """The value that begins right behind a label, after words that link them."""
        link = LINK.match(self.task, end)
        for start in (link.end() if link else end, end):
            # The sign of `#12` is a link, and part of the value too.
            found = self._starts.get(start, self._starts.get(start - 1))
            if found is not None and self.values[found].end > start:
                return found
        return None

    def find_value_before(self, start: int) -> int | None:
        """The number that ends right before a label: `3 nights`."""
        found = self._ends.get(len(self.task[:start].rstrip()))
        return found if found is not None and self.values[found].kind == "number" else None

    def find_name_before(self, start: int) -> int | None:
        """The name behind an article that ends right before a label: `the Blue room`."""
        at = self._ends.get(len(self.task[:start].rstrip()))
        if at is None or at in self.used or self.values[at].kind not in ("name", "quoted"):
            return None
        before = self.lower[max(0, self.values[at].start - 5) : self.values[at].start]
        return at if re.search(r"\bthe\s\Z", before) else None

    def list_covered(self, start: int, end: int) -> list[int]:
        return [at for at, v in enumerate(self.values) if start <= v.start and v.end <= end]

    def blank_used(self, text: str) -> str:
        for at in self.used:
            value = self.values[at]
            text = text[: value.start] + "\0" * (value.end - value.start) + text[value.end :]
        return text


def _list_texts(given: Mapping[str, Any]) -> Iterator[str]:
    """The values of given arguments as a task would say them: those are no news."""
    waiting: list[Any] = [given]
    for _ in range(1_000):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str | int | float):
            yield str(value).lower()
