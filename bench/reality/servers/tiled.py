"""Tiled, a data service: OpenAPI 3.1 served; an API key as one of four alternatives, a path in a
path, merge-patch in an envelope, revisions, filters, arrays as CSV, JSON and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_KEY = "5ec2e7c0ffee"
_HEADERS = {"Authorization": f"Apikey {_KEY}"}
_NODES = "/api/v1/metadata"
_NODE = "/api/v1/metadata/{path}"
_FULL = "/api/v1/array/full/box/numbers"
_NUMBERS = b"".join(number.to_bytes(8, "little") for number in (7, 8, 9))


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("tiled[server]==0.2.20")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "tiled.commandline.main", "serve", "catalog", "--temp"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {"TILED_SINGLE_USER_API_KEY": _KEY}
    with running(command, f"{url}/openapi.json", directory, environment):
        with httpx.Client(base_url=url, headers=_HEADERS, trust_env=False, timeout=60.0) as direct:
            _fill(direct)
        yield Running(url, directory, f"{url}/openapi.json")


def _container(node: str, **metadata: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"data_sources": [], "specs": []}
    return {"id": node, "structure_family": "container", "metadata": metadata, **empty}


def _fill(direct: httpx.Client) -> None:
    structure = {
        "data_type": {"endianness": "little", "kind": "i", "itemsize": 8},
        "chunks": [[3]],
        "shape": [3],
        "dims": None,
        "resizable": False,
    }
    array = {"structure_family": "array", "structure": structure, "management": "writable"}
    numbers = {
        "id": "numbers",
        "structure_family": "array",
        "metadata": {},
        "data_sources": [array],
        "specs": [],
    }
    direct.post(f"{_NODES}/", json=_container("box", name="Kiste")).raise_for_status()
    for node in (numbers, _container("second", name="zwei"), _container("third", name="drei")):
        direct.post(f"{_NODES}/box", json=node).raise_for_status()
    binary = {"Content-Type": "application/octet-stream"}
    direct.put(_FULL, content=_NUMBERS, headers=binary).raise_for_status()


def _metadata(seen: Seen, name: str) -> Any:
    return seen.get(f"{_NODES}/box/{name}")["data"]["attributes"]["metadata"]


def _created(seen: Seen) -> None:
    seen.expect("metadata", {"name": "Żółw ⛵"}, _metadata(seen, "inner"))


def _read(seen: Seen) -> None:
    seen.expect("metadata", {"name": "Żółw ⛵"}, seen.body["data"]["attributes"]["metadata"])


def _patched(seen: Seen) -> None:
    seen.expect("metadata", {"name": "zwei", "weight": 3}, _metadata(seen, "second"))


def _replaced(seen: Seen) -> None:
    seen.expect("metadata", {"name": "neu"}, _metadata(seen, "third"))


def _revised(seen: Seen) -> None:
    names = [row["attributes"]["metadata"]["name"] for row in seen.body["data"]]
    seen.expect("names", ["drei"], names)


def _page(seen: Seen) -> None:
    seen.expect("nodes", ["second"], [node["id"] for node in seen.body["data"]])


def _filtered(seen: Seen) -> None:
    seen.expect("nodes", ["third"], [node["id"] for node in seen.body["data"]])


def _csv(seen: Seen) -> None:
    seen.expect("numbers", ["7", "8", "9"], (seen.answer.text or str(seen.body)).split()[-3:])


def _json(seen: Seen) -> None:
    seen.expect("numbers", [7, 8, 9], seen.body)


def _bytes(seen: Seen) -> None:
    seen.expect("the bytes are in a block", True, _NUMBERS in seen.answer.data)


def _deleted(seen: Seen) -> None:
    seen.expect("status", 404, seen.direct.get(f"{_NODES}/box/inner").status_code)


def _patch(direct: httpx.Client) -> Arguments:
    merge = {"content-type": "application/merge-patch+json", "metadata": {"weight": 3}}
    return {"path": "box/second", "body": {**merge, "specs": None}}


SERVER = RealServer(
    name="tiled",
    kind="OpenAPI 3.1 served; apiKey as one of four, merge-patch, pages, arrays as CSV and bytes",
    task="read and change nodes of data",
    start=_start,
    secrets={"APIKeyQuery": _KEY},
    headers=_HEADERS,
    scenarios=(
        Scenario(
            "a node is made",
            f"POST {_NODE}",
            {"path": "box", "body": _container("inner", name="Żółw ⛵")},
            _created,
        ),
        Scenario("a node at a path", f"GET {_NODE}", {"path": "box/inner"}, _read, True),
        Scenario("a merge-patch", f"PATCH {_NODE}", _patch, _patched),
        Scenario(
            "metadata is replaced",
            f"PUT {_NODE}",
            {"path": "box/third", "body": {"metadata": {"name": "neu"}}},
            _replaced,
            through_serve=True,
        ),
        Scenario(
            "its earlier revision", "GET /api/v1/revisions/{path}", {"path": "box/third"}, _revised
        ),
        Scenario(
            "a page of one",
            "GET /api/v1/search/{path}",
            {"path": "box", "page[limit]": 1, "page[offset]": 1},
            _page,
        ),
        Scenario(
            "a filter",
            "GET /api/v1/search/{path}",
            {"path": "box", "filter[fulltext][condition][text]": ["neu"]},
            _filtered,
        ),
        Scenario(
            "an export as CSV",
            "GET /api/v1/array/full/{path}",
            {"path": "box/numbers", "format": "text/csv"},
            _csv,
        ),
        Scenario(
            "an export as JSON",
            "GET /api/v1/array/full/{path}",
            {"path": "box/numbers", "format": "application/json"},
            _json,
        ),
        Scenario(
            "an export as bytes",
            "GET /api/v1/array/full/{path}",
            {"path": "box/numbers", "format": "application/octet-stream"},
            _bytes,
            through_serve=True,
        ),
        Scenario("a node is deleted", f"DELETE {_NODE}", {"path": "box/inner"}, _deleted),
    ),
)
