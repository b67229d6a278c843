"""What a third-party server offers beside tools: prompts, resources, and templates of resources.

Their names and descriptions are a stranger's words that a model is shown, so they are pinned like a
tool's definition. A prompt or a template is what was registered, letter for letter. Resources are
data and come and go; one that was not registered is listed by its URI alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.cleantext import clean_json, clean_text
from sandbox.content import is_media_type, is_uri
from sandbox.report import Finding

MAX_DEFINITIONS = 1000
MAX_NAME, MAX_TITLE, MAX_DESCRIPTION = 200, 200, 20_000
MAX_ARGUMENTS = 64
ABILITIES = ("prompts", "resources", "subscribe", "completions", "logging")
Definition = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of definition: how it is listed, what identifies it, and which words it has."""

    name: str
    method: str
    member: str
    key: str
    ability: str
    words: tuple[str, ...]


PROMPT = Kind("prompt", "prompts/list", "prompts", "name", "prompts", ("arguments",))
RESOURCE = Kind("resource", "resources/list", "resources", "uri", "resources", ("mimeType",))
TEMPLATE = Kind(
    "template",
    "resources/templates/list",
    "resourceTemplates",
    "uriTemplate",
    "resources",
    ("mimeType",),
)
KINDS = (PROMPT, RESOURCE, TEMPLATE)
_WORDS = ("name", "title", "description")


@dataclass(frozen=True)
class Listed:
    """What a server lists beside its tools, as sent, by the name of its kind; what it can do."""

    abilities: frozenset[str] = frozenset()
    definitions: Mapping[str, Sequence[Definition]] = field(default_factory=dict)

    def of(self, kind: Kind) -> Sequence[Definition]:
        return self.definitions.get(kind.name, ())


@dataclass(frozen=True)
class Offer:
    """What was registered: the definitions as clients are shown them, what the server can do, and
    the sha256 of each definition's words by `kind key`.
    """

    abilities: tuple[str, ...] = ()
    prompts: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, name: str) -> Definition | None:
        return next((prompt for prompt in self.prompts if prompt["name"] == name), None)

    def of(self, kind: Kind) -> tuple[Definition, ...]:
        shelves = {"prompt": self.prompts, "resource": self.resources, "template": self.templates}
        return shelves[kind.name]


def read_offer(first: Listed, second: Listed) -> tuple[Offer, tuple[Finding, ...]]:
    """The offer that two starts of a server agree on, and what of it cannot be used, and why.

    Resources that differ are listed by their URI alone; `offer_changes` tells of other differences.
    """
    shown: dict[str, tuple[Definition, ...]] = {}
    pins: dict[str, str] = {}
    problems: list[Finding] = []
    for kind in KINDS:
        usable, unusable = _usable(kind, first.of(kind))
        if kind is RESOURCE:
            again = {str(item.get(kind.key)): words_digest(kind, item) for item in second.of(kind)}
            usable = [item for item in usable if again.get(item["uri"]) == words_digest(kind, item)]
        for item in usable if kind is RESOURCE else first.of(kind):
            pins[f"{kind.name} {item.get(kind.key)}"] = words_digest(kind, item)
        shown[kind.name] = tuple(shown_definition(kind, item) for item in usable)
        problems += unusable
    abilities = tuple(name for name in ABILITIES if name in first.abilities & second.abilities)
    made = Offer(abilities, shown["prompt"], shown["resource"], shown["template"], pins)
    return made, tuple(problems)


def _usable(kind: Kind, listed: Sequence[Definition]) -> tuple[list[Definition], list[Finding]]:
    """The definitions that can be used, as sent, and what is wrong with the others."""
    usable: dict[str, Definition] = {}
    problems: list[Finding] = []
    for number, item in enumerate(listed):
        problem = _problem(kind, item, usable)
        if problem:
            where = clean_text(str(item.get(kind.key, number)))[:MAX_NAME]
            problems.append(Finding(kind.method, where, f"{kind.name}-definition", problem))
        else:
            usable[item[kind.key]] = item
    return list(usable.values()), problems


def offer_changes(pins: Mapping[str, str], listed: Listed) -> tuple[str, ...]:
    """What differs from the pinned words, in words; empty where nothing does."""
    told: list[str] = []
    for kind in KINDS:
        pinned = {k for k in pins if k.startswith(f"{kind.name} ")}
        present: set[str] = set()
        for item in listed.of(kind):
            key = f"{kind.name} {item.get(kind.key)}"
            if kind is not RESOURCE and key not in pinned:
                told.append(f"{key} is new")
            elif kind is not RESOURCE and key in present:
                told.append(f"{key} is listed twice")
            elif key in pinned and pins[key] != words_digest(kind, item):
                told.append(f"{key} was changed")
            present.add(key)
        if kind is not RESOURCE:
            told += [f"{key} is gone" for key in sorted(pinned - present)]
    return tuple(clean_text(line)[:200] for line in told)


