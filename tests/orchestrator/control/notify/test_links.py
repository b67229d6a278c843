"""A link does one thing, once, for a while, and cannot be made by anyone else."""

from __future__ import annotations

from dataclasses import asdict
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer

from orchestrator.control.notify.links import OneTimeLinks, Ticket

NOW = 100.0


def made(links: OneTimeLinks, until: float = 200.0) -> str:
    return links.create_token("approve", "a1", "d" * 64, until)


def test_a_link_says_what_it_is_for_and_works_once() -> None:
    links = OneTimeLinks()
    token = made(links)
    for found in (
        links.check_token(token, NOW),
        links.check_token(token, NOW),
        links.use_token(token, NOW),
    ):
        assert isinstance(found, Ticket)
        assert (found.act, found.subject, found.digest) == ("approve", "a1", "d" * 64)
    assert (links.use_token(token, NOW), links.check_token(token, NOW)) == ("used", "used")


def test_a_link_ends() -> None:
    links = OneTimeLinks()
    assert links.use_token(made(links), 200.0) == "expired"
    assert links.check_token(made(links), 199.9) != "expired"


def test_two_links_for_the_same_thing_are_two() -> None:
    links = OneTimeLinks()
    first, second = made(links), made(links)
    assert first != second
    assert isinstance(links.use_token(first, NOW), Ticket)
    assert isinstance(links.use_token(second, NOW), Ticket)


def test_a_link_of_another_process_is_foreign() -> None:
    assert OneTimeLinks().use_token(made(OneTimeLinks()), NOW) == "foreign"


@pytest.mark.parametrize(
    "token", ["", ".", "a.b", "é.ü", "\ud800.x", "a" * 100_000, "e30.", ".e30"]
)
def test_rubbish_is_foreign(token: str) -> None:
    assert OneTimeLinks().check_token(token, NOW) == "foreign"


@pytest.mark.parametrize("more", ["=", "!", "\n", " ", "A"])
def test_a_link_is_written_in_one_way(more: str) -> None:
    links = OneTimeLinks()
    token = made(links)
    for changed in (f"{token}{more}", f"{token[:-2]}{more}{token[-2:]}", f"{more}{token}"):
        assert links.check_token(changed, NOW) == "foreign"
    # Decoders of base64 take the letters of both its alphabets.
    while not {"-", "_"} & {*token.rpartition(".")[2]}:
        token = made(links)
    body, _, seal = token.rpartition(".")
    other = seal.replace("-", "+").replace("_", "/")
    assert links.check_token(f"{body}.{other}", NOW) == "foreign"


LINKS = OneTimeLinks()
TOKEN = made(LINKS)


@given(st.data())
def test_a_changed_link_is_foreign(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(TOKEN) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda c: c != TOKEN[at]))
    assert LINKS.check_token(TOKEN[:at] + letter + TOKEN[at + 1 :], NOW) == "foreign"


def test_a_link_for_another_act_cannot_be_made_of_one() -> None:
    links = OneTimeLinks()
    token = made(links)
    ticket = links.check_token(token, NOW)
    assert isinstance(ticket, Ticket)
    forged, _, _ = (
        URLSafeSerializer("any").dumps({**asdict(ticket), "subject": "a2"}).rpartition(".")
    )
    assert links.use_token(f"{forged}.{token.rpartition('.')[2]}", NOW) == "foreign"


def test_of_many_who_use_a_link_at_once_one_has_it() -> None:
    links = OneTimeLinks()
    token, barrier, found = made(links), Barrier(8), []

    def use() -> None:
        barrier.wait()
        found.append(links.use_token(token, NOW))

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(type(one).__name__) for one in found) == ["Ticket", *["str"] * 7]


def test_the_key_is_not_shown() -> None:
    links = OneTimeLinks()
    key = links._signer.secret_key
    assert key.hex() not in repr(links)
    assert str(key) not in repr(links)
