"""Whether an operation gives a list in pages, and how these follow each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from forge.media import is_json
from forge.projection import applied, merged_properties, target
from sandbox.apispec import APISpec, Operation, Parameter, Schema
from sandbox.bundle import Paging

ARGUMENT = "max_items"
MAX_ITEMS = 10_000
SCHEMA: Mapping[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_ITEMS,
    "description": "Follow the pages until so many items are had; their list is returned as one.",
    "x-in": "pages",
}
_CURSORS = frozenset(
    "after aftercursor bookmark continuation continuationtoken continue cursor marker nextcursor "
    "nextkey nexttoken nextpagetoken nextpagecursor pagecursor pagetoken scrollid "
    "exclusivestartkey".split()
)
_NEXT = (
    "nextcursor nextpagetoken nextpagecursor nexttoken continuationtoken continuation continue "
    "nextmarker nextkey nextbookmark bookmark nextpage endcursor scrollid lastevaluatedkey "
    "cursor after next"
).split()
_NEXT_URLS = "nextlink nextpageurl nexturl nextpagelink odatanextlink nexthref next".split()
_IDS = frozenset("startingafter startafter startafterid afterid lastid pageafterid".split())
"""What takes the last item's id, whether or not the answer says that there are more items."""
_MORE = "hasmore hasnext hasnextpage hasmoreitems more".split()
_OFFSETS = frozenset("offset skip start startat startindex firstresult from pageoffset".split())
_OFFSETS_NEED_A_SIZE = frozenset("start from".split())
_SIZES = frozenset(
    "limit count size perpage pagesize take top maxresults rows results resultsperpage "
    "itemsperpage pagelimit maxitems first n".split()
)
_PAGES = frozenset("page pagenumber pageno pagenum pageindex currentpage".split())
_LISTS = ("data items results records values entries content list resources elements hits").split()
_WRAPPERS = frozenset(
    "data result response payload meta metadata pagination paging pageinfo page links cursor "
    "cursors responsemetadata pagingmetadata nextpage".split()
)
_AROUND = frozenset("data result response payload hits page".split())
_LINKS = frozenset({"_links", "links"})
_OTHER = re.compile(r"[^a-z0-9]")


def paging(api: APISpec, operation: Operation) -> Paging | None:
    """How the pages of an operation's list follow each other; None where nothing shows it.

    Only for an operation that reads by GET and answers with JSON. Where several ways are shown the
    one is taken that knows when the last page is reached.
    """
    schema = _answer(operation)
    if operation.method != "GET" or operation.access != "read" or schema is None:
        return None
    items = _list(schema, api.schemas)
    if items is None:
        return None
    asked = {_plain(p.name): p for p in operation.parameters if _is_plain(p, api.schemas)}
    found = _by_answer(schema, asked, items, api.schemas) or _by_id(
        schema, asked, items, api.schemas
    )
    return found or _by_link(operation, items) or _by_number(asked, items, api.schemas)


def _answer(operation: Operation) -> Schema | None:
    """The schema of the first success that is JSON."""
    for response in operation.responses:
        if response.status.startswith("2") or response.status == "default":
            for content in response.content:
                if is_json(content.type) or content.type == "*/*":
                    return content.schema
    return None


def _list(schema: Schema, schemas: Mapping[str, Schema]) -> str | None:
    """The JSON pointer to the one list that an answer is about."""
    if _kind(schema, schemas) == "array":
        return ""
    own = merged_properties(schema, schemas)
    lists = [name for name, part in own.items() if _kind(part, schemas) == "array"]
    named = [name for known in _LISTS for name in lists if _plain(name) == known]
    if named:
        return f"/{_escaped(named[0])}"
    for name, part in own.items():
        inner = merged_properties(part, schemas) if _plain(name) in _AROUND else {}
        found = [key for key, value in inner.items() if _kind(value, schemas) == "array"]
        known = [key for key in found if _plain(key) in _LISTS]
        if known or (not lists and len(found) == 1):
            return f"/{_escaped(name)}/{_escaped((known or found)[0])}"
    return f"/{_escaped(lists[0])}" if len(lists) == 1 else None


