"""A new version tried on what the one before it was asked for last, before it takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.difference import Difference, first_difference
from orchestrator.engines import Engine
from registry.errors import NotRecorded
from registry.records import Invocation
from registry.store import Store
from sandbox.bundle import Bundle
from sandbox.errors import SandboxError
from sandbox.exchange import Exchange, WireRequest
from sandbox.recording import Recording, Tape
from sandbox.replay import Replay
from sandbox.runner import Outcome, Session

CALLS = 20
"""How many of the last successful calls are run again."""


@dataclass(frozen=True)
class Rehearsed:
    """`again` calls came out as they did; `left` could not be compared. `worse` names the first one
    that did not, which does under the version before.
    """

    again: int = 0
    left: int = 0
    worse: str = ""


class Changing(Replay):
    """A replay whose recording is changed between the calls of one session."""

    def __init__(self) -> None:
        super().__init__(())

    def turn_to(self, exchanges: tuple[Exchange, ...]) -> None:
        self.exchanges, self.answered = exchanges, 0
        self.surprises: list[tuple[int, WireRequest]] = []


@dataclass(frozen=True)
class Rehearsal:
    """Runs the last calls again, offline and without a credential."""

    store: Store
    engine: Engine

    async def of(self, before: Bundle, after: Bundle, calls: Sequence[Invocation]) -> Rehearsed:
        """The calls on the version `after`; what differs is compared with the version `before`,
        whose own answer may differ too: time and randomness are the machine's in a container.
        """
        kept = [pair for call in calls if (pair := self._kept(call, before, after))]
        left = len(calls) - len(kept)
        differing = await self._differing(after, kept)
        if not differing:
            return Rehearsed(len(kept), left)
        same = {call.id for call, _ in differing}
        same -= {call.id for call, _ in await self._differing(before, differing)}
        for call, _ in differing:
            if call.id in same:
                return Rehearsed(len(kept) - len(differing), left, f"{call.tool} ({call.id})")
        return Rehearsed(len(kept) - len(differing), left + len(differing))

    def _kept(
        self, call: Invocation, before: Bundle, after: Bundle
    ) -> tuple[Invocation, Recording] | None:
        """A call with its recording, where it succeeded and asks for the same under both."""
        tools = [{tool.name: tool for tool in bundle.tools} for bundle in (before, after)]
        old, new = (named.get(call.tool) for named in tools)
        if not call.succeeded or old is None or new is None or old.requests != new.requests:
            return None
        try:
            kept = self.store.recording(call.id)
        except NotRecorded:
            return None
        return (call, kept.recording) if kept.intact else None

    async def _differing(
        self, bundle: Bundle, calls: Sequence[tuple[Invocation, Recording]]
    ) -> list[tuple[Invocation, Recording]]:
        """The calls that do not come out as they did. A session that breaks is replaced."""
        left, differing = list(calls), []
        while left:
            world = Changing()
            try:
                async with self.engine.open(bundle, world) as session:
                    while left:
                        call, recording = left[0]
                        if await _difference(session, world, call, recording) is not None:
                            differing.append(left[0])
                        left.pop(0)
            except SandboxError:
                differing.append(left.pop(0))
        return differing


async def _difference(
    session: Session, world: Changing, call: Invocation, recording: Recording
) -> Difference | None:
    world.turn_to(recording.exchanges)
    outcome: Outcome = await session.call(
        call.tool, recording.arguments, tape=Tape(recording.inputs)
    )
    said = call.result if isinstance(call.result, dict) else {}
    if outcome.failure is not None or world.surprises:
        return Difference("/failure", "a success", str(outcome.failure or world.surprises[0]))
    return first_difference(
        said.get("structuredContent"), outcome.structured, "/result/structuredContent"
    )
