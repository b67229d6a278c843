"""Postman collections, formats 2.0 and 2.1 (https://schema.postman.com)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forge.recorded.address import split
from forge.recorded.request import (
    Answer,
    Body,
    Credential,
    FormField,
    Pair,
    RecordedRequest,
    Recording,
)
from forge.recorded.secrets import credential_of

MAX_REQUESTS = 5_000
MAX_FOLDERS = 16
MAX_ANSWERS = 10
_SCHEMA = re.compile(r"schema\.(?:get)?postman\.com/.{0,40}/v(\d\.\d)")
_VARIABLE = re.compile(r"\{\{\s*([^{}]{1,80}?)\s*\}\}")
_LANGUAGES = {
    "json": "application/json",
    "xml": "application/xml",
    "html": "text/html",
    "javascript": "application/javascript",
    "text": "text/plain",
}


def is_postman(root: Any) -> bool:
    """Whether a parsed document is a collection, exported bare or as its API wraps it."""
    root = _unwrapped(root)
    if not isinstance(root, dict) or not isinstance(root.get("item"), list):
        return False
    info = root.get("info")
    return isinstance(info, dict) and ("_postman_id" in info or bool(_version(info)))


def read_postman(root: Any) -> Recording:
    """The requests of a collection, with what its folders say of their credentials.

    Variables that the collection gives a value for a host are filled in; all others stay open.
    """
    prefix = "/collection" if root is not _unwrapped(root) else ""
    collection = _unwrapped(root)
    info = collection["info"]
    reading = _Reading(_variables(collection))
    top = _Folder(pointer=prefix, credential=_credential(collection.get("auth")))
    requests = tuple(reading.items(collection["item"], top))
    return Recording(
        title=_text(info.get("name")) or "API",
        dialect=f"postman {_version(info) or '2.1'}",
        requests=requests,
        description=_text(info.get("description")),
        left_out=tuple(reading.left_out),
    )


def _unwrapped(root: Any) -> Any:
    if isinstance(root, dict) and isinstance(root.get("collection"), dict):
        return root["collection"]
    return root


def _version(info: Mapping[str, Any]) -> str:
    found = _SCHEMA.search(str(info.get("schema", ""))[:300])
    return found[1] if found else ""


@dataclass(frozen=True)
class _Folder:
    pointer: str
    group: str = ""
    credential: Credential | None = None
    depth: int = 0


@dataclass
class _Reading:
    variables: Mapping[str, str]
    left_out: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def items(self, items: list[Any], folder: _Folder) -> Iterator[RecordedRequest]:
        for at, item in enumerate(items):
            where = f"{folder.pointer}/item/{at}"
            if not isinstance(item, dict):
                self.left_out.append((where, "is no object; it is left out"))
            elif isinstance(item.get("item"), list):
                yield from self._folder(item, replace(folder, pointer=where))
            elif self.count >= MAX_REQUESTS:
                reason = f"only the first {MAX_REQUESTS} requests are read"
                self.left_out.append((where, reason))
                return
            elif "request" in item:
                self.count += 1
                yield from self._request(item, where, folder)

    def _folder(self, item: Mapping[str, Any], folder: _Folder) -> Iterator[RecordedRequest]:
        if folder.depth == MAX_FOLDERS:
            self.left_out.append((folder.pointer, f"lies deeper than {MAX_FOLDERS} folders"))
            return
        inner = replace(
            folder,
            group=folder.group or _text(item.get("name")),
            credential=_credential(item.get("auth"), folder.credential),
            depth=folder.depth + 1,
        )
        yield from self.items(item["item"], inner)

    def _request(
        self, item: Mapping[str, Any], where: str, folder: _Folder
    ) -> Iterator[RecordedRequest]:
        request = item["request"]
        if isinstance(request, str):
            request = {"url": request, "method": "GET"}
        url = self._url(request.get("url")) if isinstance(request, dict) else ""
        if not url:
            self.left_out.append((where, "has no URL; it is left out"))
            return
        address = split(url)
        if isinstance(address, str):
            self.left_out.append((f"{where}/request/url", f"{address}; the request is left out"))
            return
        origin, path, query = address
        headers = _pairs(request.get("header"))
        credential = _credential(request.get("auth"), folder.credential)
        body, reason = _body(request.get("body"), headers)
        if reason:
            self.left_out.append((f"{where}/request/body", f"{reason}; the request is left out"))
            return
        yield RecordedRequest(
            method=str(request.get("method") or "GET").upper(),
            origin=origin,
            path=path,
            where=where,
            name=_text(item.get("name")),
            description=_text(request.get("description")),
            group=folder.group,
            query=(*query, *_disabled(request.get("url"))),
            headers=headers,
            body=body,
            answers=tuple(_answers(item.get("response"))),
            credential=credential or credential_of(headers, query),
        )

    def _url(self, url: Any) -> str:
        """The URL with the collection's own variables filled in where they make up the host."""
        if isinstance(url, dict):
            url = url.get("raw") or _assembled(url)
        if not isinstance(url, str):
            return ""
        url = url.strip()
        for _ in range(4):
            found = _VARIABLE.match(url)
            if not found or found[1] not in self.variables:
                break
            url = self.variables[found[1]].rstrip("/") + url[found.end() :]
        return _VARIABLE.sub(self._host_part, url, count=0) if "://" in url[:8] else url

    def _host_part(self, found: re.Match[str]) -> str:
        """A variable inside a host by its value; one in a path stays open."""
        in_host = "/" not in found.string[8 : found.start()].split("?")[0]
        return self.variables.get(found[1], found[0]) if in_host else found[0]


