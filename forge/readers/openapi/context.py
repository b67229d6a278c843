"""Shared state of the OpenAPI reader: references, schemas and problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.readers.document import DocumentProblem
from forge.readers.openapi.references import Node, References
from forge.readers.openapi.schemas import SchemaConverter

Dialect = Literal["2.0", "3.0", "3.1"]
MAX_PROBLEMS = 1000


class OperationSkipped(Exception):
    """An operation cannot be compiled. Caught where operations are read."""

    def __init__(self, problem: DocumentProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass
class ProblemLog:
    """The problems found so far, without duplicates; beyond MAX_PROBLEMS they are only counted."""

    found: dict[DocumentProblem, None] = field(default_factory=dict)
    omitted: int = 0

    def add(self, problem: DocumentProblem) -> None:
        """Add a problem unless it is known."""
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
