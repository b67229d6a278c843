"""A session with a third-party MCP server, of either protocol era, believed in nothing.

https://modelcontextprotocol.io/specification/2025-11-25 and 2026-07-28. The server is offered
nothing: no brokering, sampling, elicitation or roots. What it asks for is refused and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from sandbox import exactjson
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.cleantext import clean_json, clean_text
from sandbox.content import without_secrets
from sandbox.errors import DefinitionsChanged, SessionBroken
from sandbox.exchange import Exchange
from sandbox.material import READ, Material, read_material, refused
from sandbox.notices import read_message
from sandbox.offer import KINDS, RESOURCE, Kind, Listed, offer_changes
from sandbox.progress import unheard
from sandbox.recording import Tape
from sandbox.redaction import Redaction
from sandbox.remoteanswers import (
    METHOD_NOT_FOUND,
    is_unknown,
    presentable,
    read_abilities,
    read_page,
)
from sandbox.remotetools import changes
from sandbox.runner import Failure, Limits, Outcome
from sandbox.session import MAX_MESSAGE, Pipe, PipeSession
from sandbox.watches import MAX_WATCHED, Watch, Watches

T = TypeVar("T")
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
MAX_PAGES, MAX_TOOLS, MAX_LIST_BYTES = 64, 1000, 8 * 1024 * 1024
MAX_RESOURCES = 10_000
MAX_NOTICES = 100_000
"""How many notifications a session may send: servers log by them, so they are no strays."""
NOTICES = frozenset(
    "notifications/" + name
    for name in "cancelled message progress prompts/list_changed resources/list_changed "
    "resources/updated subscriptions/acknowledged tools/list_changed elicitation/complete".split()
)
CHANGED = frozenset(
    f"notifications/{name}/list_changed" for name in ("prompts", "resources", "tools")
)
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
        self.dropped = 0
        """Log messages that were none, or that nobody asked for."""
        self.abilities: frozenset[str] = frozenset()
        self.watches = Watches()
        self._redaction = secrets or Redaction(())
        self._modern = False
        self._stale = False
        self._level = ""

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
        return await self._listed("tools/list", "tools", MAX_TOOLS)

    async def listed(self) -> Listed:
        """What else the server lists, as sent. Raises SessionBroken."""
        kinds = [kind for kind in KINDS if kind.ability in self.abilities]
        definitions = {kind.name: await self._of(kind) for kind in kinds}
        return Listed(self.abilities, definitions)

    async def resources(self) -> tuple[Mapping[str, Any], ...]:
        """The resources that there are at the moment, as sent, their words held against the pins.

        Raises SessionBroken or DefinitionsChanged; both end the session.
        """
        await self._fresh()
        found = await self._in_time(self._of(RESOURCE))
        self._hold(offer_changes(self._pins(RESOURCE), Listed(self.abilities, {"resource": found})))
        return found

    async def ask(self, method: str, params: Mapping[str, Any], tape: Tape) -> Material:
        """The answer to `resources/read`, `prompts/get` or `completion/complete`.

        Raises CallTimedOut, SessionBroken or DefinitionsChanged, which end the session.
        """
        await self._fresh()
        answer = await self._answer(method, params, method, tape)
        return read_material(method, answer, self._redaction)

    async def watch(self, uri: str, hear: Callable[[str], None]) -> Material:
        """Have `hear` told that a resource changed, or that the session ended."""
        if len(self.watches) >= MAX_WATCHED:
            return refused(f"more than {MAX_WATCHED} resources are watched")
        watch = Watch(uri, hear)
        self.watches.add(watch)
        agreed = Material(None)
        try:
            agreed = await (self._listen(watch) if self._modern else self._subscribe(uri))
        finally:
            if agreed.result is None:
                self.watches.remove(uri)
        return agreed

    async def _subscribe(self, uri: str) -> Material:
        answer = await self._answer("resources/subscribe", {"uri": uri}, "subscribing", Tape())
        refusal = "error" in answer
        return read_material(READ, answer, self._redaction) if refusal else Material({})

    async def unwatch(self, uri: str) -> None:
        watch = self.watches.remove(uri)
        if watch is not None and watch.identity:
            self._cancel(watch.identity)
        elif watch is not None:
            await self._answer("resources/unsubscribe", {"uri": uri}, "unsubscribing", Tape())

    async def _listen(self, watch: Watch) -> Material:
        """A subscription of the newer era: a request that is answered when it is over."""
        watch.identity = f"listen{next(self._ids)}"
        wanted = {"notifications": {"resourceSubscriptions": [watch.uri]}}
        over = self._request("subscriptions/listen", wanted, watch.identity)
        over.add_done_callback(lambda future: future.cancelled() or future.exception())
        agreed = asyncio.ensure_future(watch.agreed.wait())
        either: set[asyncio.Future[Any]] = {over, agreed}
        await asyncio.wait(
            either, timeout=self.limits.call_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        agreed.cancel()
        if watch.agreed.is_set():
            return Material({})
        self._cancel(watch.identity)
        return refused("the server did not take up the subscription")

    def end(self, reason: Exception | None = None) -> None:
        super().end(reason)
        self.watches.end()

    async def _of(self, kind: Kind) -> tuple[Mapping[str, Any], ...]:
        most = MAX_RESOURCES if kind is RESOURCE else MAX_TOOLS
        found = await self._listed(kind.method, kind.member, most)
        return tuple(self._redaction.value(item) for item in found)

    async def _listed(self, method: str, member: str, most: int) -> tuple[Mapping[str, Any], ...]:
        items: list[Mapping[str, Any]] = []
        size, cursors = 0, {""}
        cursor = ""
        for _ in range(MAX_PAGES):
            answer = await self._request(method, {"cursor": cursor} if cursor else {})
            if not items and is_unknown(answer):
                return ()
            page, cursor = read_page(answer, member)
            size += len(exactjson.dumps(page))
            items += page
            if len(items) > most or size > MAX_LIST_BYTES:
                raise self._wrong(f"the server lists more {member} than allowed")
            if not cursor:
                return tuple(items)
            if cursor in cursors:
                break
            cursors.add(cursor)
        raise self._wrong(f"the server's list of {member} does not end")

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: Tape | None = None,
    ) -> Outcome:
        await self._fresh()
        return await super().call(tool, arguments, seconds, tape)

    async def _fresh(self) -> None:
        """Look again at what is listed, where the server has said that it changed."""
        if self._stale:
            await self._in_time(self._verify())

    async def _in_time(self, work: Awaitable[T]) -> T:
        """What the work gives. Raises SessionBroken where the server takes too long over it."""
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                return await work
        except TimeoutError as error:
            raise self._wrong("the server did not say in time what it has") from error

    async def _greet(self) -> None:
        hello = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": _CLIENT}
        greeting = await self._request("initialize", hello)
        result = greeting.get("result")
        if isinstance(result, dict):
            if result.get("protocolVersion") not in LEGACY:
                raise self._wrong("the server answered with a protocol version that is none")
            self.abilities = read_abilities(result.get("capabilities"))
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return
        self._modern = True
        found = (await self._request("server/discover", {})).get("result")
        versions = found.get("supportedVersions") if isinstance(found, dict) else None
        if not isinstance(versions, list) or MODERN not in versions:
            told = clean_text(str(greeting.get("error")))[:200]
            raise self._wrong(f"the server refused to start: {told}")
        self.abilities = read_abilities(
            found.get("capabilities") if isinstance(found, dict) else None
        )

    async def _verify(self) -> None:
        """Hold what is listed against the pins. Raises DefinitionsChanged; a draft has no pins."""
        self._stale = False
        launch = self.bundle.launch
        if launch is None or not (launch.pins or launch.offer.pins):
            return
        differing = changes(launch.pins, await self.list_tools())
        kinds = [kind for kind in KINDS if self._pins(kind)]
        found = {kind.name: await self._of(kind) for kind in kinds}
        pins = {key: pin for kind in kinds for key, pin in self._pins(kind).items()}
        self._hold((*differing, *offer_changes(pins, Listed(self.abilities, found))))

    def _pins(self, kind: Kind) -> dict[str, str]:
        pins = self.bundle.launch.offer.pins if self.bundle.launch else {}
        return {key: pin for key, pin in pins.items() if key.startswith(f"{kind.name} ")}

    def _hold(self, differing: tuple[str, ...]) -> None:
        if differing:
            changed = DefinitionsChanged(self.bundle.name, differing)
            self.end(changed)
            raise changed

    def _request(
        self, method: str, params: Mapping[str, Any], identity: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        if method == "tools/call" and self.bundle.launch is not None:
            params = {**params, "name": self.bundle.launch.tool(params["name"]).original}
        meta: dict[str, Any] = dict(_META) if self._modern else {}
        tape = self.tapes.get(identity or "")
        if tape is not None and tape.heard is not unheard:
            meta["progressToken"] = identity
        if tape is not None and tape.logged is not None and "logging" in self.abilities:
            meta |= self._at(tape.logged.level)
        if meta:
            params = {**params, "_meta": meta}
        return super()._request(method, params, identity)

    def _at(self, level: str) -> dict[str, Any]:
        """Have the server log from that level on: what of `_meta` says so in the newer era."""
        if self._modern:
            return {"io.modelcontextprotocol/logLevel": level}
        if level != self._level:
            self._level = level
            told = super()._request("logging/setLevel", {"level": level})
            told.add_done_callback(lambda future: future.cancelled() or future.exception())
        return {}

    def _asked(self, message: Mapping[str, Any]) -> None:
        method, identity = message["method"], message.get("id")
        if self.notices > MAX_NOTICES:
            raise SessionBroken("the server sent too many notifications; it was stopped")
        if identity is None and method in NOTICES:
            self.notices += 1
            self._noticed(method, message.get("params"))
        elif method == "ping" and isinstance(identity, str | int):
            self.notices += 1
            self._reply(identity, {"result": {}})
        else:
            self.refused += 1
            self._stray()
            if isinstance(identity, str | int):
                error = {"code": METHOD_NOT_FOUND, "message": "the client does not offer this"}
                self._reply(identity, {"error": error})

    def _noticed(self, method: str, params: Any) -> None:
        self._stale |= method in CHANGED
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/message":
            self._logged(params)
        elif method == "notifications/resources/updated":
            self.watches.updated(params)
        elif method == "notifications/subscriptions/acknowledged":
            self.watches.agreed(params)

    def _logged(self, params: Any) -> None:
        """Tell a log message to the client for whom the session works, if it is one alone."""
        ears = [tape.logged for tape in self.tapes.values()]
        message = read_message(self._redaction.value(params)) if ears else None
        if message is None or any(ear is None for ear in ears):
            self.dropped += 1
            return
        if ears[0] is not None:
            ears[0].tell(message)

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
        said = {key: value for key, value in answer.items() if key != "id"}
        told = clean_json(without_secrets(said, self._redaction))
        if isinstance(told.get("result"), dict):
            told["result"] = presentable(told["result"])
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
