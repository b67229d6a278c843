"""Prompts, resources and resource templates of a third-party server: parsed, pinned, compared.

Their names and descriptions are untrusted text that a model reads, so they are pinned like a tool's
definition. Prompts and templates must stay exactly as registered. Resources are data and come and
go; one that was not registered is listed by its URI alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sandbox.bundle.offer import (
    ABILITIES,
    KINDS,
    PROMPT,
    RESOURCE,
    Definition,
    DefinitionKind,
    ListedDefinitions,
    Offer,
)
from sandbox.bundle.report import Finding
from sandbox.sanitize import clean_json, clean_text
from sandbox.wire.content import is_media_type, is_uri

MAX_DEFINITIONS = 1000
MAX_NAME, MAX_TITLE, MAX_DESCRIPTION = 200, 200, 20_000
MAX_ARGUMENTS = 64


_WORDS = ("name", "title", "description")


def read_offer(
    first: ListedDefinitions, second: ListedDefinitions
) -> tuple[Offer, tuple[Finding, ...]]:
    """The offer of a server by the listings of two starts, and findings for unusable definitions.

    Resources that differ are listed by their URI alone; see `list_offer_changes` for other
    differences.
    """
    shown: dict[str, tuple[Definition, ...]] = {}
    pins: dict[str, str] = {}
    problems: list[Finding] = []
    for kind in KINDS:
        usable, unusable = _split_usable(kind, first.get_definitions(kind))
        if kind is RESOURCE:
            again = {
                str(item.get(kind.key)): digest_words(kind, item)
                for item in second.get_definitions(kind)
            }
            usable = [item for item in usable if again.get(item["uri"]) == digest_words(kind, item)]
        for item in usable if kind is RESOURCE else first.get_definitions(kind):
            pins[f"{kind.name} {item.get(kind.key)}"] = digest_words(kind, item)
        shown[kind.name] = tuple(clean_definition(kind, item) for item in usable)
        problems += unusable
    abilities = tuple(name for name in ABILITIES if name in first.abilities & second.abilities)
    made = Offer(abilities, shown["prompt"], shown["resource"], shown["template"], pins)
    return made, tuple(problems)


def _split_usable(
    kind: DefinitionKind, listed: Sequence[Definition]
) -> tuple[list[Definition], list[Finding]]:
    """The usable definitions, as sent, and findings for the others."""
    usable: dict[str, Definition] = {}
    problems: list[Finding] = []
    for number, item in enumerate(listed):
        problem = _find_problem(kind, item, usable)
        if problem:
            where = clean_text(str(item.get(kind.key, number)))[:MAX_NAME]
            problems.append(Finding(kind.method, where, f"{kind.name}-definition", problem))
        else:
            usable[item[kind.key]] = item
    return list(usable.values()), problems


def list_offer_changes(pins: Mapping[str, str], listed: ListedDefinitions) -> tuple[str, ...]:
    """The differences between pinned and listed definitions, in words; empty if there are none."""
    told: list[str] = []
    for kind in KINDS:
        pinned = {k for k in pins if k.startswith(f"{kind.name} ")}
        present: set[str] = set()
        for item in listed.get_definitions(kind):
            key = f"{kind.name} {item.get(kind.key)}"
            if kind is not RESOURCE and key not in pinned:
                told.append(f"{key} is new")
            elif kind is not RESOURCE and key in present:
                told.append(f"{key} is listed twice")
            elif key in pinned and pins[key] != digest_words(kind, item):
                told.append(f"{key} was changed")
            present.add(key)
        if kind is not RESOURCE:
            told += [f"{key} is gone" for key in sorted(pinned - present)]
    return tuple(clean_text(line)[:200] for line in told)


def select_shown_resources(
    offer: Offer, listed: Sequence[Definition]
) -> tuple[tuple[Definition, ...], int]:
    """The resources to show to clients, and the number left out. Names and descriptions are those
    registered; a resource that was not registered has its URI alone.
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


def digest_words(kind: DefinitionKind, item: Definition) -> str:
    """sha256 (hex) of a definition's texts that a model may read, and its key."""
    words = {name: item[name] for name in (kind.key, *_WORDS, *kind.words) if name in item}
    text = json.dumps(words, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def clean_definition(kind: DefinitionKind, item: Definition) -> dict[str, Any]:
    """A definition with its texts, sanitized and bounded, and no other members."""
    made: dict[str, Any] = {kind.key: item[kind.key]}
    made["name"] = clean_text(str(item.get("name") or item[kind.key]))[:MAX_NAME]
    for name, most in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        if isinstance(item.get(name), str) and item[name]:
            made[name] = clean_text(item[name])[:most]
    if isinstance(item.get("mimeType"), str) and is_media_type(item["mimeType"]):
        made["mimeType"] = item["mimeType"]
    if kind is PROMPT and isinstance(item.get("arguments"), list):
        made["arguments"] = [_clean_argument(one) for one in item["arguments"]]
    return made


def list_texts(listed: ListedDefinitions) -> Iterator[tuple[str, str]]:
    """Pairs of place and text of the definitions, as sent: all that a model would read."""
    for kind in KINDS:
        for number, item in enumerate(listed.get_definitions(kind)):
            where = f"{kind.method}/{number}"
            for name in _WORDS:
                yield f"{where}/{name}", str(item.get(name) or "")
            arguments = item.get("arguments") if kind is PROMPT else None
            for at, one in enumerate(arguments if isinstance(arguments, list) else ()):
                for name in _WORDS if isinstance(one, Mapping) else ():
                    yield f"{where}/arguments/{at}/{name}", str(one.get(name) or "")


def _find_problem(kind: DefinitionKind, item: Definition, known: Collection[str]) -> str:
    """The reason why a definition cannot be used; "" if it can."""
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
    return "" if arguments is None else _find_arguments_problem(arguments)


def _find_arguments_problem(arguments: Any) -> str:
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS:
        return f"its arguments are no list of at most {MAX_ARGUMENTS}"
    names = [one.get("name") if isinstance(one, Mapping) else None for one in arguments]
    sound = all(isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in names)
    if not sound or any(clean_text(str(name)) != name for name in names):
        return "an argument has no name that could be given"
    return "an argument is listed twice" if len(set(names)) < len(names) else ""


def _clean_argument(one: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": one["name"]}
    for name, most in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        if isinstance(one.get(name), str):
            made[name] = clean_text(one[name])[:most]
    if one.get("required") is True:
        made["required"] = True
    return made
