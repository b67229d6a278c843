"""Answers that came over HTTP, decoded."""

from __future__ import annotations

import binascii
import json
import re
import time
from functools import lru_cache

from .errors import MalformedAnswer
from .media import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a caller goes on by: where the next page or the new thing is, its version, how much is left.
_TELLING = frozenset(
    "link location content-location content-range content-disposition etag last-modified "
    "retry-after deprecation sunset warning".split()
)
_TELLING_PATTERN = (
    r"(?:x-)?(?:total|next|prev|pag(?:e|ination)|per-page|offset|cursor|count|rate-?limit)"
)
MAX_HEADERS = 16
MAX_HEADER = 1000
_JSON_LINES = frozenset(
    f"application/{name}"
    for name in ("x-ndjson", "ndjson", "jsonl", "x-jsonl", "jsonlines", "x-jsonlines", "json-seq")
)
_TEXT = frozenset(
    f"application/{name}"
    for name in (
        "xml yaml x-yaml toml javascript ecmascript x-www-form-urlencoded graphql sql x-sh rtf "
        "x-pem-file jwt jose stream+json"
    ).split()
)
# Only codecs that decode in linear time; `punycode`, `idna` and `uu` do not. The patterns stay
# text because most processes never need them, and re keeps what it compiled.
_CHARSET = (
    r"(?i:us-?ascii|utf-?(?:8|16|32)(?:[-_]?[bl]e)?|(?:iso-?)?8859-\d+|latin-?\d+"
    r"|(?:windows|cp)-?\d+|koi8-[rtu]|mac-?\w+|shift[-_]?jis|sjis|euc[-_]?(?:jp|kr|cn|tw)"
    r"|gb(?:2312|k|18030)|big5(?:-?hkscs)?|tis-620)\Z"
)
_BINARY = rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]"
_HTTP_DATE = r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT\Z"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    205: "Reset Content",
    206: "Partial Content",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    507: "Insufficient Storage",
    508: "Loop Detected",
    511: "Network Authentication Required",
}


