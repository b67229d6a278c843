"""Preparing a third-party server's source for launch: as an image, a script or a program."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.errors import AddFailed
from orchestrator.forging.thirdparty.source import (
    CagedSource,
    ImageSource,
    NpmSource,
    ProgramSource,
    ScriptSource,
)
from sandbox.bundle.launch import Launch
from sandbox.engines.docker.engine import connect_engine
from sandbox.engines.docker.layers import (
    FetchedProgram,
    build_python_layer,
    find_image_id,
)
from sandbox.packages.fetch import fetch_npm, fetch_pypi
from sandbox.packages.images import build_npm_image, build_pip_image
from sandbox.packages.layers import build_node_layer

MAX_SCRIPT = 4 * 1024 * 1024

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PreparedSource:
    """What a source became: how it is started, its script, and where it came from."""

    launch: Launch
    origin: str
    digest: str
    title: str
    script: str = ""


def prepare_source(
    name: str, source: CagedSource, progress: Progress, labels: Mapping[str, str]
) -> PreparedSource:
    """Fetch what a server of that name is made of, in containers with these labels, and put it into
    an image. Raises AddFailed, and what fetching and Docker raise.
    """
    if isinstance(source, ScriptSource):
        return _prepare_script(source)
    with closing(connect_engine()) as client, TemporaryDirectory(prefix="toolwright-") as place:
        if isinstance(source, ImageSource):
            image = find_image_id(client, source.reference, progress)
            launch = Launch("image", image=image, command=source.command)
            return PreparedSource(launch, f"image:{source.reference}", image, source.reference)
        tree = Path(place) / "tree"
        tree.mkdir()
        if isinstance(source, NpmSource):
            build_npm_image(client, progress, labels)
            progress("fetching it by npm, in a container")
            fetched = fetch_npm(source.spec, tree, source.binary, source.arguments, labels)
            image = build_node_layer(client, name, fetched, tree, progress, labels)
            return _build_packaged("npm", fetched, image)
        build_pip_image(client, progress)
        progress("fetching it by pip, in a container")
        fetched = fetch_pypi(
            source.specs,
            tree,
            script=source.script,
            module=source.module,
            arguments=source.arguments,
            labels=labels,
        )
        image = build_python_layer(client, name, fetched, tree, progress)
        return _build_packaged("pypi", fetched, image)


def _build_packaged(kind: str, fetched: FetchedProgram, image: str) -> PreparedSource:
    locked = "".join(f"{p.name} {p.version} {p.digest}\n" for p in fetched.lock)
    launch = Launch(
        "image",
        image=image,
        entrypoint=fetched.command[:1],
        command=fetched.command[1:],
        lock=fetched.lock,
    )
    digest = hashlib.sha256(locked.encode()).hexdigest()
    title = f"{fetched.name} {fetched.version}"
    return PreparedSource(launch, f"{kind}:{fetched.name}@{fetched.version}", digest, title)


def _prepare_script(source: ScriptSource) -> PreparedSource:
    content = source.path.read_bytes()[: MAX_SCRIPT + 1]
    if len(content) > MAX_SCRIPT:
        raise AddFailed(f"{source.path} is larger than {MAX_SCRIPT} bytes.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise AddFailed(f"{source.path} is no UTF-8 text: {error}.") from error
    digest = hashlib.sha256(content).hexdigest()
    launch = Launch("script", command=source.arguments)
    return PreparedSource(launch, f"script:{source.path.name}", digest, source.path.stem, text)


def prepare_program(source: ProgramSource) -> PreparedSource:
    """What a program of this machine is started by. Raises AddFailed."""
    program = shutil.which(source.command[0])
    if program is None:
        raise AddFailed(f"there is no program {source.command[0]}.")
    command = (str(Path(program).absolute()), *source.command[1:])
    digest = hashlib.sha256("\0".join(command).encode()).hexdigest()
    launch = Launch("process", command=command)
    return PreparedSource(launch, f"process:{source.command[0]}", digest, Path(program).name)
