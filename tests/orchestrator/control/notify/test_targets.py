"""Messages about waiting requests, through real Apprise, to a receiver on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.sending import Sending
from orchestrator.approvals.signing_key import build_authority, open_key
from orchestrator.control.notify.announcer import TRIES, Announcer, deliver_message
from orchestrator.control.notify.links import OneTimeLinks
from orchestrator.control.notify.messages import (
    ApprovalBackground,
    PushMessage,
    build_approval_message,
    redact_value,
)
from orchestrator.control.notify.targets import (
    PushTarget,
    add_notice_target,
    add_sealed_target,
    create_deputy,
    list_sealed_targets,
    load_notice_targets,
    open_sealed_targets,
    remove_sealed_target,
    reseal_targets,
)
from orchestrator.control.server import ControlPlane
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.approvals.decisions import build_forgery_check
from registry.models import Approval
from registry.secrets.signing import Signer
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from tests.orchestrator.approvals.test_gate import BLANK
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import TOKEN, listening
from tests.registry.samples import approval

pytest.importorskip("apprise")
# Apprise imports it when it is first used.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@dataclass
class Receiver:
    """What a service got: (headers, body). `broken` makes it refuse."""

    address: str = ""
    got: list[tuple[dict[str, str], str]] = field(default_factory=list)
    broken: bool = False

    def texts(self) -> list[str]:
        return [json.loads(body)["message"] for _, body in self.got]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length).decode()
            if not here.broken:
                here.got.append((dict(self.headers), body))
            self.send_response(500 if here.broken else 200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield here
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def signer(settings: Settings) -> Signer:
    opened = open_key(settings, PIN, time.time()).signer
    assert opened is not None
    return opened


@pytest.fixture
def announcer(settings: Settings, store: Store, receiver: Receiver, signer: Signer) -> Announcer:
    """One that is unlocked and sends links to the receiver."""
    return Announcer(
        store,
        open_vault(settings),
        OneTimeLinks(),
        "http://control.test",
        (PushTarget("phone", f"json://{receiver.address}/", links=True),),
        create_deputy(signer, time.time()),
    )


@dataclass
class Desk:
    """A control plane with links. `kills` counts how often everything was frozen, `sent`
    are the approvals whose writes were to be sent."""

    url: str
    announcer: Announcer
    kills: list[float] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def links(self, receiver: Receiver) -> dict[str, str]:
        """The newest message's links, by title, at this control plane's address."""
        found = {}
        for line in receiver.texts()[-1].splitlines():
            title, colon, url = line.partition(": http://control.test")
            if colon:
                found[title] = self.url + url
        return found

    def ask(self, method: str, url: str) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=120) as client:
            return client.request(method, url)


@pytest.fixture
def desk(settings: Settings, store: Store, announcer: Announcer) -> Iterator[Desk]:
    here = Desk("", announcer)

    def kill_sandboxes() -> int:
        here.kills.append(time.time())
        return 0

    def send(approval: str) -> Sending:
        here.sent.append(approval)
        return Sending(frozen=True)

    control = ControlPlane(settings, store, TOKEN, kill_sandboxes, announcer, send)
    with listening(control.build_application()) as here.url:
        yield here


def test_a_message_says_what_would_happen_and_carries_three_links(
    announcer: Announcer, receiver: Receiver, waiting: Approval
) -> None:
    assert announcer.announce_waiting() == 1
    (text,) = receiver.texts()
    for said in ("POST /zones", "api.example", '"name": "example.org"', "never done before"):
        assert said in text
    assert [line.partition(":")[0] for line in text.splitlines() if "/decide?token=" in line] == [
        "Approve",
        "Reject",
        "Freeze everything",
    ]


def test_a_request_is_told_once_and_only_while_it_waits(
    announcer: Announcer, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    store.approvals.add_pending(replace(waiting, id="a2"))
    store.approvals.decide("a2", False, by="ann", now=time.time())
    assert [announcer.announce_waiting(), announcer.announce_waiting()] == [1, 0]
    assert len(receiver.got) == 1


def test_a_link_approves_exactly_its_request_once(
    desk: Desk, receiver: Receiver, store: Store, settings: Settings, waiting: Approval
) -> None:
    desk.announcer.announce_waiting()
    links = desk.links(receiver)
    shown = desk.ask("GET", links["Approve"])
    assert (shown.status_code, waiting.wire.url in shown.text) == (200, True)
    assert store.approvals.get(waiting.id).state == "pending"
    assert desk.ask("POST", links["Approve"]).status_code == 200
    after = store.approvals.get(waiting.id)
    assert (after.state, after.decided_by, desk.sent) == ("approved", "link", [waiting.id])
    forgery = build_forgery_check(build_authority(settings).load_key())
    assert forgery(after, time.time()) == ""
    assert store.approvals.claim(waiting.id, "p1", time.time(), forgery) is not None
    replayed = desk.ask("POST", links["Approve"])
    assert (replayed.status_code, "used already" in replayed.text) == (409, True)


def test_a_link_rejects(desk: Desk, receiver: Receiver, store: Store, waiting: Approval) -> None:
    desk.announcer.announce_waiting()
    links = desk.links(receiver)
    assert desk.ask("POST", links["Reject"]).status_code == 200
    assert store.approvals.get(waiting.id).state == "rejected"
    late = desk.ask("POST", links["Approve"])
    assert (late.status_code, "link decided it" in late.text) == (409, True)
    assert desk.ask("GET", links["Approve"]).status_code == 409


def test_who_comes_second_hears_who_was_first(
    desk: Desk, receiver: Receiver, store: Store, settings: Settings, waiting: Approval
) -> None:
    desk.announcer.announce_waiting()
    links = desk.links(receiver)
    decided = decide_with_pin(
        settings, store, Decision(waiting.id, False, PIN, by="page"), time.time()
    )
    assert decided.state == "rejected"
    late = desk.ask("POST", links["Approve"])
    assert (late.status_code, "page decided it" in late.text) == (409, True)
    assert store.approvals.get(waiting.id).state == "rejected"


def test_many_channels_at_once_decide_once(
    desk: Desk, receiver: Receiver, store: Store, settings: Settings, waiting: Approval
) -> None:
    desk.announcer.announce_waiting()
    links = desk.links(receiver)
    barrier, answers = threading.Barrier(6), []

    def by_link(title: str) -> None:
        barrier.wait()
        answers.append(desk.ask("POST", links[title]).status_code == 200)

    def by_pin(approve: bool) -> None:
        decision = Decision(waiting.id, approve, PIN, by="terminal")
        barrier.wait()
        answers.append(not decide_with_pin(settings, store, decision, time.time()).refused)

    threads = [
        threading.Thread(target=target, args=(given,))
        for target, given in (
            (by_link, "Approve"),
            (by_link, "Reject"),
            (by_link, "Approve"),
            (by_pin, True),
            (by_pin, False),
            (by_pin, True),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 5 + [True]
    kinds = [row.kind for row in store.audit.find() if row.subject == waiting.id]
    assert len(kinds) == 2


def test_a_freeze_link_freezes_without_a_pin(
    desk: Desk, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    desk.announcer.announce_waiting()
    link = desk.links(receiver)["Freeze everything"]
    assert desk.ask("GET", link).status_code == 200
    assert not store.processes.get_freeze().frozen
    assert desk.ask("POST", link).status_code == 200
    assert (store.processes.get_freeze().frozen, store.processes.get_freeze().by) == (True, "link")
    assert desk.kills
    assert desk.ask("POST", link).status_code == 409


def test_forged_expired_and_foreign_links_do_nothing_and_say_so(
    desk: Desk, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    links = desk.announcer.links
    of_it = (waiting.id, waiting.wire_digest)
    tokens = {
        "": 403,
        "rubbish": 403,
        OneTimeLinks().create_token("approve", *of_it, time.time() + 60): 403,
        links.create_token("approve", *of_it, time.time() - 1): 410,
        links.create_token("approve", waiting.id, "0" * 64, time.time() + 60): 404,
        links.create_token("approve", "none", waiting.wire_digest, time.time() + 60): 404,
    }
    for token, status in tokens.items():
        for method in ("GET", "POST"):
            answer = desk.ask(method, f"{desk.url}/decide?token={token}")
            assert answer.status_code in (status, 409)
            assert "script" not in answer.text
    assert store.approvals.get(waiting.id).state == "pending"


def test_when_the_deputy_ends_links_approve_nothing_and_still_reject(
    desk: Desk, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    desk.announcer.announce_waiting()
    links = desk.links(receiver)
    desk.announcer.deputy = None
    locked = desk.ask("POST", links["Approve"])
    assert (locked.status_code, "locked" in locked.text) == (409, True)
    assert desk.ask("POST", links["Reject"]).status_code == 200
    assert store.approvals.get(waiting.id).state == "rejected"


def test_what_a_link_shows_of_a_request_is_text(
    desk: Desk, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    markup = "</pre><script>alert(1)</script>"
    store.approvals.add_pending(replace(waiting, id="a2", task=markup, reason=markup))
    token = desk.announcer.links.create_token(
        "approve", "a2", waiting.wire_digest, time.time() + 60
    )
    shown = desk.ask("GET", f"{desk.url}/decide?token={token}")
    assert "<script" not in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert shown.headers["referrer-policy"] == "no-referrer"
    assert shown.headers["cache-control"] == "no-store"


def test_without_an_announcer_there_are_no_links(settings: Settings, store: Store) -> None:
    with listening(ControlPlane(settings, store, TOKEN, lambda: 0).build_application()) as url:
        assert httpx.get(f"{url}/decide?token=x", trust_env=False, timeout=60).status_code == 404


def test_a_service_that_refuses_is_tried_again_and_then_given_up(
    announcer: Announcer, receiver: Receiver, store: Store, waiting: Approval
) -> None:
    receiver.broken = True
    moment = time.time()
    for number in range(TRIES + 2):
        announcer.now = lambda number=number: moment + 60 * number  # type: ignore[misc]
        assert announcer.announce_waiting() == 0
    failed = [row for row in store.audit.find() if row.kind == "push.failed"]
    assert len(failed) == 1
    assert receiver.address not in failed[0].payload


def test_a_notice_has_no_links_and_is_not_repeated_by_the_next_control_plane(
    settings: Settings, store: Store, receiver: Receiver, waiting: Approval
) -> None:
    vault = open_vault(settings)
    add_notice_target(vault, "desk", f"json://{receiver.address}/")
    first = Announcer(store, vault, OneTimeLinks(), "http://control.test")
    assert [first.announce_waiting(), first.announce_waiting()] == [1, 0]
    assert "/decide" not in receiver.texts()[0]
    assert Announcer(store, vault, OneTimeLinks(), "http://control.test").announce_waiting() == 0


def test_while_locked_nothing_goes_to_a_target_with_links(
    announcer: Announcer, receiver: Receiver, waiting: Approval
) -> None:
    announcer.deputy = None
    assert announcer.announce_waiting() == 0
    assert receiver.got == []


def test_ntfy_gets_buttons(announcer: Announcer, receiver: Receiver, waiting: Approval) -> None:
    announcer.linked = (PushTarget("ntfy", f"ntfy://{receiver.address}/topic", links=True),)
    assert announcer.announce_waiting() == 1
    headers, body = receiver.got[0]
    told = {key.lower(): value for key, value in headers.items()}
    buttons = told.get("x-actions") or json.dumps(json.loads(body).get("actions"))
    assert buttons.count("/decide?token=") == 3
    assert "Approve" in buttons


def test_secrets_never_leave_in_a_message(
    announcer: Announcer, receiver: Receiver, store: Store, settings: Settings, waiting: Approval
) -> None:
    open_vault(settings).put("dns", "key", Secret("v4ult-value"))
    arguments = {"password": "hunter22", "note": "with v4ult-value inside", "apiKey": {"a": "b"}}
    store.approvals.add_pending(replace(waiting, id="a2", arguments=arguments))
    announcer.announce_waiting()
    sent = json.dumps(receiver.texts())
    assert "hunter22" not in sent
    assert "v4ult-value" not in sent
    assert sent.count("[redacted]") == 3


HOSTILE = "\x1b[31mred\x07 \u202egnp.exe\u2066 \U000e0041tag\nAPPROVED: yes"


def test_a_message_cannot_be_given_lines_or_directions_by_what_it_reports() -> None:
    hostile = approval(task=HOSTILE, reason=HOSTILE, session=HOSTILE, arguments={"a": HOSTILE})
    message = build_approval_message(hostile, ApprovalBackground(True, BLANK, BLANK))
    assert not {"\x1b", "\x07", "\u202e", "\u2066", "\U000e0041"} & set(message.text)
    assert not [line for line in message.text.splitlines() if line.startswith("APPROVED")]
    assert "DELETE" in message.text
    assert (
        len(
            build_approval_message(
                approval(task="x" * 10**6), ApprovalBackground(False, BLANK, BLANK)
            ).text
        )
        < 3000
    )


@pytest.mark.parametrize("name", ["password", "API-Key", "access_token", "x-auth", "clientSecret"])
def test_what_is_under_a_secrets_name_is_redacted(name: str) -> None:
    assert redact_value({"a": [{name: "value"}]}) == {"a": [{name: "[redacted]"}]}
    assert redact_value({"zone": "value", "keyboard": 1}) == {"zone": "value", "keyboard": 1}


def test_a_sealed_url_opens_only_with_the_key(settings: Settings, signer: Signer) -> None:
    url = "json://user:s3cret@127.0.0.1/"
    add_sealed_target(settings.push, "phone", url, signer)
    assert b"s3cret" not in settings.push.read_bytes()
    assert list_sealed_targets(settings.push) == {"phone": "json"}
    (target,) = open_sealed_targets(settings.push, signer)
    assert (target.url, target.links, "s3cret" in repr(target)) == (url, True, False)
    with pytest.raises(OrchestratorError):
        open_sealed_targets(settings.push, Signer.generate())
    fresh = Signer.generate()
    reseal_targets(settings.push, signer, fresh)
    assert open_sealed_targets(settings.push, fresh)[0].url == url
    assert remove_sealed_target(settings.push, "phone")
    assert not remove_sealed_target(settings.push, "phone")


def test_a_sealed_url_cannot_be_put_under_another_name(settings: Settings, signer: Signer) -> None:
    add_sealed_target(settings.push, "phone", "json://127.0.0.1/", signer)
    value = json.loads(settings.push.read_bytes())
    settings.push.write_text(json.dumps({"other": value["phone"]}))
    with pytest.raises(OrchestratorError):
        open_sealed_targets(settings.push, signer)


@pytest.mark.parametrize("url", ["", "nowhere", "://x", "a b://x", "json://"])
def test_what_is_no_url_is_not_added(settings: Settings, signer: Signer, url: str) -> None:
    with pytest.raises(OrchestratorError):
        add_sealed_target(settings.push, "phone", url, signer)
    vault = open_vault(settings)
    with pytest.raises(OrchestratorError):
        add_notice_target(vault, "phone", url)
    assert load_notice_targets(vault) == ()


def test_a_kind_of_url_that_apprise_does_not_know_is_told() -> None:
    problem = deliver_message(
        PushTarget("x", "nosuchthing://a", links=False), PushMessage("t", "x")
    )
    assert "does not know" in problem
