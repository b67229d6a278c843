"""The base image built again, and every server proved on it before it moves there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from orchestrator.app import open_app
from orchestrator.reproving import Reproved, Reproving
from orchestrator.settings import Settings
from orchestrator.weekly import STAMP, stamp
from registry.files import locked
from registry.records import CALLABLE
from registry.store import Store
from sandbox.bases import forget_bases, promote, rebuilt
from sandbox.docker_engine import Client, connect
from sandbox.image import BaseImage, base_image


@dataclass(frozen=True)
class Rebuilt:
    """`changed` is False where the base came out as it was; `servers` are what became of each."""

    image: str
    changed: bool
    servers: tuple[Reproved, ...] = ()


Build = Callable[[Client, Callable[[str], None]], BaseImage]
"""Makes the image that is to be the base, under a name of its own."""


async def rebuild(
    settings: Settings,
    progress: Callable[[str], None],
    tell: Callable[[Reproved], None],
    build: Build = rebuilt,
) -> Rebuilt:
    """Build the base image again and prove every server on it. One that fails stays on the base it
    was proved on, which is kept for it. Raises EngineUnavailable, BaseImageBuildFailed, Frozen.
    """
    with locked(settings.home / STAMP):
        stamp(settings.home, time.time())
        identity, changed = await asyncio.to_thread(_built, build, progress)
        if not changed:
            return Rebuilt(identity, False)
        found = []
        async with open_app(replace(settings, engine="docker", spares=0), "reprove") as app:
            reproving = Reproving(app.store, app.forge)
            for entry in app.store.entries(CALLABLE):
                found.append(await reproving.reprove(entry, lambda step: None))
                tell(found[-1])
        await asyncio.to_thread(_forgotten, settings)
    return Rebuilt(identity, True, tuple(found))


def _built(build: Build, progress: Callable[[str], None]) -> tuple[str, bool]:
    """The id of the base image as it is by now, and whether it is another."""
    with closing(connect()) as client:
        present = base_image(client)
        image = build(client, progress)
        promote(client, image)
    return image.id, present is None or present.id != image.id


def _forgotten(settings: Settings) -> None:
    """Keep no base image that no server was proved on last, and none twice."""
    with Store.open(settings.database_url) as store:
        needed = {entry.base_image for entry in store.entries(CALLABLE)}
    with closing(connect()) as client:
        present = base_image(client)
        forget_bases(client, needed - {present.id if present else ""})
