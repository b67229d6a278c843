"""The base image of all forged servers, and exported images of one server."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

from sandbox.bundle.model import Bundle
from sandbox.engines.docker.rootfs import PACKAGES, build_root, find_mirrors
from sandbox.errors import BaseImageBuildFailed, BaseImageMissing, EngineUnavailable
from sandbox.schemas.accepted import build_accepted_schema, build_listed_schema

REPOSITORY = "toolwright-base"
PREFERRED_BASE = "python:3.12-slim"
ROOT_REPOSITORY = "toolwright-root"
ROOT_AGE = timedelta(days=7)
PULL_SILENCE_SECONDS = 15.0
"""A registry that is silent for so long is taken to be unreachable."""
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
    """A base image: `reference` is its name, which changes with its sources, `id` its content's."""

    reference: str
    id: str


def compute_base_reference() -> str:
    """The name of the base image: a digest of this version's Dockerfile and runtime."""
    total = hashlib.sha256()
    for name, content in sorted(_read_sources().items()):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{REPOSITORY}:{total.hexdigest()[:12]}"


def find_base_image(client: docker.DockerClient) -> BaseImage | None:
    """The base image; None if the engine has none. Raises EngineUnavailable."""
    reference = compute_base_reference()
    with translate_errors(f"looking for {reference}"):
        try:
            return BaseImage(reference, get_image_id(client, reference))
        except docker.errors.ImageNotFound:
            return None


def build_base(client: docker.DockerClient, progress: Progress) -> BaseImage:
    """Build the base image unless the engine has it: on python:3.12-slim, or if that cannot be
    pulled on a root file system of Debian packages.

    `progress` gets one line per step. Raises EngineUnavailable or BaseImageBuildFailed.
    """
    present = find_base_image(client)
    if present:
        return present
    with translate_errors(f"docker build of {compute_base_reference()}"):
        base = pull_image(client, PREFERRED_BASE, progress) or import_debian_root(client, progress)
        return build_base_on(client, base, compute_base_reference(), progress)


def build_base_on(
    client: docker.DockerClient, base: str, reference: str, progress: Progress
) -> BaseImage:
    """Build the base image on the image `base`, under the name `reference`."""
    progress(f"building {reference} on {base}")
    return BaseImage(
        reference, _build_image(client, _read_sources(), reference, {"BASE": base}, {})
    )


def export_image(client: docker.DockerClient, bundle: Bundle, tag: str, layer: str = "") -> str:
    """Build an image of one bundle that any MCP client can `docker run -i`; returns its id.

    `layer` is the image of its packages, where it has any.

    Raises BaseImageMissing, BaseImageBuildFailed or EngineUnavailable.
    """
    base = find_base_image(client)
    if base is None:
        raise BaseImageMissing(compute_base_reference())
    files = {
        "Dockerfile": BUNDLE_DOCKERFILE.format(base=layer or base.reference).encode(),
        "bundle/manifest.json": json.dumps(bundle.build_manifest()).encode(),
        "bundle/tools.json": json.dumps({"tools": list_exported_tools(bundle)}).encode(),
        "bundle/server.py": bundle.source_code.encode(),
    }
    step = f"docker build of {tag[:200]}"
    if not docker.utils.match_tag(tag):
        raise BaseImageBuildFailed(step, "that is not a name for an image, such as `zones:1`")
    with translate_errors(step):
        return _build_image(client, files, tag, {}, _build_labels(bundle))


def list_exported_tools(bundle: Bundle) -> list[dict[str, Any]]:
    """The tools with the schemas that clients are shown, and those that arguments are held to."""
    return [
        {
            **runtime,
            "input_schema": build_listed_schema(bundle, tool),
            "accepted_schema": build_accepted_schema(bundle, tool),
        }
        for tool, runtime in zip(bundle.tools, bundle.list_runtime_tools(), strict=True)
    ]


@contextmanager
def translate_errors(step: str) -> Iterator[None]:
    """Raises BaseImageBuildFailed or EngineUnavailable in place of what the client raises."""
    try:
        yield
    except docker.errors.APIError as error:
        raise BaseImageBuildFailed(step, str(error)[:MAX_OUTPUT]) from error
    except ENGINE_ERRORS as error:
        raise EngineUnavailable(str(error)[:200]) from error


