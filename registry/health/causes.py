"""Why a call failed, and what could be done about it: rules over what was stored of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from registry.records import Failed, Invocation
from sandbox.bundle import ToolDefinition

CauseKind = Literal["input", "credential", "rate limit", "outage", "drift", "bug", "interruption"]
Repair = Literal["", "rate", "widen", "recompile", "code"]

TEXT = 300
_INTERRUPTED = {
    "frozen": "Toolwright was frozen",
    "cancelled": "its client cancelled it",
    "engine": "no engine could run it",
    "captured": "it waits for a person",
}


@dataclass(frozen=True)
class Cause:
    """Whose fault a failure is. `reason` says so in words, `repair` is what may mend it ("" for
    what no change of the server does), `where` the place in the answer, `host` the API's.
    """

    kind: CauseKind
    reason: str
    repair: Repair = ""
    where: str = ""
    host: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.reason}"


def cause_of(call: Invocation, tool: ToolDefinition | None = None) -> Cause | None:
    """The cause of a finished call's failure; None for one that succeeded or has not ended.

    `tool` is the definition that it was called by; without it less is certain.
    """
    if call.disputed:
        return Cause("bug", "a person marked its result wrong", "code")
    failure = call.failure
    if call.state != "done" or failure is None:
        return None
    if failure.kind in _INTERRUPTED:
        return Cause("interruption", _INTERRUPTED[failure.kind])
    if failure.kind == "http":
        return _of_status(call, failure, tool)
    rule = _RULES.get(failure.kind, _of_bug)
    return rule(call, failure)


def _of_status(call: Invocation, failure: Failed, tool: ToolDefinition | None) -> Cause:
    status, host = failure.status or 0, _host(call)
    if status == 429:
        return _of_rate(call, failure)
    if status in (401, 403, 407):
        return Cause("credential", f"the API answered {status}", host=host)
    if status >= 500 or status == 408:
        return Cause("outage", f"the API answered {status}", host=host)
    moved = status in (405, 410) or (300 <= status < 400)
    # Nothing that the caller chose is in such a path, or in an empty call.
    fixed = tool is not None and bool(tool.path) and "{" not in tool.path
    if moved or (status == 404 and fixed):
        reason = f"the API answers {status} where its description has an operation"
        return Cause("drift", reason, "recompile", host=host)
    if status in (400, 415, 422) and tool is not None and not call.arguments:
        reason = f"the API answers {status} to what its description allows"
        return Cause("drift", reason, "recompile", host=host)
    return Cause("input", f"the API answered {status} to these arguments", host=host)


def _of_rate(call: Invocation, failure: Failed) -> Cause:
    host = _host(call)
    return Cause("rate limit", f"{host or 'the API'} refuses so many requests", "rate", host=host)


def _of_schema(call: Invocation, failure: Failed) -> Cause:
    where = _told(call).get("where")
    place = where[:TEXT] if isinstance(where, str) else ""
    reason = f"its answer at {place or '/'} is not what is documented: {failure.message}"
    return Cause("drift", reason[:TEXT], "widen", place, _host(call))


def _of_malformed(call: Invocation, failure: Failed) -> Cause:
    return Cause("drift", "its answer is not of the documented form", "recompile", "", _host(call))


def _of_definitions(call: Invocation, failure: Failed) -> Cause:
    return Cause("drift", failure.message[:TEXT])


def _of_refusal(call: Invocation, failure: Failed) -> Cause:
    last = call.exchanges[-1] if call.exchanges else {}
    reason = str(last.get("reason") or failure.message)
    if "redirected" in reason and "undeclared" in reason:
        return Cause("drift", reason[:TEXT], "recompile", "", _host(call))
    if "credential" in reason or "secret" in reason:
        return Cause("credential", reason[:TEXT], host=_host(call))
    return Cause("bug", reason[:TEXT], "code", host=_host(call))


def _of_timeout(call: Invocation, failure: Failed) -> Cause:
    last = call.exchanges[-1] if call.exchanges else {}
    if last.get("refusal") == "timeout" and last.get("attempts") == 0:
        return Cause("rate limit", str(last.get("reason"))[:TEXT], host=_host(call))
    return Cause("outage", "the API gave no answer in time", host=_host(call))


def _of_outage(call: Invocation, failure: Failed) -> Cause:
    return Cause("outage", failure.message[:TEXT], host=_host(call))


def _of_arguments(call: Invocation, failure: Failed) -> Cause:
    return Cause("input", failure.message[:TEXT])


def _of_size(call: Invocation, failure: Failed) -> Cause:
    return Cause("input", f"it asks for more than is taken: {failure.message}"[:TEXT])


def _of_credential(call: Invocation, failure: Failed) -> Cause:
    status = f"the API answered {failure.status}" if failure.status else failure.message[:TEXT]
    return Cause("credential", status, host=_host(call))


def _of_bug(call: Invocation, failure: Failed) -> Cause:
    return Cause("bug", f"{failure.kind}: {failure.message}"[:TEXT], "code", host=_host(call))


_RULES = {
    "arguments": _of_arguments,
    "tool": _of_arguments,
    "credential": _of_credential,
    "rate_limited": _of_rate,
    "schema": _of_schema,
    "malformed": _of_malformed,
    "drift": _of_definitions,
    "refused": _of_refusal,
    "timeout": _of_timeout,
    "unreachable": _of_outage,
    "too_large": _of_size,
}


def _told(call: Invocation) -> Mapping[str, Any]:
    """What the runtime or the host said of the failure."""
    result = call.result if isinstance(call.result, Mapping) else {}
    meta = result.get("_meta")
    said = meta.get("toolwright/error") if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}


def _host(call: Invocation) -> str:
    """The host of the last request, with its port where it is not the scheme's own."""
    request = call.exchanges[-1].get("request") if call.exchanges else None
    url = request.get("url") if isinstance(request, Mapping) else None
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
        return f"{parts.hostname or ''}{port}"[:300]
    except ValueError:
        return ""
