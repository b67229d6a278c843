"""The PowerDNS fixture is what other tests take it for."""

from __future__ import annotations

import json

from tests.world.dns import query
from tests.world.powerdns import PowerDNS, powerdns

__all__ = ["powerdns"]

ZONES = "/api/v1/servers/localhost/zones"


def test_its_document_is_guarded_and_is_yaml_or_json_as_asked(powerdns: PowerDNS) -> None:
    refused = powerdns.ask("GET", "/api/docs", key="wrong")
    assert (refused.status, refused.headers["Www-Authenticate"]) == (
        401,
        'X-API-Key realm="PowerDNS"',
    )
    answer = powerdns.ask("GET", "/api/docs")
    assert answer.body.startswith(b"swagger: '2.0'")
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_zone_made_over_http_answers_over_dns_and_is_in_the_log(powerdns: PowerDNS) -> None:
    zone = {"name": "fixture.test.", "kind": "Native", "nameservers": ["ns1.fixture.test."]}
    assert powerdns.ask("POST", ZONES, zone).status == 201
    records = [
        {
            "name": "www.fixture.test.",
            "type": kind,
            "ttl": 60,
            "changetype": "REPLACE",
            "records": [{"content": content, "disabled": False}],
        }
        for kind, content in (("A", "192.0.2.7"), ("TXT", '"hello world"'))
    ]
    changed = powerdns.ask("PATCH", f"{ZONES}/fixture.test.", {"rrsets": records})
    assert changed.status == 204
    at = (powerdns.host, powerdns.dns_port)
    assert query("www.fixture.test", "A", *at).records == ("192.0.2.7",)
    assert query("www.fixture.test", "TXT", *at).records == ("hello world",)
    soa = query("fixture.test", "SOA", *at)
    assert soa.authoritative
    assert len(soa.records[0].split()) == 7
    assert query("nothing.fixture.test", "A", *at).rcode == 3
    assert query("elsewhere.test", "A", *at).rcode == 5
    assert ("POST", ZONES, 201) in powerdns.requests
    assert "fixture.test." in [z["name"] for z in json.loads(powerdns.ask("GET", ZONES).body)]
