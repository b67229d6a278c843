"""Examples for tools that compute: arguments with expected results, stored with the bundle."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FILE = "cases.json"
"""The file of a bundle's examples, in its `tests/`."""
MAX_EXAMPLES = 200
MAX_ANSWERS = 50
"""Answers per example, as many as one call may make calls to other tools."""
PRECISION = 1e-9
"""The relative difference within which two floats are equal."""
ANY = "$any"
"""The only key of an object that stands for a value which differs from run to run: a key, a time,
an id. Its value is true, or the JSON type that the value has to have.
"""
_ANY_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}

ExpectedFailure = Literal["tool", "arguments"]
FAILURES: tuple[ExpectedFailure, ...] = ("tool", "arguments")
"""Failures that may be expected: the code's own ToolError, or arguments that its schema refuses."""


UNANSWERED = ("timeout", "unreachable")
"""The kinds of failure that a request of an example may have in place of an answer."""
_REQUEST = re.compile(r"(?:GET|PUT|POST|DELETE|PATCH|HEAD|OPTIONS) (?:https?://[^/]+)?/[!-~]*\Z")
MAX_REQUEST = 2000
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}\Z")
MAX_HEADERS = 20


@dataclass(frozen=True)
class ExampleAnswer:
    """The answer of another server's tool (`server.tool`) in an example: its `result`, or the
    message of its `failure`.

    With a `status` it is an API's answer to a request: `tool` is then its method and URL, such as
    `GET https://api.example.com/zones/7`, `arguments` the JSON body that it has to carry ({} for
    any), `headers` the request headers that it has to have, by lower-case name, `result` the body
    of the answer. A request's `failure` is one of UNANSWERED.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any = None
    failure: str = ""
    status: int = 0
    headers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_http(self) -> bool:
        return " " in self.tool

    @property
    def structured(self) -> Any:
        return self.result if isinstance(self.result, dict) else {"result": self.result}


@dataclass(frozen=True)
class Example:
    """One call of `tool` and its expected outcome: `result` as structured content, or a `failure`
    of a kind, in which case `result` is ignored; `code` is the declared refusal that it has to be,
    "" for any.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any = None
    failure: ExpectedFailure | None = None
    answers: tuple[ExampleAnswer, ...] = ()
    """Of other servers' tools, and of the API."""
    code: str = ""

    @property
    def structured(self) -> Any:
        """The expected structured content; a result that is no object is wrapped in one, as
        `result`.
        """
        return self.result if isinstance(self.result, dict) else {"result": self.result}

    def format_expected(self) -> str:
        """The expectation as JSON text, equal for equal expectations."""
        code = {"code": self.code} if self.code else {}
        value = {"failure": self.failure, **code} if self.failure else self.structured
        return json.dumps(value, sort_keys=True, ensure_ascii=False)


def is_placeholder(value: Any) -> bool:
    """Whether a value of a case stands for any value, or any of a type: `{"$any": "string"}`."""
    if not isinstance(value, Mapping) or value.keys() != {ANY}:
        return False
    named = value[ANY]
    return named is True or (isinstance(named, str) and named in _ANY_TYPES)


def _admits(placeholder: Mapping[str, Any], got: Any) -> bool:
    named = placeholder[ANY]
    if named is True:
        return True
    return isinstance(got, _ANY_TYPES[named]) and (named == "boolean") == isinstance(got, bool)


def is_same_value(expected: Any, got: Any) -> bool:
    """Whether a JSON value is what is expected: floats within PRECISION; true does not equal 1; a
    placeholder in what is expected admits any value, or any of its type.
    """
    if is_placeholder(expected):
        return _admits(expected, got)
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return _is_same_number(expected, got)
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(
            is_same_value(v, got[k]) for k, v in expected.items()
        )
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(is_same_value, expected, got))
    return type(expected) is type(got) and bool(expected == got)


def _is_same_number(expected: float, got: float) -> bool:
    if isinstance(expected, int) and isinstance(got, int):
        return expected == got
    try:
        return math.isclose(expected, got, rel_tol=PRECISION)
    except OverflowError:  # An integer beyond what a float can hold.
        return expected == got


def to_json(example: Example) -> dict[str, Any]:
    given: dict[str, Any] = {"tool": example.tool, "arguments": dict(example.arguments)}
    if example.answers:
        given["answers"] = [answer_to_json(answer) for answer in example.answers]
    if example.failure:
        code = {"code": example.code} if example.code else {}
        return {**given, "failure": example.failure, **code}
    return {**given, "result": example.result}


def find_code_problem(case: Mapping[str, Any]) -> str:
    """Why a case's `code` is none; "" where it is one, or where there is none."""
    code = case.get("code", "")
    if not isinstance(code, str) or (code and case.get("failure") != "tool"):
        return 'is no code of a refusal; it stands beside "failure": "tool"'
    return ""


def answer_to_json(answer: ExampleAnswer) -> dict[str, Any]:
    if answer.is_http:
        asked: dict[str, Any] = {"request": answer.tool}
        asked |= {"sent": dict(answer.arguments)} if answer.arguments else {}
        asked |= {"headers": dict(answer.headers)} if answer.headers else {}
        if answer.failure:
            return {**asked, "failure": answer.failure}
        return {**asked, "status": answer.status, "body": answer.result}
    given = {"tool": answer.tool, "arguments": dict(answer.arguments)}
    if answer.failure:
        return {**given, "failure": answer.failure}
    return {**given, "result": answer.result}


