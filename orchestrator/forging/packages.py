"""Packages that a draft's code imports: allowed by a person, then locked."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from orchestrator.consents import PACKAGE, Consents
from orchestrator.engines import Engine
from orchestrator.errors import ForgeWaits
from sandbox.dependency import Dependency, normal
from sandbox.errors import PackagesNeedDocker

Progress = Callable[[str], None]


def check_packages(consents: Consents, packages: Iterable[Dependency]) -> None:
    """Raises ForgeWaits for those of a bundle that no person allowed, all at once."""
    _check(consents, [(package.name, str(package)) for package in packages])


async def locked(
    specs: Sequence[str], server: str, engine: Engine, consents: Consents, progress: Progress
) -> tuple[Dependency, ...]:
    """The packages (`NAME[==VERSION]`) and all that they need, as PyPI has them.

    Nothing is asked of PyPI before a person allowed what is named. Raises ForgeWaits, then and for
    what the packages need, PackageUnusable, PackagesNeedDocker and what the engine raises.
    """
    if not specs:
        return ()
    engine.check()
    if engine.name != "docker":
        raise PackagesNeedDocker(server)
    _check(consents, [(spec.partition("==")[0], spec) for spec in specs])
    found = await asyncio.to_thread(_resolved, specs, progress)
    check_packages(consents, found)
    return found


def _resolved(specs: Sequence[str], progress: Progress) -> tuple[Dependency, ...]:
    # Loading the Docker SDK costs 0.2 s, so only for whom packages are asked.
    docker = importlib.import_module("sandbox.docker_engine")
    layers = importlib.import_module("sandbox.layers")
    with closing(docker.connect()) as client:
        found: tuple[Dependency, ...] = layers.resolved(client, specs, progress)
        return found


def _check(consents: Consents, wanted: Iterable[tuple[str, str]]) -> None:
    """Raises ForgeWaits for those that no person allowed, all at once."""
    allowed = consents.packages()
    missing = {normal(name): told for name, told in wanted if normal(name) not in allowed}
    if missing:
        names = " ".join(f"{PACKAGE}{name}" for name in missing)
        how = f"toolwright source allow {names} (of PyPI: {', '.join(missing.values())})"
        raise ForgeWaits("package", ", ".join(missing.values()), how)
