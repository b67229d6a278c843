"""The resources of one session whose changes somebody wants to hear of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_WATCHED = 100
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


@dataclass
class Watch:
    """`identity` is the id of the `subscriptions/listen` that it lives by, "" in the older era."""

    uri: str
    hear: Callable[[str], None]
    identity: str = ""
    agreed: asyncio.Event = field(default_factory=asyncio.Event)


class Watches:
    """What is told of a resource that nobody watches is counted in `dropped`."""

    def __init__(self) -> None:
        self.dropped = 0
        self._watches: dict[str, Watch] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def add(self, watch: Watch) -> None:
        self._watches[watch.uri] = watch

    def remove(self, uri: str) -> Watch | None:
        return self._watches.pop(uri, None)

    def agreed(self, params: Any) -> None:
        """The server has taken up a subscription of the newer era."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        identity = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        for watch in self._watches.values():
            if identity and watch.identity == str(identity):
                watch.agreed.set()

    def updated(self, params: Any) -> None:
        """A resource changed, or a part of one: its watcher hears of the one it watches."""
        uri = params.get("uri") if isinstance(params, dict) else None
        for watch in self._watches.values():
            if isinstance(uri, str) and (uri == watch.uri or uri.startswith(f"{watch.uri}/")):
                watch.hear(watch.uri)
                return
        self.dropped += 1

    def end(self) -> None:
        """Nothing more will be told: whoever watches has to look again."""
        while self._watches:
            _, watch = self._watches.popitem()
            watch.hear(watch.uri)
