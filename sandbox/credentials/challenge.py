"""Reading of what a refusal says about the credential that it wants.

The header is the protocol's own answer (RFC 9110 section 11.6.1; Bearer's parameters are those of
RFC 6750 section 3); the body is a stranger's prose, so what is found there is marked as a guess.
Only letters, digits, `-` and `_` pass: what is found ends up in a command that a person types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.credentials.digest import MAX_HEADER, parse_challenges
from sandbox.sanitize import clean_text
from sandbox.wire.exchange import WireResponse

MAX_READ = 16 * 1024
MAX_QUOTE = 120
MAX_REALM = 80
BEARER_ERRORS = frozenset({"invalid_request", "invalid_token", "insufficient_scope"})
_WHOLE = frozenset({"bearer", "basic", "digest"})
_NOT_SENT = frozenset(
    "cookie dpop form formbased formlogin gnap hoba kerberos mutual negotiate ntlm privatetoken "
    "session signature xbasic vapid".split()
)
"""Schemes that a secret alone does not make: sessions, proofs of possession, tickets of a realm."""
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}\Z")
_HEADER = (
    r"x-[a-z0-9-]{0,30}(?:key|token|auth|secret)[a-z0-9-]{0,20}|api-?key|private-token|job-token"
)
_NAMED_HEADER = re.compile(rf"(?<![\w-])({_HEADER})(?![\w-])", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"(?<![\w-])authorization[\"'`]{0,2}\s{0,3}:\s{0,3}[\"'`]{0,2}([A-Za-z][A-Za-z0-9_-]{0,39}) ",
    re.IGNORECASE,
)
_PARAMETERS = ("in_header", "header", "name")
"""Parameters by which some APIs name the header of their key."""


@dataclass(frozen=True)
class WantedCredential:
    """A credential that an API says it wants. `place` is where it goes, as behind `--auth`
    (`forge.compiler.selection.parse_credential`); `scheme` and `realm` are the challenge's own
    words, `error` and `scope` those of RFC 6750. `quote` is the piece of the body that a guess was
    made of, "" where the header said it.
    """

    place: str
    scheme: str = ""
    realm: str = ""
    error: str = ""
    scope: str = ""
    quote: str = ""


def find_wanted(answer: WireResponse) -> tuple[WantedCredential, ...]:
    """What a response wants, each place once: all that its WWW-Authenticate headers say, else what
    its body mentions.
    """
    told = [
        _read_challenge(scheme, parameters)
        for name, value in answer.headers
        if name.lower() == "www-authenticate"
        for scheme, parameters in parse_challenges(value[:MAX_HEADER])
    ]
    found: dict[str, WantedCredential] = {}
    for each in told:
        if each is not None:
            found.setdefault(each.place, each)
    return tuple(found.values()) or _find_in_body(answer.body)


def _read_challenge(scheme: str, parameters: dict[str, str]) -> WantedCredential | None:
    place = _find_place(scheme, parameters)
    if not place:
        return None
    error = parameters.get("error", "")
    return WantedCredential(
        place,
        scheme,
        _quote_line(parameters.get("realm", ""), MAX_REALM),
        error if error in BEARER_ERRORS else "",
        _quote_line(parameters.get("scope", ""), MAX_QUOTE),
    )


def _find_place(scheme: str, parameters: dict[str, str]) -> str:
    """Where a scheme's credential goes; "" for one whose name is none.

    Some APIs, such as PowerDNS, write the header's name where the scheme belongs.
    """
    if scheme in _WHOLE:
        return scheme
    if not _WORD.match(scheme) or scheme in _NOT_SENT or scheme.startswith(("scram", "aws4")):
        return ""
    if _NAMED_HEADER.fullmatch(scheme) and scheme.startswith("x-"):
        return f"header:{'-'.join(part.capitalize() for part in scheme.split('-'))}"
    named = next((parameters[key] for key in _PARAMETERS if key in parameters), "")
    if "key" in scheme and _WORD.match(named):
        return f"header:{named}"
    return f"header:Authorization:{scheme}"


def _find_in_body(body: bytes) -> tuple[WantedCredential, ...]:
    text = body[:MAX_READ].decode("utf-8", "replace")
    found: dict[str, WantedCredential] = {}
    for match in _AUTHORIZATION.finditer(text):
        word = match[1]
        place = word.lower() if word.lower() in _WHOLE else f"header:Authorization:{word}"
        found.setdefault(place, WantedCredential(place, quote=_quote_around(text, match)))
    for match in _NAMED_HEADER.finditer(text):
        place = f"header:{match[1]}"
        found.setdefault(place, WantedCredential(place, quote=_quote_around(text, match)))
    return tuple(found.values())[:3]


def _quote_around(text: str, match: re.Match[str]) -> str:
    start = max(0, match.start() - MAX_QUOTE // 3)
    return _quote_line(text[start : match.end() + MAX_QUOTE // 3], MAX_QUOTE)


def _quote_line(text: str, most: int) -> str:
    """A stranger's text in one line, without what cannot be seen and without quotation marks that
    could end ours.
    """
    line = " ".join(clean_text(text[: 4 * most]).split())
    return line.replace('"', "'").replace("`", "'")[:most]
