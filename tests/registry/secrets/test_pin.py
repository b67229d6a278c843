"""The PIN, and the key that only it opens."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from pathlib import Path

import pytest

from registry.errors import PinUnusable
from registry.secrets.pin import (
    ATTEMPTS,
    LOCK_SECONDS,
    PinCheck,
    change_pin,
    find_successors,
    read_public_key,
    replace_key,
    set_pin,
    verify_pin,
)
from registry.secrets.signing import Signer, verify_signature
from tests.registry.processes import in_child, survives_kill_at

PIN, WRONG = "12345678", "00000000"
CHEAP = 2**4
"""A PIN that costs nothing to try, which tests do often."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    set_pin(tmp_path / "pin", PIN, cost=CHEAP)
    return tmp_path / "pin"


def opened(path: Path, pin: str = PIN) -> Signer:
    signer = verify_pin(path, pin, 1.0).signer
    assert signer is not None
    return signer


def test_only_the_pin_opens_the_key(path: Path) -> None:
    assert verify_pin(path, PIN, 1.0) == PinCheck(True)
    assert opened(path).public == read_public_key(path)
    wrong = verify_pin(path, WRONG, 1.0)
    assert (wrong, wrong.signer) == (PinCheck(False), None)
    assert path.stat().st_mode & 0o777 == 0o600


def test_neither_the_pin_nor_the_key_can_be_read_off_the_file(path: Path) -> None:
    content = path.read_bytes()
    assert PIN.encode() not in content
    assert opened(path).export_secret().hex().encode() not in content


def test_a_second_first_pin_is_refused_and_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(PinUnusable, match="change-pin"):
        set_pin(path, "another pin", cost=CHEAP)
    assert path.read_bytes() == before


def test_another_pin_opens_the_same_key_and_the_old_one_nothing(path: Path) -> None:
    before = read_public_key(path)
    change_pin(path, opened(path), "another pin")
    assert opened(path, "another pin").public == before
    assert not verify_pin(path, PIN, 1.0).ok


def test_only_the_key_of_the_file_changes_its_pin(path: Path) -> None:
    before = path.read_bytes()
    for change in (change_pin, replace_key):
        with pytest.raises(PinUnusable, match="another one"):
            change(path, Signer.generate(), "another pin")
    assert path.read_bytes() == before


def test_a_new_key_is_named_by_the_old_one(path: Path) -> None:
    first = opened(path)
    second = replace_key(path, first, PIN)
    third = replace_key(path, second, "another pin")
    assert find_successors(path, first.public) == (second.public, third.public)
    assert find_successors(path, second.public) == (third.public,)
    assert read_public_key(path) == third.public
    assert opened(path, "another pin").public == third.public


def test_a_successor_that_the_old_key_did_not_sign_is_none(path: Path) -> None:
    first = opened(path)
    replace_key(path, first, PIN)
    record = json.loads(path.read_bytes())
    stranger = Signer.generate()
    record["succession"][0][1] = stranger.public
    path.write_text(json.dumps(record))
    assert find_successors(path, first.public) == ()
    body = {"kind": "succession", "old": first.public, "new": stranger.public}
    record["succession"][0][2] = stranger.sign(body)
    path.write_text(json.dumps(record))
    assert find_successors(path, first.public) == ()


def test_a_home_from_before_there_were_keys_gets_one_with_the_right_pin(tmp_path: Path) -> None:
    path = tmp_path / "pin"
    salt = bytes(16)
    digest = hashlib.scrypt(b"246810", salt=salt, n=CHEAP, r=8, p=1).hex()
    path.write_text(json.dumps({"salt": salt.hex(), "hash": digest, "n": CHEAP, "r": 8, "p": 1}))
    assert not verify_pin(path, WRONG, 1.0).ok
    assert read_public_key(path) == ""
    signer = opened(path, "246810")
    assert read_public_key(path) == signer.public
    assert json.loads(path.read_bytes())["hash"] == ""
    assert opened(path, "246810").public == signer.public
    assert not verify_pin(path, WRONG, 1.0).ok


