"""Hosts as people and programs write them."""

from __future__ import annotations

import pytest

from sandbox.bundle.target import NetworkTarget, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Example.COM", NetworkTarget("example.com", 443)),
        ("example.com.:8443", NetworkTarget("example.com", 8443)),
        ("bücher.example", NetworkTarget("xn--bcher-kva.example", 443)),
        ("10.0.0.1:80", NetworkTarget("10.0.0.1", 80)),
        ("[::1]:443", NetworkTarget("::1", 443)),
        ("_dmarc.example.com", NetworkTarget("_dmarc.example.com", 443)),
        ("localhost", NetworkTarget("localhost", 443)),
    ],
)
def test_a_host_has_one_form(text: str, target: NetworkTarget) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":443",
        "host:",
        "host:0",
        "host:65536",
        "host:4e2",
        "::1",
        "[::1",
        "[host]:1",
        "a b",
        "a/b",
        "a@b",
        "a\\b",
        "a\0b",
        "-a.example",
        "a-.example",
        "a..b",
        ".a",
        "127.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f.0.0.1",
        "example.0x1",
        "x" * 64 + ".example",
    ],
)
def test_what_is_no_host_or_an_address_in_disguise_is_none(text: str) -> None:
    assert parse_target(text) is None


def test_a_port_is_needed_where_none_is_usual() -> None:
    assert parse_target("host", None) is None
    assert parse_target("host:1", None) == NetworkTarget("host", 1)
