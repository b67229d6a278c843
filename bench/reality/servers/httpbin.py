"""httpbin: Swagger 2.0 with another host and scheme, and operations that say little of what they
take; JSON lines, bytes, pictures, compression, redirects, bearer and basic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.reality.model import Judge, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("httpbin[mainapp]==0.10.4", "gunicorn==27.0.1")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "gunicorn", "-b", f"127.0.0.1:{port}", "httpbin:app"]
    with running(command, f"{url}/get", directory):
        yield Running(url, directory, f"{url}/spec.json")


def _lines(seen: Seen) -> None:
    whole = [json.dumps(seen.body), seen.answer.text]
    for at in range(3):
        says = any(
            f'"id": {at}' in text or f'"id":{at}' in text or f'\\"id\\": {at}' in text
            for text in whole
        )
        seen.expect(f"line {at} came", True, says)


def _slides(seen: Seen) -> None:
    seen.expect("body", seen.get("/json"), seen.body)


def _picture(path: str, media_type: str) -> Judge:
    def judge(seen: Seen) -> None:
        content = seen.direct.get(path, headers={"Accept": media_type}).content
        seen.expect("the picture is in a block", True, content in seen.answer.data)

    return judge


def _xml(seen: Seen) -> None:
    seen.expect("the document", True, "<slideshow" in seen.answer.text + str(seen.body))


def _unicode(seen: Seen) -> None:
    for words in ("∮ E⋅da = Q", "Зарегистрируйтесь", "კონფერენციაზე"):
        seen.expect(words, True, words in seen.answer.text + str(seen.body))


def _decoded(seen: Seen) -> None:
    seen.expect("text", True, "żaglówka" in seen.answer.text + str(seen.body))


def _reached(path: str) -> Judge:
    """The answer says which URL was asked."""
    return lambda seen: seen.expect("path", path, urlsplit(seen.body["url"]).path)


def _bytes(seen: Seen) -> None:
    content = seen.direct.get("/range/64").content
    came = [*seen.answer.data, seen.answer.text.encode(), str(seen.body).encode()]
    seen.expect("64 letters", True, any(content in data for data in came))


def _compressed(key: str) -> Judge:
    return lambda seen: seen.expect(key, True, seen.body[key])


def _status(seen: Seen) -> None:
    seen.expect("the status is told", True, "418" in seen.answer.text)


SERVER = RealServer(
    name="httpbin",
    kind="Swagger 2.0 served, of another host and scheme; JSON lines, bytes, pictures, redirects",
    task="echo and try requests",
    start=_start,
    sources=("{host}", "{host} --base-url {url}"),
    scenarios=(
        Scenario("JSON lines come whole", "GET /stream/{n}", {"n": 3}, _lines),
        Scenario("JSON", "GET /json", {}, _slides, through_serve=True),
        Scenario("a PNG", "GET /image/png", {}, _picture("/image/png", "image/png")),
        Scenario("a JPEG", "GET /image/jpeg", {}, _picture("/image/jpeg", "image/jpeg")),
        Scenario("XML", "GET /xml", {}, _xml),
        Scenario("a page of unicode", "GET /encoding/utf8", {}, _unicode),
        Scenario(
            "base64 in a path",
            "GET /base64/{value}",
            {"value": "xbxhZ2zDs3drYQ=="},
            _decoded,
        ),
        Scenario("a POST that documents no body", "POST /post", {}, _reached("/post")),
        Scenario("a PATCH", "PATCH /patch", {}, _reached("/patch"), through_serve=True),
        Scenario("a range of bytes", "GET /range/{numbytes}", {"numbytes": 64}, _bytes),
        Scenario("gzip", "GET /gzip", {}, _compressed("gzipped")),
        Scenario("deflate", "GET /deflate", {}, _compressed("deflated")),
        Scenario(
            "a status that is an error",
            "GET /status/{codes}",
            {"codes": "418"},
            _status,
            refused=True,
        ),
        Scenario("two redirects", "GET /redirect/{n}", {"n": 2}, _reached("/get")),
        Scenario("a cached answer", "GET /cache/{value}", {"value": 60}, _reached("/cache/60")),
        Scenario("a late answer", "GET /delay/{delay}", {"delay": 2}, _reached("/delay/2")),
    ),
)
