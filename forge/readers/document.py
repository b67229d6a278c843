"""Parsing of documents: JSON or YAML bytes to plain values, within bounds on size and depth."""

from __future__ import annotations

import codecs
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from forge.errors import DocumentEmpty, DocumentTooLarge, DocumentUnreadable
from forge.readers.recorded import curl
from forge.readers.yaml12 import BoundExceeded, parse_yaml

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 128
MAX_VALUES = 2_000_000
MAX_BACKSLASHES = 8
"""Of so many before the end of a key, it is not found by searching for substrings."""

Fetch = Callable[[str], bytes]
"""Gets a URL's content. Raises OSError where it cannot."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMELESS = 'in "<unicode string>", '
"""What PyYAML calls a document that it got as a text."""
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPE_HEAD = r"^\ufeff?(?:extend )?(?:schema|(?:type|input|interface|enum) \w++[^{:\n]*+) ?\{"
_GRAPHQL_BRACE = re.compile(_TYPE_HEAD, re.MULTILINE)
_GRAPHQL_TYPE = re.compile(f"{_TYPE_HEAD} *$", re.MULTILINE)
_GRAPHQL_START = re.compile(
    r"[\s\ufeff]*+(?:#[^\n]*+\n\s*+)*+"
    r"(?:\"|(?:directive @|(?:type|schema|extend|scalar|enum|interface|input|union)\b)(?! *:))"
)
"""How a GraphQL schema begins; other texts may have one as an example."""
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""What is not closed goes to the end, so that nothing is looked at twice."""
_UTF8_CHARACTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_SURROGATE_ESCAPE = re.compile(r"\\[uU]0*[dD][89a-fA-F]")
"""As JSON and YAML write it."""


@dataclass(frozen=True)
class DocumentProblem:
    """A part of a document that could not be used: the file, a JSON pointer (RFC 6901) and the
    reason.

    A reason ends with the consequence: what was left out, or taken instead.
    """

    file: str
    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}{f'#{self.pointer}' if self.pointer else ''}: {self.reason}"


@dataclass(frozen=True)
class Document:
    """A parsed document. `root` holds only dict, list, str, int, float, bool and None.

    `name` is its name in problems: a file name or a URL. `path` and `directory` are set for a local
    file, whose relative references are read only from below `directory`. `fetch` gets the
    references of a document from `url`, of the same origin only. It is `believed` where its words
    are those of whoever the API's address or a person led to, and not of a client or model.
    It was `served` where it was fetched from `url`, so that this server may be the API's. `prefix`
    is the path below which the API answers, for a document that names no path itself.
    """

    name: str
    content: bytes = field(repr=False)
    root: Any = field(repr=False)
    problems: tuple[DocumentProblem, ...] = ()
    path: Path | None = None
    directory: Path | None = None
    url: str | None = None
    fetch: Fetch | None = field(default=None, repr=False)
    believed: bool = True
    served: bool = False
    prefix: str = ""

    @property
    def digest(self) -> str:
        """sha256 of the bytes, in hex."""
        return hashlib.sha256(self.content).hexdigest()


def load_document(path: Path, directory: Path | None = None) -> Document:
    """Read and parse a file; `directory` bounds its references, by default the result of
    `_find_neighbourhood`.

    Raises DocumentUnreadable, DocumentEmpty, DocumentTooLarge or DocumentRecursive.
    """
    content = read_file(path, path.name)
    real = path.resolve()
    root = (directory or _find_neighbourhood(real)).resolve()
    value, problems = parse_value(content, path.name)
    return Document(path.name, content, value, problems, path=real, directory=root)


def parse_document(
    content: bytes,
    name: str,
    *,
    url: str | None = None,
    fetch: Fetch | None = None,
    path: Path | None = None,
) -> Document:
    """Parse bytes that are no local file, or of one whose neighbours are not to be read. Raises as
    `load_document`.
    """
    value, problems = parse_value(content, name)
    return Document(name, content, value, problems, path=path, url=url, fetch=fetch)


