"""Test cases made of recorded calls, each of which must succeed again.

They are JSON in a bundle's `tests/` and hold the arguments and the exchanges, without secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.ratelimit import Pace
from sandbox.wire import exchange as exchange_json
from sandbox.wire.exchange import Exchange

FILE = "recorded.json"
"""The file of a bundle's recorded cases, in its `tests/`."""
MAX_CASES = 40
MAX_BYTES = 64 * 1024
"""Of one case, as JSON text."""
MAX_CALLS = 400


@dataclass(frozen=True)
class RecordedCase:
    """`tool` called `calls` times at once; every call must succeed. A request is answered by the
    recorded `exchanges` if it is among them, else by the API's mock. With a `limit`, requests past
    it get 429 without a hint when to retry.
    """

    name: str
    tool: str
    arguments: Mapping[str, Any]
    exchanges: tuple[Exchange, ...] = ()
    limit: Pace | None = None
    calls: int = 1


def is_storable(case: RecordedCase) -> bool:
    """Whether a case is within `MAX_BYTES` and `MAX_CALLS`."""
    return len(json.dumps(_case_to_json(case))) <= MAX_BYTES and 1 <= case.calls <= MAX_CALLS


def add_case(cases: Iterable[RecordedCase], case: RecordedCase) -> tuple[RecordedCase, ...]:
    """The cases with one added, replacing one of the same name; at most the `MAX_CASES` latest."""
    kept = [old for old in cases if old.name != case.name]
    return (*kept, case)[-MAX_CASES:]


def render_cases(cases: Iterable[RecordedCase]) -> bytes:
    """The content of FILE."""
    listed = [_case_to_json(case) for case in cases]
    return (json.dumps({"recorded": listed}, ensure_ascii=False, indent=1) + "\n").encode()


def parse_cases(content: bytes) -> tuple[RecordedCase, ...]:
    """The inverse of `render`. Raises ValueError with the place and the reason."""
    try:
        listed = json.loads(content)["recorded"]
        if not isinstance(listed, list) or len(listed) > MAX_CASES:
            raise ValueError(f"recorded is no array of at most {MAX_CASES}")
        return tuple(_case_from_json(at, data) for at, data in enumerate(listed))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _case_to_json(case: RecordedCase) -> dict[str, Any]:
    return {
        "name": case.name,
        "tool": case.tool,
        "arguments": dict(case.arguments),
        "exchanges": [exchange_json.to_json(exchange) for exchange in case.exchanges],
        "limit": case.limit and vars(case.limit),
        "calls": case.calls,
    }


def _case_from_json(at: int, data: Any) -> RecordedCase:
    limit = data["limit"]
    case = RecordedCase(
        name=str(data["name"])[:200],
        tool=str(data["tool"]),
        arguments=dict(data["arguments"]),
        exchanges=tuple(exchange_json.from_json(exchange) for exchange in data["exchanges"]),
        limit=limit and Pace(str(limit["host"]), int(limit["requests"]), float(limit["per"])),
        calls=int(data["calls"]),
    )
    if not is_storable(case):
        raise ValueError(f"/recorded/{at}: larger than {MAX_BYTES} bytes or {MAX_CALLS} calls")
    return case
