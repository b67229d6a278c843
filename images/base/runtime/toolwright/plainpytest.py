"""The part of pytest that plain tests use: `mark.parametrize` and `raises`, with pytest's ids.

https://docs.pytest.org/en/stable/reference/reference.html
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType, TracebackType
    from typing import Any

    Function = Callable[..., Any]
    Kind = type[BaseException]
    Rows = list[tuple[str, dict[str, Any]]]

ANYWAY = "toolwright_expected"
MAX_ID = 100
"""A longer text is no part of an id; its argument's name and place stand for it."""


class raises:
    """A block that has to raise; `value` is then what it raised."""

    value: BaseException

    def __init__(
        self,
        expected: Kind | tuple[Kind, ...],
        *,
        match: str | re.Pattern[str] | None = None,
    ) -> None:
        self._expected, self._match = expected, match

    @property
    def type(self) -> Kind:
        return type(self.value)

    def match(self, pattern: str | re.Pattern[str]) -> bool:
        """Whether the message holds the pattern. Raises AssertionError where it does not."""
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"the message {str(self.value)!r} does not match {pattern!r}")
        return True

    def __enter__(self) -> raises:
        return self

    def __exit__(
        self,
        kind: Kind | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {_names(self._expected)}")
        if getattr(error, ANYWAY, False):
            self.value = error
            return True
        if not isinstance(error, self._expected):
            return False
        self.value = error
        return self._match is None or self.match(self._match)


def parametrize(
    names: str | Sequence[str], values: Iterable[Any], ids: Sequence[Any] | None = None
) -> Callable[[Function], Function]:
    """Run a test once for every row of values."""
    listed = names.split(",") if isinstance(names, str) else names
    stripped = [name.strip() for name in listed if name.strip()]
    single = isinstance(names, str) and len(stripped) == 1
    rows = [(value,) if single else tuple(value) for value in values]
    for row in rows:
        if len(row) != len(stripped):
            raise ValueError(f"a row of {len(row)} values for {len(stripped)} names: {names!r}")
    made = [_row_id(stripped, row, at, ids) for at, row in enumerate(rows)]
    told = list(zip(_unique(made), rows, strict=True))

    def marked(function: Function) -> Function:
        known: Iterable[Rows] = getattr(function, "toolwright_rows", ())
        mine = [(name, dict(zip(stripped, row, strict=True))) for name, row in told]
        function.toolwright_rows = [*known, mine]  # type: ignore[attr-defined]
        return function

    return marked


def expanded(name: str, function: Function) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids and arguments of a test, in pytest's order."""
    combined: list[tuple[tuple[str, ...], dict[str, Any]]] = [((), {})]
    for rows in getattr(function, "toolwright_rows", ()):
        combined = [
            ((*parts, part), {**arguments, **row})
            for parts, arguments in combined
            for part, row in rows
        ]
    for parts, arguments in combined:
        yield f"{name}[{'-'.join(parts)}]" if parts else name, arguments


def module() -> ModuleType:
    """A module `pytest` that has just this."""
    made = type(sys)("pytest")
    mark = type(sys)("pytest.mark")
    mark.parametrize = parametrize  # type: ignore[attr-defined]
    made.mark, made.raises = mark, raises  # type: ignore[attr-defined]
    return made


def expected_anyway(error: BaseException) -> BaseException:
    """The error, which `raises` takes for the expected one whatever that is."""
    setattr(error, ANYWAY, True)
    return error


def _names(expected: Kind | tuple[Kind, ...]) -> str:
    kinds = expected if isinstance(expected, tuple) else (expected,)
    return " or ".join(kind.__name__ for kind in kinds)


def _row_id(names: Sequence[str], row: Sequence[Any], at: int, ids: Sequence[Any] | None) -> str:
    if ids is not None and at < len(ids) and ids[at] is not None:
        return _plain_id(ids[at]) or str(ids[at])
    return "-".join(_value_id(value, name, at) for name, value in zip(names, row, strict=True))


def _value_id(value: Any, name: str, at: int) -> str:
    if isinstance(value, str | bytes) and len(value) > MAX_ID:
        return f"{name}{at}"
    plain = _plain_id(value)
    return f"{name}{at}" if plain is None else plain


def _plain_id(value: Any) -> str | None:
    """The id of a value that can be one, as `_pytest.python.IdMaker` makes it."""
    if isinstance(value, str):
        return value.encode("unicode_escape").decode("ascii")
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    if value is None or isinstance(value, float | int | bool | complex):
        return str(value)
    if isinstance(value, re.Pattern):
        return _plain_id(value.pattern)
    if isinstance(value, Enum):
        return str(value)
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else None


def _unique(ids: list[str]) -> list[str]:
    counts, suffixes, made = Counter(ids), defaultdict[str, int](int), list(ids)
    for at, own in enumerate(ids):
        if counts[own] > 1:
            joint = "_" if own and own[-1].isdigit() else ""
            while f"{own}{joint}{suffixes[own]}" in made:
                suffixes[own] += 1
            made[at] = f"{own}{joint}{suffixes[own]}"
            suffixes[own] += 1
    return made
