"""Arguments that an answer gives: the id in a list feeds the read of one.

A value goes into one segment of a path, of the same origin, below the very collection that gave it.
What could be read as a path, a URL, an act or a secret is no such value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.apispec import Operation
from sandbox.bundle.model import ToolDefinition
from sandbox.bundle.verbs import ACTS, split_words
from sandbox.plain_secrets import find_secrets
from sandbox.schemas.validator import get_checker
from sandbox.stages.probe.selection import find_danger

MAX_ID = 128
MAX_ITEMS = 10
"""Items of a list that are asked for an id."""
_ID = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.)){0,127}\Z")
"""One path segment that means the same in every reading (RFC 3986, section 2.3, without `~`)."""
_INTEGERS = range(-(2**63), 2**63)
_ROUTES = ACTS | {"all", "me", "new", "self"}
"""Words that stand for something else than a name where an API's router knows them."""
_SEGMENT = re.compile(r"\{([^{}]+)\}\Z")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_LISTS = ("items", "data", "results", "list", "content", "value", "values", "entries", "records")
_USUAL = ("id", "name", "uid", "uuid", "slug")
"""Fields that identify, in the order in which they are tried."""


@dataclass(frozen=True)
class ProbeTarget:
    """A read that the probe may ask, and the collections whose items its path parameters name:
    (parameter, URL template of the collection) from left to right.
    """

    tool: ToolDefinition
    operation: Operation
    needs: tuple[tuple[str, str], ...] = ()

    @property
    def collection(self) -> str:
        """What its answer may be the collection of."""
        return normalize_template(self.operation.url)

    def find_arguments(self, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return its arguments by the ids that are `known` of collections; None where one is
        missing or the tool would not take them.
        """
        places = {
            str(schema.get("x-in")): name
            for name, schema in self.tool.input_schema.get("properties", {}).items()
            if isinstance(schema, Mapping)
        }
        made: dict[str, Any] = {}
        for parameter, collection in self.needs:
            name, value = places.get(f"path:{parameter}"), known.get(f"{collection} {parameter}")
            if name is None or value is None:
                return None
            made[name] = value
        return next((each for each in _spell(made) if _takes(self.tool, each)), None)


def build_target(tool: ToolDefinition, operation: Operation) -> ProbeTarget | None:
    """Return the target of an operation; None where a path parameter is less than a segment."""
    needs = []
    parts = operation.url.split("/")
    for at, part in enumerate(parts):
        if "{" not in part:
            continue
        match = _SEGMENT.match(part)
        if not match:
            return None
        needs.append((match[1], normalize_template("/".join(parts[:at]))))
    return ProbeTarget(tool, operation, tuple(needs))


def normalize_template(url: str) -> str:
    """Return a URL template whose parameters have no names and whose last word is singular, so that
    the list at `/pets` is the collection of `/pet/{petId}`.
    """
    head, slash, last = _PLACEHOLDER.sub("{}", url).rstrip("/").rpartition("/")
    return f"{head}{slash}{_to_singular(last)}"


def find_ids(target: ProbeTarget, answer: Any, others: Iterable[ProbeTarget]) -> dict[str, Any]:
    """Return the ids that a target's answer gives, by collection and parameter, for `others`."""
    found: dict[str, Any] = {}
    taken = list(others)
    items = _find_items(answer, target.collection.rpartition("/")[2])
    for parameter, collection in (need for other in taken for need in other.needs):
        key = f"{collection} {parameter}"
        if collection != target.collection or key in found:
            continue
        siblings = _list_siblings(collection, taken)
        values = (_get_id(item, parameter) for item in items)
        value = next((v for v in values if is_id(v) and str(v).lower() not in siblings), None)
        if value is not None:
            found[key] = value
    return found


def is_id(value: Any) -> bool:
    """Whether a value of an answer may be sent as one segment of a path."""
    if type(value) is int:
        return value in _INTEGERS
    if not isinstance(value, str) or len(value) > MAX_ID or not _ID.match(value):
        return False
    words = split_words(value)
    acts = len(words) == 1 and words[0] in _ROUTES
    return not acts and not find_danger(value) and not find_secrets(value)


def _spell(arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The arguments as they came, and as texts: an id that is a number is often documented so."""
    yield arguments
    yield {name: str(value) for name, value in arguments.items()}


def _takes(tool: ToolDefinition, arguments: Mapping[str, Any]) -> bool:
    return get_checker(tool.input_schema).find_problem(dict(arguments)) is None


def _list_siblings(collection: str, targets: Iterable[ProbeTarget]) -> frozenset[str]:
    """The fixed words that stand where the id would: `/users/me` beside `/users/{id}`."""
    found = set()
    for target in targets:
        parts = target.operation.url.split("/")
        for at in range(1, len(parts)):
            if normalize_template("/".join(parts[:at])) == collection:
                found.add(parts[at].lower())
    return frozenset(found)


def _find_items(answer: Any, name: str) -> list[Any]:
    """The first items of the list that an answer is or holds."""
    if isinstance(answer, list):
        return answer[:MAX_ITEMS]
    if not isinstance(answer, Mapping):
        return []
    lists = {key: value for key, value in answer.items() if isinstance(value, list) and value}
    named = [key for key in lists if _to_singular(key.lower()) == name.lower() or key in _LISTS]
    chosen = named[:1] or (list(lists) if len(lists) == 1 else [])
    return [item for key in chosen for item in lists[key][:MAX_ITEMS]]


def _get_id(item: Any, parameter: str) -> Any:
    """The field of an item that a parameter names; the item itself where it is no object."""
    if not isinstance(item, Mapping):
        return item if not isinstance(item, list) else None
    plain = _to_plain(parameter)
    fields = {_to_plain(str(key)): value for key, value in list(item.items())[:200]}
    usual = sorted(_USUAL, key=lambda word: not plain.endswith(word))
    for name in (plain, *usual):
        if isinstance(fields.get(name), str | int):
            return fields[name]
    return None


def _to_plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _to_singular(word: str) -> str:
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + instead
    return word