@pytest.mark.parametrize("field", ["salt", "sealed", "public"])
def test_a_changed_file_opens_for_nobody(path: Path, field: str) -> None:
    other = path.with_name("other")
    set_pin(other, PIN, cost=CHEAP)
    record = json.loads(path.read_bytes())
    record[field] = json.loads(other.read_bytes())[field]
    path.write_text(json.dumps(record))
    assert verify_pin(path, PIN, 1.0) == PinCheck(False)


def test_five_wrong_pins_in_a_row_lock_for_a_minute_also_over_a_restart(path: Path) -> None:
    for _ in range(ATTEMPTS):
        assert verify_pin(path, WRONG, 100.0) == PinCheck(False)
    until = 100.0 + LOCK_SECONDS
    elsewhere = in_child(
        lambda: None, lambda: _expect(verify_pin(path, PIN, 101.0), PinCheck(False, until))
    )
    assert elsewhere == 0
    assert verify_pin(path, PIN, until - 0.1) == PinCheck(False, until)
    assert verify_pin(path, WRONG, until) == PinCheck(False)
    assert verify_pin(path, PIN, until + 1) == PinCheck(False, until + LOCK_SECONDS)
    assert verify_pin(path, PIN, until + LOCK_SECONDS).ok
    assert verify_pin(path, WRONG, until + LOCK_SECONDS) == PinCheck(False)
    assert verify_pin(path, PIN, until + LOCK_SECONDS).ok


def test_killing_the_check_does_not_buy_another_try(path: Path) -> None:
    finished = False
    for step in range(50):
        if finished := survives_kill_at(step, lambda: verify_pin(path, WRONG, 100.0)):
            break
    assert finished
    assert json.loads(path.read_bytes())["failures"] >= 1


def test_killing_a_change_leaves_one_of_the_two_pins(path: Path) -> None:
    signer = opened(path)
    finished = False
    for step in range(50):
        finished = survives_kill_at(step, lambda: change_pin(path, signer, "another pin"))
        checks = [verify_pin(path, pin, 1000.0 * step) for pin in (PIN, "another pin")]
        assert [check.ok for check in checks].count(True) == 1
        if finished:
            break
    assert finished


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"[]",
        b"{}",
        b'{"salt": 1}',
        b'{"salt": "00", "n": 1073741824}',
        b'{"salt": "00", "r": 4096}',
        b'{"salt": "zz"}',
        b'{"salt": "00", "succession": [1]}',
    ],
)
def test_without_a_readable_pin_nothing_is_verified(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "pin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PinUnusable, match="toolwright setup"):
        verify_pin(path, PIN, 1.0)


def test_a_short_pin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PinUnusable, match="8 characters"):
        set_pin(tmp_path / "pin", "1234567", cost=CHEAP)
    assert not (tmp_path / "pin").exists()


def test_a_signer_neither_shows_nor_copies_its_key() -> None:
    signer = Signer.generate()
    assert signer.export_secret().hex() not in repr(signer)
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leave(signer)


@pytest.mark.parametrize("signature", ["", "00", "zz", "00" * 64])
def test_what_is_no_signature_does_not_fit(signature: str) -> None:
    signer = Signer.generate()
    assert verify_signature(signer.public, {"a": 1}, signer.sign({"a": 1}))
    assert not verify_signature(signer.public, {"a": 1}, signature)
    assert not verify_signature(signer.public, {"a": 2}, signer.sign({"a": 1}))
    assert not verify_signature("not a key", {"a": 1}, signer.sign({"a": 1}))


def _expect(found: object, wanted: object) -> None:
    assert found == wanted


def test_a_clock_that_was_set_back_does_not_lengthen_a_lock(path: Path) -> None:
    for _ in range(ATTEMPTS):
        verify_pin(path, WRONG, 1e9)
    assert verify_pin(path, PIN, 100.0) == PinCheck(False, 100.0 + LOCK_SECONDS)
    assert verify_pin(path, PIN, 99.9 + LOCK_SECONDS) == PinCheck(False, 100.0 + LOCK_SECONDS)
    assert verify_pin(path, PIN, 100.0 + LOCK_SECONDS).ok
