"""Messages as lines: what every engine's loop is made of."""

from __future__ import annotations

import json

from .errors import Cancelled, RequestFailed
from .results import bug, failure, spelled_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .protocol import PendingCall

MAX_LINE = 48 * 1024 * 1024
MAX_RESULT = 40 * 1024 * 1024
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"
_UNHELD = "{} holds a number that no double can hold"


def decode(line: bytes) -> Any:
    """The JSON value of a line. Raises ValueError where it is none or nested too deeply."""
    return parse(line.decode())


def parse(text: str) -> Any:
    """The same of a text, in less time than `json.loads`."""
    text = text.strip(_BLANK)
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if end != len(text):
        raise ValueError("there is something behind the JSON value")
    return value


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line. Raises ValueError for numbers that JSON cannot hold."""
    text = _written(message)
    # Half of a surrogate pair has no UTF-8 form and would make the whole line invalid.
    return text.encode("utf-8", "replace") + b"\n"


def outcome(call: PendingCall) -> bytes:
    """Run a call; its answer as a line whatever its code did. Raises only Cancelled."""
    try:
        line = _encode_answer(call, call.run())
    except Cancelled:
        raise
    # A tool may raise failures of its own making, whose text is code that runs late.
    except BaseException as error:
        return encode(call.answer(bug(error)))
    if len(line) > MAX_RESULT:
        reason = f"the result takes {len(line)} bytes, more than {MAX_RESULT}"
        return encode(call.answer(failure(RequestFailed("too_large", reason))))
    return line


def _encode_answer(call: PendingCall, message: dict[str, Any]) -> bytes:
    try:
        return encode(message)
    except ValueError:
        told = _UNHELD.format("it")
        result = spelled_out(message["result"], told) if call.hands_on else None
        failed = RequestFailed("too_large", _UNHELD.format("the result"))
        return encode(call.answer(result or failure(failed)))


def _write_by_pieces() -> Callable[[Any], str]:
    """What writes JSON: CPython's own encoder, made once, where it has one.

    `JSONEncoder.encode` makes it anew for each value, which takes as long as writing a short one.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    quoted = json.encoder.encode_basestring
    pieces = make(None, _ENCODER.default, quoted, None, ":", ",", False, False, False)
    return lambda value: "".join(pieces(value, 0))


_written = _write_by_pieces()
