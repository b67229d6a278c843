"""A document as read: bytes of JSON or YAML become plain values, within bounds."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from forge.errors import DocumentEmpty, DocumentTooLarge, DocumentUnreadable
from forge.recorded import curl
from forge.yaml12 import Unacceptable, build

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 128
MAX_VALUES = 2_000_000

Fetch = Callable[[str], bytes]
"""Gets a URL's content. Raises OSError where it cannot."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Problem:
    """Something in a document that could not be used: the file, a JSON pointer (RFC 6901) and why.

    A reason ends by saying what became of the place: what was left out, or taken instead.
    """

    file: str
    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}#{self.pointer}: {self.reason}"


@dataclass(frozen=True)
class Document:
    """A parsed document. `root` holds only dict, list, str, int, float, bool and None.

    `name` is how problems call it: a file name or a URL. `path` and `directory` are set for a local
    file: relative references are read from below `directory` only. `fetch` gets references of a
    document that came from `url`, of the same origin only.
    """

    name: str
    content: bytes = field(repr=False)
    root: Any = field(repr=False)
    problems: tuple[Problem, ...] = ()
    path: Path | None = None
    directory: Path | None = None
    url: str | None = None
    fetch: Fetch | None = field(default=None, repr=False)

    @property
    def digest(self) -> str:
        """sha256 of the bytes, in hex."""
        return hashlib.sha256(self.content).hexdigest()


def load(path: Path, directory: Path | None = None) -> Document:
    """Read and parse a file; `directory` bounds the references, by default `_neighbourhood`.

    Raises DocumentUnreadable, DocumentEmpty, DocumentTooLarge or DocumentRecursive.
    """
    content = read_file(path, path.name)
    real = path.resolve()
    root = (directory or _neighbourhood(real)).resolve()
    value, problems = parse_value(content, path.name)
    return Document(path.name, content, value, problems, path=real, directory=root)


def parse(
    content: bytes, name: str, *, url: str | None = None, fetch: Fetch | None = None
) -> Document:
    """Parse bytes that came from elsewhere. Raises as `load`."""
    value, problems = parse_value(content, name)
    return Document(name, content, value, problems, url=url, fetch=fetch)


