"""A task that somebody may give an author, and how to tell whether what came of it is good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.example import is_same_value

Reference = Callable[..., Any]


class Refused(Exception):
    """A reference's way to say that the arguments have no result."""


@dataclass(frozen=True)
class Check:
    """One hidden call. `refused`: it must fail as the caller's mistake, by code or by schema."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any = None
    refused: bool = False

    def holds(self, structured: Any, failure: str) -> bool:
        """Whether this is what came: the structured content, or a failure's kind."""
        if self.refused:
            return failure in ("tool", "arguments")
        wanted = self.result if isinstance(self.result, dict) else {"result": self.result}
        return not failure and is_same_value(wanted, structured)


@dataclass(frozen=True)
class Task:
    """`text` is all that an author is told; no stage sees the checks, which decide what is good."""

    name: str
    text: str
    checks: tuple[Check, ...]


def checks(
    references: Mapping[str, Reference], inputs: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[Check, ...]:
    """A check for each (tool, arguments), its result from the tool's reference."""
    return tuple(_check(references[tool], tool, arguments) for tool, arguments in inputs)


def _check(reference: Reference, tool: str, arguments: Mapping[str, Any]) -> Check:
    try:
        return Check(tool, arguments, reference(**arguments))
    except Refused:
        return Check(tool, arguments, refused=True)