def shown_resources(
    offer: Offer, listed: Sequence[Definition]
) -> tuple[tuple[Definition, ...], int]:
    """What clients are shown of the resources that there are at the moment, and how many were left
    out: words only of those that were registered with them.
    """
    known = {resource["uri"]: resource for resource in offer.resources}
    shown: dict[str, Definition] = {}
    for item in listed:
        uri = item.get("uri")
        if not is_uri(uri) or uri in shown:
            continue
        size = item.get("size")
        sized = {"size": size} if isinstance(size, int) and 0 <= size < 1 << 53 else {}
        plain = {"uri": uri, "name": str(uri)[:MAX_NAME]}
        shown[str(uri)] = {**(known.get(str(uri)) or plain), **sized}
    return tuple(shown.values()), len(listed) - len(shown)


def words_digest(kind: Kind, item: Definition) -> str:
    """sha256 (hex) of the words of a definition."""
    words = {name: item[name] for name in (kind.key, *_WORDS, *kind.words) if name in item}
    text = json.dumps(words, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def shown_definition(kind: Kind, item: Definition) -> dict[str, Any]:
    """A definition with its words, clean and bounded, and nothing else of it."""
    made: dict[str, Any] = {kind.key: item[kind.key]}
    made["name"] = clean_text(str(item.get("name") or item[kind.key]))[:MAX_NAME]
    for name, most in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        if isinstance(item.get(name), str) and item[name]:
            made[name] = clean_text(item[name])[:most]
    if isinstance(item.get("mimeType"), str) and is_media_type(item["mimeType"]):
        made["mimeType"] = item["mimeType"]
    if kind is PROMPT and isinstance(item.get("arguments"), list):
        made["arguments"] = [_argument(one) for one in item["arguments"]]
    return made


def texts(listed: Listed) -> Iterator[tuple[str, str]]:
    """Every text of the definitions as sent, and where it stands: what a model would read."""
    for kind in KINDS:
        for number, item in enumerate(listed.of(kind)):
            where = f"{kind.method}/{number}"
            for name in _WORDS:
                yield f"{where}/{name}", str(item.get(name) or "")
            arguments = item.get("arguments") if kind is PROMPT else None
            for at, one in enumerate(arguments if isinstance(arguments, list) else ()):
                for name in _WORDS if isinstance(one, Mapping) else ():
                    yield f"{where}/arguments/{at}/{name}", str(one.get(name) or "")


def from_json(data: Mapping[str, Any]) -> Offer:
    """The offer that `dataclasses.asdict` wrote. Raises KeyError, TypeError or ValueError."""
    return Offer(
        abilities=tuple(str(name) for name in data["abilities"] if name in ABILITIES),
        prompts=tuple(_definition(PROMPT, item) for item in data["prompts"]),
        resources=tuple(_definition(RESOURCE, item) for item in data["resources"]),
        templates=tuple(_definition(TEMPLATE, item) for item in data["templates"]),
        pins={str(key): str(value) for key, value in data["pins"].items()},
    )


def _definition(kind: Kind, item: Any) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item[kind.key], str):
        raise ValueError(f"a {kind.name} is no definition")
    return item


def _problem(kind: Kind, item: Definition, known: Collection[str]) -> str:
    """Why a definition cannot be used; empty where it can."""
    key = item.get(kind.key)
    if kind is PROMPT:
        sound = isinstance(key, str) and 0 < len(key) <= MAX_NAME and clean_json(key) == key
    else:
        sound = is_uri(key)
    if not sound:
        return f"its {kind.key} is not one that could be asked for"
    if len(known) >= MAX_DEFINITIONS:
        return f"there are more than {MAX_DEFINITIONS}"
    if key in known:
        return "it is listed twice"
    arguments = item.get("arguments") if kind is PROMPT else None
    return "" if arguments is None else _arguments_problem(arguments)


def _arguments_problem(arguments: Any) -> str:
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS:
        return f"its arguments are no list of at most {MAX_ARGUMENTS}"
    names = [one.get("name") if isinstance(one, Mapping) else None for one in arguments]
    sound = all(isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in names)
    if not sound or any(clean_text(str(name)) != name for name in names):
        return "an argument has no name that could be given"
    return "an argument is listed twice" if len(set(names)) < len(names) else ""


def _argument(one: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": one["name"]}
    for name, most in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        if isinstance(one.get(name), str):
            made[name] = clean_text(one[name])[:most]
    if one.get("required") is True:
        made["required"] = True
    return made
