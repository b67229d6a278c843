"""The choice among public APIs that a task may mean, as a person is shown and makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from forge.text import render_count
from orchestrator.errors import OrchestratorError
from registry.needs import OfferedService, ServiceDoubt, ServiceNeed

_DOUBTS: Mapping[ServiceDoubt, str] = {
    "other_host": "its server's name is not its provider's",
    "plain_http": "its server is reached without TLS",
    "local": "its server is none of the public network: give its address with --base-url",
    "no_server": "its description names no server: give its address with --base-url",
    "page": "a page that a search found",
}


def choose_service(need: ServiceNeed, choice: int, job: str) -> ServiceNeed:
    """The need with the chosen service alone, by its number; by 0 the first, where nothing speaks
    against it. Raises OrchestratorError.
    """
    if not 0 <= choice <= len(need.services):
        raise OrchestratorError(
            f"job {job} offers the choices 1 to {len(need.services)}, and no {choice}."
        )
    first = need.services[max(choice, 1) - 1]
    if not choice and first.doubts:
        why = "; ".join(_DOUBTS[doubt] for doubt in first.doubts)
        raise OrchestratorError(
            f"nothing was allowed: of {first.title} a person has to see that {why}. "
            f"`toolwright allow {job} --choice 1` takes it all the same."
        )
    return replace(need, services=(first,))


def describe_service(service: OfferedService) -> str:
    """What a person is shown of a service: all of it is strangers' word, and cleaned."""
    server = service.host or "no server"
    said = [
        f"{service.title} of {service.provider}: {server}",
        render_count(service.operations, "operation") if service.operations else "",
        f"updated {service.updated}" if service.updated else "of unknown age",
        f"described at {service.origin}" if service.origin else "",
        *(_DOUBTS[doubt] for doubt in service.doubts),
        f"allows requests to {', '.join(service.hosts)}" if service.hosts else "",
    ]
    return "; ".join(filter(None, said))


def describe_services(job: str, need: ServiceNeed) -> str:
    """Which services a job offers, and how it goes on either way."""
    offered = " ".join(
        f"({number}) {describe_service(each)}." for number, each in enumerate(need.services, 1)
    )
    first = need.services[0]
    usual = f"`toolwright allow {job}` takes the first, " if not first.doubts else ""
    return (
        "if this only computes, `forge` it again with the source `none`: then code is written, and "
        "no API is asked. Else: the task gives no address. Of the public APIs that are known it "
        f"may mean: {offered} Nothing was asked of any yet. A person chooses: {usual}"
        f"`toolwright allow {job} --choice N` another. If none is meant, `forge` again with the "
        "path or URL of the API's description as the source."
    )
