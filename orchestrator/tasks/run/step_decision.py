"""Decisions about the steps of a run: a tool is called, proposed, chosen by others, or made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from forge.addresses import find_locations
from orchestrator.tasks.model import Reading
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.planning.lookup import find_noun
from orchestrator.tasks.planning.ranking import find_ranking
from orchestrator.tasks.planning.split import find_order
from orchestrator.tasks.reading.foreign import write_plainly
from orchestrator.tasks.routing.decision import (
    Candidate,
    DecisionKind,
    Reason,
    RoutingDecision,
    decide,
)
from orchestrator.tasks.routing.intent import classify_task
from orchestrator.tasks.routing.kinds import IntentReason, TaskIntent
from orchestrator.tasks.routing.naming import Naming, list_identifiers, name_words, strip_values
from orchestrator.tasks.routing.words import POLITE, READING_VERBS, WRITING_VERBS
from orchestrator.tasks.run.lookups import find_named_lookup, read_by_name
from orchestrator.tasks.run.restrictions import is_prose
from orchestrator.tasks.run.task_words import plain_words, read_words, strip_addresses
from orchestrator.tasks.suggestions import Routed, Suggestion
from registry.models import CALLABLE, Route, ToolMatch
from registry.search.words import VERBS, parse_query, split_words, stem_word
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import ToolDefinition
from sandbox.wire.policy import parse_origin

ToolKey = tuple[str, str]
"""A server's name and its tool's."""
LEAST_FOUND = 0.1
"""P of a tool that the search put behind another, where its own words say less."""


@dataclass(frozen=True)
class StepDecision:
    """What becomes of a step: the rules' decision, the `tool` where it names one, and the
    candidates as a question shows them. `looks_up`: nothing but that it writes stands against the
    call, and an id that the task says by a name may be looked up unasked.
    """

    decision: RoutingDecision
    tool: str
    candidates: tuple[Mapping[str, Any], ...]
    reading: Reading
    looks_up: bool = False


def asks_for_more(request: Mapping[str, Any]) -> bool:
    """Whether a forge's task says what is to be done with the server, and not only that it is to be
    there.
    """
    intent = classify_task(find_order(strip_addresses(str(request.get("task", "")))))
    return intent.kind == "command" and intent.certain


def decide_step(
    parts: TaskParts, task: str, routed: Routed, made: Sequence[str], source: str
) -> StepDecision:
    """What becomes of a step that nobody named a tool for. `made` are servers that this run made
    for it, which come first; `source` is where the caller said that its API is.
    """
    words = strip_addresses(task)
    intent = classify_task(words)
    if not any(_COUNTS & {*split_words(each.match.tool)} for each in routed.found):
        words = plain_words(task)
    matches = routed.route.matches or (None,)
    found = [each for each in routed.found if each.match.entry in made]
    found = found or ([] if made else list(routed.found))
    same_api, is_foreign = _find_named_api(parts.suggestions.store, task, source, found)
    if is_foreign and not made:
        found = []
    asks = _asks_to_read(intent)
    if asks and found and not any(each.access == "read" for each in found):
        found = [*_list_readers(parts, found), *found]
    found = order_by_access(found, intent)
    readings = {_get_key(each): _read_for(parts, task, each) for each in found}
    names = {_get_key(each): _name_for(parts, words, each, readings) for each in found}
    # What asks to read is done by no write, so none is a rival.
    writing = {_get_key(each) for each in routed.found if each.access != "read"}
    ruled_out = writing if asks else set()
    if found and made:
        ruled_out |= {_get_key(each) for each in routed.found} - readings.keys()
    found = prefer_fitting(found, readings, names, _list_ranking(parts, words, found))
    if _orders_write(intent):
        found = prefer_ordered(found, readings, names)
    route = replace(routed.route, matches=tuple(each.match for each in found))
    first = found[0] if found else None
    reading, candidate, said = Reading(), None, words
    if first is not None:
        tool = parts.roster.find_tool(first.match.entry, first.match.tool)
        reading, naming = readings[_get_key(first)], names[_get_key(first)]
        candidate = replace(
            _describe_candidate(parts, first, made),
            unnamed=naming.unnamed,
            is_named=naming.is_whole,
        )
        said = write_plainly(words, list_identifiers(tool, first.match.entry, first.match.title))
        ranking = find_ranking(said, tool)
        said = ranking.words if ranking is not None else said
        if asks:
            tools = parts.roster.get_server(first.match.entry).tools.values()
            ruled_out |= {(first.match.entry, t.name) for t in tools if t.access != "read"}
        if naming.is_whole and {*VERBS["update"].split()} & {*split_words(tool.name)}:
            # `make ticket 12 urgent` makes no ticket.
            said = _MAKE.sub("set", said)
        if naming.is_whole:
            # What has no word for a part of the task, or says more than it, is no rival of what has
            # one for all of it.
            says_value = asks and bool(reading.evidence)
            ruled_out |= {
                key
                for key, each in names.items()
                if each.unnamed or (says_value and not each.is_whole)
            }
        route = _judge_first(parts, said, route, matches[0], first, tool, readings, ruled_out)
    decision = decide(
        route, candidate, reading, intent, parts.bands, margin=route.margin, same_api=same_api
    )
    if decision.reasons == ("below_forge",):
        decision, found = _prefer_whole(decision, found, readings, names)
        first = found[0] if found else None
    if decision.kind in ("choose", "forge", "adapt") and made:
        # What was made for the step is taken or chosen from; nothing is made for it again.
        clear = reading.is_complete and route.margin >= parts.bands.margin
        decision = RoutingDecision("confirm" if clear else "choose", decision.reasons)
    named = decision.kind in ("act", "confirm") and first is not None
    name = f"{first.match.entry}.{first.match.tool}" if named and first else ""
    if decision.kind == "confirm" and may_be_write(said, intent, found, name):
        decision, name, named = RoutingDecision("choose", decision.reasons), "", False
    meant = _list_meant(parts, words, first) if named and first else []
    if meant:
        decision, name, named = RoutingDecision("choose", ("veto",)), "", False
        known = {_get_key(each) for each in meant}
        found = [*meant, *(each for each in found if _get_key(each) not in known)]
    looks_up = named and {*decision.reasons} <= _WRITING
    shown = tuple(each.to_json() for each in order_shown(found, intent))
    return StepDecision(decision, name, shown, reading, looks_up)


def _asks_to_read(intent: TaskIntent) -> bool:
    reads = intent.kind == "command" and intent.access == "read"
    return reads or intent.reason in _ASKING


def _list_readers(parts: TaskParts, found: Sequence[Suggestion]) -> Iterator[Suggestion]:
    """The reads that give one of what the tools found would change: `get_customer` beside
    `update_customer`, which the search knows the email of.
    """
    known: set[ToolKey] = set()
    for each in found:
        tools = parts.roster.get_server(each.match.entry).tools
        noun = find_noun(each.match.tool)
        for tool in tools.values():
            key = (each.match.entry, tool.name)
            one = tool.access == "read" and tool.input_schema.get("required")
            if one and noun and find_noun(tool.name) == noun and key not in known:
                known.add(key)
                yield _turn_to(parts, each, tool)


def _turn_to(parts: TaskParts, each: Suggestion, tool: ToolDefinition) -> Suggestion:
    """Another tool of a candidate's server, as it is listed."""
    listed = parts.roster.get_server(each.match.entry).entry.get_tool(tool.name)
    match = replace(
        each.match,
        tool=tool.name,
        description=tool.description,
        group=listed.group,
        listed=listed.listed,
        access=listed.access,
        self_evident=listed.self_evident,
    )
    return replace(each, match=match, access=tool.access)


