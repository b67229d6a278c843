"""What loosens is signed, serial and checked against the audit: a shell of the same user, without
the PIN, edits the database and the servers' files, and gains nothing.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from registry.database import tables
from sandbox.bundle.model import read_bundle
from tests.functional.home import Home, until
from tests.functional.letters import Letters, letters_api, letters_home
from tests.functional.peer import Peer

TOOL = "letters.send_letter"


@pytest.fixture(scope="module")
def letters() -> Iterator[Letters]:
    with letters_api() as api:
        yield api


@pytest.fixture(scope="module")
def forged_home(
    any_engine: str, letters: Letters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    with letters_home(tmp_path_factory.mktemp("signing"), any_engine, letters) as home:
        yield home


@pytest.fixture
def home(forged_home: Home, tmp_path: Path) -> Home:
    """A copy, which a test may leave in any state."""
    path = tmp_path / "home"
    shutil.copytree(forged_home.path, path)
    home = Home(path, {**forged_home.environment, "TOOLWRIGHT_HOME": str(path)})
    home.settings.control.unlink(missing_ok=True)
    shutil.copy(forged_home.pin_file, home.pin_file)
    return home


@pytest.fixture
def client(home: Home) -> Iterator[Peer]:
    """A process that serves all the while."""
    with Peer(home, "serve", "--no-control") as peer:
        yield peer


@contextmanager
def database(home: Home) -> Iterator[sqlite3.Connection]:
    """The database in the hands of a shell: the triggers that keep the audit are dropped."""
    path = home.path / "toolwright.db"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        for trigger in ("audit_is_not_edited", "audit_is_not_deleted"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        try:
            yield connection
        finally:
            for guard in tables.AUDIT_GUARDS:
                connection.execute(guard)


def send(peer: Peer, text: str) -> dict[str, Any]:
    """Ask for a letter as if sending it were reading."""
    return peer.call("call_read", tool=TOOL, arguments={"body": {"text": text}})


def reads(peer: Peer, letters: Letters, text: str) -> bool:
    return not send(peer, text).get("isError") and text in letters.sent


def told(home: Home, *words: str) -> str:
    """What `doctor` and `audit verify` say of these words, both of which have to fail."""
    said = []
    for command in (("doctor",), ("audit", "verify")):
        done = home.run(*command, "--json")
        assert done.returncode != 0, done.stdout
        assert all(word in done.stdout for word in words), done.stdout
        said.append(done.stdout)
    return said[0]


def test_classified_withdrawn_and_classified_again_counts_and_nothing_is_told(
    home: Home, client: Peer, letters: Letters
) -> None:
    for number in range(2):
        home.person("classify", TOOL, "read")
        text = f"as a read {number}"
        until(partial(reads, client, letters, text), "the classification counts")
        assert home.run("classify", TOOL, "write").returncode == 0
        until(lambda: send(client, "no read").get("isError"), "it is withdrawn")
    assert "no read" not in letters.sent
    assert home.read("audit", "verify")["differences"] == []
    checks = {check["name"]: check["verdict"] for check in home.read("doctor")}
    assert (checks["registry"], checks["audit"]) == ("ok", "ok")


def forget_withdrawal(shell: sqlite3.Connection) -> None:
    """The newest rows of the audit about it are gone as well."""
    shell.execute(
        "DELETE FROM audit WHERE id = (SELECT max(id) FROM audit WHERE kind = 'classified')"
    )


def say_otherwise(shell: sqlite3.Connection) -> None:
    shell.execute("UPDATE audit SET kind = 'note' WHERE id = (SELECT max(id) FROM audit "
                  "WHERE kind = 'classified')")  # fmt: skip


@pytest.mark.parametrize(
    ("what", "besides"),
    [
        ("the row", None),
        ("the row without its withdrawal", forget_withdrawal),
        ("the row and another withdrawal", say_otherwise),
    ],
)
def test_a_withdrawn_classification_that_is_put_back_does_not_count(
    home: Home, client: Peer, letters: Letters, what: str,
    besides: Callable[[sqlite3.Connection], None] | None,
) -> None:  # fmt: skip
    home.person("classify", TOOL, "read")
    with database(home) as shell:
        (row,) = shell.execute("SELECT * FROM overrides").fetchall()
    home.person("classify", TOOL, "write")
    until(lambda: send(client, "before").get("isError"), "it is withdrawn")
    # What follows is signed as well, as it is once a minute.
    with Peer(home, "serve", "--no-control") as second:
        assert send(second, "before").get("isError")
        with database(home) as shell:
            shell.execute("DELETE FROM overrides")
            shell.execute(f"INSERT INTO overrides VALUES ({', '.join('?' * len(row))})", row)
            if besides:
                besides(shell)
        with Peer(home, "serve", "--no-control") as fresh:
            for peer in (client, second, fresh):
                assert send(peer, what).get("isError")
        assert what not in letters.sent
        told(home)


def make_read(folder: Path) -> str:
    """Edit a version's tools, so that the POST is a read; its digest then."""
    file = folder / "tools.json"
    document = json.loads(file.read_text())
    for tool in document["tools"]:
        tool |= {"access": "read", "destructive": False}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return read_bundle(folder).compute_digest()


