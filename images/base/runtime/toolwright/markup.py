"""Values as XML, as OpenAPI's XML object says: https://spec.openapis.org/oas/v3.1.1#xml-object"""

from __future__ import annotations

import re

from .errors import ArgumentInvalid
from .values import is_absent, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Hints = Mapping[str, Mapping[str, Any]]

# The patterns stay text: compiling them takes 4 % of the time that the runtime takes to start, and
# few processes ever write XML.
_NAME = r"[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?\Z"
_ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
MAX_DEPTH = 64


def element(name: str, value: Any, hint: Mapping[str, Any], depth: int = 0) -> str:
    """One element, or an array's elements in a row. `hint` has what differs from the plain form:
    `name`, `namespace`, `attribute`, `wrapper` (the element around an array; "" is the key's name),
    `fields` (the hints of an object's members by their keys).
    """
    if depth > MAX_DEPTH:
        raise ArgumentInvalid("", "is nested too deeply to be written as XML")
    wrapper = hint.get("wrapper") or name
    name = hint.get("name", name)
    if isinstance(value, list | tuple):
        plain = {key: kept for key, kept in hint.items() if key != "wrapper"}
        items = "".join(element(name, item, plain, depth + 1) for item in value)
        return _tag(wrapper, "", items) if "wrapper" in hint else items
    attributes = _namespace(hint)
    if not isinstance(value, dict):
        return _tag(name, attributes, "" if is_absent(value) else escaped(scalar(value)))
    fields: Hints = hint.get("fields", {})
    inner = ""
    for key, item in value.items():
        own = fields.get(key, {})
        if is_absent(item):
            continue
        if own.get("attribute"):
            attributes += f' {_checked(own.get("name", key))}="{escaped(scalar(item))}"'
        else:
            inner += element(key, item, own, depth + 1)
    return _tag(name, attributes, inner)


def escaped(text: str) -> str:
    """Raises ArgumentInvalid for characters that no XML 1.0 document can hold."""
    if re.search(_ILLEGAL, text):
        raise ArgumentInvalid("", "holds a character that XML cannot")
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(sign, entity)
    return text.replace("\r", "&#13;")


def _namespace(hint: Mapping[str, Any]) -> str:
    uri = hint.get("namespace")
    if not uri:
        return ""
    prefix, colon, _ = hint.get("name", "").partition(":")
    return f' xmlns{":" + prefix if colon else ""}="{escaped(uri)}"'


def _tag(name: str, attributes: str, inner: str) -> str:
    _checked(name)
    return f"<{name}{attributes}>{inner}</{name}>" if inner else f"<{name}{attributes}/>"


def _checked(name: str) -> str:
    if not re.match(_NAME, name):
        raise ArgumentInvalid(f"/{name[:60]}", "is not the name of an XML element")
    return name
