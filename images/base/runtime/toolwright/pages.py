"""The pages of a list: one call, several requests to the same route, one answer."""

from __future__ import annotations

import json
import re

from .answers import Answer
from .errors import RequestFailed, Upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Ask = Callable[[Mapping[str, Any], str], tuple[Answer, str]]
    """Sends the request with these query parameters or variables, or with this query text as it is;
    returns the answer and what tells the request from others, its URL.
    """

MAX_PAGES = 100
MAX_BYTES = 16 * 1024 * 1024
_LINK = r'<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^",;\s]*))*)'
_PARAMETER = r';\s*([\w*-]+)\s*=\s*(?:"([^"]*)"|([^",;\s]*))'
_QUERY = r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]{1,8000}\Z"
_REDACTED = ("[redacted]", "%5Bredacted%5D")
_STOPPING = frozenset({"timeout", "unreachable", "rate_limited", "too_large"})


class Pages:
    """How the pages of a list follow each other. `items`, `next` and `more` are JSON pointers into
    an answer; `parameter` is the query parameter or variable that asks for a page.
    """

    __slots__ = ("first", "items", "more", "next", "parameter", "style")

    def __init__(
        self,
        style: str,
        items: str,
        parameter: str = "",
        next: str = "",
        first: int = 0,
        more: str = "",
    ) -> None:
        self.style, self.items, self.parameter = style, items, parameter
        self.next, self.first, self.more = next, first, more


def by_cursor(parameter: str, *, next: str, items: str, more: str = "") -> Pages:
    """The answer tells the next page's cursor, or its URL; nothing where there is none, or where it
    says `false` at `more`.
    """
    return Pages("cursor", items, parameter, next, more=more)


def by_offset(parameter: str, *, items: str, first: int = 0) -> Pages:
    """The parameter is the position of a page's first item; the list's first is `first`."""
    return Pages("offset", items, parameter, first=first)


def by_page(parameter: str, *, items: str, first: int = 1) -> Pages:
    """The parameter is a page's number, counted from `first`."""
    return Pages("page", items, parameter, first=first)


def by_id(parameter: str, *, item: str, items: str, more: str = "") -> Pages:
    """The next page is asked for by the last item's id, at `item` in it, where the answer says at
    `more` that there is one; without `more`, as long as pages are as long as the first.
    """
    return Pages("id", items, parameter, item, more=more)


def by_url(*, next: str, items: str) -> Pages:
    """The answer's body tells the next page's URL."""
    return Pages("url", items, next=next)


def by_link(*, items: str) -> Pages:
    """The answer's Link header tells the next page's URL (RFC 8288, relation `next`)."""
    return Pages("link", items)


def tell_limit(limit: int) -> dict[str, str]:
    """The header by which an API sees that a client pages, and how far it will."""
    return {"user-agent": f"toolwright (max_items={limit})"}


