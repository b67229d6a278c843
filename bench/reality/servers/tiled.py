"""Tiled, a server of scientific data: OpenAPI 3.1 of FastAPI, served; an apiKey that is a header
with a word before it, paths in a path, a field called as a header is, filters named with brackets,
merge-patch, revisions, deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_KEY = "Apikey sekret"
_API = "/api/v1"
_NAME = "fæhre ⛴"


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("tiled[server]==0.2.20")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    begin = "from tiled.commandline.main import main; main()"
    words = ["serve", "catalog", "--temp", "--host", "127.0.0.1", "--port", str(port)]
    environment = {"TILED_SINGLE_USER_API_KEY": "sekret", "HOME": str(directory)}
    with running([str(python), "-c", begin, *words], f"{url}/healthz", directory, environment):
        with httpx.Client(base_url=url, headers={"Authorization": _KEY}, timeout=120.0) as direct:
            _make(direct, "", "harbour")
            for number, colour in enumerate(("blue", "red", "blue")):
                _make(direct, "harbour", f"boat{number}", colour=colour, length=number + 7)
        yield Running(url, directory, f"{url}/openapi.json")


def _make(direct: httpx.Client, parent: str, name: str, **metadata: Any) -> None:
    body = {"structure_family": "container", "data_sources": [], "metadata": metadata, "id": name}
    direct.post(f"{_API}/metadata/{parent}", json=body).raise_for_status()


def _prepared(name: str, **more: Any) -> Callable[[httpx.Client], Arguments]:
    """Arguments of an operation on a node that is made for it."""

    def prepare(direct: httpx.Client) -> Arguments:
        _make(direct, "harbour", name, k=1)
        return {"path": f"harbour/{name}", **more}

    return prepare


def _metadata(seen: Seen, path: str) -> Any:
    return seen.get(f"{_API}/metadata/{path}")["data"]["attributes"]["metadata"]


def _ids(*expected: str) -> Callable[[Seen], None]:
    return lambda seen: seen.expect(
        "nodes", list(expected), [node["id"] for node in seen.body["data"]]
    )


def _about(seen: Seen) -> None:
    seen.expect("version", seen.get(f"{_API}/")["library_version"], seen.body["library_version"])


def _is_made(seen: Seen) -> None:
    seen.expect_success()
    seen.expect("metadata", {"größe": [1, None]}, _metadata(seen, f"harbour/{_NAME}"))


def _is_read(seen: Seen) -> None:
    seen.expect("metadata", {"k": 1}, seen.body["data"]["attributes"]["metadata"])


def _is_patched(seen: Seen) -> None:
    seen.expect_success()
    seen.expect("metadata", {"k": 1, "n": 2}, _metadata(seen, "harbour/patched"))


def _is_replaced(seen: Seen) -> None:
    seen.expect_success()
    seen.expect("metadata", {"only": "this"}, _metadata(seen, "harbour/replaced"))


def _has_revision(seen: Seen) -> None:
    seen.expect("revisions", 1, len(seen.body["data"]))


def _revised(direct: httpx.Client) -> Arguments:
    _make(direct, "harbour", "revised", k=1)
    url = f"{_API}/metadata/harbour/revised"
    direct.put(url, json={"metadata": {"k": 2}, "specs": []}).raise_for_status()
    return {"path": "harbour/revised"}


def _counts(seen: Seen) -> None:
    found = {each["value"]: each["count"] for each in seen.body["metadata"]["colour"]}
    expected = {name: found.get(name) for name in ("blue", "red")}
    seen.expect("counts", {"blue": 2, "red": 1}, expected)


def _is_gone(seen: Seen) -> None:
    seen.expect("status", 404, seen.direct.get(f"{_API}/metadata/harbour/gone").status_code)


_SEARCH = f"GET {_API}/search/{{path}}"
_METADATA = f"{_API}/metadata/{{path}}"
SERVER = RealServer(
    name="tiled",
    kind="OpenAPI 3.1 of FastAPI; a key with a word before it, paths in a path, bracketed filters",
    task="search and describe data sets",
    start=_start,
    secrets={"Apikey": _KEY},
    headers={"Authorization": _KEY},
    scenarios=(
        Scenario("about", f"GET {_API}/", {}, _about),
        Scenario(
            "a node is made",
            f"POST {_METADATA}",
            {
                "path": "harbour",
                "body": {
                    "structure_family": "container",
                    "metadata": {"größe": [1, None]},
                    "id": _NAME,
                },
            },
            _is_made,
        ),
        Scenario("a path in a path", f"GET {_METADATA}", _prepared("näh"), _is_read, True),
        Scenario(
            "a filter",
            _SEARCH,
            {
                "path": "harbour",
                "filter[eq][condition][key]": ["colour"],
                "filter[eq][condition][value]": ['"blue"'],
            },
            _ids("boat0", "boat2"),
        ),
        Scenario(
            "a full text",
            _SEARCH,
            {"path": "harbour", "filter[fulltext][condition][text]": ["red"]},
            _ids("boat1"),
            True,
        ),
        Scenario(
            "a page",
            _SEARCH,
            {"path": "harbour", "page[offset]": 1, "page[limit]": 1},
            _ids("boat1"),
        ),
        Scenario(
            "a patch with a field that is called as a header is",
            f"PATCH {_METADATA}",
            _prepared(
                "patched",
                body={
                    "content-type": "application/merge-patch+json",
                    "metadata": {"n": 2},
                    "specs": None,
                },
            ),
            _is_patched,
        ),
        Scenario(
            "a node is replaced",
            f"PUT {_METADATA}",
            _prepared("replaced", body={"metadata": {"only": "this"}}),
            _is_replaced,
            True,
        ),
        Scenario("revisions", f"GET {_API}/revisions/{{path}}", _revised, _has_revision),
        Scenario(
            "counts of values",
            f"GET {_API}/distinct/{{path}}",
            {"path": "harbour", "metadata": ["colour"], "counts": True},
            _counts,
        ),
        Scenario("a node is deleted", f"DELETE {_METADATA}", _prepared("gone"), _is_gone),
        Scenario(
            "a node that is not there is an error",
            f"GET {_METADATA}",
            {"path": "harbour/nowhere"},
            lambda seen: None,
            refused=True,
        ),
    ),
)
