"""A model's text as the JSON object that was asked for; what is none is asked for once more."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from forge.author import Ask, Reply
from forge.errors import AuthorFailed
from forge.prose import visible
from sandbox.validation import checker

MAX_TEXT = 1 << 20
"""Characters of one answer."""
MAX_DEPTH = 100
MAX_TOKENS = 10_000_000
"""No usage of one answer is larger; an endpoint that says so is not believed."""
TRIES = 2
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Completion:
    """What a model said, and what it cost."""

    text: str
    model: str
    tokens_in: int
    tokens_out: int


Complete = Callable[[str], Awaitable[Completion]]
"""Gives a prompt to a model. Raises AuthorFailed."""


async def answered(ask: Ask, complete: Complete) -> Reply:
    """The model's answer; where it is malformed it is told so and asked once more.

    Raises AuthorFailed, with what all of it cost.
    """
    started = time.monotonic()
    prompt, problem = ask.prompt, ""
    spent_in = spent_out = 0
    for _ in range(TRIES):
        try:
            said = await complete(prompt)
        except AuthorFailed as error:
            error.tokens_in += spent_in
            error.tokens_out += spent_out
            error.seconds = time.monotonic() - started
            raise
        spent_in += said.tokens_in
        spent_out += said.tokens_out
        content = read_answer(said.text, ask.answer)
        if not isinstance(content, str):
            seconds = time.monotonic() - started
            return Reply(content, said.model, spent_in, spent_out, seconds)
        problem = content
        prompt = f"{ask.prompt}\n\n# Your last answer was not accepted\n{problem}. {_ONLY}"
    seconds = time.monotonic() - started
    raise AuthorFailed("malformed", f"{problem}, twice", spent_in, spent_out, seconds)


_ONLY = "Answer with that one JSON object, complete, and nothing else."


def with_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """The prompt for a model that is not held to a schema by its endpoint."""
    told = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt}\n\n# How to answer\nWith one JSON object that meets this JSON Schema, and "
        f"nothing before or after it:\n{told}"
    )


def read_answer(text: str, schema: Mapping[str, Any]) -> dict[str, Any] | str:
    """The object in a model's text, by itself or in a fence, or what is wrong with it."""
    if len(text) > MAX_TEXT:
        return f"It is longer than {MAX_TEXT} characters"
    problem = "It holds no JSON object"
    for candidate in _candidates(text.strip().removeprefix("\ufeff")):
        try:
            value = json.loads(candidate, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            problem = f"It is no JSON: {visible(str(error), 200)}"
            continue
        return _checked(value, schema)
    return problem


def _checked(value: Any, schema: Mapping[str, Any]) -> dict[str, Any] | str:
    if not isinstance(value, dict):
        return "It is no JSON object"
    if _is_deep(value):
        return f"It is nested more than {MAX_DEPTH} deep"
    wrong = checker(schema).problem(value)
    if wrong is not None:
        return f"{wrong.where or '/'}: {visible(wrong.reason, 300)}"
    return value


def _candidates(text: str) -> Iterator[str]:
    """Where the object may stand in a text: all of it, its fences, from brace to brace."""
    if text.startswith("{"):
        yield text
    yield from (found[1] for found in _FENCED.finditer(text))
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        yield text[first : last + 1]


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def tokens_of(text: str) -> int:
    """About how many tokens a text is, rather more than less."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def told_tokens(value: Any, text: str) -> int:
    """The tokens that an endpoint says, or an estimate where it says nothing sensible."""
    sensible = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return value if sensible else tokens_of(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
