"""Rehearsal of a new version: the previous version's last successful calls are run again, offline,
before it is registered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.gateway.engine import Engine
from orchestrator.replay.rerun import ReplayDifference, find_difference
from registry.calls.invocations import CallTable
from registry.errors import RecordingMissing
from registry.models import Invocation
from sandbox.broker.cassette import ReplayBroker
from sandbox.bundle.model import Bundle
from sandbox.errors import SandboxError
from sandbox.session.interface import Outcome, Session
from sandbox.session.recorded_case import RecordedCase, is_storable
from sandbox.session.recording import CallLog, CallRecording
from sandbox.wire.exchange import Exchange, WireRequest

LOOKED_AT = 200
"""Of so many of the last calls, those that succeeded are run again, up to a limit."""


def build_failed_case(call: Invocation, recording: CallRecording | None) -> RecordedCase | None:
    """A recorded call as a case that has to succeed; None where it is not kept, or too large."""
    if recording is None:
        return None
    name = f"{call.tool} as it failed in {call.id}"
    case = RecordedCase(name, call.tool, recording.arguments, recording.exchanges)
    return case if is_storable(case) else None


CALLS = 20
"""How many of the last successful calls are run again."""


@dataclass(frozen=True)
class RehearsalResult:
    """`again` calls came out as they did; `left` could not be compared. `worse` names the first one
    that did not, which does under the version before.
    """

    again: int = 0
    left: int = 0
    worse: str = ""


class SwitchableReplay(ReplayBroker):
    """A replay whose recording is changed between the calls of one session."""

    def __init__(self) -> None:
        super().__init__(())

    def switch_recording(self, exchanges: tuple[Exchange, ...]) -> None:
        self.exchanges, self.answered = exchanges, 0
        self.surprises: list[tuple[int, WireRequest]] = []


async def find_still_failing(
    bundle: Bundle, calls: Sequence[Invocation], recordings: CallTable, engine: Engine
) -> str:
    """The id of the first of these calls that failed by the server's own fault, or was marked
    wrong, and does again on `bundle`, offline; "" where none does. One that is not kept is left
    out.
    """
    for call in calls:
        try:
            kept = recordings.get_recording(call.id)
        except RecordingMissing:
            continue
        world = SwitchableReplay()
        world.switch_recording(kept.recording.exchanges)
        try:
            async with engine.open(bundle, world) as session:
                log = CallLog(kept.recording.inputs)
                outcome = await session.call(call.tool, kept.recording.arguments, tape=log)
        except (SandboxError, KeyError):
            return call.id
        if outcome.failure is not None and outcome.failure.kind in ("bug", "schema"):
            return call.id
        said = call.result if isinstance(call.result, dict) else {}
        if call.disputed and said.get("structuredContent") == outcome.structured:
            return call.id
    return ""


@dataclass(frozen=True)
class Rehearsal:
    """Runs the last calls again, offline and without a credential."""

    calls: CallTable
    engine: Engine

    async def rehearse_calls(
        self, before: Bundle, after: Bundle, calls: Sequence[Invocation]
    ) -> RehearsalResult:
        """The calls on the version `after`; what differs is compared with the version `before`,
        whose own answer may differ too: time and randomness are the machine's in a container.
        """
        kept = [pair for call in calls if (pair := self._find_recording(call, before, after))]
        left = len(calls) - len(kept)
        differing = await self._find_differing(after, kept)
        if not differing:
            return RehearsalResult(len(kept), left)
        same = {call.id for call, _ in differing}
        same -= {call.id for call, _ in await self._find_differing(before, differing)}
        for call, _ in differing:
            if call.id in same:
                return RehearsalResult(len(kept) - len(differing), left, f"{call.tool} ({call.id})")
        return RehearsalResult(len(kept) - len(differing), left + len(differing))

    def _find_recording(
        self, call: Invocation, before: Bundle, after: Bundle
    ) -> tuple[Invocation, CallRecording] | None:
        """A call with its recording, where it succeeded and asks for the same under both."""
        tools = [{tool.name: tool for tool in bundle.tools} for bundle in (before, after)]
        old, new = (named.get(call.tool) for named in tools)
        if not call.succeeded or old is None or new is None or old.requests != new.requests:
            return None
        try:
            kept = self.calls.get_recording(call.id)
        except RecordingMissing:
            return None
        return (call, kept.recording) if kept.intact else None

    async def _find_differing(
        self, bundle: Bundle, calls: Sequence[tuple[Invocation, CallRecording]]
    ) -> list[tuple[Invocation, CallRecording]]:
        """The calls that do not come out as they did. A session that breaks is replaced."""
        left, differing = list(calls), []
        while left:
            world = SwitchableReplay()
            try:
                async with self.engine.open(bundle, world) as session:
                    while left:
                        call, recording = left[0]
                        if await _compare_call(session, world, call, recording) is not None:
                            differing.append(left[0])
                        left.pop(0)
            except SandboxError:
                differing.append(left.pop(0))
        return differing


async def _compare_call(
    session: Session, world: SwitchableReplay, call: Invocation, recording: CallRecording
) -> ReplayDifference | None:
    world.switch_recording(recording.exchanges)
    outcome: Outcome = await session.call(
        call.tool, recording.arguments, tape=CallLog(recording.inputs)
    )
    said = call.result if isinstance(call.result, dict) else {}
    if outcome.failure is not None or world.surprises:
        return ReplayDifference("/failure", "a success", str(outcome.failure or world.surprises[0]))
    return find_difference(
        said.get("structuredContent"), outcome.structured, "/result/structuredContent"
    )
