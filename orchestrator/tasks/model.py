"""Values of a task run: its plan, what was read for a step, what is asked of somebody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Strategy = Literal["single", "sequential", "composed", "known", "forced", "adapt"]
"""How a task is carried out: one call, steps in order, steps that pass values on, a workflow that
is registered, a server that the task asks to be made, a server that has to be extended first.
"""
ValueOrigin = Literal["given", "task", "default", "example", "memory", "step", "model"]
"""Where an argument comes from: whoever called, the task's words, the schema's default or example,
an earlier exchange of the session, an earlier step, a model.
"""
QuestionKind = Literal["confirm", "choose", "arguments", "plan"]
REF, PATH = "$ref", "path"
"""The keys of a reference to a result: `{"$ref": "s1", "path": "$.zones[0].id"}` (RFC 9535)."""


@dataclass(frozen=True)
class Reading:
    """Arguments of one tool as they were read out of a task.

    `origins` says of each argument where it comes from, `evidence` in which words. `missing` are
    required arguments that nobody said, `unused` values of the task that went into no argument.
    `problem` is why the tool's input schema refuses them; `by` is `rules` or a model's name.
    `doubtful` are arguments whose words may mean something else.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, ValueOrigin] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    problem: str = ""
    by: str = "rules"
    doubtful: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the tool can be called with them."""
        return not self.missing and not self.problem


@dataclass(frozen=True)
class Step:
    """One step of a plan. `tool` is `server.tool` once it is chosen; `arguments` may hold
    references to results of the steps in `after`.

    `uses` is the word by which the task names a value of an earlier result ("its id"), `pick` which
    item of a list it means: `each` (one call for each), an index as in JSONPath (`0`, `-1`), or "".
    """

    id: str
    task: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    uses: str = ""
    pick: str = ""


@dataclass(frozen=True)
class Plan:
    """The steps of a task, each after those it depends on."""

    steps: tuple[Step, ...]
    strategy: Strategy = "single"


@dataclass(frozen=True)
class Question:
    """One thing that a run asks of whoever asked for the task before it goes on.

    `id` is the same whenever the run comes to the same place (`s1.confirm`). `text` is a sentence
    for a person, `shown` what it is about as JSON (the filled call, the candidates, the arguments
    that are missing), `schema` is what an answer has to be.
    """

    id: str
    kind: QuestionKind
    step: str
    text: str
    shown: Mapping[str, Any]
    schema: Mapping[str, Any]
