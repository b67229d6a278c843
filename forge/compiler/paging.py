"""Detection of paged lists, and of the way from one page to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from forge.schemas.media import is_json
from forge.schemas.projection import list_applied_schemas, merge_properties
from sandbox.bundle.apispec import APISpec, Operation, Parameter, Schema
from sandbox.bundle.model import Paging

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
# Alone these are likelier the beginning of a range than an offset.
_OFFSETS_NEED_A_SIZE = frozenset("start from".split())
_SIZES = frozenset(
    "limit count size perpage pagesize take top maxresults rows results resultsperpage "
    "itemsperpage pagelimit maxitems first n".split()
)
_PAGES = frozenset("page pagenumber pageno pagenum pageindex currentpage".split())
_OF_PAGES = _CURSORS | _OFFSETS | _SIZES | _PAGES
_ASKED = _OF_PAGES | _IDS
"""What each way but the Link header needs one of among the parameters."""
_LISTS = (
    "data items results records values entries content list resources elements hits nodes edges"
).split()
_WRAPPERS = frozenset(
    "data result response payload meta metadata pagination paging pageinfo page links cursor "
    "cursors responsemetadata pagingmetadata nextpage".split()
)
_AROUND = frozenset("data result response payload hits page".split())
_LINKS = frozenset({"_links", "links"})
_BY_URL = frozenset({"url", "link"})
_NULL = {"type": "null"}
_OTHER = re.compile(r"[^a-z0-9]")


def detect_paging(api: APISpec, operation: Operation) -> Paging | None:
    """Return how the pages of an operation's list follow each other; None where nothing shows it.

    Only for an operation that reads, by GET or by a GraphQL query, and answers with JSON. Where
    several ways are found, the one that recognizes the last page is preferred.
    """
    schema = _find_answer_schema(operation)
    is_asked = operation.method == "GET" or bool(operation.document)
    if not is_asked or operation.access != "read" or schema is None:
        return None
    asked = {_normalize_name(p.name): p for p in operation.parameters if _is_plain(p, api.schemas)}
    if _ASKED.isdisjoint(map(_strip_name_prefix, asked)) and not _has_link(operation):
        return None
    around = ""
    if operation.document:
        around, schema = _find_graphql_value(schema, api.schemas)
    items = _find_list_pointer(schema, api.schemas)
    if items is None:
        return None
    found = (
        _detect_by_answer(schema, asked, items, api.schemas)
        or _detect_by_id(schema, asked, items, api.schemas)
        or _detect_by_link(operation, items)
    )
    if found is None or (operation.document and found.style in _BY_URL):
        # No URL leads to another page of what a document asks for.
        found = _detect_by_number(asked, items, api.schemas)
    return _put_within(around, found) if found is not None and around else found


def _find_graphql_value(schema: Schema, schemas: Mapping[str, Schema]) -> tuple[str, Schema]:
    """The pointer to the value of a document's one field, and its schema."""
    data = merge_properties(schema, schemas).get("data", True)
    fields = merge_properties(data, schemas)
    return next(((f"/data/{_escape_token(name)}", part) for name, part in fields.items()), ("", {}))


def _put_within(around: str, found: Paging) -> Paging:
    """The paging of a value that stands at a pointer of the body."""
    next_ = around + found.next if found.next and found.style != "id" else found.next
    more = around + found.more if found.more else ""
    return replace(found, items=around + found.items, next=next_, more=more)


def _find_answer_schema(operation: Operation) -> Schema | None:
    """Return the schema of the first successful JSON response."""
    for response in operation.responses:
        if response.status.startswith("2") or response.status == "default":
            for content in response.content:
                if is_json(content.type) or content.type == "*/*":
                    return content.schema
    return None


