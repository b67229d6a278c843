"""Sessions with untrusted third-party MCP servers, of either protocol era.

https://modelcontextprotocol.io/specification/2025-11-25 and 2026-07-28. The server is offered no
capabilities: no brokering, sampling, elicitation or roots. Its requests are refused and counted.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.bundle.offer import KINDS, RESOURCE, DefinitionKind, ListedDefinitions
from sandbox.errors import DefinitionsChanged, SessionBroken
from sandbox.offload import run_counted
from sandbox.sanitize import clean_text
from sandbox.schemas.validator import SchemaViolation
from sandbox.session.interface import Limits, Outcome
from sandbox.session.pipe import (
    MAX_MESSAGE,
    MAX_NOTICE,
    Pipe,
    PipeSession,
    read_error_message,
)
from sandbox.session.recording import CallLog
from sandbox.thirdparty.answers import (
    METHOD_NOT_FOUND,
    READ,
    RemoteAnswer,
    build_refused_answer,
    filter_result,
    is_unknown,
    read_abilities,
    read_answer,
    read_page,
)
from sandbox.thirdparty.offers import list_offer_changes
from sandbox.thirdparty.subscriptions import (
    MAX_WATCHED,
    ResourceSubscription,
    ResourceSubscriptions,
)
from sandbox.thirdparty.tools import list_changes
from sandbox.wire.content import clean_answer, redact_tool_answer
from sandbox.wire.exchange import Exchange
from sandbox.wire.framing import Message, is_id
from sandbox.wire.notifications import LogMessage, ignore_progress, read_log_message
from sandbox.wire.redaction import Redaction

T = TypeVar("T")
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = "2026-07-28"
MAX_PAGES, MAX_TOOLS, MAX_LIST_BYTES = 64, 1000, 8 * 1024 * 1024
MAX_RESOURCES = 10_000
MAX_SEARCHED = 20_000
NO_SUCH_HOST = re.compile(
    r"(?:ENOTFOUND|EAI_AGAIN|(?:Temporary failure in n|N)ame (?:resolution|or service not known))"
    r"(?: ([A-Za-z0-9][A-Za-z0-9.-]{0,252}))?"
)
"""What resolvers of Node and Python say in a container without a network, and the host of it."""
MAX_NOTICES = 100_000
"""Notifications that a session may send. Servers log by them, so they are not strays."""
MAX_PACKED = 8 * 1024
"""Bytes of a notice that may hold gzip: they unpack to a thousand times as many at most. One that
is longer is dropped.
"""
NOTICES = frozenset(
    "notifications/" + name
    for name in "cancelled message progress prompts/list_changed resources/list_changed "
    "resources/updated subscriptions/acknowledged tools/list_changed elicitation/complete".split()
)
CHANGED = frozenset(
    f"notifications/{name}/list_changed" for name in ("prompts", "resources", "tools")
)
_NAMING = ("level", "logger")
"""What a log message says of itself, beside its data."""
_CLIENT = {"name": "toolwright", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}


class McpSession(PipeSession):
    """A session whose bundle has a `launch`. `secrets` are redacted in all that comes back. What
    stands in `blocked` once a call has failed, why connections were refused, is told with its
    failure; None where the server has no network at all.

    The server's lists are compared with the bundle's pins at every start, and before a call after
    the server announced a change.
    """

    def __init__(
        self,
        bundle: Bundle,
        broker: Broker,
        limits: Limits,
        pipe: Pipe,
        secrets: Redaction | None = None,
        blocked: deque[str] | None = None,
    ) -> None:
        super().__init__(bundle, broker, limits, pipe)
        self._blocked = blocked
        self.refused = self.notices = 0
        self.dropped = 0
        """Log messages that were malformed or could not be assigned to one call, and notices that
        would take long to unpack.
        """
        self.abilities: frozenset[str] = frozenset()
        self.watches = ResourceSubscriptions()
        self._redaction = secrets or Redaction(())
        self._modern = False
        self._stale = False
        self._level = ""

    async def start(self) -> None:
        """Initialize and check the pins. Raises SessionBroken or DefinitionsChanged."""
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                await self._greet_server()
                await self._verify_pins()
        except TimeoutError as error:
            late = SessionBroken(
                f"the server did not start in time; it was stopped{self._read_stderr_end()}"
            )
            self.end(late)
            raise late from error
        except DefinitionsChanged as error:
            self.end(error)
            raise
        except SessionBroken as error:
            raise SessionBroken(f"{error}{self._read_stderr_end()}") from error

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        """All tool definitions, as sent, over all pages. Raises SessionBroken."""
        return (await self._list_pages("tools/list", "tools", MAX_TOOLS))[0]

    async def list_offers(self) -> ListedDefinitions:
        """Prompts, resources and templates, redacted but else as sent. Raises SessionBroken."""
        kinds = [kind for kind in KINDS if kind.ability in self.abilities]
        definitions = {kind.name: await self._list_definitions(kind) for kind in kinds}
        return ListedDefinitions(self.abilities, definitions)

    async def list_resources(self) -> tuple[Mapping[str, Any], ...]:
        """The present resources, redacted but else as sent, compared with the pins.

        Raises SessionBroken or DefinitionsChanged; both end the session.
        """
        await self._refresh_stale()
        found = await self._limit_time(self._list_definitions(RESOURCE))
        listed = ListedDefinitions(self.abilities, {"resource": found})
        compare = partial(list_offer_changes, self._select_pins(RESOURCE), listed)
        self._end_if_changed(await run_counted(found, compare))
        return found

    async def fetch_answer(
        self, method: str, params: Mapping[str, Any], tape: CallLog
    ) -> RemoteAnswer:
        """Send `resources/read`, `prompts/get` or `completion/complete`; the answer is sanitized.

        Raises CallTimedOut, SessionBroken or DefinitionsChanged, which end the session.
        """
        await self._refresh_stale()
        answer = await self._await_answer(method, params, method, tape)
        work = partial(read_answer, method, answer, self._redaction)
        # A short one may have to be unpacked as well.
        return await self._workbench.run(work)

    async def watch_resource(self, uri: str, hear: Callable[[str], None]) -> RemoteAnswer:
        """Subscribe to a resource: `hear` is called when it changes and when the session ends."""
        if len(self.watches) >= MAX_WATCHED:
            return build_refused_answer(f"more than {MAX_WATCHED} resources are watched")
        watch = ResourceSubscription(uri, hear)
        self.watches.add(watch)
        agreed = RemoteAnswer(None)
        try:
            agreed = await (
                self._listen_resource(watch) if self._modern else self._subscribe_resource(uri)
            )
        finally:
            if agreed.result is None:
                self.watches.remove(uri)
        return agreed

    async def _subscribe_resource(self, uri: str) -> RemoteAnswer:
        answer = await self._await_answer(
            "resources/subscribe", {"uri": uri}, "subscribing", CallLog()
        )
        refusal = "error" in answer
        return read_answer(READ, answer, self._redaction) if refusal else RemoteAnswer({})

    async def unwatch_resource(self, uri: str) -> None:
        watch = self.watches.remove(uri)
        if watch is not None and watch.identity:
            self._cancel_request(watch.identity)
        elif watch is not None:
            await self._await_answer(
                "resources/unsubscribe", {"uri": uri}, "unsubscribing", CallLog()
            )

    async def _listen_resource(self, watch: ResourceSubscription) -> RemoteAnswer:
        """Subscribe in the 2026-07-28 protocol: a request that is answered when it is over."""
        watch.identity = f"listen{next(self._ids)}"
        wanted = {"notifications": {"resourceSubscriptions": [watch.uri]}}
        over = self._send_request("subscriptions/listen", wanted, watch.identity)
        over.add_done_callback(lambda future: future.cancelled() or future.exception())
        agreed = asyncio.ensure_future(watch.agreed.wait())
        either: set[asyncio.Future[Any]] = {over, agreed}
        await asyncio.wait(
            either, timeout=self.limits.call_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        agreed.cancel()
        if watch.agreed.is_set():
            return RemoteAnswer({})
        self._cancel_request(watch.identity)
        return build_refused_answer("the server did not take up the subscription")

    def end(self, reason: Exception | None = None) -> None:
        super().end(reason)
        self.watches.end_all()

    async def _list_definitions(self, kind: DefinitionKind) -> tuple[Mapping[str, Any], ...]:
        most = MAX_RESOURCES if kind is RESOURCE else MAX_TOOLS
        found, _ = await self._list_pages(kind.method, kind.member, most)
        redact = self._redaction.redact_json
        return await self._workbench.run(lambda: tuple(map(redact, found)))

    async def _list_pages(
        self, method: str, member: str, most: int
    ) -> tuple[tuple[Mapping[str, Any], ...], int]:
        """The items of all pages, and the bytes that they came in."""
        items: list[Mapping[str, Any]] = []
        size, cursors = 0, {""}
        cursor = ""
        for _ in range(MAX_PAGES):
            answer = await self._send_request(method, {"cursor": cursor} if cursor else {})
            if not items and is_unknown(answer):
                return (), 0
            page, cursor = read_page(answer, member)
            size += answer.size
            items += page
            if len(items) > most or size > MAX_LIST_BYTES:
                raise self._end_broken(f"the server lists more {member} than allowed")
            if not cursor:
                return tuple(items), size
            if cursor in cursors:
                break
            cursors.add(cursor)
        raise self._end_broken(f"the server's list of {member} does not end")

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: CallLog | None = None,
    ) -> Outcome:
        await self._refresh_stale()
        return await super().call(tool, arguments, seconds, tape)

    async def _refresh_stale(self) -> None:
        """Compare the lists with the pins again if the server announced a change."""
        if self._stale:
            await self._limit_time(self._verify_pins())

    async def _limit_time(self, work: Awaitable[T]) -> T:
        """The result of `work`. Raises SessionBroken if it takes longer than a start may."""
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                return await work
        except TimeoutError as error:
            raise self._end_broken("the server did not say in time what it has") from error

    async def _greet_server(self) -> None:
        hello = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": _CLIENT}
        greeting = await self._send_request("initialize", hello)
        result = greeting.get("result")
        if isinstance(result, dict):
            if result.get("protocolVersion") not in LEGACY:
                raise self._end_broken("the server answered with a protocol version that is none")
            self.abilities = read_abilities(result.get("capabilities"))
            self._send_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return
        self._modern = True
        found = (await self._send_request("server/discover", {})).get("result")
        versions = found.get("supportedVersions") if isinstance(found, dict) else None
        if not isinstance(versions, list) or MODERN not in versions:
            told = self._clean_value(read_error_message(greeting.get("error")))[:200]
            raise self._end_broken(f"the server refused to start: {told}")
        self.abilities = read_abilities(
            found.get("capabilities") if isinstance(found, dict) else None
        )

    async def _verify_pins(self) -> None:
        """Compare the lists with the pins; a draft has none. Raises DefinitionsChanged."""
        self._stale = False
        launch = self.bundle.launch
        if launch is None or not (launch.pins or launch.offer.pins):
            return
        tools, size = await self._list_pages("tools/list", "tools", MAX_TOOLS)
        differing = await self._workbench.run_sized(size, partial(list_changes, launch.pins, tools))
        kinds = [kind for kind in KINDS if self._select_pins(kind)]
        found = {kind.name: await self._list_definitions(kind) for kind in kinds}
        pins = {key: pin for kind in kinds for key, pin in self._select_pins(kind).items()}
        listed = ListedDefinitions(self.abilities, found)
        compare = partial(list_offer_changes, pins, listed)
        offers = await run_counted(found, compare)
        self._end_if_changed((*differing, *offers))

    def _select_pins(self, kind: DefinitionKind) -> dict[str, str]:
        pins = self.bundle.launch.offer.pins if self.bundle.launch else {}
        return {key: pin for key, pin in pins.items() if key.startswith(f"{kind.name} ")}

    def _end_if_changed(self, differing: tuple[str, ...]) -> None:
        if differing:
            changed = DefinitionsChanged(self.bundle.name, differing)
            self.end(changed)
            raise changed

    def _send_request(
        self, method: str, params: Mapping[str, Any], identity: str | None = None
    ) -> asyncio.Future[Message]:
        if method == "tools/call" and self.bundle.launch is not None:
            params = {**params, "name": self.bundle.launch.get_tool(params["name"]).original}
        meta: dict[str, Any] = dict(_META) if self._modern else {}
        tape = self.tapes.get(identity or "")
        if tape is not None and tape.heard is not ignore_progress:
            meta["progressToken"] = identity
        if tape is not None and tape.logged is not None and "logging" in self.abilities:
            meta |= self._set_log_level(tape.logged.level)
        if meta:
            params = {**params, "_meta": meta}
        return super()._send_request(method, params, identity)

    def _set_log_level(self, level: str) -> dict[str, Any]:
        """Set the server's log level: the members of `_meta` in 2026-07-28, else a request."""
        if self._modern:
            return {"io.modelcontextprotocol/logLevel": level}
        if level != self._level:
            self._level = level
            told = super()._send_request("logging/setLevel", {"level": level})
            told.add_done_callback(lambda future: future.cancelled() or future.exception())
        return {}

    def _handle_request(self, message: Message) -> None:
        method, identity = message["method"], message.get("id")
        if self.notices > MAX_NOTICES:
            raise SessionBroken("the server sent too many notifications; it was stopped")
        if not isinstance(method, str) or message.size > MAX_NOTICE:
            self._count_stray()
        elif identity is None and method in NOTICES:
            self.notices += 1
            if message.may_unpack and message.size > MAX_PACKED:
                self.dropped += 1
            else:
                self._handle_notice(method, message.get("params"))
        elif method == "ping" and is_id(identity):
            self.notices += 1
            self._send_reply(identity, {"result": {}})
        else:
            self.refused += 1
            self._count_stray()
            if is_id(identity):
                error = {"code": METHOD_NOT_FOUND, "message": "the client does not offer this"}
                self._send_reply(identity, {"error": error})

    def _handle_notice(self, method: str, params: Any) -> None:
        self._stale |= method in CHANGED
        if method == "notifications/progress":
            self._pass_progress(params)
        elif method == "notifications/message":
            self._pass_log(params)
        elif method == "notifications/resources/updated":
            self.watches.notify_watcher(params)
        elif method == "notifications/subscriptions/acknowledged":
            self.watches.mark_agreed(params)

    def _pass_log(self, params: Any) -> None:
        """Pass a log message on if one call alone is running: messages do not name their call."""
        tapes = [*self.tapes.values()]
        ear = tapes[0].logged if tapes else None
        if ear is None or any(tape.logged is None for tape in tapes):
            self.dropped += 1
            return
        # To clean data takes long: what is only counted has none, and nothing else is looked at.
        if isinstance(params, dict):
            named = {key: params[key] for key in _NAMING if isinstance(params.get(key), str)}
            data = params.get("data", "") if ear.passes(named.get("level")) else ""
            params = {**named, "data": data} if "data" in params else named
        message = read_log_message(self._clean_value(params))
        if message is None:
            self.dropped += 1
            return
        if isinstance(message.data, str):
            said = tapes[0].hide_next(message.data, (self._redaction,))
            message = LogMessage(message.level, said, message.logger)
        ear.deliver_message(message)

    def _pass_progress(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        tape = self.tapes.get(token) if isinstance(token, str) else None
        if tape is not None:
            said = params.get("message")
            told = tape.hide_next(said, (self._redaction,)) if isinstance(said, str) else ""
            tape.report_progress({**params, "message": told})

    def _build_outcome(
        self,
        tool: str,
        answer: Mapping[str, Any],
        exchanges: tuple[Exchange, ...],
        started: float,
        fitting: Any,
    ) -> Outcome:
        said = {key: value for key, value in answer.items() if key != "id"}
        told = dict(redact_tool_answer(clean_answer(said), self._redaction))
        if isinstance(told.get("result"), dict):
            told["result"] = filter_result(told["result"])
        self._tell_blocked(told)
        return super()._build_outcome(tool, told, exchanges, started, fitting)

    def _tell_blocked(self, answer: dict[str, Any]) -> None:
        """Add to a failure why its connections were refused. Node's own clients say "fetch failed"
        and leave out what the proxy answered.
        """
        result, error = answer.get("result"), answer.get("error")
        failed = result if isinstance(result, dict) and result.get("isError") else None
        if failed is None and error is None:
            if self._blocked is not None:
                self._blocked.clear()
            return
        reasons = self._take_blocked(str(answer)[:MAX_SEARCHED])
        if not reasons:
            return
        if failed is not None:
            held = failed.get("content")
            content = list(held) if isinstance(held, list) else []
            content += [{"type": "text", "text": each} for each in reasons]
            answer["result"] = {**failed, "content": content}
        elif isinstance(error, dict):
            said = str(error.get("message", ""))
            answer["error"] = {**error, "message": ". ".join(filter(None, (said, *reasons)))}

    def _take_blocked(self, answer: str) -> list[str]:
        """The reasons that an answer does not tell itself."""
        if self._blocked is None:
            looked_up = NO_SUCH_HOST.search(answer)
            host = looked_up[1] or "HOST" if looked_up else ""
            how = f"`toolwright grant {self.bundle.name} network:{host}`"
            return [f"Toolwright gives it no network. To allow a host: {how}"] if host else []
        found = []
        while self._blocked:
            found.append(self._blocked.popleft())
        return [each for each in dict.fromkeys(found) if each not in answer]

    def _find_breach(self, tool: str, result: Mapping[str, Any]) -> SchemaViolation | None:
        launch = self.bundle.launch
        if launch is None or launch.get_tool(tool).checked:
            return super()._find_breach(tool, result)
        return None

    def _list_redactions(self) -> tuple[Redaction, ...]:
        return (self._redaction, *super()._list_redactions())

    def _clean_value(self, value: Any) -> Any:
        return self._redaction.redact_json(clean_answer(value))

    def _read_stderr_end(self) -> str:
        """The end of the server's stderr as a sentence for an error message; "" if it is empty."""
        said = clean_text(bytes(self.stderr).decode(errors="replace"))
        told = self._redaction.redact_text(said).strip()[-MAX_MESSAGE:]
        return f". It said:\n{told}" if told else ""

    def _end_broken(self, reason: str) -> SessionBroken:
        """End the session for a reason; returns the exception to raise."""
        broken = SessionBroken(f"{reason}; it was stopped")
        self.end(broken)
        return broken
