"""Redaction of secrets in answers, in every encoding in which an API may echo one.

The search is one pass of RE2 in linear time, which lets other threads run.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import re2  # type: ignore[import-untyped]

from sandbox.sanitize import drop_unseen, find_readings, is_plain
from sandbox.wire.exchange import Headers, WireResponse

MARK = "[redacted]"
ANYWHERE = 4
"""A shorter secret is only matched as a whole word; anywhere, it would redact ordinary text."""
UNLIKELY = 12
"""A text of this length does not occur in megabytes of base64 by chance."""
MAX_SECRET = 32 * 1024
MAX_SPANS = 10_000
"""Occurrences that are replaced one by one; of a content with more the rest is withheld."""
MAX_UNPACKED = 128 * 1024 * 1024
"""Bytes that are searched of what a content's packed parts hold; a part beyond that is withheld."""
_PIECE = 256
"""Characters of a longer secret that are searched together, wherever they are."""
_AT_ONCE = 256
"""Characters of the secrets of one pattern, whose automaton is to stay small."""
_MIN_ENCODED = 6
_JOINED = 64 * 1024
_GZIP, _GZIP_BASE64 = b"\x1f\x8b", b"H4sI"
_BASE64_RUN = re.compile(rb"(?:[A-Za-z0-9+/_=\r\n-]|\\[rn/]|%2[bBfF]|%3[dD])+")
_ESCAPED_GZIP = re.compile(rb"\\u00(?:48|34|73|49)")
"""A letter of `H4sI` as JSON escapes it."""
SHORT = 4096
"""Bytes that unpack to as many as are searched in some milliseconds."""
_CHUNK = 256 * 1024

Span = tuple[int, int]


class _Finder:
    """A pattern of RE2; where it has a group, that is what is found."""

    def __init__(self, pattern: bytes) -> None:
        options = re2.Options()
        options.max_mem, options.log_errors = 64 << 20, False
        options.encoding = re2.Options.Encoding.LATIN1
        self._regex = re2.compile(pattern, options)
        self._group = self._regex.groups

    def find_spans(self, content: bytes) -> Iterator[Span]:
        """Where it is found, overlapping ones too."""
        found = self._regex.search(content)
        while found:
            start, end = found.span(self._group)
            yield start, end
            found = self._regex.search(content, start + 1)


