"""Rules that derive the cause of a failed call, and a possible repair, from its stored row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from registry.health.likeness import find_renamed_in_answer
from registry.models import CallFailure, Invocation
from sandbox.bundle.model import ToolDefinition
from sandbox.wire.policy import parse_origin

CauseKind = Literal[
    "input", "credential", "not allowed", "rate limit", "outage", "drift", "bug", "interruption"
]
Repair = Literal["", "rate", "widen", "recompile", "code"]

TEXT = 300
_INTERRUPTED = {
    "frozen": "Toolwright was frozen",
    "cancelled": "its client cancelled it",
    "interrupted": "another call of its server gave no answer, and ended their sandbox",
    "engine": "no engine could run it",
    "captured": "it waits for a person",
}
_REFUSALS: Mapping[str, tuple[CauseKind, Repair]] = {
    "redirect": ("drift", "recompile"),
    "credential": ("credential", ""),
    "not_allowed": ("not allowed", ""),
}
"""By the broker's refusal (`sandbox.broker.sender.Refusal`); any other is a bug of the server's own
code.
"""
NARROWING = frozenset(
    "columns count cursor exclude fields filter filters first from include last limit maxresults "
    "offset page pagesize perpage q query range search select since size skip start take top "
    "until".split()
)
"""Names of arguments, in small letters alone, by which APIs are asked for less of an answer."""
MAX_NAMES = 8
_NOT_A_LETTER = re.compile("[^a-z]")


@dataclass(frozen=True)
class Cause:
    """The cause of a failure. `reason` is text for people, `repair` the repair that may help (""
    where changing the server does not), `where` a JSON pointer into the answer, `host` the API's
    host.
    """

    kind: CauseKind
    reason: str
    repair: Repair = ""
    where: str = ""
    host: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.reason}"


def find_cause(call: Invocation, tool: ToolDefinition | None = None) -> Cause | None:
    """The cause of a finished call's failure; None for one that succeeded or has not ended.

    `tool` is the definition at the time of the call; without it some drift is reported as input.
    """
    if call.disputed:
        return Cause("bug", "a person marked its result wrong", "code")
    failure = call.failure
    if call.state != "done" or failure is None:
        return None
    if failure.kind in _INTERRUPTED:
        return Cause("interruption", _INTERRUPTED[failure.kind])
    if failure.kind == "http":
        return _explain_status(call, failure, tool)
    if failure.kind == "too_large":
        return _explain_size(failure, tool)
    if failure.kind in ("refused", "not_allowed"):
        return _explain_refusal(call, failure, tool)
    rule = _RULES.get(failure.kind, _explain_bug)
    return rule(call, failure)


def find_drift(call: Invocation, tool: ToolDefinition | None = None) -> Cause | None:
    """What the answer of a call that succeeded says of the description; None where they agree. With
    the `tool` fields are told that are missing and that the answer has under a name like theirs.

    Nobody's failure: the API is the judge, and the description is to be mended.
    """
    seen = call.difference
    if call.state != "done" or seen is None or not call.succeeded:
        return None
    host = _find_host(call)
    if seen.kind == "schema":
        renamed = _render_renamed(call, tool, seen.where)
        return _explain_undocumented(seen.where, f"{seen.reason[: TEXT // 2]}{renamed}", host)
    if seen.kind == "malformed":
        return Cause("drift", seen.reason[:TEXT], "recompile", host=host)
    return Cause("drift", seen.reason[:TEXT], host=host)


def _render_renamed(call: Invocation, tool: ToolDefinition | None, where: str) -> str:
    result = call.result if isinstance(call.result, Mapping) else {}
    schema = tool.output_schema if tool else None
    found = find_renamed_in_answer(schema, result.get("structuredContent"), where)
    return "".join(f"; {each.old!r} may be {each.new!r} there" for each in found[:3])


def _explain_undocumented(where: str, reason: str, host: str) -> Cause:
    place = where[:TEXT]
    told = f"its answer at {place or '/'} is not what is documented: {reason}"
    return Cause("drift", told[:TEXT], "widen", place, host)


def find_refused_host(call: Invocation) -> str:
    """The `host:port` that a call's last request did not go to, since nobody allowed its private
    address; "" for any other call.
    """
    last = call.exchanges[-1] if call.exchanges else {}
    request = last.get("request")
    if call.succeeded or last.get("refusal") != "not_allowed" or not isinstance(request, Mapping):
        return ""
    origin = parse_origin(str(request.get("url")))
    host = f"{origin.host}:{origin.port}" if origin else ""
    # The credential's own host may be what was refused; then another one is to be allowed.
    named = f" {host}`" in f"{last.get('reason') or ''}"
    return host if host and named else ""


def _explain_status(call: Invocation, failure: CallFailure, tool: ToolDefinition | None) -> Cause:
    status, host = failure.status or 0, _find_host(call)
    if status == 429:
        return _explain_rate_limit(call, failure)
    if status in (401, 403, 407):
        return Cause("credential", f"the API answered {status}", host=host)
    if status >= 500 or status == 408:
        return Cause("outage", f"the API answered {status}", host=host)
    moved = status in (405, 410) or (300 <= status < 400)
    # Nothing that the caller chose is in such a path, or in an empty call that may be empty.
    fixed = tool is not None and bool(tool.path) and "{" not in tool.path
    if moved or (status == 404 and fixed):
        reason = f"the API answers {status} where its description has an operation"
        reason = _explain_move(call) or reason
        return Cause("drift", reason, "recompile", host=host)
    is_complete = tool is not None and not call.arguments and not tool.input_schema.get("required")
    if status in (400, 415, 422) and is_complete:
        reason = f"the API answers {status} to what its description allows"
        return Cause("drift", reason, "recompile", host=host)
    return Cause("input", f"the API answered {status} to these arguments", host=host)


def _explain_move(call: Invocation) -> str:
    """Where an answer says that what was asked for has moved; "" where it says nothing of it."""
    last = call.exchanges[-1] if call.exchanges else {}
    request, response = last.get("request"), last.get("response")
    if not isinstance(request, Mapping) or not isinstance(response, Mapping):
        return ""
    listed = [pair for pair in response.get("headers", ()) if len(pair) == 2]
    target = next((str(v) for name, v in listed if str(name).lower() == "location"), "")
    try:
        old, new = urlsplit(str(request.get("url"))).path, urlsplit(target).path
    except ValueError:
        return ""
    return f"the API moved {old[:100]} to {new[:100]}" if new and new != old else ""


def _explain_rate_limit(call: Invocation, failure: CallFailure) -> Cause:
    host = _find_host(call)
    return Cause("rate limit", f"{host or 'the API'} refuses so many requests", "rate", host=host)


def _explain_schema(call: Invocation, failure: CallFailure) -> Cause:
    where = _read_error_meta(call).get("where")
    place = where if isinstance(where, str) else ""
    return _explain_undocumented(place, failure.message, _find_host(call))


def _explain_malformed(call: Invocation, failure: CallFailure) -> Cause:
    return Cause(
        "drift", "its answer is not of the documented form", "recompile", "", _find_host(call)
    )


def _explain_definitions(call: Invocation, failure: CallFailure) -> Cause:
    return Cause("drift", failure.message[:TEXT])


def _explain_refusal(call: Invocation, failure: CallFailure, tool: ToolDefinition | None) -> Cause:
    last = call.exchanges[-1] if call.exchanges else {}
    known = _REFUSALS.get(failure.kind) or _REFUSALS.get(str(last.get("refusal")))
    # What is one operation was proved to send its request: these arguments made it another one, as
    # a text does that is too long for a URL.
    others: tuple[CauseKind, Repair] = ("input", "") if tool and tool.operation else ("bug", "code")
    kind, repair = known or others
    reason = str(last.get("reason") or failure.message)
    return Cause(kind, reason[:TEXT], repair, host=_find_host(call))


def _explain_timeout(call: Invocation, failure: CallFailure) -> Cause:
    last = call.exchanges[-1] if call.exchanges else {}
    if last.get("refusal") == "timeout" and last.get("attempts") == 0:
        return Cause("rate limit", str(last.get("reason"))[:TEXT], host=_find_host(call))
    return Cause("outage", "the API gave no answer in time", host=_find_host(call))


def _explain_outage(call: Invocation, failure: CallFailure) -> Cause:
    return Cause("outage", failure.message[:TEXT], host=_find_host(call))


def _explain_arguments(call: Invocation, failure: CallFailure) -> Cause:
    return Cause("input", failure.message[:TEXT])


def _explain_size(failure: CallFailure, tool: ToolDefinition | None) -> Cause:
    taken = tool.input_schema.get("properties") if tool else None
    names = [str(name) for name in taken or () if _NOT_A_LETTER.sub("", name.lower()) in NARROWING]
    less = ", ".join(names[:MAX_NAMES])
    told = f"; arguments of this tool that may ask for less: {less}" if less else ""
    return Cause("input", f"it asks for more than is taken{told}: {failure.message}"[:TEXT])


def _explain_credential(call: Invocation, failure: CallFailure) -> Cause:
    status = f"the API answered {failure.status}" if failure.status else failure.message[:TEXT]
    return Cause("credential", status, host=_find_host(call))


def _explain_bug(call: Invocation, failure: CallFailure) -> Cause:
    # The cause has the same name as the kind of a failure that is the server's own.
    own = failure.kind == "bug"
    text = (failure.message if own else f"{failure.kind}: {failure.message}")[:TEXT]
    doubtful = _read_error_meta(call).get("type") in _DOUBTFUL
    if failure.kind == "exception" and doubtful and not call.exchanges:
        # Python's words for a value that will not do: as well its caller's mistake as its own.
        told = f"{text}; it declares no refusal for these arguments, and no case has them"
        return Cause("bug", told[:TEXT])
    return Cause("bug", text, "code", host=_find_host(call))


_DOUBTFUL = frozenset({"ValueError", "KeyError", "IndexError", "LookupError", "MemoryError"})
_RULES = {
    "arguments": _explain_arguments,
    "tool": _explain_arguments,
    "refusal": _explain_arguments,
    "upstream": _explain_outage,
    "credential": _explain_credential,
    "rate_limited": _explain_rate_limit,
    "schema": _explain_schema,
    "malformed": _explain_malformed,
    "drift": _explain_definitions,
    "timeout": _explain_timeout,
    "unreachable": _explain_outage,
}


def _read_error_meta(call: Invocation) -> Mapping[str, Any]:
    """The `_meta["toolwright/error"]` of the result; empty where there is none."""
    result = call.result if isinstance(call.result, Mapping) else {}
    meta = result.get("_meta")
    said = meta.get("toolwright/error") if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}


def _find_host(call: Invocation) -> str:
    """The host of the last request, with its port where it is not the scheme's own."""
    request = call.exchanges[-1].get("request") if call.exchanges else None
    url = request.get("url") if isinstance(request, Mapping) else None
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
        return f"{parts.hostname or ''}{port}"[:300]
    except ValueError:
        return ""
