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

from orchestrator.asker import (
    BUSY,
    CACHED,
    FRESH,
    INVALID_PARAMS,
    LEGACY,
    Answer,
    Asker,
    Refusal,
    Result,
)
from orchestrator.dispatch import Dispatch
from orchestrator.errors import OrchestratorError
from orchestrator.gate import Allow, Question, rule
from orchestrator.requested import completion_of, no_cursor, prompt_of, uri_of, uris_of
from orchestrator.roster import Member
from registry.errors import RegistryError
from sandbox.bundle import Bundle
from sandbox.errors import SandboxError
from sandbox.material import COMPLETE, GET, NOT_FOUND, READ, Material
from sandbox.mcp_session import McpSession
from sandbox.offer import Offer, shown_resources
from sandbox.recording import Tape
from sandbox.watches import SUBSCRIPTION_KEY

AUDITED = {READ: "resource.read", GET: "prompt.get", COMPLETE: "completion"}
UPDATED = "notifications/resources/updated"
Hear = Callable[[str], None]


class Readings:
    """One client's prompts and resources. A session that watches resources stays open."""

    def __init__(self, dispatch: Dispatch, server: str) -> None:
        self._dispatch, self._server = dispatch, server
        self._holding: tuple[McpSession, Bundle] | None = None
        self._hearers: dict[str, dict[object, Hear]] = {}
        self._answers: dict[str, tuple[str, Answer]] = {
            "prompts/list": ("prompts", self._prompts),
            GET: ("prompts", self._get),
            "resources/list": ("resources", self._resources),
            "resources/templates/list": ("resources", self._templates),
            READ: ("resources", self._read),
            COMPLETE: ("completions", self._complete),
        }
        self._of_era: dict[bool, dict[str, tuple[str, Answer]]] = {
            False: {
                "resources/subscribe": ("subscribe", self._subscribe),
                "resources/unsubscribe": ("subscribe", self._unsubscribe),
            },
            True: {"subscriptions/listen": ("subscribe", self._listen)},
        }

    def capabilities(self, version: str) -> Mapping[str, Any]:
        can = self._offer().abilities
        declared: dict[str, Any] = {name: {} for name in ("prompts", "logging") if name in can}
        if "resources" in can:
            declared["resources"] = {"subscribe": True} if "subscribe" in can else {}
        # Completion came with the protocol's second revision.
        if "completions" in can and version != LEGACY[0]:
            declared["completions"] = {}
        return declared

    def answer(self, method: str, modern: bool) -> Answer | None:
        ability, answer = {**self._answers, **self._of_era[modern]}.get(method, ("", None))
        return answer if ability in self._offer().abilities else None

    def leave(self) -> None:
        """The client has gone: nobody hears of anything any more."""
        self._hearers.clear()

    async def _prompts(self, params: Mapping[str, Any], asker: Asker) -> Result:
        no_cursor(params)
        return {"prompts": self._offer().prompts, **(CACHED if asker.modern else {})}

    async def _templates(self, params: Mapping[str, Any], asker: Asker) -> Result:
        no_cursor(params)
        return {"resourceTemplates": self._offer().templates, **(CACHED if asker.modern else {})}

    async def _resources(self, params: Mapping[str, Any], asker: Asker) -> Result:
        no_cursor(params)
        member = self._allowed("resources/list")
        found = await self._in_session(member, lambda session: session.resources())
        shown, _ = shown_resources(_offer_of(member.bundle), found)
        return {"resources": shown, **(FRESH if asker.modern else {})}

    async def _read(self, params: Mapping[str, Any], asker: Asker) -> Result:
        result = await self._asked(READ, {"uri": uri_of(params)}, asker)
        return {**result, **(FRESH if asker.modern else {})}

    async def _get(self, params: Mapping[str, Any], asker: Asker) -> Result:
        return await self._asked(GET, prompt_of(params, self._offer()), asker)

    async def _complete(self, params: Mapping[str, Any], asker: Asker) -> Result:
        return await self._asked(COMPLETE, completion_of(params, self._offer()), asker)

    async def _asked(self, method: str, params: Mapping[str, Any], asker: Asker) -> Result:
        """The server's answer to a request, once it is in the audit. Raises Refusal."""
        member = self._allowed(method)
        tape = Tape(heard=asker.heard, logged=asker.logged)
        started = time.perf_counter()

        def told(**what: Any) -> dict[str, Any]:
            elapsed = round((time.perf_counter() - started) * 1000, 3)
            lost = tape.logged.dropped if tape.logged else 0
            said = {"version": member.entry.version, "params": params, "session": "run"}
            return {**said, "latency_ms": elapsed, "dropped": lost, **what}

        try:
            material = await self._in_session(member, lambda s: s.ask(method, params, tape))
        except asyncio.CancelledError:
            self._note(method, told(failure="the client cancelled it"))
            raise
        except Refusal as refusal:
            await asyncio.to_thread(self._note, method, told(failure=str(refusal)))
            raise
        lost = material.dropped + (tape.logged.dropped if tape.logged else 0)
        what = {"result": material.result, "failure": material.message, "dropped": lost}
        await asyncio.to_thread(self._note, method, told(**what))
        return _result(material, asker)

    def _note(self, method: str, payload: Mapping[str, Any]) -> None:
        self._dispatch.store.note(AUDITED[method], self._server, payload, time.time())

    def _offer(self) -> Offer:
        try:
            return _offer_of(self._dispatch.roster.member(self._server).bundle)
        except (RegistryError, SandboxError, OrchestratorError):
            # What cannot be loaded offers nothing; a call of its tools says why.
            return Offer()

    def _allowed(self, method: str) -> Member:
        """The server, if it may be read now. Raises Refusal."""
        member = self._dispatch.roster.member(self._server)
        frozen = self._dispatch.brake.engaged
        ruling = rule(Question(member.entry.state, "read", member.standing, None, frozen=frozen))
        if isinstance(ruling, Allow):
            return member
        payload = {"method": method, "reason": ruling.reason, "session": "run"}
        self._dispatch.store.note("refused", self._server, payload, time.time())
        raise Refusal(BUSY, f"{self._server}: {method} is refused: {ruling.reason}")

    async def _in_session(self, member: Member, work: Callable[[McpSession], Any]) -> Any:
        """What the work gives in the server's warm session. Raises Refusal."""
        bundle = member.bundle
        try:
            session = await self._dispatch.execution.lent(bundle)
        except SandboxError as error:
            raise self._broken(error) from error
        assert isinstance(session, McpSession)
        try:
            await self._watch_again(session, bundle)
            return await work(session)
        except SandboxError as error:
            await self._dispatch.execution.sessions.drop(bundle.name, session)
            raise self._broken(error) from error
        finally:
            self._dispatch.execution.sessions.give_back(bundle)

    def _broken(self, error: SandboxError) -> Refusal:
        self._dispatch.execution.distrust(self._server, error)
        return Refusal(BUSY, f"{self._server}: {error}")

    async def _subscribe(self, params: Mapping[str, Any], asker: Asker) -> Result:
        def hear(uri: str) -> None:
            asker.notify(UPDATED, {"uri": uri})

        await self._watched(uri_of(params), "connection", hear)
        return {}

    async def _unsubscribe(self, params: Mapping[str, Any], asker: Asker) -> Result:
        await self._unwatched(uri_of(params), "connection")
        return {}

    async def _listen(self, params: Mapping[str, Any], asker: Asker) -> Result:
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
            for uri in uris_of(params):
                with suppress(Refusal):
                    await self._watched(uri, asker.identity, hear)
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
                await self._unwatched(uri, asker.identity)
        return {}

    async def _watched(self, uri: str, key: object, hear: Hear) -> None:
        """Have it heard that a resource changed. Raises Refusal."""
        member = self._allowed("resources/subscribe")
        known = self._hearers.get(uri)
        if known:
            known[key] = hear
            return
        material = await self._in_session(member, lambda s: self._begun(s, member.bundle, uri))
        _result(material)
        self._hearers[uri] = {key: hear}

    async def _begun(self, session: McpSession, bundle: Bundle, uri: str) -> Material:
        material = await session.watch(uri, self._tell)
        if material.result is not None and (not self._holding or self._holding[0] is not session):
            await self._dispatch.execution.sessions.lend(bundle)
            self._holding = (session, bundle)
        return material

    async def _watch_again(self, session: McpSession, bundle: Bundle) -> None:
        """Go on watching in a session that took the place of the one that watched."""
        if self._hearers and self._holding and self._holding[0] is not session:
            for uri in tuple(self._hearers):
                await self._begun(session, bundle, uri)

    async def _unwatched(self, uri: str, key: object) -> None:
        hearers = self._hearers.get(uri, {})
        hearers.pop(key, None)
        if hearers or uri not in self._hearers:
            return
        del self._hearers[uri]
        if self._holding:
            session, bundle = self._holding
            with suppress(SandboxError):
                await session.unwatch(uri)
            if not self._hearers:
                self._holding = None
                self._dispatch.execution.sessions.give_back(bundle)

    def _tell(self, uri: str) -> None:
        for hear in tuple(self._hearers.get(uri, {}).values()):
            hear(uri)


def _offer_of(bundle: Bundle) -> Offer:
    return bundle.launch.offer if bundle.launch else Offer()


def _result(material: Material, asker: Asker | None = None) -> Result:
    """Raises Refusal where the server refused."""
    if material.result is not None:
        return material.result
    code = material.code
    if code == NOT_FOUND and asker is not None and asker.modern:
        code = INVALID_PARAMS
    raise Refusal(code, material.message)
