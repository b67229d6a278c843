"""Which parts of a recorded request are credentials: they become schemes, and their values go."""

from __future__ import annotations

import re
from collections.abc import Iterable

from forge.recorded.request import Credential, Pair

_KEY = re.compile(
    r"(?:x[-_])?(?:api|app|access|auth|client|session|csrf|xsrf|subscription|secret|private)?[-_]?"
    r"(?:key|token|secret|apikey|authorization|auth|password|passwd|signature|sig)\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?:api[-_]?key|token|secret|password|passwd|authorization)", re.IGNORECASE)
_PAGE = re.compile(r"(?:page|next|continuation|cursor|sync|device)", re.IGNORECASE)
_PLAIN = re.compile(r"(?:-?\d{1,9}(?:\.\d{1,6})?|true|false|[A-Za-z][A-Za-z ,._-]{0,29})\Z")


def is_secret(name: str) -> bool:
    """Whether a header, query parameter or field of this name carries a credential."""
    return not _PAGE.search(name) and bool(_KEY.match(name) or _NAMED.search(name))


def credential_of(headers: Iterable[Pair], query: Iterable[Pair]) -> Credential | None:
    """What a request proves itself by, told from where it stands."""
    for name, value in headers:
        if name.lower() == "authorization":
            return _authorization(value)
    for name, _ in headers:
        if is_secret(name) and name.lower() not in ("proxy-authorization",):
            return Credential("apiKey", "header", name)
    for name, _ in query:
        if is_secret(name):
            return Credential("apiKey", "query", name)
    return None


def without_secrets(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The pairs that are no credentials."""
    return tuple((name, value) for name, value in pairs if not is_secret(name))


def showable(value: object) -> bool:
    """Whether a value is so plain that it can be nobody's secret: a number, or a word or two."""
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and _PLAIN.match(value) is not None


def _authorization(value: str) -> Credential:
    scheme = value.split(maxsplit=1)[0].lower() if value.strip() else ""
    if scheme == "bearer":
        return Credential("bearer")
    if scheme == "basic":
        return Credential("basic")
    if scheme == "digest":
        return Credential("digest")
    return Credential("apiKey", "header", "Authorization")