def _prefer_whole(
    decision: RoutingDecision,
    found: Sequence[Suggestion],
    readings: Mapping[ToolKey, Reading],
    names: Mapping[ToolKey, Naming],
) -> tuple[RoutingDecision, list[Suggestion]]:
    """What becomes of words that no tool's texts are near to, though some take all that they say
    and have words for all of it: the one of them is proposed, of several one is chosen. A write
    takes what is changed and what it becomes.
    """
    whole = [
        each
        for each in found
        if is_whole(readings[_get_key(each)])
        and len(readings[_get_key(each)].evidence) > (each.access != "read")
        and not names[_get_key(each)].unnamed
    ]
    if not whole:
        return decision, list(found)
    kind: DecisionKind = "confirm" if len(whole) == 1 else "choose"
    return (
        RoutingDecision(kind, decision.reasons),
        [*whole, *(each for each in found if each not in whole)],
    )


_MAKE = re.compile(r"\Amake\b(?!\s+(?:an?|another|new|some)\b)", re.IGNORECASE)
_WRITING: frozenset[Reason] = frozenset({"writes", "words_write"})


def order_by_access(found: Sequence[Suggestion], intent: TaskIntent) -> list[Suggestion]:
    """The candidates with those that read first where the words ask to read; a question is never
    answered with a write.
    """
    if intent.kind != "command" or intent.access != "read":
        return list(found)
    reads = [each for each in found if each.access == "read"]
    if intent.reason in _ASKING:
        return reads
    return [*reads, *(each for each in found if each.access != "read")]


