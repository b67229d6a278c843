"""Shared state of the OpenAPI reader: references, schemas and problems."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from forge.readers.document import DocumentProblem
from forge.readers.openapi.references import Node, References
from forge.readers.openapi.schemas import SchemaConverter

Dialect = Literal["2.0", "3.0", "3.1"]
MAX_PROBLEMS = 1000
MAX_REPEATED = 20_000
"""Bytes of a part of a document beyond which what was read of it is not kept."""
P = ParamSpec("P")
T = TypeVar("T")


class OperationSkipped(Exception):
    """An operation cannot be compiled. Caught where operations are read."""

    def __init__(self, problem: DocumentProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass
class ProblemLog:
    """The problems found so far, without duplicates; beyond MAX_PROBLEMS they are only counted.

    `added` counts how often one was added, known or not.
    """

    found: dict[DocumentProblem, None] = field(default_factory=dict)
    omitted: int = 0
    added: int = 0

    def add(self, problem: DocumentProblem) -> None:
        """Add a problem unless it is known."""
        self.added += 1
        if problem in self.found or len(self.found) < MAX_PROBLEMS:
            self.found[problem] = None
        else:
            self.omitted += 1

    def list_problems(self, file: str) -> tuple[DocumentProblem, ...]:
        """Return the problems, and one more for `file` where some were not kept."""
        if not self.omitted:
            return tuple(self.found)
        return (
            *self.found,
            DocumentProblem(file, "", f"{self.omitted} further problems are not listed"),
        )


@dataclass(frozen=True)
class ReaderContext:
    """The document being read. `tags` are its declared tags by name; see `believed`, `served`
    and `prefix` of `Document`.
    """

    dialect: Dialect
    references: References
    schemas: SchemaConverter
    problems: ProblemLog
    tags: Mapping[str, Node] = field(default_factory=dict)
    believed: bool = True
    served: bool = False
    prefix: str = ""
    parameters: dict[tuple[str, str], tuple[tuple[str, str], Node]] = field(default_factory=dict)
    """The name and location of each parameter that a reference led to, and where it is."""
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)
    _found: dict[tuple[Any, ...], tuple[Any, Any]] = field(default_factory=dict, repr=False)

    def read_once(
        self,
        read: Callable[Concatenate[ReaderContext, Node, P], T],
        node: Node,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return `read(self, node, …)`, for nodes with equal values what it made of the first one.

        Descriptions repeat themselves: three of four parameters stand in the same words elsewhere.
        What has a problem is read at each of its places, since the problem names the place.
        """
        value, file, _ = node
        # Half of them are one object, which references name: no need to compare its text.
        place = (read, file, id(value), args)
        found: tuple[Any, T] | None = self._found.get(place)
        if found is not None:
            return found[1]
        text = marshal.dumps(value, 2)
        key = (read, file, text, args)
        made: T | None = self._known.get(key)
        if made is None:
            before = self.problems.added + self.schemas.conjunctions
            made = read(self, node, *args, **kwargs)
            is_plain = self.problems.added + self.schemas.conjunctions == before
            if not is_plain or len(text) > MAX_REPEATED:
                return made
            self._known[key] = made
        # With the value, so that no other one gets its id.
        self._found[place] = value, made
        return made
