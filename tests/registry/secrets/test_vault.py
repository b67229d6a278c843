from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.errors import VaultDamaged
from registry.secrets.vault import FileVault, Secret
from tests.registry.processes import race, survives_kill_at

TOKEN = "s3cr3t-\U0001f511-value"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault" / "secrets.vault"


def test_a_secret_comes_back_and_can_be_removed(path: Path) -> None:
    vault = FileVault(path)
    assert vault.get("dns", "key") is None
    vault.put("dns", "key", Secret("old"))
    vault.put("dns", "key", Secret(TOKEN))
    vault.put("web", "key", Secret("other"))
    assert FileVault(path).get("dns", "key") == Secret(TOKEN)
    assert vault.list_names() == (("dns", "key"), ("web", "key"))
    assert vault.delete("dns", "key")
    assert not vault.delete("dns", "key")
    assert vault.list_names() == (("web", "key"),)


def test_another_process_sees_a_new_secret_at_once(path: Path) -> None:
    reader = FileVault(path)
    assert reader.get("dns", "key") is None
    FileVault(path).put("dns", "key", Secret(TOKEN))
    assert reader.get("dns", "key") == Secret(TOKEN)


@pytest.mark.parametrize("passphrase", [None, Secret("a passphrase")])
def test_a_mark_tells_texts_apart_by_the_vaults_key(
    path: Path, tmp_path: Path, passphrase: Secret | None
) -> None:
    vault = FileVault(path, passphrase)
    vault.put("dns", "key", Secret(TOKEN))
    mark = vault.mark_text(TOKEN)
    vault.put("dns", "other", Secret("x"))
    assert FileVault(path, passphrase).mark_text(TOKEN) == mark
    assert vault.mark_text(TOKEN + "x") != mark
    elsewhere = FileVault(tmp_path / "elsewhere" / "secrets.vault", Secret("another one"))
    assert elsewhere.mark_text(TOKEN) != mark


def test_secrets_and_the_key_are_private_and_not_in_the_file(path: Path) -> None:
    FileVault(path).put("dns", "key", Secret(TOKEN))
    for file in (path, path.with_suffix(".key")):
        assert file.stat().st_mode & 0o777 == 0o600
        assert TOKEN.encode() not in file.read_bytes()
        assert b"dns" not in file.read_bytes()
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_secret_shows_itself_nowhere(path: Path) -> None:
    secret, vault = Secret(TOKEN), FileVault(path, Secret(TOKEN))
    for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]!r}", repr(vault)):
        assert TOKEN not in shown
    for leak in (pickle.dumps, copy.copy, json.dumps):
        with pytest.raises(TypeError) as raised:
            leak(secret)
        assert TOKEN not in str(raised.value)
    assert secret.reveal() == TOKEN


def test_a_passphrase_opens_the_vault_and_another_one_does_not(path: Path) -> None:
    FileVault(path, Secret("correct horse")).put("dns", "key", Secret(TOKEN))
    assert FileVault(path, Secret("correct horse")).get("dns", "key") == Secret(TOKEN)
    assert not path.with_suffix(".key").exists()
    for wrong in (FileVault(path, Secret("battery staple")), FileVault(path)):
        with pytest.raises(VaultDamaged):
            wrong.get("dns", "key")


def flip(content: bytes) -> bytes:
    envelope = json.loads(content)
    sealed = envelope["sealed"]
    envelope["sealed"] = ("A" if sealed[0] != "A" else "B") + sealed[1:]
    return json.dumps(envelope).encode()


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: b"[]",
        lambda content: b"{}",
        lambda content: b"\xff\x00",
        lambda content: content.replace(b'"nonce": "', b'"nonce": "!'),
    ],
)
def test_a_damaged_vault_says_so_and_is_not_overwritten(
    path: Path, damage: Callable[[bytes], bytes]
) -> None:
    vault = FileVault(path)
    vault.put("dns", "key", Secret(TOKEN))
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(VaultDamaged, match="restore") as raised:
        vault.get("dns", "key")
    assert TOKEN not in str(raised.value)
    with pytest.raises(VaultDamaged):
        vault.put("dns", "other", Secret("x"))
    with pytest.raises(VaultDamaged):
        vault.delete("dns", "key")
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("content", [None, b"short", b"x" * 33])
def test_a_vault_whose_key_is_lost_says_so_and_is_not_overwritten(
    path: Path, content: bytes | None
) -> None:
    vault = FileVault(path)
    vault.put("dns", "key", Secret(TOKEN))
    before = path.read_bytes()
    key = path.with_suffix(".key")
    if content is None:
        key.unlink()
    else:
        key.write_bytes(content)
    with pytest.raises(VaultDamaged, match="key"):
        vault.put("dns", "key", Secret("x"))
    assert path.read_bytes() == before
    assert key.exists() is (content is not None)


def test_a_kill_at_any_step_of_writing_leaves_the_old_or_the_new_secret(path: Path) -> None:
    vault = FileVault(path)
    vault.put("dns", "key", Secret("old"))
    for step in range(50):
        finished = survives_kill_at(step, lambda: vault.put("dns", "key", Secret("new")))
        kept = vault.get("dns", "key")
        assert kept in (Secret("old"), Secret("new"))
        assert not finished or kept == Secret("new")
        if finished:
            break
    assert step > 2


def test_racing_processes_lose_no_secret(path: Path) -> None:
    race(lambda number: FileVault(path).put("dns", f"key{number}", Secret(str(number))), 6)
    assert len(FileVault(path).list_names()) == 6
