"""A task that no server can do becomes one that works, on a real PowerDNS."""

from __future__ import annotations

import json
from pathlib import Path

from tests.functional.home import Home
from tests.functional.journey import TEXT, ZONE, ZONES, Journey, Requests, Write
from tests.world.powerdns import PowerDNS

RECORD_KEYS = {
    "tool_id",
    "created",
    "created_by",
    "reliability_score",
    "total_invocations",
    "successful_invocations",
    "avg_latency_ms",
    "last_failure",
    "last_failure_reason",
    "trust_level",
    "permissions",
}


def test_at_first_no_server_can_do_it(journey: Journey) -> None:
    assert not [c for c in journey.found_at_first if c["tool"].startswith("powerdns.")]


def test_a_host_that_nobody_named_is_asked_about_before_a_byte_goes_there(
    journey: Journey, powerdns: PowerDNS
) -> None:
    assert powerdns.url.removeprefix("http://") in journey.first_wait
    assert "source allow" in journey.first_wait
    # The fixture's own question whether the server is up is the only request so far.
    assert {path for _, path, _ in journey.asked_before_allowed} <= {"/api"}


def test_the_job_then_asks_for_the_credential_by_the_name_of_its_header(journey: Journey) -> None:
    assert "X-API-Key" in journey.second_wait
    assert "/api/docs" in journey.second_wait


def test_every_operation_is_compiled_proved_and_registered(
    journey: Journey, toolwright_home: Home
) -> None:
    assert journey.done["state"] == "done", journey.done["message"]
    result = journey.done["result"]
    assert (result["server"], result["state"], len(result["tools"])) == ("powerdns", "active", 36)
    shown = toolwright_home.read("show", "powerdns")
    reports = {report["stage"]: report for report in shown["reports"]}
    assert {name: report["verdict"] for name, report in reports.items()} == {
        "static": "passed",
        "mock": "passed",
        "live": "passed",
    }
    assert len({case["operation"] for case in reports["mock"]["cases"]}) == 36


def test_the_tool_for_the_task_is_then_offered(journey: Journey) -> None:
    offered = {candidate["tool"]: candidate for candidate in journey.found}
    assert offered["powerdns.list_zones"]["call_with"] == "call_read"
    assert offered["powerdns.list_zones"]["inputSchema"]["required"] == ["server_id"]


def test_zones_are_listed(journey: Journey) -> None:
    assert ZONE not in [zone["name"] for zone in journey.zones]
    assert ZONE in [zone["name"] for zone in journey.zones_after]


def test_a_write_is_shown_exactly_and_reaches_the_server_once_and_only_after_approval(
    journey: Journey,
) -> None:
    check_write(journey.created, "POST", ZONES, 201)
    check_write(journey.changed, "PATCH", f"{ZONES}/{ZONE}", 204)


def check_write(write: Write | None, method: str, path: str, status: int) -> None:
    assert write is not None
    request = write.pending["request"]
    assert (request["method"], request["url"].endswith(path)) == (method, True)
    assert write.listed["request"] == request
    assert writes(write.before, method, path) == []
    assert writes(write.after, method, path) == [status]
    assert write.settled["state"] == "done"


def writes(requests: Requests, method: str, path: str) -> list[int]:
    return [status for m, p, status in requests if (m, p) == (method, path)]


def test_the_shown_request_is_what_was_asked_for(journey: Journey) -> None:
    assert journey.created is not None
    assert journey.changed is not None
    zone = json.loads(journey.created.pending["request"]["body"])
    assert zone == {"name": ZONE, "kind": "Native", "nameservers": [f"ns1.{ZONE}"]}
    (record,) = json.loads(journey.changed.pending["request"]["body"])["rrsets"]
    assert record["records"][0]["content"] == TEXT


def test_the_zone_answers_dns_queries(journey: Journey) -> None:
    assert journey.soa is not None
    assert journey.txt is not None
    assert journey.soa.authoritative
    assert len(journey.soa.records) == 1
    assert journey.txt.records == (TEXT.strip('"'),)


def test_the_record_of_the_server_says_what_the_reference_system_says(
    journey: Journey, toolwright_home: Home, powerdns: PowerDNS
) -> None:
    shown = toolwright_home.read("show", "powerdns")
    assert shown.keys() >= RECORD_KEYS
    host = powerdns.url.removeprefix("http://")
    assert f"network:{host}" in shown["permissions"]
    assert shown["trust_level"] == "probationary"
    assert shown["total_invocations"] >= shown["successful_invocations"] >= 2


def test_the_log_has_every_exchange_of_a_call(journey: Journey, toolwright_home: Home) -> None:
    calls = toolwright_home.read("logs", "powerdns", "-n", "1000")
    created = next(c for c in calls if c["tool"] == "powerdns.create_zone")
    assert journey.created is not None
    assert created["approval"] == journey.created.pending["approval"]
    (exchange,) = created["exchanges"]
    assert exchange["request"]["method"] == "POST"
    assert exchange["response"]["status"] == 201


def test_the_secret_is_nowhere_but_in_the_vault_and_there_it_is_encrypted(
    journey: Journey, toolwright_home: Home, powerdns: PowerDNS
) -> None:
    assert not [heard for heard in journey.heard if powerdns.key in heard]
    assert powerdns.key not in json.dumps(toolwright_home.read("logs", "-n", "1000"))
    assert powerdns.key not in json.dumps(toolwright_home.read("logs", "--audit", "-n", "1000"))
    assert files_with(toolwright_home.path, powerdns.key.encode()) == []
    assert toolwright_home.settings.vault.stat().st_size > 0


def files_with(directory: Path, content: bytes) -> list[Path]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert len(files) > 10
    return [path for path in files if content in path.read_bytes()]


def test_afterwards_everything_is_consistent(journey: Journey, toolwright_home: Home) -> None:
    checks = toolwright_home.read("doctor")
    assert {check["name"]: check["verdict"] for check in checks if check["verdict"] != "ok"} == {}
