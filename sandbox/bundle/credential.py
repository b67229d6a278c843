"""Credential declarations of a bundle: how the broker derives values from a secret, and where it
puts them. They hold no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

Kind = Literal[
    "apiKey",
    "bearer",
    "basic",
    "digest",
    "oauth2",
    "openIdConnect",
    "template",
    "aws-sigv4",
    "mutualTLS",
    "other",
]
Grant = Literal["client_credentials", "refresh_token", "password"]
Make = Literal["text", "json", "base64", "base64url", "hex", "hash", "hmac", "jwt"]
Hash = Literal["sha256", "sha512", "sha384", "sha1", "md5"]
Bytes = Literal["hex", "base64", "base64url", "text"]
Algorithm = Literal["HS256", "HS384", "HS512", "RS256", "ES256"]
Spot = Literal["header", "query", "cookie", "body"]

UNUSABLE = frozenset({"mutualTLS", "other"})
"""Kinds of security schemes that the broker cannot apply."""

FACTS = frozenset(
    {
        "method",
        "host",
        "path",
        "query",
        "url",
        "body",
        "timestamp",
        "timestamp_ms",
        "timestamp_iso",
        "timestamp_http",
        "nonce",
    }
)
"""Placeholders for parts of the request, besides `{secret}` and `{secret.FIELD}`."""

MAX_PARTS = 8
MAX_TEXT = 2000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}\Z")
_FRAMING = re.compile(
    r"(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive"
    r"|proxy-.*|accept-encoding)\Z",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True)
class TokenEndpoint:
    """The source of access tokens (RFC 6749). `url` is the token endpoint, or `discovery`
    the document that names it (OpenID Connect Discovery 1.0). `client_auth` is how the client
    shows its secret there: `basic` (and where that is refused, once, `body`) or `body`.

    For log-ins: the endpoints at which a person logs in, by a browser (`authorization_url`) or by a
    code (`device_url`), the token endpoint where it is another one (`login_url`), and the scopes
    that the bundle's operations need.
    """

    url: str = ""
    discovery: str = ""
    grants: tuple[Grant, ...] = ()
    scopes: tuple[str, ...] = ()
    client_auth: Literal["basic", "body"] = "basic"
    authorization_url: str = ""
    device_url: str = ""
    login_url: str = ""
    needed_scopes: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether there is an endpoint of which the broker can ask tokens by itself."""
        return bool(self.url or self.discovery)


@dataclass(frozen=True)
class CredentialValue:
    """A value derived for a request, which later values and places may name as `{NAME}`.

    `text` and `key` are templates. `make` selects the result: the text itself, its base64 or hex,
    its `hash`, its `hmac` under `key`; or from `fields` (name -> template) a JSON object, or a JWT
    (RFC 7519) with these claims, `iat` and `exp` (`seconds` later), signed with `algorithm`.
    """

    name: str
    make: Make = "text"
    text: str = ""
    key: str = ""
    key_encoding: Bytes = "text"
    hash: Hash = "sha256"
    encoding: Bytes = "hex"
    fields: tuple[tuple[str, str], ...] = ()
    algorithm: Algorithm = "HS256"
    key_id: str = ""
    seconds: int = 300


@dataclass(frozen=True)
class CredentialPlace:
    """The place of a template's text in the request. In a body, `parameter` is a JSON pointer (RFC
    6901) or the name of a form field.
    """

    location: Spot
    parameter: str
    value: str = "{secret}"


@dataclass(frozen=True)
class Credential:
    """A secret that the API requires, and where the broker puts it. The secret itself is in the
    vault, under the server's name and this name.

    `tokens` is for oauth2 and openIdConnect, `values` and `places` for templates, `region` and
    `service` for aws-sigv4. `given` says that a person declared it, not the document.
    """

    name: str
    kind: str
    location: str = "header"
    parameter: str = "Authorization"
    tokens: TokenEndpoint | None = None
    values: tuple[CredentialValue, ...] = ()
    places: tuple[CredentialPlace, ...] = ()
    region: str = ""
    service: str = ""
    given: bool = False

    def to_public(self) -> dict[str, str]:
        """The fields that the container-side runtime receives."""
        shown = ("name", "kind", "location", "parameter")
        return {key: getattr(self, key) for key in shown}

    def list_token_urls(self) -> tuple[str, ...]:
        """The URLs that the broker may request tokens from, apart from discovered ones."""
        known = (self.tokens.url, self.tokens.discovery) if self.tokens else ()
        return tuple(filter(None, known))

    def list_login_urls(self) -> tuple[str, ...]:
        """The URLs of the endpoints that serve a person's log-in alone."""
        known = self.tokens
        urls = (known.authorization_url, known.device_url, known.login_url) if known else ()
        return tuple(filter(None, urls))


