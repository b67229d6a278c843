"""A link does one thing, once, for a while, and cannot be made by anyone else."""

from __future__ import annotations

import base64
import json
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.data())
def test_a_changed_link_is_foreign(data: st.DataObject) -> None:
    links = OneTimeLinks()
    token = made(links)
    at = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda c: c != token[at]))
    assert links.check_token(token[:at] + letter + token[at + 1 :], NOW) == "foreign"


def test_a_link_for_another_act_cannot_be_made_of_one() -> None:
    links = OneTimeLinks()
    body, _, seal = made(links).partition(".")
    value = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    forged = base64.urlsafe_b64encode(json.dumps({**value, "subject": "a2"}).encode()).decode()
    assert links.use_token(f"{forged.rstrip('=')}.{seal}", NOW) == "foreign"


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
    assert links._key.hex() not in repr(links)
    assert str(links._key) not in repr(links)
