"""Credentials that a description forgot and a person declared, and what else a next version keeps
of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from forge.compiler.compile import declare_credentials
from forge.compiler.widening import WideningRefused, apply_widenings
from forge.errors import CredentialTaken
from orchestrator.errors import ForgeFailed
from orchestrator.gateway.brokers import find_origins
from sandbox.bundle.apispec import SecurityScheme
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.bundle.ratelimit import add_slower_pace
from sandbox.credentials.uses import describe_place
from sandbox.wire.policy import list_granted_hosts

_PLAIN = ("apiKey", "bearer", "basic", "digest")


def collect_given_schemes(earlier: Iterable[Credential]) -> tuple[SecurityScheme, ...]:
    """The credentials that a person declared for the earlier version, because the API's description
    forgot them.
    """
    return tuple(
        scheme for old in earlier if old.given and (scheme := _find_given_scheme(old)) is not None
    )


def _find_given_scheme(credential: Credential) -> SecurityScheme | None:
    """What a person wrote behind `--auth`; None for a credential that has more to it."""
    name, kind = credential.name, credential.kind
    if kind in _PLAIN:
        location = cast(Any, credential.location)
        return SecurityScheme(name, cast(Any, kind), location, credential.parameter, given=True)
    if kind != "template" or credential.values or len(credential.places) != 1:
        return None
    (place,) = credential.places
    prefix = place.value.removesuffix(" {secret}")
    if place.location != "header" or f"{prefix} {{secret}}" != place.value or "{" in prefix:
        return None
    return SecurityScheme(name, "apiKey", "header", place.parameter, given=True, prefix=prefix)


def carry_over_given(bundle: Bundle, earlier: Bundle) -> Bundle:
    """The bundle with the credentials that a person declared for the earlier version, in the groups
    and at the operations that they had there.
    """
    given = {scheme.name: scheme for scheme in collect_given_schemes(earlier.credentials)}
    taken = [tool.security for tool in earlier.tools]
    groups = dict.fromkeys(names for each in taken for names in each if names)
    for group in groups:
        if not given.keys() >= {*group}:
            continue
        beside = [each for security in taken if group in security for each in security if each]
        elsewhere = any(not given.keys() >= {*each} for each in beside)
        among = any(each != group for each in beside)
        schemes = [given[name] for name in group]
        bundle = declare_credentials(bundle, schemes, elsewhere=elsewhere or among)
    return bundle


def carry_over_credentials(bundle: Bundle, earlier: Iterable[Credential]) -> Bundle:
    """The bundle with what a person wrote into the earlier version's: templates, AWS signatures and
    token endpoints that the description does not name.
    """
    by_name = {old.name: old for old in earlier}
    kept = (_carry_over_credential(new, by_name.get(new.name)) for new in bundle.credentials)
    return replace(bundle, credentials=tuple(kept))


def carry_over_learned(bundle: Bundle, earlier: Bundle) -> Bundle:
    """The bundle with the earlier version's paces, for the hosts that it still may ask, where they
    are slower than its own, and what of its widenings still has a place.
    """
    hosts, paces = list_granted_hosts(bundle), bundle.paces
    for pace in earlier.paces:
        paces = add_slower_pace(paces, pace) if pace.host in hosts else paces
    paced = replace(bundle, paces=paces)
    try:
        return apply_widenings(paced, earlier.widened)
    except WideningRefused:
        return paced


def _carry_over_credential(new: Credential, old: Credential | None) -> Credential:
    if old is None:
        return new
    if old.kind in ("template", "aws-sigv4"):
        return old
    if old.tokens is None or old.kind != new.kind or (new.tokens and new.tokens.is_known):
        return new
    if new.tokens is None:
        return replace(new, tokens=old.tokens)
    given = ("url", "discovery", "grants", "scopes", "client_auth")
    kept = {name: getattr(old.tokens, name) for name in given}
    return replace(new, tokens=replace(new.tokens, **kept))


def declare_for(bundle: Bundle, scheme: SecurityScheme) -> Bundle:
    """The bundle with one more credential, which a person declares. Raises ForgeFailed for what
    speaks to no API over HTTP, CredentialTaken.
    """
    if bundle.launch is not None or not find_origins(bundle):
        raise ForgeFailed(
            f"{bundle.name} speaks to no API over HTTP that a credential could be sent to."
        )
    made = declare_credentials(bundle, (scheme,))
    wanted = [describe_place(new) for new in made.credentials if new.name == scheme.name]
    for own in bundle.credentials:
        # The description's own may be sent with other operations too, but not to another place.
        if own.name == scheme.name and not own.given and describe_place(own) not in wanted:
            raise CredentialTaken(bundle.name, scheme.name)
    return carry_over_learned(made, bundle)
