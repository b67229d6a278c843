"""HTTP Digest access authentication (RFC 7616), the client's side."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from sandbox.wire.exchange import Headers, WireRequest

MAX_HEADER = 8 * 1024
MAX_CHALLENGES = 16
_HASHES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}
_PART = re.compile(
    r"[\s,]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})\s*=\s*"
    r'(?:"((?:[^"\\]|\\.){0,4096})"|([^\s",]{0,4096}))'
    r"|([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})(?=\s|,|\Z))"
)


@dataclass(frozen=True)
class Challenge:
    """A Digest challenge. `qop` is "auth", "auth-int", or "" for the form of RFC 2069."""

    realm: str
    nonce: str
    algorithm: str = "MD5"
    qop: Literal["auth", "auth-int", ""] = "auth"
    opaque: str | None = None
    stale: bool = False
    userhash: bool = False

    @property
    def hash(self) -> str:
        return _HASHES[self.algorithm.upper().removesuffix("-SESS")]


def choose_challenge(headers: Headers) -> Challenge | None:
    """The best supported Digest challenge of a response, SHA before MD5; None if there is none."""
    found = [
        made
        for name, value in headers
        if name.lower() == "www-authenticate"
        for made in map(_build_challenge, parse_challenges(value[:MAX_HEADER]))
        if made is not None
    ]
    found.sort(key=lambda made: made.hash == "md5")
    return found[0] if found else None


def build_authorization(
    asked: Challenge, request: WireRequest, secret: str, count: int, cnonce: str
) -> str:
    """The Authorization header for a challenge (RFC 7616 section 3.4). `secret` is `user:password`,
    `count` how often the nonce was used, this time included.
    """
    user, _, password = secret.partition(":")
    parts = urlsplit(request.url)
    uri = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    first = _hash_text(asked, f"{user}:{asked.realm}:{password}")
    if asked.algorithm.upper().endswith("-SESS"):
        first = _hash_text(asked, f"{first}:{asked.nonce}:{cnonce}")
    second = f"{request.method}:{uri}"
    if asked.qop == "auth-int":
        second += ":" + _hash_bytes(asked, request.body)
    second = _hash_text(asked, second)
    nc = f"{count:08x}"
    middle = f"{asked.nonce}:{nc}:{cnonce}:{asked.qop}" if asked.qop else asked.nonce
    shown = _hash_text(asked, f"{user}:{asked.realm}") if asked.userhash else user
    fields = {
        "username": _quote_text(shown),
        "realm": _quote_text(asked.realm),
        "nonce": _quote_text(asked.nonce),
        "uri": _quote_text(uri),
        "response": _quote_text(_hash_text(asked, f"{first}:{middle}:{second}")),
        "algorithm": asked.algorithm,
    }
    if asked.opaque is not None:
        fields["opaque"] = _quote_text(asked.opaque)
    if asked.qop:
        fields |= {"qop": asked.qop, "nc": nc, "cnonce": _quote_text(cnonce)}
    elif asked.algorithm.upper().endswith("-SESS"):
        fields["cnonce"] = _quote_text(cnonce)
    if asked.userhash:
        fields["userhash"] = "true"
    return "Digest " + ", ".join(f"{name}={value}" for name, value in fields.items())


class NonceCache:
    """The latest challenge of each credential and origin, and how often its nonce was used."""

    def __init__(self) -> None:
        self._known: dict[object, tuple[Challenge, int]] = {}

    def remember_challenge(self, key: object, asked: Challenge) -> None:
        self._known[key] = (asked, 0)

    def get_challenge(self, key: object) -> Challenge | None:
        found = self._known.get(key)
        return found[0] if found else None

    def answer_challenge(self, key: object, request: WireRequest, secret: str) -> str | None:
        """The Authorization header of the next request; None if no challenge is known yet."""
        found = self._known.get(key)
        if found is None:
            return None
        asked, used = found
        self._known[key] = (asked, used + 1)
        return build_authorization(asked, request, secret, used + 1, secrets.token_hex(16))


def parse_challenges(value: str) -> list[tuple[str, dict[str, str]]]:
    """The challenges of a WWW-Authenticate header: scheme and parameters (RFC 9110, 11.6.1)."""
    found: list[tuple[str, dict[str, str]]] = []
    at = 0
    while at < len(value) and len(found) <= MAX_CHALLENGES:
        part = _PART.match(value, at)
        if part is None:
            break
        name, quoted, bare, scheme = part.groups()
        if scheme is not None:
            found.append((scheme.lower(), {}))
        elif found:
            text = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found[-1][1].setdefault(name.lower(), text)
        at = part.end()
    return found


def _build_challenge(scheme: tuple[str, dict[str, str]]) -> Challenge | None:
    name, given = scheme
    algorithm = given.get("algorithm") or "MD5"
    known = algorithm.upper().removesuffix("-SESS") in _HASHES
    texts = (given.get("realm", ""), given.get("nonce", ""), given.get("opaque", ""))
    if name != "digest" or not known or not texts[1] or not _is_printable(texts):
        return None
    offered = {word.strip().lower() for word in given.get("qop", "").split(",") if word.strip()}
    if offered and not offered & {"auth", "auth-int"}:
        return None
    qop: Literal["auth", "auth-int", ""] = "" if not offered else "auth-int"
    return Challenge(
        realm=texts[0],
        nonce=texts[1],
        algorithm=algorithm,
        qop="auth" if "auth" in offered else qop,
        opaque=given.get("opaque"),
        stale=given.get("stale", "").lower() == "true",
        userhash=given.get("userhash", "").lower() == "true",
    )


def _is_printable(texts: Iterable[str]) -> bool:
    return all(ord(letter) >= 32 and ord(letter) != 127 for text in texts for letter in text)


def _hash_text(asked: Challenge, text: str) -> str:
    return _hash_bytes(asked, text.encode())


def _hash_bytes(asked: Challenge, content: bytes) -> str:
    return hashlib.new(asked.hash, content, usedforsecurity=False).hexdigest()


def _quote_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
