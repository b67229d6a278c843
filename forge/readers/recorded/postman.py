"""Reader of Postman collections, formats 2.0 and 2.1 (https://schema.postman.com)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forge.readers.recorded.address import split_url
from forge.readers.recorded.request import (
    Pair,
    RecordedAnswer,
    RecordedBody,
    RecordedCredential,
    RecordedField,
    RecordedRequest,
    RequestRecording,
    find_credential,
)

MAX_REQUESTS = 5_000
MAX_FOLDERS = 16
MAX_ANSWERS = 10
_SCHEMA = re.compile(r"schema\.(?:get)?postman\.com/.{0,40}/v(\d\.\d)")
_VARIABLE = re.compile(r"\{\{\s{0,9}([^{}]{1,80}?)\s{0,9}\}\}")
_LANGUAGES = {
    "json": "application/json",
    "xml": "application/xml",
    "html": "text/html",
    "javascript": "application/javascript",
    "text": "text/plain",
}


def is_postman(root: Any) -> bool:
    """Whether a parsed document is a collection, exported bare or wrapped in `collection` as by
    Postman's API.
    """
    root = _unwrap_collection(root)
    if not isinstance(root, dict) or not isinstance(root.get("item"), list):
        return False
    info = root.get("info")
    return isinstance(info, dict) and ("_postman_id" in info or bool(_find_version(info)))


def read_postman(root: Any) -> RequestRecording:
    """Read the requests of a collection, with the credentials that its folders declare.

    Collection variables with a value are filled in where they are part of a host; all others become
    parameters.
    """
    prefix = "/collection" if root is not _unwrap_collection(root) else ""
    collection = _unwrap_collection(root)
    info = collection["info"]
    reading = _CollectionReader(_read_variables(collection))
    top = _Folder(pointer=prefix, credential=_read_credential(collection.get("auth")))
    requests = tuple(reading.read_items(collection["item"], top))
    return RequestRecording(
        title=_to_text(info.get("name")) or "API",
        dialect=f"postman {_find_version(info) or '2.1'}",
        requests=requests,
        description=_to_text(info.get("description")),
        left_out=tuple(reading.left_out),
    )


def _unwrap_collection(root: Any) -> Any:
    if isinstance(root, dict) and isinstance(root.get("collection"), dict):
        return root["collection"]
    return root


def _find_version(info: Mapping[str, Any]) -> str:
    found = _SCHEMA.search(str(info.get("schema", ""))[:300])
    return found[1] if found else ""


@dataclass(frozen=True)
class _Folder:
    pointer: str
    group: str = ""
    credential: RecordedCredential | None = None
    depth: int = 0


@dataclass
class _CollectionReader:
    variables: Mapping[str, str]
    left_out: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def read_items(self, items: list[Any], folder: _Folder) -> Iterator[RecordedRequest]:
        for at, item in enumerate(items):
            where = f"{folder.pointer}/item/{at}"
            if not isinstance(item, dict):
                self.left_out.append((where, "is no object; it is left out"))
            elif isinstance(item.get("item"), list):
                yield from self._read_folder(item, replace(folder, pointer=where))
            elif self.count >= MAX_REQUESTS:
                reason = f"only the first {MAX_REQUESTS} requests are read"
                self.left_out.append((where, reason))
                return
            elif "request" in item:
                self.count += 1
                yield from self._read_request(item, where, folder)

    def _read_folder(self, item: Mapping[str, Any], folder: _Folder) -> Iterator[RecordedRequest]:
        if folder.depth == MAX_FOLDERS:
            self.left_out.append((folder.pointer, f"lies deeper than {MAX_FOLDERS} folders"))
            return
        inner = replace(
            folder,
            group=folder.group or _to_text(item.get("name")),
            credential=_read_credential(item.get("auth"), folder.credential),
            depth=folder.depth + 1,
        )
        yield from self.read_items(item["item"], inner)

    def _read_request(
        self, item: Mapping[str, Any], where: str, folder: _Folder
    ) -> Iterator[RecordedRequest]:
        request = item["request"]
        if isinstance(request, str):
            request = {"url": request, "method": "GET"}
        url = self._resolve_url(request.get("url")) if isinstance(request, dict) else ""
        if not url:
            self.left_out.append((where, "has no URL; it is left out"))
            return
        address = split_url(url)
        if isinstance(address, str):
            self.left_out.append((f"{where}/request/url", f"{address}; the request is left out"))
            return
        origin, path, query = address
        headers = _read_pairs(request.get("header"))
        credential = _read_credential(request.get("auth"), folder.credential)
        body, reason = _read_body(request.get("body"), headers)
        if reason:
            self.left_out.append((f"{where}/request/body", f"{reason}; the request is left out"))
            return
        yield RecordedRequest(
            method=str(request.get("method") or "GET").upper(),
            origin=origin,
            path=path,
            where=where,
            name=_to_text(item.get("name")),
            description=_to_text(request.get("description")),
            group=folder.group,
            query=(*query, *_list_disabled_query(request.get("url"))),
            headers=headers,
            body=body,
            answers=tuple(_read_answers(item.get("response"))),
            credential=credential or find_credential(headers, query),
            placed=(*self.variables.items(), *_read_path_values(request.get("url"))),
        )

    def _resolve_url(self, url: Any) -> str:
        """Return the URL with the collection's own variables filled in where they are part of the
        host.
        """
        if isinstance(url, dict):
            url = url.get("raw") or _build_url(url)
        if not isinstance(url, str):
            return ""
        url = url.strip()
        for _ in range(4):
            found = _VARIABLE.match(url)
            if not found or found[1] not in self.variables:
                break
            url = self.variables[found[1]].rstrip("/") + url[found.end() :]
        return _VARIABLE.sub(self._fill_host_variable, url, count=0) if "://" in url[:8] else url

    def _fill_host_variable(self, found: re.Match[str]) -> str:
        """Replace a variable inside a host by its value; one in a path is kept."""
        in_host = "/" not in found.string[8 : found.start()].split("?")[0]
        return self.variables.get(found[1], found[0]) if in_host else found[0]


def _build_url(url: Mapping[str, Any]) -> str:
    """Build the URL of a URL object that has no `raw` form."""
    host, path = url.get("host"), url.get("path")
    joined = ".".join(map(str, host)) if isinstance(host, list) else _to_text(host)
    rest = "/".join(map(str, path)) if isinstance(path, list) else _to_text(path)
    scheme = f"{url['protocol']}://" if url.get("protocol") and "{{" not in joined else ""
    query = "&".join(f"{name}={value}" for name, value in _read_pairs(url.get("query")))
    return f"{scheme}{joined}/{rest.lstrip('/')}" + (f"?{query}" if query else "")


def _list_disabled_query(url: Any) -> tuple[Pair, ...]:
    """Return the query parameters that are switched off; a request may carry them as well."""
    query = url.get("query") if isinstance(url, dict) else None
    return tuple(
        (_to_text(item.get("key")), _to_text(item.get("value")))
        for item in (query if isinstance(query, list) else ())
        if isinstance(item, dict) and item.get("disabled") and item.get("key")
    )


def _read_path_values(url: Any) -> tuple[Pair, ...]:
    """Return the values of a URL's own path variables (`:name`)."""
    return tuple(_read_variables(url).items()) if isinstance(url, dict) else ()


