"""Running again what was recorded: offline, without a credential, in a sandbox like the first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Literal

import structlog

from orchestrator.app import App
from orchestrator.difference import Difference
from orchestrator.engines import Engine
from orchestrator.errors import Ambiguous
from orchestrator.outcomes import CANCELLED
from orchestrator.rerun import NOT_AUDITED, call_difference, proof_difference
from orchestrator.settings import ENGINES, EngineName
from registry.errors import NotRecorded, Unknown
from registry.records import Entry, Invocation, Job
from sandbox.bundle import Bundle
from sandbox.errors import NO_ENGINE, BundleInvalid, Frozen
from sandbox.recording import Recording
from sandbox.session import CUT

Verdict = Literal["same", "different", "not replayed"]
WASM_BASE = "wasm:"
FOREIGN = (
    "it is a third-party server, which reaches the network and its files by itself: what it took "
    "in is not recorded"
)
ENDED_FROM_OUTSIDE = {
    CANCELLED: "the client cancelled it",
    "frozen": "the kill switch ended it",
    "engine": "no engine ran it",
}


@dataclass(frozen=True)
class Replayed:
    """One call or forge, run again. `subject` is the tool or server, `reason` why it could not be
    run again, `notes` what else is to be known of the comparison.
    """

    id: str
    subject: str
    version: int = 0
    engine: str = ""
    difference: Difference | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.reason:
            return "not replayed"
        return "different" if self.difference else "same"


@dataclass(frozen=True)
class Found:
    """A version of a server, and the engine to run it on."""

    entry: Entry
    bundle: Bundle
    engine: Engine


@dataclass
class Replays:
    """Replays calls, task runs and forge jobs. `engine` is where, in place of where they ran first.

    Use as an async context manager. Nothing runs while Toolwright is frozen.
    """

    app: App
    engine: EngineName | None = None
    _engines: dict[str, Engine] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Replays:
        if self.app.store.freeze_state().frozen:
            raise Frozen
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def replay(self, prefix: str) -> tuple[Replayed, ...]:
        """What the call, task run or forge job with that id, or beginning of an id, comes to now.

        Raises Unknown, Ambiguous, Frozen.
        """
        found = self.app.store.named(prefix)
        if not prefix or not found:
            raise Unknown("call or job", prefix)
        if len(found) > 1:
            raise Ambiguous(prefix, [named.id for named in found])
        (named,) = found
        if named.kind == "call":
            return (await self._call(named.id),)
        job = self.app.store.job(named.id)
        return await self._task(job) if job.kind == "do" else (await self._forge(job),)

    async def _task(self, job: Job) -> tuple[Replayed, ...]:
        """The calls of a task run, in their order."""
        calls = self.app.store.calls_of(job.id, _awaited(job))
        if not calls:
            reason = "it made no call that was carried out, and what it proposed depends on the "
            reason += "servers that there were"
            return (Replayed(job.id, str(job.request.get("task", ""))[:200], reason=reason),)
        return tuple([await self._call(call) for call in calls])

    async def _call(self, id: str) -> Replayed:
        store = self.app.store
        invocation = store.invocation(id)
        subject = Replayed(id, f"{invocation.entry}.{invocation.tool}", invocation.version)
        reason = _unrepeatable(invocation)
        try:
            kept = store.recording(id)
        except NotRecorded as error:
            return replace(subject, reason=reason or str(error))
        recording = kept.recording
        subject = replace(subject, engine=self.engine or recording.engine)
        reason = reason or _cut(recording)
        if reason:
            return replace(subject, reason=reason)
        found = await self._found(subject, invocation.entry)
        if isinstance(found, Replayed):
            return found
        notes = _notes(recording.engine, recording.base, found.engine)
        if not kept.intact:
            notes += (f"the recording is {NOT_AUDITED.got}",)
        difference = await call_difference(found.engine, found.bundle, invocation, kept)
        return replace(subject, notes=notes, difference=difference)

    async def _forge(self, job: Job) -> Replayed:
        """The stages of the version that a forge job registered, as far as they need no network."""
        result = job.result if isinstance(job.result, Mapping) else {}
        name = str(result.get("server", ""))
        subject = Replayed(job.id, name, int(result.get("version", 0)))
        if job.state != "done" or not subject.version:
            reason = f"it registered no server ({job.state}: {job.message})"
            return replace(subject, reason=reason)
        found = await self._found(subject, name)
        if isinstance(found, Replayed):
            return found
        stored = self.app.store.reports(name, subject.version)
        examples = self.app.forge.shelf.examples(found.entry)
        suite = self.app.forge.shelf.registered_suite(found.entry)
        difference = await proof_difference(found.engine, found.bundle, stored, examples, suite)
        ran_on, base = found.engine.name, found.bundle.provenance.base_image
        notes = _notes(_engine_of(base), base, found.engine)
        return replace(subject, engine=ran_on, notes=notes, difference=difference)

    async def _found(self, subject: Replayed, server: str) -> Found | Replayed:
        """The version exactly as it was registered and where it can run, or why there is none."""
        expected = f"{server} version {subject.version} as it was registered"
        try:
            entry = self._entry(server, subject.version)
            bundle = self.app.forge.shelf.bundle(entry)
        except (Unknown, BundleInvalid) as error:
            return replace(subject, difference=Difference("/server", expected, str(error)))
        if bundle.launch is not None:
            return replace(subject, reason=FOREIGN)
        wanted = subject.engine or self.engine or _engine_of(bundle.provenance.base_image)
        name = next((known for known in ENGINES if known == wanted), None)
        if name is None:
            return replace(subject, reason=f"there is no engine {wanted!r} to run it on")
        try:
            return Found(entry, bundle, await self._engine(name))
        except NO_ENGINE as error:
            return replace(subject, reason=str(error))

    def _entry(self, server: str, version: int) -> Entry:
        for entry in self.app.store.versions(server):
            if entry.version == version:
                return entry
        raise Unknown("version", f"{server} {version}")

    async def _engine(self, name: EngineName) -> Engine:
        """The engine of that name. Raises what there is instead."""
        own = self.app.dispatch.execution.engine
        if own.name == name:
            return own
        if name not in self._engines:
            settings = replace(self.app.settings.of_engine, name=name, spares=0)
            made = Engine(settings, self.app.process, self.app.brake, structlog.get_logger().info)
            self._engines[name] = await self._stack.enter_async_context(made)
        self._engines[name].check()
        return self._engines[name]


def _unrepeatable(invocation: Invocation) -> str:
    """Why a call cannot be compared with another run of it, or nothing."""
    if invocation.state == "intended":
        return "it has not ended"
    if invocation.state == "unknown":
        return "what became of it is not known"
    return ENDED_FROM_OUTSIDE.get(invocation.failure.kind, "") if invocation.failure else ""


def _cut(recording: Recording) -> str:
    for exchange in recording.exchanges:
        if exchange.refusal == CUT:
            return f"it was cut while it waited for {exchange.request.url[:200]}"
    return ""


def _notes(engine: str, base: str, used: Engine) -> tuple[str, ...]:
    """What tells the place of a replay from the place of its recording."""
    if used.name != engine:
        return (f"recorded on {engine}, run on {used.name}: not bit-exact",)
    if used.base != base:
        what = "component" if used.name == "wasm" else "base image"
        return (f"the {what} is another than it ran in ({base}): not bit-exact",)
    return ()


def _engine_of(base: str) -> EngineName:
    """The engine whose base image or component has that id."""
    return "wasm" if base.startswith(WASM_BASE) else "docker"


def _awaited(job: Job) -> str:
    """The approval that a task run ended with asking for, or nothing."""
    result = job.result if isinstance(job.result, Mapping) else {}
    content = result.get("structuredContent")
    return str(content.get("approval", "")) if isinstance(content, Mapping) else ""