class _Walk:
    """The pages read so far."""

    def __init__(
        self, pages: Pages, query: Mapping[str, Any], answer: Answer, takes_urls: bool
    ) -> None:
        self.pages, self.query, self.last, self.takes_urls = pages, query, answer, takes_urls
        self.page = pointed(answer.body, pages.items)
        self.items = list(self.page) if isinstance(self.page, list) else []
        self.length, self.read, self.size = len(self.items), 1, len(answer.data)
        self.stopped = ""
        self.more = False

    def onward(self) -> tuple[Mapping[str, Any], str] | None:
        """The next page's query parameters or query text; None where this is the last page."""
        pages = self.pages
        if pages.style == "link":
            return self._by_url(next_link(self.last.headers.get("link", "")))
        if pages.style in ("cursor", "url"):
            target = pointed(self.last.body, pages.next)
            is_last = bool(pages.more) and pointed(self.last.body, pages.more) is False
            if is_last or not _is_name(target):
                return None
            is_url = isinstance(target, str) and re.match(r"https?://|[/?]", target)
            if (is_url and self.takes_urls) or pages.style == "url":
                return self._by_url(str(target))
            return {**self.query, pages.parameter: target}, ""
        if not self.page:
            return None
        if pages.style == "id":
            return self._by_id(pointed(self.page[-1], pages.next))
        if len(self.page) < self.length:
            return None
        given = self.query.get(pages.parameter)
        start = given if isinstance(given, int) else pages.first
        step = self.read if pages.style == "page" else len(self.items)
        return {**self.query, pages.parameter: start + step}, ""

    def _by_id(self, last: Any) -> tuple[Mapping[str, Any], str] | None:
        told = pointed(self.last.body, self.pages.more) if self.pages.more else None
        is_more = told is True if self.pages.more else len(self.page) >= self.length
        if not is_more or not _is_name(last):
            return None
        if any(mark in str(last) for mark in _REDACTED):
            self.stopped = "the last item's id was withheld"
            return None
        return {**self.query, self.pages.parameter: last}, ""

    def _by_url(self, target: str) -> tuple[Mapping[str, Any], str] | None:
        """Only the target's query counts: no answer can lead a call to another route."""
        pairs = target.partition("#")[0].partition("?")[2].split("&")
        kept = "&".join(p for p in pairs if p and not any(mark in p for mark in _REDACTED))
        if not target:
            return None
        if not re.match(_QUERY, kept):
            self.stopped = "what the API names as the next page cannot be asked for"
            return None
        return {}, kept

    def add(self, answer: Answer) -> None:
        page = pointed(answer.body, self.pages.items)
        self.size += len(answer.data)
        if not isinstance(page, list):
            self.stopped = "the next page holds no list"
        elif self.pages.style in ("offset", "page", "id") and page and page == self.page:
            self.stopped = "the next page is the same page again"
        else:
            self.page, self.last = page, answer
            self.items += page
            self.read += 1

    def answer(self, limit: int) -> Answer:
        """The last page with all items in its list, at most `limit`."""
        left_out = max(0, len(self.items) - limit)
        kept = self.items[: len(self.items) - left_out]
        body = _replaced(self.last.body, self.pages.items, kept)
        headers = [(k, v) for k, v in self.last.headers.items() if k != "content-type"]
        headers.append(("content-type", "application/json"))
        made = Answer(self.last.status, headers, json.dumps(body, ensure_ascii=False).encode())
        made.pages = {"read": self.read, "items": len(kept), "more": self.more or left_out > 0}
        if left_out:
            made.pages["left_out"] = left_out
        if self.stopped:
            made.pages["stopped"] = self.stopped
        return made


def follow(
    pages: Pages, ask: Ask, query: Mapping[str, Any], limit: int, takes_urls: bool = True
) -> Answer:
    """The first page and those after it until `limit` items are had, MAX_PAGES read or none is
    left; `pages` of the answer says how many were read and whether more are left. Without
    `takes_urls` a cursor that looks like a URL is a cursor.

    What goes wrong after the first page ends the walk, which `stopped` tells; the first page's
    failure is the call's. An answer without the list is returned as it is.
    """
    first, url = ask(query, "")
    walk = _Walk(pages, query, first, takes_urls)
    if not isinstance(walk.page, list):
        return first
    seen = {url}
    while True:
        onward = walk.onward()
        walk.more = onward is not None or bool(walk.stopped)
        if onward is None or _is_enough(walk, limit):
            return walk.answer(limit)
        try:
            answer, url = ask(*onward) if _is_new(onward, seen) else (None, "")
        except Upstream as error:
            if isinstance(error, RequestFailed) and error.kind not in _STOPPING:
                raise
            answer, walk.stopped = None, str(error)[:300]
        if answer is None or url in seen:
            walk.stopped = walk.stopped or "the API names the same page again"
            return walk.answer(limit)
        seen.add(url)
        walk.add(answer)
        if walk.stopped:
            return walk.answer(limit)


def _is_name(target: Any) -> bool:
    """Whether a value can ask for a page."""
    return isinstance(target, str | int) and not isinstance(target, bool) and target != ""


def _is_enough(walk: _Walk, limit: int) -> bool:
    return len(walk.items) >= limit or walk.read >= MAX_PAGES or walk.size > MAX_BYTES


def _is_new(onward: tuple[Mapping[str, Any], str], seen: set[str]) -> bool:
    key = repr(onward)
    known = key in seen
    seen.add(key)
    return not known


def pointed(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901, members of objects only) leads to, or None."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _replaced(value: Any, pointer: str, new: Any) -> Any:
    """The value with what the pointer leads to replaced; the value itself stays as it is."""
    if not pointer:
        return new
    token, _, rest = pointer[1:].partition("/")
    key = token.replace("~1", "/").replace("~0", "~")
    return {**value, key: _replaced(value[key], f"/{rest}" if rest else "", new)}


def next_link(header: str) -> str:
    """The target of a Link header's relation `next` (RFC 8288, section 3), or nothing."""
    for target, parameters in re.findall(_LINK, header[:16_000]):
        for name, quoted, plain in re.findall(_PARAMETER, parameters):
            if name.lower() == "rel" and "next" in (quoted or plain).lower().split():
                return str(target)
    return ""
