"""The example API does what its document says, and its log tells the truth."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.functional.home import until
from tests.world.harbour import EXAMPLE, HarbourApi, harbour_api

DOCUMENT = json.loads((EXAMPLE / "openapi.json").read_text())
SECONDS = 60.0
BOAT = {"name": "Petrel", "length": 7.2, "kind": "sail", "owner": {"name": "Ines", "phone": None}}
BOOKING = {"berth": 3, "boat": BOAT, "arrival": "2026-07-01", "nights": 2, "services": ["water"]}


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        yield api


def ask(api: HarbourApi, method: str, path: str, body: object = None) -> httpx.Response:
    """One request, its answer checked against the document."""
    answer = httpx.request(method, api.url + path, json=body, timeout=SECONDS)
    documented = _responses(method, path)[str(answer.status_code)]
    if "$ref" in documented:
        documented = DOCUMENT["components"]["responses"][documented["$ref"].rpartition("/")[2]]
    if "content" not in documented:
        assert answer.content == b""
        return answer
    assert answer.headers["content-type"] == "application/json"
    schema = documented["content"]["application/json"]["schema"]
    Draft202012Validator({"components": DOCUMENT["components"], **schema}).validate(answer.json())
    return answer


def _responses(method: str, path: str) -> dict[str, Any]:
    parts = urlsplit(path).path.split("/")
    for template, item in DOCUMENT["paths"].items():
        names = template.split("/")
        same = [n == p or n.startswith("{") for n, p in zip(names, parts, strict=False)]
        if len(names) == len(parts) and all(same):
            responses: dict[str, Any] = item[method.lower()]["responses"]
            return responses
    raise AssertionError(path)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/berths", 200),
        ("GET", "/berths?state=free&min_length=7.5", 200),
        ("GET", "/berths?state=wet", 422),
        ("GET", "/berths?min_length=nan", 422),
        ("GET", "/berths/5", 200),
        ("GET", "/berths/99", 404),
        ("GET", "/berths/five", 422),
        ("GET", "/boats?query=ada", 200),
        ("GET", "/boats?query=e&kind=sail&kind=motor", 200),
        ("GET", "/boats", 422),
        ("GET", "/bookings", 200),
        ("GET", "/report", 200),
        ("GET", "/report?seconds=-1", 422),
        ("DELETE", "/bookings/99", 404),
        ("DELETE", "/bookings/x", 422),
    ],
)
def test_an_answer_is_one_its_document_declares(
    harbour: HarbourApi, method: str, path: str, status: int
) -> None:
    assert ask(harbour, method, path).status_code == status


def test_a_booking_takes_its_berth_once_and_gives_it_back(harbour: HarbourApi) -> None:
    booked = ask(harbour, "POST", "/bookings", BOOKING)
    assert booked.status_code == 201
    assert ask(harbour, "GET", "/berths/3").json()["state"] == "booked"
    assert ask(harbour, "POST", "/bookings", BOOKING).status_code == 409
    assert ask(harbour, "DELETE", f"/bookings/{booked.json()['id']}").status_code == 204
    assert ask(harbour, "GET", "/berths/3").json()["state"] == "free"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"berth": 99}, 404),
        ({"berth": 8}, 409),
        ({"boat": {**BOAT, "length": 30}}, 409),
        ({"boat": {**BOAT, "kind": "raft"}}, 422),
        ({"boat": {**BOAT, "owner": {}}}, 422),
        ({"nights": 0}, 422),
        ({"arrival": "soon"}, 422),
        ({"services": ["sauna"]}, 422),
        ({"extra": 1}, 422),
    ],
)
def test_a_booking_that_cannot_be_is_refused_and_changes_nothing(
    harbour: HarbourApi, change: dict[str, object], status: int
) -> None:
    before = ask(harbour, "GET", "/berths").json()
    assert ask(harbour, "POST", "/bookings", {**BOOKING, **change}).status_code == status
    assert ask(harbour, "GET", "/berths").json() == before


def test_the_log_has_every_request_with_its_body_and_its_end(tmp_path: Path) -> None:
    with harbour_api(tmp_path) as api:
        ask(api, "POST", "/bookings", BOOKING)
        # The end is logged after the answer was sent.
        _until(api, 2)
        received, ended = api.entries()
    assert (received["event"], received["method"], received["path"]) == (
        "received",
        "POST",
        "/bookings",
    )
    assert json.loads(received["body"]) == BOOKING
    assert (ended["id"], ended["event"], ended["status"]) == (received["id"], "answered", 201)


def test_a_client_that_goes_away_during_the_slow_report_is_logged_as_cut(tmp_path: Path) -> None:
    with harbour_api(tmp_path) as api:
        parts = urlsplit(api.url)
        with socket.create_connection((parts.hostname, parts.port)) as client:
            client.sendall(b"GET /report?seconds=60 HTTP/1.1\r\nHost: x\r\n\r\n")
            _until(api, 1)
        _until(api, 2)
        assert [entry["event"] for entry in api.entries()] == ["received", "cut"]


def test_more_requests_than_the_limit_get_a_429_that_says_when_to_come_back(
    tmp_path: Path,
) -> None:
    with (
        harbour_api(tmp_path, "--limit", "1") as api,
        httpx.Client(base_url=api.url, timeout=SECONDS) as client,
    ):
        answers = [client.get("/berths") for _ in range(20)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert answers[0].status_code == 200
    assert refused
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}


def _until(api: HarbourApi, lines: int) -> None:
    until(lambda: len(api.entries()) >= lines, f"the log has {lines} entries")
