"""Replay of recorded calls, task runs and forge jobs: offline, without credentials, in a sandbox
like the first.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from orchestrator.errors import AmbiguousId, ShortId
from orchestrator.gateway.engine import Engine
from orchestrator.gateway.record import CANCELLED
from orchestrator.replay.rerun import NOT_AUDITED, ReplayDifference, compare_call, compare_proof
from orchestrator.settings import ENGINES, EngineName, EngineSettings
from registry.database.lookup import MIN_PREFIX
from registry.errors import RecordingMissing, RowNotFound
from registry.models import Entry, Invocation, Job
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.errors import NO_ENGINE, BundleInvalid, Frozen
from sandbox.killswitch import KillSwitch
from sandbox.session.pipe import CUT
from sandbox.session.recording import CallRecording

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
class ReplayResult:
    """One call or forge, run again. `subject` is the tool or server, `reason` why it could not be
    run again, `notes` what else is to be known of the comparison.
    """

    id: str
    subject: str
    version: int = 0
    engine: str = ""
    difference: ReplayDifference | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.reason:
            return "not replayed"
        return "different" if self.difference else "same"


@dataclass(frozen=True)
class ReplaySubject:
    """A version of a server, and the engine to run it on."""

    entry: Entry
    bundle: Bundle
    engine: Engine


@dataclass
class Replayer:
    """Replays calls, task runs and forge jobs. `engine` is where, in place of where they ran first;
    `own` the process's engine, any other is opened as `settings` say.

    Use as an async context manager. Nothing runs while Toolwright is frozen.
    """

    store: Store
    shelf: Bundles
    own: Engine
    settings: EngineSettings
    process: str
    kill_switch: KillSwitch
    engine: EngineName | None = None
    _engines: dict[str, Engine] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Replayer:
        if self.store.processes.get_freeze().frozen:
            raise Frozen
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def replay_recorded(self, prefix: str) -> tuple[ReplayResult, ...]:
        """What the call, task run or forge job with that id, or beginning of an id, comes to now.

        Raises Unknown, Ambiguous, Frozen.
        """
        found = self.store.calls.find_by_prefix(prefix)
        if not prefix or not found:
            raise RowNotFound("call or job", prefix)
        if len(found) > 1:
            raise AmbiguousId(prefix, [named.id for named in found])
        (named,) = found
        if named.id != prefix and len(prefix) < MIN_PREFIX:
            raise ShortId(prefix, MIN_PREFIX, f"toolwright replay {named.id}")
        if named.kind == "call":
            return (await self._replay_call(named.id),)
        job = self.store.jobs.get(named.id)
        return (
            await self._replay_task(job) if job.kind == "do" else (await self._replay_forge(job),)
        )

    async def _replay_task(self, job: Job) -> tuple[ReplayResult, ...]:
        """The calls of a task run, in their order."""
        calls = self.store.calls.find_run_ids(job.id, _find_awaited_approval(job))
        if not calls:
            reason = "it made no call that was carried out, and what it proposed depends on the "
            reason += "servers that there were"
            return (ReplayResult(job.id, str(job.request.get("task", ""))[:200], reason=reason),)
        return tuple([await self._replay_call(call) for call in calls])

    async def _replay_call(self, id: str) -> ReplayResult:
        invocation = self.store.calls.get(id)
        subject = ReplayResult(id, f"{invocation.entry}.{invocation.tool}", invocation.version)
        reason = _explain_unrepeatable(invocation)
        try:
            kept = self.store.calls.get_recording(id)
        except RecordingMissing as error:
            return replace(subject, reason=reason or str(error))
        recording = kept.recording
        subject = replace(subject, engine=self.engine or recording.engine)
        reason = reason or _find_cut(recording)
        if reason:
            return replace(subject, reason=reason)
        found = await self._find_subject(subject, invocation.entry)
        if isinstance(found, ReplayResult):
            return found
        notes = _compare_places(recording.engine, recording.base, found.engine)
        if not kept.intact:
            notes += (f"the recording is {NOT_AUDITED.got}",)
        difference = await compare_call(found.engine, found.bundle, invocation, kept)
        return replace(subject, notes=notes, difference=difference)

    async def _replay_forge(self, job: Job) -> ReplayResult:
        """The stages of the version that a forge job registered, as far as they need no network."""
        result = job.result if isinstance(job.result, Mapping) else {}
        name = str(result.get("server", ""))
        subject = ReplayResult(job.id, name, int(result.get("version", 0)))
        if job.state != "done" or not subject.version:
            reason = f"it registered no server ({job.state}: {job.message})"
            return replace(subject, reason=reason)
        found = await self._find_subject(subject, name)
        if isinstance(found, ReplayResult):
            return found
        stored = self.store.servers.get_reports(name, subject.version)
        examples = self.shelf.load_examples(found.entry)
        suite = self.shelf.load_registered_suite(found.entry)
        difference = await compare_proof(found.engine, found.bundle, stored, examples, suite)
        ran_on, base = found.engine.name, found.bundle.provenance.base_image
        notes = _compare_places(_derive_engine(base), base, found.engine)
        return replace(subject, engine=ran_on, notes=notes, difference=difference)

    async def _find_subject(
        self, subject: ReplayResult, server: str
    ) -> ReplaySubject | ReplayResult:
        """The version exactly as it was registered and where it can run, or why there is none."""
        expected = f"{server} version {subject.version} as it was registered"
        try:
            entry = self._find_entry(server, subject.version)
            bundle = self.shelf.load_bundle(entry)
        except (RowNotFound, BundleInvalid) as error:
            return replace(subject, difference=ReplayDifference("/server", expected, str(error)))
        if bundle.launch is not None:
            return replace(subject, reason=FOREIGN)
        wanted = subject.engine or self.engine or _derive_engine(bundle.provenance.base_image)
        name = next((known for known in ENGINES if known == wanted), None)
        if name is None:
            return replace(subject, reason=f"there is no engine {wanted!r} to run it on")
        try:
            return ReplaySubject(entry, bundle, await self._open_engine(name))
        except NO_ENGINE as error:
            return replace(subject, reason=str(error))

    def _find_entry(self, server: str, version: int) -> Entry:
        for entry in self.store.servers.find_versions(server):
            if entry.version == version:
                return entry
        raise RowNotFound("version", f"{server} {version}")

    async def _open_engine(self, name: EngineName) -> Engine:
        """The engine of that name. Raises what there is instead."""
        if self.own.name == name:
            return self.own
        if name not in self._engines:
            settings = replace(self.settings, name=name, spares=0)
            made = Engine(settings, self.process, self.kill_switch, partial(print, file=sys.stderr))
            self._engines[name] = await self._stack.enter_async_context(made)
        self._engines[name].check_available()
        return self._engines[name]


def _explain_unrepeatable(invocation: Invocation) -> str:
    """Why a call cannot be compared with another run of it, or nothing."""
    if invocation.state == "intended":
        return "it has not ended"
    if invocation.state == "unknown":
        return "what became of it is not known"
    return ENDED_FROM_OUTSIDE.get(invocation.failure.kind, "") if invocation.failure else ""


def _find_cut(recording: CallRecording) -> str:
    for exchange in recording.exchanges:
        if exchange.refusal == CUT:
            return f"it was cut while it waited for {exchange.request.url[:200]}"
    return ""


def _compare_places(engine: str, base: str, used: Engine) -> tuple[str, ...]:
    """What tells the place of a replay from the place of its recording."""
    if used.name != engine:
        return (f"recorded on {engine}, run on {used.name}: not bit-exact",)
    if used.base != base:
        what = "component" if used.name == "wasm" else "base image"
        return (f"the {what} is another than it ran in ({base}): not bit-exact",)
    return ()


def _derive_engine(base: str) -> EngineName:
    """The engine whose base image or component has that id."""
    return "wasm" if base.startswith(WASM_BASE) else "docker"


def _find_awaited_approval(job: Job) -> str:
    """The approval that a task run ended with asking for, or nothing."""
    result = job.result if isinstance(job.result, Mapping) else {}
    return str(result.get("approval", "")) if result.get("state") == "pending" else ""
