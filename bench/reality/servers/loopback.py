"""LoopBack's example of file transfer: OpenAPI 3.0, served; uploads, downloads, unicode names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.reality.calling import FilePart
from bench.reality.model import Arguments, Judge, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_npm
from bench.reality.processes import free_port, running

_PACKAGE = "@loopback/example-file-transfer"
_LETTER = b"line one\nline two, \xc3\xa9\xe2\x9b\xb5\n"
_PIXELS = bytes(range(256)) * 40
_PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99"
    b"=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    modules = install_npm(f"{_PACKAGE}@1.7.0")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (directory / "files").mkdir()
    settings = {
        "rest": {"host": "127.0.0.1", "port": port},
        "fileStorageDirectory": str(directory / "files"),
    }
    main = f"require({json.dumps(str(modules / _PACKAGE))}).main({json.dumps(settings)})"
    with running(["node", "-e", main], f"{url}/openapi.json", directory):
        yield Running(url, directory, f"{url}/openapi.json")


def _stored(name: str, content: bytes, content_type: str) -> Judge:
    def judge(seen: Seen) -> None:
        sent = seen.body["files"][0]
        seen.expect("name, type", [name, content_type], [sent["originalname"], sent["mimetype"]])
        seen.expect("size", len(content), sent["size"])
        kept = (seen.directory / "files" / name).read_bytes()
        seen.expect("the first bytes", content.hex()[:80], kept.hex()[:80])
        seen.expect("all bytes", True, kept == content)

    return judge


def _lists_all(seen: Seen) -> None:
    seen.expect("names", sorted(seen.get("/files")), sorted(seen.body))
    seen.expect("the letter is there", True, "letter.txt" in seen.body)


def _text_came(seen: Seen) -> None:
    came = [*seen.answer.data, seen.answer.text.encode(), str(seen.body).encode()]
    seen.expect("the letter", True, any(_LETTER.strip() in data for data in came))


def _bytes_came(content: bytes) -> Judge:
    def judge(seen: Seen) -> None:
        seen.expect("the bytes are in a block", True, content in seen.answer.data)

    return judge


def _put(name: str, content: bytes) -> Callable[[httpx.Client], Arguments]:
    def prepare(direct: httpx.Client) -> Arguments:
        direct.post("/files", files={"file": (name, content)}).raise_for_status()
        return {"filename": name}

    return prepare


def _escapes(seen: Seen) -> None:
    seen.expect("nothing of another file", False, "root:" in seen.answer.text)


def _upload_scenario(name: str, content: bytes, content_type: str, **options: bool) -> Scenario:
    return Scenario(
        f"{name} is uploaded with its name, type and bytes",
        "POST /files",
        {"body": {"file": FilePart(name, content, content_type)}},
        _stored(name, content, content_type),
        **options,
    )


SERVER = RealServer(
    name="loopback",
    kind="OpenAPI 3.0 served, LoopBack; uploads, downloads, names",
    task="upload and download files",
    start=_start,
    scenarios=(
        _upload_scenario("letter.txt", _LETTER, "text/plain"),
        _upload_scenario("pixels.bin", _PIXELS, "application/octet-stream"),
        _upload_scenario("dot.png", _PNG, "image/png", through_serve=True),
        _upload_scenario("with blank.csv", b"a,b\r\n1,2\r\n", "text/csv"),
        Scenario("all files are listed", "GET /files", {}, _lists_all),
        Scenario(
            "a text is downloaded", "GET /files/{filename}", {"filename": "letter.txt"}, _text_came
        ),
        Scenario(
            "bytes are downloaded as they are, through serve",
            "GET /files/{filename}",
            _put("raw.bin", _PIXELS),
            _bytes_came(_PIXELS),
            through_serve=True,
        ),
        Scenario(
            "a picture is downloaded as it is",
            "GET /files/{filename}",
            _put("direct.png", _PNG),
            _bytes_came(_PNG),
        ),
        Scenario(
            "a path in a file's name leads nowhere else",
            "GET /files/{filename}",
            {"filename": "../../../../etc/passwd"},
            _escapes,
            refused=True,
        ),
        Scenario(
            "a file that is not there is an error",
            "GET /files/{filename}",
            {"filename": "nowhere.txt"},
            lambda seen: None,
            refused=True,
        ),
    ),
)
