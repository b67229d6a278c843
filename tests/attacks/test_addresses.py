"""Names and addresses that lead back into the machine or its network, in every spelling."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.broker.addresses import is_public, resolve_by_system
from sandbox.bundle.permissions import parse_permission
from sandbox.bundle.target import parse_target
from sandbox.errors import UpstreamUnreachable
from sandbox.wire.exchange import Exchange, WireRequest
from sandbox.wire.policy import Origin
from tests.attacks.wire import brokered, listener, rule
from tests.sandbox.upstreams import HOST

PRIVATE = {
    "loopback": ("127.0.0.1", "127.255.255.254", "::1"),
    "unspecified": ("0.0.0.0", "0.1.2.3", "::"),
    "private": ("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fc00::1"),
    "link-local": ("169.254.0.1", "fe80::1", "fe80::1%eth0", "fec0::1"),
    "metadata": (
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
    ),
    "shared": ("100.64.0.1", "198.18.0.1", "192.0.0.1"),
    "mapped": ("::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    "translated": ("64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:1::1"),
    "many": ("224.0.0.1", "255.255.255.255", "ff02::1", "240.0.0.1", "192.88.99.1"),
    "documentation": ("192.0.2.1", "203.0.113.1", "2001:db8::1", "3fff::1"),
    "spelled": ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "①27.0.0.1", ""),
}


def told(addresses: Iterable[str], granted: bool = False) -> tuple[Exchange, list[bytes], int]:
    """What becomes of a request to a name that resolves to these, what the machine's own server
    hears, and how often the name was asked for.
    """
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return list(addresses)

    async def run() -> tuple[Exchange, list[bytes], int]:
        async with listener() as api:
            private = [api.origin] if granted else []
            async with brokered(rule(api.origin), granted=private, resolve=resolve) as broker:
                exchange = await broker.perform(WireRequest("GET", api.url("/items/a")))
            return exchange, api.heard, len(asked)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("kind", "address"), [(kind, each) for kind, found in PRIVATE.items() for each in found]
)
def test_no_address_that_is_not_global_is_connected_to(kind: str, address: str) -> None:
    assert not is_public(address), kind
    exchange, heard, _ = told([address])
    assert (exchange.refusal, heard) == ("not_allowed", [])


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1", "2001:4860::8888"])
def test_global_addresses_are_let_be(address: str) -> None:
    assert is_public(address)


def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    for addresses in (["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "127.0.0.1"]):
        exchange, heard, _ = told(addresses)
        assert (exchange.refusal, heard) == ("not_allowed", [])
    exchange, heard, _ = told([])
    assert (exchange.refusal, heard) == ("unreachable", [])


def test_a_name_is_asked_for_once_so_that_its_second_answer_cannot_be_another() -> None:
    exchange, heard, asked = told(["127.0.0.1"])
    assert (exchange.refusal, heard, asked) == ("not_allowed", [], 1)
    exchange, heard, asked = told(["127.0.0.1"], granted=True)
    assert (exchange.refusal, len(heard), asked) == ("", 1, 1)


def test_the_grant_of_one_host_and_port_is_no_other_s() -> None:
    async def run() -> list[str]:
        async with listener() as api:
            refusals = []
            for origin in (
                Origin("http", "other.test", api.port),
                Origin("http", HOST, api.port + 1),
                Origin("http", f"sub.{HOST}", api.port),
            ):
                async with brokered(rule(api.origin), granted=[origin]) as broker:
                    made = await broker.perform(WireRequest("GET", api.url("/items/a")))
                    refusals.append(made.refusal)
            assert api.heard == []
            return refusals

    assert asyncio.run(run()) == ["not_allowed"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "2130706433",
        "0x7f.0.0.1",
        "127.1",
        "017700000001",
        "api.test.1",
        "api.0x7f",
        "*",
        "*.test",
        "api.test/..",
        "user@api.test",
        "api.test:0",
        "api.test:65536",
        "api.test:80:81",
        "[::1",
        "api..test",
        "-api.test",
        "api test",
        "api.test\n",
        "",
    ],
)
def test_what_is_no_plain_host_is_no_permission(text: str) -> None:
    assert parse_target(text) is None
    with pytest.raises(ValueError, match="HOST"):
        parse_permission(f"network:{text}")


def test_a_plain_host_is_one() -> None:
    for text in ("api.test", "API.test.:8443", "[2606:4700::1]:443", "bücher.test"):
        assert parse_permission(f"network:{text}").kind == "network"


def test_a_name_server_that_says_nothing_takes_none_of_the_loops_threads() -> None:
    async def run() -> tuple[list[str], str]:
        loop, over = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, over.wait)
        try:
            async with asyncio.timeout(60):
                found = await resolve_by_system("127.0.0.1", 80)
        finally:
            over.set()
            await busy
        with pytest.raises(UpstreamUnreachable, match="does not resolve") as refused:
            await resolve_by_system("no such name", 80)
        return found, str(refused.value)

    found, refused = asyncio.run(run())
    assert found == ["127.0.0.1"]
    assert "no such name" in refused
