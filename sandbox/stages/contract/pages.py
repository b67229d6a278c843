"""Pages of a list as an API would serve them, and the check of a call that follows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sandbox.bundle.model import Paging, follow_pointer
from sandbox.session.interface import Outcome
from sandbox.stages.contract.texts import is_equal_json
from sandbox.wire.exchange import Headers, WireRequest, WireResponse

_ONWARD = "https://elsewhere.example/other?after=page-{}&x=a%20b"
"""URL given for the next page, on another host: only its query may be used."""
_ABSENT = object()
_VARIABLES = "variables"
LIMIT_TOLD = "toolwright (max_items="
"""How the user agent of a list's requests begins."""

Fits = Callable[[WireResponse], bool]
"""Whether the document allows an answer."""


@dataclass(frozen=True)
class ServedPages:
    """The answers of a list's pages in order; `asked` is what each request after the first must
    hold: the value of the paging parameter or variable, or the whole query.
    """

    paging: Paging
    answers: tuple[WireResponse, ...]
    asked: tuple[str, ...]
    items: tuple[Any, ...]


def build_pages(
    paging: Paging, sample: WireResponse, fits: Fits, first: Any = None
) -> ServedPages | None:
    """Build pages from a documented answer; None where the document allows none with an item.

    `first` is the value of the paging parameter in the first request.
    """
    try:
        body = json.loads(sample.body)
    except ValueError:
        return None
    found = follow_pointer(body, paging.items)
    if not isinstance(found, list) or not found:
        return None
    if paging.style in ("offset", "page"):
        return _build_numbered(paging, sample, body, found, fits, first)
    if paging.style == "id":
        return _build_identified(paging, sample, body, found, fits)
    return _build_named(paging, sample, body, found, fits)


def _build_numbered(
    paging: Paging, sample: WireResponse, body: Any, found: list[Any], fits: Fits, first: Any
) -> ServedPages | None:
    start = first if isinstance(first, int) else paging.first
    for pages in ([found * 2, found], [found, []]):
        answers = tuple(
            _build_answer(sample, _replace_at(body, paging.items, page)) for page in pages
        )
        if all(map(fits, answers)):
            step = 1 if paging.style == "page" else len(pages[0])
            items = tuple(item for page in pages for item in page)
            return ServedPages(paging, answers, (str(start + step),), items)
    return None


def _build_named(
    paging: Paging, sample: WireResponse, body: Any, found: list[Any], fits: Fits
) -> ServedPages | None:
    """Three pages of which each but the last names the next. Where the answer has a word whether
    there are more, the last one names a page as well.
    """
    names = _choose_names(paging, follow_pointer(body, paging.next))
    answers: list[WireResponse] = []
    for name in (*names, None):
        choices = [name] if name is not None else [_ABSENT, None, ""]
        told = body
        if paging.more:
            choices = [name or names[-1]]
            told = _replace_at(body, paging.more, name is not None)
        made = (_build_page(paging, sample, told, found, choice) for choice in choices)
        answer = next(filter(fits, made), None)
        if answer is None:
            return None
        answers.append(answer)
    is_url = paging.style in ("url", "link")
    asked = tuple(urlsplit(name).query if is_url else str(name) for name in names)
    return ServedPages(paging, tuple(answers), asked, tuple(found * len(answers)))


def _build_identified(
    paging: Paging, sample: WireResponse, body: Any, found: list[Any], fits: Fits
) -> ServedPages | None:
    """Three pages, each asked for by the last item of the one before."""
    *before, last = found
    names = _choose_names(paging, follow_pointer(last, paging.next))
    pages = [[*before, _replace_at(last, paging.next, name)] for name in names]
    pages.append(found if paging.more else [])
    answers = []
    for at, page in enumerate(pages):
        told = _replace_at(body, paging.items, page)
        told = _replace_at(told, paging.more, at < len(names)) if paging.more else told
        answers.append(_build_answer(sample, told))
    if not all(map(fits, answers)):
        return None
    items = tuple(item for page in pages for item in page)
    return ServedPages(paging, tuple(answers), tuple(map(str, names)), items)


def _choose_names(paging: Paging, sampled: Any) -> tuple[Any, ...]:
    if paging.style in ("url", "link"):
        return tuple(_ONWARD.format(number) for number in (2, 3))
    if isinstance(sampled, int) and not isinstance(sampled, bool):
        return 41_002, 41_003
    return "page-2&=é", "page-3/?"


def _build_page(
    paging: Paging, sample: WireResponse, body: Any, items: list[Any], onward: Any
) -> WireResponse:
    if paging.style != "link":
        return _build_answer(
            sample, _replace_at(_replace_at(body, paging.items, items), paging.next, onward)
        )
    headers: Headers = ()
    if isinstance(onward, str) and onward:
        headers = (("link", f'<{onward}>; rel="next", <?after=page-1>; rel="first"'),)
    return _build_answer(sample, _replace_at(body, paging.items, items), headers)


