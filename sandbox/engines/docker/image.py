"""The base image that every forged server runs in, and images that carry one server."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import IO, Any

import docker
import docker.errors
import docker.utils
import requests
import urllib3.exceptions

from sandbox.bundle import Bundle
from sandbox.debian import PACKAGES, build_root, mirrors
from sandbox.errors import BaseImageBuildFailed, BaseImageMissing, EngineUnavailable

REPOSITORY = "toolwright-base"
PREFERRED_BASE = "python:3.12-slim"
ROOT_REPOSITORY = "toolwright-root"
ROOT_AGE = timedelta(days=7)
PULL_SILENCE_SECONDS = 15.0
"""A registry that says nothing for so long is taken to be out of reach."""
MAX_OUTPUT = 4000
BUNDLE_DOCKERFILE = "FROM {base}\nCOPY bundle /bundle\n"
ENGINE_ERRORS = (
    docker.errors.DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)
SKIPPED = frozenset({"__pycache__"})

Progress = Callable[[str], None]


@dataclass(frozen=True)
class BaseImage:
    """`reference` names it to the engine and changes with its sources; `id` is its content's."""

    reference: str
    id: str


def base_reference() -> str:
    """The name of the base image made of this version's Dockerfile and runtime."""
    total = hashlib.sha256()
    for name, content in sorted(_sources().items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{REPOSITORY}:{total.hexdigest()[:12]}"


def base_image(client: docker.DockerClient) -> BaseImage | None:
    """The base image if the engine has it. Raises EngineUnavailable."""
    reference = base_reference()
    with translated(f"looking for {reference}"):
        try:
            return BaseImage(reference, image_identity(client, reference))
        except docker.errors.ImageNotFound:
            return None


def build_base(client: docker.DockerClient, progress: Progress) -> BaseImage:
    """Build the base image unless the engine has it: on python:3.12-slim, or where that cannot be
    pulled on a root file system of Debian packages.

    `progress` gets one line per step. Raises EngineUnavailable or BaseImageBuildFailed.
    """
    present = base_image(client)
    if present:
        return present
    with translated(f"docker build of {base_reference()}"):
        base = pulled(client, PREFERRED_BASE, progress) or debian_root(client, progress)
        return build_on(client, base, base_reference(), progress)


def build_on(
    client: docker.DockerClient, base: str, reference: str, progress: Progress
) -> BaseImage:
    """The base image on that image, under that name."""
    progress(f"building {reference} on {base}")
    return BaseImage(reference, _build(client, _sources(), reference, {"BASE": base}, {}))


def export_image(client: docker.DockerClient, bundle: Bundle, tag: str, layer: str = "") -> str:
    """Build an image of one bundle that any MCP client can `docker run -i`; returns its id.

    `layer` is the image of its packages, where it has any.

    Raises BaseImageMissing, BaseImageBuildFailed or EngineUnavailable.
    """
    base = base_image(client)
    if base is None:
        raise BaseImageMissing(base_reference())
    files = {
        "Dockerfile": BUNDLE_DOCKERFILE.format(base=layer or base.reference).encode(),
        "bundle/manifest.json": json.dumps(bundle.manifest()).encode(),
        "bundle/tools.json": json.dumps({"tools": bundle.runtime_tools()}).encode(),
        "bundle/server.py": bundle.source_code.encode(),
    }
    step = f"docker build of {tag[:200]}"
    if not docker.utils.match_tag(tag):
        raise BaseImageBuildFailed(step, "that is not a name for an image, such as `zones:1`")
    with translated(step):
        return _build(client, files, tag, {}, _labels(bundle))


@contextmanager
def translated(step: str) -> Iterator[None]:
    """Raises BaseImageBuildFailed or EngineUnavailable in place of what the client raises."""
    try:
        yield
    except docker.errors.APIError as error:
        raise BaseImageBuildFailed(step, str(error)[:MAX_OUTPUT]) from error
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(str(error)[:200]) from error


def _labels(bundle: Bundle) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": bundle.title,
        "org.opencontainers.image.description": bundle.description[:1000],
        "org.opencontainers.image.version": str(bundle.version),
        "io.modelcontextprotocol.server.name": f"toolwright/{bundle.name}",
        "toolwright.bundle.digest": bundle.digest(),
    }


