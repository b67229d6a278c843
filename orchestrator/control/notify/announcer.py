"""Telling people of requests that wait, from the control plane, through the targets they added."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from orchestrator.allowing import erasing
from orchestrator.links import Links
from orchestrator.messages import Background, Message, approval_message
from orchestrator.push import Deputy, Target, notice_targets
from registry.errors import RegistryError
from registry.records import Approval
from registry.store import Store
from registry.vault import Vault

PERIOD_SECONDS = 0.25
RETRY_SECONDS = 10.0
TRIES = 3
FREEZE_LINK_SECONDS = 7 * 86400.0
SENT = "push.sent"

log = structlog.get_logger()


@dataclass
class Announcer:
    """Sends each waiting request once to each target.

    `vault` gives the targets of plain notices and the secrets to be taken out; `linked` are the
    targets whose messages carry links, which only work while there is a `deputy` to sign for them.
    `url` is the control plane's, as those see it who get the links.
    """

    store: Store
    vault: Vault
    links: Links
    url: str
    linked: tuple[Target, ...] = ()
    deputy: Deputy | None = None
    now: Callable[[], float] = time.time
    _done: set[tuple[str, str]] = field(default_factory=set)
    _tries: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    async def run(self) -> None:
        """Announce what comes, until cancelled."""
        version = -1
        while True:
            current = self.store.data_version()
            if current != version or self._tries:
                version = current
                await asyncio.to_thread(self._reported)
            await asyncio.sleep(PERIOD_SECONDS)

    def announce(self) -> int:
        """Send what is due now; how many messages were taken."""
        waiting = self.store.approvals("pending")
        targets = self._targets() if waiting else ()
        sent = 0
        for approval in waiting:
            due = [target for target in targets if self._due(approval, target)]
            if due:
                sent += self._sent(approval, due)
        return sent

    def open_until(self) -> float | None:
        """Until when messages carry links, or None where they do not."""
        if self.deputy is None or self.deputy.until <= self.now():
            return None
        return self.deputy.until

    def _reported(self) -> None:
        try:
            self.announce()
        except (RegistryError, OSError) as error:
            log.error("nobody could be told", reason=str(error))

    def _targets(self) -> tuple[Target, ...]:
        linked = self.linked if self.open_until() is not None else ()
        return (*linked, *notice_targets(self.vault))

    def _due(self, approval: Approval, target: Target) -> bool:
        key = (approval.id, target.name)
        count, last = self._tries.get(key, (0, 0.0))
        if key in self._done or count >= TRIES or self.now() - last < RETRY_SECONDS:
            return False
        # A notice stays true over a restart; links do not, so they are sent anew.
        if not target.links and self.store.noted(SENT, f"{approval.id} {target.name}"):
            self._done.add(key)
            return False
        return approval.expires > self.now()

    def _sent(self, approval: Approval, targets: Iterable[Target]) -> int:
        message = approval_message(approval, self._background(approval), self._secrets())
        return sum(self._delivered(approval, target, message) for target in targets)

    def _delivered(self, approval: Approval, target: Target, message: Message) -> bool:
        key = (approval.id, target.name)
        problem = deliver(target, message, self._buttons(approval) if target.links else ())
        if not problem:
            self._done.add(key)
            self._tries.pop(key, None)
            subject = f"{approval.id} {target.name}"
            self.store.note(SENT, subject, {"links": target.links}, self.now())
            return True
        count = self._tries.get(key, (0, 0.0))[0] + 1
        self._tries[key] = (count, self.now())
        if count == TRIES:
            del self._tries[key]
            self._done.add(key)
            payload = {"target": target.name, "reason": problem}
            self.store.note("push.failed", approval.id, payload, self.now())
        log.warning("a message was not taken", target=target.name, reason=problem, tries=count)
        return False

    def _buttons(self, approval: Approval) -> tuple[tuple[str, str], ...]:
        ends = min(approval.expires, self.open_until() or 0.0)
        of_it = (approval.id, approval.wire_digest, ends)
        end = self.now() + FREEZE_LINK_SECONDS
        tokens = (
            ("Approve", self.links.make("approve", *of_it)),
            ("Reject", self.links.make("reject", *of_it)),
            ("Freeze everything", self.links.make("freeze", "", "", end)),
        )
        return tuple((title, f"{self.url}/decide?token={token}") for title, token in tokens)

    def _background(self, approval: Approval) -> Background:
        return Background(
            erases=erasing(self.store, approval, ""),
            server=self.store.standing(approval.entry),
            operation=self.store.operation_standing(approval.entry, approval.tool),
        )

    def _secrets(self) -> tuple[str, ...]:
        found = (self.vault.get(*name) for name in self.vault.names())
        return tuple(secret.reveal() for secret in found if secret)


def deliver(target: Target, message: Message, buttons: Iterable[tuple[str, str]] = ()) -> str:
    """Send a message to a target; why it could not be, or "" where it was."""
    try:
        courier: Any = importlib.import_module("orchestrator.courier")
    except ImportError:
        return "Apprise is not installed: install toolwright[push]"
    shown = [courier.Button(title, url) for title, url in buttons]
    problem: str = courier.deliver(target.url, message.title, message.text, shown)
    return problem
