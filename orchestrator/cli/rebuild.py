"""Rebuilding the base image, and proving every server on it before it moves there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from orchestrator.app import open_app
from orchestrator.cli.weekly import STAMP, write_stamp
from orchestrator.healing.reprove import ReproofResult, Reprover
from orchestrator.settings import Settings
from registry.database.files import lock_file
from registry.models import CALLABLE
from registry.store import Store
from sandbox.engines.docker.bases import forget_bases, promote_base, rebuild_base
from sandbox.engines.docker.engine import Client, connect_engine
from sandbox.engines.docker.image import BaseImage, find_base_image


@dataclass(frozen=True)
class RebuildResult:
    """The result of a rebuild. `changed` is False where the image is the same as before."""

    image: str
    changed: bool
    servers: tuple[ReproofResult, ...] = ()


Build = Callable[[Client, Callable[[str], None]], BaseImage]
"""Builds the image that is to be the base, under a name of its own."""


async def rebuild_and_reprove(
    settings: Settings,
    progress: Callable[[str], None],
    tell: Callable[[ReproofResult], None],
    build: Build = rebuild_base,
) -> RebuildResult:
    """Build the base image again and prove every server on it, quarantined ones too. One in use
    that fails stays on the base it was proved on, which is kept for it.

    Raises EngineUnavailable, BaseImageBuildFailed, Frozen.
    """
    with lock_file(settings.home / STAMP):
        write_stamp(settings.home, time.time())
        identity, changed = await asyncio.to_thread(_build_and_promote, build, progress)
        if not changed:
            return RebuildResult(identity, False)
        found = []
        async with open_app(replace(settings, engine="docker", spares=0), "reprove") as app:
            reproving = Reprover(app.store, app.forge)
            for entry in app.store.servers.find((*CALLABLE, "quarantined")):
                found.append(await reproving.reprove_server(entry, lambda step: None))
                tell(found[-1])
        await asyncio.to_thread(_forget_unused_bases, settings)
    return RebuildResult(identity, True, tuple(found))


def _build_and_promote(build: Build, progress: Callable[[str], None]) -> tuple[str, bool]:
    """Build and promote the base image; its id, and whether that changed."""
    with closing(connect_engine()) as client:
        present = find_base_image(client)
        image = build(client, progress)
        promote_base(client, image)
    return image.id, present is None or present.id != image.id


def _forget_unused_bases(settings: Settings) -> None:
    """Remove the base images on which no server in use was proved last."""
    with Store.open(settings.database_url) as store:
        needed = {entry.base_image for entry in store.servers.find(CALLABLE)}
    with closing(connect_engine()) as client:
        present = find_base_image(client)
        forget_bases(client, needed - {present.id if present else ""})