def read_file(path: Path, name: str) -> bytes:
    """The bytes of a regular file of at most MAX_BYTES. Raises DocumentUnreadable or -TooLarge."""
    try:
        if not path.is_file():
            raise DocumentUnreadable(name, "there is no such file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentUnreadable(name, error.strerror or str(error)) from error
    if len(content) > MAX_BYTES:
        raise DocumentTooLarge(name, f"it has {_megabytes(path.stat().st_size)}{_LIMIT}")
    return content


def parse_value(content: bytes, name: str) -> tuple[Any, tuple[Problem, ...]]:
    """Bytes of JSON or YAML, told apart by content, as plain values and what was odd about them; a
    text with curl commands is `{"curl": text}`.
    """
    if len(content) > MAX_BYTES:
        raise DocumentTooLarge(name, f"it has {_megabytes(len(content))}{_LIMIT}")
    text, problems = _decode(content, name)
    if not text.strip("\ufeff \t\r\n\0"):
        raise DocumentEmpty(name)
    repeated: list[tuple[dict[str, Any], str]] = []
    value = _parse_text(text, name, repeated)
    _check_depth(value, name)
    if "\\u" in text and _has_surrogates(value):
        value = _without_surrogates(value)
        problems += (Problem(name, "", "half a surrogate pair was replaced by U+FFFD"),)
    return value, problems + _locate_repeated(value, name, repeated)


def _parse_text(text: str, name: str, repeated: list[tuple[dict[str, Any], str]]) -> Any:
    json_error = ""
    if text.lstrip()[:1] in ("{", "["):
        _check_count(text, name)
        try:
            return _parse_json(text, repeated)
        except RecursionError as error:
            raise DocumentTooLarge(name, f"it nests deeper than {MAX_DEPTH} levels") from error
        except ValueError as error:
            repeated.clear()
            json_error = f"not JSON: {error}"
    if text.lstrip()[:1] == "<":
        raise DocumentUnreadable(name, "it is a web page or XML, not JSON or YAML")
    if curl.starts_with_curl(text):
        return {curl.KEY: text}
    try:
        value = build(_CONTROLS.sub(" ", text), repeated, MAX_DEPTH, MAX_VALUES)
    except Unacceptable as error:
        raise error.fatal(name) from error
    except (yaml.YAMLError, ValueError) as error:
        if curl.holds_curl(text):
            return {curl.KEY: text}
        reason = json_error or f"not YAML: {' '.join(str(error).split())}"
        raise DocumentUnreadable(name, reason[:300]) from error
    return {curl.KEY: text} if isinstance(value, str) and curl.holds_curl(text) else value


def _parse_json(text: str, repeated: list[tuple[dict[str, Any], str]]) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            keys = [key for key, _ in pairs]
            repeated.extend((made, key) for key in made if keys.count(key) > 1)
        return made

    return json.loads(
        text,
        object_pairs_hook=mapping,
        parse_float=_finite,
        parse_constant=lambda _: None,
        strict=False,
    )


def _check_count(text: str, name: str) -> None:
    """Refuse what would take gigabytes once parsed; marks inside strings count as well."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > 2 * MAX_VALUES or text.count("{") > MAX_VALUES // 2:
        raise DocumentTooLarge(name, f"it has more than {MAX_VALUES // 2} objects or values")


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _decode(content: bytes, name: str) -> tuple[str, tuple[Problem, ...]]:
    encoding = next((e for mark, e in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    if encoding is None:
        # RFC 4627 section 3: the zero bytes of the first two characters tell UTF-16 apart.
        zeros = [byte == 0 for byte in content[:2]]
        big_or_plain = "utf-16-be" if zeros == [True, False] else "utf-8"
        encoding = "utf-16-le" if zeros == [False, True] else big_or_plain
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError as error:
        if b"\0" in content[:4096]:
            raise DocumentUnreadable(name, "it is binary, not text") from error
        where = f"byte {error.start} is not {encoding.upper()}"
        return content.decode(encoding, "replace"), (Problem(name, "", f"{where}; replaced"),)


def _check_depth(value: Any, name: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise DocumentTooLarge(name, f"it nests deeper than {MAX_DEPTH} levels")


def _children(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict | list)]


def _has_surrogates(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogates(key) or _has_surrogates(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_surrogates, value))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(v) for key, v in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def _locate_repeated(
    value: Any, name: str, repeated: list[tuple[dict[str, Any], str]]
) -> tuple[Problem, ...]:
    wanted: dict[int, list[str]] = {}
    for mapping, key in repeated:
        wanted.setdefault(id(mapping), []).append(key)
    found: list[Problem] = []
    waiting = [(value, "")] if wanted else []
    while waiting:
        item, pointer = waiting.pop()
        for key in wanted.pop(id(item), ()):
            reason = f"the key {key[:80]!r} stands here more than once; the last one counts"
            found.append(Problem(name, pointer, reason))
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        waiting += [
            (child, f"{pointer}/{escape(key)}")
            for key, child in pairs
            if isinstance(child, dict | list)
        ]
        if not wanted:
            break
    return tuple(found)


def escape(key: object) -> str:
    """A key as one token of a JSON pointer (RFC 6901 section 3)."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _neighbourhood(path: Path) -> Path:
    """The directory of a file, or the one above it where that is its owner's alone: split documents
    keep `paths/` and `schemas/` side by side, but a file in /tmp must not reach across /tmp.
    """
    here, above = path.parent, path.parent.parent
    status = above.stat()
    private = status.st_uid == path.stat().st_uid and not status.st_mode & 0o002
    return above if private and above != above.parent else here


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB"


_LIMIT = f", more than {MAX_BYTES // (1024 * 1024)} MiB"
