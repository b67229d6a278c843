"""Images of what was fetched: npm packages on Node, and the packages of a forged server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sandbox.bundle.model import Bundle
from sandbox.bundle.packages import Dependency, read_dependencies
from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.image import Progress, build_base, translate_errors
from sandbox.engines.docker.layers import (
    COMPILE,
    FetchedProgram,
    build_layer,
    compute_dependency_tag,
    detect_python,
    find_dependency_layer,
)
from sandbox.packages.container import LABELS
from sandbox.packages.fetch import fetch_locked, fetch_wheels
from sandbox.packages.images import build_node_base


def build_node_layer(
    client: Client,
    name: str,
    fetched: FetchedProgram,
    tree: Path,
    progress: Progress,
    labels: Mapping[str, str] = LABELS,
) -> str:
    """Build an image of the tree on one with Node; returns its id.

    Raises PackageUnusable, BaseImageBuildFailed or EngineUnavailable.
    """
    base = build_node_base(client, progress, labels)
    return build_layer(client, base, name, fetched, tree, progress)


def build_dependency_layer(
    client: Client,
    bundle: Bundle,
    progress: Progress,
    base: str = "",
    labels: Mapping[str, str] = LABELS,
) -> str:
    """The id of an image of a bundle's packages on `base`, by default the present base image.
    Unless the engine has it, the packages are fetched by their locked digests. Raises like
    `build_node_layer`.
    """
    present = build_base(client, progress).reference
    base = base or present
    found = find_dependency_layer(client, bundle, base)
    if found:
        return found
    lock = tuple(package.locked for package in bundle.packages)
    progress(f"fetching {len(lock)} packages by pip, in a container")
    with TemporaryDirectory(prefix="toolwright-") as place:
        tree = Path(place) / "tree"
        tree.mkdir()
        fetch_locked(lock, tree, detect_python(client, progress, base), labels=labels)
        fetched = FetchedProgram(bundle.name, str(bundle.version), (), lock)
        with translate_errors(f"naming the packages of {bundle.name}"):
            tag = compute_dependency_tag(client, bundle, base)
        return build_layer(
            client, base, bundle.name, fetched, tree, progress, step=COMPILE, tag=tag
        )


def resolve_packages(
    client: Client,
    specs: Sequence[str],
    progress: Progress,
    labels: Mapping[str, str] = LABELS,
) -> tuple[Dependency, ...]:
    """Resolve PyPI packages (`NAME[==VERSION]`) and their dependencies for the base image's Python.

    Raises like `build_node_layer`.
    """
    with TemporaryDirectory(prefix="toolwright-") as place:
        tree = Path(place) / "tree"
        tree.mkdir()
        progress("asking PyPI by pip, in a container")
        lock = fetch_wheels(specs, tree, labels=labels)
        return read_dependencies(tree, lock)