def read_file(path: Path, name: str) -> bytes:
    """Read a regular file of at most MAX_BYTES. Raises DocumentUnreadable or DocumentTooLarge."""
    try:
        if path.is_dir():
            raise DocumentUnreadable(str(path), "it is a directory")
        if not path.is_file():
            raise DocumentUnreadable(name, "there is no such file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentUnreadable(name, error.strerror or str(error)) from error
    if len(content) > MAX_BYTES:
        raise DocumentTooLarge(name, f"it has {_format_megabytes(path.stat().st_size)}{_LIMIT}")
    return content


def parse_value(content: bytes, name: str) -> tuple[Any, tuple[DocumentProblem, ...]]:
    """Parse JSON or YAML, told apart by content, to plain values and the problems found; a text
    with curl commands becomes `{"curl": text}`.
    """
    if len(content) > MAX_BYTES:
        raise DocumentTooLarge(name, f"it has {_format_megabytes(len(content))}{_LIMIT}")
    text, problems = _decode_text(content, name)
    if not text.strip("\ufeff \t\r\n\0"):
        raise DocumentEmpty(name)
    repeated: list[tuple[dict[str, Any], str]] = []
    try:
        value = _parse_text(text, name, repeated)
    except DocumentUnreadable:
        bare = _strip_comments(text)
        if bare == text:
            raise
        repeated.clear()
        value = _parse_text(bare, name, repeated)
        problems += (DocumentProblem(name, "", "JSON has no comments; they are left out"),)
    if _SURROGATE_ESCAPE.search(text) and _has_surrogates(value):
        value = _replace_surrogates(value)
        problems += (DocumentProblem(name, "", "half a surrogate pair was replaced by U+FFFD"),)
    return value, problems + _locate_repeated(value, name, repeated)


def _strip_comments(text: str) -> str:
    """Return a JSON text without its comments, any other text as it is."""
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "[", "/"):
        return text
    return _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)


def _parse_text(text: str, name: str, repeated: list[tuple[dict[str, Any], str]]) -> Any:
    json_error = ""
    if text.lstrip()[:1] in ("{", "["):
        _check_count(text, name)
        try:
            return _parse_json(text, name, repeated)
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
        value = parse_yaml(_CONTROLS.sub(" ", text), repeated, MAX_DEPTH, MAX_VALUES)
        _check_depth(value, name)
    except BoundExceeded as error:
        raise error.to_document_error(name) from error
    except (yaml.YAMLError, ValueError) as error:
        if curl.has_curl_command(text):
            return {curl.KEY: text}
        if _GRAPHQL_TYPE.search(text) or is_graphql_text(text):
            return _parse_graphql(text, name)
        reason = json_error or f"not YAML: {' '.join(str(error).replace(_NAMELESS, 'at ').split())}"
        if not json_error and _begins_with_tab(text, error):
            reason += " (a tab; YAML is indented with spaces)"
        raise DocumentUnreadable(name, reason[:300]) from error
    if isinstance(value, str) and is_graphql_text(text):
        return _parse_graphql(text, name)
    return {curl.KEY: text} if isinstance(value, str) and curl.has_curl_command(text) else value


def is_graphql_text(text: str) -> bool:
    """Whether a text is a GraphQL schema in its own language, by how it begins and one type."""
    return bool(_GRAPHQL_START.match(text)) and bool(_GRAPHQL_BRACE.search(text))


def _parse_graphql(text: str, name: str) -> Any:
    """Parse a GraphQL schema to what an introspection of it tells."""
    # Hardly anybody has one, and its parser takes long to load.
    sdl = import_module("forge.readers.graphql.sdl")
    try:
        return sdl.read_sdl(text)
    except RecursionError as error:
        raise DocumentTooLarge(name, "it is a GraphQL schema that nests too deep") from error
    except sdl.SchemaUnreadable as error:
        reason = f"it looks like a GraphQL schema, and is none: {error}"
        raise DocumentUnreadable(name, reason) from error


def _begins_with_tab(text: str, error: Exception) -> bool:
    """Whether YAML ends at a tab in the indentation of a line."""
    mark = getattr(error, "problem_mark", None)
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


def _parse_json(text: str, name: str, repeated: list[tuple[dict[str, Any], str]]) -> Any:
    value = _load_json(text)
    # To look at the keys of each object takes longer than all the rest of parsing.
    if _check_depth(value, name) != _count_keys(text):
        value = _load_json_noting_repeated(text, repeated)
    return value


