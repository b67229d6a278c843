"""JSON answers of a model: parsed, validated, and requested once more where they are malformed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from forge.authors.interface import ModelReply, ModelRequest
from forge.errors import AuthorFailed
from forge.text import sanitize_line
from sandbox.schemas.validator import get_checker

MAX_TEXT = 1 << 20
"""Characters of one answer."""
MAX_DEPTH = 100
MAX_TOKENS = 10_000_000
"""No usage of one answer is larger; an endpoint that says so is not believed."""
TRIES = 2
_THOUGHT = re.compile(r"\A<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
"""What a model that reasons writes before its answer, where the endpoint leaves it in the text."""
_FENCE = re.compile(r"```(?:json)?[ \t]*+\n", re.IGNORECASE)
_FENCE_END = re.compile(r"\n[ \t]*+```")


@dataclass(frozen=True)
class Completion:
    """A model's text and its cost in tokens, of which `cached` were in the endpoint's cache."""

    text: str
    model: str
    tokens_in: int
    tokens_out: int
    cached: int = 0


Complete = Callable[[str], Awaitable[Completion]]
"""Gives a prompt to a model. Raises AuthorFailed."""


async def request_answer(ask: ModelRequest, complete: Complete) -> ModelReply:
    """Request an answer; where it is malformed, say so to the model and request it once more.

    Raises AuthorFailed, with the cost of all attempts.
    """
    started = time.monotonic()
    prompt, problem = ask.prompt, ""
    spent_in = spent_out = cached = 0
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
        cached += said.cached
        content = parse_answer(said.text, ask.answer)
        if not isinstance(content, str):
            seconds = time.monotonic() - started
            return ModelReply(content, said.model, spent_in, spent_out, seconds, cached)
        problem = content
        prompt = f"{ask.prompt}\n\n# Your last answer was not accepted\n{problem}. {_ONLY}"
    seconds = time.monotonic() - started
    raise AuthorFailed("malformed", f"{problem}, twice", spent_in, spent_out, seconds)


_ONLY = "Answer with that one JSON object, complete, and nothing else."


def append_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """Append the answer's schema to the prompt, for an endpoint that does not enforce schemas."""
    told = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt}\n\n# How to answer\nWith one JSON object that meets this JSON Schema, and "
        f"nothing before or after it:\n{told}"
    )


def parse_answer(text: str, schema: Mapping[str, Any]) -> dict[str, Any] | str:
    """Parse the object in a model's text, alone or in a code fence; a string says what is wrong
    with it.
    """
    if len(text) > MAX_TEXT:
        return f"It is longer than {MAX_TEXT} characters"
    problem = "It holds no JSON object"
    stripped = _THOUGHT.sub("", text.strip().removeprefix("\ufeff"), count=1).strip()
    for candidate in _find_candidates(stripped):
        try:
            value = json.loads(candidate, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            problem = f"It is no JSON: {sanitize_line(str(error), 200)}"
            continue
        return _validate_answer(value, schema)
    return problem


def _validate_answer(value: Any, schema: Mapping[str, Any]) -> dict[str, Any] | str:
    if not isinstance(value, dict):
        return "It is no JSON object"
    if _is_deep(value):
        return f"It is nested more than {MAX_DEPTH} deep"
    wrong = get_checker(schema).find_problem(value)
    if wrong is not None:
        return f"{wrong.where or '/'}: {sanitize_line(wrong.reason, 300)}"
    return value


def _find_candidates(text: str) -> Iterator[str]:
    """Yield the parts of a text that may be the object: the whole, its fences, brace to brace."""
    if text.startswith("{"):
        yield text
    yield from _list_fenced(text)
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        yield text[first : last + 1]


def _list_fenced(text: str) -> Iterator[str]:
    """What stands between fences; read once, however many of them have no end."""
    begun = _FENCE.search(text)
    while begun and (end := _FENCE_END.search(text, begun.end())):
        yield text[begun.end() : end.start()]
        begun = _FENCE.search(text, end.end())


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


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text from its bytes, rather too many than too few."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def resolve_token_count(value: Any, text: str) -> int:
    """Return the token count that an endpoint reports, or an estimate where the report is not
    plausible.
    """
    sensible = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return value if sensible else estimate_tokens(text)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
