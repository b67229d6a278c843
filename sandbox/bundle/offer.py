"""Definitions that a third-party server offers besides tools: prompts, resources and resource
templates (MCP specification, server/prompts and server/resources).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ABILITIES = ("prompts", "resources", "subscribe", "completions", "logging")


Definition = Mapping[str, Any]


@dataclass(frozen=True)
class DefinitionKind:
    """One kind of definition: the method that lists it, the result's member, the key that
    identifies it, the ability it needs, and the members that its digest covers besides the common
    ones.
    """

    name: str
    method: str
    member: str
    key: str
    ability: str
    words: tuple[str, ...]


PROMPT = DefinitionKind("prompt", "prompts/list", "prompts", "name", "prompts", ("arguments",))


RESOURCE = DefinitionKind(
    "resource", "resources/list", "resources", "uri", "resources", ("mimeType",)
)


TEMPLATE = DefinitionKind(
    "template",
    "resources/templates/list",
    "resourceTemplates",
    "uriTemplate",
    "resources",
    ("mimeType",),
)


KINDS = (PROMPT, RESOURCE, TEMPLATE)


@dataclass(frozen=True)
class ListedDefinitions:
    """The definitions that a server lists, as sent, by the name of their kind, and its
    abilities.
    """

    abilities: frozenset[str] = frozenset()
    definitions: Mapping[str, Sequence[Definition]] = field(default_factory=dict)

    def get_definitions(self, kind: DefinitionKind) -> Sequence[Definition]:
        return self.definitions.get(kind.name, ())


@dataclass(frozen=True)
class Offer:
    """The registered definitions as clients see them, the server's abilities, and the sha256 of
    each definition's texts by `kind key`.
    """

    abilities: tuple[str, ...] = ()
    prompts: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)

    def find_prompt(self, name: str) -> Definition | None:
        return next((prompt for prompt in self.prompts if prompt["name"] == name), None)

    def get_definitions(self, kind: DefinitionKind) -> tuple[Definition, ...]:
        shelves = {"prompt": self.prompts, "resource": self.resources, "template": self.templates}
        return shelves[kind.name]


def parse_offer(data: Mapping[str, Any]) -> Offer:
    """The offer that `dataclasses.asdict` wrote. Raises KeyError, TypeError or ValueError."""
    return Offer(
        abilities=tuple(str(name) for name in data["abilities"] if name in ABILITIES),
        prompts=tuple(_check_definition(PROMPT, item) for item in data["prompts"]),
        resources=tuple(_check_definition(RESOURCE, item) for item in data["resources"]),
        templates=tuple(_check_definition(TEMPLATE, item) for item in data["templates"]),
        pins={str(key): str(value) for key, value in data["pins"].items()},
    )


def _check_definition(kind: DefinitionKind, item: Any) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item[kind.key], str):
        raise ValueError(f"a {kind.name} is no definition")
    return item
