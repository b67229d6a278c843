"""Changes to an API as read that a person asks for: fewer operations, a forgotten credential."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, cast

from forge.errors import CredentialPlaceInvalid
from forge.grouping import groups
from forge.naming import snake
from sandbox.apispec import APISpec, Operation, SecurityScheme

Place = Literal["header", "query", "cookie"]
MAX_FITTING = 50
"""How many operations are chosen for a task."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_PLACE = re.compile(r"(header|query|cookie):([^=]+)\Z")
_SECRET = re.compile(r"@[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z")
_WHOLE: dict[str, Literal["bearer", "basic", "digest"]] = {
    "bearer": "bearer",
    "basic": "basic",
    "digest": "digest",
}


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


def tagged(spec: APISpec, tags: Collection[str]) -> APISpec:
    """The API with the operations of these tags or groups, written as for `only`."""
    if not tags:
        return spec
    grouped, patterns = groups(spec), [tag.lower() for tag in tags]
    kept = tuple(
        operation
        for operation in spec.operations
        for names in [{grouped[operation.id], *operation.tags}]
        if any(fnmatchcase(name.lower(), pattern) for name in names for pattern in patterns)
    )
    return replace(spec, operations=kept)


def fitting(spec: APISpec, task: str, most: int = MAX_FITTING) -> APISpec:
    """The API with the `most` operations whose words fit a task's best, in the document's order; no
    operation where no word is shared, all of them where the task has none.

    Words that few operations have count more, and in a name more than in a description.
    """
    wanted = _stems(task)
    if not wanted:
        return spec
    texts = {operation.id: _weighed(operation) for operation in spec.operations}
    spread = Counter(stem for text in texts.values() for stem in text)
    scores = {
        key: sum(text[stem] * math.log(1 + len(texts) / spread[stem]) for stem in wanted & {*text})
        for key, text in texts.items()
    }
    best = {key for key, score in Counter(scores).most_common(most) if score > 0}
    return replace(spec, operations=tuple(o for o in spec.operations if o.id in best))


def _weighed(operation: Operation) -> dict[str, int]:
    told = _stems(f"{operation.summary} {operation.description} {' '.join(operation.tags)}")
    named = _stems(f"{operation.method} {operation.id} {operation.path}")
    return {**dict.fromkeys(told, 1), **dict.fromkeys(named, 2)}


def _stems(text: str) -> set[str]:
    """The words of a text without a plural's ending."""
    words = (word for word in snake(text).split("_") if len(word) > 2 or word.isdigit())
    return {re.sub(r"ies\Z", "y", word.removesuffix("'s")).removesuffix("s") for word in words}


def credential(written: str) -> SecurityScheme:
    """`header:X-Token=@NAME`, `query:key=@NAME`, `cookie:sid=@NAME`, `bearer=@NAME`, `basic=@NAME`
    or `digest=@NAME` as a scheme. NAME is what its secret is known by; the secret itself is never
    written here. Raises CredentialPlaceInvalid, which does not repeat what may be one.
    """
    place, mark, name = written.partition("=")
    found = _PLACE.match(place)
    if place in _WHOLE and mark and _SECRET.match(name):
        return SecurityScheme(name[1:], _WHOLE[place], given=True)
    if not found or not _TOKEN.match(found[2]) or not _SECRET.match(name):
        raise CredentialPlaceInvalid(place, by_value=bool(name) and not name.startswith("@"))
    location, parameter = cast(Place, found[1]), found[2]
    return SecurityScheme(name[1:], "apiKey", location, parameter, given=True)


def with_credentials(spec: APISpec, schemes: Collection[SecurityScheme]) -> APISpec:
    """The API with credentials that every operation wants, all together, which asks for none;
    parameters at their places are the credentials', no arguments.
    """
    if not schemes:
        return spec
    operations = tuple(_signed(operation, schemes) for operation in spec.operations)
    names = {scheme.name for scheme in schemes}
    kept = tuple(s for s in spec.security_schemes if s.name not in names)
    return replace(spec, operations=operations, security_schemes=(*kept, *schemes))


def _signed(operation: Operation, schemes: Collection[SecurityScheme]) -> Operation:
    if any(operation.security):
        return operation
    places = {(scheme.location, scheme.parameter.lower()) for scheme in schemes}
    left = tuple(p for p in operation.parameters if (p.location, p.name.lower()) not in places)
    names = tuple(dict.fromkeys(scheme.name for scheme in schemes))
    return replace(operation, security=(names,), parameters=left)
