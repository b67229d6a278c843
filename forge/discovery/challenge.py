"""Parsing of 401 and 403 responses: which credential they require, and in which header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from forge.sources import FetchResponse
from sandbox.sanitize import strip_unprintable
from sandbox.wire.exchange import find_header

CredentialKind = Literal["apiKey", "bearer", "basic", "other"]
COMMON_HEADERS = ("X-API-Key", "Authorization")
MAX_CANDIDATES = 4
_FORMS = {"bearer": " as `Bearer TOKEN`", "basic": " as `Basic BASE64(user:password)`"}
_NAMED_HEADER = re.compile(
    r"\b(x-[a-z-]{0,40}(?:key|token|auth|secret)[a-z-]{0,20}|api-?key|private-token|authorization)\b",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]{0,63})(?=\s|,|$)")
_REALM = re.compile(r"\brealm\s*=\s*\"?([^\",]{0,200})", re.IGNORECASE)
_TOLD_HEADER = re.compile(
    r"\b(?:header|name|in_header)\s*=\s*\"?([A-Za-z][\w-]{1,60})", re.IGNORECASE
)


@dataclass(frozen=True)
class CredentialChallenge:
    """A response that requires a credential for the document at `url`, which may or may not exist.

    `headers` are the candidates for the header's name, likeliest first; `certain` is true where the
    response itself names the first one. `rejected` is true where a credential was sent and refused.
    """

    url: str
    status: int
    kind: CredentialKind
    headers: tuple[str, ...]
    certain: bool
    rejected: bool = False
    realm: str = ""

    def render_question(self) -> str:
        """Return the question for a person, with the commands that answer it."""
        sure = "It goes" if self.certain else "It is not said where it goes; likely"
        asked = "refused the credential it was given" if self.rejected else "asks for a credential"
        realm = f' for "{self.realm}"' if self.realm else ""
        also = ", ".join(map(_render_candidate, self.headers[1:]))
        others = f" (or {also})" if also else ""
        login = f" Where it is OAuth: `toolwright login {quote(self.url)}`."
        return (
            f"{self.url} {asked}{realm} ({self.status}). {sure} into the header {self.headers[0]}"
            f"{_FORMS.get(self.kind, '')}{others}.{login if self.kind == 'bearer' else ''} Store "
            "it with `toolwright secret set NAME`, "
            f"then: toolwright source add {self.url} --header {self.headers[0]}=@NAME"
        )


def _render_candidate(header: str) -> str:
    """A header that may be meant; what stands in `Authorization` is seldom the bare token."""
    bearer = f", mostly{_FORMS['bearer']}" if header.lower() == "authorization" else ""
    return f"{header}{bearer}"


def read_challenge(answer: FetchResponse, *, rejected: bool = False) -> CredentialChallenge:
    """Parse what a 401 or 403 requires: from WWW-Authenticate (RFC 9110 section 11.6.1), else from
    a header name in the response, else from common practice.
    """
    told = find_header(answer.headers, "www-authenticate") or ""
    kind, headers = _parse_scheme(told[:4096])
    certain = bool(headers)
    if not headers:
        headers = _find_header_names(answer)
        certain = len(headers) == 1
        headers += tuple(name for name in COMMON_HEADERS if not _contains_name(name, headers))
        kind = "apiKey" if headers[0].lower() != "authorization" else "bearer"
    realm = _REALM.search(told[:4096])
    return CredentialChallenge(
        url=answer.final_url,
        status=answer.status,
        kind=kind,
        headers=headers[:MAX_CANDIDATES],
        certain=certain,
        rejected=rejected,
        realm=strip_unprintable(realm.group(1)).strip() if realm else "",
    )


def _parse_scheme(challenge: str) -> tuple[CredentialKind, tuple[str, ...]]:
    """Return the kind and the header that a WWW-Authenticate value means; no header where it names
    none.

    PowerDNS and others write the header's name where the scheme belongs.
    """
    schemes = [match.group(1) for match in _SCHEME.finditer(challenge)]
    lowered = [scheme.lower() for scheme in schemes]
    told = _TOLD_HEADER.search(challenge)
    for scheme, low in zip(schemes, lowered, strict=True):
        if _NAMED_HEADER.fullmatch(low) and low.startswith("x-"):
            return "apiKey", (scheme,)
        if "key" in low and told:
            return "apiKey", (told.group(1),)
    if "bearer" in lowered:
        return "bearer", ("Authorization",)
    if "basic" in lowered:
        return "basic", ("Authorization",)
    if any("key" in low or "token" in low for low in lowered):
        return "apiKey", ()
    return "other", ("Authorization",) if lowered else ()


def _find_header_names(answer: FetchResponse) -> tuple[str, ...]:
    """Header names for credentials that the answer's body or its CORS and Vary headers mention."""
    hints = [
        find_header(answer.headers, name) or "" for name in ("access-control-allow-headers", "vary")
    ]
    text = "\n".join([*hints, answer.body[:65_536].decode("utf-8", "replace")])
    found: dict[str, str] = {}
    for match in _NAMED_HEADER.finditer(text):
        found.setdefault(match.group(1).lower(), match.group(1))
    return tuple(found.values())[:MAX_CANDIDATES]


def _contains_name(name: str, names: tuple[str, ...]) -> bool:
    return name.lower() in (other.lower() for other in names)
