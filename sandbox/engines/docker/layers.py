"""Images of third-party servers and of bundles' packages: a fetched tree on a base image."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import docker
import docker.errors

from sandbox.bundle.launch import LockedPackage
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.image import (
    Progress,
    build_base,
    build_context,
    find_image,
    get_image_id,
    pull_image,
    translate_errors,
)
from sandbox.errors import PackageUnusable

PLACE = "/opt/server"
"""The directory of a fetched tree in the image."""
REPOSITORY = "toolwright-server"
MAX_FILES, MAX_BYTES = 200_000, 2 * 1024 * 1024 * 1024
# Start-up must not compile. What this Python cannot compile of a package, it cannot import either.
COMPILE = f"""ENV PYTHONPATH={PLACE}
USER 0
RUN ["python3", "-I", "-c", "import compileall; compileall.compile_dir('{PLACE}', quiet=2, \\
invalidation_mode=__import__('py_compile').PycInvalidationMode.UNCHECKED_HASH)"]
"""


@dataclass(frozen=True)
class FetchedProgram:
    """A fetched program: its command once the tree is copied to `PLACE`, and its lock."""

    name: str
    version: str
    command: tuple[str, ...]
    lock: tuple[LockedPackage, ...]


@dataclass(frozen=True)
class PythonTarget:
    """The interpreter that wheels are fetched for: version (`3.12`) and machine (`x86_64`)."""

    version: str
    machine: str


def detect_python(client: docker.DockerClient, progress: Progress, base: str = "") -> PythonTarget:
    """The interpreter of `base`, by default the base image. Raises BaseImageBuildFailed or
    EngineUnavailable.
    """
    base = base or build_base(client, progress).reference
    ask = "import platform, sys; print(*sys.version_info[:2], platform.machine())"
    with translate_errors("asking the base image for its Python"):
        told = client.containers.run(
            base,
            ["-I", "-c", ask],
            entrypoint="python3",
            network_disabled=True,
            remove=True,
            use_config_proxy=False,
        )
    major, minor, machine = told.decode().split()
    return PythonTarget(f"{major}.{minor}", machine)


def build_python_layer(
    client: docker.DockerClient, name: str, fetched: FetchedProgram, tree: Path, progress: Progress
) -> str:
    """Build an image of the tree on the base image, byte-compiled; returns its id.

    Raises PackageUnusable, BaseImageBuildFailed or EngineUnavailable.
    """
    base = build_base(client, progress).reference
    return build_layer(client, base, name, fetched, tree, progress, step=COMPILE)


def find_dependency_layer(client: docker.DockerClient, bundle: Bundle, base: str) -> str:
    """The id of the image of a bundle's packages on `base`; empty if the engine has none.

    Raises EngineUnavailable or BaseImageBuildFailed.
    """
    with translate_errors(f"looking for the packages of {bundle.name}"):
        return find_image(client, compute_dependency_tag(client, bundle, base))


def compute_dependency_tag(client: docker.DockerClient, bundle: Bundle, base: str) -> str:
    """The name of that image."""
    lock = tuple(package.locked for package in bundle.packages)
    # By the base's content: its name stays when it is built anew.
    return _compute_tag(get_image_id(client, base), COMPILE, bundle.name, lock)


def build_layer(
    client: docker.DockerClient,
    base: str,
    name: str,
    fetched: FetchedProgram,
    tree: Path,
    progress: Progress,
    *,
    step: str = "",
    tag: str = "",
) -> str:
    """Build an image of the tree on `base`; returns its id. Raises like `build_python_layer`."""
    tag = tag or _compute_tag(base, step, name, fetched.lock)
    progress(f"building {tag} on {base}")
    labels = {
        "org.opencontainers.image.title": f"{fetched.name} {fetched.version}",
        "toolwright.server": name,
    }
    dockerfile = f"FROM {base}\nCOPY tree {PLACE}\n{step}USER 65534:65534\nWORKDIR /tmp\n"
    with translate_errors(f"docker build of {tag}"):
        return _build_tree(client, dockerfile, tree, tag, labels)


def _compute_tag(base: str, step: str, name: str, lock: Sequence[LockedPackage]) -> str:
    locked = "".join(f"{p.name}@{p.version} {p.digest}\n" for p in lock)
    mark = hashlib.sha256(f"{base}\n{step}\n{locked}".encode()).hexdigest()
    return f"{REPOSITORY}:{name}-{mark[:12]}"


def _build_tree(
    client: docker.DockerClient, dockerfile: str, tree: Path, tag: str, labels: dict[str, str]
) -> str:
    with TemporaryFile() as context:
        with tarfile.open(fileobj=context, mode="w") as archive:
            _add_file(
                archive, "Dockerfile", io.BytesIO(dockerfile.encode()), len(dockerfile), False
            )
            _add_tree(archive, tree)
        context.seek(0)
        return build_context(client, context, tag, {}, labels, network="none")


def _add_tree(archive: tarfile.TarFile, tree: Path) -> None:
    """Add the regular files of a tree, owned by root: no links, devices or set-id bits."""
    count = size = 0
    for folder, _, names in os.walk(tree):
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_symlink() or not path.is_file():
                continue
            status = path.stat()
            count, size = count + 1, size + status.st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise PackageUnusable("the package has more files or bytes than a server may have.")
            inside = f"tree/{path.relative_to(tree).as_posix()}"
            with path.open("rb") as file:
                _add_file(archive, inside, file, status.st_size, bool(status.st_mode & 0o100))


def _add_file(
    archive: tarfile.TarFile, name: str, content: IO[bytes], size: int, executable: bool
) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o755 if executable else 0o644
    archive.addfile(member, content)


def find_image_id(client: docker.DockerClient, reference: str, progress: Progress) -> str:
    """The id of an image that a person named, pulled if the engine lacks it.

    Raises PackageUnusable or EngineUnavailable.
    """
    with translate_errors(f"looking for {reference[:200]}"):
        if pull_image(client, reference, progress) is None:
            raise PackageUnusable(f"there is no image {reference[:200]}, and it cannot be pulled.")
        return get_image_id(client, reference)


def remove_layer(client: docker.DockerClient, image: str) -> None:
    """Remove an image that was built for a server. Other images, and one in use, stay."""
    with translate_errors(f"removing {image}"):
        try:
            tags = client.images.get(image).tags
        except docker.errors.ImageNotFound:
            return
        for tag in tags:
            if tag.startswith(f"{REPOSITORY}:"):
                client.images.remove(tag, force=True)
