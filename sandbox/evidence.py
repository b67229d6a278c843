"""What came of a call, as a report shows it: bounded JSON."""

from __future__ import annotations

import json
from typing import Any

from sandbox.runner import Outcome

MAX_SHOWN = 400


def shown(value: Any) -> str:
    """JSON for a reader, bounded."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"


def got(came: Outcome | str) -> str:
    """What a call gave; of one without an outcome, the text that says why."""
    if isinstance(came, str):
        return came[:MAX_SHOWN]
    if came.failure:
        return shown({"failure": came.failure.kind, "message": came.failure.message[:300]})
    return shown(came.structured)


def whole(came: Outcome) -> str:
    """The result as one text, equal for equal results."""
    return json.dumps(came.result, sort_keys=True)