class AnswersInvalid(ValueError):
    """An example's `answers` are none: `where` in the example, and the reason."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"{where}: {reason}")


def parse_answers(listed: Any) -> tuple[ExampleAnswer, ...]:
    """An example's `answers`. Raises AnswersInvalid."""
    if not isinstance(listed, list) or len(listed) > MAX_ANSWERS:
        raise AnswersInvalid("/answers", f"is no array of at most {MAX_ANSWERS}")
    return tuple(_parse_answer(at, item) for at, item in enumerate(listed))


def _parse_answer(at: int, item: Any) -> ExampleAnswer:
    if isinstance(item, dict) and "request" in item:
        return _parse_http_answer(f"/answers/{at}", item)
    if not isinstance(item, dict) or item.keys() - {"tool", "arguments", "result", "failure"}:
        raise AnswersInvalid(f"/answers/{at}", "has tool, arguments, and a result or a failure")
    if ("result" in item) == ("failure" in item):
        raise AnswersInvalid(f"/answers/{at}", "has either a result or a failure")
    tool, arguments, failure = item.get("tool"), item.get("arguments"), item.get("failure", "")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise AnswersInvalid(f"/answers/{at}", "has a tool and arguments")
    if not isinstance(failure, str) or ("failure" in item and not failure):
        raise AnswersInvalid(f"/answers/{at}/failure", "is no message")
    return ExampleAnswer(tool, arguments, item.get("result"), failure)


def _parse_http_answer(where: str, item: Mapping[str, Any]) -> ExampleAnswer:
    request, sent, failure = item["request"], item.get("sent", {}), item.get("failure", "")
    if item.keys() - {"request", "sent", "headers", "status", "body", "failure"}:
        what = "has request, status and body, or a failure, and maybe sent and headers"
        raise AnswersInvalid(where, what)
    if not isinstance(request, str) or len(request) > MAX_REQUEST or not _REQUEST.match(request):
        raise AnswersInvalid(f"{where}/request", "is no METHOD /path?query as it is sent")
    if not isinstance(sent, dict):
        raise AnswersInvalid(f"{where}/sent", "is no object")
    headers = _parse_headers(f"{where}/headers", item.get("headers", {}))
    if ("status" in item) == ("failure" in item):
        raise AnswersInvalid(where, "has either a status or a failure")
    if "failure" in item:
        if failure not in UNANSWERED:
            raise AnswersInvalid(f"{where}/failure", f"is none of {', '.join(UNANSWERED)}")
        return ExampleAnswer(request, sent, failure=failure, headers=headers)
    status = item["status"]
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        raise AnswersInvalid(f"{where}/status", "is no status from 200 to 599")
    return ExampleAnswer(request, sent, item.get("body"), status=status, headers=headers)


def _parse_headers(where: str, listed: Any) -> dict[str, Any]:
    """The headers that a request has to have, by lower-case name. Raises AnswersInvalid."""
    if not isinstance(listed, dict) or len(listed) > MAX_HEADERS:
        raise AnswersInvalid(where, f"is no object of at most {MAX_HEADERS} headers")
    for name, value in listed.items():
        if not _HEADER.match(name):
            raise AnswersInvalid(where, f"{name[:40]!r} is no name of a header")
        if not isinstance(value, str) and not is_placeholder(value):
            raise AnswersInvalid(f"{where}/{name}", 'is no text and no {"$any": "string"}')
    return {name.lower(): value for name, value in listed.items()}


def render_examples(examples: Iterable[Example]) -> bytes:
    """The content of FILE."""
    cases = [to_json(example) for example in examples]
    return (json.dumps({"cases": cases}, ensure_ascii=False, indent=1) + "\n").encode()


def parse_examples(content: bytes) -> tuple[Example, ...]:
    """The inverse of `render`. Raises ValueError with the place and the reason."""
    try:
        cases = json.loads(content)["cases"]
        if not isinstance(cases, list) or len(cases) > MAX_EXAMPLES:
            raise ValueError(f"cases is no array of at most {MAX_EXAMPLES}")
        return tuple(_parse_example(at, case) for at, case in enumerate(cases))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _parse_example(at: int, case: Any) -> Example:
    if not isinstance(case, dict) or ("result" in case) == ("failure" in case):
        raise ValueError(f"/cases/{at}: a case has either a result or a failure")
    tool, arguments, failure = case.get("tool"), case.get("arguments"), case.get("failure")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise ValueError(f"/cases/{at}: a case has a tool and arguments")
    if failure is not None and failure not in FAILURES:
        raise ValueError(f"/cases/{at}/failure: is none of {', '.join(FAILURES)}")
    if problem := find_code_problem(case):
        raise ValueError(f"/cases/{at}/code: {problem}")
    try:
        answers = parse_answers(case.get("answers", []))
    except ValueError as error:
        raise ValueError(f"/cases/{at}{error}") from error
    return Example(tool, arguments, case.get("result"), failure, answers, code=case.get("code", ""))