def order_shown(found: Sequence[Suggestion], intent: TaskIntent) -> list[Suggestion]:
    """The candidates as a question lists them: those of the first's server that write first where
    the words plainly order a write, since the first is what an answer is likely to name.
    """
    if not found or not _orders_write(intent):
        return list(found)
    server = found[0].match.entry
    return sorted(found, key=lambda each: each.access == "read" or each.match.entry != server)


def _orders_write(intent: TaskIntent) -> bool:
    return intent.kind == "command" and intent.certain and intent.access == "write"


def may_be_write(task: str, intent: TaskIntent, found: Sequence[Suggestion], tool: str) -> bool:
    """Whether a read would be proposed for words that plainly order a write, by a verb that is none
    of its name (`close ticket 12` for `get_ticket`), though its server has tools that write.
    """
    chosen = next((e for e in found if f"{e.match.entry}.{e.match.tool}" == tool), None)
    if chosen is None or chosen.access != "read":
        return False
    ordered = {stem_word(word) for word in split_words(task) if word in WRITING_VERBS}
    if ordered & {stem_word(word) for word in split_words(chosen.match.tool)}:
        return False
    return _orders_write(intent) and any(
        each.access != "read" and each.match.entry == chosen.match.entry for each in found
    )


def _list_meant(parts: TaskParts, words: str, first: Suggestion) -> list[Suggestion]:
    """The tools of a read's server that have the verb in their name with which a task begins, and
    the read has not: writes, since who says `return loan 1` may have it brought back by
    `return_loan`, and a search, since `search for Book 1` may mean what is called so.
    """
    if first.access != "read":
        return []
    said = [word for word in split_words(words) if word not in POLITE][:1]
    verb = stem_word(said[0]) if said and said[0] not in _SHOWING - {"search"} else ""
    own = {stem_word(word) for word in split_words(first.match.tool)}
    if not verb or said[0] not in READING_VERBS or verb in own:
        return []
    access = "read" if said[0] == "search" else "write"
    return [
        _turn_to(parts, first, tool)
        for tool in parts.roster.get_server(first.match.entry).tools.values()
        if tool.access == access and verb in {stem_word(word) for word in split_words(tool.name)}
    ]


_SHOWING = frozenset(f"{VERBS['read']} {VERBS['search']} give tell".split())
_ASKING: frozenset[IntentReason] = frozenset({"question", "deictic", "opinion"})


def prefer_fitting(
    found: Sequence[Suggestion],
    readings: Mapping[ToolKey, Reading],
    names: Mapping[ToolKey, Naming] = {},
    ranking: Set[ToolKey] = frozenset(),
) -> list[Suggestion]:
    """The candidates, led by the one of the first's server that takes what the task says, where the
    first has no place for it and just one other has, or one of them that the task names whole; or
    by the one that the task names whole and of several and that needs nothing, where it says
    nothing of what the first needs. Also a list takes it whose rows a superlative of the task
    ranks (`ranking`).
    """
    if not found:
        return []
    own = readings[_get_key(found[0])]
    unsaid = bool(own.missing) and not (own.evidence or own.unused)
    if not (own.unused or unsaid):
        return list(found)
    fitting = [
        each
        for each in found[1:]
        if each.access == "read" == found[0].access
        and (reading := readings.get(_get_key(each))) is not None
        and is_whole(reading)
        and each.match.entry == found[0].match.entry
        and (
            names.get(_get_key(each), Naming()).is_many
            if unsaid
            else reading.evidence or _get_key(each) in ranking
        )
    ]
    if len(fitting) > 1:
        fitting = [each for each in fitting if names.get(_get_key(each), Naming()).is_whole]
    return _put_first(fitting, found)


def prefer_ordered(
    found: Sequence[Suggestion],
    readings: Mapping[ToolKey, Reading],
    names: Mapping[ToolKey, Naming],
) -> list[Suggestion]:
    """The candidates of an order to write, led by the only one of the first's server that takes all
    that the task says and that it names whole.
    """
    fitting = [
        each
        for each in found
        if each.access != "read"
        and each.match.entry == found[0].match.entry
        and is_whole(readings[_get_key(each)])
        and readings[_get_key(each)].evidence
        and names[_get_key(each)].is_whole
    ]
    return _put_first(fitting, found)


