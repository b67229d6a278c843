"""A session with a third-party MCP server, of either protocol era, believed in nothing.

https://modelcontextprotocol.io/specification/2025-11-25 and 2026-07-28. The server is offered
nothing: no brokering, sampling, elicitation or roots. What it asks for is refused and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from sandbox import exactjson
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cleantext import clean_json, clean_text
from sandbox.errors import DefinitionsChanged, SessionBroken
from sandbox.exchange import Exchange
from sandbox.progress import unheard
from sandbox.recording import Tape
from sandbox.redaction import Redaction
from sandbox.remotetools import changes
from sandbox.runner import Failure, Limits, Outcome
from sandbox.session import MAX_MESSAGE, Pipe, PipeSession

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
MAX_PAGES, MAX_TOOLS, MAX_LIST_BYTES = 64, 1000, 8 * 1024 * 1024
MAX_BLOCKS = 1000
MAX_NOTICES = 100_000
"""How many notifications a session may send: servers log by them, so they are no strays."""
METHOD_NOT_FOUND = -32601
NOTICES = frozenset(
    "notifications/" + name
    for name in "cancelled message progress prompts/list_changed resources/list_changed "
    "resources/updated tools/list_changed elicitation/complete".split()
)
BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})
_CLIENT = {"name": "toolwright", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}


class McpSession(PipeSession):
    """A session whose bundle has a `launch`. `secrets` are taken out of all that comes back.

    Every start compares what the server lists with the bundle's pins, as does a call after the
    server has said that its list changed.
    """

    def __init__(
        self,
        bundle: Bundle,
        broker: Broker,
        limits: Limits,
        pipe: Pipe,
        secrets: Redaction | None = None,
    ) -> None:
        super().__init__(bundle, broker, limits, pipe)
        self.refused = self.notices = 0
        self._redaction = secrets or Redaction(())
        self._modern = False
        self._stale = False

    async def start(self) -> None:
        """Shake hands, and list. Raises SessionBroken or DefinitionsChanged."""
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                await self._greet()
                await self._verify()
        except TimeoutError as error:
            late = SessionBroken(f"the server did not start in time; it was stopped{self._said()}")
            self.end(late)
            raise late from error
        except DefinitionsChanged as error:
            self.end(error)
            raise
        except SessionBroken as error:
            raise SessionBroken(f"{error}{self._said()}") from error

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """All that the server lists, as sent, over all pages. Raises SessionBroken."""
        tools: list[Mapping[str, Any]] = []
        size, cursors = 0, {""}
        cursor = ""
        for _ in range(MAX_PAGES):
            answer = await self._request("tools/list", {"cursor": cursor} if cursor else {})
            page, cursor = _page(answer)
            size += len(exactjson.dumps(page))
            tools += page
            if len(tools) > MAX_TOOLS or size > MAX_LIST_BYTES:
                raise self._wrong("the server lists more tools than allowed")
            if not cursor:
                return tuple(tools)
            if cursor in cursors:
                break
            cursors.add(cursor)
        raise self._wrong("the server's tool list does not end")

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: Tape | None = None,
    ) -> Outcome:
        if self._stale:
            async with asyncio.timeout(self.limits.start_seconds):
                await self._verify()
        return await super().call(tool, arguments, seconds, tape)

    async def _greet(self) -> None:
        hello = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": _CLIENT}
        greeting = await self._request("initialize", hello)
        result = greeting.get("result")
        if isinstance(result, dict):
            if result.get("protocolVersion") not in LEGACY:
                raise self._wrong("the server answered with a protocol version that is none")
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return
        self._modern = True
        found = (await self._request("server/discover", {})).get("result")
        versions = found.get("supportedVersions") if isinstance(found, dict) else None
        if not isinstance(versions, list) or MODERN not in versions:
            told = clean_text(str(greeting.get("error")))[:200]
            raise self._wrong(f"the server refused to start: {told}")

    async def _verify(self) -> None:
        """Hold what is listed against the pins. Raises DefinitionsChanged; a draft has no pins."""
        self._stale = False
        launch = self.bundle.launch
        if launch is None or not launch.pins:
            return
        differing = changes(launch.pins, await self.list_tools())
        if differing:
            raise DefinitionsChanged(self.bundle.name, differing)

    def _request(
        self, method: str, params: Mapping[str, Any], identity: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        if method == "tools/call" and self.bundle.launch is not None:
            params = {**params, "name": self.bundle.launch.tool(params["name"]).original}
        meta: dict[str, Any] = dict(_META) if self._modern else {}
        tape = self.tapes.get(identity or "")
        if tape is not None and tape.heard is not unheard:
            meta["progressToken"] = identity
        if meta:
            params = {**params, "_meta": meta}
        return super()._request(method, params, identity)

    def _asked(self, message: Mapping[str, Any]) -> None:
        method, identity = message["method"], message.get("id")
        if self.notices > MAX_NOTICES:
            raise SessionBroken("the server sent too many notifications; it was stopped")
        if identity is None and method in NOTICES:
            self.notices += 1
            self._stale |= method == "notifications/tools/list_changed"
            if method == "notifications/progress":
                self._progressed(message.get("params"))
        elif method == "ping" and isinstance(identity, str | int):
            self.notices += 1
            self._reply(identity, {"result": {}})
        else:
            self.refused += 1
            self._stray()
            if isinstance(identity, str | int):
                error = {"code": METHOD_NOT_FOUND, "message": "the client does not offer this"}
                self._reply(identity, {"error": error})

    def _progressed(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        tape = self.tapes.get(token) if isinstance(token, str) else None
        if tape is not None:
            tape.tell(self._shown(params))

    def _outcome(
        self,
        tool: str,
        answer: Mapping[str, Any],
        exchanges: tuple[Exchange, ...],
        started: float,
    ) -> Outcome:
        told = {key: self._shown(value) for key, value in answer.items() if key != "id"}
        if isinstance(told.get("result"), dict):
            told["result"] = _presentable(told["result"])
        return super()._outcome(tool, told, exchanges, started)

    def _failure(self, tool: str, result: Mapping[str, Any]) -> Failure | None:
        launch = self.bundle.launch
        if result.get("isError") or launch is None or launch.tool(tool).checked:
            return super()._failure(tool, result)
        return None

    def _shown(self, value: Any) -> Any:
        return clean_json(self._redaction.value(value))

    def _said(self) -> str:
        """The end of what the server said on its stderr, for a person who wonders why."""
        text = self._redaction.text(bytes(self.stderr[-4096:]).decode(errors="replace"))
        told = clean_text(text).strip()[-MAX_MESSAGE:]
        return f". It said:\n{told}" if told else ""

    def _wrong(self, reason: str) -> SessionBroken:
        """End the session for that reason."""
        broken = SessionBroken(f"{reason}; it was stopped")
        self.end(broken)
        return broken


def _page(answer: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], str]:
    """The tools of one page and the next one's cursor. Raises SessionBroken."""
    result = answer.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    cursor = result.get("nextCursor") if isinstance(result, dict) else None
    sound = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
    if not sound or not isinstance(cursor, str | None) or tools is None:
        raise SessionBroken("the server's tool list is not one; it was stopped")
    return tools, cursor or ""


def _presentable(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result with the parts that are MCP's and nothing beside them."""
    if result.get("resultType", "complete") != "complete":
        text = "The server wants to ask back before it answers, which it may not."
        return {"isError": True, "content": [{"type": "text", "text": text}]}
    kept: dict[str, Any] = {}
    content = result.get("content")
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        known = [block for block in blocks if block.get("type") in BLOCKS]
        kept["content"] = [_without_meta(block) for block in known[:MAX_BLOCKS]]
    elif "structuredContent" in result:
        kept["content"] = []
    if "structuredContent" in result:
        kept["structuredContent"] = result["structuredContent"]
    if result.get("isError"):
        kept["isError"] = True
    return kept


def _without_meta(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "_meta"}
