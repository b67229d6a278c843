"""Packages whose fetching would run something of theirs on this machine, and ordinary ones."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sandbox.cage import opened_cage
from sandbox.engines.docker.engine import Client
from sandbox.errors import PackageUnusable
from sandbox.packages.container import FetchJob, run_fetch
from sandbox.packages.fetch import fetch_npm, fetch_pypi
from sandbox.packages.images import build_npm_image, build_pip_image
from sandbox.packages.registries import load_pypi
from tests.engine.foreign import BENIGN
from tests.engine.test_third_party_packages import JAVASCRIPT
from tests.functional.home import SECONDS, Home, new_home, until
from tests.functional.peer import Peer, text
from tests.world.registry import FakeRegistry, build_npm, build_tar, build_wheel, registry

pytestmark = pytest.mark.docker

CLIENTS = ("npm", "npx", "node", "pip", "pip3", "git", "uv", "uvx")
SECRET = "tok-7f1b0c2e9a"
BACKEND = """
import pathlib, urllib.request
pathlib.Path({marker!r}).write_text("ran")
urllib.request.urlopen({url!r} + "/phoned-home")
"""


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "no_proxy")


@dataclass(frozen=True)
class Scene:
    """A user whose packages come from `registry`. `marker` is a file that only foreign code makes,
    `ran` a list of the package clients that were started.
    """

    place: Path
    registry: FakeRegistry
    marker: Path
    ran: Path

    @property
    def tree(self) -> Path:
        made = self.place / "fetched" / "tree"
        made.mkdir(parents=True, exist_ok=True)
        return made

    def nothing_ran(self) -> bool:
        phoned = "/phoned-home" in self.registry.asked
        return not (self.marker.exists() or self.ran.exists() or phoned)

    def sdist(self) -> bytes:
        """A source archive that runs its own code as soon as anyone asks what it is."""
        backend = BACKEND.format(marker=str(self.marker), url=self.registry.url)
        project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
        files = {"pyproject.toml": project, "b.py": backend, "PKG-INFO": "Name: evil\n"}
        return build_tar({f"evil-1.0/{path}": content for path, content in files.items()})

    def git(self) -> str:
        """A repository with an npm package, whose settings name a program of its own as git."""
        place = self.place / "evil.git"
        place.mkdir()
        about = {
            "name": "evil",
            "version": "1.0.0",
            "scripts": {"prepare": f"touch {self.marker}"},
            "devDependencies": {"more": "git+https://127.0.0.1:1/more.git"},
        }
        (place / "package.json").write_text(json.dumps(about))
        (place / ".npmrc").write_text("git=./x.sh\n")
        program = place / "x.sh"
        program.write_text(f"#!/bin/sh\ntouch {self.marker}\n")
        program.chmod(0o755)
        author = ("-c", "user.name=x", "-c", "user.email=x@x.test")
        for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "x")):
            subprocess.run(["git", *words], cwd=place, check=True)
        return f"git+file://{place}"


@pytest.fixture(scope="module", autouse=True)
def images(base_image: str, docker_client: Client) -> None:
    """npm and pip in their images, from where this machine has its packages."""
    build_pip_image(docker_client, print)
    build_npm_image(docker_client, print)


@pytest.fixture(scope="module")
def docker_client(docker_engine: tuple[Client, str]) -> Client:
    return docker_engine[0]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with registry() as made:
        scene = Scene(tmp_path, made, tmp_path / "marker", tmp_path / "ran")
        shims = tmp_path / "bin"
        shims.mkdir()
        for name in CLIENTS:
            write_shim(shims / name, scene.ran)
        scene.git()
        monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield scene


def write_shim(path: Path, ran: Path) -> None:
    """A program that notes that it was started, and then is the real one."""
    path.write_text(
        f'#!/bin/sh\necho "{path.name} $*" >> {ran}\nPATH="${{PATH#*:}}" exec {path.name} "$@"\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def add(home: Home, name: str, *words: str, read: str = "get-echo") -> str:
    """What a person does who knows the PIN."""
    options = ("--pin-file", str(home.pin_file), "--read", read)
    done = home.run("add", name, *options, "--", *words)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def git_of(scene: Scene) -> str:
    return f"git+file://{scene.place}/evil.git"


def directory_of(scene: Scene) -> str:
    return f"file:{scene.place}/evil.git"


def archive_of(scene: Scene) -> str:
    scene.registry.files["/evil/archive.tgz"] = build_npm({"name": "evil", "version": "1.0.0"}, {})
    return f"{scene.registry.url}/evil/archive.tgz"


NPM: Mapping[str, tuple[str, Callable[[Scene], str]]] = {
    "git": ("dependencies", git_of),
    "git of an optional dependency": ("optionalDependencies", git_of),
    "git of a peer": ("peerDependencies", git_of),
    "github": ("dependencies", lambda scene: "github:nobody/evil"),
    "a short name of GitHub": ("dependencies", lambda scene: "nobody/evil"),
    "git over ssh": ("dependencies", lambda scene: "git+ssh://git@127.0.0.1/evil.git"),
    "a directory": ("dependencies", directory_of),
    "a link": ("dependencies", lambda scene: f"link:{scene.place}/evil.git"),
    "a URL of the registry": ("dependencies", archive_of),
    "a URL elsewhere": ("dependencies", lambda scene: "http://127.0.0.1:1/evil.tgz"),
    "an alias of git": ("dependencies", lambda scene: f"npm:evil@{git_of(scene)}"),
}


@pytest.mark.parametrize(
    ("kind", "nested"), [*((kind, False) for kind in NPM), ("git", True), ("a directory", True)]
)
def test_an_npm_dependency_outside_the_registry_is_never_asked_for(
    scene: Scene, kind: str, nested: bool
) -> None:
    field, wanted = NPM[kind]
    needs = {field: {"evil": wanted(scene)}}
    scene.registry.add_npm("inner", "1.0.0", {}, **needs)
    needed = {"dependencies": {"inner": "1.0.0"}} if nested else needs
    scene.registry.add_npm("outer", "1.0.0", {"main.js": ""}, bin="main.js", **needed)
    with pytest.raises(PackageUnusable, match=r"registry|Unsupported URL"):
        fetch_npm("outer", scene.tree)
    assert scene.nothing_ran()
    assert not [path for path in scene.registry.asked if "evil" in path]


@pytest.mark.parametrize("wanted", [git_of, archive_of])
def test_an_npm_package_that_locks_its_own_needs_elsewhere_is_refused(
    scene: Scene, wanted: Callable[[Scene], str]
) -> None:
    url = wanted(scene).replace(str(scene.registry.port), "1")
    inner = {"version": "1.0.0", "resolved": url}
    lock = {
        "name": "outer",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "outer", "version": "1.0.0", "dependencies": {"evil": "1.0.0"}},
            "node_modules/evil": inner,
        },
    }
    files = {"main.js": "", "npm-shrinkwrap.json": json.dumps(lock)}
    about = {"bin": "main.js", "dependencies": {"evil": "1.0.0"}, "_hasShrinkwrap": True}
    scene.registry.add_npm("outer", "1.0.0", files, **about)
    with pytest.raises(PackageUnusable, match="not in the registry: evil@"):
        fetch_npm("outer", scene.tree)
    assert scene.nothing_ran()


def test_an_npm_archive_of_a_person_is_held_to_the_same_rule(scene: Scene) -> None:
    about = {"name": "outer", "version": "1.0.0", "dependencies": {"evil": git_of(scene)}}
    mine = scene.place / "outer-1.0.0.tgz"
    mine.write_bytes(build_npm(about, {".npmrc": "git=./x.sh\nignore-scripts=false\n"}))
    with pytest.raises(PackageUnusable, match="evil@git"):
        fetch_npm(str(mine), scene.tree)
    assert scene.nothing_ran()


def test_npm_packages_with_ordinary_needs_are_fetched_and_run_nothing(scene: Scene) -> None:
    ran = f"touch {scene.marker}"
    scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), ran)
    scene.registry.add_npm("plain", "2.1.0", {"index.js": "", ".npmrc": "git=./x.sh\n"})
    scene.registry.add_npm("@scope/other", "1.0.0", {"a.js": "", "aux.js": ""}, scripts=scripts)
    scene.registry.add_npm(
        "outer",
        "1.2.3",
        {"main.js": "#!/usr/bin/env node\n"},
        bin="main.js",
        scripts=scripts,
        dependencies={"plain": "^2.0.0", "named": "npm:plain@2"},
        peerDependencies={"@scope/other": "*"},
        optionalDependencies={"absent": "1.0.0"},
        devDependencies={"evil": git_of(scene)},
    )
    fetched = fetch_npm("outer@1", scene.tree)
    assert {(each.name, each.version) for each in fetched.lock} == {
        *(("outer", "1.2.3"), ("plain", "2.1.0"), ("named", "2.1.0"), ("@scope/other", "1.0.0"))
    }
    assert (scene.tree / "node_modules/@scope/other/aux.js").is_file()
    assert fetched.command == ("node", "/opt/server/node_modules/outer/main.js")
    assert scene.nothing_ran()


PIP: Mapping[str, Callable[[Scene], str]] = {
    "a source archive here": lambda scene: f"evil @ file://{scene.place}/evil-1.0.tar.gz",
    "a source archive of the index": lambda scene: f"evil @ {scene.registry.url}/evil-1.0.tar.gz",
    "a wheel of the index": lambda scene: f"evil @ {scene.registry.url}/evil-1.0-py3-none-any.whl",
    "a directory": lambda scene: f"evil @ file://{scene.place}/source",
    "git": lambda scene: "evil @ git+http://127.0.0.1:1/evil.git",
    "git over ssh": lambda scene: "evil @ git+ssh://git@127.0.0.1/evil.git",
    "a URL elsewhere": lambda scene: "evil @ http://127.0.0.1:1/evil-1.0.tar.gz",
    "an extra": lambda scene: (
        f'evil[more] @ file://{scene.place}/evil-1.0.tar.gz ; python_version > "3"'
    ),
}


@pytest.mark.parametrize(
    ("kind", "nested"), [*((kind, False) for kind in PIP), ("a source archive here", True)]
)
def test_a_python_requirement_that_is_a_url_is_never_asked_for(
    scene: Scene, kind: str, nested: bool
) -> None:
    sdist = scene.sdist()
    (scene.place / "evil-1.0.tar.gz").write_bytes(sdist)
    scene.registry.files["/evil-1.0.tar.gz"] = sdist
    scene.registry.files["/evil-1.0-py3-none-any.whl"] = build_wheel("evil", "1.0", {})
    scene.registry.add_wheel("inner", "1.0", {"inner.py": ""}, PIP[kind](scene))
    needs = "inner[more]" if nested else PIP[kind](scene)
    scene.registry.add_wheel("outer", "1.0", {"outer.py": ""}, needs)
    with pytest.raises(PackageUnusable, match=r"not in the registry.*wants evil"):
        fetch_pypi(["outer"], scene.tree, module="outer")
    assert scene.nothing_ran()
    assert not [path for path in scene.registry.asked if "evil" in path]


def test_a_source_archive_of_the_index_is_never_built(scene: Scene) -> None:
    scene.registry.files["/files/evil-1.0.tar.gz"] = scene.sdist()
    page = '<html><body><a href="/files/evil-1.0.tar.gz">evil-1.0.tar.gz</a></body></html>'
    scene.registry.files["/simple/evil/"] = page.encode()
    with pytest.raises(PackageUnusable, match="No matching distribution"):
        fetch_pypi(["evil"], scene.tree, module="evil")
    assert scene.nothing_ran()


def test_python_packages_with_ordinary_needs_are_fetched(scene: Scene) -> None:
    files = {"inner.py": "", "inner.pth": f"import os; os.system('touch {scene.marker}')\n"}
    scene.registry.add_wheel("inner", "2.0", files)
    scene.registry.add_wheel("extra", "3.0", {"extra.py": ""})
    entry = "[console_scripts]\nouter = outer:main\n"
    needs = ("inner>=1", "extra ; extra == 'more'", "absent ; python_version < '3'")
    outer = {"outer.py": "def main(): pass\n", "ABOUT/entry_points.txt": entry}
    scene.registry.add_wheel("outer", "1.0", outer, *needs)
    fetched = fetch_pypi(["outer[more]"], scene.tree, script="outer")
    assert {(each.name, each.version) for each in fetched.lock} == {
        *(("outer", "1.0"), ("inner", "2.0"), ("extra", "3.0"))
    }
    assert {path.name for path in scene.tree.glob("*.p*")} == {"outer.py", "inner.py", "extra.py"}
    assert scene.nothing_ran()


def test_a_fetching_container_starts_no_process_whatever_pip_is_told(
    scene: Scene, docker_client: Client
) -> None:
    """Behind the refusal of URLs: the kernel refuses the build's process."""
    scene.registry.files["/evil-1.0.tar.gz"] = scene.sdist()
    arguments = ["--index-url", scene.registry.url, f"{scene.registry.url}/evil-1.0.tar.gz"]
    image = build_pip_image(docker_client, print)
    with pytest.raises(PackageUnusable, match="Operation not permitted"):
        run_fetch(docker_client, FetchJob(image, load_pypi(), {"arguments": arguments}), scene.tree)
    assert "/evil-1.0.tar.gz" in scene.registry.asked
    assert scene.nothing_ran()