def _build_labels(bundle: Bundle) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": bundle.title,
        "org.opencontainers.image.description": bundle.description[:1000],
        "org.opencontainers.image.version": str(bundle.version),
        "io.modelcontextprotocol.server.name": f"toolwright/{bundle.name}",
        "toolwright.bundle.digest": bundle.compute_digest(),
    }


def _read_sources() -> dict[str, bytes]:
    """The build context of the base image by path, from the installed package."""
    return dict(_walk_files(resources.files("images").joinpath("base"), ""))


def _walk_files(directory: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir() and entry.name not in SKIPPED:
            yield from _walk_files(entry, f"{prefix}{entry.name}/")
        elif entry.is_file():
            yield prefix + entry.name, entry.read_bytes()


def _pack_context(files: Mapping[str, bytes], executable: Collection[str] = ()) -> io.BytesIO:
    """A tar of files that any user may read, the same for the same files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if name in executable else 0o644
            archive.addfile(member, io.BytesIO(content))
    stream.seek(0)
    return stream


def _build_image(
    client: docker.DockerClient,
    files: Mapping[str, bytes],
    tag: str,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
) -> str:
    return build_context(client, _pack_context(files), tag, arguments, labels)


def build_files(
    client: docker.DockerClient,
    files: Mapping[str, bytes],
    tag: str,
    executable: Collection[str] = (),
) -> str:
    """Build an image, without a network, of files that hold a Dockerfile; returns its id."""
    context = _pack_context(files, executable)
    return build_context(client, context, tag, {}, {}, network="none")


def find_image(client: docker.DockerClient, reference: str) -> str:
    """The id of an image's content; empty if the engine has none of that name."""
    try:
        return get_image_id(client, reference)
    except docker.errors.ImageNotFound:
        return ""


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
    return get_image_id(client, tag)


def get_image_id(client: docker.DockerClient, reference: str) -> str:
    """The id of an image's content. Raises docker.errors.ImageNotFound."""
    return str(client.images.get(reference).id)


def pull_image(
    client: docker.DockerClient, reference: str, progress: Progress, anew: bool = False
) -> str | None:
    """Pull an image unless the engine has it; returns its reference, or None if there is none.
    With `anew`, an image that the engine has is pulled again, if its registry answers.
    """
    present = bool(find_image(client, reference))
    if present and not anew:
        return reference
    progress(f"pulling {reference}")
    said: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_run_pull, args=(client, reference, said), daemon=True).start()
    try:
        while (problem := said.get(timeout=PULL_SILENCE_SECONDS)) == "":
            continue
    except Empty:
        problem = f"no word from the registry for {PULL_SILENCE_SECONDS:g} s"
    if problem:
        progress(f"{reference} cannot be pulled ({problem[:200]})")
    return None if problem and not present else reference


def _run_pull(client: docker.DockerClient, reference: str, said: SimpleQueue[str | None]) -> None:
    """Pull an image; puts "" for each event of the registry, and at the end None or the problem."""
    try:
        for event in client.api.pull(reference, stream=True, decode=True):
            said.put(str(event.get("error") or ""))
        said.put(None)
    except ENGINE_ERRORS as error:
        said.put(str(getattr(error, "explanation", None) or error))


def import_debian_root(client: docker.DockerClient, progress: Progress) -> str:
    """The reference of a root file system of Debian packages, imported unless recent."""
    return import_root(client, ROOT_REPOSITORY, PACKAGES, progress)


def import_root(
    client: docker.DockerClient, repository: str, packages: Sequence[str], progress: Progress
) -> str:
    """The reference of an image of these Debian packages, imported unless a recent one exists.

    Raises BaseImageBuildFailed.
    """
    found = find_mirrors()
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
    """Whether the engine has the image and it is younger than `ROOT_AGE`, for security updates."""
    try:
        created = str(client.images.get(reference).attrs["Created"])
    except docker.errors.ImageNotFound:
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(created[:19]).replace(tzinfo=UTC)
    return age < ROOT_AGE
