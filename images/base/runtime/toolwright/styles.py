"""Wrappers that say how a value is written where OpenAPI's default is not meant.

https://spec.openapis.org/oas/v3.1.1#style-values; every wrapper passes UNSET through.
"""

from __future__ import annotations

from .markup import element
from .values import Unset, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Styled:
    """A value and how to write it. A field that is None is left to the place's default."""

    __slots__ = ("explode", "reserved", "style", "value")

    def __init__(
        self,
        value: Any,
        style: str | None = None,
        explode: bool | None = None,
        reserved: bool = False,
    ) -> None:
        self.value, self.style, self.explode, self.reserved = value, style, explode, reserved


class Resolved:
    """A value with nothing left to default."""

    __slots__ = ("explode", "reserved", "style", "value")

    def __init__(self, value: Any, style: str, explode: bool, reserved: bool) -> None:
        self.value, self.style, self.explode, self.reserved = value, style, explode, reserved


class Part:
    """A part of a multipart body."""

    __slots__ = ("content_type", "filename", "is_file", "value")

    def __init__(
        self, value: Any, content_type: str | None, filename: str | None, is_file: bool
    ) -> None:
        self.value, self.content_type = value, content_type
        self.filename, self.is_file = filename, is_file


def resolved(value: Any, style: str, explode: bool) -> Resolved:
    """A value with its own style and explode, as OpenAPI names them, or else these."""
    given = value if isinstance(value, Styled) else Styled(value)
    return Resolved(
        given.value,
        given.style or style,
        explode if given.explode is None else given.explode,
        given.reserved,
    )


def csv(value: Any) -> Styled:
    """`color=blue,black` (style form, not exploded; Swagger 2.0's csv)."""
    return Styled(value, None, False)


def ssv(value: Any, explode: bool = False) -> Styled:
    """`color=blue%20black` (spaceDelimited)."""
    return Styled(value, "spaceDelimited", explode)


def tsv(value: Any, explode: bool = False) -> Styled:
    """`color=blue%09black` (Swagger 2.0's tsv)."""
    return Styled(value, "tabDelimited", explode)


def pipes(value: Any, explode: bool = False) -> Styled:
    """`color=blue%7Cblack` (pipeDelimited)."""
    return Styled(value, "pipeDelimited", explode)


def deep(value: Any, explode: bool = True) -> Styled:
    """`color[R]=100&color[G]=200` (deepObject), brackets percent-encoded; a list `color[]=blue`."""
    return Styled(value, "deepObject", explode)


def label(value: Any, explode: bool = False) -> Styled:
    """`.blue,black`; exploded `.blue.black`."""
    return Styled(value, "label", explode)


def matrix(value: Any, explode: bool = False) -> Styled:
    """`;color=blue,black`; exploded `;color=blue;color=black`."""
    return Styled(value, "matrix", explode)


def exploded(value: Any) -> Styled:
    """The place's style, exploded."""
    given = value if isinstance(value, Styled) else Styled(value)
    return Styled(given.value, given.style, True, given.reserved)


def raw(value: Any) -> Styled:
    """`allowReserved`: reserved characters are not percent-encoded where they are harmless."""
    given = value if isinstance(value, Styled) else Styled(value)
    return Styled(given.value, given.style, given.explode, True)


def json_text(value: Any) -> Styled:
    """A `content: application/json` parameter."""
    return Styled(value, "json", False)


def unescaped(value: Any, explode: bool = True) -> Styled:
    """A cookie as it is: what needs an escape has to be given escaped (style cookie, RFC 6265)."""
    return Styled(value, "cookie", explode)


def whole(value: Any) -> Styled:
    """All of the query, under no name: a text, or `json_text(…)` (in: querystring)."""
    given = value if isinstance(value, Styled) else Styled(value)
    return Styled(given.value, "wholeJson" if given.style == "json" else "whole")


def file(
    content: Any,
    filename: str | None = None,
    content_type: str | None = None,
    plain: bool = False,
) -> Any:
    """A file part: base64, or `{"base64" | "text": …, "filename": …, "content_type": …}`, or a
    list of either. Where it may be `plain`, what is no such object is a part as it is.
    """
    if plain and not isinstance(content, dict):
        return content
    return Part(content, content_type, filename, True)


def part(value: Any, content_type: str) -> Part:
    """A part of that type: JSON for a JSON type, otherwise the value's text."""
    return Part(value, content_type, None, False)


def json_lines(value: Any) -> Any:
    """A list as text, one JSON value a line (application/x-ndjson, application/jsonl)."""
    items = value if isinstance(value, list | tuple) else [value]
    return value if isinstance(value, Unset) else "".join(f"{to_json(v)}\n" for v in items)


def json_sequence(value: Any) -> Any:
    """A list as a JSON text sequence (RFC 7464)."""
    items = value if isinstance(value, list | tuple) else [value]
    return value if isinstance(value, Unset) else "".join(f"\x1e{to_json(v)}\n" for v in items)


def xml_text(value: Any, name: str, hint: Mapping[str, Any] | None = None) -> Any:
    """A value as an XML document whose root is `name`; `hint` as for `toolwright.markup`."""
    return value if isinstance(value, Unset) else element(name, value, hint or {})
