"""Changes to an API as read that a person asks for: fewer operations, a forgotten credential."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, cast

from forge.errors import CredentialPlaceInvalid
from forge.naming import snake
from sandbox.apispec import APISpec, Operation, SecurityScheme

Place = Literal["header", "query", "cookie"]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_PLACE = re.compile(r"(header|query|cookie):([^=]+)\Z")


def only(spec: APISpec, patterns: Collection[str]) -> APISpec:
    """The API with the operations whose id, path, `METHOD /path` or tag a pattern matches (`*` and
    `?` as in file names, case does not count); with all of them where there is no pattern.
    """
    if not patterns:
        return spec
    kept = tuple(o for o in spec.operations if any(_is_meant(o, p.lower()) for p in patterns))
    return replace(spec, operations=kept)


def _is_meant(operation: Operation, pattern: str) -> bool:
    named = (operation.id, operation.path, f"{operation.method} {operation.path}", *operation.tags)
    return any(fnmatchcase(name.lower(), pattern) for name in named)


def credential(written: str) -> SecurityScheme:
    """`header:X-Token=@NAME`, `query:key` or `bearer=@NAME` as a scheme. The name by which its
    secret is known is made from the place where it is not given. Raises CredentialPlaceInvalid.
    """
    place, _, name = written.partition("=@")
    if place == "bearer":
        return SecurityScheme(name or place, "bearer")
    if place == "basic":
        return SecurityScheme(name or place, "basic")
    found = _PLACE.match(place)
    if not found or not _TOKEN.match(found[2]) or (name and not name.isprintable()):
        raise CredentialPlaceInvalid(written)
    location, parameter = cast(Place, found[1]), found[2]
    return SecurityScheme(name or snake(parameter) or location, "apiKey", location, parameter)


def with_credential(spec: APISpec, scheme: SecurityScheme) -> APISpec:
    """The API with a credential that every operation wants which asks for none; a parameter at its
    place is the credential's, no argument.
    """
    operations = tuple(_signed(operation, scheme) for operation in spec.operations)
    kept = tuple(s for s in spec.security_schemes if s.name != scheme.name)
    return replace(spec, operations=operations, security_schemes=(*kept, scheme))


def _signed(operation: Operation, scheme: SecurityScheme) -> Operation:
    if any(operation.security):
        return operation
    place = (scheme.location, scheme.parameter.lower())
    left = tuple(p for p in operation.parameters if (p.location, p.name.lower()) != place)
    return replace(operation, security=((scheme.name,),), parameters=left)