class Answer:
    """An HTTP answer. `headers` has lower-case names, repeated ones joined by a comma.

    `body` is the parsed JSON or None; `is_json` tells JSON's null from none. `text` is None where
    the bytes are not text. `pages` is set where several were joined: read, items, more, and
    left_out and stopped where there is something to tell.
    """

    def __init__(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.status, self.data = status, data
        self.headers: dict[str, str] = {}
        for name, value in headers:
            key = name.lower()
            self.headers[key] = f"{self.headers[key]}, {value}" if key in self.headers else value
        self.content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.text = self._decoded() if data else None
        self.body: Any = None
        self.is_json, self.problem = False, ""
        self.pages: dict[str, Any] | None = None
        if self.text is not None and self._may_be_json(self.text.strip()):
            self._parse(self.text)

    @property
    def reason(self) -> str:
        return _REASONS.get(self.status, "")

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait (RFC 9110, section 10.2.3), or None where the API gives no hint."""
        value = self.headers.get("retry-after", "").strip()
        if value.isascii() and value.isdigit() and len(value) < 9:
            return float(value)
        until = _http_date(value)
        if until is None:
            return None
        return max(0.0, until - (_http_date(self.headers.get("date", "")) or time.time()))

    def is_declared_json(self) -> bool:
        return _is_json(self.content_type)

    def checked(self) -> Answer:
        """The answer itself. Raises MalformedAnswer where declared JSON does not parse."""
        if self.problem and self.is_declared_json():
            raise MalformedAnswer(self, self.problem)
        return self

    def printable(self) -> str:
        """The body for a person: its text, or base64."""
        return self._base64() if self.text is None else self.text

    def structured(self, wanted: frozenset[str]) -> dict[str, Any]:
        """The answer as `structuredContent`: status, and `body`, `text`, or of bytes how many they
        are and their SHA-256; `headers` with those that a caller goes on by, and `pages`, where
        there are any. Bytes themselves, as `base64`, only where `wanted` knows that.

        The form is the content type's own, or where `wanted` (the output schema's properties) lacks
        that, another the bytes can take.
        """
        telling = self._telling_headers()
        head: dict[str, Any] = {"status": self.status}
        if telling:
            head["headers"] = telling
        if self.pages:
            head["pages"] = self.pages
        forms = self._forms()
        if not forms:
            return head
        form = next((name for name in forms if name in wanted), forms[0])
        told: dict[str, Any]
        if form == "body":
            return {**head, "body": self.body}
        if form == "bytes":
            told = {"bytes": len(self.data), "sha256": sha256(self.data)}
        elif form == "base64":
            told = {form: self._base64()}
        else:
            told = {form: self.data.decode() if self.text is None else self.text}
        return {**head, **told, "content_type": self.content_type}

    def _telling_headers(self) -> dict[str, str]:
        found = {
            name: value[:MAX_HEADER] for name, value in self.headers.items() if _is_telling(name)
        }
        return dict(list(found.items())[:MAX_HEADERS])

    def _forms(self) -> list[str]:
        if not self.data or (self.text is not None and not self.text.strip()):
            return []
        if self.is_json and (self.is_declared_json() or not self.content_type):
            return ["body"] if self.content_type else ["body", "text"]
        if self.text is not None:
            return ["text", "body", "base64"] if self.is_json else ["text", "base64"]
        return ["bytes", "base64", *(["text"] if _is_utf8(self.data) else [])]

    def _base64(self) -> str:
        return binascii.b2a_base64(self.data, newline=False).decode()

    def _decoded(self) -> str | None:
        charset = _charset(self.headers.get("content-type", ""))
        if charset:
            try:
                return self.data.decode(charset)
            except (UnicodeDecodeError, LookupError):
                return self.data.decode("latin-1")
        kind = self.content_type
        textual = self.is_declared_json() or _is_textual(kind)
        if textual or not kind:
            return _guessed(self.data, textual)
        # Vendor types without a suffix are JSON or text as often as they are not.
        is_open = kind.startswith("application/") and kind != "application/octet-stream"
        is_binary = not is_open or re.search(_BINARY, self.data)
        return None if is_binary else _guessed(self.data, False)

    def _may_be_json(self, text: str) -> bool:
        if not self.content_type or self.is_declared_json():
            return bool(text)
        is_open = self.content_type == "text/plain" or not _is_textual(self.content_type)
        return is_open and text[:1] in ("{", "[")

    def _parse(self, text: str) -> None:
        try:
            self.body = _DECODER.decode(text)
            self.is_json = True
        except RecursionError:
            self.problem = "nested too deeply"
        except ValueError as error:
            self.problem = str(error)


@lru_cache(maxsize=64)
def _is_telling(name: str) -> bool:
    return name in _TELLING or re.match(_TELLING_PATTERN, name) is not None


@lru_cache(maxsize=64)
def _is_json(kind: str) -> bool:
    own = kind.endswith(("/json", "+json"))
    return own and kind not in _TEXT


def _is_textual(kind: str) -> bool:
    return (
        kind.startswith("text/")
        or kind.endswith(("+xml", "+yaml"))
        or kind in _TEXT
        or kind in _JSON_LINES
    )


@lru_cache(maxsize=64)
def _charset(content_type: str) -> str:
    """The charset of a content type where it is one that can be used, else nothing."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset":
            if charset.lower() in ("utf-8", "utf8"):
                return "utf-8-sig"
            return charset if re.match(_CHARSET, charset) else ""
    return ""


def _guessed(data: bytes, textual: bool) -> str | None:
    """UTF-8 (or UTF-16 and 32 by their marks); Latin-1 only for what is declared to be text and has
    no control characters: bytes under a wrong name stay bytes.
    """
    if data.isascii():
        return data.decode()
    encoding = "utf-8-sig"
    if data[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        encoding = "utf-32"
    elif data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode("latin-1") if textual and not re.search(_BINARY, data) else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _http_date(text: str) -> float | None:
    """Seconds since 1970 of an IMF-fixdate (RFC 9110, section 5.6.7), or None."""
    match = re.match(_HTTP_DATE, text.strip())
    if not match or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[index]) for index in (1, 3, 4, 5, 6))
    month = _MONTHS.index(match[2]) + 1
    # https://howardhinnant.github.io/date_algorithms.html#days_from_civil
    year, shifted = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = year * 365 + year // 4 - year // 100 + year // 400
    days += (153 * shifted + 2) // 5 + day - 1 - 719468
    return days * 86400.0 + hour * 3600 + minute * 60 + second
