"""Resource subscriptions of one session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_WATCHED = 100
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


@dataclass
class ResourceSubscription:
    """A subscription; `identity` is the id of its `subscriptions/listen`, "" before 2026-07-28."""

    uri: str
    hear: Callable[[str], None]
    identity: str = ""
    agreed: asyncio.Event = field(default_factory=asyncio.Event)


class ResourceSubscriptions:
    """The subscriptions of a session by URI; `dropped` counts updates of other resources."""

    def __init__(self) -> None:
        self.dropped = 0
        self._watches: dict[str, ResourceSubscription] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, watch: ResourceSubscription) -> None:
        self._watches[watch.uri] = watch

    def remove(self, uri: str) -> ResourceSubscription | None:
        return self._watches.pop(uri, None)

    def mark_agreed(self, params: Any) -> None:
        """Process `subscriptions/acknowledged` of the 2026-07-28 protocol."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        identity = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        for watch in self._watches.values():
            if identity and watch.identity == str(identity):
                watch.agreed.set()

    def notify_watcher(self, params: Any) -> None:
        """Process `resources/updated`: call the subscriber of the resource or of its parent."""
        uri = params.get("uri") if isinstance(params, dict) else None
        for watch in self._watches.values():
            if isinstance(uri, str) and (uri == watch.uri or uri.startswith(f"{watch.uri}/")):
                watch.hear(watch.uri)
                return
        self.dropped += 1

    def end_all(self) -> None:
        """Remove all subscriptions, and notify each subscriber so that it looks again."""
        while self._watches:
            _, watch = self._watches.popitem()
            watch.hear(watch.uri)
