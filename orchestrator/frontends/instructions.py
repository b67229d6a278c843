"""The instructions that a client is given as it connects: how to go about it, and what is
registered. The seven definitions never change; this does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.errors import TOLD_ERRORS
from orchestrator.frontends.greeting import INSTRUCTIONS, keep_instructions
from orchestrator.settings import Settings
from registry.database.fingerprint import compute_fingerprint
from registry.store import Store
from sandbox.bundle.permissions import parse_permissions
from sandbox.bundle.target import HTTPS

MAX_TOKENS = 300
LETTERS_PER_TOKEN = 3.5
"""Of English and of JSON with English words, by the tokenizers in use: a cautious figure."""
MAX_SERVERS = 20
MAX_HOSTS = 2
MAX_WORDS = 4
"""Words of a name. One with more could be a sentence, and a name may come from a document."""


def load_instructions(settings: Settings, store: Store, grants: Grants) -> str:
    """The instructions as they are at this moment; kept for the next process's first answer."""
    database = settings.database
    fingerprint = compute_fingerprint(database) if database else ""
    named, count = store.servers.find_most_called(MAX_SERVERS)
    permissions = store.servers.find_permissions(named)
    told = build_instructions(permissions, grants.find_hosts(), count)
    if fingerprint:
        keep_instructions(settings.home, fingerprint, told)
    return told


def find_instructions(settings: Settings, store: Store, grants: Grants) -> str | None:
    """The same; None where they cannot be made: the SDK's server says why."""
    try:
        return load_instructions(settings, store, grants)
    except TOLD_ERRORS:
        return None


def keep_changed_instructions(settings: Settings, store: Store) -> None:
    """Keep what the next client is told, after a server or a host was changed outside a `serve`:
    else it is answered only once its `serve` is loaded.
    """
    find_instructions(settings, store, open_grants(SignedPolicy(store, build_authority(settings))))


def build_instructions(
    servers: Mapping[str, Collection[str]], granted: Collection[str], count: int = 0
) -> str:
    """The instructions with the names of the servers (with their permissions) that there is room
    for, in their order, and of their hosts those that a person `granted` (`host:port`). Nothing
    else of a server is told; one whose hosts nobody granted, or whose name could be a sentence, is
    only counted. `count` is how many servers there are, where not all are given.
    """
    room = int(MAX_TOKENS * LETTERS_PER_TOKEN) - len(INSTRUCTIONS) - 60
    told: list[str] = []
    for line in _describe_servers(servers, granted):
        room -= len(line) + 2
        if room < 0 or len(told) == MAX_SERVERS:
            break
        told.append(line)
    left = max(count, len(servers)) - len(told)
    if not told:
        registered = "server is" if left == 1 else "servers are"
        return f"{INSTRUCTIONS} {left} {registered} registered." if left else INSTRUCTIONS
    more = f" and {left} more" if left else ""
    return f"{INSTRUCTIONS} Registered: {', '.join(told)}{more}."


def _describe_servers(
    servers: Mapping[str, Collection[str]], granted: Collection[str]
) -> Iterator[str]:
    for name, permissions in servers.items():
        hosts = [p.target for p in parse_permissions(permissions) if p.kind == "network"]
        known = [target for target in hosts if str(target) in granted]
        if name.count("_") >= MAX_WORDS or (hosts and not known):
            continue
        shown = " ".join(
            target.host if target.port == HTTPS else str(target) for target in known[:MAX_HOSTS]
        )
        yield f"{name} ({shown})" if shown else name
