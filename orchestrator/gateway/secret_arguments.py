"""Arguments that are a secret: a key that a document lists as an ordinary parameter, a password in
a body.

Such a value goes to the API and nowhere else: records, recordings and approvals have `MARK` in its
place.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from orchestrator.calls import Call
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import ToolDefinition
from sandbox.offload import run_beside
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.wire.content import redact_tool_answer
from sandbox.wire.redaction import MARK, Redaction

Path = tuple[str, ...]
"""Where a value stands in the arguments: names, and `ITEMS` for each item of a list."""
ITEMS = "[]"
MAX_DEPTH = 8
MAX_SCHEMAS = 5_000
"""How many schemas of a tool are looked at: a document may refer to itself."""
_PLACE = re.compile(r"(query|header|cookie):(.{1,200})", re.S)
"""`x-in` of a tool's argument: the place of its value in the request."""
_NAMES = re.compile(
    r"(?:api|app|application|auth|access|secret|subscription|consumer|client|license)key"
    r"|(?:api|app|auth|access|bearer|oauth|oauth2|session|personalaccess)token"
    r"|(?:api|app|client|consumer|shared)secret"
)
"""Names that say that a value is a secret, without what separates their words."""
_PASSWORD = re.compile(r".{0,60}(?:password|passwd|passphrase|passwort)|pwd")
_BARE = frozenset("key token secret pin pass passcode credential credentials code".split())
"""Names of objects and places in lists as often as of secrets: what the schema says decides."""
_SAYS_SO = re.compile(
    r"\b(?:api|access|auth|authentication|authorization|secret|private|bearer|session|security)"
    r"[ _-]?(?:key|token|secret|code)s?\b"
    r"|\bpasswords?\b|\bcredentials?\b|\bauthenticat(?:e|es|ion)\b|\byour secret\b",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_PARTS = ("allOf", "anyOf", "oneOf")


def find_secret_arguments(
    tool: ToolDefinition, credentials: Iterable[Credential] = ()
) -> Mapping[Path, str]:
    """The arguments of a compiled tool that are a secret, and the fields of its body that are, each
    with its place as behind `--auth`; "" where the vault cannot put it into a request. A parameter
    at the place of one of the server's `credentials` is that secret.
    """
    declared = {(each.location, each.parameter.lower()) for each in credentials if each.parameter}
    properties = tool.input_schema.get("properties")
    found: dict[Path, str] = {}
    for name, schema in properties.items() if isinstance(properties, Mapping) else ():
        origin = schema.get("x-in") if isinstance(schema, Mapping) else None
        if not isinstance(origin, str):
            continue
        sent_as = origin.partition(":")[2] or name
        if (parts := _PLACE.fullmatch(origin)) and (
            _is_key(sent_as, schema) or (parts[1], sent_as.lower()) in declared
        ):
            found[(name,)] = f"{parts[1]}:{parts[2]}"
        elif _is_secret(sent_as, schema):
            found[(name,)] = ""
        else:
            found |= dict.fromkeys(_find_fields((name,), schema, tool.input_schema), "")
    return found


def _is_key(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a value is an API's key by its name, or by its name and what is said of it."""
    plain = _shorten(name)
    if _NAMES.fullmatch(plain):
        return True
    said = schema.get("description")
    return plain in _BARE and isinstance(said, str) and bool(_SAYS_SO.search(said[:2_000]))


def _shorten(name: str) -> str:
    """A name without what separates its words, nor the `X-` of a header."""
    return _SEPARATORS.sub("", name.lower()[:200]).removeprefix("x")


def _is_secret(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text is a secret by its format (OpenAPI's `password`), or by its name; a key as
    `_is_key`.
    """
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is not None and "string" not in kinds:
        return False
    if schema.get("format") == "password":
        return True
    if kind is None or schema.get("enum"):
        return False
    return bool(_PASSWORD.fullmatch(_shorten(name))) or _is_key(name, schema)


def _find_fields(start: Path, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Path]:
    """The fields below a value that are a secret, those nearest to it first."""
    pending: deque[tuple[Path, Any, int]] = deque([(start, schema, 0)])
    for _ in range(MAX_SCHEMAS):
        if not pending:
            return
        path, found, depth = pending.popleft()
        node = _resolve(found, root)
        if depth > MAX_DEPTH or not isinstance(node, Mapping):
            continue
        for key in _PARTS:
            parts = node.get(key)
            pending += ((path, each, depth + 1) for each in parts or () if isinstance(parts, list))
        if isinstance(node.get("items"), Mapping):
            pending.append(((*path, ITEMS), node["items"], depth + 1))
        fields = node.get("properties")
        for name, field in fields.items() if isinstance(fields, Mapping) else ():
            own = _resolve(field, root)
            if isinstance(own, Mapping) and any(
                _is_secret(name, each) for each in _list_forms(own, root)
            ):
                yield (*path, name)
            else:
                pending.append(((*path, name), own, depth + 1))


def _list_forms(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema and its alternatives (`anyOf: [string, null]`)."""
    yield schema
    for key in _PARTS:
        parts = schema.get(key)
        for each in parts[:20] if isinstance(parts, list) else ():
            if isinstance(part := _resolve(each, root), Mapping):
                yield part


def _resolve(schema: Any, root: Mapping[str, Any]) -> Any:
    """What a reference to a definition of the tool stands for; any other schema as it is."""
    for _ in range(MAX_DEPTH):
        target = schema.get("$ref") if isinstance(schema, Mapping) else None
        definitions = root.get("$defs")
        if not isinstance(target, str) or not isinstance(definitions, Mapping):
            return schema
        schema = definitions.get(target.removeprefix("#/$defs/"))
    return None


def mark_secrets(call: Call, places: Mapping[Path, str]) -> Call:
    """The call, which knows the values of its arguments that are a secret. Its own words are told
    without them.
    """
    values = {path: list(_find_values(call.arguments, path)) for path in places}
    texts = frozenset(text for found in values.values() for text in _list_texts(found))
    if not texts:
        return call
    given = {path: places[path] for path, found in values.items() if any(found)}
    hide = Redaction(texts)
    return replace(
        call,
        task=hide.redact_text(call.task),
        reason=hide.redact_text(call.reason),
        secrets=texts,
        secret_places=given,
    )


def list_secret_texts(call: Call) -> list[str]:
    """The values of the call's arguments that are a secret, each as often as it is given."""
    found = (_find_values(call.arguments, path) for path in call.secret_places)
    return [text for values in found for text in _list_texts(list(values))]


def hide_arguments(call: Call) -> Mapping[str, Any]:
    """The arguments as a record may have them."""
    return put_values(call.arguments, dict.fromkeys(call.secret_places, MARK))


def put_values(arguments: Mapping[str, Any], values: Mapping[Path, Any]) -> Mapping[str, Any]:
    """The arguments with other values at these paths, where there is one already."""
    changed: Any = arguments
    for path, value in values.items():
        changed = _put_value(changed, path, value)
    return dict(changed)


def _put_value(node: Any, path: Path, value: Any) -> Any:
    if not path:
        return node if node in (None, "") else value
    if isinstance(node, list | tuple) and path[0] == ITEMS:
        return [_put_value(item, path[1:], value) for item in node]
    if isinstance(node, Mapping) and path[0] in node:
        return {**node, path[0]: _put_value(node[path[0]], path[1:], value)}
    return node


def _find_values(node: Any, path: Path) -> Iterator[Any]:
    if not path:
        yield node
    elif isinstance(node, list | tuple) and path[0] == ITEMS:
        for item in node:
            yield from _find_values(item, path[1:])
    elif isinstance(node, Mapping) and path[0] in node:
        yield from _find_values(node[path[0]], path[1:])


def hide_outcome(outcome: Outcome, tape: CallLog) -> Outcome:
    """The outcome as it may be written down, where the call was given a secret."""
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


async def hide_outcome_beside(call: Call, outcome: Outcome, tape: CallLog) -> Outcome:
    """The outcome as it may be written down, of a call whose `tape` hides something. What an API
    answered is searched beside the event loop, and not again for the record.
    """
    if call.secrets:
        return await run_beside(partial(hide_outcome, outcome, tape))
    await run_beside(tape.list_safe_exchanges)
    return outcome


def render_unstored(call: Call) -> str:
    """Why a call with a secret that the vault could keep does not wait for a person, nor write."""
    path, place = next((path, place) for path, place in call.secret_places.items() if place)
    name = path[0]
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
        if str(value):
            yield str(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _list_texts(item)
