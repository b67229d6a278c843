"""Value types for recorded requests, whatever the notation, and detection of secrets in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]{0,59})\}")

Pair = tuple[str, str]


@dataclass(frozen=True)
class RecordedCredential:
    """The kind of credential that a request carries, never its value. `parameter` is set for an
    apiKey.
    """

    kind: Literal["bearer", "basic", "digest", "apiKey", "oauth2"]
    location: Literal["header", "query", "cookie"] = "header"
    parameter: str = ""
    token_url: str = ""


@dataclass(frozen=True)
class RecordedField:
    """One field of a form. A file has no value."""

    name: str
    value: str = ""
    is_file: bool = False


@dataclass(frozen=True)
class RecordedBody:
    """A request body: a text, or the fields of a form; neither where the content is unknown."""

    media_type: str
    text: str = field(default="", repr=False)
    fields: tuple[RecordedField, ...] = ()


@dataclass(frozen=True)
class RecordedAnswer:
    """A recorded response; parts that were not kept are empty."""

    status: int
    media_type: str = ""
    text: str = field(default="", repr=False)


@dataclass(frozen=True)
class RecordedRequest:
    """One request. `origin` is scheme and host, or "" where the notation leaves them open; `path`
    has `{name}` for its variables. `where` is a JSON pointer into the document. `shares` is whether
    its values may be shown as examples, which a person's own traffic may not.
    """

    method: str
    origin: str
    path: str
    where: str
    name: str = ""
    description: str = ""
    group: str = ""
    query: tuple[Pair, ...] = ()
    headers: tuple[Pair, ...] = ()
    body: RecordedBody | None = None
    answers: tuple[RecordedAnswer, ...] = ()
    credential: RecordedCredential | None = None
    shares: bool = True
    others: tuple[RecordedCredential, ...] = ()
    """Credentials that it carries beside the first."""
    placed: tuple[Pair, ...] = ()
    """The values of its path's variables, by their names, where they are known."""


@dataclass(frozen=True)
class RequestRecording:
    """All requests of one document. `left_out` are (pointer, reason) of the parts that were left
    out.
    """

    title: str
    dialect: str
    requests: tuple[RecordedRequest, ...]
    description: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


_KEY = re.compile(
    r"(?:x[-_])?(?:api|app|access|auth|client|session|csrf|xsrf|subscription|secret|private)?[-_]?"
    r"(?:key|token|secret|apikey|authorization|auth|password|passwd|signature|sig)\Z",
    re.IGNORECASE,
)
_KEYED = re.compile(r"(?:\A|[-_])(?:key|token|secret|password)\Z", re.IGNORECASE)
"""The last word of headers that vendors carry a key in: `DD-APPLICATION-KEY`, `PRIVATE-TOKEN`."""
_KNOWN = frozenset(
    "appid app_id app-id x-app-id x-application-id x-auth-email x-access x-credentials".split()
)
"""Names that carry a key without saying so."""
_PLACED = re.compile(
    r"(?:[A-Za-z]{1,20}[ ])?(?:\$\{?|\{\{\s*|<|\{|%)([A-Za-z_][\w .-]{0,59}?)\s*(?:\}\}|\}|>|%)?\Z"
)
"""A value that is one variable, such as `$TOKEN`, `<your-api-key>` or `Bearer {{token}}`."""
_OF_SECRET = re.compile(
    r"key|token|secret|passw|auth|credential|bearer|jwt|signature", re.IGNORECASE
)
_NAMED = re.compile(r"(?:api[-_]?key|token|secret|password|passwd|authorization)", re.IGNORECASE)
_PAGE = re.compile(r"(?:page|next|continuation|cursor|sync|device|idempoten)", re.IGNORECASE)
_PLAIN = re.compile(r"(?:-?\d{1,9}(?:\.\d{1,6})?|true|false|[A-Za-z][A-Za-z ,._-]{0,29})\Z")


def is_secret_name(name: str) -> bool:
    """Whether a header, query parameter or field of this name carries a secret."""
    if _PAGE.search(name):
        return False
    known = name.lower() in _KNOWN or _KEYED.search(name)
    return bool(known or _KEY.match(name) or _NAMED.search(name))


def is_secret_variable(value: str) -> bool:
    """Whether a value is one variable whose name says that it stands for a secret."""
    found = _PLACED.match(value[:200])
    return found is not None and not _PAGE.search(found[1]) and bool(_OF_SECRET.search(found[1]))


def is_secret_pair(name: str, value: str) -> bool:
    """Whether a header or parameter carries a secret, by its name or what stands for its value."""
    return is_secret_name(name) or is_secret_variable(value)


def find_credential(headers: Iterable[Pair], query: Iterable[Pair]) -> RecordedCredential | None:
    """Return a request's credential, detected by the name of its header or parameter, or None."""
    return next(iter(find_credentials(headers, query)), None)


def find_credentials(
    headers: Iterable[Pair], query: Iterable[Pair]
) -> tuple[RecordedCredential, ...]:
    """Return all credentials that a request carries together, `Authorization` first."""
    listed = tuple(headers)
    found = [_parse_authorization(v) for n, v in listed if n.lower() == "authorization"]
    own = (n for n, v in listed if n.lower() not in _AUTHORIZATION and is_secret_pair(n, v))
    found += [RecordedCredential("apiKey", "header", name) for name in own]
    if not found:
        asked = (name for name, value in query if is_secret_pair(name, value))
        found += [RecordedCredential("apiKey", "query", name) for name in asked]
    return tuple(dict.fromkeys(found))[:MAX_CREDENTIALS]


_AUTHORIZATION = ("authorization", "proxy-authorization", "cookie")
MAX_CREDENTIALS = 4
"""Of one request."""


def remove_secrets(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return the pairs that do not suggest a secret."""
    return tuple((name, value) for name, value in pairs if not is_secret_pair(name, value))


def is_showable(value: object) -> bool:
    """Whether a value is too plain to be a secret: null, a boolean, a number, or a word or two."""
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and _PLAIN.match(value) is not None


def _parse_authorization(value: str) -> RecordedCredential:
    scheme = value.split(maxsplit=1)[0].lower() if value.strip() else ""
    if scheme == "bearer":
        return RecordedCredential("bearer")
    if scheme == "basic":
        return RecordedCredential("basic")
    if scheme == "digest":
        return RecordedCredential("digest")
    return RecordedCredential("apiKey", "header", "Authorization")
