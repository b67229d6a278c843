"""The main job on a real API: from "list the DNS zones" and a host to records that answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.functional.home import Home
from tests.functional.peer import MOVING
from tests.world.dns import DnsAnswer, query
from tests.world.powerdns import PowerDNS

TASK = "list the DNS zones"
SERVER = {"server_id": "localhost"}
ZONES = "/api/v1/servers/localhost/zones"
ZONE = "journey.test."
TEXT = '"forged and approved"'
RECORD = {
    "name": f"txt.{ZONE}",
    "type": "TXT",
    "ttl": 60,
    "changetype": "REPLACE",
    "records": [{"content": TEXT, "disabled": False}],
}
Requests = tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Write:
    """One approved write: what the client and the person saw, and when PowerDNS heard of it."""

    pending: dict[str, Any]
    listed: dict[str, Any]
    before: Requests
    settled: dict[str, Any]
    after: Requests


@dataclass
class Journey:
    """What was seen on the way, for the tests to judge."""

    found_at_first: list[Any] = field(default_factory=list)
    first_wait: str = ""
    asked_before_allowed: Requests = ()
    second_wait: str = ""
    done: dict[str, Any] = field(default_factory=dict)
    found: list[Any] = field(default_factory=list)
    zones: Any = None
    created: Write | None = None
    changed: Write | None = None
    zones_after: Any = None
    soa: DnsAnswer | None = None
    txt: DnsAnswer | None = None
    heard: list[str] = field(default_factory=list)
    """Every tool result as text."""


def travel(home: Home, powerdns: PowerDNS) -> Journey:
    return asyncio.run(_travelled(home, powerdns))


async def _travelled(home: Home, powerdns: PowerDNS) -> Journey:
    journey = Journey()
    serve = home.command("serve")
    parameters = StdioServerParameters(command=serve[0], args=serve[1:], env=home.environment)
    async with Client(parameters) as client:
        traveller = _Traveller(home, powerdns, client, journey)
        await traveller.forge()
        await traveller.use()
    at = (powerdns.host, powerdns.dns_port)
    journey.soa = query(ZONE, "SOA", *at)
    journey.txt = query(f"txt.{ZONE}", "TXT", *at)
    return journey


@dataclass
class _Traveller:
    home: Home
    powerdns: PowerDNS
    client: Client
    journey: Journey

    async def forge(self) -> None:
        journey, host = self.journey, self.powerdns.url.removeprefix("http://")
        journey.found_at_first = (await self._call("find", task=TASK))["candidates"]
        job = (await self._call("forge", task=TASK, source=host, name="powerdns"))["job"]
        waits = await self._until("job", job, lambda j: j["state"] == "waiting")
        journey.first_wait = waits["message"]
        journey.asked_before_allowed = self.powerdns.requests
        await self._person("source", "allow", host)
        waits_anew = await self._until(
            "job", job, lambda j: j["state"] == "waiting" and j["message"] != journey.first_wait
        )
        journey.second_wait = waits_anew["message"]
        key = self.home.path.parent / "key"
        key.write_text(self.powerdns.key)
        await self._person("secret", "set", "pdns", "--value-file", str(key))
        key.unlink()
        await self._person("source", "add", self.powerdns.url, "--header", "X-API-Key=@pdns")
        journey.done = await self._until("job", job, lambda j: j["state"] in ("done", "failed"))

    async def use(self) -> None:
        journey = self.journey
        journey.found = (await self._call("find", task=TASK))["candidates"]
        journey.zones = await self._zones()
        zone = {"name": ZONE, "kind": "Native", "nameservers": [f"ns1.{ZONE}"]}
        journey.created = await self._write("create_zone", {**SERVER, "body": zone})
        records = {**SERVER, "zone_id": ZONE, "body": {"rrsets": [RECORD]}}
        journey.changed = await self._write("patch_zone", records)
        journey.zones_after = await self._zones()

    async def _zones(self) -> Any:
        listed = await self._call("call_read", tool="powerdns.list_zones", arguments=SERVER)
        return listed["body"]

    async def _write(self, tool: str, arguments: dict[str, Any]) -> Write:
        pending = await self._call("call_write", tool=f"powerdns.{tool}", arguments=arguments)
        waiting = (await self._call("status"))["approvals"]
        assert pending["approval"] in [each["approval"] for each in waiting]
        listed = await self._call("status", approval=pending["approval"])
        before = self.powerdns.requests
        await self._person("approve", pending["approval"])
        settled = await self._until(
            "approval", pending["approval"], lambda a: a["state"] not in MOVING
        )
        return Write(pending, listed, before, settled, self.powerdns.requests)

    async def _until(
        self, kind: str, identity: str, reached: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """The status of a `job` or an `approval` once it is so, or has ended."""
        for _ in range(300):
            state: dict[str, Any] = await self._call("status", **{kind: identity}, wait=5)
            if reached(state) or state["state"] in ("done", "failed"):
                return state
            await asyncio.sleep(0.05)
        raise AssertionError(state)

    async def _call(self, name: str, /, **arguments: Any) -> Any:
        result = await self.client.call_tool(name, arguments)
        self.journey.heard.append(result.model_dump_json())
        assert not result.is_error, result.content
        return result.structured_content

    async def _person(self, *words: str) -> None:
        await asyncio.to_thread(self.home.person, *words)
