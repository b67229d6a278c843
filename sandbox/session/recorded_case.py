"""Cases made of what really happened: a call, what it was answered then, and that it must come out.

They are data, kept in a bundle's `tests/`, and hold what was called with and answered, without
secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox import exchange as exchange_json
from sandbox.exchange import Exchange
from sandbox.pace import Pace

FILE = "recorded.json"
"""Where a bundle's recorded cases lie, in its `tests/`."""
MAX_CASES = 40
MAX_BYTES = 64 * 1024
"""Of one case, as JSON text."""
MAX_CALLS = 400


@dataclass(frozen=True)
class RecordedCase:
    """`tool` called `calls` times at the same moment, each answered by the recorded `exchanges`
    where it asks the same, else by the mock of the API; by an upstream with a `limit` that answers
    429 beyond it and says no more. Every call must succeed.
    """

    name: str
    tool: str
    arguments: Mapping[str, Any]
    exchanges: tuple[Exchange, ...] = ()
    limit: Pace | None = None
    calls: int = 1


def fits(case: RecordedCase) -> bool:
    """Whether a case is small enough to be kept."""
    return len(json.dumps(_to_json(case))) <= MAX_BYTES and 1 <= case.calls <= MAX_CALLS


def added(cases: Iterable[RecordedCase], case: RecordedCase) -> tuple[RecordedCase, ...]:
    """The cases with one more, in place of one of its name; the oldest goes where they are many."""
    kept = [old for old in cases if old.name != case.name]
    return (*kept, case)[-MAX_CASES:]


def render(cases: Iterable[RecordedCase]) -> bytes:
    """The content of FILE."""
    listed = [_to_json(case) for case in cases]
    return (json.dumps({"recorded": listed}, ensure_ascii=False, indent=1) + "\n").encode()


def read(content: bytes) -> tuple[RecordedCase, ...]:
    """The inverse of `render`. Raises ValueError with the place and the reason."""
    try:
        listed = json.loads(content)["recorded"]
        if not isinstance(listed, list) or len(listed) > MAX_CASES:
            raise ValueError(f"recorded is no array of at most {MAX_CASES}")
        return tuple(_case(at, data) for at, data in enumerate(listed))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _to_json(case: RecordedCase) -> dict[str, Any]:
    return {
        "name": case.name,
        "tool": case.tool,
        "arguments": dict(case.arguments),
        "exchanges": [exchange_json.to_json(exchange) for exchange in case.exchanges],
        "limit": case.limit and vars(case.limit),
        "calls": case.calls,
    }


def _case(at: int, data: Any) -> RecordedCase:
    limit = data["limit"]
    case = RecordedCase(
        name=str(data["name"])[:200],
        tool=str(data["tool"]),
        arguments=dict(data["arguments"]),
        exchanges=tuple(exchange_json.from_json(exchange) for exchange in data["exchanges"]),
        limit=limit and Pace(str(limit["host"]), int(limit["requests"]), float(limit["per"])),
        calls=int(data["calls"]),
    )
    if not fits(case):
        raise ValueError(f"/recorded/{at}: larger than {MAX_BYTES} bytes or {MAX_CALLS} calls")
    return case
