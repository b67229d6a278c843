"""Sending messages about waiting requests to the push targets, from the control plane."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from orchestrator.approvals.rules import is_erasing_approval
from orchestrator.approvals.text import hash_approval
from orchestrator.control.notify.links import OneTimeLinks
from orchestrator.control.notify.messages import (
    ApprovalBackground,
    PushMessage,
    build_approval_message,
)
from orchestrator.control.notify.targets import Deputy, PushTarget, load_notice_targets
from registry.errors import RegistryError
from registry.models import Approval
from registry.secrets.vault import Vault, list_own_secrets
from registry.store import Store

PERIOD_SECONDS = 0.25
RETRY_SECONDS = 10.0
TRIES = 3
FREEZE_LINK_SECONDS = 7 * 86400.0
SENT = "push.sent"

log = structlog.get_logger()

PushButton = tuple[str, str, bool]
"""Title, link, and whether the service that shows it may follow it by itself."""


@dataclass
class Announcer:
    """Sends each waiting request once to each target.

    `vault` gives the targets of plain notices and the secrets to be taken out; `linked` are the
    targets whose messages carry links, which only work while there is a `deputy` to sign for them.
    `url` is the control plane's, as those see it who get the links.
    """

    store: Store
    vault: Vault
    links: OneTimeLinks
    url: str
    linked: tuple[PushTarget, ...] = ()
    deputy: Deputy | None = None
    now: Callable[[], float] = time.time
    _done: set[tuple[str, str]] = field(default_factory=set)
    _tries: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)

    async def watch_approvals(self) -> None:
        """Send messages about new waiting requests until cancelled."""
        version = -1
        while True:
            current = self.store.signals.read_data_version()
            if current != version or self._tries:
                version = current
                await asyncio.to_thread(self._try_announce)
            await asyncio.sleep(PERIOD_SECONDS)

    def announce_waiting(self) -> int:
        """Send the messages that are due; how many were delivered."""
        waiting = self.store.approvals.find("pending")
        targets = self._list_targets() if waiting else ()
        sent = 0
        for approval in waiting:
            due = [target for target in targets if self._is_due(approval, target)]
            try:
                sent += self._send_to_targets(approval, due) if due else 0
            except (RegistryError, LookupError) as error:
                log.error("nobody could be told", approval=approval.id, reason=str(error))
        return sent

    def find_link_expiry(self) -> float | None:
        """The time until which messages carry links, or None where they carry none."""
        if self.deputy is None or self.deputy.until <= self.now():
            return None
        return self.deputy.until

    def _try_announce(self) -> None:
        try:
            self.announce_waiting()
        except (RegistryError, OSError) as error:
            log.error("nobody could be told", reason=str(error))

    def _list_targets(self) -> tuple[PushTarget, ...]:
        linked = self.linked if self.find_link_expiry() is not None else ()
        return (*linked, *load_notice_targets(self.vault))

    def _is_due(self, approval: Approval, target: PushTarget) -> bool:
        key = (approval.id, target.name)
        count, last = self._tries.get(key, (0, 0.0))
        if key in self._done or count >= TRIES or self.now() - last < RETRY_SECONDS:
            return False
        # A notice stays true over a restart; links do not, so they are sent anew.
        if not target.links and self.store.audit.has_note(SENT, f"{approval.id} {target.name}"):
            self._done.add(key)
            return False
        return approval.expires > self.now()

    def _send_to_targets(self, approval: Approval, targets: Iterable[PushTarget]) -> int:
        message = build_approval_message(
            approval, self._load_background(approval), self._load_secrets()
        )
        return sum(self._send_to_target(approval, target, message) for target in targets)

    def _send_to_target(self, approval: Approval, target: PushTarget, message: PushMessage) -> bool:
        key = (approval.id, target.name)
        links = self._build_buttons(approval, message.whole) if target.links else ()
        problem = deliver_message(target, message, links)
        if not problem:
            self._done.add(key)
            self._tries.pop(key, None)
            subject = f"{approval.id} {target.name}"
            self.store.audit.add_note(SENT, subject, {"links": target.links}, self.now())
            return True
        count = self._tries.get(key, (0, 0.0))[0] + 1
        self._tries[key] = (count, self.now())
        if count == TRIES:
            del self._tries[key]
            self._done.add(key)
            payload = {"target": target.name, "reason": problem}
            self.store.audit.add_note("push.failed", approval.id, payload, self.now())
        log.warning("a message was not taken", target=target.name, reason=problem, tries=count)
        return False

    def _build_buttons(self, approval: Approval, whole: bool) -> tuple[PushButton, ...]:
        """The links of a message. One that approves decides by itself only below the whole text;
        else it opens the page that shows it.
        """
        ends = min(approval.expires, self.find_link_expiry() or 0.0)
        of_it = (approval.id, hash_approval(approval), ends)
        end = self.now() + FREEZE_LINK_SECONDS
        tokens = (
            ("Approve", self.links.create_token("approve", *of_it)),
            ("Reject", self.links.create_token("reject", *of_it)),
            ("Freeze everything", self.links.create_token("freeze", "", "", end)),
        )
        return tuple(
            (title, f"{self.url}/decide?token={token}", whole or title != "Approve")
            for title, token in tokens
        )

    def _load_background(self, approval: Approval) -> ApprovalBackground:
        return ApprovalBackground(
            erases=is_erasing_approval(self.store, approval, ""),
            server=self.store.standings.get(approval.entry),
            operation=self.store.standings.get_operation(approval.entry, approval.tool),
        )

    def _load_secrets(self) -> tuple[str, ...]:
        found = (self.vault.get(*name) for name in list_own_secrets(self.vault))
        return tuple(secret.reveal() for secret in found if secret)


def deliver_message(
    target: PushTarget, message: PushMessage, buttons: Iterable[PushButton] = ()
) -> str:
    """Send a message to a target; the reason why it failed, "" where it was sent."""
    try:
        courier: Any = importlib.import_module("orchestrator.control.notify.apprise")
    except ImportError:
        return "Apprise is not installed: install toolwright[push]"
    shown = [courier.Button(*button) for button in buttons]
    problem: str = courier.send_message(target.url, message.title, message.text, shown)
    return problem
