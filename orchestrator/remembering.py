"""What a person once said of a server's credentials, and what its API's answers taught, which
forging it anew must not forget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from forge.widening import NotWidened, with_widenings
from sandbox.apispec import SecurityScheme
from sandbox.bundle import Bundle, Credential
from sandbox.pace import slower
from sandbox.policy import granted_hosts

_PLAIN = ("apiKey", "bearer", "basic", "digest")


def given_schemes(earlier: Iterable[Credential]) -> tuple[SecurityScheme, ...]:
    """The credentials that a person declared for the earlier version, because the API's description
    forgot them.
    """
    return tuple(
        SecurityScheme(
            old.name, cast(Any, old.kind), cast(Any, old.location), old.parameter, given=True
        )
        for old in earlier
        if old.given and old.kind in _PLAIN
    )


def with_written(bundle: Bundle, earlier: Iterable[Credential]) -> Bundle:
    """The bundle with what a person wrote into the earlier version's: templates, AWS signatures and
    token endpoints that the description does not name.
    """
    by_name = {old.name: old for old in earlier}
    kept = (_kept(new, by_name.get(new.name)) for new in bundle.credentials)
    return replace(bundle, credentials=tuple(kept))


def with_learned(bundle: Bundle, earlier: Bundle) -> Bundle:
    """The bundle with the earlier version's paces, for the hosts that it still may ask, where they
    are slower than its own, and what of its widenings still has a place.
    """
    hosts, paces = granted_hosts(bundle), bundle.paces
    for pace in earlier.paces:
        paces = slower(paces, pace) if pace.host in hosts else paces
    paced = replace(bundle, paces=paces)
    try:
        return with_widenings(paced, earlier.widened)
    except NotWidened:
        return paced


def _kept(new: Credential, old: Credential | None) -> Credential:
    if old is None:
        return new
    if old.kind in ("template", "aws-sigv4"):
        return old
    return replace(new, tokens=old.tokens) if new.tokens is None and old.kind == new.kind else new