def _find_list_pointer(schema: Schema, schemas: Mapping[str, Schema]) -> str | None:
    """Return the JSON pointer (RFC 6901) to the list that a response is about, None where it is
    unclear.
    """
    if _find_type(schema, schemas) == "array":
        return ""
    own = _merge_properties(schema, schemas)
    lists = [name for name, part in own.items() if _find_type(part, schemas) == "array"]
    named = [name for known in _LISTS for name in lists if _normalize_name(name) == known]
    if named:
        return f"/{_escape_token(named[0])}"
    for name, part in own.items():
        inner = _merge_properties(part, schemas) if _normalize_name(name) in _AROUND else {}
        found = [key for key, value in inner.items() if _find_type(value, schemas) == "array"]
        known = [key for key in found if _normalize_name(key) in _LISTS]
        if known or (not lists and len(found) == 1):
            return f"/{_escape_token(name)}/{_escape_token((known or found)[0])}"
    return f"/{_escape_token(lists[0])}" if len(lists) == 1 else None


def _detect_by_answer(
    schema: Schema, asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """Detect a response that names the next page: by a cursor that a parameter takes, or by its
    URL.
    """
    told = dict(_list_scalars(schema, schemas))
    cursor = next(
        (p.name for plain, p in asked.items() if _strip_name_prefix(plain) in _CURSORS), ""
    )
    following = next((told[name] for name in _NEXT if name in told), "")
    if cursor and following:
        more = _find_more(schema, schemas)
        return Paging("cursor", items, cursor, following, more=more)
    url = next((told[name] for name in _NEXT_URLS if name in told), "")
    is_paged = any(_strip_name_prefix(plain) in _OF_PAGES for plain in asked)
    return Paging("url", items, next=url) if url and is_paged else None


def _list_scalars(
    schema: Schema, schemas: Mapping[str, Schema], kinds: tuple[str, ...] = ("string", "")
) -> Iterator[tuple[str, str]]:
    """Yield the normalized name and the pointer of the values of these types, by default the
    strings that may name a next page, at most one level down.
    """
    for name, part in _merge_properties(schema, schemas).items():
        pointer = f"/{_escape_token(name)}"
        if _find_type(part, schemas) in kinds:
            yield _normalize_name(name), pointer
        if _normalize_name(name) in _WRAPPERS or name in _LINKS:
            for key, value in _merge_properties(part, schemas).items():
                inner = f"{pointer}/{_escape_token(key)}"
                if _find_type(value, schemas) in kinds:
                    yield _normalize_name(key), inner
                if "href" in _merge_properties(value, schemas) and _normalize_name(key) == "next":
                    yield "nexthref", f"{inner}/href"


def _detect_by_id(
    schema: Schema, asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """Detect a parameter that takes the last item's id, as Stripe's `starting_after` does. The
    response has to say whether there are more items, unless the parameter has no other use.
    """
    item = _find_item_schema(schema, items, schemas)
    key = next(
        (name for name in _merge_properties(item, schemas) if _normalize_name(name) == "id"), ""
    )
    is_id = _find_type(_merge_properties(item, schemas).get(key, True), schemas) in (
        "string",
        "integer",
    )
    more = _find_more(schema, schemas)
    takes = _IDS | {"after"} if more else _IDS
    after = next((p.name for plain, p in asked.items() if _strip_name_prefix(plain) in takes), "")
    if not (key and is_id and after):
        return None
    return Paging("id", items, after, f"/{_escape_token(key)}", more=more)


def _find_more(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The pointer to a response's word whether there are more items, "" where it has none."""
    told = dict(_list_scalars(schema, schemas, ("boolean",)))
    return next((told[name] for name in _MORE if name in told), "")


def _find_item_schema(schema: Schema, items: str, schemas: Mapping[str, Schema]) -> Schema:
    """The schema of the items of the list at a pointer."""
    for token in items.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        schema = _merge_properties(schema, schemas).get(name, True)
    found = (part["items"] for part in _list_parts(schema, schemas) if "items" in part)
    return next(found, True)


def _detect_by_link(operation: Operation, items: str) -> Paging | None:
    """Detect a documented Link header in the response (RFC 8288)."""
    return Paging("link", items) if _has_link(operation) else None


def _has_link(operation: Operation) -> bool:
    successes = (r for r in operation.responses if r.status.startswith("2"))
    return any("link" in response.headers for response in successes)


def _detect_by_number(
    asked: Mapping[str, Parameter], items: str, schemas: Mapping[str, Schema]
) -> Paging | None:
    """Detect a parameter that is the page's number or the position of its first item."""
    has_size = any(_strip_name_prefix(plain) in _SIZES for plain in asked)
    for plain, parameter in asked.items():
        if _find_type(parameter.schema, schemas) not in ("integer", "number"):
            continue
        name = _strip_name_prefix(plain)
        is_offset = name in _OFFSETS and (has_size or name not in _OFFSETS_NEED_A_SIZE)
        if is_offset or name in _PAGES:
            usual = 1 if name in _PAGES or name == "startindex" else 0
            style: Any = "offset" if is_offset else "page"
            return Paging(
                style, items, parameter.name, first=_find_first_value(parameter, usual, schemas)
            )
    return None


def _find_first_value(parameter: Parameter, usual: int, schemas: Mapping[str, Schema]) -> int:
    """Return the parameter's value for the first page: its default, else its minimum, of 0 or 1."""
    parts = _list_parts(parameter.schema, schemas)
    told = (part.get(key) for key in ("default", "minimum") for part in parts)
    whole = (each for each in told if isinstance(each, int) and not isinstance(each, bool))
    return next((value for value in whole if value in (0, 1)), usual)


def _is_plain(parameter: Parameter, schemas: Mapping[str, Schema]) -> bool:
    """Whether a parameter is a value in the query, or a variable, that stands as it is."""
    scalar = _find_type(parameter.schema, schemas) in ("string", "integer", "number", "")
    return parameter.location in ("query", "variable") and parameter.media_type is None and scalar


def _strip_name_prefix(plain: str) -> str:
    """Return a normalized name without the prefix `filter` or `pagination`: `filterlimit` is
    `limit`.
    """
    return plain.removeprefix("filter").removeprefix("pagination") or plain


def _list_parts(schema: Schema, schemas: Mapping[str, Schema]) -> list[Mapping[str, Any]]:
    """The schema and what applies to its values other than null: `anyOf` of one schema and null is
    how generators write a value that may be missing.
    """
    found = list_applied_schemas(schema, schemas)
    for part in tuple(found):
        if inner := _find_beside_null(part):
            found += list_applied_schemas(inner, schemas)
    return found


def _find_beside_null(part: Mapping[str, Any]) -> Schema | None:
    """The one alternative of a schema besides null; None where there are none or several."""
    branches = part.get("anyOf") or part.get("oneOf") or ()
    others = [each for each in branches if each != _NULL]
    return others[0] if len(others) == 1 < len(branches) else None


def _merge_properties(schema: Schema | None, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The properties of an object that may be null."""
    found = merge_properties(schema, schemas)
    if found or not isinstance(schema, dict):
        return found
    parts = list_applied_schemas(schema, schemas)
    return next(
        (merge_properties(each, schemas) for each in map(_find_beside_null, parts) if each), {}
    )


def _find_type(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The one type that a schema's values have besides null; "" where it is not one."""
    for part in _list_parts(schema, schemas):
        written = part.get("type")
        if isinstance(written, str) and written != "null":
            return written
        kinds = [written] if isinstance(written, str) else written or []
        found = [kind for kind in kinds if kind != "null"]
        if found:
            return str(found[0]) if len(found) == 1 else ""
        if "properties" in part:
            return "object"
        if "items" in part:
            return "array"
    return ""


@lru_cache(4096)
def _normalize_name(name: str) -> str:
    return _OTHER.sub("", name.lower())


def _escape_token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
