"""Discovery of a real API that none of us wrote."""

from __future__ import annotations

import asyncio

from forge.challenge import NeedsCredential
from forge.discover import Discovery, Found, discover
from forge.sources import Source, choose
from tests.world.fetch import loopback_fetch
from tests.world.powerdns import PowerDNS, powerdns

__all__ = ["powerdns"]


def look(source: Source) -> Discovery:
    async def run() -> Discovery:
        async with loopback_fetch(*source.urls) as fetch:
            return await discover(source, fetch)

    return asyncio.run(run())


def test_a_task_and_a_host_lead_to_the_question_for_the_key_and_then_to_the_document(
    powerdns: PowerDNS,
) -> None:
    task = f"list the DNS zones on {powerdns.host}:{powerdns.port}"
    source = choose(task, None, ())[0]
    needs = look(source)
    assert isinstance(needs, NeedsCredential)
    assert (needs.url, needs.headers) == (f"{powerdns.url}/api/docs", ("X-API-Key",))
    found = look(source.with_header(*needs.header(powerdns.key)))
    assert isinstance(found, Found)
    assert (found.location, found.dialect) == (f"{powerdns.url}/api/docs", "swagger 2.0")
    wrong = look(source.with_header(*needs.header("wrong")))
    assert isinstance(wrong, NeedsCredential)
    assert wrong.rejected