def _assembled(url: Mapping[str, Any]) -> str:
    """A URL object without its `raw` form."""
    host, path = url.get("host"), url.get("path")
    joined = ".".join(map(str, host)) if isinstance(host, list) else _text(host)
    rest = "/".join(map(str, path)) if isinstance(path, list) else _text(path)
    scheme = f"{url['protocol']}://" if url.get("protocol") and "{{" not in joined else ""
    query = "&".join(f"{name}={value}" for name, value in _pairs(url.get("query")))
    return f"{scheme}{joined}/{rest.lstrip('/')}" + (f"?{query}" if query else "")


def _disabled(url: Any) -> tuple[Pair, ...]:
    """Query parameters that a request leaves out for now: they are what else it may carry."""
    query = url.get("query") if isinstance(url, dict) else None
    return tuple(
        (_text(item.get("key")), _text(item.get("value")))
        for item in query or ()
        if isinstance(item, dict) and item.get("disabled") and item.get("key")
    )


def _variables(collection: Mapping[str, Any]) -> dict[str, str]:
    given = collection.get("variable")
    return {
        str(item.get("key") or item.get("id")): item["value"].strip()
        for item in (given if isinstance(given, list) else ())
        if isinstance(item, dict) and isinstance(item.get("value"), str) and item["value"].strip()
    }


def _credential(auth: Any, inherited: Credential | None = None) -> Credential | None:
    """What an `auth` object asks for; where there is none, what its folder does."""
    if not isinstance(auth, dict):
        return inherited
    kind = auth.get("type")
    given = _settings(auth.get(kind) if isinstance(kind, str) else None)
    if kind == "apikey":
        name = given.get("key") or "X-API-Key"
        return Credential("apiKey", "query" if given.get("in") == "query" else "header", name)
    if kind == "oauth2":
        return Credential("oauth2", token_url=given.get("accessTokenUrl", ""))
    if kind in ("bearer", "basic", "digest"):
        return Credential(kind)
    return None


def _settings(given: Any) -> dict[str, str]:
    """2.1 lists {key, value}; 2.0 has an object."""
    if isinstance(given, dict):
        return {str(key): value for key, value in given.items() if isinstance(value, str)}
    return dict(_pairs(given))


def _body(body: Any, headers: tuple[Pair, ...]) -> tuple[Body | None, str]:
    """A request's body, or why it cannot be told."""
    if not isinstance(body, dict) or body.get("disabled"):
        return None, ""
    mode = body.get("mode")
    if mode == "raw":
        text = _text(body.get("raw"))
        return (Body(_raw_type(body, headers, text), text), "") if text.strip() else (None, "")
    if mode == "urlencoded":
        fields = tuple(FormField(k, v) for k, v in _pairs(body.get(mode), every=True))
        return Body("application/x-www-form-urlencoded", fields=fields), ""
    if mode == "formdata":
        given = body.get(mode)
        fields = tuple(
            FormField(str(f["key"]), _text(f.get("value")), f.get("type") == "file")
            for f in (given if isinstance(given, list) else ())
            if isinstance(f, dict) and f.get("key")
        )
        return Body("multipart/form-data", fields=fields), ""
    if mode == "file":
        return Body("application/octet-stream"), ""
    return None, f"its body of mode {str(mode)[:40]!r} is not read" if mode else ""


def _raw_type(body: Mapping[str, Any], headers: tuple[Pair, ...], text: str) -> str:
    declared = next((v for n, v in headers if n.lower() == "content-type"), "")
    if declared:
        return declared.partition(";")[0].strip().lower()
    options = body.get("options")
    raw = options.get("raw") if isinstance(options, dict) else None
    language = str(raw.get("language", "")) if isinstance(raw, dict) else ""
    looks_json = text.lstrip()[:1] in ("{", "[")
    return _LANGUAGES.get(language, "application/json" if looks_json else "text/plain")


def _answers(given: Any) -> Iterator[Answer]:
    for item in given[:MAX_ANSWERS] if isinstance(given, list) else ():
        if isinstance(item, dict) and isinstance(item.get("code"), int):
            named = _pairs(item.get("header"))
            declared = next((v for n, v in named if n.lower() == "content-type"), "")
            text = _text(item.get("body"))
            guessed = "application/json" if text.lstrip()[:1] in ("{", "[") else "text/plain"
            media_type = declared.partition(";")[0].strip().lower() or (guessed if text else "")
            yield Answer(item["code"], media_type, text)


def _pairs(given: Any, *, every: bool = False) -> tuple[Pair, ...]:
    """{key, value} objects as pairs; with `every`, those that are switched off too."""
    return tuple(
        (_text(item.get("key")), _text(item.get("value")))
        for item in (given if isinstance(given, list) else ())
        if isinstance(item, dict) and item.get("key") and (every or not item.get("disabled"))
    )


def _text(value: Any) -> str:
    """A text, or a description object's content."""
    if isinstance(value, dict):
        value = value.get("content")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
