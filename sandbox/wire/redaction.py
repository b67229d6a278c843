"""Taking secrets out of what comes back, in every form in which an API may echo one."""

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

from sandbox.exchange import Headers, WireResponse

MARK = "[redacted]"
ANYWHERE = 4
"""A shorter secret is only found where it stands by itself: it would blot out ordinary text."""
UNLIKELY = 12
"""So many letters do not stand in megabytes of base64 by chance."""
MAX_SECRET = 32 * 1024
_MIN_ENCODED = 6
_JOINED = 64 * 1024


class Redaction:
    """Removes some secrets: as they are, in any case, and with any of their characters escaped as
    in URLs, JSON, HTML or C; in base64 at any alignment, plain or URL-safe; in hex; and split over
    headers. Each run of one is replaced by a mark.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        kept = sorted({s for s in secrets if s and len(s) <= MAX_SECRET}, key=len, reverse=True)
        self._patterns = tuple(pattern for secret in kept for pattern in _patterns(secret))
        self._long = tuple(secret for secret in kept if len(secret) >= UNLIKELY)

    def also(self, passing: Iterable[str]) -> Redaction:
        """This redaction, and of values that live for one request: plain or percent-encoded."""
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

    def data(self, content: bytes) -> bytes:
        """Bytes without the secrets."""
        for pattern in self._patterns:
            content = pattern.sub(MARK.encode(), content)
        return content

    def text(self, text: str) -> str:
        """A text without the secrets; without any, the very same one."""
        if not self._patterns or not text:
            return text
        raw = text.encode("utf-8", "surrogatepass")
        clean = self.data(raw)
        return text if clean == raw else clean.decode("utf-8", "replace")

    def base64(self, text: str) -> str:
        """Base64 whose bytes hold no secret, nor its own letters one that is too long for chance;
        without any, the very same text. What is no base64 is a text.
        """
        try:
            raw = binascii.a2b_base64(text.encode(), strict_mode=True)
        except (binascii.Error, UnicodeEncodeError):
            return self.text(text)
        letters = text.casefold()
        is_told = any(secret.casefold() in letters for secret in self._long)
        clean = MARK.encode() if is_told else self.data(raw)
        return text if clean == raw else binascii.b2a_base64(clean, newline=False).decode()

    def headers(self, headers: Headers) -> Headers:
        """Headers without the secrets, also those whose values hold a secret only together."""
        cleaned = tuple((self.text(name), self.text(value)) for name, value in headers)
        whole = "".join(value for _, value in cleaned)
        if len(whole) > _JOINED or self.text(whole) == whole:
            return cleaned
        return self._unsplit(cleaned, whole)

    def response(self, response: WireResponse) -> WireResponse:
        """An answer without the secrets."""
        if not self._patterns:
            return response
        body = self.data(response.body)
        return replace(response, headers=self.headers(response.headers), body=body)

    def value(self, value: Any) -> Any:
        """Plain JSON values without the secrets, names included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _unsplit(self, headers: Headers, whole: str) -> Headers:
        """The headers with every value blotted out that a secret over their seams has part of."""
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


def sensitive(secret: str) -> tuple[str, ...]:
    """What of a vault's secret must not be shown: all of it, what stands behind the colon of
    `user:password`, and of a JSON object the texts that are not plainly public.
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


def _patterns(secret: str) -> tuple[re.Pattern[bytes], ...]:
    raw = secret.encode("utf-8", "surrogatepass")
    escaped = b"".join(map(_escapes, secret))
    if len(secret) < ANYWHERE or (secret.isdigit() and len(secret) < 8):
        escaped = rb"(?<![A-Za-z0-9])(?:" + escaped + rb")(?![A-Za-z0-9])"
    made = [re.compile(escaped)]
    encoded = {form for form in _base64(raw) if len(form) >= _MIN_ENCODED}
    for form in sorted(encoded, key=len, reverse=True):
        made.append(re.compile(b"".join(map(_symbol, form)) + rb"(?:=|%3[dD]|\\u003[dD])*"))
    if len(raw) >= ANYWHERE:
        pairs = (b"%02x" % byte for byte in raw)
        made.append(re.compile(rb"(?:[:\- ]|%3[aA]|0x|\\x)?".join(pairs), re.IGNORECASE))
    return tuple(made)


def _escapes(character: str) -> bytes:
    """One character as it may be written."""
    forms: list[bytes] = []
    for form in dict.fromkeys((character, character.lower(), character.upper())):
        if len(form) != 1:
            continue
        raw = form.encode("utf-8", "surrogatepass")
        percent = b"".join(b"%%%02x" % byte for byte in raw)
        units = form.encode("utf-16-be", "surrogatepass").hex()
        escapes = "".join("\\u" + units[at : at + 4] for at in range(0, len(units), 4)).encode()
        code = ord(form)
        forms += [re.escape(raw), _anycase(percent), _anycase(percent.replace(b"%", b"%25"))]
        forms += [_anycase(escapes), b"&#0*%d;" % code, b"&#[xX]0*" + _anycase(b"%x;" % code)]
        if code < 256:
            forms.append(_anycase(b"\\x%02x" % code))
        if code < 128 and not form.isalnum():
            forms += [b"\\\\" + re.escape(raw), re.escape(html.escape(form).encode())]
    if character == " ":
        forms.append(rb"\+")
    if character in _NAMED:
        forms.append(re.escape(_NAMED[character]))
    return b"(?:" + b"|".join(dict.fromkeys(forms)) + b")"


_NAMED = {"\n": b"\\n", "\r": b"\\r", "\t": b"\\t", "'": b"&apos;"}


def _anycase(text: bytes) -> bytes:
    """A pattern of an escape whose hex digits are of either case."""
    made = []
    for byte in text:
        letter = bytes([byte])
        both = letter.lower() + letter.upper()
        is_hex = letter in b"abcdefABCDEF"
        made.append(b"[" + both + b"]" if is_hex else re.escape(letter))
    return b"".join(made)


def _symbol(byte: int) -> bytes:
    """One symbol of a base64 text, in either alphabet and escaped or not."""
    if byte in b"+-":
        return rb"(?:[+\- ]|%2[bBdD]|\\u002[bBdD]|&#43;)"
    if byte in b"/_":
        return rb"(?:\\?/|_|%2[fF]|%5[fF]|\\u002[fF]|&#47;|&#x2[fF];)"
    return bytes([byte])


def _base64(raw: bytes) -> set[bytes]:
    """The symbols of base64 that the secret alone decides, at each of its three alignments."""
    forms = set()
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        start = (0, 2, 3)[shift]
        whole = (shift + len(raw)) * 8 // 6
        forms.add(encoded[start:whole])
    return forms
