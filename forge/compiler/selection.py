"""Selection of operations by pattern, tag or task, and credentials that a document does not
declare.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, cast

from forge.errors import CredentialPlaceInvalid
from forge.naming import to_snake_case
from forge.text import shorten_text
from sandbox.bundle.apispec import APISpec, Operation, SecurityScheme

MAX_GROUP = 40
_VERSION = re.compile(r"v\d+(\.\d+)*|\d+(\.\d+)*|api|rest", re.IGNORECASE)


def group_operations(api: APISpec) -> dict[str, str]:
    """Return the group of each operation by id: its first tag, else a segment of its path."""
    depth = _count_common_parts(api)
    return {
        o.id: shorten_text(o.tags[0] if o.tags else _group_by_path(o, depth), MAX_GROUP)
        for o in api.operations
    }


def _count_common_parts(api: APISpec) -> int:
    """Count the leading fixed segments that the paths of all untagged operations share."""
    paths = [_split_path(operation) for operation in api.operations if not operation.tags]
    depth = 0
    while len(paths) > 1 and all(len(path) > depth + 1 for path in paths):
        if len(Counter(path[depth] for path in paths)) > 1:
            break
        depth += 1
    return depth


def _group_by_path(operation: Operation, depth: int) -> str:
    parts = _split_path(operation)
    return to_snake_case(parts[min(depth, len(parts) - 1)]) if parts else ""


def _split_path(operation: Operation) -> list[str]:
    parts = [p for p in operation.path.split("/") if p and "{" not in p]
    return [p for p in parts if not _VERSION.fullmatch(p)] or parts


Place = Literal["header", "query", "cookie"]
MAX_FITTING = 50
"""How many operations are chosen for a task."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_PLACE = re.compile(r"(header|query|cookie):([^=:]+)(?::([^=:]+))?\Z")
_SECRET = re.compile(r"@[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}\Z")
_WHOLE: dict[str, Literal["bearer", "basic", "digest"]] = {
    "bearer": "bearer",
    "basic": "basic",
    "digest": "digest",
}


def select_operations(spec: APISpec, patterns: Collection[str]) -> APISpec:
    """Keep the operations whose id, path, `METHOD /path` or tag matches a pattern (`*` and `?` as
    in file names, case-insensitive); all of them where there is no pattern.
    """
    if not patterns:
        return spec
    kept = tuple(
        o for o in spec.operations if any(_matches_pattern(o, p.lower()) for p in patterns)
    )
    return replace(spec, operations=kept)


def _matches_pattern(operation: Operation, pattern: str) -> bool:
    named = (operation.id, operation.path, f"{operation.method} {operation.path}", *operation.tags)
    return any(fnmatchcase(name.lower(), pattern) for name in named)


def select_by_tags(spec: APISpec, tags: Collection[str]) -> APISpec:
    """Keep the operations whose tags or group match; patterns as for `select_operations`."""
    if not tags:
        return spec
    grouped, patterns = group_operations(spec), [tag.lower() for tag in tags]
    kept = tuple(
        operation
        for operation in spec.operations
        for names in [{grouped[operation.id], *operation.tags}]
        if any(fnmatchcase(name.lower(), pattern) for name in names for pattern in patterns)
    )
    return replace(spec, operations=kept)


def select_for_task(spec: APISpec, task: str, most: int = MAX_FITTING) -> APISpec:
    """Keep the `most` operations whose words fit a task's best, in the document's order; no
    operation where no word is shared, all of them where the task has no words.

    Rare words count more, and words of a name more than words of a description.
    """
    wanted = _extract_stems(task)
    if not wanted:
        return spec
    texts = {operation.id: _weigh_words(operation) for operation in spec.operations}
    spread = Counter(stem for text in texts.values() for stem in text)
    scores = {
        key: sum(text[stem] * math.log(1 + len(texts) / spread[stem]) for stem in wanted & {*text})
        for key, text in texts.items()
    }
    best = {key for key, score in Counter(scores).most_common(most) if score > 0}
    return replace(spec, operations=tuple(o for o in spec.operations if o.id in best))