def _put_first(fitting: Sequence[Suggestion], found: Sequence[Suggestion]) -> list[Suggestion]:
    """The candidates, led by the one that fits where it is just one."""
    if len(fitting) != 1:
        return list(found)
    return [*fitting, *(each for each in found if each is not fitting[0])]


def _list_ranking(parts: TaskParts, words: str, found: Sequence[Suggestion]) -> frozenset[ToolKey]:
    """The candidates that list what a superlative of the task is said of."""
    keys = map(_get_key, found)
    return frozenset(key for key in keys if find_ranking(words, parts.roster.find_tool(*key)))


def is_whole(reading: Reading) -> bool:
    """Whether a tool takes all that the task says, and needs nothing else."""
    return reading.is_complete and not reading.unused


def _judge_first(
    parts: TaskParts,
    words: str,
    route: Route,
    found: ToolMatch | None,
    first: Suggestion,
    tool: ToolDefinition,
    readings: Mapping[ToolKey, Reading],
    others: Set[ToolKey],
) -> Route:
    """The route with how sure the first is once its arguments are read: their values are no words
    that it would have to be about, and tools that have no place for them no rivals.
    """
    reading = readings[_get_key(first)]
    if not is_whole(reading):
        return route
    known = list_identifiers(tool, first.match.entry, first.match.title)
    ruled_out = others | {key for key, each in readings.items() if not is_whole(each)}
    left = strip_values(words, reading, known)
    judged = parts.suggestions.store.search.judge(left, *_get_key(first), ruled_out)
    # Words without their values may be too few to find anything by, which says nothing of the rest.
    least = route.probability if first.match == found else min(route.probability, LEAST_FOUND)
    probability = max(judged.probability, least)
    margin = judged.margin
    if not parse_query(left).terms and ruled_out >= readings.keys() - {_get_key(first)}:
        # Nothing is said but values, and no other takes them: `100 EUR in USD`.
        margin = 1.0
    return replace(route, probability=probability, margin=margin, vetoes=judged.vetoes)


def _get_key(each: Suggestion) -> ToolKey:
    return each.match.entry, each.match.tool


def _read_for(parts: TaskParts, task: str, each: Suggestion) -> Reading:
    tool = parts.roster.find_tool(*_get_key(each))
    reading = read_words(task, tool, {}, f"{each.match.entry} {each.match.title}")
    words = plain_words(task, tool, f"{each.match.entry} {each.match.title}")
    named = find_named_lookup(parts, words, each.match.entry, tool, reading)
    return reading if named is None or named.said.is_loose else read_by_name(reading, named)


def _name_for(
    parts: TaskParts, words: str, each: Suggestion, readings: Mapping[ToolKey, Reading]
) -> Naming:
    tool = parts.roster.find_tool(*_get_key(each))
    words = write_plainly(words, list_identifiers(tool, each.match.entry, each.match.title))
    ranking = find_ranking(words, tool)
    words = ranking.words if ranking is not None else words
    return name_words(words, tool, each.match.entry, each.match.title, readings[_get_key(each)])


def _find_named_api(
    store: Store, task: str, source: str, found: Sequence[Suggestion]
) -> tuple[str, bool]:
    """The registered server of the API that the task or the caller gives the URL of, "" for none;
    and whether a URL is given that is no registered server's.
    """
    given = [source, *(each for each in find_locations(task) if "://" in each)]
    wanted = {origin for each in given if (origin := parse_origin(each)) is not None}
    if not wanted:
        return "", False
    for entry in store.servers.find(CALLABLE):
        if wanted & {parse_origin(entry.base_url), parse_origin(entry.source)}:
            return entry.name, False
    # A URL may as well be what a tool is to be called with.
    takes = any("uri" in json.dumps(each.to_json()["inputSchema"]) for each in found[:1])
    return "", not takes


def _describe_candidate(parts: TaskParts, first: Suggestion, made: Sequence[str]) -> Candidate:
    member = parts.roster.get_server(first.match.entry)
    entry = member.entry
    return Candidate(
        server=entry.name,
        tool=first.match.tool,
        access=first.access,
        state=entry.state,
        level=first.standing.level,
        third_party=entry.created_by == AUTHOR,
        from_prose=is_prose(member.bundle),
        made_by_run=entry.name in made,
        extensible=entry.created_by != AUTHOR,
    )


_COUNTS = frozenset({"count", "total", "number"})
"""Words of the names of tools that say how many there are."""
