"""Kinto, a JSON store: Swagger 2.0 served off the usual places, basic, pages, patches,
preconditions, a batch, deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_BASIC = "Basic YWxpY2U6czNjcmV0"
_PARENT = {"bucket_id": "harbour", "collection_id": "boats"}
_RECORDS = "/buckets/{bucket_id}/collections/{collection_id}/records"
_HERE = "/v1/buckets/harbour/collections/boats/records"
_INI = """[app:main]
use = egg:kinto
kinto.storage_backend = kinto.core.storage.memory
kinto.cache_backend = kinto.core.cache.memory
kinto.permission_backend = kinto.core.permission.memory
kinto.bucket_create_principals = system.Authenticated
kinto.userid_hmac_secret = none
kinto.paginate_by = 3
multiauth.policies = basicauth
[server:main]
use = egg:waitress#main
host = 127.0.0.1
port = {port}
"""


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("kinto==26.5.0")
    port = free_port()
    (directory / "kinto.ini").write_text(_INI.format(port=port))
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "pyramid.scripts.pserve", "kinto.ini"]
    with running(command, f"{url}/v1/", directory):
        yield Running(url, directory, f"{url}/v1/__api__")


def _record(record: str, **data: object) -> Arguments:
    return {**_PARENT, "id": record, "body": {"data": data}}


def _filled(direct: httpx.Client) -> Arguments:
    for at in range(5):
        direct.put(f"{_HERE}/page-{at}", json={"data": {"at": at}}).raise_for_status()
    return {**_PARENT, "_limit": 2, "_sort": ["at"]}


def _next_page(direct: httpx.Client) -> Arguments:
    first = direct.get(_HERE, params={"_limit": "2", "_sort": "at"})
    token = httpx.URL(first.headers["Next-Page"]).params["_token"]
    return {**_PARENT, "_limit": 2, "_sort": ["at"], "_token": token}


def _stale(direct: httpx.Client) -> Arguments:
    direct.put(f"{_HERE}/stale", json={"data": {"n": 1}}).raise_for_status()
    return {**_record("stale", n=2), "If-Match": '"1"'}


def _bucket_made(seen: Seen) -> None:
    seen.expect("title", "Hafen", seen.get("/v1/buckets/harbour")["data"]["title"])


def _collection_made(seen: Seen) -> None:
    made = seen.get("/v1/buckets/harbour/collections/boats")
    seen.expect("id", "boats", made["data"]["id"])


def _record_made(seen: Seen) -> None:
    seen.expect("answer", "Żaglówka ⛵", seen.body["data"]["name"])
    seen.expect("kept", "Żaglówka ⛵", seen.get(f"{_HERE}/b1")["data"]["name"])


def _record_read(seen: Seen) -> None:
    seen.expect("data", seen.get(f"{_HERE}/b1"), seen.body)


def _merged(seen: Seen) -> None:
    data = seen.get(f"{_HERE}/b1")["data"]
    seen.expect("name", "Żaglówka ⛵", data["name"])
    seen.expect("length", 7.5, data["length"])


def _null_kept(seen: Seen) -> None:
    data = seen.get(f"{_HERE}/b1")["data"]
    seen.expect("owner", None, data.get("owner", "missing"))


def _first_page(seen: Seen) -> None:
    seen.expect("at", [0, 1], [row["at"] for row in seen.body["data"]])


def _second_page(seen: Seen) -> None:
    seen.expect("at", [2, 3], [row["at"] for row in seen.body["data"]])


def _unchanged(seen: Seen) -> None:
    seen.expect("n", 1, seen.get(f"{_HERE}/stale")["data"]["n"])
    seen.expect("the API's words", True, "412" in seen.answer.text)


def _batched(seen: Seen) -> None:
    seen.expect("statuses", [201, 201], [row["status"] for row in seen.body["responses"]])
    for name in ("bulk-1", "bulk-2"):
        seen.expect(name, name, seen.get(f"{_HERE}/{name}")["data"]["id"])


def _deleted(seen: Seen) -> None:
    seen.expect("status", 404, seen.direct.get(f"{_HERE}/b1").status_code)


def _page_deleted(seen: Seen) -> None:
    gone = [row["id"] for row in seen.body["data"]]
    seen.expect("a page of them is told", 3, len(gone))
    for name in gone:
        seen.expect(name, 404, seen.direct.get(f"{_HERE}/{name}").status_code)


def _not_there(seen: Seen) -> None:
    seen.expect("the API's words", True, "404" in seen.answer.text)


_BULK = {
    "defaults": {"method": "PUT"},
    "requests": [
        {"path": f"{_HERE}/bulk-{at}", "body": {"data": {"at": 10 + at}}} for at in (1, 2)
    ],
}

SERVER = RealServer(
    name="kinto",
    kind="Swagger 2.0 served off the usual places; basic; merge-patch, batch, pages, preconditions",
    task="read and write records",
    start=_start,
    sources=("{host}", "{description}"),
    options=("--auth", "basic=@login"),
    secrets={"basicauth": "alice:s3cret", "login": "alice:s3cret"},
    headers={"Authorization": _BASIC},
    scenarios=(
        Scenario(
            "a bucket is made by PUT",
            "PUT /buckets/{id}",
            {"id": "harbour", "body": {"data": {"title": "Hafen"}}},
            _bucket_made,
        ),
        Scenario(
            "a collection is made by POST, through serve",
            "POST /buckets/{bucket_id}/collections",
            {"bucket_id": "harbour", "body": {"data": {"id": "boats"}}},
            _collection_made,
            through_serve=True,
        ),
        Scenario(
            "a record with a unicode name is kept",
            f"PUT {_RECORDS}/{{id}}",
            _record("b1", name="Żaglówka ⛵", length=6),
            _record_made,
        ),
        Scenario(
            "a record is read, through serve",
            f"GET {_RECORDS}/{{id}}",
            {**_PARENT, "id": "b1"},
            _record_read,
            through_serve=True,
        ),
        Scenario(
            "a patch changes one field",
            f"PATCH {_RECORDS}/{{id}}",
            _record("b1", length=7.5),
            _merged,
        ),
        Scenario(
            "a patch keeps a null",
            f"PATCH {_RECORDS}/{{id}}",
            _record("b1", owner=None),
            _null_kept,
        ),
        Scenario("the first page of a sorted list", f"GET {_RECORDS}", _filled, _first_page),
        Scenario("the next page by its token", f"GET {_RECORDS}", _next_page, _second_page),
        Scenario(
            "a stale precondition changes nothing",
            f"PUT {_RECORDS}/{{id}}",
            _stale,
            _unchanged,
            refused=True,
        ),
        Scenario("a batch of two writes", "POST /batch", {"body": _BULK}, _batched),
        Scenario(
            "a record is deleted", f"DELETE {_RECORDS}/{{id}}", {**_PARENT, "id": "b1"}, _deleted
        ),
        Scenario(
            "what is gone is an error with the API's words",
            f"GET {_RECORDS}/{{id}}",
            {**_PARENT, "id": "b1"},
            _not_there,
            refused=True,
        ),
        Scenario("a page of records is deleted", f"DELETE {_RECORDS}", _PARENT, _page_deleted),
    ),
)
