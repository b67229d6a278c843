"""Servers out of packages: fetched by npm and pip without running anything, and run in the cage."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.cage import opened_cage
from sandbox.engines.docker.engine import Client
from sandbox.engines.docker.layers import FetchedProgram, build_python_layer, remove_layer
from sandbox.errors import BaseImageBuildFailed, PackageUnusable
from sandbox.packages.fetch import fetch_npm, fetch_pypi
from sandbox.packages.layers import build_node_layer
from tests.engine.foreign import BENIGN
from tests.sandbox.upstreams import HOST, outside, to_this_machine

pytestmark = pytest.mark.docker

JAVASCRIPT = r"""
const readline = require("node:readline");
const https = require("node:https");
const tools = ["get_page", "get_sum"].map((name) => ({ name, inputSchema: { type: "object" } }));
function send(id, result) { console.log(JSON.stringify({ jsonrpc: "2.0", id, result })); }
function text(id, value) { send(id, { content: [{ type: "text", text: String(value) }] }); }
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    send(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} },
               serverInfo: { name: "js", version: process.version } });
  } else if (method === "tools/list") send(id, { tools });
  else if (method === "tools/call" && params.name === "get_sum") {
    text(id, params.arguments.a + params.arguments.b);
  } else if (method === "tools/call") {
    const { url, ca } = params.arguments;
    https.get(url, { ca, timeout: 60000, agent: new https.Agent() }, (answer) => {
      answer.setEncoding("utf8");
      answer.on("data", (part) => text(id, part));
    }).on("error", (error) => text(id, error.code));
  }
});
"""
STRAY = "require('fs').writeFileSync(process.env.INIT_CWD + '/install-script-ran', 'x')"


def npm_package(place: Path, **more: object) -> Path:
    """A tarball as `npm pack` makes it."""
    about = {
        "name": "tiny-server",
        "version": "1.2.3",
        "bin": {"tiny-server": "./main.js"},
        "scripts": {"preinstall": f'node -e "{STRAY}"', "postinstall": f'node -e "{STRAY}"'},
        **more,
    }
    path = place / "tiny-server-1.2.3.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("package.json", json.dumps(about)), ("main.js", JAVASCRIPT)):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return path


def wheel(place: Path) -> Path:
    """A wheel with a console script (PEP 427)."""
    path = place / "tiny_server-1.2.3-py3-none-any.whl"
    about = "tiny_server-1.2.3.dist-info"
    code = BENIGN.replace("\nserve()\n", "\ndef main():\n    serve()\n")
    files = {
        "tiny_server/__init__.py": "",
        "tiny_server/cli.py": code,
        "tiny_server/__main__.py": "from tiny_server.cli import main\nmain()\n",
        "tiny_server/broken.py": "print 'an older Python'\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.2.3\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server.cli:main\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tree(place: Path) -> Path:
    path = place / "tree"
    path.mkdir()
    return path


def test_a_server_from_npm_runs_and_its_node_knows_no_proxy(
    docker_engine: tuple[Client, str], tmp_path: Path
) -> None:
    client, _ = docker_engine
    place = tree(tmp_path)
    try:
        fetched = fetch_npm(str(npm_package(tmp_path)), place)
        image = build_node_layer(client, "tiny", fetched, place, print)
    except (PackageUnusable, BaseImageBuildFailed) as reason:
        pytest.skip(f"Node: {reason}")
    assert not list(tmp_path.rglob("install-script-ran"))
    assert [(p.name, p.version) for p in fetched.lock] == [("tiny-server", "1.2.3")]
    assert fetched.lock[0].digest.startswith("sha512-")

    async def work() -> None:
        async with opened_cage() as cage, outside() as api:
            target = f"{HOST}:{api.port}"
            async with cage.server(
                image=image,
                entrypoint=fetched.command[:1],
                command=fetched.command[1:],
                permissions=[f"network:{target}"],
                private=target,
                resolve=to_this_machine,
            ) as server:
                await server.initialize()
                assert (await server.call("get_sum", {"a": 2, "b": 40})).text == "42"
                page = {"url": f"https://{target}/", "ca": api.certificate}
                assert (await server.call("get_page", page)).text == "hello"
                other = {"url": "https://evil.test/", "ca": api.certificate}
                assert (await server.call("get_page", other)).text in ("EAI_AGAIN", "ENOTFOUND")

    try:
        asyncio.run(work())
    finally:
        remove_layer(client, image)


def test_a_server_from_pypi_runs_by_its_script_and_as_a_module(
    docker_engine: tuple[Client, str], tmp_path: Path
) -> None:
    client, _ = docker_engine
    place, made = tree(tmp_path), [str(wheel(tmp_path))]
    fetched = fetch_pypi(made, place, script="tiny-server")
    assert [(p.name, p.version) for p in fetched.lock] == [("tiny-server", "1.2.3")]
    assert fetched.lock[0].digest.startswith("sha256:")
    image = build_python_layer(client, "tiny", fetched, place, print)

    async def work() -> None:
        async with opened_cage() as cage:
            for command in (fetched.command, ("python3", "-P", "-m", "tiny_server")):
                async with cage.server(
                    image=image, entrypoint=command[:1], command=command[1:]
                ) as server:
                    await server.initialize()
                    assert (await server.call("get-echo", {"text": "hi"})).text == "hi"

    try:
        asyncio.run(work())
    finally:
        remove_layer(client, image)


def from_npm(place: Path, **about: object) -> FetchedProgram:
    return fetch_npm(str(npm_package(place, **about)), tree(place))


@pytest.mark.parametrize(
    ("fetch", "told"),
    [
        (lambda p: fetch_npm("../evil", p), "no npm package"),
        (lambda p: fetch_npm("--global", p), "no npm package"),
        (lambda p: fetch_npm("git+ssh://host/x", p), "no npm package"),
        (lambda p: fetch_npm("github:someone/thing", p), "no npm package"),
        (lambda p: from_npm(p, bin={"tiny-server": "../../../etc/passwd"}), "no file"),
        (lambda p: from_npm(p, bin={}), "no program"),
        (lambda p: from_npm(p, bin={"a": "./main.js", "b": "./main.js"}), "Name one"),
    ],
)
def test_what_cannot_be_fetched_safely_is_refused(
    fetch: Callable[[Path], FetchedProgram], told: str, tmp_path: Path
) -> None:
    with pytest.raises(PackageUnusable, match=told):
        fetch(tmp_path)


@pytest.mark.parametrize(
    "spec", ["-r x", "x @ file:///etc", "git+https://host/x", "./here", "/x.whl"]
)
def test_a_pypi_spec_is_a_name_or_a_wheel(tmp_path: Path, spec: str) -> None:
    with pytest.raises(PackageUnusable, match="no PyPI package"):
        fetch_pypi([spec], tmp_path, script="x")
