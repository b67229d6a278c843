"""Discovery of a real API that none of us wrote."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from forge.discovery.challenge import CredentialChallenge
from forge.discovery.search import Discovery, FoundDocument, discover_description
from forge.sources import ApiSource, choose_sources
from tests.world.fetch import loopback_fetch
from tests.world.powerdns import PowerDNS, powerdns

__all__ = ["powerdns"]


def look(source: ApiSource) -> Discovery:
    async def run() -> Discovery:
        async with loopback_fetch(*source.urls) as fetch:
            return await discover_description(source, fetch)

    return asyncio.run(run())


def test_a_task_and_a_host_lead_to_the_question_for_the_key_and_then_to_the_document(
    powerdns: PowerDNS,
) -> None:
    task = f"list the DNS zones on {powerdns.host}:{powerdns.port}"
    source = choose_sources(task, None, ())[0]
    needs = look(source)
    assert isinstance(needs, CredentialChallenge)
    assert (needs.url, needs.headers) == (f"{powerdns.url}/api/docs", ("X-API-Key",))
    found = look(replace(source, headers=(("X-API-Key", powerdns.key),)))
    assert isinstance(found, FoundDocument)
    assert (found.location, found.dialect) == (f"{powerdns.url}/api/docs", "swagger 2.0")
    wrong = look(replace(source, headers=(("X-API-Key", "wrong"),)))
    assert isinstance(wrong, CredentialChallenge)
    assert wrong.rejected