def _build_answer(sample: WireResponse, body: Any, headers: Headers = ()) -> WireResponse:
    content = json.dumps(body, ensure_ascii=False).encode()
    return replace(sample, body=content, headers=(*sample.headers, *headers))


def _replace_at(value: Any, pointer: str, new: Any) -> Any:
    """A copy of the value with the member at the pointer replaced, or removed for _ABSENT."""
    if not pointer:
        return new
    token, _, rest = pointer[1:].partition("/")
    key = token.replace("~1", "/").replace("~0", "~")
    members = dict(value) if isinstance(value, Mapping) else {}
    inner = _replace_at(members.get(key, {}), f"/{rest}" if rest else "", new)
    if inner is _ABSENT:
        members.pop(key, None)
        return members
    return {**members, key: inner}


def check_pages(served: ServedPages, limit: int, outcome: Outcome) -> Iterator[str]:
    """The problems of a call that has to follow these pages up to `limit` items."""
    requests = [exchange.request for exchange in outcome.exchanges]
    yield from _check_told_limit(requests, limit)
    if limit < len(served.items):
        wanted, answers = [], served.answers[:1]
    else:
        wanted, answers = list(served.asked), served.answers
    if len(requests) != len(answers):
        yield f"{len(requests)} pages were asked for, not {len(answers)}"
        return
    for request, asked in zip(requests[1:], wanted, strict=True):
        yield from _check_onward(served.paging, requests[0], request, asked)
    yield from _check_items(served, answers, limit, outcome)


def _check_told_limit(requests: list[WireRequest], limit: int) -> Iterator[str]:
    """The runtime's requests say how many items are wanted. No list of a document's samples is so
    long that it would show by itself that a tool asks for fewer.
    """
    told = (requests[0].get_header("user-agent") or "") if requests else ""
    if told.startswith(LIMIT_TOLD) and told != f"{LIMIT_TOLD}{limit})":
        yield f"up to {limit} items were wanted, and the request says {told[:80]!r}"


def _check_onward(
    paging: Paging, first: WireRequest, request: WireRequest, asked: str
) -> Iterator[str]:
    before, after = urlsplit(first.url), urlsplit(request.url)
    if (first.method, before._replace(query="")) != (request.method, after._replace(query="")):
        yield f"the next page was asked for by {request.method} {request.url[:160]}"
    if first.headers != request.headers:
        yield "the next page was asked for with other headers"
    if first.body:
        yield from _check_variable(paging, first, request, asked)
        return
    if not paging.parameter:
        if after.query != asked:
            yield f"the next page was asked for with {after.query[:100]!r}, not {asked!r}"
        return
    was = [p for p in parse_qsl(before.query, True) if p[0] != paging.parameter]
    now = parse_qsl(after.query, True)
    if sorted(now) != sorted([*was, (paging.parameter, asked)]):
        yield f"the next page was asked for with {after.query[:100]!r}, not {asked!r}"


def _check_variable(
    paging: Paging, first: WireRequest, request: WireRequest, asked: str
) -> Iterator[str]:
    """The problems of a GraphQL request for a further page: only one variable may be another."""
    before, after = _read_body(first), _read_body(request)
    given = _read_variables(after)
    told = str(given.get(paging.parameter))
    wanted = {**_read_variables(before), paging.parameter: given.get(paging.parameter)}
    is_same = is_equal_json({**before, _VARIABLES: {}}, {**after, _VARIABLES: {}})
    if told != asked or not is_same or not is_equal_json(wanted, given):
        yield f"the next page was asked for with {told[:100]!r}, not {asked!r} alone"


def _read_body(request: WireRequest) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _read_variables(body: Mapping[str, Any]) -> dict[str, Any]:
    given = body.get(_VARIABLES)
    return given if isinstance(given, dict) else {}


def _check_items(
    served: ServedPages, answers: tuple[WireResponse, ...], limit: int, outcome: Outcome
) -> Iterator[str]:
    given = outcome.structured
    if not isinstance(given, Mapping) or outcome.result.get("isError"):
        yield f"the pages were not delivered: {outcome.text[:160]}"
        return
    items = list(served.items[:limit])
    if not is_equal_json(items, follow_pointer(given.get("body"), served.paging.items)):
        yield f"the {len(items)} items did not arrive as sent"
    told = given.get("pages")
    more = limit < len(served.items)
    wanted = {"read": len(answers), "items": len(items), "more": more}
    if not isinstance(told, Mapping) or {key: told.get(key) for key in wanted} != wanted:
        yield f"the pages are told as {str(told)[:100]}, not {wanted}"