def edit_version(home: Home, shell: sqlite3.Connection) -> str:
    place = home.settings.servers / "letters"
    digest = make_read(place)
    for kept in (place / "history").iterdir():
        with suppress(OSError):
            make_read(kept)
    shell.execute("UPDATE versions SET digest = ? WHERE entry = 'letters'", (digest,))
    shell.execute("UPDATE tools SET access = 'read' WHERE entry = 'letters'")
    return digest


def edit_publication(shell: sqlite3.Connection, digest: str) -> None:
    """The row that published it says the new digest."""
    shell.execute(
        "UPDATE audit SET payload = json_set(payload, '$.digest', ?) WHERE kind = 'publish'",
        (digest,),
    )


def publish_again(shell: sqlite3.Connection, digest: str) -> None:
    """A further row, of a chain of its own, publishes the version anew."""
    from registry.database.audit_chain import GENESIS, hash_row
    from registry.models import AuditRow

    payload = json.dumps({"digest": digest, "state": "active", "verdicts": {}, "version": 1})
    row = AuditRow(0, "own", 1, 1.0, "publish", "letters", payload, GENESIS, "")
    shell.execute(
        "INSERT INTO audit (id, chain, sequence, time, kind, subject, payload, previous, hash) "
        "VALUES ((SELECT min(id) - 1 FROM audit), ?, ?, ?, ?, ?, ?, ?, ?)",
        (row.chain, row.sequence, row.time, row.kind, row.subject, row.payload, row.previous,
         hash_row(row)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "besides"),
    [
        ("an edited version", None),
        ("an edited version and its publication", edit_publication),
        ("an edited version and a publication of its own", publish_again),
    ],
)
def test_a_version_whose_tools_were_edited_with_its_digest_is_not_run(
    home: Home, client: Peer, letters: Letters, what: str,
    besides: Callable[[sqlite3.Connection, str], None] | None,
) -> None:  # fmt: skip
    assert send(client, "before").get("isError")
    with database(home) as shell:
        digest = edit_version(home, shell)
        if besides:
            besides(shell, digest)
    with Peer(home, "serve", "--no-control") as fresh:
        for peer in (client, fresh):
            assert send(peer, what).get("isError")
    assert what not in letters.sent
    told(home)


LIFTS = {
    "the row says so": "UPDATE freeze SET frozen = 0",
    "the row is gone": "DELETE FROM freeze",
    "a freeze that never was": "UPDATE freeze SET epoch = 0, frozen = 0, since = 0",
    "a later epoch": "UPDATE freeze SET epoch = epoch + 1, frozen = 0",
    "the lift of an earlier one": "UPDATE freeze SET frozen = 0, epoch = :epoch, since = :since, "
    "\"by\" = :by, reason = '', lift = :lift",
    "the lift of an earlier one under this epoch": "UPDATE freeze SET frozen = 0, since = :since, "
    "\"by\" = :by, reason = '', lift = :lift",
}


def is_frozen(peer: Peer) -> bool:
    asked = peer.call("call_write", tool=TOOL, arguments={"body": {"text": "while frozen"}})
    return bool(asked.get("isError")) and "frozen" in json.dumps(asked)


def is_allowed(peer: Peer) -> bool:
    return not is_frozen(peer)


def forged(home: Home) -> int:
    with home.store() as store:
        return len([row for row in store.audit.find(limit=1000) if row.kind == "freeze.forged"])


def test_a_freeze_that_a_person_lifts_is_lifted_in_every_process(
    home: Home, client: Peer, letters: Letters
) -> None:
    with Peer(home, "serve", "--no-control") as second:
        assert home.read("kill", "--reason", "a test")["left"] == 0
        assert is_frozen(client)
        home.person("unfreeze")
        for peer in (client, second):
            until(partial(is_allowed, peer), "a person lifts it")
    with Peer(home, "serve", "--no-control") as fresh:
        assert not is_frozen(fresh)
    assert home.read("audit", "verify")["differences"] == []


def test_a_freeze_that_nobody_signed_away_is_put_back_and_told(home: Home, client: Peer) -> None:
    assert home.read("kill", "--reason", "a test")["left"] == 0
    before = forged(home)
    with database(home) as shell:
        shell.execute("UPDATE freeze SET frozen = 0")
    until(lambda: forged(home) > before, "it is seen")
    assert is_frozen(client)
    told(home, "lifted without the PIN")
    home.person("unfreeze")
    until(lambda: not is_frozen(client), "a person lifts it")
    assert home.read("audit", "verify")["differences"] == []
