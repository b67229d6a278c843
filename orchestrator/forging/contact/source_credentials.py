"""A check for changes of the credentials that people registered for an address."""

from __future__ import annotations

from orchestrator.approvals.grants import Grants
from orchestrator.gateway.brokers import SOURCES
from registry.database.canonical import hash_text, to_canonical_json
from registry.secrets.vault import Vault
from sandbox.wire.policy import parse_origin


def mark_credentials(consents: Grants, vault: Vault, url: str) -> str:
    """What stands for the credentials that sources have for the origin of a URL; "" where they have
    none. Another one, or another value, has another.
    """
    origin = parse_origin(url)
    held = [
        (source.url, source.header, vault.mark_text(secret.reveal()))
        for source in consents.find_sources()
        if source.secret and parse_origin(source.url) == origin
        for secret in (vault.get(SOURCES, source.secret),)
        if secret is not None
    ]
    return hash_text(to_canonical_json(held)) if held else ""
