"""The credentials that a forged server's API wants and nobody has given, as a person is asked."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.credential import UNUSABLE, Credential
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.credentials.source import CredentialSource
from sandbox.wire.policy import parse_template_origin

MAX_WANTED = 8
_FORMS = {
    "bearer": "as a bearer token",
    "basic": "as user and password",
    "digest": "as user and password",
    "oauth2": "as OAuth 2 tokens",
    "openIdConnect": "as OpenID Connect tokens",
}


@dataclass(frozen=True)
class UnsetCredential:
    """A credential without a value. `tools` is how many tools take it, `required` whether one of
    them cannot be called without one; `instead` are those of which each does as well for all of
    them. `says` is what the API's description says of it, cleaned.
    """

    name: str
    place: str
    tools: int
    required: bool
    says: str
    how: str
    instead: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told = {key: value for key, value in vars(self).items() if value or key != "instead"}
        return {**told, "instead": [*self.instead]} if self.instead else told


def find_wanted_credentials(bundle: Bundle, given: CredentialSource) -> tuple[UnsetCredential, ...]:
    """Return the credentials that would let tools be called that cannot be without, and those that
    tools may take while none of these is given, the most used first. What a source's secret or
    log-in is for at the API's own origin is given.
    """
    origin = parse_template_origin(bundle.base_url)
    opened = given.open_exchange(origin) if origin else given
    lacking = [tool for tool in bundle.tools if not opened.choose_credentials(tool.security)]
    named = Counter(name for tool in lacking for name in {n for way in tool.security for n in way})
    needed = {
        n for tool in lacking if () not in tool.security for way in tool.security for n in way
    }
    schemes = bundle.spec.security_schemes if bundle.spec else ()
    says = {scheme.name: scheme.description for scheme in schemes}
    wanted = [
        _describe(bundle.name, credential, named, needed, says, lacking)
        for credential in bundle.credentials
        if named[credential.name] and credential.kind not in UNUSABLE
    ]
    return tuple(sorted(wanted, key=lambda each: (not each.required, -each.tools))[:MAX_WANTED])


def _find_alternatives(name: str, lacking: Collection[ToolDefinition]) -> tuple[str, ...]:
    """The credentials that do by themselves for each of the tools that take this one."""
    ways = [
        {way[0] for way in tool.security if len(way) == 1}
        for tool in lacking
        if any(name in way for way in tool.security)
    ]
    return tuple(sorted(set.intersection(*ways) - {name})) if ways else ()


def _describe(
    server: str,
    credential: Credential,
    named: Mapping[str, int],
    needed: Collection[str],
    says: Mapping[str, str],
    lacking: Collection[ToolDefinition],
) -> UnsetCredential:
    return UnsetCredential(
        name=credential.name,
        place=_FORMS.get(credential.kind)
        or f"in the {_name_location(credential)} {credential.parameter}",
        tools=named[credential.name],
        required=credential.name in needed,
        says=says.get(credential.name, ""),
        how=f"toolwright {_choose_command(credential)} "
        + shlex.quote(f"{server}.{credential.name}"),
        instead=_find_alternatives(credential.name, lacking),
    )


def _choose_command(credential: Credential) -> str:
    """The command that gives a credential: a log-in where its description says that people log in
    (RFC 6749 section 4.1, RFC 8628), else a secret that is set.
    """
    tokens = credential.tokens
    people = tokens and (tokens.authorization_url or tokens.device_url or tokens.discovery)
    return "login" if people else "secret set"


def _name_location(credential: Credential) -> str:
    return "query parameter" if credential.location == "query" else credential.location
