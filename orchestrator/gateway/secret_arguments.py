"""Arguments that are an API's secret: a key that a document lists as an ordinary parameter.

A tool takes such an argument where nobody keeps the secret in the vault. Its value goes to the API
and nowhere else: records, recordings and results have `MARK` in its place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.calls import Call
from sandbox.bundle.model import ToolDefinition
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.content import redact_tool_answer
from sandbox.wire.redaction import MARK

_PLACE = re.compile(r"(query|header|cookie):(.{1,200})", re.S)
"""`x-in` of a tool's argument: the place of its value in the request."""
_NAMES = re.compile(
    r"(?:api|app|application|auth|access|secret|subscription|consumer|client|license)key"
    r"|(?:api|app|auth|access|bearer|oauth|oauth2|session|personalaccess)token"
    r"|(?:api|app|client|consumer|shared)secret"
)
"""Names that say that a value is a secret, without what separates their words. `key`, `token` and
`secret` alone are not among them: they name objects and places in lists as often.
"""
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def find_secret_arguments(tool: ToolDefinition) -> Mapping[str, str]:
    """The arguments of a tool that are a secret, each with its place as behind `--auth`."""
    properties = tool.input_schema.get("properties")
    found: dict[str, str] = {}
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        place = schema.get("x-in") if isinstance(schema, Mapping) else None
        parts = _PLACE.fullmatch(place) if isinstance(place, str) else None
        if parts and _NAMES.fullmatch(_SEPARATORS.sub("", parts[2].lower()).removeprefix("x")):
            found[name] = f"{parts[1]}:{parts[2]}"
    return found


def mark_secrets(call: Call, places: Mapping[str, str]) -> Call:
    """The call, which knows the values of its arguments that are a secret."""
    given = {name: place for name, place in places.items() if call.arguments.get(name)}
    if not given:
        return call
    texts = frozenset(text for name in given for text in _list_texts(call.arguments[name]))
    return replace(call, secrets=texts, secret_places=given)


def hide_arguments(call: Call) -> Mapping[str, Any]:
    """The arguments as a record may have them."""
    return {
        name: MARK if name in call.secret_places else value
        for name, value in call.arguments.items()
    }


def hide_outcome(outcome: Outcome, tape: CallLog) -> Outcome:
    """The outcome as it may be told, where the call was given a secret."""
    hide = tape.hide
    if hide is None:
        return outcome
    failure, difference = outcome.failure, outcome.difference
    if failure is not None:
        failure = replace(failure, message=hide.redact_text(failure.message))
    if difference is not None:
        difference = replace(difference, reason=hide.redact_text(difference.reason))
    return replace(
        outcome,
        result=redact_tool_answer({"result": outcome.result}, hide)["result"],
        failure=failure,
        difference=difference,
        exchanges=tape.list_safe_exchanges(),
    )


def render_unstored(call: Call) -> str:
    """Why a call with a secret among its arguments does not wait for a person, nor write."""
    name, place = next(iter(call.secret_places.items()))
    secret = _SEPARATORS.sub("_", place.partition(":")[2].lower().removeprefix("x-")).strip("_")
    command = shlex.join(
        ["toolwright", "secret", "set", f"{call.server}.{secret or 'key'}", "--auth", place]
    )
    return (
        f"{name} is a secret, and what waits for a person or writes is stored as it will be sent. "
        f"A person keeps it in the vault with `{command}`; it is added to the request from there, "
        f"and {name} is no argument then"
    )


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _list_texts(item)