def test_a_fetching_container_reaches_its_registry_alone(
    scene: Scene, docker_client: Client
) -> None:
    image = build_pip_image(docker_client, print)
    with registry() as other:
        other.files["/file"] = scene.registry.files["/file"] = b"content"
        for url in (f"{other.url}/file", "https://pypi.org/simple/", "http://169.254.169.254/"):
            job = FetchJob(image, load_pypi(), {"url": url})
            with pytest.raises(PackageUnusable, match="TOOLWRIGHT_REGISTRY_HOSTS"):
                run_fetch(docker_client, job, scene.tree)
        assert not other.asked
        job = FetchJob(image, load_pypi(), {"url": f"{scene.registry.url}/file"})
        run_fetch(docker_client, job, scene.tree)
        assert (scene.tree / "file").read_bytes() == b"content"


def test_no_secret_of_the_user_goes_to_a_registry(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = scene.place / "home"
    home.mkdir()
    (home / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    (home / ".npmrc").write_text(f"//127.0.0.1:{scene.registry.port}/:_authToken={SECRET}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIP_GLOBAL_OPTION", SECRET)
    monkeypatch.setenv("npm_config__auth", SECRET)
    scene.registry.add_wheel("outer", "1.0", {"outer.py": ""})
    scene.registry.add_npm("outer", "1.0.0", {"main.js": ""}, bin="main.js")
    fetch_pypi(["outer"], scene.tree, module="outer")
    assert fetch_npm("outer", scene.place).version == "1.0.0"
    assert scene.registry.heard
    assert not [value for value in scene.registry.heard if "asic" in value or SECRET in value]


def test_the_engine_s_client_gives_no_container_the_user_s_proxies(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`noProxy` would also lead a package client past its exit."""
    proxy = f"http://me:{SECRET}@127.0.0.1:1"
    named = {"httpProxy": proxy, "httpsProxy": proxy, "ftpProxy": proxy, "noProxy": f"*,{SECRET}"}
    (scene.place / "config.json").write_text(json.dumps({"proxies": {"default": named}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(scene.place))

    async def read_environment() -> set[str]:
        async with opened_cage() as cage, cage.server(BENIGN) as server:
            await server.initialize()
            return {(await server.call("get_environment", {"name": n})).text for n in PROXIES}

    assert asyncio.run(read_environment()) == {"[unset]"}
    scene.registry.add_wheel("outer", "1.0", {"outer.py": ""})
    assert fetch_pypi(["outer"], scene.tree, module="outer").version == "1.0"


ENTRY = "[console_scripts]\ntiny = tiny:main\n"
MAIN = BENIGN.replace("\nserve()\n", "\ndef main():\n    serve()\n")
PYTHON = {"tiny.py": f"import inner\n{MAIN}", "ABOUT/entry_points.txt": ENTRY}
NODE = {"main.js": f'require("plain");\n{JAVASCRIPT}'}


def test_a_package_with_needs_elsewhere_is_not_added(scene: Scene) -> None:
    needs = {"plain": "^2.0.0", "evil": git_of(scene)}
    scene.registry.add_npm("plain", "2.1.0", {"index.js": ""})
    scene.registry.add_npm("evil-tiny", "1.0.0", NODE, bin="main.js", dependencies=needs)
    scene.registry.add_wheel("evil_tiny", "1.0", PYTHON, PIP["a source archive here"](scene))
    (scene.place / "evil-1.0.tar.gz").write_bytes(scene.sdist())
    with new_home(scene.place, "docker") as home:
        for name, *words in (("one", "uvx", "evil-tiny"), ("two", "npx", "-y", "evil-tiny")):
            done = home.run("add", name, "--pin-file", str(home.pin_file), "--", *words)
            assert done.returncode == 1
            assert "it needs what is not in the registry" in done.stderr
        assert home.containers() == 0
    assert scene.nothing_ran()


def test_packages_with_ordinary_needs_are_added_and_answer(scene: Scene) -> None:
    scene.registry.add_wheel("inner", "2.0", {"inner.py": ""})
    scene.registry.add_wheel("tiny", "1.0", PYTHON, "inner")
    scene.registry.add_npm("plain", "2.1.0", {"index.js": ""})
    needs = {"plain": "^2.0.0"}
    scene.registry.add_npm("tiny", "1.0.0", NODE, bin="main.js", dependencies=needs)
    with new_home(scene.place, "docker") as home:
        told = add(home, "three", "uvx", "tiny")
        assert "fetching it by pip, in a container" in told
        add(home, "four", "npx", "-y", "tiny", read="get_sum")
        with Peer(home, "serve") as peer:
            asked = {"tool": "three.get_echo", "arguments": {"text": "hi"}}
            assert text(peer.call("call_read", **asked)) == "hi"
            added = {"tool": "four.get_sum", "arguments": {"a": 2, "b": 40}}
            assert text(peer.call("call_read", **added)) == "42"
    assert scene.nothing_ran()


@pytest.mark.parametrize("words", [("uvx", "outer"), ("npx", "-y", "outer")])
def test_without_docker_no_package_is_fetched(scene: Scene, words: tuple[str, ...]) -> None:
    scene.registry.add_wheel("outer", "1.0", {"outer.py": ""})
    scene.registry.add_npm("outer", "1.0.0", {"main.js": ""}, bin="main.js")
    with new_home(scene.place, "docker") as home:
        gone = {**home.environment, "DOCKER_HOST": f"unix://{scene.place}/nobody"}
        for engine, told in (("docker", "no container engine answers"), ("wasm", "Install Docker")):
            without = replace(home, environment={**gone, "TOOLWRIGHT_ENGINE": engine})
            done = without.run("add", "x", "--pin-file", str(home.pin_file), "--", *words)
            assert done.returncode == 1
            assert told in done.stderr
    assert scene.nothing_ran()
    assert not scene.registry.asked


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("words", [("uvx", "outer"), ("npx", "-y", "outer")])
def test_an_interrupted_addition_ends_and_leaves_no_container(
    scene: Scene, words: tuple[str, ...]
) -> None:
    scene.registry.open.clear()
    with new_home(scene.place, "docker") as home:
        pin = ("--pin-file", str(home.pin_file))
        with home.start("add", "x", *pin, "--", *words) as process:
            try:
                until(
                    lambda: scene.registry.asked or process.poll() is not None,
                    "the registry is asked",
                )
                assert home.containers() > 0
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS) == 130
            finally:
                # None that does not end stays behind, to be found in another test.
                process.kill()
        assert home.containers() == 0
    assert scene.nothing_ran()
