"""MCP: what each message means and what is answered, in both protocol eras.

Nothing here reads, writes or waits, so that the pipe and an engine without threads share it.
https://modelcontextprotocol.io/specification/2026-07-28 and 2025-11-25
"""

from __future__ import annotations

from .bundle import load
from .calls import Call
from .errors import LoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .bundle import Bundle
    from .calls import Transport

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
OFFER = "toolwright/request"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR, LOAD_FAILED, UNSUPPORTED_VERSION = -32603, -32001, -32022
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_CACHED = {"ttlMs": 300_000, "cacheScope": "private"}


class Refusal(Exception):
    """A JSON-RPC error to be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


class PendingCall:
    """A `tools/call` that was accepted. `run` gives the whole answer, or raises Cancelled."""

    def __init__(
        self, identity: int | str, call: Call, arguments: dict[str, Any], finish: Finish
    ) -> None:
        self.identity = identity
        self._call, self._arguments, self._finish = call, arguments, finish

    @property
    def hands_on(self) -> bool:
        """Whether its result is what an API answered, and not what the tool's code made."""
        return bool(self._call.tool.definition.get("operation"))

    def run(self) -> dict[str, Any]:
        return self.answer(self._call.run(self._arguments))

    def answer(self, result: dict[str, Any]) -> dict[str, Any]:
        return _answer(self.identity, self._finish(result))


if TYPE_CHECKING:
    Finish = Callable[[dict[str, Any]], dict[str, Any]]
    Received = dict[str, Any] | PendingCall | None