def parse_credential(data: Mapping[str, Any]) -> Credential:
    """Parse a `[[credentials]]` table. Raises ValueError that names the wrong key."""
    made: Credential = _parse_table(Credential, data, "")
    _check_credential(made)
    return made


def render_credential(credential: Credential) -> list[str]:
    """The lines of its `[[credentials]]` table, without default values."""
    lines = [
        "[[credentials]]",
        *_render_pairs(credential, ("name", "kind", "location", "parameter")),
    ]
    if credential.tokens:
        lines += ["", "[credentials.tokens]", *_render_pairs(credential.tokens)]
    for value in credential.values:
        lines += ["", "[[credentials.values]]", *_render_pairs(value, ("name",))]
    for place in credential.places:
        lines += [
            "",
            "[[credentials.places]]",
            *_render_pairs(place, ("location", "parameter", "value")),
        ]
    return lines


def find_placeholders(template: str) -> tuple[str, ...]:
    """The names that a template holds. Raises ValueError for a brace that belongs to none."""
    names = []
    for found in PLACEHOLDER.finditer(template):
        if found[0] in ("{", "}"):
            raise ValueError(f"a single {found[0]!r} in {template[:60]!r}; write it twice")
        if found[1] is not None:
            names.append(found[1])
    return tuple(names)


_CHOICES: dict[tuple[type, str], tuple[str, ...]] = {
    (Credential, "kind"): get_args(Kind),
    (TokenEndpoint, "client_auth"): ("basic", "body"),
    (CredentialValue, "make"): get_args(Make),
    (CredentialValue, "hash"): get_args(Hash),
    (CredentialValue, "encoding"): get_args(Bytes)[:3],
    (CredentialValue, "key_encoding"): get_args(Bytes),
    (CredentialValue, "algorithm"): get_args(Algorithm),
    (CredentialPlace, "location"): get_args(Spot),
}
_INNER: dict[str, type] = {"values": CredentialValue, "places": CredentialPlace}


def _parse_table(kind: type[Any], data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where or 'the credential'} is not a table")
    known = {field.name: field for field in fields(kind)}
    made: dict[str, Any] = {}
    for key, item in data.items():
        at = f"{where}{key}"
        if key not in known:
            raise ValueError(f"{at[:80]} is no key of a credential")
        made[key] = _parse_item(kind, key, item, at)
    try:
        return kind(**made)
    except TypeError as error:
        raise ValueError(f"{where or 'the credential'} lacks a key: {error}") from error


def _parse_item(kind: type[Any], key: str, item: Any, at: str) -> Any:
    if key == "tokens":
        return _parse_table(TokenEndpoint, item, f"{at}.")
    if kind is Credential and key in _INNER:
        if not isinstance(item, list) or len(item) > MAX_PARTS:
            raise ValueError(f"{at} is no list of at most {MAX_PARTS} tables")
        return tuple(_parse_table(_INNER[key], part, f"{at}[{n}].") for n, part in enumerate(item))
    if key == "fields":
        if not isinstance(item, Mapping) or len(item) > 2 * MAX_PARTS:
            raise ValueError(f"{at} is no table of at most {2 * MAX_PARTS} templates")
        return tuple((_parse_text(name, at), _parse_text(text, at)) for name, text in item.items())
    if key in ("grants", "scopes", "needed_scopes"):
        return _parse_words(item, at, get_args(Grant) if key == "grants" else None)
    if key == "given":
        if not isinstance(item, bool):
            raise ValueError(f"{at} is neither true nor false")
        return item
    if key == "seconds":
        if type(item) is not int or not 10 <= item <= 86_400:
            raise ValueError(f"{at} is no number of seconds from 10 to 86400")
        return item
    choices = _CHOICES.get((kind, key))
    if choices and item not in choices:
        raise ValueError(f"{at} is {str(item)[:40]!r}, none of {', '.join(choices)}")
    return _parse_text(item, at)


