"""Results by reference: what is large is kept for its session and answered with its shape, a sample
and a handle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.calls import Call, Done
from orchestrator.errors import ReferenceRefused
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.results.paths import PathProblem, find_value
from orchestrator.results.references import (
    ANYWHERE,
    ResolvedArguments,
    describe_missing,
    find_flows,
    find_new_places,
    find_places,
    merge_sources,
    resolve_arguments,
)
from orchestrator.results.shape import (
    cut_bytes,
    cut_sample,
    cut_text,
    describe_shape,
    measure_json,
    write_json,
)
from registry.sessions.kept_results import (
    KeepLimits,
    KeptResult,
    KeptResultTable,
    MissingResult,
    ResultSource,
)
from sandbox import exactjson
from sandbox.bundle.apispec import Access
from sandbox.sanitize import clean_json
from sandbox.wire.content import clean_answer
from sandbox.wire.framing import measure_depth

ANSWER_BYTES = 4_500
"""The most bytes of what stands for a large result: 1,500 tokens by `shape.TOKEN_BYTES`."""
MAX_NESTING = 128
SHAPE_BYTES = 1_200
HEAD = ("state", "run", "answer_with", "approval", "why", "error")
HEAD_BYTES = 800
NOTE_LETTERS = 400
LEAD_LETTERS = 700
UNKNOWN = (ResultSource("", frozenset({ANYWHERE})),)
"""The source of what nobody can say where it is from."""
Result = dict[str, Any]


@dataclass(frozen=True)
class ResultKeeper:
    """Keeps and gives the large results of sessions. Its methods look at whole results: call them
    beside the event loop. `most_bytes` is the size of the JSON up to which a result is given
    whole, `lead_bytes` that of what is told beside what stands for it.
    """

    table: KeptResultTable
    get_server: Callable[[str], RegisteredServer]
    limits: KeepLimits
    most_bytes: int = 6_000
    lead_bytes: int = 0
    now: Callable[[], float] = time.time
    is_flow_allowed: Callable[[str, str], bool] = lambda source, target: False

    def resolve_references(self, call: Call, access: Access) -> Call:
        """The call with the values that references in its arguments stand for; recorded in the
        audit. A read that would take one server's answer to another's places is refused, a write
        that would do so says it in `flow`, unless a signed rule allows it. Raises ReferenceRefused.
        """
        now = self.now()
        found = self.look_up(call.session, call.arguments)
        if found.problems:
            raise ReferenceRefused(
                call.name, (f"{each.where}: {each.reason}" for each in found.problems)
            )
        if not found.used:
            return call
        places = find_places(call.server, self.get_server)
        flows = [
            flow
            for flow in find_flows(found, call.name, places)
            if not self.is_flow_allowed(flow.source, call.server)
        ]
        if flows and access == "read":
            told = f"{flows[0]}. Where the user wants that, give the value itself"
            raise ReferenceRefused(call.name, (told,))
        self.table.record_uses(call.name, found.used, now)
        sources = merge_sources(*(result.sources for result, _ in found.used))
        flow = "; ".join(map(str, flows[:5]))
        return replace(call, arguments=found.arguments, flow=flow, sources=sources)

    def look_up(self, session: str, arguments: Mapping[str, Any]) -> ResolvedArguments:
        """The arguments with what references to the session's results stand for, which may go
        nowhere yet; nothing is recorded.
        """
        now = self.now()
        return resolve_arguments(arguments, lambda handle: self.table.find(session, handle, now))

    def find_foreign_sources(
        self, sources: Iterable[ResultSource], target: str
    ) -> tuple[ResultSource, ...]:
        """Those of the sources whose values would get to new places with a call of the server
        `target`, and that no signed rule lets go there.
        """
        places = find_places(target, self.get_server)
        return tuple(
            source
            for source in sources
            if find_new_places(source, places) and not self.is_flow_allowed(source.server, target)
        )

    def shorten_reply(self, done: Done, result: Result) -> Result:
        """The result of a call as its session is given it. One without a session is given whole."""
        call = done.call
        sources = (*self.find_sources((call.server,)), *call.sources)
        return self.shorten_result(result, call.session, done.invocation, call.name, sources)

    def shorten_run(
        self,
        result: Result,
        session: str,
        job: str,
        tools: Iterable[str],
        *,
        answered: bool,
        leads: int = 0,
    ) -> Result:
        """The result of a task run, whose steps called these tools (`server.tool`), within an
        answer's size. Of one that was not `answered` by a tool, what says how to go on (HEAD) stays
        as it is. The results of a run without a session are kept under the run's own id. `leads` is
        the number of blocks before the answer, which say how it came about and stay.
        """
        names = tuple(tools)
        sources = self.find_sources(name.partition(".")[0] for name in names) or UNKNOWN
        blocks = list(result.get("content") or [])
        lead = [_cut_lead(block) for block in blocks[:leads]]
        most = min(self.most_bytes, ANSWER_BYTES)
        keeper = replace(self, most_bytes=most, lead_bytes=measure_json(lead) if lead else 0)
        tool = names[-1] if names else "do"
        bare = {**result, "content": blocks[leads:]}
        short = keeper.shorten_result(bare, session or job, job, tool, sources)
        if short is bare:
            return _cut_texts(result)
        short = {**short, "content": [*short["content"], *lead]}
        named = {} if session else {"session": job}
        told = {**short["structuredContent"], **named}
        if answered:
            return {**short, "structuredContent": told}
        given = result.get("structuredContent") or {}
        head = {name: given[name] for name in HEAD if name in given}
        told |= head if measure_json(head) <= HEAD_BYTES else {}
        # What a run asks or waits for is said in its own words.
        return {**_cut_texts({**short, "content": result["content"]}), "structuredContent": told}

    def shorten_result(
        self,
        result: Result,
        session: str,
        call: str,
        tool: str,
        sources: Iterable[ResultSource],
    ) -> Result:
        """The result where it is small or holds more than text, or `session` is ""; else its shape,
        a sample and the handle under which it is kept.
        """
        value = _extract_value(result) if session else None
        if value is None or (
            measure_depth(value, MAX_NESTING) <= MAX_NESTING
            and measure_json(value) <= self.most_bytes
        ):
            return result
        kept, size = None, 0
        if measure_depth(value, MAX_NESTING) <= MAX_NESTING:
            value = clean_answer(value)
            size, now = measure_json(value), self.now()
            made = KeptResult(0, call, tool, now, now, size, merge_sources(sources), value)
            kept = self.table.keep(session, made, self.limits)
        return _build_reference(result, value, kept, tool, size, self.lead_bytes)

    def show_part(self, session: str, handle: str, path: str, offset: int) -> Mapping[str, Any]:
        """What a path finds in a kept result: whole where it is small, of a list or text what is
        there from `offset` on, of an object its shape. Raises ReferenceRefused.
        """
        kept = self.table.find(session, handle, self.now())
        if isinstance(kept, MissingResult):
            raise ReferenceRefused("", (describe_missing(kept),))
        value = find_value(kept.value, path)
        if isinstance(value, PathProblem):
            raise ReferenceRefused("", (f"{value.reason}; the path $ shows what {handle} has",))
        head = {"result": kept.handle, "path": path}
        return {**head, **_show_from(value, offset, ANSWER_BYTES - 700)}

    def find_sources(self, servers: Iterable[str]) -> tuple[ResultSource, ...]:
        """The sources of these servers' answers, with the places that each knows."""
        return tuple(
            ResultSource(server, find_places(server, self.get_server, reading=True))
            for server in dict.fromkeys(servers)
        )


