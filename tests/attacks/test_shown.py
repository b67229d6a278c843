"""What a person decides about is shown whole, and nothing of it unseen, or it cannot be decided
there; and what nobody can be shown hides nothing else.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from orchestrator.approvals.sending import Sending
from orchestrator.approvals.signing_key import open_key
from orchestrator.approvals.text import hash_approval, render_body
from orchestrator.cli.main import toolwright
from orchestrator.control.notify.announcer import Announcer
from orchestrator.control.notify.links import OneTimeLinks
from orchestrator.control.notify.messages import ApprovalBackground, build_approval_message
from orchestrator.control.notify.targets import create_deputy
from orchestrator.control.page import render_panels
from orchestrator.control.server import ControlPlane
from orchestrator.settings import Settings
from registry.errors import ApprovalDamaged
from registry.models import Approval, Job
from registry.needs import PermissionNeed
from registry.secrets.vault import open_vault
from registry.store import Store
from sandbox.wire.exchange import WireRequest
from tests.orchestrator.approvals.test_gate import BLANK
from tests.orchestrator.conftest import PIN, pin_record, settings, store, waiting
from tests.orchestrator.plane import TOKEN, Plane, listening, plane

__all__ = ["pin_record", "plane", "settings", "store", "waiting"]


def run(settings: Settings, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)


@pytest.fixture
def pin_file(tmp_path: Path) -> str:
    (tmp_path / "pin").write_text(PIN)
    return str(tmp_path / "pin")


@pytest.fixture
def wrong_pin(tmp_path: Path) -> str:
    (tmp_path / "wrong").write_text("no PIN of yours")
    return str(tmp_path / "wrong")


@pytest.fixture
def announcer(settings: Settings, store: Store) -> Announcer:
    signer = open_key(settings, PIN, time.time()).signer
    assert signer is not None
    deputy = create_deputy(signer, time.time())
    return Announcer(store, open_vault(settings), OneTimeLinks(), "", (), deputy)


@pytest.fixture
def linked(settings: Settings, store: Store, announcer: Announcer) -> Iterator[str]:
    """Where the links of messages lead to."""
    control = ControlPlane(
        settings, store, TOKEN, lambda: 0, announcer, send=lambda _: Sending(frozen=True)
    )
    with listening(control.build_application()) as url:
        yield url


def follow(url: str, announcer: Announcer, approval: Approval, method: str = "GET") -> str:
    of_it = (approval.id, hash_approval(approval), time.time() + 60)
    token = announcer.links.create_token("approve", *of_it)
    with httpx.Client(trust_env=False, timeout=120) as client:
        return client.request(method, f"{url}/decide?token={token}").text


def asked(store: Store, waiting: Approval, **changes: object) -> Approval:
    store.approvals.add_pending(replace(waiting, id="other", **changes))  # type: ignore[arg-type]
    return store.approvals.get("other")


UNSEEN = {
    "variation selector": "\ufe0f",
    "supplementary variation selector": "\U000e0110",
    "Hangul filler": "\u3164",
    "halfwidth Hangul filler": "\uffa0",
    "Hangul choseong filler": "\u115f",
    "Khmer vowel inherent": "\u17b4",
    "Mongolian vowel separator": "\u180e",
    "combining grapheme joiner": "\u034f",
    "braille blank": "\u2800",
    "tag": "\U000e0041",
    "right-to-left override": "\u202e",
    "isolate": "\u2067",
    "zero width space": "\u200b",
    "word joiner": "\u2060",
    "soft hyphen": "\u00ad",
    "no-break space": "\u00a0",
    "ideographic space": "\u3000",
    "line separator": "\u2028",
    "musical format": "\U0001d173",
    "null notehead": "\U0001d159",
    "unassigned ignorable": "\U000e0fff",
    "private use": "\ue000",
    "escape": "\x1b",
    "mark on a digit": "1\u0338",
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_seen_is_written_out_wherever_a_person_decides(
    name: str,
    settings: Settings,
    store: Store,
    waiting: Approval,
    announcer: Announcer,
    linked: str,
    wrong_pin: str,
) -> None:
    hidden = UNSEEN[name]
    written = f"\\u{{{ord(hidden[-1]):x}}}"
    wire = replace(waiting.wire, body=json.dumps({"n": hidden}, ensure_ascii=False).encode())
    approval = asked(store, waiting, wire=wire, reason=f"a{hidden}b", arguments={"n": hidden})
    shown = {
        "page": render_panels(store)["waiting"],
        "terminal": run(settings, "approve", "other", "--pin-file", wrong_pin).stdout,
        "list": run(settings, "approvals").stdout,
        "link": follow(linked, announcer, approval),
        "message": build_approval_message(approval, ApprovalBackground(False, BLANK, BLANK)).text,
    }
    for place, text in shown.items():
        assert hidden not in text, place
        assert written in text.replace("\n", ""), place


PLAIN = "naïve café, 日本語, हिन्दी, tiếng Việt, עִבְרִית, العربية, ½ € 🚀"


def test_letters_of_every_script_are_shown_as_they_are(
    settings: Settings,
    store: Store,
    waiting: Approval,
    announcer: Announcer,
    linked: str,
    wrong_pin: str,
) -> None:
    wire = replace(waiting.wire, body=PLAIN.encode())
    approval = asked(store, waiting, wire=wire)
    for text in (
        render_panels(store)["waiting"],
        run(settings, "approve", "other", "--pin-file", wrong_pin).stdout,
        follow(linked, announcer, approval),
        build_approval_message(approval, ApprovalBackground(False, BLANK, BLANK)).text,
    ):
        assert PLAIN in text


def test_what_looks_like_an_escape_is_not_taken_for_one(store: Store, waiting: Approval) -> None:
    asked(store, waiting, wire=replace(waiting.wire, body=b"a\\u{202e}b"))
    assert "a\\u{5c}u{202e}b" in render_panels(store)["waiting"]


def test_a_claim_or_a_body_cannot_write_lines_of_ours(store: Store, waiting: Approval) -> None:
    forged = "x\nuntil 2099-01-01\nsent through nothing"
    asked(store, waiting, task=forged, wire=replace(waiting.wire, body=forged.encode()))
    lines = render_panels(store)["waiting"].splitlines()
    assert not [line for line in lines if line.startswith(("until 2099", "sent through"))]


MANY = tuple(f"network:host-{number}.example:443" for number in range(40))
LAST = "fs:/home:rw"


def parked(store: Store, permissions: tuple[str, ...]) -> Job:
    store.jobs.create(Job("j1", "forge", {"task": "x"}, created=1.0, updated=1.0))
    store.jobs.claim("j1", "p1", 2.0)
    need = PermissionNeed("dns", permissions)
    return store.drafts.park_job("j1", 1, {"brief": "write it"}, 3.0, "waits", need)


def test_permissions_are_allowed_on_the_page_only_where_all_of_them_stand(store: Store) -> None:
    parked(store, (*MANY, LAST))
    card = render_panels(store)["waiting"]
    assert (LAST in card, 'id="allow-waits-j1"' in card) == (True, True)


def test_more_than_a_page_shows_is_not_allowed_there(store: Store) -> None:
    parked(store, (*MANY * 30, LAST))
    card = render_panels(store)["waiting"]
    assert "data-post" not in card
    assert "toolwright allow j1" in card


def test_a_terminal_shows_all_that_is_allowed_before_it_asks_for_the_pin(
    settings: Settings, store: Store, wrong_pin: str
) -> None:
    parked(store, (*MANY, LAST))
    told = run(settings, "jobs", "j1", "--allow", "--pin-file", wrong_pin)
    assert told.exit_code == 1
    shown = re.sub(r"\s+", " ", told.output)
    for permission in (*MANY, LAST):
        assert f"dns: {permission}" in shown
    assert shown.index(LAST) < shown.index("not the PIN")


LONG = replace(
    WireRequest("POST", "https://api.example/zones"), body=b"x" * 5000 + b" and delete all"
)


def test_a_request_that_is_not_shown_whole_is_not_approved_there(
    store: Store, waiting: Approval, announcer: Announcer, linked: str
) -> None:
    approval = asked(store, waiting, wire=LONG)
    card = render_panels(store)["waiting"]
    assert 'id="approve-other"' not in card
    assert ('id="reject-other"' in card, "toolwright approve other" in card) == (True, True)
    assert "<button" not in follow(linked, announcer, approval)
    follow(linked, announcer, approval, "POST")
    message = build_approval_message(approval, ApprovalBackground(False, BLANK, BLANK))
    assert not message.whole
    assert store.approvals.get("other").state == "pending"


def test_a_request_that_is_shown_whole_is_approved_there(
    store: Store, waiting: Approval, announcer: Announcer, linked: str
) -> None:
    assert f'id="approve-{waiting.id}"' in render_panels(store)["waiting"]
    message = build_approval_message(waiting, ApprovalBackground(False, BLANK, BLANK))
    assert (message.whole, "POST https://api.example/zones" in message.text) == (True, True)
    assert "<button" in follow(linked, announcer, waiting)
    follow(linked, announcer, waiting, "POST")
    assert store.approvals.get(waiting.id).state == "approved"


def test_a_terminal_shows_a_long_request_whole_and_its_head_last(
    settings: Settings, store: Store, waiting: Approval, pin_file: str
) -> None:
    asked(store, waiting, wire=LONG)
    # So that what is decided is not sent as well.
    store.processes.freeze(time.time(), "test", "")
    told = run(settings, "approve", "other", "--pin-file", pin_file)
    assert (told.exit_code, "and delete all" in told.stdout) == (0, True)
    assert told.stdout.rindex(LONG.url) > told.stdout.index("and delete all")
    assert store.approvals.get("other").state == "approved"


DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000


@pytest.mark.parametrize("body", [DEEP, b"[" * 900 + b"]" * 900, b"[" * 10**6])
def test_a_body_without_end_hides_nothing_and_is_rejected(
    body: bytes, settings: Settings, store: Store, waiting: Approval, plane: Plane, pin_file: str
) -> None:
    wire = WireRequest("PUT", "https://api.example/zones/1", (), body)
    asked(store, waiting, wire=wire, present='{"a": 1}')
    assert waiting.id in render_panels(store)["waiting"]
    listed = {row["approval"] for row in plane.ask("GET", "/approvals").json()}
    assert listed == {waiting.id, "other"}
    assert waiting.id in run(settings, "approvals").stdout
    assert run(settings, "reject", "other", "--pin-file", pin_file).exit_code == 0
    assert store.approvals.get("other").state == "rejected"


def test_what_a_write_changes_is_shown_where_it_is_not_too_deep(
    store: Store, waiting: Approval
) -> None:
    body = b'{"a":' * 90 + b"2" + b"}" * 90
    wire = WireRequest("PUT", "https://api.example/zones/1", (), body)
    asked(store, waiting, wire=wire, present=body.replace(b"2", b"1").decode())
    assert "1 -&gt; 2" in render_panels(store)["waiting"]


DAMAGE = {
    "no request": "wire = 'rubbish'",
    "a request without fields": "wire = '{}'",
    "arguments without end": f"arguments = '{'[' * 5000 + ']' * 5000}'",
    "arguments that are too deep": f"arguments = '{'[' * 900 + ']' * 900}'",
    "a word for a version": "version = 'seven'",
    "a word for a time": "created = 'yesterday'",
    "a time without end": "expires = 9e999",
    "bytes for a text": "reason = x'ff00'",
    "no UTF-8": "task = CAST(x'ff' AS TEXT)",
    "steps of nothing": "steps = '7'",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_row_that_cannot_be_read_hides_no_other_and_can_be_rejected(
    name: str, settings: Settings, store: Store, waiting: Approval, plane: Plane, pin_file: str
) -> None:
    asked(store, waiting)
    connection = sqlite3.connect(store.path, isolation_level=None, timeout=60)
    connection.execute(f"UPDATE approvals SET {DAMAGE[name]} WHERE id = 'other'")
    connection.close()
    with pytest.raises(ApprovalDamaged):
        store.approvals.get("other")
    card = render_panels(store)["waiting"]
    assert f'id="approve-{waiting.id}"' in card
    assert ("other cannot be read" in card, 'id="approve-other"' in card) == (True, False)
    assert [row["approval"] for row in plane.ask("GET", "/approvals").json()] == [waiting.id]
    told = run(settings, "approvals")
    assert (waiting.id in told.stdout, "other cannot be read" in told.output) == (True, True)
    assert run(settings, "approve", "other", "--pin-file", pin_file).exit_code == 1
    assert run(settings, "reject", "other", "--pin-file", pin_file).exit_code == 0
    assert store.approvals.find_damaged() == ()
    # So that nobody is started to send it.
    store.processes.freeze(time.time(), "test")
    assert run(settings, "approve", waiting.id, "--pin-file", pin_file).exit_code == 0
    assert store.approvals.get(waiting.id).state == "approved"


def test_bytes_that_are_no_text_are_shown_as_no_text_is() -> None:
    bodies = (b"a\xffb", b"a\\xffb", b"a\\udcffb", b"a\\u{dcff}b", b"a\xc3\xbfb", b"a\xef\xbf\xbdb")
    shown = [render_body(body) for body in bodies]
    assert shown[0] == ["| a\\u{dcff}b"]
    assert len({*map(tuple, shown)}) == len(bodies)
    assert all(line.isascii() or body.decode() for body, (line,) in zip(bodies, shown, strict=True))
