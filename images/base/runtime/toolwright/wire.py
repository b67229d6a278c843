"""Messages as lines: what every engine's loop is made of."""

from __future__ import annotations

import json

from .errors import Cancelled, RequestFailed
from .results import bug, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .protocol import PendingCall

MAX_LINE = 48 * 1024 * 1024
MAX_RESULT = 40 * 1024 * 1024
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def decode(line: bytes) -> Any:
    """The JSON value of a line. Raises ValueError where it is none or nested too deeply."""
    try:
        return json.loads(line.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line. Raises ValueError for numbers that JSON cannot hold."""
    text = _ENCODER.encode(message)
    # Half of a surrogate pair has no UTF-8 form and would make the whole line invalid.
    return text.encode("utf-8", "replace") + b"\n"


def outcome(call: PendingCall) -> bytes:
    """Run a call; its answer as a line whatever its code did. Raises only Cancelled."""
    try:
        line = encode(call.run())
    except Cancelled:
        raise
    except ValueError:
        reason = "the result holds a number that no double can hold"
        return encode(call.answer(failure(RequestFailed("too_large", reason))))
    # A tool may raise failures of its own making, whose text is code that runs late.
    except BaseException as error:
        return encode(call.answer(bug(error)))
    if len(line) > MAX_RESULT:
        reason = f"the result takes {len(line)} bytes, more than {MAX_RESULT}"
        return encode(call.answer(failure(RequestFailed("too_large", reason))))
    return line
