"""The decision what becomes of a task in words: act, ask, extend a server, make one, or nothing.

Pure: it reads codes and figures, never sentences. Every condition that is not met is a reason, and
one reason is enough not to act; a write is never done on words alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from orchestrator.settings import DecisionBands
from orchestrator.tasks.model import Reading, Strategy
from orchestrator.tasks.routing.kinds import TaskIntent
from registry.models import EntryState, Route
from registry.trust import Level
from sandbox.bundle.apispec import Access

DecisionKind = Literal["act", "confirm", "choose", "adapt", "forge", "answer"]
"""`act`: the call is made. `confirm`: one question with the filled call. `choose`: candidates with
their schemas, none of them allowed. `adapt`: `server` is extended as its next version. `forge`: a
server is made. `answer`: there is nothing to do.
"""
Reason = Literal[
    "advice",
    "remark",
    "creation",
    "uncertain_intent",
    "deictic",
    "words_write",
    "no_candidate",
    "below_forge",
    "below_confirm",
    "below_act",
    "words_only",
    "unnamed_words",
    "near_tie",
    "veto",
    "writes",
    "inactive",
    "untrusted",
    "experimental",
    "third_party",
    "from_prose",
    "incomplete",
    "invalid",
    "unused_values",
    "doubtful_value",
    "example_value",
    "memory_value",
    "carried_value",
    "same_api",
    "other_api",
    "near_match",
]

PROVEN: frozenset[Level] = frozenset({"standard", "trusted"})
"""Levels of servers whose calls have come out well."""


@dataclass(frozen=True)
class Candidate:
    """What is known of the first match, beside how well it fits.

    `from_prose`: a model read its API's documentation. `made_by_run`: this very run forged it.
    `extensible`: its server can get a next version (a third party's cannot). `carries`: an argument
    holds a value of another origin's result, and no signed rule allows that flow. `unnamed` are
    words of the task that none of its identifiers has, `is_named` says that there are none and that
    the task says its whole name (`orchestrator.tasks.routing.naming`).
    """

    server: str
    tool: str
    access: Access
    state: EntryState
    level: Level
    third_party: bool = False
    from_prose: bool = False
    made_by_run: bool = False
    extensible: bool = True
    carries: bool = False
    unnamed: tuple[str, ...] = ()
    is_named: bool = False


@dataclass(frozen=True)
class RoutingDecision:
    """What is done, and the codes of why not more. `server` is the one that `adapt` extends;
    `strategy` is the run's.
    """

    kind: DecisionKind
    reasons: tuple[Reason, ...] = ()
    server: str = ""
    strategy: Strategy = "single"


def decide(
    route: Route,
    candidate: Candidate | None,
    reading: Reading,
    intent: TaskIntent,
    bands: DecisionBands,
    *,
    margin: float,
    same_api: str = "",
) -> RoutingDecision:
    """What becomes of a step. `candidate` is the route's first match, `reading` its arguments,
    `same_api` the registered server of the API that the task names, "" where it names none.
    """
    if intent.kind in ("advice", "remark"):
        return _decide_nothing(route, candidate, intent, bands)
    if intent.kind == "creation" and intent.certain:
        return _decide_creation(route, candidate, bands, same_api)
    if candidate is None or not route.matches:
        return _decide_missing("no_candidate", intent, same_api)
    if not route.probability >= bands.forge:
        return _decide_missing("below_forge", intent, same_api)
    reasons = (
        *list_objections(route, candidate, reading, intent, bands, margin=margin),
        *_object_to_api(candidate, same_api),
    )
    if not reasons:
        return RoutingDecision("act")
    if same_api and "below_confirm" in reasons and intent.certain:
        return RoutingDecision("adapt", ("same_api", *reasons), same_api, "adapt")
    unclear = _UNCLEAR & {*reasons}
    if candidate.is_named and reading.evidence and reading.is_complete:
        # The words say its whole name and a value of its own: that is worth one plain question.
        unclear -= {"below_confirm"}
    return RoutingDecision("choose" if unclear else "confirm", reasons)


_UNCLEAR: frozenset[Reason] = frozenset(
    {"below_confirm", "near_tie", "veto", "inactive", "creation", "other_api"}
)
"""Reasons for which it is not clear which tool is meant, or whether one is."""


def list_objections(
    route: Route,
    candidate: Candidate,
    reading: Reading,
    intent: TaskIntent,
    bands: DecisionBands,
    *,
    margin: float,
) -> Iterator[Reason]:
    """Why a call is not simply made; nothing where it may be."""
    yield from _object_to_intent(intent, candidate, reading)
    yield from _object_to_match(route, candidate, reading, bands, margin)
    yield from _object_to_candidate(candidate)
    yield from _object_to_arguments(reading, candidate)


def _object_to_intent(
    intent: TaskIntent, candidate: Candidate, reading: Reading
) -> Iterator[Reason]:
    if intent.kind == "creation":
        yield "creation"
    elif intent.kind != "command" or not (intent.certain or _is_terse(intent, candidate, reading)):
        yield "uncertain_intent"
    if intent.access == "write":
        yield "words_write"


def _is_terse(intent: TaskIntent, candidate: Candidate, reading: Reading) -> bool:
    """Whether words without a verb say all of a call (`status of flight SK401`), or ask for a list
    (`all the berths please`).
    """
    asks = bool(reading.evidence) if intent.reason == "terse" else intent.reason == "listing"
    return candidate.is_named and asks


def _object_to_match(
    route: Route, candidate: Candidate, reading: Reading, bands: DecisionBands, margin: float
) -> Iterator[Reason]:
    # Comparisons that also fail for NaN: what cannot be told is never enough.
    if not (route.probability >= bands.confirm or _says_all(candidate, reading)):
        yield "below_confirm"
    elif not (route.probability >= bands.act or candidate.is_named):
        # Who says the whole name of a tool, and nothing that is not its own, means that one: P is
        # of words that may stand anywhere in a tool's texts.
        yield "below_act"
    if candidate.unnamed:
        yield "unnamed_words"
    if not (route.by_meaning or candidate.is_named):
        yield "words_only"
    if not margin >= bands.margin:
        yield "near_tie"
    if route.vetoes:
        yield "veto"


def _says_all(candidate: Candidate, reading: Reading) -> bool:
    """Whether a task says a tool's whole name, values of its own and nothing else: that is the one
    meant, however little the words come to beside the rest of its texts.
    """
    whole = reading.is_complete and not (reading.unused or reading.doubtful)
    return candidate.is_named and whole and bool(reading.evidence)


def _object_to_candidate(candidate: Candidate) -> Iterator[Reason]:
    if candidate.access != "read":
        yield "writes"
    if candidate.state == "experimental" or candidate.level == "experimental":
        yield "experimental"
    elif candidate.state != "active":
        yield "inactive"
    # A new server has passed its tests, and whoever says a tool's whole name means that one.
    is_meant = candidate.made_by_run or candidate.is_named
    if not (candidate.level in PROVEN or (is_meant and candidate.level == "probationary")):
        yield "untrusted"
    if candidate.third_party:
        yield "third_party"
    if candidate.from_prose:
        yield "from_prose"


def _object_to_arguments(reading: Reading, candidate: Candidate) -> Iterator[Reason]:
    if reading.missing:
        yield "incomplete"
    if reading.problem:
        yield "invalid"
    if reading.unused:
        yield "unused_values"
    if reading.doubtful:
        yield "doubtful_value"
    origins = {*reading.origins.values()}
    if "example" in origins:
        yield "example_value"
    if "memory" in origins:
        yield "memory_value"
    if candidate.carries:
        yield "carried_value"


def _object_to_api(candidate: Candidate, same_api: str) -> Iterator[Reason]:
    if same_api and same_api != candidate.server:
        yield "other_api"


def _decide_nothing(
    route: Route, candidate: Candidate | None, intent: TaskIntent, bands: DecisionBands
) -> RoutingDecision:
    """Words that ask for nothing: what fits them well is shown, and nothing is done."""
    reason: Reason = "advice" if intent.kind == "advice" else "remark"
    near = candidate is not None and route.matches and route.probability >= bands.confirm
    return RoutingDecision("choose" if near else "answer", (reason,))


def _decide_creation(
    route: Route, candidate: Candidate | None, bands: DecisionBands, same_api: str
) -> RoutingDecision:
    """A tool is to be made: of an API that has a server by extending that, so that there is no
    twin.
    """
    if same_api:
        return RoutingDecision("adapt", ("creation", "same_api"), same_api, "adapt")
    near = candidate is not None and candidate.extensible and candidate.state in _EXTENDED
    if candidate is not None and near and route.matches and route.probability >= bands.adapt:
        return RoutingDecision("adapt", ("creation", "near_match"), candidate.server, "adapt")
    return RoutingDecision("forge", ("creation",), "", "forced")


_EXTENDED: tuple[EntryState, ...] = ("active", "experimental")


def _decide_missing(reason: Reason, intent: TaskIntent, same_api: str) -> RoutingDecision:
    """Nothing fits: a server is extended or made, once it is certain that it is wanted."""
    if intent.reason == "deictic":
        # Words that only point at something say nothing that a server could be made for.
        return RoutingDecision("answer", ("deictic", reason))
    if not intent.certain:
        return RoutingDecision("choose", ("uncertain_intent", reason))
    if same_api:
        return RoutingDecision("adapt", ("same_api", reason), same_api, "adapt")
    return RoutingDecision("forge", (reason,))
