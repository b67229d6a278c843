"""pygeoapi, a server of OGC API: OpenAPI 3.0 served with another host than it runs on; pages, CSV,
features as they are made, replaced and deleted, processes that run later.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen, Wrong
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_ITEMS = "/collections/ports/items"
_FEATURE = "/collections/ports/items/{featureId}"
_JOB_SECONDS = 60.0
_PORTS = (("1", "Gdańsk", 12), ("2", "Oslo", 7), ("3", "Genova", 31), ("4", "Brest", 5))


def _feature(name: str, berths: int, **more: Any) -> dict[str, Any]:
    point = {"type": "Point", "coordinates": [18.6, 54.3]}
    properties = {"name": name, "berths": berths}
    return {"type": "Feature", "geometry": point, "properties": properties, **more}


def _config(directory: Path, port: int) -> dict[str, Any]:
    empty = dict.fromkeys(
        "position address city stateorprovince postalcode country phone fax hours "
        "instructions role".split(),
        "-",
    )
    ports = {
        "type": "feature",
        "name": "TinyDB",
        "data": str(directory / "ports.json"),
        "id_field": "id",
        "title_field": "name",
        "editable": True,
    }
    whole = {"bbox": [-180, -90, 180, 90], "crs": "http://www.opengis.net/def/crs/OGC/1.3/CRS84"}
    address = "http://harbour.example"
    return {
        "server": {
            "bind": {"host": "127.0.0.1", "port": port},
            "url": f"http://127.0.0.1:{port}",
            "mimetype": "application/json; charset=UTF-8",
            "encoding": "utf-8",
            "languages": ["en-US"],
            "limits": {"default_items": 3, "max_items": 100},
            "map": {"url": address, "attribution": "-"},
            "manager": {
                "name": "TinyDB",
                "connection": str(directory / "jobs.db"),
                "output_dir": str(directory),
            },
        },
        "logging": {"level": "ERROR"},
        "metadata": {
            "identification": {
                "title": "Ports",
                "description": "Ports of a coast",
                "keywords": ["ports"],
                "keywords_type": "theme",
                "terms_of_service": "-",
                "url": address,
            },
            "license": {"name": "CC0", "url": address},
            "provider": {"name": "Harbour", "url": address},
            "contact": {"name": "Harbour", "email": "a@harbour.example", "url": address, **empty},
        },
        "resources": {
            "ports": {
                "type": "collection",
                "title": "Ports",
                "description": "Ports",
                "keywords": ["ports"],
                "links": [],
                "extents": {"spatial": whole},
                "providers": [ports],
            },
            "hello-world": {"type": "process", "processor": {"name": "HelloWorld"}},
        },
    }


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("pygeoapi==0.21.0", "waitress==3.0.2")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    config, described = directory / "config.yml", directory / "openapi.yml"
    config.write_text(json.dumps(_config(directory, port)))
    rows = {at: _feature(name, berths, id=at) for at, name, berths in _PORTS}
    (directory / "ports.json").write_text(json.dumps({"_default": rows}))
    environment = {"PYGEOAPI_CONFIG": str(config), "PYGEOAPI_OPENAPI": str(described)}
    begin = (
        "import sys; from pygeoapi import cli\n"
        f"cli(['openapi', 'generate', {str(config)!r}, '--output-file', {str(described)!r}], "
        "standalone_mode=False)\n"
        "from pygeoapi.flask_app import APP\n"
        "from waitress import serve\n"
        f"serve(APP, host='127.0.0.1', port={port})\n"
    )
    with running([str(python), "-c", begin], f"{url}/openapi?f=json", directory, environment):
        yield Running(url, directory, f"{url}/openapi?f=json")


def _names(features: Any) -> list[str]:
    return [feature["properties"]["name"] for feature in features["features"]]


def _find(seen: Seen, name: str) -> Any:
    everything = seen.get(_ITEMS, f="json", limit="100")["features"]
    found = [feature for feature in everything if feature["properties"]["name"] == name]
    if not found:
        raise Wrong(f"no feature is named {name}")
    return found[0]


def _first_page(seen: Seen) -> None:
    seen.expect("names", ["Gdańsk", "Oslo"], _names(seen.body))


def _second_page(seen: Seen) -> None:
    seen.expect("names", ["Genova", "Brest"], _names(seen.body))


def _one(seen: Seen) -> None:
    seen.expect("name", "Gdańsk", seen.body["properties"]["name"])


def _csv(seen: Seen) -> None:
    text = seen.answer.text + str(seen.body) + b"".join(seen.answer.data).decode()
    seen.expect("a row", True, "Genova" in text and "berths" in text)


def _created(seen: Seen) -> None:
    seen.expect("berths", 3, _find(seen, "Ærøskøbing ⚓")["properties"]["berths"])


def _replaced(seen: Seen) -> None:
    found = seen.get(f"{_ITEMS}/2", f="json")["properties"]
    seen.expect("berths", 8, found["berths"])


def _deleted(seen: Seen) -> None:
    seen.expect("status", 404, seen.direct.get(f"{_ITEMS}/4", params={"f": "json"}).status_code)


def _said(seen: Seen) -> None:
    seen.expect("greeting", True, "Hello Ada" in seen.answer.text + str(seen.body))


def _accepted(seen: Seen) -> None:
    end = time.monotonic() + _JOB_SECONDS
    while time.monotonic() < end:
        jobs = seen.get("/jobs", f="json")["jobs"]
        if any(job["status"] == "successful" for job in jobs):
            return
        time.sleep(0.2)
    raise Wrong(f"no job ended: {jobs}")


def _job(direct: httpx.Client) -> Arguments:
    body = {"inputs": {"name": "Grace"}}
    done = direct.post("/processes/hello-world/execution", json=body).headers["Location"]
    return {"jobId": done.rstrip("/").rpartition("/")[2]}


def _job_told(seen: Seen) -> None:
    seen.expect("status", "successful", seen.body["status"])


SERVER = RealServer(
    name="pygeoapi",
    kind="OpenAPI 3.0 served by a query; pages, CSV, features made and deleted, jobs with 201/202",
    task="read and change features",
    start=_start,
    sources=("{host}", "{description}"),
    scenarios=(
        Scenario("the first page", f"GET {_ITEMS}", {"limit": 2}, _first_page),
        Scenario("the next page", f"GET {_ITEMS}", {"limit": 2, "offset": 2}, _second_page, True),
        Scenario("one feature", f"GET {_FEATURE}", {"featureId": "1"}, _one),
        Scenario("an export as CSV", f"GET {_ITEMS}", {"f": "csv"}, _csv),
        Scenario(
            "a feature is made",
            f"POST {_ITEMS}",
            {"body": _feature("Ærøskøbing ⚓", 3)},
            _created,
        ),
        Scenario(
            "a feature is replaced",
            f"PUT {_FEATURE}",
            {"featureId": "2", "body": _feature("Oslo", 8, id="2")},
            _replaced,
            through_serve=True,
        ),
        Scenario("a feature is deleted", f"DELETE {_FEATURE}", {"featureId": "4"}, _deleted),
        Scenario(
            "a process runs at once",
            "POST /processes/hello-world/execution",
            {"body": {"inputs": {"name": "Ada"}}},
            _said,
        ),
        Scenario(
            "a process runs later",
            "POST /processes/hello-world/execution",
            {"body": {"inputs": {"name": "Ada"}, "mode": "async"}},
            _accepted,
        ),
        Scenario("what came of a job", "GET /jobs/{jobId}", _job, _job_told),
    ),
)