class Connection:
    """One peer. `transport` gives a bundle's way out; its flag tells whether a broker was offered.

    Without a bundle the peer may send one, once, by `toolwright/load`.
    """

    def __init__(
        self, bundle: Bundle | None, transport: Callable[[Bundle, bool], Transport]
    ) -> None:
        self._bundle, self._make_transport = bundle, transport
        self._loadable = bundle is None
        self._version: str | None = None
        self._modern: bool | None = None
        self._brokered = False
        self._transport: Transport | None = None

    def receive(self, message: Any) -> Received:
        """What a request or notification brings: an answer, a call to run, or nothing."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return error(None, INVALID_REQUEST, "not a JSON-RPC 2.0 request")
        if "id" not in message:
            return None
        identity = message["id"]
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            return error(None, INVALID_REQUEST, "the id is neither a string nor an integer")
        try:
            params = message.get("params", {})
            if message.get("jsonrpc") != "2.0":
                raise Refusal(INVALID_REQUEST, "jsonrpc is not 2.0")
            if not isinstance(params, dict):
                raise Refusal(INVALID_PARAMS, "params is not an object")
            return self._request(identity, message["method"], params)
        except Refusal as refusal:
            return error(identity, refusal.code, str(refusal), refusal.data)

    def _request(self, identity: int | str, method: str, params: dict[str, Any]) -> Received:
        if method == "toolwright/load":
            return _answer(identity, self._load(params))
        self._settle_era(method, params)
        if method == "tools/call":
            return self._call(identity, params)
        methods = _MODERN_METHODS if self._modern else _LEGACY_METHODS
        if method not in methods:
            raise Refusal(METHOD_NOT_FOUND, "Method not found", method[:200])
        return _answer(identity, self._finished(methods[method](self, params)))

    def _settle_era(self, method: str, params: dict[str, Any]) -> None:
        meta = params.get("_meta")
        enveloped = isinstance(meta, dict) and _VERSION_KEY in meta and method != "initialize"
        if self._modern is None and not enveloped and method != "server/discover":
            self._modern = False
        if self._modern is False:
            if enveloped:
                raise Refusal(INVALID_REQUEST, "this connection began with another protocol era")
            return
        if self._modern and method == "initialize":
            raise _unsupported(params.get("protocolVersion"))
        _check_envelope(meta)
        self._modern = True

    def _load(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self._loadable:
            raise Refusal(INVALID_REQUEST, "a bundle is loaded once, and only where none was found")
        self._loadable = False
        try:
            self._bundle = load(params)
        except LoadError as reason:
            raise Refusal(LOAD_FAILED, str(reason)) from reason
        return {"tools": len(self._bundle.tools)}

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._version is not None:
            raise Refusal(INVALID_REQUEST, "initialize was already answered")
        offered, capabilities = params.get("protocolVersion"), params.get("capabilities")
        self._version = offered if offered in LEGACY_VERSIONS else LEGACY_VERSIONS[-1]
        experimental = capabilities.get("experimental") if isinstance(capabilities, dict) else None
        self._brokered = isinstance(experimental, dict) and OFFER in experimental
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {}},
            "serverInfo": self._server_info(),
            **self._instructions(),
        }

    def _discover(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "supportedVersions": list(MODERN_VERSIONS),
            "capabilities": {"tools": {}},
            **self._instructions(),
            **_CACHED,
        }

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("cursor") is not None:
            raise Refusal(INVALID_PARAMS, "there is only one page")
        tools = self._served().listed
        return {"tools": tools, **_CACHED} if self._modern else {"tools": tools}

    def _ping(self, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _call(self, identity: int | str, params: dict[str, Any]) -> PendingCall:
        bundle, arguments = self._served(), params.get("arguments")
        name = params.get("name")
        tool = bundle.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Refusal(INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
        if arguments is not None and not isinstance(arguments, dict):
            raise Refusal(INVALID_PARAMS, "arguments is not an object")
        if self._transport is None:
            self._transport = self._make_transport(bundle, self._brokered)
        call = Call(identity, tool, self._transport)
        return PendingCall(identity, call, arguments or {}, self._finished)

    def _served(self) -> Bundle:
        if self._bundle is None:
            raise Refusal(LOAD_FAILED, "no bundle is loaded")
        return self._bundle

    def _finished(self, result: dict[str, Any]) -> dict[str, Any]:
        if not self._modern:
            return result
        meta = {**result.get("_meta", {}), _SERVER_KEY: self._server_info()}
        return {"resultType": "complete", **result, "_meta": meta}

    def _server_info(self) -> dict[str, Any]:
        manifest: Mapping[str, Any] = self._bundle.manifest if self._bundle else {}
        title = manifest.get("title")
        return {
            "name": str(manifest.get("name") or "toolwright"),
            "version": str(manifest.get("version") or "0"),
            **({"title": title} if isinstance(title, str) and title else {}),
        }

    def _instructions(self) -> dict[str, Any]:
        text = self._bundle.manifest.get("description") if self._bundle else None
        return {"instructions": text} if isinstance(text, str) and text else {}


_LEGACY_METHODS = {
    "initialize": Connection._initialize,
    "ping": Connection._ping,
    "tools/list": Connection._list,
}
_MODERN_METHODS = {"server/discover": Connection._discover, "tools/list": Connection._list}


def error(identity: int | str | None, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error answer."""
    extra = {} if data is None else {"data": data}
    told = {"code": code, "message": message, **extra}
    return {"jsonrpc": "2.0", "id": identity, "error": told}


def _answer(identity: int | str, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def _check_envelope(meta: Any) -> None:
    """The fields that every 2026-07-28 request carries."""
    missing = [
        key
        for key in (_VERSION_KEY, _CAPABILITIES_KEY)
        if not isinstance(meta, dict) or key not in meta
    ]
    if missing:
        raise Refusal(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if not isinstance(meta[_VERSION_KEY], str):
        raise Refusal(INVALID_PARAMS, f"{_VERSION_KEY} is not a string")
    if meta[_VERSION_KEY] not in MODERN_VERSIONS:
        raise _unsupported(meta[_VERSION_KEY])


def _unsupported(version: Any) -> Refusal:
    data: dict[str, Any] = {"supported": list(MODERN_VERSIONS)}
    if isinstance(version, str):
        data["requested"] = version[:100]
    return Refusal(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