def _read_variables(holder: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables with a value that a collection or a URL declares."""
    given = holder.get("variable")
    return {
        str(item.get("key") or item.get("id")): item["value"].strip()
        for item in (given if isinstance(given, list) else ())
        if isinstance(item, dict) and isinstance(item.get("value"), str) and item["value"].strip()
    }


def _read_credential(
    auth: Any, inherited: RecordedCredential | None = None
) -> RecordedCredential | None:
    """Read the credential of an `auth` object; where there is none, the folder's."""
    if not isinstance(auth, dict) or not auth.get("type") or auth["type"] in _INHERITING:
        return inherited
    kind = auth["type"]
    given = _read_settings(auth.get(kind) if isinstance(kind, str) else None)
    if kind == "apikey":
        name = given.get("key") or "X-API-Key"
        return RecordedCredential(
            "apiKey", "query" if given.get("in") == "query" else "header", name
        )
    if kind == "oauth2":
        return RecordedCredential("oauth2", token_url=given.get("accessTokenUrl", ""))
    if kind in ("bearer", "basic", "digest"):
        return RecordedCredential(kind)
    return None


_INHERITING = ("inherit", "inherited", "parent")
"""How an export says that what holds is the folder's."""


def _read_settings(given: Any) -> dict[str, str]:
    """Read settings: 2.1 lists {key, value}, 2.0 has an object."""
    if isinstance(given, dict):
        return {str(key): value for key, value in given.items() if isinstance(value, str)}
    return dict(_read_pairs(given))


def _read_body(body: Any, headers: tuple[Pair, ...]) -> tuple[RecordedBody | None, str]:
    """Read a request's body, or return why it cannot be read."""
    if not isinstance(body, dict) or body.get("disabled"):
        return None, ""
    mode = body.get("mode")
    if mode == "raw":
        text = _to_text(body.get("raw"))
        return (
            (RecordedBody(_find_raw_type(body, headers, text), text), "")
            if text.strip()
            else (None, "")
        )
    if mode == "urlencoded":
        fields = tuple(RecordedField(k, v) for k, v in _read_pairs(body.get(mode), every=True))
        return RecordedBody("application/x-www-form-urlencoded", fields=fields), ""
    if mode == "formdata":
        given = body.get(mode)
        fields = tuple(
            RecordedField(str(f["key"]), _to_text(f.get("value")), f.get("type") == "file")
            for f in (given if isinstance(given, list) else ())
            if isinstance(f, dict) and f.get("key")
        )
        return RecordedBody("multipart/form-data", fields=fields), ""
    if mode == "file":
        return RecordedBody("application/octet-stream"), ""
    if mode == "graphql":
        return None, "it asks by GraphQL: give the address that it asks, or its schema, instead"
    return None, f"its body of mode {str(mode)[:40]!r} is not read" if mode else ""


def _find_raw_type(body: Mapping[str, Any], headers: tuple[Pair, ...], text: str) -> str:
    declared = next((v for n, v in headers if n.lower() == "content-type"), "")
    if declared:
        return declared.partition(";")[0].strip().lower()
    options = body.get("options")
    raw = options.get("raw") if isinstance(options, dict) else None
    language = str(raw.get("language", "")) if isinstance(raw, dict) else ""
    looks_json = text.lstrip()[:1] in ("{", "[")
    return _LANGUAGES.get(language, "application/json" if looks_json else "text/plain")


def _read_answers(given: Any) -> Iterator[RecordedAnswer]:
    for item in given[:MAX_ANSWERS] if isinstance(given, list) else ():
        if isinstance(item, dict) and isinstance(item.get("code"), int):
            named = _read_pairs(item.get("header"))
            declared = next((v for n, v in named if n.lower() == "content-type"), "")
            text = _to_text(item.get("body"))
            guessed = "application/json" if text.lstrip()[:1] in ("{", "[") else "text/plain"
            media_type = declared.partition(";")[0].strip().lower() or (guessed if text else "")
            yield RecordedAnswer(item["code"], media_type, text)


def _read_pairs(given: Any, *, every: bool = False) -> tuple[Pair, ...]:
    """Return {key, value} objects as pairs; with `every`, also those that are switched off."""
    return tuple(
        (_to_text(item.get("key")), _to_text(item.get("value")))
        for item in (given if isinstance(given, list) else ())
        if isinstance(item, dict) and item.get("key") and (every or not item.get("disabled"))
    )


def _to_text(value: Any) -> str:
    """Return a string, also of a description object's content."""
    if isinstance(value, dict):
        value = value.get("content")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
