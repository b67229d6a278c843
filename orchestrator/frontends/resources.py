"""Prompts and resources of a registered third-party server, for the client of `toolwright run`.

They are read like its tools: past the gate, in its cage, held against what was registered, and
with a row of the audit for each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from orchestrator.approvals.gate import Allow, GateQuestion, judge_call
from orchestrator.errors import OrchestratorError
from orchestrator.frontends.flat_greeting import CACHED
from orchestrator.frontends.greeting import LEGACY
from orchestrator.frontends.protocol import (
    BUSY,
    FRESH,
    INVALID_PARAMS,
    Answer,
    Peer,
    Result,
    RpcError,
)
from orchestrator.frontends.resource_requests import (
    check_no_cursor,
    parse_completion_request,
    parse_prompt_request,
    parse_uri,
    parse_uris,
)
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.gateway.dispatch import Dispatch
from orchestrator.gateway.sessions import WarmSession
from registry.errors import RegistryError
from sandbox.bundle.model import Bundle
from sandbox.bundle.offer import Offer
from sandbox.errors import SandboxError
from sandbox.session.recording import CallLog
from sandbox.thirdparty.answers import COMPLETE, GET, NOT_FOUND, READ, RemoteAnswer
from sandbox.thirdparty.offers import select_shown_resources
from sandbox.thirdparty.session import McpSession
from sandbox.thirdparty.subscriptions import SUBSCRIPTION_KEY

AUDITED = {READ: "resource.read", GET: "prompt.get", COMPLETE: "completion"}
UPDATED = "notifications/resources/updated"
Hear = Callable[[str], None]


class ClientResources:
    """One client's prompts and resources. A session that watches resources stays open."""

    def __init__(self, dispatch: Dispatch, server: str) -> None:
        self._dispatch, self._server = dispatch, server
        self._holding: tuple[McpSession, WarmSession] | None = None
        self._hearers: dict[str, dict[object, Hear]] = {}
        self._answers: dict[str, tuple[str, Answer]] = {
            "prompts/list": ("prompts", self._list_prompts),
            GET: ("prompts", self._get_prompt),
            "resources/list": ("resources", self._list_resources),
            "resources/templates/list": ("resources", self._list_templates),
            READ: ("resources", self._read_resource),
            COMPLETE: ("completions", self._complete_argument),
        }
        self._of_era: dict[bool, dict[str, tuple[str, Answer]]] = {
            False: {
                "resources/subscribe": ("subscribe", self._handle_subscribe),
                "resources/unsubscribe": ("subscribe", self._handle_unsubscribe),
            },
            True: {"subscriptions/listen": ("subscribe", self._handle_listen)},
        }

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        can = self._find_offer().abilities
        declared: dict[str, Any] = {name: {} for name in ("prompts", "logging") if name in can}
        if "resources" in can:
            declared["resources"] = {"subscribe": True} if "subscribe" in can else {}
        # Completion came with the protocol's second revision.
        if "completions" in can and version != LEGACY[0]:
            declared["completions"] = {}
        return declared

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        ability, answer = {**self._answers, **self._of_era[modern]}.get(method, ("", None))
        return answer if ability in self._find_offer().abilities else None

    def forget_client(self) -> None:
        """The client has gone: nobody hears of anything any more."""
        self._hearers.clear()

    async def _list_prompts(self, params: Mapping[str, Any], asker: Peer) -> Result:
        check_no_cursor(params)
        return {"prompts": self._find_offer().prompts, **(CACHED if asker.modern else {})}

    async def _list_templates(self, params: Mapping[str, Any], asker: Peer) -> Result:
        check_no_cursor(params)
        return {
            "resourceTemplates": self._find_offer().templates,
            **(CACHED if asker.modern else {}),
        }

    async def _list_resources(self, params: Mapping[str, Any], asker: Peer) -> Result:
        check_no_cursor(params)
        member = self._check_allowed("resources/list")
        found = await self._run_in_session(member, lambda session: session.list_resources())
        shown, _ = select_shown_resources(_get_offer(member.bundle), found)
        return {"resources": shown, **(FRESH if asker.modern else {})}

    async def _read_resource(self, params: Mapping[str, Any], asker: Peer) -> Result:
        result = await self._ask_server(READ, {"uri": parse_uri(params)}, asker)
        return {**result, **(FRESH if asker.modern else {})}

    async def _get_prompt(self, params: Mapping[str, Any], asker: Peer) -> Result:
        return await self._ask_server(GET, parse_prompt_request(params, self._find_offer()), asker)

    async def _complete_argument(self, params: Mapping[str, Any], asker: Peer) -> Result:
        return await self._ask_server(
            COMPLETE, parse_completion_request(params, self._find_offer()), asker
        )

    async def _ask_server(self, method: str, params: Mapping[str, Any], asker: Peer) -> Result:
        """The server's answer to a request, once it is in the audit. Raises Refusal."""
        member = self._check_allowed(method)
        tape = CallLog(heard=asker.heard, logged=asker.logged)
        started = time.perf_counter()

        def told(**what: Any) -> dict[str, Any]:
            elapsed = round((time.perf_counter() - started) * 1000, 3)
            lost = tape.logged.dropped if tape.logged else 0
            said = {"version": member.entry.version, "params": params, "session": "run"}
            return {**said, "latency_ms": elapsed, "dropped": lost, **what}

        try:
            material = await self._run_in_session(
                member, lambda s: s.fetch_answer(method, params, tape)
            )
        except asyncio.CancelledError:
            self._note_request(method, told(failure="the client cancelled it"))
            raise
        except RpcError as refusal:
            await asyncio.to_thread(self._note_request, method, told(failure=str(refusal)))
            raise
        lost = material.dropped + (tape.logged.dropped if tape.logged else 0)
        what = {"result": material.result, "failure": material.message, "dropped": lost}
        await asyncio.to_thread(self._note_request, method, told(**what))
        return _extract_result(material, asker)

    def _note_request(self, method: str, payload: Mapping[str, Any]) -> None:
        self._dispatch.store.audit.add_note(AUDITED[method], self._server, payload, time.time())

    def _find_offer(self) -> Offer:
        try:
            return _get_offer(self._dispatch.roster.get_server(self._server).bundle)
        except (RegistryError, SandboxError, OrchestratorError):
            # What cannot be loaded offers nothing; a call of its tools says why.
            return Offer()

    def _check_allowed(self, method: str) -> RegisteredServer:
        """The server, if it may be read now. Raises Refusal."""
        member = self._dispatch.roster.get_server(self._server)
        frozen = self._dispatch.kill_switch.engaged
        ruling = judge_call(
            GateQuestion(member.entry.state, "read", member.standing, None, frozen=frozen)
        )
        if isinstance(ruling, Allow):
            return member
        payload = {"method": method, "reason": ruling.reason, "session": "run"}
        self._dispatch.store.audit.add_note("refused", self._server, payload, time.time())
        raise RpcError(BUSY, f"{self._server}: {method} is refused: {ruling.reason}")

    async def _run_in_session(
        self, member: RegisteredServer, work: Callable[[McpSession], Any]
    ) -> Any:
        """What the work gives in the server's warm session. Raises Refusal."""
        bundle = member.bundle
        try:
            lent = await self._dispatch.execution.sessions.lend_session(bundle)
        except SandboxError as error:
            raise self._build_session_error(error) from error
        session = lent.session
        assert isinstance(session, McpSession)
        try:
            await self._watch_again(session, bundle)
            return await work(session)
        except SandboxError as error:
            await self._dispatch.execution.sessions.drop_sessions(bundle.name, session)
            raise self._build_session_error(error) from error
        finally:
            lent.give_back()

    def _build_session_error(self, error: SandboxError) -> RpcError:
        self._dispatch.execution.quarantine_changed(self._server, error)
        return RpcError(BUSY, f"{self._server}: {error}")

    async def _handle_subscribe(self, params: Mapping[str, Any], asker: Peer) -> Result:
        def hear(uri: str) -> None:
            asker.notify(UPDATED, {"uri": uri})

        await self._watch_resource(parse_uri(params), "connection", hear)
        return {}

    async def _handle_unsubscribe(self, params: Mapping[str, Any], asker: Peer) -> Result:
        await self._unwatch_resource(parse_uri(params), "connection")
        return {}

    async def _handle_listen(self, params: Mapping[str, Any], asker: Peer) -> Result:
        """Tell of changes until the request is cancelled; what was agreed to is told first."""
        meta = {SUBSCRIPTION_KEY: asker.identity}
        early: list[str] = []

        def hear(uri: str) -> None:
            if agreed:
                asker.notify(UPDATED, {"uri": uri, "_meta": meta})
            else:
                early.append(uri)

        agreed, kept = False, []
        try:
            for uri in parse_uris(params):
                with suppress(RpcError):
                    await self._watch_resource(uri, asker.identity, hear)
                    kept.append(uri)
            said = {"resourceSubscriptions": kept} if kept else {}
            ready = {"notifications": said, "_meta": meta}
            asker.notify("notifications/subscriptions/acknowledged", ready)
            agreed = True
            for uri in early:
                hear(uri)
            await asyncio.get_running_loop().create_future()
        finally:
            for uri in kept:
                await self._unwatch_resource(uri, asker.identity)
        return {}

    async def _watch_resource(self, uri: str, key: object, hear: Hear) -> None:
        """Have it heard that a resource changed. Raises Refusal."""
        member = self._check_allowed("resources/subscribe")
        known = self._hearers.get(uri)
        if known:
            known[key] = hear
            return
        material = await self._run_in_session(
            member, lambda s: self._start_watching(s, member.bundle, uri)
        )
        _extract_result(material)
        self._hearers[uri] = {key: hear}

    async def _start_watching(self, session: McpSession, bundle: Bundle, uri: str) -> RemoteAnswer:
        material = await session.watch_resource(uri, self._notify_hearers)
        if material.result is not None and (not self._holding or self._holding[0] is not session):
            self._holding = (session, await self._dispatch.execution.sessions.lend_session(bundle))
        return material

    async def _watch_again(self, session: McpSession, bundle: Bundle) -> None:
        """Go on watching in a session that took the place of the one that watched."""
        if self._hearers and self._holding and self._holding[0] is not session:
            for uri in tuple(self._hearers):
                await self._start_watching(session, bundle, uri)

    async def _unwatch_resource(self, uri: str, key: object) -> None:
        hearers = self._hearers.get(uri, {})
        hearers.pop(key, None)
        if hearers or uri not in self._hearers:
            return
        del self._hearers[uri]
        if self._holding:
            session, lent = self._holding
            with suppress(SandboxError):
                await session.unwatch_resource(uri)
            if not self._hearers:
                self._holding = None
                lent.give_back()

    def _notify_hearers(self, uri: str) -> None:
        for hear in tuple(self._hearers.get(uri, {}).values()):
            hear(uri)


def _get_offer(bundle: Bundle) -> Offer:
    return bundle.launch.offer if bundle.launch else Offer()


def _extract_result(material: RemoteAnswer, asker: Peer | None = None) -> Result:
    """Raises Refusal where the server refused."""
    if material.result is not None:
        return material.result
    code = material.code
    if code == NOT_FOUND and asker is not None and asker.modern:
        code = INVALID_PARAMS
    raise RpcError(code, material.message)
