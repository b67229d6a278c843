"""Requests of a forged server for files and values of this machine.

They are `READ`, `LIST` and `WRITE` of `file:` URLs (RFC 8089) and `READ` of `env:NAME`, in the form
of wire requests, so that they are approved, recorded and replayed like requests to an API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sandbox.broker.host.files import LocalFiles
from sandbox.bundle.permissions import Permission
from sandbox.errors import PathRefused
from sandbox.wire.exchange import WireRequest, WireResponse

READ, LIST, WRITE = "READ", "LIST", "WRITE"
FILE, ENV = "file://", "env:"
WITHHELD = b"[withheld]"
MAX_NAME = 4096


@dataclass(frozen=True)
class LocalAccess:
    """The upstream that answers such requests. Raises PathRefused for what was not granted.

    `granted` returns the present permissions, `value` the value of a name (None: not set),
    `private` are Toolwright's own paths, which are never given.
    """

    granted: Callable[[], Sequence[Permission]]
    value: Callable[[str], str | None]
    private: tuple[Path, ...] = ()

    async def send(self, request: WireRequest) -> WireResponse:
        granted = self.granted()
        if request.url.startswith(ENV):
            return self._answer_value(request, granted)
        path, files = unquote(request.url.removeprefix(FILE)), LocalFiles(granted, self.private)
        if request.method == READ:
            return WireResponse(200, (), await asyncio.to_thread(files.read_file, path))
        if request.method == LIST:
            return WireResponse(200, (), await asyncio.to_thread(files.list_entries, path))
        if request.method != WRITE:
            raise PathRefused(path, f"{request.method} is nothing that is done with files")
        await asyncio.to_thread(files.write_file, path, request.body)
        return WireResponse(204)

    def _answer_value(self, request: WireRequest, granted: Sequence[Permission]) -> WireResponse:
        name = unquote(request.url.removeprefix(ENV))
        known = any(each.kind == "env" and each.name == name for each in granted)
        value = self.value(name) if known and request.method == READ else None
        if value is None:
            raise PathRefused(f"env:{name}", "it was not granted, or the vault has no such value")
        return WireResponse(200, (), value.encode())


def parse_local_request(params: Mapping[str, Any], body: bytes) -> WireRequest | None:
    """Parse a `toolwright/request` of kind `file` or `env`; None if it is malformed."""
    kind, operation = params.get("kind"), params.get("op")
    named = params.get("path") if kind == "file" else params.get("name")
    if not isinstance(named, str) or not 0 < len(named) <= MAX_NAME:
        return None
    try:
        written = quote(named, safe="/")
    except UnicodeEncodeError:
        return None
    if kind == "env":
        return WireRequest(READ, ENV + written)
    method = _METHODS.get(operation) if isinstance(operation, str) else None
    if kind != "file" or method is None or not named.startswith("/"):
        return None
    return WireRequest(method, FILE + written, (), body if method == WRITE else b"")


def is_local(request: WireRequest) -> bool:
    return request.url.startswith((FILE, ENV))


_METHODS = {"read": READ, "list": LIST, "write": WRITE}
