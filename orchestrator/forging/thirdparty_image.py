"""What a source of somebody else's server becomes: an image, a script or a program."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.errors import AddFailed
from orchestrator.sources import Image, Npm, Plain, Script, Source
from sandbox.docker_engine import connect
from sandbox.launch import Launch
from sandbox.layers import image_of, node_layer, python_layer, python_of
from sandbox.packages import Fetched, fetch_npm, fetch_pypi

MAX_SCRIPT = 4 * 1024 * 1024

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Prepared:
    """What a source became: how it is started, its script, and where it came from."""

    launch: Launch
    origin: str
    digest: str
    title: str
    script: str = ""


def prepared(name: str, source: Source, progress: Progress) -> Prepared:
    """Fetch what a server of that name is made of, and put it into an image. Raises AddFailed, and
    what fetching and Docker raise.
    """
    if isinstance(source, Plain):
        return _plain(source)
    if isinstance(source, Script):
        return _script(source)
    with closing(connect()) as client, TemporaryDirectory(prefix="toolwright-") as place:
        if isinstance(source, Image):
            image = image_of(client, source.reference, progress)
            launch = Launch("image", image=image, command=source.command)
            return Prepared(launch, f"image:{source.reference}", image, source.reference)
        tree = Path(place) / "tree"
        tree.mkdir()
        progress("fetching it by your own npm" if isinstance(source, Npm) else "fetching it by pip")
        if isinstance(source, Npm):
            fetched = fetch_npm(source.spec, tree, source.binary, source.arguments)
            image = node_layer(client, name, fetched, tree, progress)
            return _packaged("npm", fetched, image)
        python = python_of(client, progress)
        fetched = fetch_pypi(
            source.specs,
            tree,
            python,
            script=source.script,
            module=source.module,
            arguments=source.arguments,
        )
        image = python_layer(client, name, fetched, tree, progress)
        return _packaged("pypi", fetched, image)


def _packaged(kind: str, fetched: Fetched, image: str) -> Prepared:
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
    return Prepared(launch, f"{kind}:{fetched.name}@{fetched.version}", digest, title)


def _script(source: Script) -> Prepared:
    content = source.path.read_bytes()[: MAX_SCRIPT + 1]
    if len(content) > MAX_SCRIPT:
        raise AddFailed(f"{source.path} is larger than {MAX_SCRIPT} bytes.")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise AddFailed(f"{source.path} is no UTF-8 text: {error}.") from error
    digest = hashlib.sha256(content).hexdigest()
    launch = Launch("script", command=source.arguments)
    return Prepared(launch, f"script:{source.path.name}", digest, source.path.stem, text)


def _plain(source: Plain) -> Prepared:
    program = shutil.which(source.command[0])
    if program is None:
        raise AddFailed(f"there is no program {source.command[0]}.")
    command = (str(Path(program).absolute()), *source.command[1:])
    digest = hashlib.sha256("\0".join(command).encode()).hexdigest()
    launch = Launch("process", command=command)
    return Prepared(launch, f"process:{source.command[0]}", digest, Path(program).name)
