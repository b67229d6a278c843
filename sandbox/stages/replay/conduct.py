"""The exchanges of a good case, compared with what the tool says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.broker.host.tools import get_called_tool, is_call
from sandbox.bundle.model import ToolDefinition
from sandbox.bundle.verbs import ACTS, split_words
from sandbox.stages.contract.body import iterate_leaves
from sandbox.stages.replay.calls import (
    describe_asked,
    is_http,
    is_unsafe,
    key_asked,
    name_asked,
    read_value,
)
from sandbox.stages.replay.paging import (
    asks_for_one,
    find_marks,
    find_untold_total,
    normalize_name,
)
from sandbox.wire.exchange import Exchange, WireRequest

ACTING_PATHS = frozenset(
    "activate approve cancel create deactivate delete destroy disable enable purge register remove "
    "reset revoke send subscribe unsubscribe".split()
)
"""Last parts of a path by which a GET acts; other verbs are names of things as well."""
STEM = 4
"""Letters of a word that are compared: `booking` and `book` are one."""
MIN_DEPENDENT = 2


def find_conduct_problems(
    tool: ToolDefinition, exchanges: Sequence[Exchange], result: Any
) -> Iterator[str]:
    """The problems of the exchanges of a good case, each as a sentence."""
    yield from _find_repeated(tool, exchanges)
    yield from _find_quiet_writes(tool, exchanges)
    yield from _find_order(tool, exchanges)
    yield from _find_unread_pages(tool, exchanges, result)


def is_writing(tool: ToolDefinition, request: WireRequest) -> bool:
    """Whether a request writes: by its method, or as a call whose name begins with a verb that acts
    in a tool that says it writes.
    """
    if not is_call(request):
        return is_unsafe(request) and tool.access == "write"
    first = split_words(get_called_tool(request).partition(".")[2])[:1]
    return tool.access == "write" and bool(ACTS & {*first})


def _find_repeated(tool: ToolDefinition, exchanges: Sequence[Exchange]) -> Iterator[str]:
    """What is asked again although its answer is the same. Reads whose answer changes in the case
    are polled: a job that is not done yet.
    """
    asked: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        asked.setdefault(key_asked(exchange.request), []).append(exchange)
    for same in asked.values():
        request = same[0].request
        acts = is_unsafe(request) or is_writing(tool, request)
        changes = len({(e.response, e.refusal) for e in same}) > 1
        if len(same) > 1 and (acts or not changes):
            yield f"asks {name_asked(request)} the same twice: keep the first answer"


def _find_quiet_writes(tool: ToolDefinition, exchanges: Sequence[Exchange]) -> Iterator[str]:
    writes = {key_asked(e.request): e.request for e in exchanges if is_writing(tool, e.request)}
    if len(writes) > 1:
        named = ", ".join(name_asked(request) for request in writes.values())
        yield f"makes {len(writes)} writes ({named}): one call makes one"
    own = _stem_words(f"{tool.name} {tool.title} {tool.description}")
    for request in writes.values():
        if not _list_name_words(request) & own:
            yield f"writes by {name_asked(request)}, of which its description says nothing"
    for exchange in exchanges:
        last = [*filter(None, urlsplit(exchange.request.url).path.split("/"))][-1:]
        if tool.access == "read" and is_http(exchange.request) and ACTING_PATHS & {*last}:
            yield f"says that it reads, and asks {name_asked(exchange.request)}"


def _list_name_words(request: WireRequest) -> frozenset[str]:
    name = (
        get_called_tool(request).partition(".")[2]
        if is_call(request)
        else unquote(urlsplit(request.url).path)
    )
    return _stem_words(name)


def _stem_words(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in split_words(text) if len(word) > 2)


def _find_order(tool: ToolDefinition, exchanges: Sequence[Exchange]) -> Iterator[str]:
    """A write, and after it a request that does not follow from its answer: where that one fails,
    the call fails and the write is done.
    """
    for at, exchange in enumerate(exchanges):
        if not is_writing(tool, exchange.request):
            continue
        before = " ".join(_list_told(e) for e in exchanges[:at]) + _tell(exchange.request)
        given = {t for t in _iterate_texts(read_value(exchange)) if t not in before}
        for later in exchanges[at + 1 :]:
            told = _tell(later.request)
            if not is_writing(tool, later.request) and not any(text in told for text in given):
                asked, wrote = name_asked(later.request), name_asked(exchange.request)
                yield f"asks {asked} after it wrote by {wrote}: ask first, write last"
                return


def _tell(request: WireRequest) -> str:
    return unquote(json.dumps(describe_asked(request), ensure_ascii=False))


def _list_told(exchange: Exchange) -> str:
    return " ".join((_tell(exchange.request), *_iterate_texts(read_value(exchange))))


def _iterate_texts(value: Any) -> Iterator[str]:
    for leaf in iterate_leaves(value):
        if not isinstance(leaf, bool) and len(str(leaf)) >= MIN_DEPENDENT:
            yield str(leaf)


def _find_unread_pages(
    tool: ToolDefinition, exchanges: Sequence[Exchange], result: Any
) -> Iterator[str]:
    for at, exchange in enumerate(exchanges):
        name = name_asked(exchange.request)
        later = any(name_asked(e.request) == name for e in exchanges[at + 1 :])
        if later or wants_one(exchange.request):
            continue
        value = read_value(exchange)
        mark = next((place for place, found in find_marks(value) if found), None)
        total = find_untold_total(value)
        if mark is not None and not tells_of_more(result):
            yield f"{name} says by {'/'.join(mark)} that more follows, and is not asked for it"
        elif mark is None and total is not None and str(total) not in _iterate_texts(result):
            yield f"{name} says that there are {total}, and is not asked for the rest"


def wants_one(request: WireRequest) -> bool:
    """Whether a request asks for a single item, so that nothing of what follows is wanted."""
    query = dict(parse_qsl(urlsplit(request.url).query)) if is_http(request) else {}
    return asks_for_one(describe_asked(request)) or asks_for_one(query)


def tells_of_more(result: Any) -> bool:
    """Whether a result says itself that there is more."""
    return any(found for _, found in find_marks(result)) or (
        isinstance(result, dict) and any(normalize_name(key) in ("complete",) for key in result)
    )