def _weigh_words(operation: Operation) -> dict[str, int]:
    told = _extract_stems(f"{operation.summary} {operation.description} {' '.join(operation.tags)}")
    named = _extract_stems(f"{operation.method} {operation.id} {operation.path}")
    return {**dict.fromkeys(told, 1), **dict.fromkeys(named, 2)}


def _extract_stems(text: str) -> set[str]:
    """Return the words of a text without plural endings."""
    words = (word for word in to_snake_case(text).split("_") if len(word) > 2 or word.isdigit())
    return {re.sub(r"ies\Z", "y", word.removesuffix("'s")).removesuffix("s") for word in words}


def parse_credential(written: str) -> SecurityScheme:
    """Parse `header:X-Token=@NAME`, `query:key=@NAME`, `cookie:sid=@NAME`, `bearer=@NAME`,
    `basic=@NAME` or `digest=@NAME` to a scheme; `header:Authorization:token=@NAME` is a header
    whose value is the word `token`, a blank and the secret. NAME is the name of the stored secret;
    the secret itself is never written here. Raises CredentialPlaceInvalid, which does not repeat
    what may be a secret.
    """
    place, mark, name = written.partition("=")
    found = _PLACE.match(place)
    if place in _WHOLE and mark and _SECRET.match(name):
        return SecurityScheme(name[1:], _WHOLE[place], given=True)
    if (
        not found
        or not _SECRET.match(name)
        or not all(map(_TOKEN.match, filter(None, found.groups()[1:])))
        or (found[3] and found[1] != "header")
    ):
        raise CredentialPlaceInvalid(place, by_value=bool(name) and not name.startswith("@"))
    location, parameter = cast(Place, found[1]), found[2]
    return SecurityScheme(
        name[1:], "apiKey", location, parameter, given=True, prefix=found[3] or ""
    )


def add_credentials(
    spec: APISpec, schemes: Collection[SecurityScheme], *, elsewhere: bool = False
) -> APISpec:
    """Require these credentials, all together, of every operation that requires none; parameters at
    their locations are removed, since no caller fills them. `elsewhere` makes them the last
    alternative of the operations that require others. One of these that has a required parameter at
    a credential's location takes it beside each of its others: it is always sent.
    """
    if not schemes:
        return spec
    operations = tuple(
        _add_operation_credentials(operation, schemes, elsewhere) for operation in spec.operations
    )
    names = {scheme.name for scheme in schemes}
    kept = tuple(s for s in spec.security_schemes if s.name not in names)
    return replace(spec, operations=operations, security_schemes=(*kept, *schemes))


def _add_operation_credentials(
    operation: Operation, schemes: Collection[SecurityScheme], elsewhere: bool
) -> Operation:
    names = tuple(dict.fromkeys(scheme.name for scheme in schemes))
    if any(operation.security):
        required = {(p.location, p.name.lower()) for p in operation.parameters if p.required}
        always = [s for s in schemes if (s.location, s.parameter.lower()) in required]
        if always:
            return _require_always(operation, always)
        others = [each for each in operation.security if each and each != names]
        anonymous = [each for each in operation.security if not each]
        security = (*others, names, *anonymous)
        return replace(operation, security=security) if elsewhere else operation
    places = {(scheme.location, scheme.parameter.lower()) for scheme in schemes}
    left = tuple(p for p in operation.parameters if (p.location, p.name.lower()) not in places)
    return replace(operation, security=(names,), parameters=left)


def _require_always(operation: Operation, schemes: Collection[SecurityScheme]) -> Operation:
    """The operation with these credentials beside those that it takes, instead of parameters."""
    names = tuple(dict.fromkeys(scheme.name for scheme in schemes))
    places = {(scheme.location, scheme.parameter.lower()) for scheme in schemes}
    security = tuple((*(n for n in each if n not in names), *names) for each in operation.security)
    left = tuple(p for p in operation.parameters if (p.location, p.name.lower()) not in places)
    return replace(operation, security=tuple(dict.fromkeys(security)), parameters=left)
