"""Jupyter Server: Swagger 2.0 that names no credential, behind a log-in; `Authorization: token …`,
files of any name made, renamed, read and deleted, paths in a path.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.reality.model import Arguments, Judge, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_CONTENTS = "/api/contents/{path}"
_TOKEN = "e2b1c0ffee"
_HEADERS = {"Authorization": f"token {_TOKEN}"}
_BYTES = bytes(range(256))


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("jupyter-server==2.21.1")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    root = directory / "root"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "first.txt").write_text("first\n")
    (root / "Żaglówka ⛵.txt").write_text("unicode\n")
    command = [str(python), "-m", "jupyter_server", "--allow-root", "--no-browser"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    command += [f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={root}"]
    home = {"JUPYTER_CONFIG_DIR": str(directory), "JUPYTER_DATA_DIR": str(directory)}
    home |= {"JUPYTER_RUNTIME_DIR": str(directory)}
    shipped = list(python.parents[1].glob("lib/python*/site-packages/jupyter_server"))
    described = shipped[0] / "services/api/api.yaml"
    with running(command, f"{url}/api/status", directory, home, _HEADERS):
        yield Running(url, directory, str(described))


def _file(directory: Path, name: str) -> str:
    file = directory / "root" / name
    return file.read_text() if file.exists() else "(not there)"


def _save(name: str, content: str, form: str = "text") -> Arguments:
    return {"path": name, "body": {"type": "file", "format": form, "content": content}}


def _to_delete(direct: httpx.Client) -> Arguments:
    body = {"type": "file", "format": "text", "content": "x"}
    direct.put("/api/contents/old.txt", json=body).raise_for_status()
    return {"path": "old.txt"}


def _status_told(seen: Seen) -> None:
    seen.expect("kernels", 0, seen.body["kernels"])


def _read(name: str, content: str) -> Judge:
    def judge(seen: Seen) -> None:
        seen.expect("name", name, seen.body["name"])
        seen.expect("content", content, seen.body["content"])

    return judge


def _listed(seen: Seen) -> None:
    names = sorted(row["name"] for row in seen.body["content"])
    seen.expect("names", ["first.txt"], names)


def _saved(name: str, content: str) -> Judge:
    return lambda seen: seen.expect("content", content, _file(seen.directory, name))


def _bytes_saved(seen: Seen) -> None:
    kept = (seen.directory / "root" / "bytes.bin").read_bytes()
    seen.expect("bytes", _BYTES.hex(), kept.hex())


def _renamed(seen: Seen) -> None:
    seen.expect("new", "second\n", _file(seen.directory, "notes/renamed.txt"))
    seen.expect("old", "(not there)", _file(seen.directory, "second.txt"))


def _deleted(seen: Seen) -> None:
    seen.expect("old", "(not there)", _file(seen.directory, "old.txt"))


def _version(seen: Seen) -> None:
    seen.expect("version", "2.21.1", seen.body["version"])


def _made(seen: Seen) -> None:
    seen.expect("there", True, (seen.directory / "root" / seen.body["path"]).exists())


SERVER = RealServer(
    name="jupyter",
    kind="Swagger 2.0 shipped, no credential named, a form log-in in front; files, unicode names",
    task="read and write files",
    start=_start,
    sources=("{host}", "{description} --base-url {url}"),
    options=("--auth", "header:Authorization=@token"),
    secrets={"token": f"token {_TOKEN}"},
    headers=_HEADERS,
    scenarios=(
        Scenario("the version", "GET /api/", {}, _version),
        Scenario("the status", "GET /api/status", {}, _status_told, through_serve=True),
        Scenario(
            "a file in a directory",
            f"GET {_CONTENTS}",
            {"path": "notes/first.txt"},
            _read("first.txt", "first\n"),
        ),
        Scenario("a directory", f"GET {_CONTENTS}", {"path": "notes"}, _listed),
        Scenario(
            "a file with a unicode name",
            f"GET {_CONTENTS}",
            {"path": "Żaglówka ⛵.txt"},
            _read("Żaglówka ⛵.txt", "unicode\n"),
            through_serve=True,
        ),
        Scenario(
            "a file is saved",
            f"PUT {_CONTENTS}",
            _save("second.txt", "second\n"),
            _saved("second.txt", "second\n"),
        ),
        Scenario(
            "a file is renamed into a directory",
            f"PATCH {_CONTENTS}",
            {"path": "second.txt", "body": {"path": "notes/renamed.txt"}},
            _renamed,
        ),
        Scenario(
            "bytes are saved",
            f"PUT {_CONTENTS}",
            _save("bytes.bin", base64.b64encode(_BYTES).decode(), "base64"),
            _bytes_saved,
            through_serve=True,
        ),
        Scenario(
            "an untitled file is made",
            f"POST {_CONTENTS}",
            {"path": "notes", "body": {"type": "file", "ext": ".md"}},
            _made,
        ),
        Scenario("a file is deleted", f"DELETE {_CONTENTS}", _to_delete, _deleted),
        Scenario(
            "what is not there is an error with the API's words",
            f"GET {_CONTENTS}",
            {"path": "nowhere.txt"},
            lambda seen: seen.expect("words", True, "404" in seen.answer.text),
            refused=True,
        ),
    ),
)
