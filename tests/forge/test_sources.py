from __future__ import annotations

from pathlib import Path

import pytest

from forge.sources import ApiSource, choose_sources

KEY = ("X-API-Key", "k3y")


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


@pytest.mark.parametrize("location", ["http:/h.example/x", "https//h.example", "http:///x"])
def test_a_url_with_a_sign_too_few_or_too_many_is_no_path(location: str) -> None:
    assert (ApiSource(location).path, ApiSource(location).urls) == (None, ())


REGISTERED = (ApiSource("https://pets.example", title="pets"), ApiSource("https://dns.example"))


@pytest.mark.parametrize("explicit", ["./spec.yaml", "http://10.0.0.9/x", "https://pets.example"])
def test_an_explicit_source_is_the_only_source(explicit: str) -> None:
    task = "list dns zones on 127.0.0.1:80, see https://docs.example/dns"
    chosen = choose_sources(task, explicit, REGISTERED)
    assert [source.location for source in chosen] == [explicit]


def test_without_one_the_sources_are_those_that_the_task_names_in_its_order() -> None:
    task = "list pets of https://b.example/pets, which runs on 127.0.0.1:80"
    chosen = choose_sources(task, None, REGISTERED)
    assert [source.location for source in chosen] == ["https://b.example/pets", "127.0.0.1:80"]


@pytest.mark.parametrize("task", ["", "list dns zones", "compute the sum of 3 and 4"])
def test_a_registered_source_is_not_taken_because_it_is_registered(task: str) -> None:
    assert choose_sources(task, None, REGISTERED) == ()


def test_a_named_host_gets_the_credential_that_was_registered_for_it() -> None:
    registered = [ApiSource("http://10.0.0.5:8081", (KEY,), "dns")]
    assert choose_sources("zones on 10.0.0.5:8081", None, registered) == (registered[0],)
    assert choose_sources("", "http://10.0.0.5:8081/api/docs", registered)[0].headers == (KEY,)


@pytest.mark.parametrize("other", ["http://10.0.0.5:8082", "https://10.0.0.5:8081", "http://x.de"])
def test_no_other_origin_gets_a_registered_credential(other: str) -> None:
    registered = [ApiSource("http://10.0.0.5:8081", (KEY,))]
    assert choose_sources("", other, registered)[0].headers == ()


def test_a_credential_is_not_in_the_repr_of_its_source() -> None:
    assert "k3y" not in repr(ApiSource("https://a.example", (KEY,)))


@pytest.mark.parametrize("url", ["http://localhost:8081/", "https://localhost:8081/"])
def test_a_credential_goes_by_the_scheme_of_its_source_alone(url: str) -> None:
    registered = (ApiSource(url, (KEY,)),)
    for written in ("localhost:8081", "localhost:8081/api/docs"):
        (chosen, *_) = choose_sources("", written, registered)
        assert chosen.headers == (KEY,)
        assert chosen.origins == registered[0].origins