class Redaction:
    """Replaces secrets by `MARK`: as they are, in any letter case, and with any character escaped
    as in URLs, JSON, HTML or C; in base64 at any alignment, plain or URL-safe, with line breaks; in
    hex; in gzip, also as base64; split over several headers; and with invisible characters or
    escape sequences anywhere between their letters.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = (s for s in secrets if len(s) <= MAX_SECRET)
        kept = sorted({form for s in known for form in _list_forms(s)}, key=len, reverse=True)
        self._finders = tuple(_compile_finders(kept))
        self._long = tuple(secret for secret in kept if len(secret) >= UNLIKELY)
        self._numbers = frozenset(
            int(s) for s in kept if s.isascii() and s.isdigit() and len(s) < 40
        )

    def extend_with(self, passing: Iterable[str]) -> Redaction:
        """This redaction extended by values of one request, plain or percent-encoded."""
        values = {form for text in passing for form in _list_forms(text) if len(form) >= ANYWHERE}
        if not values:
            return self
        forms = {form for text in values for form in (text, quote(text, safe=""))}
        longest = sorted(forms, key=len, reverse=True)
        made = Redaction(())
        made._finders = (
            *self._finders,
            _Finder(b"|".join(re2.escape(f.encode()) for f in longest)),
        )
        made._long = (*self._long, *(text for text in values if len(text) >= UNLIKELY))
        made._numbers = self._numbers
        return made

    def redact_bytes(self, content: bytes) -> bytes:
        """Bytes without the secrets; the same object if they hold none.

        Where one shows only to a reader who does not see what is invisible, what that reader sees
        is returned, redacted.
        """
        if not self._finders or not content:
            return content
        clean = self._replace(content)
        for reading in find_readings(clean):
            told = self._replace(reading)
            if told != reading:
                return told
        return clean

    def redact_text(self, text: str) -> str:
        """A text without the secrets; the same object if it holds none."""
        if not self._finders or not text:
            return text
        raw = text.encode("utf-8", "surrogatepass")
        clean = self.redact_bytes(raw)
        return text if clean is raw else clean.decode("utf-8", "replace")

    def redact_continued(self, before: str, text: str) -> str:
        """A text without the secrets, and without the rest of one that began in `before`, which was
        told already.
        """
        clean = self.redact_text(text)
        return MARK if 1 in self.find_split([before, clean]) else clean

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
        return text if clean is raw else binascii.b2a_base64(clean, newline=False).decode()

    def shows_secret(self, text: str) -> bool:
        """Whether a text without a plain secret has one for a reader who does not see what is
        invisible.
        """
        return not is_plain(text) and self.redact_text(text) is not text

    def redact_headers(self, headers: Headers) -> Headers:
        """Headers without the secrets, including one that is split over several values."""
        if not self._finders:
            return headers
        cleaned = tuple(
            (self.redact_text(name), self.redact_text(value)) for name, value in headers
        )
        touched = self.find_split([value for _, value in cleaned])
        return tuple(
            (name, MARK if number in touched else value)
            for number, (name, value) in enumerate(cleaned)
        )

    def find_split(self, texts: Sequence[str]) -> frozenset[int]:
        """The numbers of the texts that together hold a secret which none of them holds alone."""
        if len(texts) < 2 or not self._finders or sum(map(len, texts)) > _JOINED:
            return frozenset()
        raw = [text.encode("utf-8", "surrogatepass") for text in texts]
        spans = self._find_spans(b"".join(raw))
        touched, start = set(), 0
        for number, part in enumerate(raw):
            end = start + len(part)
            if part and any(left < end and right > start for left, right in spans):
                touched.add(number)
            start = end
        return frozenset(touched)

    def redact_response(self, response: WireResponse) -> WireResponse:
        """A response without the secrets, in its headers and its body."""
        if not self._finders:
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
        if isinstance(value, int | float) and value in self._numbers:
            return value if isinstance(value, bool) else MARK
        return value

    def _replace(self, content: bytes) -> bytes:
        """The content with every secret replaced; the same object if it holds none."""
        if content.startswith(_GZIP) and self._holds_packed(content):
            return MARK.encode()
        spans = self._find_spans(content)
        if not spans:
            return content
        made, at = [], 0
        for start, end in spans:
            made += [content[at:start], MARK.encode()]
            at = end
        return b"".join([*made, content[at:]])

    def _find_spans(self, content: bytes) -> list[Span]:
        """Where the content holds secrets, in order and without overlaps."""
        found: list[Span] = []
        for finder in self._finders:
            for count, span in enumerate(finder.find_spans(content)):
                found.append(span)
                if count >= MAX_SPANS:
                    found.append((span[0], len(content)))
                    break
        found += self._find_packed(content)
        merged: list[Span] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _find_packed(self, content: bytes) -> Iterator[Span]:
        """Where the content holds gzip as base64 with a secret in it."""
        at = content.find(_GZIP_BASE64)
        while at >= 0:
            run = _BASE64_RUN.match(content, at)
            end = run.end() if run else at + 1
            if self._holds_packed(_decode_loosely(content[at:end])):
                yield at, end
            at = content.find(_GZIP_BASE64, end)

    def _holds_packed(self, packed: bytes) -> bool:
        """Whether gzip holds a secret, or more than is searched."""
        unpack, tail, size = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32), b"", 0
        try:
            while packed:
                chunk = unpack.decompress(packed, _CHUNK)
                packed, size = unpack.unconsumed_tail, size + len(chunk)
                tail = tail[-_CHUNK:] + chunk
                if size > MAX_UNPACKED or any(
                    next(finder.find_spans(tail), None) for finder in self._finders
                ):
                    return True
                if not chunk and not packed:
                    packed = unpack.unused_data
                    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        except zlib.error:
            return False
        return False


def may_unpack(content: bytes) -> bool:
    """Whether a text, or one that JSON writes so, may hold gzip that takes long to search: it
    unpacks to a thousand times its size.
    """
    if len(content) <= SHORT:
        return False
    if content.startswith(_GZIP) or _GZIP_BASE64 in content:
        return True
    return b"\\u00" in content and _ESCAPED_GZIP.search(content) is not None


def _decode_loosely(text: bytes) -> bytes:
    """The bytes of base64 in either alphabet, with line breaks or escapes, as far as it goes."""
    text = re.sub(rb"\\[rn]|[\r\n\\]", b"", text)
    for escaped, letter in ((b"%2b", b"+"), (b"%2f", b"/"), (b"%3d", b"=")):
        text = text.replace(escaped, letter).replace(escaped.upper(), letter)
    text = text.translate(bytes.maketrans(b"-_", b"+/")).partition(b"=")[0]
    try:
        return binascii.a2b_base64(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def list_sensitive_parts(secret: str) -> tuple[str, ...]:
    """The parts of a vault's secret to redact: all of it, the password of `user:password`, what
    comes after the scheme of an `Authorization` header (with what that encodes), and the texts of a
    JSON object except members that are public (`client_id`, `scope`, ...).
    """
    found = [secret, *_list_header_parts(secret)]
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


def _list_header_parts(secret: str) -> Iterator[str]:
    whole = _HEADER.fullmatch(secret.strip())
    if whole is None:
        return
    yield whole[2]
    if whole[1].lower() == "basic":
        try:
            login = base64.b64decode(whole[2], validate=True).decode()
        except ValueError:
            return
        yield from (login, login.partition(":")[2])


_HEADER = re.compile(r"([A-Za-z][\w-]*) +(\S{8,})")
"""A scheme and what it introduces, of which an API may repeat the second part by itself."""
_PUBLIC = frozenset(
    {
        "access_key_id",
        "audience",
        "client_auth",
        "client_id",
        "email",
        "grant",
        "issuer",
        "key_id",
        "kid",
        "region",
        "resource",
        "revocation_url",
        "scope",
        "service",
        "token_type",
        "token_url",
        "user",
        "username",
    }
)


def _list_forms(secret: str) -> Iterable[str]:
    """A secret as it is, and as one reads it who does not see what is invisible in it."""
    return filter(None, (secret, drop_unseen(secret)))


def _compile_finders(secrets: Iterable[str]) -> Iterator[_Finder]:
    """The finders of secrets, of which each searches for many."""
    patterns: list[bytes] = []
    words: list[bytes] = []
    size = 0
    for secret in secrets:
        for piece in (secret[at : at + _PIECE] for at in range(0, len(secret), _PIECE)):
            if patterns and size + len(piece) > _AT_ONCE:
                yield _Finder(b"|".join(patterns))
                patterns, size = [], 0
            short = len(secret) < ANYWHERE or (secret.isdigit() and len(secret) < 8)
            (words if short else patterns).append(b"".join(map(_build_character_pattern, piece)))
            patterns += _build_encoded_patterns(piece.encode("utf-8", "surrogatepass"))
            size += len(piece)
    if patterns:
        yield _Finder(b"|".join(patterns))
    if words:
        yield _Finder(rb"(?:\A|[^A-Za-z0-9])(" + b"|".join(words) + rb")(?:[^A-Za-z0-9]|\z)")


def _build_encoded_patterns(raw: bytes) -> list[bytes]:
    """Patterns of bytes in base64 at each alignment, and in hex."""
    made = []
    encoded = {form for form in _encode_alignments(raw) if len(form) >= _MIN_ENCODED}
    for form in sorted(encoded, key=len, reverse=True):
        symbols = _BREAK.join(map(_build_symbol_pattern, form))
        made.append(symbols + rb"(?:=|%3[dD]|\\u003[dD])*")
    if len(raw) >= ANYWHERE:
        pairs = (b"%02x" % byte for byte in raw)
        made.append(b"(?i:" + _GAP.join(pairs) + b")")
    return made


_BREAK = rb"(?:[\r\n\t ]|\\+[rnt]|%0[aAdD]|&#1[03];)*"
"""What may be between the symbols of base64."""
_GAP = rb"(?:[:\-, \r\n\t]|%3a|%20|0x|\\+x|\\+[rnt])*"
"""What may be between the bytes of hex."""


def _build_character_pattern(character: str) -> bytes:
    """A pattern of one character in any letter case and every escape form."""
    forms: list[bytes] = []
    for form in _list_case_forms(character):
        escaped = [_list_escape_forms(letter) for letter in form]
        if len(escaped) == 1:
            forms += escaped[0]
        else:
            forms.append(b"".join(b"(?:" + b"|".join(each) + b")" for each in escaped))
    if character == " ":
        forms.append(rb"\+")
    if character in _NAMED:
        forms.append(re2.escape(_NAMED[character]))
    return b"(?:" + b"|".join(dict.fromkeys(forms)) + b")"


_CASES = (str.lower, str.upper, str.title, str.casefold)
_SIGMA, _FINAL_SIGMA = "\u03c3", "\u03c2"


def _list_case_forms(character: str) -> tuple[str, ...]:
    """What a character may become where a text is put into another letter case, and that one again:
    one letter or several (ß, SS), and a sigma at the end of a word
    (https://www.unicode.org/Public/UCD/latest/ucd/SpecialCasing.txt).
    """
    found: dict[str, None] = {character: None}
    if character.isascii():
        return tuple(dict.fromkeys((character, character.lower(), character.upper())))
    fresh = [character]
    while fresh:
        form = fresh.pop()
        made = [change(form) for change in _CASES]
        if _SIGMA in made:
            made.append(_FINAL_SIGMA)
        fresh += [each for each in made if each not in found]
        found |= dict.fromkeys(made)
    return tuple(found)


def _list_escape_forms(letter: str) -> list[bytes]:
    """The patterns of one letter as it is, and in every escape form."""
    raw = letter.encode("utf-8", "surrogatepass")
    percent = b"".join(b"%%%02x" % byte for byte in raw)
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join("\\u" + units[at : at + 4] for at in range(0, len(units), 4)).encode()
    code = ord(letter)
    forms = [
        re2.escape(raw),
        _build_anycase_pattern(percent),
        _build_anycase_pattern(percent.replace(b"%", b"%25")),
        _build_anycase_pattern(escapes),
        b"&#0*%d;" % code,
        b"&#[xX]0*" + _build_anycase_pattern(b"%x;" % code),
    ]
    if code < 256:
        forms.append(_build_anycase_pattern(b"\\x%02x" % code))
    if code < 128 and not letter.isalnum():
        forms += [b"\\\\" + re2.escape(raw), re2.escape(html.escape(letter).encode())]
    return forms


_NAMED = {"\n": b"\\n", "\r": b"\\r", "\t": b"\\t", "'": b"&apos;"}


def _build_anycase_pattern(text: bytes) -> bytes:
    """A pattern of an escape whose hex digits may be of either case."""
    made = []
    for byte in text:
        letter = bytes([byte])
        both = letter.lower() + letter.upper()
        is_hex = letter in b"abcdefABCDEF"
        made.append(b"[" + both + b"]" if is_hex else re2.escape(letter))
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
