"""Uses of a secret: the origin that a request takes it to, and its place in that request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from urllib.parse import quote

from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.wire.policy import Origin, list_token_origins, parse_template_origin

TOKEN_REQUEST = "token-request"
"""The place of a secret that is exchanged for an access token."""
_AUTHORIZATION = "authorization"


@dataclass(frozen=True)
class SecretUse:
    """A request's origin and the place that a secret has in it. Its text is what a person sees and
    signs, so two uses are the same exactly where their texts are.
    """

    origin: Origin
    place: str

    def __str__(self) -> str:
        return f"{render_origin(self.origin)} {self.place}"


@dataclass(frozen=True)
class LentRenewal:
    """How the tokens of a source's log-in are renewed. `key` names them among the tokens of a
    process; `read` returns the secret as it is at that moment, `keep` stores its successor, `hold`
    makes the lock that all processes share; `uses` is where a person let it go.
    """

    key: tuple[str, str]
    read: Callable[[], str | None] = field(repr=False)
    keep: Callable[[str], None]
    hold: Callable[[], AbstractContextManager[None]]
    uses: frozenset[str]


@dataclass(frozen=True)
class LentSecret:
    """The secret of a source, `name` in the vault, which goes to requests to `origin` alone, in the
    header `header`. `read` returns it, or None where it is not set. That of a log-in is exchanged
    for tokens as its `renewal` says.
    """

    name: str
    origin: Origin
    header: str
    read: Callable[[], str | None] = field(repr=False)
    renewal: LentRenewal | None = None


def render_origin(origin: Origin) -> str:
    """An origin with its port, also where that is the scheme's own."""
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return f"{origin.scheme}://{host}:{origin.port}"


@lru_cache(maxsize=256)
def describe_place(credential: Credential) -> str:
    """The place that a credential gives its secret in a request to the API. What derives texts of
    the secret is part of it: the same template, region and service, or another place.
    """
    if credential.kind == "apiKey":
        name = credential.parameter
        known = name.lower() if credential.location == "header" else name
        return f"{quote(credential.location)}:{quote(known, safe='')}"
    if credential.kind == "aws-sigv4":
        return f"aws-sigv4:{quote(credential.region)}/{quote(credential.service)}"
    if credential.kind == "template":
        parts = [*map(asdict, credential.values), *map(asdict, credential.places)]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        places = ",".join(
            f"{quote(place.location)}:{quote(place.parameter, safe='')}"
            for place in credential.places
        )
        return f"template:{places}:{digest[:32]}"
    return quote(credential.kind)


def goes_in_header(credential: Credential, header: str) -> bool:
    """Whether a credential's secret goes to the API in this header and nowhere else."""
    if credential.kind == "apiKey":
        return credential.location == "header" and credential.parameter.lower() == header.lower()
    kinds = ("bearer", "basic", "digest", "oauth2", "openIdConnect")
    return credential.kind in kinds and header.lower() == _AUTHORIZATION


def list_secret_uses(bundle: Bundle) -> Mapping[str, tuple[SecretUse, ...]]:
    """The uses that a bundle declares of each of its secrets, by name: those on the origin of its
    base URL first.
    """
    found: dict[str, dict[SecretUse, None]] = {each.name: {} for each in bundle.credentials}
    declared = {each.name: each for each in bundle.credentials}
    for tool in bundle.tools:
        origins = [o for each in tool.requests if (o := parse_template_origin(each.url))]
        for name in {name for names in tool.security for name in names} & declared.keys():
            place = describe_place(declared[name])
            found[name].update(dict.fromkeys(SecretUse(origin, place) for origin in origins))
    for name, credential in declared.items():
        asked = list_token_origins((credential,))
        found[name].update(dict.fromkeys(SecretUse(origin, TOKEN_REQUEST) for origin in asked))
    own = parse_template_origin(bundle.base_url)
    return {
        name: tuple(sorted(uses, key=lambda use: (use.origin != own, str(use))))
        for name, uses in found.items()
    }
