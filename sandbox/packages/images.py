"""Images that packages are fetched in: one with pip, one with npm; and the base image with Node."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.image import (
    Progress,
    build_base,
    build_files,
    find_image,
    import_root,
    is_recent,
    pull_image,
    translate_errors,
)
from sandbox.errors import PackageUnusable
from sandbox.packages.archive import ArchiveBounds, unpack_package
from sandbox.packages.container import LABELS, FetchJob, run_fetch
from sandbox.packages.registries import Registry, load_npm

REPOSITORY = "toolwright-fetch"
PIP, NPM = "/opt/pip", "/opt/npm"
NODE_REPOSITORY = "toolwright-node"
NODE_VERSION = "22.23.3"
NODE_BASE = "node:22-slim"
NODE_ROOT = "toolwright-node-root"
NODE_PACKAGES = ("base-files", "netbase", "tzdata", "ca-certificates", "libstdc++6", "libgcc-s1")
NODE_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
NODE_DIGESTS = {
    "x64": (
        "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="
    ),
    "arm64": (
        "l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA=="
    ),
}
NPM_VERSION = "10.9.4"
NPM_DIGEST = (
    "OnUG836FwboQIbqtefDNlyR0gTHzIfwRfE3DuiNewBvnMnWEpB0VEXwBlFVgqpNzIgYo/MHh3d2Hel/pszapAA=="
)
"""sha512 of the registry's archives, as its `integrity` has them."""
PACKAGE_BOUNDS = ArchiveBounds(file_bytes=256 * 1024 * 1024, total_bytes=512 * 1024 * 1024)
NPM_PARTS = ("bin", "lib", "node_modules")
COMPILE = f"""USER 0
RUN ["python3", "-I", "-c", "import compileall; compileall.compile_dir('{PIP}', quiet=2, \\
invalidation_mode=__import__('py_compile').PycInvalidationMode.UNCHECKED_HASH)"]
"""


def build_pip_image(client: Client, progress: Progress, base: str = "") -> str:
    """The reference of an image with pip on `base`, by default the base image: the user's own pip,
    which is copied, or the base's. Raises BaseImageBuildFailed or EngineUnavailable.
    """
    base = base or build_base(client, progress).reference
    files = find_pip(sys.path)
    if not files:
        return base
    return _build_tool(client, base, files, f"COPY tree {PIP}\n{COMPILE}", "pip", progress)


def build_npm_image(client: Client, progress: Progress, labels: Mapping[str, str] = LABELS) -> str:
    """The reference of an image with npm on the one with Node. npm comes from the registry, by its
    digest. Raises PackageUnusable, BaseImageBuildFailed or EngineUnavailable.
    """
    base = build_node_base(client, progress, labels)
    with translate_errors("looking for the image with npm"):
        mark = hashlib.sha256(f"{NPM_DIGEST} {find_image(client, base)}".encode()).hexdigest()
        tag = f"{REPOSITORY}:npm-{mark[:12]}"
        if find_image(client, tag):
            return tag
    progress(f"fetching npm {NPM_VERSION}")
    with TemporaryDirectory(prefix="toolwright-") as place:
        tree = _fetch_archive(client, "npm", NPM_VERSION, NPM_DIGEST, Path(place), labels)
        files = {
            path: content
            for path, content in _read_files(tree)
            if path.partition("/")[0] in NPM_PARTS or "/" not in path
        }
    return _build_tool(client, base, files, f"COPY tree {NPM}\n", "npm", progress, tag)


def build_node_base(client: Client, progress: Progress, labels: Mapping[str, str] = LABELS) -> str:
    """The reference of an image with Node: node:22-slim, or if that cannot be pulled, one of Debian
    packages and the Node binary of npm's registry, by its digest. Raises PackageUnusable,
    BaseImageBuildFailed or EngineUnavailable.
    """
    with translate_errors("making an image with Node"):
        reference = f"{NODE_REPOSITORY}:{NODE_VERSION}"
        if is_recent(client, reference):
            return reference
        base = pull_image(client, NODE_BASE, progress)
        if base is not None:
            return base
        root = import_root(client, NODE_ROOT, NODE_PACKAGES, progress)
        machine = NODE_MACHINES.get(str(client.info().get("Architecture")))
    if machine is None:
        raise PackageUnusable(f"there is no Node for this machine. Pull {NODE_BASE} yourself.")
    progress(f"fetching Node {NODE_VERSION}")
    with TemporaryDirectory(prefix="toolwright-") as place:
        name = f"node-linux-{machine}"
        digest = NODE_DIGESTS[machine]
        tree = _fetch_archive(client, name, NODE_VERSION, digest, Path(place), labels)
        files = {
            "Dockerfile": (
                f"FROM {root}\nCOPY node /usr/local/bin/node\n"
                "COPY LICENSE /usr/local/share/doc/node/LICENSE\n"
            ).encode(),
            "node": (tree / "bin/node").read_bytes(),
            "LICENSE": (tree / "LICENSE").read_bytes(),
        }
    with translate_errors(f"docker build of {reference}"):
        build_files(client, files, reference, executable=("node",))
    return reference


