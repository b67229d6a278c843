"""Hosts as people and programs write them."""

from __future__ import annotations

import pytest

from sandbox.target import Target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Example.COM", Target("example.com", 443)),
        ("example.com.:8443", Target("example.com", 8443)),
        ("bücher.example", Target("xn--bcher-kva.example", 443)),
        ("10.0.0.1:80", Target("10.0.0.1", 80)),
        ("[::1]:443", Target("::1", 443)),
        ("_dmarc.example.com", Target("_dmarc.example.com", 443)),
        ("localhost", Target("localhost", 443)),
    ],
)
def test_a_host_has_one_form(text: str, target: Target) -> None:
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
    assert parse_target("host:1", None) == Target("host", 1)
