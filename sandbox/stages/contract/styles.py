"""Reading parameters back from the wire by their documented style (OpenAPI 3.1, section 4.8.12.3).

Each reader returns whether the text in a request is the argument; a value at another place does not
count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from sandbox.bundle.apispec import Parameter
from sandbox.stages.contract.texts import (
    NOT_JSON,
    all_read_as,
    is_equal_json,
    members_read_as,
    parse_json,
    reads_as,
)

Pairs = Sequence[tuple[str, str]]
"""Names decoded, values as they stand in the query (still percent-encoded)."""

DELIMITERS = {
    "form": ",",
    "spaceDelimited": " ",
    "pipeDelimited": "|",
    "tabDelimited": "\t",
}
_ENCODED = {" ": re.compile("%20|\\+"), "|": re.compile("%7[Cc]"), "\t": re.compile("%09")}
_STEP = re.compile(r"\[([^\[\]]*)\]")


def is_nothing(value: Any) -> bool:
    """Null and empty values are undefined to RFC 6570 (section 3.2.1) and may be left out."""
    items = value.values() if isinstance(value, Mapping) else value
    return value is None or (
        isinstance(value, list | Mapping) and all(item is None for item in items)
    )


def read_path(parameter: Parameter, value: Any, raw: str) -> bool:
    """Whether the path segment `raw` (percent-encoded) holds the argument."""
    if parameter.media_type:
        return _json_reads_as(unquote(raw), value)
    if parameter.style == "matrix":
        return _reads_matrix(parameter, value, raw)
    if parameter.style == "label":
        return raw.startswith(".") and _reads_label(parameter, value, raw[1:])
    return _reads_listed(value, raw, ",", parameter.explode, unquote)


def _reads_listed(value: Any, raw: str, delimiter: str, explode: bool, decode: Any) -> bool:
    """A scalar, a delimited list, or an object as `k,v,k,v` or, exploded, `k=v,k=v`."""
    if isinstance(value, list):
        if not raw:
            # No item and one empty item are written alike.
            return value in ([], [""], [None])
        return all_read_as([decode(item) for item in raw.split(delimiter)], value)
    if isinstance(value, Mapping):
        return members_read_as(_split_members(raw, delimiter, explode, decode), value)
    return reads_as(decode(raw), value)


def _split_members(raw: str, delimiter: str, explode: bool, decode: Any) -> list[tuple[str, str]]:
    items = raw.split(delimiter) if raw else []
    if explode:
        split = [item.partition("=") for item in items]
        return [(decode(name), decode(text)) for name, _, text in split]
    texts = [decode(item) for item in items]
    return list(zip(texts[::2], texts[1::2], strict=True)) if len(texts) % 2 == 0 else []


def _reads_label(parameter: Parameter, value: Any, raw: str) -> bool:
    delimiters = "." if parameter.explode else ",."
    if any(_reads_listed(value, raw, sign, parameter.explode, unquote) for sign in delimiters):
        return True
    # A dot needs no escape, so numbers with a fraction cannot be split apart again.
    if not isinstance(value, list):
        return False
    return unquote(raw) == ".".join(str(item) for item in value)


def _reads_matrix(parameter: Parameter, value: Any, raw: str) -> bool:
    if not raw.startswith(";"):
        return False
    split = [item.partition("=") for item in raw[1:].split(";")]
    pairs = [(unquote(name), text) for name, _, text in split]
    if parameter.explode and isinstance(value, Mapping):
        return members_read_as([(name, unquote(text)) for name, text in pairs], value)
    if any(name != parameter.name for name, _ in pairs):
        return False
    if parameter.explode and isinstance(value, list):
        return all_read_as([unquote(text) for _, text in pairs], value)
    return len(pairs) == 1 and _reads_listed(value, pairs[0][1], ",", False, unquote)


def read_query(parameter: Parameter, value: Any, pairs: Pairs) -> frozenset[int] | None:
    """The positions of the pairs that hold the argument; None where it did not arrive."""
    own = [at for at, (name, _) in enumerate(pairs) if name == parameter.name]
    texts = [pairs[at][1] for at in own]
    if is_nothing(value) and texts in ([], [""]):
        return frozenset(own)
    if parameter.media_type:
        arrived = len(texts) == 1 and _json_reads_as(unquote_plus(texts[0]), value)
    elif isinstance(value, Mapping) and parameter.style == "deepObject":
        return _find_deep(parameter.name, value, pairs)
    elif isinstance(value, list) and parameter.style == "deepObject":
        return _find_deep_list(parameter.name, value, pairs)
    elif isinstance(value, Mapping) and parameter.explode:
        return _find_exploded(value, pairs)
    elif isinstance(value, list) and parameter.explode:
        arrived = all_read_as([unquote_plus(text) for text in texts], value)
    elif isinstance(value, list | Mapping):
        arrived = len(texts) == 1 and _reads_delimited(parameter.style, value, texts[0])
    else:
        arrived = len(texts) == 1 and reads_as(unquote_plus(texts[0]), value)
    return frozenset(own) if arrived else None


def read_whole(parameter: Parameter, value: Any, query: str, count: int) -> frozenset[int] | None:
    """As `read_query`, of a parameter that is all of the query: the positions of all its pairs."""
    text = unquote(query)
    arrived = _json_reads_as(text, value) if is_json_parameter(parameter) else reads_as(text, value)
    return frozenset(range(count)) if arrived else None


def is_json_parameter(parameter: Parameter) -> bool:
    kind = (parameter.media_type or "").partition(";")[0].strip()
    return kind.endswith(("/json", "+json"))


def _reads_delimited(style: str, value: Any, raw: str) -> bool:
    delimiter = DELIMITERS.get(style, ",")
    if delimiter in _ENCODED:
        raw = _ENCODED[delimiter].sub(lambda _: delimiter, raw)
    if _reads_listed(value, raw, delimiter, False, unquote_plus):
        return True
    return delimiter == "," and _reads_listed(value, unquote_plus(raw), ",", False, str)


def _find_exploded(value: Mapping[str, Any], pairs: Pairs) -> frozenset[int] | None:
    own = frozenset(at for at, (name, _) in enumerate(pairs) if name in value)
    found = [(pairs[at][0], unquote_plus(pairs[at][1])) for at in sorted(own)]
    return own if members_read_as(found, value) else None


def _find_deep(name: str, value: Mapping[str, Any], pairs: Pairs) -> frozenset[int] | None:
    """`name[key]=…`, deeper values as further brackets, as repeated keys, or as JSON."""
    own = frozenset(at for at, pair in enumerate(pairs) if pair[0].startswith(f"{name}["))
    found: dict[str, list[tuple[str, str]]] = {}
    for at in sorted(own):
        steps = _STEP.findall(pairs[at][0][len(name) :])
        if not steps:
            return None
        rest = "".join(f"[{step}]" for step in steps[1:])
        found.setdefault(steps[0], []).append((rest, pairs[at][1]))
    wanted = {key: item for key, item in value.items() if key in found or _has_pairs(item)}
    whole = found.keys() == wanted.keys()
    return (
        own if whole and all(_reads_deep_member(found[key], wanted[key]) for key in found) else None
    )


def _has_pairs(value: Any) -> bool:
    """Whether a value whose parts are named one by one comes to any pair: empty ones have none."""
    if isinstance(value, Mapping | list):
        return any(map(_has_pairs, value.values() if isinstance(value, Mapping) else value))
    return value is not None


def _find_deep_list(name: str, value: list[Any], pairs: Pairs) -> frozenset[int] | None:
    """`name[]=…` or `name[0]=…`, as servers with brackets take lists."""
    own = [at for at, (key, _) in enumerate(pairs) if key.startswith(f"{name}[")]
    found = [(pairs[at][0][len(name) :], pairs[at][1]) for at in own]
    return frozenset(own) if _reads_deep_member(found, value) else None


def _reads_deep_member(found: list[tuple[str, str]], value: Any) -> bool:
    if len(found) == 1 and not found[0][0] and reads_as(unquote_plus(found[0][1]), value):
        return True
    if isinstance(value, list):
        indexed = [rest in ("", "[]") or rest == f"[{at}]" for at, (rest, _) in enumerate(found)]
        if all(indexed) and all_read_as([unquote_plus(raw) for _, raw in found], value):
            return True
        value = {str(at): item for at, item in enumerate(value)}
    if not isinstance(value, Mapping):
        return False
    inner = [(f"x{rest}", raw) for rest, raw in found]
    return _find_deep("x", value, inner) is not None


def read_header(parameter: Parameter, value: Any, raw: str) -> bool:
    """Whether a header's value is the argument. Headers are not percent-encoded (OpenAPI 3.1.1,
    section 4.8.12.5); white space around list members is not part of them.
    """
    if parameter.media_type:
        return _json_reads_as(raw, value)
    return _reads_listed(value, raw, ",", parameter.explode, str.strip)


def read_cookie(parameter: Parameter, value: Any, pairs: Pairs) -> frozenset[int] | None:
    """As `read_query`, of the pairs of the Cookie header (RFC 6265, section 4.2.1)."""
    if parameter.style == "cookie":
        # Nothing is escaped there, so that nothing may be taken for an escape.
        escaped = [(name, quote(text, safe="")) for name, text in pairs]
        return read_query(replace(parameter, style="form"), value, escaped)
    texts = [(at, text) for at, (name, text) in enumerate(pairs) if name == parameter.name]
    if isinstance(value, list) and parameter.explode and len(texts) == 1:
        # An exploded list has no form of its own in a cookie; both usual ones are taken.
        joined = [text.rpartition("=")[2] for text in texts[0][1].split("&")]
        if all_read_as([unquote(text) for text in joined], value) or _reads_delimited(
            "form", value, texts[0][1]
        ):
            return frozenset({texts[0][0]})
    return read_query(parameter, value, pairs)


def _json_reads_as(text: str, value: Any) -> bool:
    parsed = parse_json(text)
    if parsed is NOT_JSON:
        return isinstance(value, str) and text == value
    return is_equal_json(parsed, value)
