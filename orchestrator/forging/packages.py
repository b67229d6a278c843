"""PyPI packages of a draft: checked against the grants, then resolved and locked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing

from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import forge_waits
from orchestrator.gateway.engine import Engine
from registry.needs import PackageNeed
from sandbox.bundle.packages import Dependency, normalize_name
from sandbox.errors import PackagesNeedDocker

Progress = Callable[[str], None]


def check_packages(consents: Grants, packages: Iterable[Dependency]) -> None:
    """Raises ForgeWaits for those of a bundle that no person allowed, all at once."""
    _check_allowed(consents, [(package.name, str(package)) for package in packages])


async def lock_packages(
    specs: Sequence[str], server: str, engine: Engine, consents: Grants, progress: Progress
) -> tuple[Dependency, ...]:
    """The packages (`NAME[==VERSION]`) and all that they need, as PyPI has them.

    Nothing is asked of PyPI before a person allowed what is named. Raises ForgeWaits, then and for
    what the packages need, PackageUnusable, PackagesNeedDocker and what the engine raises.
    """
    if not specs:
        return ()
    engine.check_available()
    if engine.name != "docker":
        raise PackagesNeedDocker(server)
    _check_allowed(consents, [(spec.partition("==")[0], spec) for spec in specs])
    found = await engine.fetch(lambda labels: _resolve_packages(specs, progress, labels))
    check_packages(consents, found)
    return found


def _resolve_packages(
    specs: Sequence[str], progress: Progress, labels: Mapping[str, str]
) -> tuple[Dependency, ...]:
    # Loading the Docker SDK costs 0.2 s, so only for whom packages are asked.
    docker = importlib.import_module("sandbox.engines.docker.engine")
    layers = importlib.import_module("sandbox.packages.layers")
    with closing(docker.connect_engine()) as client:
        found: tuple[Dependency, ...] = layers.resolve_packages(client, specs, progress, labels)
        return found


def find_unallowed(consents: Grants, specs: Iterable[str]) -> PackageNeed | None:
    """Those of these packages (`NAME[==VERSION]`) that no person allowed."""
    return _find_missing(consents, [(spec.partition("==")[0], spec) for spec in specs])


def _check_allowed(consents: Grants, wanted: Iterable[tuple[str, str]]) -> None:
    """Raises ForgeWaits for those that no person allowed, all at once."""
    need = _find_missing(consents, wanted)
    if need is not None:
        raise forge_waits(need)


def _find_missing(consents: Grants, wanted: Iterable[tuple[str, str]]) -> PackageNeed | None:
    allowed = consents.find_packages()
    missing = {
        normalize_name(name): spec for name, spec in wanted if normalize_name(name) not in allowed
    }
    return PackageNeed(tuple(missing), tuple(missing.values())) if missing else None
