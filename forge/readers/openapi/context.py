"""What every part of the reader needs: the references, the schemas and where problems go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.document import Problem
from forge.openapi.references import Node, References
from forge.openapi.schemas import Schemas

Dialect = Literal["2.0", "3.0", "3.1"]
MAX_PROBLEMS = 1000


class LeftOut(Exception):
    """An operation cannot be compiled. Caught where operations are read."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass
class Problems:
    """The problems found so far, each once; past MAX_PROBLEMS they are only counted."""

    found: dict[Problem, None] = field(default_factory=dict)
    omitted: int = 0

    def add(self, problem: Problem) -> None:
        if problem in self.found or len(self.found) < MAX_PROBLEMS:
            self.found[problem] = None
        else:
            self.omitted += 1

    def all(self, file: str) -> tuple[Problem, ...]:
        if not self.omitted:
            return tuple(self.found)
        return (*self.found, Problem(file, "", f"{self.omitted} further problems are not listed"))


@dataclass(frozen=True)
class Context:
    dialect: Dialect
    references: References
    schemas: Schemas
    problems: Problems
    tags: Mapping[str, Node] = field(default_factory=dict)
