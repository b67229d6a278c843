"""Reading an XML body back: whether every value of the argument stands in it, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from sandbox.contract.texts import reads_as

_DECLARATIONS = (b"<!DOCTYPE", b"<!ENTITY")


def holds(body: bytes, value: Any) -> bool:
    """Whether the texts and attributes of a document are the argument's scalars, each as often.

    A document with declarations of its own is not read at all (entities can explode).
    """
    if any(mark in body.upper() for mark in _DECLARATIONS):
        return False
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return False
    written = list(_texts(root))
    wanted = list(_leaves(value))
    if Counter(written) == Counter(map(str, wanted)):
        return True
    return len(written) == len(wanted) and _matched(written, wanted)


def _matched(written: list[str], wanted: list[Any]) -> bool:
    left = list(written)
    for leaf in wanted:
        found = next((text for text in left if reads_as(text, leaf)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _texts(element: ElementTree.Element) -> Iterator[str]:
    yield from element.attrib.values()
    if len(element) == 0 and element.text:
        yield element.text
    for child in element:
        yield from _texts(child)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None and value != "":
        yield value