def _load_json(text: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    return json.loads(
        text,
        object_pairs_hook=hook,
        parse_float=_parse_finite,
        parse_constant=lambda _: None,
        strict=False,
    )


def _count_keys(text: str) -> int:
    """The keys that a JSON text writes; -1 where that takes more than searching for substrings.

    A quotation mark before a colon ends a key, unless it is escaped and so in the middle of a
    string: by an odd number of backslashes, of which two stand for one.
    """
    # Where a text does not have the sign, the ends with it need not be looked for.
    signs = {sign for sign in _SIGNS if sign in text}
    odd_ends = (end for sign in signs for end in _ODD_KEY_ENDS.get(sign, ()))
    if any(end in text for end in odd_ends) and _ODD_KEY_END.search(text):
        return -1
    ends = [end for sign, end in _KEY_ENDS.items() if sign in signs]
    found = sum(map(text.count, ends))
    for end in ends if "\\" in text else ():
        for backslashes in range(1, MAX_BACKSLASHES):
            after = text.count("\\" * backslashes + end)
            if not after:
                break
            found += -after if backslashes % 2 else after
        else:
            return -1
    return found


def _load_json_noting_repeated(text: str, repeated: list[tuple[dict[str, Any], str]]) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            times = Counter(key for key, _ in pairs)
            repeated.extend((made, key) for key, count in times.items() if count > 1)
        return made

    return _load_json(text, mapping)


def _check_count(text: str, name: str) -> None:
    """Raise DocumentTooLarge for a text that would take gigabytes once parsed. The count includes
    marks inside strings, so it is an upper bound.
    """
    if len(text) <= MAX_VALUES // 2:
        return
    values = text.count(",") + text.count("[") + text.count("{")
    if values > 2 * MAX_VALUES or text.count("{") > MAX_VALUES // 2:
        raise DocumentTooLarge(name, f"it has more than {MAX_VALUES // 2} objects or values")


def _parse_finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _decode_text(content: bytes, name: str) -> tuple[str, tuple[DocumentProblem, ...]]:
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
        if encoding == "utf-8" and (text := _decode_windows(content)) is not None:
            return text, (DocumentProblem(name, "", f"{where}; read as Windows-1252"),)
        return content.decode(encoding, "replace"), (
            DocumentProblem(name, "", f"{where}; replaced"),
        )


def _decode_windows(content: bytes) -> str | None:
    """Return the text of a file of Windows-1252 (also Latin-1); None for any other.

    Where characters of UTF-8 are in it too, it is a damaged file of that.
    """
    if _UTF8_CHARACTER.search(content):
        return None
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return None


def _check_depth(value: Any, name: str) -> int:
    """Return how many pairs all mappings have. Raises DocumentTooLarge beyond MAX_DEPTH levels."""
    pairs, level = 0, [value]
    for _ in range(MAX_DEPTH + 1):
        mappings = [item for item in level if type(item) is dict]
        lists = [item for item in level if type(item) is list]
        if not mappings and not lists:
            return pairs
        pairs += sum(map(len, mappings))
        level = [child for item in mappings for child in item.values() if type(child) in _DEEPER]
        level += [child for item in lists for child in item if type(child) in _DEEPER]
    raise DocumentTooLarge(name, f"it nests deeper than {MAX_DEPTH} levels")


def _has_surrogates(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogates(key) or _has_surrogates(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_surrogates, value))


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(v) for key, v in value.items()}
    return [_replace_surrogates(item) for item in value] if isinstance(value, list) else value


def _locate_repeated(
    value: Any, name: str, repeated: list[tuple[dict[str, Any], str]]
) -> tuple[DocumentProblem, ...]:
    wanted: dict[int, list[str]] = {}
    for mapping, key in repeated:
        wanted.setdefault(id(mapping), []).append(key)
    found: list[DocumentProblem] = []
    waiting = [(value, "")] if wanted else []
    while waiting:
        item, pointer = waiting.pop()
        for key in wanted.pop(id(item), ()):
            reason = f"the key {key[:80]!r} stands here more than once; the last one counts"
            found.append(DocumentProblem(name, pointer, reason))
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        waiting += [
            (child, f"{pointer}/{escape_token(key)}")
            for key, child in pairs
            if isinstance(child, dict | list)
        ]
        if not wanted:
            break
    return tuple(found)


def escape_token(key: object) -> str:
    """Escape a key as one token of a JSON pointer (RFC 6901 section 3)."""
    token = str(key)
    # Hardly a key has either, and every place of a document is named by its keys.
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


def _find_neighbourhood(path: Path) -> Path:
    """Return the directory of a file, or the one above it where that has the same owner and is not
    writable by everyone.

    Split documents keep `paths/` and `schemas/` side by side, but a file in /tmp must not reach
    across /tmp.
    """
    here, above = path.parent, path.parent.parent
    status = above.stat()
    private = status.st_uid == path.stat().st_uid and not status.st_mode & 0o002
    return above if private and above != above.parent else here


def _format_megabytes(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB"


_DEEPER = frozenset({dict, list})
_KEY_ENDS = {'"': '":', " :": '" :'}
_ODD_KEY_ENDS = {
    "\n": ("\n:", "\n :"),
    "\r": ("\r:", "\r :"),
    "\t": ("\t:", "\t :"),
    " :": ("  :",),
}
"""The ends of a key, or how others end, by a sign that all of them have."""
_ODD_KEY_END = re.compile(r'"(?:[ \t\r\n]{2,}+|[\t\r\n]):')
_SIGNS = _KEY_ENDS.keys() | _ODD_KEY_ENDS.keys()
_LIMIT = f", more than {MAX_BYTES // (1024 * 1024)} MiB"
