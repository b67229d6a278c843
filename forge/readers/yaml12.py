"""Parsing of YAML by the 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema): `NO` and
dates stay strings.

Mapping keys are strings as written. Aliases share their value and are counted as if expanded, so a
document of a few lines cannot become billions of values for code that walks it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from forge.errors import DocumentError, DocumentRecursive, DocumentTooLarge

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_RADIX = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS = {
    "": None,
    **dict.fromkeys(("~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
MAX_DIRECTIVES = 1_000
_DIRECTIVE = "%TAG"
"""The parser, which lets no other thread run meanwhile, compares each with all before it."""
_NUMERIC_START = frozenset("-+.0123456789")
_STRING_TAG = "tag:yaml.org,2002:str"


class BoundExceeded(Exception):
    """A document exceeds a bound or contains itself."""

    def __init__(self, kind: type[DocumentTooLarge] | type[DocumentRecursive], reason: str) -> None:
        self._kind, self._reason = kind, reason
        super().__init__(reason)

    def to_document_error(self, name: str) -> DocumentError:
        """Return the DocumentError for the document of this name."""
        return self._kind(name, self._reason)


class _Unset:
    pass


_NO_KEY = _Unset()


@dataclass
class _Frame:
    """A collection being built; `size` counts its values with all aliases expanded."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    size: int = 1
    key: Any = _NO_KEY
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    def __init__(self, repeated: list[tuple[dict[str, Any], str]], depth: int, size: int) -> None:
        self._repeated, self._max_depth, self._max_size = repeated, depth, size
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: list[_Frame] = []
        self._result: Any = None

    def build_value(self, events: Iterator[Any]) -> Any:
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._add_scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._open_collection({}, event.anchor)
            elif kind is yaml.SequenceStartEvent:
                self._open_collection([], event.anchor)
            elif kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                self._close_collection()
            elif kind is yaml.AliasEvent:
                self._add_alias(event.anchor)
            elif kind is yaml.DocumentEndEvent:
                break
        return self._result

    def _add_scalar(self, event: Any) -> None:
        frame = self._open[-1] if self._open else None
        plain = event.implicit[0]
        if frame is not None and isinstance(frame.value, dict) and frame.key is _NO_KEY:
            value = _MERGE if plain and event.value == "<<" else event.value
        elif plain or (event.tag and event.tag != _STRING_TAG and event.style is None):
            value = resolve_scalar(event.value)
        else:
            value = event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._add_value(value, 1)

    def _open_collection(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        if len(self._open) >= self._max_depth:
            raise BoundExceeded(DocumentTooLarge, f"it nests deeper than {self._max_depth} levels")
        if anchor:
            self._anchors.pop(anchor, None)
        self._open.append(_Frame(value, anchor))

    def _close_collection(self) -> None:
        frame = self._open.pop()
        if isinstance(frame.value, dict):
            for source in frame.merged:
                for key, value in source.items():
                    frame.value.setdefault(key, value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        self._add_value(frame.value, frame.size)

    def _add_alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            if any(frame.anchor == anchor for frame in self._open):
                raise BoundExceeded(DocumentRecursive, f"the YAML value &{anchor} contains itself")
            raise yaml.YAMLError(f"the alias *{anchor} has no anchor")
        self._add_value(*self._anchors[anchor])

    def _add_value(self, value: Any, size: int) -> None:
        if not self._open:
            self._result = value
            return
        frame = self._open[-1]
        frame.size += size
        if frame.size > self._max_size:
            raise BoundExceeded(
                DocumentTooLarge, f"it has more than {self._max_size} values, aliases expanded"
            )
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is _NO_KEY:
            frame.key = value
        else:
            self._add_pair(frame, frame.value, value)

    def _add_pair(self, frame: _Frame, mapping: dict[str, Any], value: Any) -> None:
        key, frame.key = frame.key, _NO_KEY
        if key is _MERGE:
            sources = value if isinstance(value, list) else [value]
            frame.merged += [source for source in sources if isinstance(source, dict)]
            return
        name = key if isinstance(key, str) else repr(key)[:80]
        if name in mapping:
            self._repeated.append((mapping, name))
        mapping[name] = value


_MERGE = _Unset()


def parse_yaml(
    text: str, repeated: list[tuple[dict[str, Any], str]], max_depth: int, max_values: int
) -> Any:
    """Parse the first document of a YAML text. Mappings with a repeated key are added to
    `repeated`.

    Raises yaml.YAMLError, and BoundExceeded beyond a bound or for a value that contains itself.
    """
    if text.count(_DIRECTIVE) > MAX_DIRECTIVES:
        raise BoundExceeded(DocumentTooLarge, f"it has more than {MAX_DIRECTIVES} YAML directives")
    return _Builder(repeated, max_depth, max_values).build_value(yaml.parse(text, Loader=_LOADER))


def resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar in the core schema. A number that is not finite becomes
    None.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START or len(text) > 400:
        return text
    if _INTEGER.match(text):
        return int(text)
    if _RADIX.match(text):
        return int(text, 0)
    if _FLOAT.match(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return None if _NOT_FINITE.match(text) else text
