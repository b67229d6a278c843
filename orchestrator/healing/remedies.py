"""Repairs that need no model: a slower pace, a wider answer schema, or recompiling the description.
Each builds a bundle and, where possible, the case that the previous bundle fails.

Each makes a bundle and, where one can be made, the case that the bundle before it fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from forge.compiler.widening import WideningRefused, widen_for_answer
from orchestrator.errors import NoRemedy
from orchestrator.healing.losses import describe_changes
from registry.health.causes import Cause
from registry.health.rates import SentRequest, learn_rate
from registry.models import Invocation
from sandbox.bundle.model import Bundle
from sandbox.bundle.ratelimit import Pace, add_slower_pace
from sandbox.session.recorded_case import RecordedCase, is_storable
from sandbox.session.recording import CallRecording
from sandbox.wire.exchange import Exchange
from sandbox.wire.policy import list_granted_hosts

MANY = 3
"""Calls beyond a limit that its case makes."""


@dataclass(frozen=True)
class Remedy:
    """A changed bundle, what was changed in words, and the case that the one before it fails;
    whether that case is a `lasting` one, which later versions have to pass as well.
    """

    bundle: Bundle
    told: str
    case: RecordedCase | None = None
    lasting: bool = True


@dataclass(frozen=True)
class FailedCall:
    """A call that failed, with its cause and what it took in where that is kept."""

    call: Invocation
    cause: Cause
    recording: CallRecording | None


def build_pace_remedy(bundle: Bundle, failing: FailedCall, calls: Iterable[Invocation]) -> Remedy:
    """The bundle with the rate that its API's refusals in these calls teach. Raises NoRemedy."""
    host = _find_granted_host(bundle, failing.cause.host)
    known = [pace.per_second for pace in bundle.paces if pace.host == host]
    calls = tuple(calls)
    own = (call for call in calls if call.version == failing.call.version)
    rate = learn_rate(_list_sent(own, failing.cause.host), min(known, default=float("inf")))
    if rate is None:
        raise NoRemedy("its refusals teach no rate: too few of them, or nothing was taken between")
    try:
        pace = Pace(host, rate.requests, rate.per)
        limit = Pace(host, rate.limit, rate.per)
    except ValueError as error:
        raise NoRemedy(f"{error}; that is an outage rather than a rate") from error
    made = replace(bundle, paces=add_slower_pace(bundle.paces, pace))
    if made == bundle:
        raise NoRemedy("it keeps to a slower rate already")
    call = failing.call
    case = RecordedCase(
        name=f"more than {limit} at once",
        tool=call.tool,
        arguments=call.arguments,
        exchanges=tuple(_find_answers(calls, call)),
        limit=limit,
        calls=limit.requests + MANY,
    )
    return Remedy(made, f"learned to ask at most {pace}", case)


def build_widening_remedy(bundle: Bundle, failing: FailedCall) -> Remedy:
    """The bundle whose tool takes the answer that broke its schema. Raises NoRemedy."""
    call, recording = failing.call, failing.recording
    answers = [e for e in recording.exchanges if e.response] if recording else []
    if recording is None or not answers or (bundle.get_tool(call.tool).paging and len(answers) > 1):
        raise NoRemedy("the answer that broke its schema is not kept")
    case = RecordedCase(
        f"what {call.tool} was answered in {call.id}",
        call.tool,
        recording.arguments,
        recording.exchanges,
    )
    try:
        made = widen_for_answer(bundle, call.tool, _parse_structured(answers[-1]))
    except WideningRefused as error:
        raise NoRemedy(str(error)) from error
    except (ValueError, KeyError) as error:
        raise NoRemedy(f"its answer cannot be taken as it is: {error}") from error
    if not is_storable(case):
        raise NoRemedy("the answer that broke its schema is too large to be kept as a case")
    new = [str(one) for one in made.widened if one not in bundle.widened]
    return Remedy(made, "widened by what was answered: " + "; ".join(new), case)


def build_recompile_remedy(bundle: Bundle, fresh: Bundle, failing: FailedCall | None) -> Remedy:
    """The bundle of the refreshed description, where it is another. Raises NoRemedy.

    Its case is that the place which the call asked for in vain is gone.
    """
    if _has_same_tools(bundle, fresh):
        raise NoRemedy("its API's description says what it said before")
    case = None
    if failing and failing.recording and failing.recording.exchanges:
        call = failing.call
        case = RecordedCase(
            f"{call.tool} where {call.id} failed",
            call.tool,
            failing.recording.arguments,
            failing.recording.exchanges,
        )
    told = _render_difference(bundle, fresh)
    return Remedy(fresh, f"compiled again from its API's description: {told}", case, lasting=False)


def _has_same_tools(bundle: Bundle, fresh: Bundle) -> bool:
    return (bundle.tools, bundle.source_code) == (fresh.tools, fresh.source_code)


def _render_difference(bundle: Bundle, fresh: Bundle) -> str:
    if changes := describe_changes(bundle, fresh):
        return "; ".join(changes[:5])
    before = {tool.name: tool for tool in bundle.tools}
    after = {tool.name: tool for tool in fresh.tools}
    parts = {
        "changed": [n for n in after if n in before and after[n] != before[n]],
        "new": [n for n in after if n not in before],
        "gone": [n for n in before if n not in after],
    }
    told = [f"{word} {', '.join(names[:5])}" for word, names in parts.items() if names]
    return "; ".join(told) or "its code"


def _find_granted_host(bundle: Bundle, host: str) -> str:
    """The host as the bundle's permissions name it. Raises NoRemedy."""
    hosts = list_granted_hosts(bundle)
    bare = host.rpartition(":")[0] or host
    for name in (host, bare):
        if name and name in hosts:
            return name
    for name in hosts:
        if host and name.rpartition(":")[0] == host:
            return name
    raise NoRemedy(f"{host or 'its host'} is none that it declares")


def _list_sent(calls: Iterable[Invocation], host: str) -> Iterator[SentRequest]:
    """When requests left for a host, and whether they were taken: of those that were tried again,
    all but the last were not.
    """
    for call in calls:
        for exchange in call.exchanges:
            request, response = exchange.get("request"), exchange.get("response")
            if not isinstance(request, Mapping) or _parse_host(request.get("url")) != host:
                continue
            times = exchange.get("sent_at") or ()
            yield from (SentRequest(float(at), False) for at in times[:-1])
            if isinstance(response, Mapping):
                taken = response.get("status") != 429
                yield from (SentRequest(float(at), taken) for at in times[-1:])


def _parse_host(url: Any) -> str:
    try:
        parts = urlsplit(str(url))
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
        return f"{parts.hostname or ''}{port}"
    except ValueError:
        return ""


def _find_answers(calls: Iterable[Invocation], like: Invocation) -> Iterator[Exchange]:
    """What the same call was answered when it succeeded, where its recording is at hand."""
    for call in calls:
        same = call.tool == like.tool and call.arguments == like.arguments
        if same and call.succeeded and call.recording:
            yield from call.recording.exchanges
            return


def _parse_structured(exchange: Exchange) -> Mapping[str, Any]:
    """The structured content that a compiled tool makes of an answer. Raises ValueError."""
    assert exchange.response is not None
    body = json.loads(exchange.response.body)
    return {"status": exchange.response.status, "body": body}
