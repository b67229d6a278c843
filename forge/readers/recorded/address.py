"""URLs of recorded requests: origin, path with `{name}` for its variables, and query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

from forge.readers.recorded.request import Pair

MAX_URL = 4_000
_VARIABLE = re.compile(
    r"\$\{([A-Za-z_]\w{0,59})\}|\$([A-Za-z_]\w{0,59})|\{\{\s{0,9}([^{}]{1,60}?)\s{0,9}\}\}"
    r"|<([A-Za-z_][\w -]{0,59})>|\{([A-Za-z_][\w.-]{0,59})\}"
)
_COLON = re.compile(r"(?<=/):([A-Za-z_]\w{0,59})(?=[/?#]|$)")
_IDENTIFIER = re.compile(
    r"(?:\d{1,20}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{13,27}|(?=[^/]*\d)[0-9a-fA-F]{12,64}"
    r"|(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9_-]{16,128})\Z"
)
_VERSION = re.compile(r"v?\d{1,2}\Z")
_ORIGIN = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)


def has_variable(text: str) -> bool:
    """Whether a text contains a variable of any notation."""
    return _VARIABLE.search(text) is not None


def normalize_variables(text: str) -> str:
    """Rewrite `$ID`, `${ID}`, `{{id}}`, `<id>` and `:id` in a path as `{id}`."""

    def named(found: re.Match[str]) -> str:
        name = re.sub(r"\W+", "_", next(filter(None, found.groups()))).strip("_")
        name = name.lower() if name.isupper() else name
        return f"{{{name or 'value'}}}"

    return _COLON.sub(r"{\1}", _VARIABLE.sub(named, text))


def split_url(url: str) -> tuple[str, str, tuple[Pair, ...]] | str:
    """Split an absolute URL, or one whose host is a variable ("" as the origin), to (origin, path,
    query); return the reason as a string where it is neither.
    """
    if len(url) > MAX_URL:
        return f"its URL is longer than {MAX_URL} characters"
    head, _, query = url.partition("#")[0].partition("?")
    known = _ORIGIN.match(head)
    if known:
        origin, path = known[0], head[known.end() :]
        if "@" in known[2]:
            return "its URL holds a password"
        if has_variable(origin):
            origin = ""
    elif _VARIABLE.match(head):
        origin, path = "", _VARIABLE.sub("", head, count=1)
    elif head.startswith("/"):
        origin, path = "", head
    elif re.match(r"[A-Za-z0-9.-]+(:\d+)?(/|\Z)", head):
        host, slash, rest = head.partition("/")
        origin, path = f"https://{host}", slash + rest
    else:
        return "its URL is not understood"
    if not path.startswith("/"):
        path = f"/{path}"
    try:
        urlsplit(origin or "https://host")
    except ValueError:
        return "its URL is not understood"
    return (
        origin.lower(),
        normalize_variables(path),
        tuple(parse_qsl(query, keep_blank_values=True)),
    )


def generalize_paths(paths: Iterable[str]) -> dict[str, str]:
    """Replace the segments that look like identifiers by placeholders named after the segment
    before: `/users/17/posts` becomes `/users/{user_id}/posts`.
    """
    return {path: "/".join(_generalize_segments(path)) for path in dict.fromkeys(paths)}


def _generalize_segments(path: str) -> Iterator[str]:
    before, taken = "", set[str]()
    for segment in path.split("/"):
        is_version = before.startswith("api") and _VERSION.match(segment)
        if before and _IDENTIFIER.match(segment) and not is_version:
            yield f"{{{_reserve_name(f'{_to_singular(before)}_id', taken)}}}"
            continue
        if not segment.startswith("{"):
            before = re.sub(r"\W+", "_", unquote(segment)).strip("_").lower()
        yield segment


def _reserve_name(name: str, taken: set[str]) -> str:
    number, wanted = 1, name
    while wanted in taken:
        number += 1
        wanted = f"{name}_{number}"
    taken.add(wanted)
    return wanted


def _to_singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