def _parse_text(item: Any, at: str) -> str:
    if not isinstance(item, str) or len(item) > MAX_TEXT:
        raise ValueError(f"{at} is no text of at most {MAX_TEXT} characters")
    return item


def _parse_words(item: Any, at: str, choices: Iterable[str] | None) -> tuple[str, ...]:
    if not isinstance(item, list) or len(item) > 100:
        raise ValueError(f"{at} is no list of words")
    for word in item:
        if not isinstance(word, str) or not re.fullmatch(r"[!#-\[\]-~]{1,200}", word):
            raise ValueError(f"{at} holds {str(word)[:40]!r}, which is no word")
        if choices is not None and word not in choices:
            raise ValueError(f"{at} holds {word[:40]!r}, none of {', '.join(choices)}")
    return tuple(item)


def _check_credential(credential: Credential) -> None:
    for url in (*credential.list_token_urls(), *credential.list_login_urls()):
        _check_url(url)
    if credential.kind == "aws-sigv4" and not (credential.region and credential.service):
        raise ValueError("aws-sigv4 needs a region and a service")
    if (credential.kind == "template") != bool(credential.places):
        raise ValueError("places belong to a template, and a template needs at least one")
    known: set[str] = set()
    for number, value in enumerate(credential.values):
        at = f"values[{number}]."
        if not _NAME.match(value.name) or value.name in FACTS | known | {"secret"}:
            raise ValueError(f"{at}name {value.name[:40]!r} is taken or no name")
        templates = (value.text, value.key, value.key_id, *(text for _, text in value.fields))
        _check_names(templates, known, at)
        if value.make in ("hmac", "jwt") and not value.key:
            raise ValueError(f"{at}key is missing")
        known.add(value.name)
    for number, place in enumerate(credential.places):
        at = f"places[{number}]."
        _check_names((place.value,), known, at)
        _check_place(place, at)


def _check_names(templates: Iterable[str], known: set[str], at: str) -> None:
    for template in templates:
        for name in find_placeholders(template):
            field = name.removeprefix("secret.")
            if name != field and _NAME.match(field):
                continue
            if name != "secret" and name not in FACTS | known:
                raise ValueError(f"{at[:-1]}: {{{name[:40]}}} names nothing that is known there")


def _check_place(place: CredentialPlace, at: str) -> None:
    name = place.parameter
    if place.location in ("header", "cookie"):
        if not _TOKEN.match(name) or (place.location == "header" and _FRAMING.match(name)):
            raise ValueError(f"{at}parameter {name[:40]!r} is no {place.location} to be set")
    elif not name or not name.isprintable() or len(name) > 200:
        raise ValueError(f"{at}parameter is missing or not printable")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        parts.port  # noqa: B018 - it raises where the port is out of range
    except ValueError:
        usable = None
    if not usable or not url.isascii() or not url.isprintable() or " " in url or "#" in url:
        raise ValueError(f"tokens: {url[:80]!r} is no absolute http(s) URL")


def _render_pairs(value: Any, always: tuple[str, ...] = ()) -> list[str]:
    lines = []
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name in ("tokens", "values", "places"):
            continue
        if field.name in always or item != field.default:
            lines.append(f"{field.name} = {_render_value(field.name, item)}")
    return lines


def _render_value(key: str, item: Any) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, int):
        return str(item)
    if key == "fields":
        return "{ " + ", ".join(f"{quote_toml(k)} = {quote_toml(v)}" for k, v in item) + " }"
    if isinstance(item, tuple):
        return "[" + ", ".join(map(quote_toml, item)) + "]"
    return quote_toml(item)


def quote_toml(text: str) -> str:
    """A text as a TOML basic string: a JSON string is one (toml.io, "String") but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
