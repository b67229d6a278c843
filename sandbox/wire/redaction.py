"""Redaction of secrets in answers, in every encoding in which an API may echo one."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from sandbox.wire.exchange import Headers, WireResponse

MARK = "[redacted]"
ANYWHERE = 4
"""A shorter secret is only matched as a whole word; anywhere, it would redact ordinary text."""
UNLIKELY = 12
"""A text of this length does not occur in megabytes of base64 by chance."""
MAX_SECRET = 32 * 1024
_MIN_ENCODED = 6
_JOINED = 64 * 1024


class Redaction:
    """Replaces secrets by `MARK`: as they are, in any letter case, and with any character escaped
    as in URLs, JSON, HTML or C; in base64 at any alignment, plain or URL-safe; in hex; and split
    over several headers.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        kept = sorted({s for s in secrets if s and len(s) <= MAX_SECRET}, key=len, reverse=True)
        self._patterns = tuple(pattern for secret in kept for pattern in _compile_patterns(secret))
        self._long = tuple(secret for secret in kept if len(secret) >= UNLIKELY)

    def extend_with(self, passing: Iterable[str]) -> Redaction:
        """This redaction extended by values of one request, plain or percent-encoded."""
        values = {text for text in passing if len(text) >= ANYWHERE}
        if not values:
            return self
        forms = {form for text in values for form in (text, quote(text, safe=""))}
        longest = sorted(forms, key=len, reverse=True)
        made = Redaction(())
        joined = b"|".join(re.escape(form.encode()) for form in longest)
        made._patterns = (*self._patterns, re.compile(joined))
        made._long = (*self._long, *(text for text in values if len(text) >= UNLIKELY))
        return made

    def redact_bytes(self, content: bytes) -> bytes:
        """Bytes without the secrets."""
        for pattern in self._patterns:
            content = pattern.sub(MARK.encode(), content)
        return content

    def redact_text(self, text: str) -> str:
        """A text without the secrets; the same object if it holds none."""
        if not self._patterns or not text:
            return text
        raw = text.encode("utf-8", "surrogatepass")
        clean = self.redact_bytes(raw)
        return text if clean == raw else clean.decode("utf-8", "replace")

    def redact_base64(self, text: str) -> str:
        """Base64 without the secrets, searched in its bytes, and in its letters for secrets too
        long to occur by chance; the same object if it holds none. Invalid base64 is treated as
        text.
        """
        try:
            raw = binascii.a2b_base64(text.encode(), strict_mode=True)
        except (binascii.Error, UnicodeEncodeError):
            return self.redact_text(text)
        letters = text.casefold()
        is_told = any(secret.casefold() in letters for secret in self._long)
        clean = MARK.encode() if is_told else self.redact_bytes(raw)
        return text if clean == raw else binascii.b2a_base64(clean, newline=False).decode()

    def redact_headers(self, headers: Headers) -> Headers:
        """Headers without the secrets, including one that is split over several values."""
        cleaned = tuple(
            (self.redact_text(name), self.redact_text(value)) for name, value in headers
        )
        whole = "".join(value for _, value in cleaned)
        if len(whole) > _JOINED or self.redact_text(whole) == whole:
            return cleaned
        return self._redact_split(cleaned, whole)

    def redact_response(self, response: WireResponse) -> WireResponse:
        """A response without the secrets, in its headers and its body."""
        if not self._patterns:
            return response
        body = self.redact_bytes(response.body)
        return replace(response, headers=self.redact_headers(response.headers), body=body)

    def redact_json(self, value: Any) -> Any:
        """A plain JSON value without the secrets, member names included."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Mapping):
            return {self.redact_json(key): self.redact_json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_json(item) for item in value]
        return value

    def _redact_split(self, headers: Headers, whole: str) -> Headers:
        """The headers, with each value that holds a part of a split secret replaced by `MARK`."""
        raw = [value.encode("utf-8", "surrogatepass") for _, value in headers]
        joined, spans = b"".join(raw), []
        for pattern in self._patterns:
            spans += [found.span() for found in pattern.finditer(joined)]
        made, start = [], 0
        for (name, value), part in zip(headers, raw, strict=True):
            end = start + len(part)
            touched = any(left < end and right > start for left, right in spans)
            made.append((name, MARK if touched and part else value))
            start = end
        return tuple(made)


def list_sensitive_parts(secret: str) -> tuple[str, ...]:
    """The parts of a vault's secret to redact: all of it, the password of `user:password`, and the
    texts of a JSON object except members that are public (`client_id`, `scope`, ...).
    """
    found = [secret]
    try:
        parsed = json.loads(secret) if secret.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict):
        texts = ((name, item) for name, item in parsed.items() if isinstance(item, str))
        found += [item for name, item in texts if name.lower() not in _PUBLIC]
        found += [line for item in found[1:] for line in item.split("\n") if "-----" in item]
    elif ":" in secret:
        found.append(secret.partition(":")[2])
    return tuple(item for item in found if item and not item.startswith("-----"))


_PUBLIC = frozenset(
    {
        "access_key_id",
        "audience",
        "client_auth",
        "client_id",
        "email",
        "issuer",
        "key_id",
        "kid",
        "region",
        "resource",
        "scope",
        "service",
        "token_type",
        "token_url",
        "user",
        "username",
    }
)


def _compile_patterns(secret: str) -> tuple[re.Pattern[bytes], ...]:
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = b"".join(map(_build_character_pattern, secret))
    if len(secret) < ANYWHERE or (secret.isdigit() and len(secret) < 8):
        escaped = rb"(?<![A-Za-z0-9])(?:" + escaped + rb")(?![A-Za-z0-9])"
    made = [re.compile(escaped)]
    encoded = {form for form in _encode_alignments(raw) if len(form) >= _MIN_ENCODED}
    for form in sorted(encoded, key=len, reverse=True):
        made.append(
            re.compile(b"".join(map(_build_symbol_pattern, form)) + rb"(?:=|%3[dD]|\\u003[dD])*")
        )
    if len(raw) >= ANYWHERE:
        pairs = (b"%02x" % byte for byte in raw)
        made.append(re.compile(rb"(?:[:\- ]|%3[aA]|0x|\\x)?".join(pairs), re.IGNORECASE))
    return tuple(made)


def _build_character_pattern(character: str) -> bytes:
    """A pattern of one character in every escape form."""
    forms: list[bytes] = []
    for form in dict.fromkeys((character, character.lower(), character.upper())):
        if len(form) != 1:
            continue
        raw = form.encode("utf-8", "surrogatepass")
        percent = b"".join(b"%%%02x" % byte for byte in raw)
        units = form.encode("utf-16-be", "surrogatepass").hex()
        escapes = "".join("\\u" + units[at : at + 4] for at in range(0, len(units), 4)).encode()
        code = ord(form)
        forms += [
            re.escape(raw),
            _build_anycase_pattern(percent),
            _build_anycase_pattern(percent.replace(b"%", b"%25")),
        ]
        forms += [
            _build_anycase_pattern(escapes),
            b"&#0*%d;" % code,
            b"&#[xX]0*" + _build_anycase_pattern(b"%x;" % code),
        ]
        if code < 256:
            forms.append(_build_anycase_pattern(b"\\x%02x" % code))
        if code < 128 and not form.isalnum():
            forms += [b"\\\\" + re.escape(raw), re.escape(html.escape(form).encode())]
    if character == " ":
        forms.append(rb"\+")
    if character in _NAMED:
        forms.append(re.escape(_NAMED[character]))
    return b"(?:" + b"|".join(dict.fromkeys(forms)) + b")"


_NAMED = {"\n": b"\\n", "\r": b"\\r", "\t": b"\\t", "'": b"&apos;"}


def _build_anycase_pattern(text: bytes) -> bytes:
    """A pattern of an escape whose hex digits may be of either case."""
    made = []
    for byte in text:
        letter = bytes([byte])
        both = letter.lower() + letter.upper()
        is_hex = letter in b"abcdefABCDEF"
        made.append(b"[" + both + b"]" if is_hex else re.escape(letter))
    return b"".join(made)


def _build_symbol_pattern(byte: int) -> bytes:
    """A pattern of one base64 symbol, in either alphabet (RFC 4648 sections 4 and 5), escaped or
    not.
    """
    if byte in b"+-":
        return rb"(?:[+\- ]|%2[bBdD]|\\u002[bBdD]|&#43;)"
    if byte in b"/_":
        return rb"(?:\\?/|_|%2[fF]|%5[fF]|\\u002[fF]|&#47;|&#x2[fF];)"
    return bytes([byte])


def _encode_alignments(raw: bytes) -> set[bytes]:
    """The base64 symbols that depend on the secret alone, at each of the three alignments."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        start = (0, 2, 3)[shift]
        whole = (shift + len(raw)) * 8 // 6
        forms.add(encoded[start:whole])
    return forms
