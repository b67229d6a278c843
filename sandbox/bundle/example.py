"""Examples of what a tool that computes must give: data, kept with its bundle."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

FILE = "cases.json"
"""Where a bundle's examples lie, in its `tests/`."""
MAX_EXAMPLES = 200
MAX_ANSWERS = 50
"""Of one example: as many calls as one call may make."""
PRECISION = 1e-9
"""The relative difference within which two fractions are the same."""

ExpectedFailure = Literal["tool", "arguments"]
FAILURES: tuple[ExpectedFailure, ...] = ("tool", "arguments")
"""The failures that code may mean: its own ToolError, or arguments that its schema refuses."""


@dataclass(frozen=True)
class Answered:
    """What another server's tool (`server.tool`) gives in an example: `result`, or the message of
    its `failure`.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any = None
    failure: str = ""

    @property
    def structured(self) -> Any:
        return self.result if isinstance(self.result, dict) else {"result": self.result}


@dataclass(frozen=True)
class Example:
    """One call of `tool` and what must come of it: `result` as structured content, or a failure of
    a kind. `result` means nothing where there is a `failure`. `answers` are those of the tools of
    other servers that it calls.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any = None
    failure: ExpectedFailure | None = None
    answers: tuple[Answered, ...] = ()

    @property
    def structured(self) -> Any:
        """The structured content that is expected: what is no object comes as `result` of one."""
        return self.result if isinstance(self.result, dict) else {"result": self.result}

    def expected(self) -> str:
        """The expectation as JSON text, equal for equal expectations."""
        value = {"failure": self.failure} if self.failure else self.structured
        return json.dumps(value, sort_keys=True, ensure_ascii=False)


def same(expected: Any, got: Any) -> bool:
    """Whether two JSON values are the same: numbers within PRECISION, true and 1 are not."""
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return _same_number(expected, got)
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(same(v, got[k]) for k, v in expected.items())
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    return type(expected) is type(got) and bool(expected == got)


def _same_number(expected: float, got: float) -> bool:
    if isinstance(expected, int) and isinstance(got, int):
        return expected == got
    try:
        return math.isclose(expected, got, rel_tol=PRECISION)
    except OverflowError:  # An integer beyond what a float can hold.
        return expected == got


def to_json(example: Example) -> dict[str, Any]:
    given: dict[str, Any] = {"tool": example.tool, "arguments": dict(example.arguments)}
    if example.answers:
        given["answers"] = [answer_json(answer) for answer in example.answers]
    if example.failure:
        return {**given, "failure": example.failure}
    return {**given, "result": example.result}


def answer_json(answer: Answered) -> dict[str, Any]:
    given = {"tool": answer.tool, "arguments": dict(answer.arguments)}
    if answer.failure:
        return {**given, "failure": answer.failure}
    return {**given, "result": answer.result}


def read_answers(listed: Any) -> tuple[Answered, ...]:
    """An example's `answers`. Raises ValueError with the place and the reason."""
    if not isinstance(listed, list) or len(listed) > MAX_ANSWERS:
        raise ValueError(f"/answers: is no array of at most {MAX_ANSWERS}")
    return tuple(_answer(at, item) for at, item in enumerate(listed))


def _answer(at: int, item: Any) -> Answered:
    if not isinstance(item, dict) or item.keys() - {"tool", "arguments", "result", "failure"}:
        raise ValueError(f"/answers/{at}: has tool, arguments, and a result or a failure")
    if ("result" in item) == ("failure" in item):
        raise ValueError(f"/answers/{at}: has either a result or a failure")
    tool, arguments, failure = item.get("tool"), item.get("arguments"), item.get("failure", "")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise ValueError(f"/answers/{at}: has a tool and arguments")
    if not isinstance(failure, str) or ("failure" in item and not failure):
        raise ValueError(f"/answers/{at}/failure: is no message")
    return Answered(tool, arguments, item.get("result"), failure)


def render(examples: Iterable[Example]) -> bytes:
    """The content of FILE."""
    cases = [to_json(example) for example in examples]
    return (json.dumps({"cases": cases}, ensure_ascii=False, indent=1) + "\n").encode()


def read(content: bytes) -> tuple[Example, ...]:
    """The inverse of `render`. Raises ValueError with the place and the reason."""
    try:
        cases = json.loads(content)["cases"]
        if not isinstance(cases, list) or len(cases) > MAX_EXAMPLES:
            raise ValueError(f"cases is no array of at most {MAX_EXAMPLES}")
        return tuple(_example(at, case) for at, case in enumerate(cases))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _example(at: int, case: Any) -> Example:
    if not isinstance(case, dict) or ("result" in case) == ("failure" in case):
        raise ValueError(f"/cases/{at}: a case has either a result or a failure")
    tool, arguments, failure = case.get("tool"), case.get("arguments"), case.get("failure")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise ValueError(f"/cases/{at}: a case has a tool and arguments")
    if failure is not None and failure not in FAILURES:
        raise ValueError(f"/cases/{at}/failure: is none of {', '.join(FAILURES)}")
    try:
        answers = read_answers(case.get("answers", []))
    except ValueError as error:
        raise ValueError(f"/cases/{at}{error}") from error
    return Example(tool, arguments, case.get("result"), failure, answers)