def _build_tool(
    client: Client,
    base: str,
    files: Mapping[str, bytes],
    steps: str,
    name: str,
    progress: Progress,
    tag: str = "",
) -> str:
    with translate_errors(f"making the image with {name}"):
        if not tag:
            mark = hashlib.sha256(f"{steps} {find_image(client, base)}".encode())
            for path, content in sorted(files.items()):
                mark.update(f"{path}\0{len(content)}\0".encode() + content)
            tag = f"{REPOSITORY}:{name}-{mark.hexdigest()[:12]}"
            if find_image(client, tag):
                return tag
        progress(f"building {tag}, to fetch packages in")
        dockerfile = f"FROM {base}\n{steps}USER 65534:65534\nENTRYPOINT []\n"
        context = {f"tree/{path}": content for path, content in files.items()}
        build_files(client, {**context, "Dockerfile": dockerfile.encode()}, tag)
    return tag


def _fetch_archive(
    client: Client, name: str, version: str, digest: str, place: Path, labels: Mapping[str, str]
) -> Path:
    """The directory of an unpacked package of npm's registry. Raises PackageUnusable."""
    registry = load_npm()
    got = place / "got"
    got.mkdir()
    order = {"url": f"{registry.index}/{name}/-/{name}-{version}.tgz"}
    _download(client, registry, order, got, labels)
    archive = (got / "file").read_bytes()
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != digest:
        raise PackageUnusable(f"{registry.index} has another {name} {version} than npm's registry.")
    unpack_package(archive, place / "tree", PACKAGE_BOUNDS)
    return place / "tree/package"


def _download(
    client: Client,
    registry: Registry,
    order: Mapping[str, str],
    directory: Path,
    labels: Mapping[str, str],
) -> None:
    image = build_pip_image(client, lambda line: None)
    run_fetch(client, FetchJob(image, registry, order), directory, labels)


def find_pip(path: Sequence[str]) -> dict[str, bytes]:
    """The files of the user's own pip, by their path in it; none if there is none to be found.

    `path` is where this Python imports from. Its packages are looked at, the wheel that came with
    it, and what the user's programs named pip belong to. Nothing is started or imported.
    """
    # Not the directory that somebody happens to be in.
    places = [Path(place) for place in path if place.endswith("-packages")]
    programs = [Path(found) for name in ("pip3", "pip") if (found := shutil.which(name))]
    packages = [*(place / "pip" for place in places), *_list_packages(programs)]
    whole = (package for package in packages if (package / "_vendor/urllib3").is_dir())
    package = next(whole, None)
    if package is not None and package.parent in places:
        return _read_pip(package)
    bundled = importlib.util.find_spec("ensurepip")
    wheels = [*_list_wheels(bundled.origin)] if bundled is not None and bundled.origin else []
    if wheels:
        return _read_wheel(wheels[-1])
    return _read_pip(package) if package is not None else {}


def _list_wheels(ensurepip: str) -> Iterator[Path]:
    """The wheels of pip that came with this Python."""
    for place in (Path(ensurepip).parent / "_bundled", Path("/usr/share/python-wheels")):
        yield from sorted(place.glob("pip-*.whl"))


def _list_packages(programs: Iterable[Path]) -> Iterator[Path]:
    """The packages that programs named pip belong to."""
    for place in (each for program in programs for each in (program, program.resolve())):
        library = place.parent.parent / "lib"
        yield from sorted(library.glob("python3*/*-packages/pip"), reverse=True)


def _read_pip(package: Path) -> dict[str, bytes]:
    return {f"pip/{path}": content for path, content in _read_files(package)}


def _read_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist() if name.startswith("pip/")}


def _read_files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.rglob("*")):
        inside = path.relative_to(directory)
        if path.is_file() and "__pycache__" not in inside.parts and path.suffix != ".exe":
            yield inside.as_posix(), path.read_bytes()
