"""Reader of HTTP Archive 1.2 files (http://www.softwareishard.com/blog/har-12-spec/), as browsers
export them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from forge.readers.recorded.address import generalize_paths, split_url
from forge.readers.recorded.request import (
    Pair,
    RecordedAnswer,
    RecordedBody,
    RecordedField,
    RecordedRequest,
    RequestRecording,
    find_credentials,
)

MAX_ENTRIES = 20_000
MAX_BODY = 4 * 1024 * 1024
MIN_FIELDS = 2
"""Objects with fewer fields in common say nothing of a collection."""
_VERSIONED = re.compile(r"(?:/v?\d{1,2}|/api|\A)\Z")
_NOT_API = re.compile(
    r"(?:text/html|text/css|image/|font/|audio/|video/|application/(?:x-)?javascript"
    r"|text/javascript|application/wasm|application/font)"
)
_ASSET = re.compile(
    r"\.(?:js|mjs|css|png|jpe?g|gif|svg|ico|woff2?|ttf|map|html?|webp|mp4|wasm)\Z", re.I
)


def is_har(root: Any) -> bool:
    """Whether a parsed document is an HTTP archive."""
    log = root.get("log") if isinstance(root, dict) else None
    return isinstance(log, dict) and isinstance(log.get("entries"), list)


def read_har(root: Any) -> RequestRecording:
    """Read the API requests of an archive. Pages, styles, scripts, images and preflights are
    ignored, and of several origins all but the one with the most requests. Path segments that look
    like identifiers become parameters. No value of the traffic is kept.
    """
    left_out: list[tuple[str, str]] = []
    entries = list(_read_entries(root["log"]["entries"], left_out))
    origins = Counter(request.origin for request in entries)
    main = origins.most_common(1)[0][0] if origins else ""
    for origin, count in origins.items():
        if origin != main:
            reason = f"{count} requests to {origin[:100]} are another API's; they are left out"
            left_out.append(("/log/entries", reason))
    kept = tuple(request for request in entries if request.origin == main)
    return RequestRecording(
        title=main.partition("://")[2] or "API",
        dialect=f"har {str(root['log'].get('version') or '1.2')[:8]}",
        requests=_generalize_requests(kept),
        left_out=tuple(left_out),
    )


def _generalize_requests(requests: tuple[RecordedRequest, ...]) -> tuple[RecordedRequest, ...]:
    paths = generalize_paths(request.path for request in requests)
    made = tuple(replace(request, path=paths[request.path]) for request in requests)
    return _merge_like_paths(made)


def _merge_like_paths(requests: tuple[RecordedRequest, ...]) -> tuple[RecordedRequest, ...]:
    """Requests of one collection, whose last segments are names: `/posts/first` and `/posts/second`
    become `/posts/{post_id}` where both answer objects with the same fields.
    """
    alike: dict[tuple[str, str, frozenset[str]], set[str]] = {}
    for request in requests:
        before, _, last = request.path.rpartition("/")
        fields = _list_answer_fields(request)
        if len(fields) >= MIN_FIELDS and before.rpartition("/")[2] and "{" not in last:
            alike.setdefault((request.method, before, fields), set()).add(last)
    names = {before: found for (_, before, _), found in alike.items() if len(found) > 1}
    routes = {
        f"{before}/{last}": generalize_paths((f"{before}/0",))[f"{before}/0"]
        for before, found in names.items()
        for last in found
        if not _VERSIONED.search(before)
    }
    return tuple(replace(r, path=_apply_routes(r.path, routes)) for r in requests)


def _apply_routes(path: str, routes: Mapping[str, str]) -> str:
    """The path with the longest beginning that is a known one's rewritten."""
    parts = path.split("/")
    for end in range(len(parts), 1, -1):
        known = routes.get("/".join(parts[:end]))
        if known is not None:
            return "/".join((known, *parts[end:]))
    return path


def _list_answer_fields(request: RecordedRequest) -> frozenset[str]:
    """The fields of the object that was answered with 2xx; none for anything else."""
    for answer in request.answers:
        if 200 <= answer.status < 300 and "json" in answer.media_type:
            try:
                value = json.loads(answer.text)
            except (ValueError, RecursionError):
                return frozenset()
            return frozenset(value) if isinstance(value, dict) else frozenset()
    return frozenset()


def _read_entries(given: list[Any], left_out: list[tuple[str, str]]) -> Iterator[RecordedRequest]:
    for at, entry in enumerate(given[:MAX_ENTRIES]):
        where = f"/log/entries/{at}"
        request = entry.get("request") if isinstance(entry, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("url"), str):
            left_out.append((where, "has no request; it is left out"))
            continue
        response = entry.get("response")
        answer = _read_answer(response if isinstance(response, dict) else {})
        method = str(request.get("method") or "GET").upper()
        address = split_url(request["url"])
        if isinstance(address, str):
            left_out.append((f"{where}/request/url", f"{address}; it is left out"))
        elif not _is_page(method, address[1], answer):
            yield _build_request(request, method, address, answer, where)
    if len(given) > MAX_ENTRIES:
        left_out.append(("/log/entries", f"only the first {MAX_ENTRIES} entries are read"))


def _is_page(method: str, path: str, answer: RecordedAnswer) -> bool:
    asset = _ASSET.search(path) or _NOT_API.match(answer.media_type)
    return method in ("OPTIONS", "CONNECT") or bool(asset and method in ("GET", "HEAD"))


def _build_request(
    request: Mapping[str, Any],
    method: str,
    address: tuple[str, str, tuple[Pair, ...]],
    answer: RecordedAnswer,
    where: str,
) -> RecordedRequest:
    origin, path, query = address
    headers = tuple(_read_pairs(request.get("headers")))
    found = find_credentials(headers, query)
    return RecordedRequest(
        method=method,
        origin=origin,
        path=path,
        where=where,
        query=query,
        headers=headers,
        body=_read_body(request.get("postData")),
        answers=(answer,) if answer.status else (),
        credential=next(iter(found), None),
        shares=False,
        others=found[1:],
    )


def _read_body(given: Any) -> RecordedBody | None:
    if not isinstance(given, dict):
        return None
    media_type = str(given.get("mimeType") or "").partition(";")[0].strip().lower()
    text = str(given.get("text") or "")
    params = given.get("params")
    fields = tuple(
        RecordedField(str(item["name"]), "", "fileName" in item)
        for item in (params if isinstance(params, list) else ())
        if isinstance(item, dict) and item.get("name")
    )
    if not fields and media_type == "application/x-www-form-urlencoded":
        fields = tuple(RecordedField(name) for name, _ in parse_qsl(text, keep_blank_values=True))
    if not text and not fields:
        return None
    if not media_type and text.lstrip()[:1] in ("{", "["):
        media_type = "application/json"
    return RecordedBody(media_type or "text/plain", "" if fields else text[:MAX_BODY], fields)


def _read_answer(response: Mapping[str, Any]) -> RecordedAnswer:
    status = response.get("status")
    content = response.get("content")
    content = content if isinstance(content, dict) else {}
    media_type = str(content.get("mimeType") or "").partition(";")[0].strip().lower()
    text = str(content.get("text") or "")
    if content.get("encoding") == "base64":
        try:
            text = base64.b64decode(text[: 2 * MAX_BODY], validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
    return RecordedAnswer(status if isinstance(status, int) else 0, media_type, text[:MAX_BODY])


def _read_pairs(given: Any) -> Iterator[Pair]:
    for item in given if isinstance(given, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            if not item["name"].startswith(":"):
                yield item["name"], str(item.get("value", ""))