def _by_answer(
    schema: Schema, asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """The answer names the next page: by a cursor that a parameter takes, or by its URL."""
    told = dict(_scalars(schema, schemas))
    cursor = next((p.name for plain, p in asked.items() if _ends(plain) in _CURSORS), "")
    following = next((told[name] for name in _NEXT if name in told), "")
    if cursor and following:
        return Paging("cursor", items, cursor, following)
    url = next((told[name] for name in _NEXT_URLS if name in told), "")
    is_paged = any(_ends(plain) in _PAGES | _OFFSETS | _CURSORS | _SIZES for plain in asked)
    return Paging("url", items, next=url) if url and is_paged else None


def _scalars(
    schema: Schema, schemas: Mapping[str, Schema], kinds: tuple[str, ...] = ("string", "")
) -> Iterator[tuple[str, str]]:
    """Plain name and pointer of the values of these kinds, by default the strings that may name a
    next page, one level down at most.
    """
    for name, part in merged_properties(schema, schemas).items():
        pointer = f"/{_escaped(name)}"
        if _kind(part, schemas) in kinds:
            yield _plain(name), pointer
        if _plain(name) in _WRAPPERS or name in _LINKS:
            for key, value in merged_properties(part, schemas).items():
                inner = f"{pointer}/{_escaped(key)}"
                if _kind(value, schemas) in kinds:
                    yield _plain(key), inner
                if "href" in merged_properties(value, schemas) and _plain(key) == "next":
                    yield "nexthref", f"{inner}/href"


def _by_id(
    schema: Schema, asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """A parameter takes the last item's id, as Stripe's `starting_after` does, and the answer says
    whether there are more items, or the parameter is for nothing else.
    """
    item = _item(schema, items, schemas)
    key = next((name for name in merged_properties(item, schemas) if _plain(name) == "id"), "")
    is_id = _kind(merged_properties(item, schemas).get(key, True), schemas) in ("string", "integer")
    told = dict(_scalars(schema, schemas, ("boolean",)))
    more = next((told[name] for name in _MORE if name in told), "")
    takes = _IDS | {"after"} if more else _IDS
    after = next((p.name for plain, p in asked.items() if _ends(plain) in takes), "")
    if not (key and is_id and after):
        return None
    return Paging("id", items, after, f"/{_escaped(key)}", more=more)


def _item(schema: Schema, items: str, schemas: Mapping[str, Schema]) -> Schema:
    """The schema of the items of the list at a pointer."""
    for token in items.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        schema = merged_properties(schema, schemas).get(name, True)
    found = (part["items"] for part in applied(schema, schemas) if "items" in part)
    return next(found, True)


def _by_link(operation: Operation, items: str) -> Paging | None:
    """The answer's Link header is documented (RFC 8288)."""
    successes = (r for r in operation.responses if r.status.startswith("2"))
    has_link = any("link" in response.headers for response in successes)
    return Paging("link", items) if has_link else None


def _by_number(
    asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """A parameter is the page's number or the position of its first item."""
    has_size = any(_ends(plain) in _SIZES for plain in asked)
    for plain, parameter in asked.items():
        if _kind(parameter.schema, schemas) not in ("integer", "number"):
            continue
        name = _ends(plain)
        is_offset = name in _OFFSETS and (has_size or name not in _OFFSETS_NEED_A_SIZE)
        if is_offset or name in _PAGES:
            usual = 1 if name in _PAGES or name == "startindex" else 0
            style: Any = "offset" if is_offset else "page"
            return Paging(style, items, parameter.name, first=_first(parameter, usual, schemas))
    return None


def _first(parameter: Parameter, usual: int, schemas: Mapping[str, Schema]) -> int:
    """What the parameter is for the first page: its default, else its minimum of 0 or 1."""
    told = target(parameter.schema, schemas)
    for key in ("default", "minimum"):
        value = told.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value in (0, 1):
            return value
    return usual


def _is_plain(parameter: Parameter, schemas: Mapping[str, Schema]) -> bool:
    """Whether a parameter is an optional value in the query that stands as it is."""
    scalar = _kind(parameter.schema, schemas) in ("string", "integer", "number", "")
    return parameter.location == "query" and parameter.media_type is None and scalar


def _ends(plain: str) -> str:
    """`page[cursor]` is `pagecursor`; `$skip` and `filter.limit` are `skip` and `limit`."""
    return plain.removeprefix("filter").removeprefix("pagination") or plain


def _kind(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The one type that a schema's values have besides null; "" where it is not one."""
    for part in applied(schema, schemas):
        written = part.get("type")
        kinds = [written] if isinstance(written, str) else written or []
        found = [kind for kind in kinds if kind != "null"]
        if found:
            return str(found[0]) if len(found) == 1 else ""
        if "properties" in part:
            return "object"
        if "items" in part:
            return "array"
    return ""


def _plain(name: str) -> str:
    return _OTHER.sub("", name.lower())


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