def _cut_texts(result: Result) -> Result:
    """The result with its texts within an answer's size together."""
    blocks, room = [], ANSWER_BYTES
    for block in result.get("content") or []:
        if block.get("type") == "text":
            text = cut_bytes(str(block.get("text", "")), room)
            room -= len(text.encode("utf-8", "replace"))
            block = {**block, "text": text}
        blocks.append(block)
    return {**result, "content": blocks}


def _cut_lead(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": cut_text(str(block.get("text", "")), LEAD_LETTERS)}


def _extract_value(result: Mapping[str, Any]) -> Any:
    """The value that a result gives, or None where it gives more than text."""
    content = result.get("content") or []
    if any(block.get("type") != "text" for block in content):
        return None
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    if not content:
        return None
    text = str(content[0].get("text", ""))
    try:
        return exactjson.loads(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return text


def _build_reference(
    result: Result, value: Any, kept: KeptResult | None, tool: str, size: int, taken: int
) -> Result:
    """What stands for a large result. `kept` is None for one that no session may keep; `taken` are
    the bytes of what is told beside it.
    """
    shape = describe_shape(value, SHAPE_BYTES)
    told: dict[str, Any] = {"tool": tool, "bytes": size, "shape": shape}
    if kept is not None:
        first = next((path for path in shape if path not in ("$", "…")), "$").replace("[*]", "[0]")
        told["next"] = (
            f"`status` with the same session, result={kept.handle!r} and a path (and offset) shows "
            f'more; {{"$ref": "{kept.handle}", "path": {write_json(first)}}} stands for a '
            "value in arguments"
        )
        told = {"result": kept.handle, "expires": round(kept.expires), **told}
    else:
        told["next"] = "too large to be kept: ask for less, by the tool's own arguments"
    told["sample"] = cut_sample(value, ANSWER_BYTES - measure_json(told) - 900 - taken)
    told = clean_json(told)
    lead = "" if kept is None else f", kept as {kept.handle}"
    text = f"{tool} answered {size:,} bytes{lead}.\n{write_json(told)}"
    notes = [
        {"type": "text", "text": cut_text(str(block.get("text", "")), NOTE_LETTERS)}
        for block in (result.get("content") or [])[1:2]
    ]
    return {
        **result,
        "content": [{"type": "text", "text": text}, *notes],
        "structuredContent": told,
    }


def _show_from(value: Any, offset: int, room: int) -> dict[str, Any]:
    """A value, or of one that is too large the part from `offset` on that has room."""
    if not offset and measure_json(value) <= room:
        return {"value": value}
    if isinstance(value, list):
        return _show_elements(value, offset, room)
    if isinstance(value, str):
        part = value[offset : offset + room // 4]
        return {"value": part, **_tell_next(offset + len(part), len(value))}
    if isinstance(value, Mapping):
        shape = describe_shape(value, room // 3)
        sample = cut_sample(value, room // 2)
        return {"shape": shape, "sample": sample, "next": "give the path of one of its keys"}
    return {"value": cut_sample(value, room)}


def _show_elements(value: list[Any], offset: int, room: int) -> dict[str, Any]:
    part: list[Any] = []
    for item in value[offset:]:
        room -= measure_json(item) + 1
        if room < 0:
            break
        part.append(item)
    end = offset + len(part)
    if part or offset >= len(value):
        return {"value": part, **_tell_next(end, len(value))}
    # One element that is larger than an answer.
    sample = cut_sample(value[offset], 1_500)
    told = f"this element is large: add [{offset}] to the path"
    return {"sample": sample, "shape": describe_shape(value[offset]), "next": told}


def _tell_next(end: int, count: int) -> dict[str, Any]:
    """How to go on where not all was shown."""
    more = {"offset": end, "next": f"offset={end} goes on"} if end < count else {}
    return {"count": count, **more}
