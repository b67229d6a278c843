"""The content of a tool's MCP result for a person who reads it, without what it is wrapped in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sandbox.wire.content import join_texts

_ENVELOPE = frozenset({"status", "body", "text", "content_type", "headers", "pages"})
"""What our HTTP tools answer with (docs/runtime-protocol.md)."""
_GRAPHQL = frozenset({"data", "extensions"})
"""What a GraphQL answer without errors has (October 2021, section 7.1)."""
_PARTIAL = _GRAPHQL | {"errors"}
MAX_LINK = 1000
_NEXT_LINK = re.compile(r"<([^<>]*)>[^<>,]*;\s*rel=\"?[^\",;<>]*\bnext\b", re.IGNORECASE)
_NEXT_PAGES = frozenset(
    f"{prefix}next-{what}" for prefix in ("", "x-") for what in ("page", "page-token", "cursor")
)
"""Headers of APIs that name the next page without a Link; they are empty on the last one."""


def open_result(
    result: Mapping[str, Any], parse: Callable[[str], Any]
) -> tuple[Any, tuple[str, ...]]:
    """What a result gives, and what it tells beside that. Where none of its texts is JSON they are
    words to a reader, and say more than its structure. `parse` reads a text as JSON; only an object
    or a list counts. What is told says also that a next page follows where only a header says so.
    """
    content = [each for each in result.get("content") or () if isinstance(each, Mapping)]
    texts = [str(block.get("text", "")) for block in content if block.get("type") == "text"]
    structured = result.get("structuredContent")
    if not texts and structured is not None:
        return structured, ()
    parsed = ((text, parse(text)) for text in texts)
    own, said = next((each for each in parsed if isinstance(each[1], dict | list)), (None, None))
    beside = tuple(text for text in texts if text is not own)
    if result.get("isError") and (data := _find_partial_data(said)):
        # The errors are about parts of it (GraphQL, October 2021, section 7.1).
        return unwrap_graphql({"data": data}), beside
    if own is None or result.get("isError"):
        return join_texts(content), ()
    value = structured if structured is not None else said
    return value, (*beside, *_describe_next_page(value))


def is_http_answer(value: Mapping[str, Any]) -> bool:
    """Whether a value is what our HTTP tools answer with: a status, and what came with it."""
    return "status" in value and value.keys() <= _ENVELOPE


def unwrap_answer(value: Any) -> Any:
    """What an answer is about: the body or text of an HTTP answer, the one value of a computed one,
    the one field of a GraphQL answer.
    """
    if not isinstance(value, Mapping):
        return value
    if is_http_answer(value):
        held = next((value[name] for name in ("body", "text") if name in value), None)
        return f"HTTP {value['status']}" if held is None else unwrap_graphql(held)
    return value["result"] if value.keys() == {"result"} else value


def unwrap_graphql(body: Any) -> Any:
    """The value of a GraphQL answer's one field, any other body as it is; of a connection its nodes
    beside what is said of them (https://relay.dev/graphql/connections.htm).
    """
    if not isinstance(body, Mapping) or "data" not in body or not body.keys() <= _GRAPHQL:
        return body
    data = body["data"]
    if not isinstance(data, Mapping) or len(data) != 1:
        return body
    (value,) = data.values()
    if not isinstance(value, Mapping):
        return value if isinstance(value, list) else data
    info = value.get("pageInfo")
    if not isinstance(info, Mapping):
        return value
    made = {name: each for name, each in value.items() if name != "pageInfo"}
    edges = made.get("edges")
    if isinstance(edges, list) and "nodes" not in made and all(map(_is_plain_edge, edges)):
        del made["edges"]
        made["nodes"] = [edge["node"] for edge in edges]
    following = ("hasNextPage", "endCursor") if info.get("hasNextPage") else ()
    return {**{name: info[name] for name in following if name in info}, **made}


def _find_partial_data(body: Any) -> Mapping[str, Any] | None:
    """The data that a GraphQL answer has beside its errors; None where there is none."""
    if not isinstance(body, Mapping) or not {"data", "errors"} <= body.keys() <= _PARTIAL:
        return None
    data = body["data"]
    has_any = isinstance(data, Mapping) and any(each is not None for each in data.values())
    return data if has_any else None


def _is_plain_edge(value: Any) -> bool:
    return isinstance(value, Mapping) and "node" in value and value.keys() <= {"node", "cursor"}


def _describe_next_page(value: Any) -> Iterator[str]:
    """What an HTTP answer's headers say of a page behind this one."""
    headers = value.get("headers") if isinstance(value, Mapping) and is_http_answer(value) else None
    if not isinstance(headers, Mapping):
        return
    link = _NEXT_LINK.search(str(headers.get("link", ""))[:MAX_LINK])
    named = (str(headers[name])[:MAX_LINK] for name in sorted(_NEXT_PAGES & headers.keys()))
    target = link[1] if link else next(filter(None, named), "")
    if target:
        yield f"This is one page; the API names the next one: {target}"