def _sources() -> dict[str, bytes]:
    """The build context of the base image by path, from the installed package."""
    return dict(_files(resources.files("images").joinpath("base"), ""))


def _files(directory: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir() and entry.name not in SKIPPED:
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.is_file():
            yield prefix + entry.name, entry.read_bytes()


def _context(files: Mapping[str, bytes]) -> io.BytesIO:
    """A tar of files that any user may read, the same for the same files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    stream.seek(0)
    return stream


def _build(
    client: docker.DockerClient,
    files: Mapping[str, bytes],
    tag: str,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
) -> str:
    return build_context(client, _context(files), tag, arguments, labels)


def build_context(
    client: docker.DockerClient,
    context: IO[bytes],
    tag: str,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    network: str | None = None,
) -> str:
    """Build an image of a tar that holds a Dockerfile; returns its id."""
    output: list[str] = []
    for event in client.api.build(
        fileobj=context,
        custom_context=True,
        tag=tag,
        buildargs=dict(arguments),
        labels=dict(labels),
        network_mode=network,
        rm=True,
        forcerm=True,
        decode=True,
    ):
        output.append(str(event.get("stream") or ""))
        if "error" in event:
            told = "".join(output) + str(event["error"])
            raise BaseImageBuildFailed(f"docker build of {tag}", told[-MAX_OUTPUT:])
    return image_identity(client, tag)


def image_identity(client: docker.DockerClient, reference: str) -> str:
    """The id of an image's content. Raises docker.errors.ImageNotFound."""
    return str(client.images.get(reference).id)


def pulled(
    client: docker.DockerClient, reference: str, progress: Progress, anew: bool = False
) -> str | None:
    """The image of that name if the engine has it or gets it, else None; `anew` as its registry has
    it now, where that answers.
    """
    present = _is_there(client, reference)
    if present and not anew:
        return reference
    progress(f"pulling {reference}")
    said: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_pull, args=(client, reference, said), daemon=True).start()
    try:
        while (problem := said.get(timeout=PULL_SILENCE_SECONDS)) == "":
            continue
    except Empty:
        problem = f"no word from the registry for {PULL_SILENCE_SECONDS:g} s"
    if problem:
        progress(f"{reference} cannot be pulled ({problem[:200]})")
    return None if problem and not present else reference


def _is_there(client: docker.DockerClient, reference: str) -> bool:
    try:
        image_identity(client, reference)
    except docker.errors.ImageNotFound:
        return False
    return True


def _pull(client: docker.DockerClient, reference: str, said: SimpleQueue[str | None]) -> None:
    """Pull, saying "" for every sign of life, and at the end None or the problem."""
    try:
        for event in client.api.pull(reference, stream=True, decode=True):
            said.put(str(event.get("error") or ""))
        said.put(None)
    except ENGINE_ERRORS as error:
        said.put(str(getattr(error, "explanation", None) or error))


def debian_root(client: docker.DockerClient, progress: Progress) -> str:
    """The reference of a root file system of Debian packages, imported unless a recent one is."""
    return imported_root(client, ROOT_REPOSITORY, PACKAGES, progress)


def imported_root(
    client: docker.DockerClient, repository: str, packages: Sequence[str], progress: Progress
) -> str:
    """The reference of an image of these Debian packages, imported unless a recent one is there.

    Raises BaseImageBuildFailed.
    """
    found = mirrors()
    reference = f"{repository}:{found.suite}"
    if is_recent(client, reference):
        return reference
    progress(f"unpacking Debian packages ({found.suite}) instead")
    with TemporaryDirectory(prefix="toolwright-") as directory:
        archive = Path(directory) / "root.tar"
        build_root(found, archive, packages)
        answer: Any = json.loads(
            client.api.import_image_from_file(
                str(archive),
                repository=repository,
                tag=found.suite,
                changes=["ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV LANG=C.UTF-8"],
            ).splitlines()[-1]
        )
    if "error" in answer:
        raise BaseImageBuildFailed("docker import", str(answer["error"])[:MAX_OUTPUT])
    return reference


def is_recent(client: docker.DockerClient, reference: str) -> bool:
    """Whether the engine has the image, made lately enough to hold the security updates."""
    try:
        created = str(client.images.get(reference).attrs["Created"])
    except docker.errors.ImageNotFound:
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(created[:19]).replace(tzinfo=UTC)
    return age < ROOT_AGE
