"""Recorded exchanges answer again, and only what was recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sandbox.broker.cassette import (
    Cassette,
    CassetteRecorder,
    RecordedExchange,
    load_cassette,
    save_cassette,
)
from sandbox.errors import BundleInvalid, UpstreamUnreachable
from sandbox.wire.exchange import Exchange, Upstream, WireRequest, WireResponse

URL = "https://api.example/v1/x"


class Counting:
    """An upstream that answers with the number of the request."""

    def __init__(self) -> None:
        self.count = 0

    async def send(self, request: WireRequest) -> WireResponse:
        self.count += 1
        return WireResponse(200, (("x-echo", request.url),), b"%d" % self.count)


def send(upstream: Upstream, *requests: WireRequest) -> list[bytes]:
    async def run() -> list[bytes]:
        return [(await upstream.send(request)).body for request in requests]

    return asyncio.run(run())


GET, OTHER = WireRequest("GET", URL), WireRequest("GET", URL + "?a=1")
POST = WireRequest("POST", URL, (("content-type", "text/plain"),), b"\xff\x00")


def test_answers_come_back_in_their_order_and_the_last_one_stays() -> None:
    recorder = CassetteRecorder(Counting())
    send(recorder, GET, OTHER, GET, POST)
    cassette = recorder.to_cassette()
    assert send(cassette, GET, GET, GET, OTHER, POST) == [b"1", b"3", b"3", b"2", b"4"]


@pytest.mark.parametrize(
    "request_",
    [
        WireRequest("PUT", URL),
        WireRequest("GET", URL + "/y"),
        WireRequest("POST", URL, (), b"another body"),
    ],
)
def test_what_was_not_recorded_is_unreachable(request_: WireRequest) -> None:
    recorder = CassetteRecorder(Counting())
    send(recorder, GET, POST)
    with pytest.raises(UpstreamUnreachable, match="not on the cassette"):
        send(recorder.to_cassette(), request_)


def test_a_file_gives_the_same_cassette_back(tmp_path: Path) -> None:
    recorder = CassetteRecorder(Counting())
    send(recorder, GET, POST)
    save_cassette(recorder.to_cassette(), tmp_path / "c.jsonl")
    assert load_cassette(tmp_path / "c.jsonl").takes == recorder.to_cassette().takes


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    save_cassette(Cassette([RecordedExchange(GET, WireResponse(200))]), path)
    path.write_text(path.read_text() + '{"request": {}}\n')
    with pytest.raises(BundleInvalid, match="line 2"):
        load_cassette(path)
    with pytest.raises(BundleInvalid, match="No such file"):
        load_cassette(tmp_path / "absent.jsonl")


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    secret = "s3cret/key"
    request = WireRequest(
        "GET", f"{URL}?key=s3cret%2Fkey", (("authorization", f"Bearer {secret}"),), secret.encode()
    )
    recorder = CassetteRecorder(Counting(), [secret])
    send(recorder, request)
    save_cassette(recorder.to_cassette(), tmp_path / "c.jsonl")
    kept = (tmp_path / "c.jsonl").read_text()
    assert "s3cret" not in kept
    assert kept.count("[redacted]") == 4


def test_a_broker_s_log_makes_a_cassette_of_what_was_answered() -> None:
    answered = Exchange(GET, WireResponse(200, (), b"log"))
    refused = Exchange(POST, None, "refused")
    assert send(Cassette.from_exchanges([answered, refused]), GET) == [b"log"]
    assert len(Cassette.from_exchanges([answered, refused]).takes) == 1
