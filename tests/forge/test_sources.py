from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.sources import MAX_NAMED, ApiSource, find_locations, rank_sources

KEY = ("X-API-Key", "k3y")


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("list the DNS zones on http://127.0.0.1:8081", ["http://127.0.0.1:8081"]),
        ("list the zones of 127.0.0.1:8081.", ["127.0.0.1:8081"]),
        ("see https://a.example.com/v1/spec.yaml, please", ["https://a.example.com/v1/spec.yaml"]),
        ("ask api.example.com or localhost:9000", ["api.example.com", "localhost:9000"]),
        ("what is in report.pdf and openapi.json", []),
        ("write to bob@example.com at 10:30 about v1.2.3", []),
        ("the meeting is at 12.30 and costs 3.50", []),
        ("(docs: https://x.example/a)", ["https://x.example/a"]),
        ("", []),
    ],
)
def test_a_task_names_urls_and_hosts_and_nothing_else(task: str, named: list[str]) -> None:
    assert list(find_locations(task)) == named


@given(st.text(max_size=300))
def test_whatever_a_task_names_can_be_used_as_a_source(text: str) -> None:
    named = find_locations(text)
    assert len(named) <= MAX_NAMED
    assert all(ApiSource(location).path is None for location in named)


def test_a_public_host_without_a_scheme_is_asked_securely_first() -> None:
    assert ApiSource("api.example.com").urls == (
        "https://api.example.com",
        "http://api.example.com",
    )


def test_a_credential_never_goes_to_a_bare_public_host_in_clear() -> None:
    assert ApiSource("api.example.com:8080", (KEY,)).urls == ("https://api.example.com:8080",)


@pytest.mark.parametrize("location", ["http://user:pw@h.example/", "http://", "//x", "https://a b"])
def test_a_url_that_hides_something_has_no_base(location: str) -> None:
    assert ApiSource(location).urls == ()


@pytest.mark.parametrize("location", ["openapi.yaml", "./a.b", "/tmp/x", "specs/pet.json"])
def test_a_file_name_is_a_path_and_not_a_host(location: str) -> None:
    assert ApiSource(location).path == Path(location)


def test_the_explicit_source_comes_first_then_the_named_then_the_registered_that_fit() -> None:
    registered = [ApiSource("https://pets.example", title="pets"), ApiSource("https://dns.example")]
    chosen = rank_sources("list dns zones on 127.0.0.1:80", "./spec.yaml", registered)
    assert [source.location for source in chosen] == [
        "./spec.yaml",
        "127.0.0.1:80",
        "https://dns.example",
        "https://pets.example",
    ]


def test_a_named_host_gets_the_credential_that_was_registered_for_it() -> None:
    registered = [ApiSource("http://10.0.0.5:8081", (KEY,), "dns")]
    assert rank_sources("zones on 10.0.0.5:8081", None, registered) == (registered[0],)
    assert rank_sources("", "http://10.0.0.5:8081/api/docs", registered)[0].headers == (KEY,)


@pytest.mark.parametrize("other", ["http://10.0.0.5:8082", "https://10.0.0.5:8081", "http://x.de"])
def test_no_other_origin_gets_a_registered_credential(other: str) -> None:
    registered = [ApiSource("http://10.0.0.5:8081", (KEY,))]
    assert rank_sources("", other, registered)[0].headers == ()


def test_a_credential_is_not_in_the_repr_of_its_source() -> None:
    assert "k3y" not in repr(ApiSource("https://a.example", (KEY,)))


@pytest.mark.parametrize("url", ["http://localhost:8081/", "https://localhost:8081/"])
def test_a_credential_goes_by_the_scheme_of_its_source_alone(url: str) -> None:
    registered = (ApiSource(url, (KEY,)),)
    for written in ("localhost:8081", "localhost:8081/api/docs"):
        (chosen, *_) = rank_sources("", written, registered)
        assert chosen.headers == (KEY,)
        assert chosen.origins == registered[0].origins
