"""Hostile texts in requests: what holds a request together stays the same, whatever values stand in
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.stages.replay.calls import describe_asked, is_http, name_asked
from sandbox.wire.exchange import WireRequest

SPLICES = ('a"b', "a'b", "a}b{c", "a\nb", "a/../b", "a?b=c&d#e", "a<b>&c", "a\\b", 'x", y: "z')
"""Values that break a document or a URL which is put together from texts."""
_GRAPHQL = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*|-?\d[\w.]*|\.\.\.|\S')
_XML = re.compile(r"<[^<>]*>")
_ENTITY = re.compile(r"&#?\w{1,20};")
_MARK = "\x00value\x00"


def find_splice(usual: WireRequest, spliced: WireRequest, value: str, hostile: str) -> str:
    """Where a request with a hostile text differs from the usual one by more than that text in the
    place of its value; "" where it does not.
    """
    before, after = describe_asked(usual), describe_asked(spliced)
    if is_http(usual) != is_http(spliced):
        return "another request is made"
    if is_http(usual):
        before, after = _open_url(before), _open_url(after)
    elif name_asked(usual) != name_asked(spliced):
        return "another request is made"
    return _compare(before, after, value, hostile, "")


def _open_url(told: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request with its URL in parts, decoded."""
    parts = urlsplit(str(told["url"]))
    opened = {
        "origin": f"{parts.scheme}://{parts.netloc}",
        "path": [unquote(part) for part in parts.path.split("/")],
        "query": [list(pair) for pair in parse_qsl(parts.query, keep_blank_values=True)],
        "fragment": parts.fragment,
    }
    kept = {key: item for key, item in told.items() if key in ("json", "text")}
    headers = {k: v for k, v in told["headers"].items() if k != "user-agent"}
    return {**kept, "headers": headers, "url": opened}


def _compare(before: Any, after: Any, value: str, hostile: str, where: str) -> str:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if before.keys() != after.keys():
            changed = sorted(map(str, before.keys() ^ after.keys()))
            return f"{where or '/'}: {', '.join(changed)[:80]} comes or goes"
        found = (_compare(v, after[k], value, hostile, f"{where}/{k}") for k, v in before.items())
        return next(filter(None, found), "")
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return f"{where or '/'}: {len(after)} parts, not {len(before)}"
        pairs = enumerate(zip(before, after, strict=True))
        found = (_compare(a, b, value, hostile, f"{where}/{at}") for at, (a, b) in pairs)
        return next(filter(None, found), "")
    if isinstance(before, str) and isinstance(after, str) and value in before:
        return _compare_texts(before, after, value, hostile, where)
    return ""


def _compare_texts(before: str, after: str, value: str, hostile: str, where: str) -> str:
    """Texts that contain the value: a document within keeps its form; what is the value alone, or
    no document, may be anything.
    """
    if before == value:
        return ""
    for shape in (_shape_json, _shape_xml, _shape_graphql, _shape_query):
        usual = shape(before, value)
        if usual is not None:
            came = shape(after, hostile)
            return "" if usual == came else f"{where or '/'}: the document within is another"
    return ""


def _shape_json(text: str, value: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return _blank(json.loads(text), value)
    except (ValueError, RecursionError):
        return None


def _blank(value: Any, hidden: str) -> Any:
    if isinstance(value, dict):
        return {key: _blank(item, hidden) for key, item in value.items()}
    if isinstance(value, list):
        return [_blank(item, hidden) for item in value]
    if isinstance(value, str):
        return value.replace(hidden, _MARK)
    return value


def _shape_xml(text: str, value: str) -> Any:
    if not text.lstrip().startswith("<"):
        return None
    tags = [tag.partition(" ")[0].rstrip("/>") for tag in _XML.findall(text)]
    between = _ENTITY.sub("", _XML.sub("", text))
    return tags, between.count("<"), between.count("&")


def _shape_graphql(text: str, value: str) -> Any:
    if "{" not in text or "}" not in text:
        return None
    return [('"' if token.startswith('"') else token) for token in _GRAPHQL.findall(text)]


def _shape_query(text: str, value: str) -> Any:
    if not re.search(r"\w=[^=]", text):
        return None
    query = text.partition("?")[2] or text
    path = text.partition("?")[0].count("/") if "?" in text else 0
    return path, [name for name, _ in parse_qsl(query, keep_blank_values=True)]


def list_texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts among a case's arguments that may be told from others in a request."""
    for name, value in arguments.items():
        if isinstance(value, str) and len(value) >= 2:
            yield name, value
