"""The offer to ask the server that a description was found at, where it names another host."""

from __future__ import annotations

import shlex
from dataclasses import replace
from urllib.parse import urlsplit

from forge.documentation.to_openapi import DerivedDocument
from forge.readers.document import Document
from forge.readers.openapi.servers import may_serve_api
from orchestrator.errors import ForgeWaits
from orchestrator.forging.order import ForgeOrder
from orchestrator.gateway.brokers import find_origins
from registry.needs import HostNeed
from sandbox.bundle.model import Bundle
from sandbox.wire.policy import parse_origin


def offer_base_url(
    wait: ForgeWaits, bundle: Bundle, document: Document | DerivedDocument, order: ForgeOrder
) -> ForgeWaits:
    """The wait for a host, with the command that asks the description's own server instead: a
    self-hosted server's description may name its vendor's. As it is where that makes no sense.
    """
    url = document.url if isinstance(document, Document) else None
    here = parse_origin(url or "")
    if url is None or here is None or not isinstance(wait.need, HostNeed) or order.base_url:
        return wait
    if here in find_origins(bundle) or not may_serve_api(url):
        return wait
    base = f"{here}{urlsplit(bundle.base_url).path}"
    command = shlex.join(
        ["toolwright", "forge", order.task[:200], "--source", url, "--base-url", base]
    ).replace("`", "'")
    instead = f"the description at {url} names it; if the server there is meant: `{command}`"
    need = replace(wait.need, instead=instead)
    return ForgeWaits(need, f"{instead}. Otherwise {wait}")
