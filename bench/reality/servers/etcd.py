"""etcd behind its gateway: Swagger 2.0 that its package ships, every operation a POST; base64,
int64 as text, transactions, leases.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_deb
from bench.reality.processes import free_port, running

_SHIPPED = "usr/share/doc/etcd-server/dev-guide/apispec/swagger/rpc.swagger.json.gz"


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    root = install_deb("etcd-server")
    url, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    described = directory / "rpc.swagger.json"
    described.write_bytes(gzip.decompress((root / _SHIPPED).read_bytes()))
    command = [str(root / "usr/bin/etcd"), "--data-dir", str(directory / "data")]
    command += ["--listen-client-urls", url, "--advertise-client-urls", url]
    command += ["--listen-peer-urls", peers]
    with running(command, f"{url}/health", directory):
        yield Running(url, directory, str(described))


def _range(seen: Seen, key: str) -> Any:
    found = seen.direct.post("/v3/kv/range", json={"key": _b64(key)}).json()
    rows = found.get("kvs", ())
    return [base64.b64decode(row["value"]).decode() for row in rows]


def _put(direct: httpx.Client, key: str, value: str) -> None:
    pair = {"key": _b64(key), "value": _b64(value)}
    direct.post("/v3/kv/put", json=pair).raise_for_status()


def _two(direct: httpx.Client) -> Arguments:
    for at in range(3):
        _put(direct, f"row/{at}", str(at))
    order = {"sort_order": "DESCEND", "sort_target": "KEY", "limit": "2"}
    return {"body": {"key": _b64("row/"), "range_end": _b64("row0"), **order}}


def _leased(direct: httpx.Client) -> Arguments:
    lease = direct.post("/v3/lease/grant", json={"TTL": "600"}).json()["ID"]
    return {"body": {"key": _b64("leased"), "value": _b64("for a while"), "lease": lease}}


def _revocable(direct: httpx.Client) -> Arguments:
    lease = direct.post("/v3/lease/grant", json={"TTL": "600"}).json()["ID"]
    pair = {"key": _b64("brief"), "value": _b64("x"), "lease": lease}
    direct.post("/v3/kv/put", json=pair).raise_for_status()
    return {"body": {"ID": lease}}


def _was_put(seen: Seen) -> None:
    seen.expect("value", ["Żagiel ⛵"], _range(seen, "sail"))


def _was_read(seen: Seen) -> None:
    seen.expect("value", _b64("Żagiel ⛵"), seen.body["kvs"][0]["value"])


def _two_read(seen: Seen) -> None:
    values = [base64.b64decode(row["value"]).decode() for row in seen.body["kvs"]]
    seen.expect("values", ["2", "1"], values)
    seen.expect("more", True, seen.body["more"])


def _compared(seen: Seen) -> None:
    seen.expect("succeeded", True, seen.body["succeeded"])
    seen.expect("value", ["swapped"], _range(seen, "swap"))


def _swap(direct: httpx.Client) -> Arguments:
    _put(direct, "swap", "before")
    same = {"key": _b64("swap"), "target": "VALUE", "result": "EQUAL", "value": _b64("before")}
    put = {"request_put": {"key": _b64("swap"), "value": _b64("swapped")}}
    return {"body": {"compare": [same], "success": [put]}}


def _is_leased(seen: Seen) -> None:
    found = seen.direct.post("/v3/kv/range", json={"key": _b64("leased")}).json()["kvs"][0]
    seen.expect("has a lease", True, int(found["lease"]) > 0)


def _is_revoked(seen: Seen) -> None:
    seen.expect("value", [], _range(seen, "brief"))


def _is_deleted(seen: Seen) -> None:
    seen.expect("deleted", "3", seen.body["deleted"])
    seen.expect("left", [], _range(seen, "row/1"))


SERVER = RealServer(
    name="etcd",
    kind="Swagger 2.0 shipped, a gateway of gRPC; base64, int64 as text, transactions, leases",
    task="put and read keys",
    start=_start,
    sources=("{host}", "{description} --base-url {url}"),
    scenarios=(
        Scenario(
            "a unicode value is put",
            "POST /v3/kv/put",
            {"body": {"key": _b64("sail"), "value": _b64("Żagiel ⛵")}},
            _was_put,
        ),
        Scenario(
            "it is read", "POST /v3/kv/range", {"body": {"key": _b64("sail")}}, _was_read, True
        ),
        Scenario("a sorted page of a prefix", "POST /v3/kv/range", _two, _two_read),
        Scenario("a transaction", "POST /v3/kv/txn", _swap, _compared),
        Scenario("a value with a lease", "POST /v3/kv/put", _leased, _is_leased),
        Scenario("a lease is revoked", "POST /v3/lease/revoke", _revocable, _is_revoked, True),
        Scenario(
            "the members",
            "POST /v3/cluster/member/list",
            {"body": {}},
            lambda seen: seen.expect("members", 1, len(seen.body["members"])),
        ),
        Scenario(
            "the status",
            "POST /v3/maintenance/status",
            {"body": {}},
            lambda seen: seen.expect("a version", True, seen.body["version"].startswith("3.")),
        ),
        Scenario(
            "a prefix is deleted",
            "POST /v3/kv/deleterange",
            {"body": {"key": _b64("row/"), "range_end": _b64("row0")}},
            _is_deleted,
        ),
    ),
)
