"""Succession of a registered server by a next version: what of it only a person decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forge.drafts.gains import list_gains
from orchestrator.forging.descriptions import SUBMITTED
from orchestrator.gateway.brokers import find_origins
from registry.database.canonical import hash_text, to_canonical_json
from registry.models import Entry
from registry.needs import SuccessionNeed
from sandbox.bundle.model import Bundle
from sandbox.sanitize import clean_text
from sandbox.wire.policy import SAFE_METHODS, parse_origin, parse_template_origin

MAX_SHOWN = 200
MAX_LINE = 500


def find_undecided(
    versions: Sequence[Entry], before: Bundle | None, after: Bundle, source: str
) -> SuccessionNeed | None:
    """What a person has to allow before `after`, made from `source`, follows the registered
    version; None where it is that very version, or is made from what an earlier one was made from
    and may do nothing that the registered one may not.

    `versions` are all registered ones, the newest first; `before` is the current one's bundle, None
    where it cannot be read.
    """
    # Of a GraphQL server all requests go to one address.
    changes = tuple(dict.fromkeys(_iterate_changes(versions, before, after, source)))
    current = versions[0]
    digests = (current.digest, after.compute_digest())
    if not changes or digests[0] == digests[1]:
        return None
    whole = hash_text(to_canonical_json([current.name, *digests, source, *changes]))
    shown = [clean_text(change)[:MAX_LINE] for change in changes[:MAX_SHOWN]]
    if len(changes) > MAX_SHOWN:
        shown.append(f"and {len(changes) - MAX_SHOWN} more, of {len(changes)}")
    return SuccessionNeed(current.name, current.version, tuple(shown), whole)


def find_unallowed_gains(after: Bundle, before: Bundle | None) -> tuple[str, ...]:
    """What a version may do that the one before may not, in words; a read of the same hosts by
    another path is none of that.
    """
    known = find_origins(before) if before else frozenset()
    free = {
        f"{request.method} {request.url[:200]}"
        for tool in after.tools
        for request in tool.requests
        if tool.access == "read"
        and request.method in SAFE_METHODS
        and parse_template_origin(request.url) in known
    }
    return tuple(gain for gain in list_gains(after, before) if gain not in free)


def _iterate_changes(
    versions: Sequence[Entry], before: Bundle | None, after: Bundle, source: str
) -> Iterator[str]:
    earlier = {_find_root(entry.source) for entry in versions}
    if before is not None and before.provenance.source == SUBMITTED:
        earlier.add(SUBMITTED)
    made = SUBMITTED if after.provenance.source == SUBMITTED else source
    if _find_root(made) not in earlier:
        yield f"made from {made or 'nothing'}, and so far from {versions[0].source or 'nothing'}"
    yield from find_unallowed_gains(after, before)


def _find_root(source: str) -> str:
    """The origin of a description's URL; of one that has none, the file or task itself."""
    origin = parse_origin(source)
    return str(origin) if origin else source
