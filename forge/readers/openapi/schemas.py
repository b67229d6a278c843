"""Conversion of schema objects of every OpenAPI dialect to JSON Schema 2020-12.

Invalid keywords are dropped and reported, so the result always passes the meta-schema. A `$ref`
becomes `#/$defs/NAME`; recursion is kept.
"""

from __future__ import annotations

import marshal
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from forge.readers.document import DocumentProblem
from forge.readers.openapi.conflicts import find_conflict, merge_parts
from forge.readers.openapi.discriminators import (
    SubtypeIndex,
    build_base,
    is_base,
    mark_alternatives,
)
from forge.readers.openapi.keywords import INVALID, VALUES
from forge.readers.openapi.overlaps import has_swallowed_branch
from forge.readers.openapi.references import Node, Place, References, UnresolvedReference
from forge.schemas.walk import PREFIX, cut_reference, find_endless_references, make_sound
from forge.text import sanitize_line
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import HOLDERS, MANY, NAMED, ONE, REFERENCES

MAX_DEPTH = 32
_ANNOTATIONS = (
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
)
_OF_DIALECTS = frozenset(
    "items exclusiveMinimum exclusiveMaximum const enum example discriminator".split()
)
"""What dialects write in different ways."""
_WITH_PARTS = HOLDERS | REFERENCES
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_SCHEMA = (dict, bool)
_CLASSES = {"array": list, "boolean": bool, "object": dict, "string": str}
_FLAGS = {"true": True, "false": False}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class SchemaConverter:
    """Converts schemas and collects those that references name."""

    def __init__(
        self, references: References, siblings: bool, report: Callable[[DocumentProblem], None]
    ) -> None:
        """`siblings`: whether keywords beside a `$ref` count (from OpenAPI 3.1 on)."""
        self._references, self._siblings, self._add_problem = references, siblings, report
        self._reported = 0
        self._names: dict[tuple[str, Place], str] = {}
        self._taken: dict[str, int] = {}
        self._waiting: deque[tuple[str, Node]] = deque()
        self._defs: dict[str, Schema] = {}
        self._joint: list[tuple[Node, dict[str, Any]]] = []
        self._exclusive: list[dict[str, Any]] = []
        self._bases: dict[str, Node] = {}
        self._new_bases: deque[str] = deque()
        self._subtypes: SubtypeIndex | None = None
        self._simple: dict[bytes, Schema] = {}
        self._links: dict[str, dict[str, Any]] = {}
        self._followed: dict[tuple[str, str], dict[str, Any]] = {}
        self.conjunctions = 0
        """How many schemas with `allOf` were converted: they may be repaired at their place."""

    def convert(self, node: Node, depth: int = 0) -> Schema:
        """Return the schema at a node; True (any value) where it cannot be used."""
        value = node.value
        if not isinstance(value, dict):
            if isinstance(value, bool):
                return value
            self._report(node.to_problem("a schema must be an object; any value is taken here"))
            return True
        if depth > MAX_DEPTH:
            self._report(node.to_problem(f"nested over {MAX_DEPTH} deep; any value is taken here"))
            return True
        if not REFERENCES.isdisjoint(value):
            reference = value.get("$ref", value.get("$dynamicRef"))
            if isinstance(reference, str):
                return self._convert_reference(node, reference, depth)
        if HOLDERS.isdisjoint(value):
            return self._convert_simple(value, node)
        made = self._convert_keywords(node, depth)
        if "oneOf" in made:
            self._exclusive.append(made)
        if "allOf" in made:
            self.conjunctions += 1
            self._joint.append((node, made))
        return _allow_null(value, made)

    def _convert_simple(
        self, value: dict[str, Any], node: Node, key: str | int | None = None
    ) -> Schema:
        """Convert a schema without parts, which stands at a node or under a key of it. Three of
        four stand in the same words elsewhere; those are one object, which is never changed.
        """
        text = marshal.dumps(value, 2)
        known = self._simple.get(text)
        if known is not None:
            return known
        if key is not None:
            node = node.get_child(key)
        before = self._reported
        made = _allow_null(value, self._convert_keywords(node, 0))
        if self._reported == before:
            self._simple[text] = made
        return made

    def _report(self, problem: DocumentProblem) -> None:
        self._reported += 1
        self._add_problem(problem)

    def collect_named_schemas(self) -> dict[str, Schema]:
        """Return every schema that a reference named so far, by its NAME in `#/$defs/NAME`.

        Schemas whose parts contradict each other are repaired here, in place, including those that
        `convert` returned earlier.
        """
        self._convert_waiting()
        alone = self._add_subtypes()
        places = {name: Node(None, *place) for place, name in self._names.items()}
        places |= {other: places[name] for name, other in alone.items()}
        for name, other in find_endless_references(self._defs):
            self._defs[name] = cut_reference(self._defs[name], other)
            reason = f"the schema is made of {other!r}, which is made of it; that part is left out"
            self._report(places[name].to_problem(reason))
        self._merge_conflicting()
        self._open_overlapping()
        return self._defs

    def _open_overlapping(self) -> None:
        """Make alternatives of which one takes all of another `anyOf`: what fits both is meant."""
        waiting, self._exclusive = self._exclusive, []
        for made in waiting:
            if "anyOf" not in made and has_swallowed_branch(made.get("oneOf", ()), self._defs):
                made["anyOf"] = made.pop("oneOf")

    def _convert_waiting(self) -> None:
        while self._waiting:
            name, node = self._waiting.popleft()
            self._defs[name] = self.convert(node)
            if is_base(node.value):
                self._bases[name] = node
                self._new_bases.append(name)

    def _add_subtypes(self) -> dict[str, str]:
        """Let each base schema with a discriminator take the values of its subtypes, which go on
        referring to the base alone. Returns the names of bases alone by the bases' names.
        """
        found: dict[str, dict[str, tuple[str, Node]]] = {}
        while self._new_bases:
            self._subtypes = self._subtypes or SubtypeIndex(self._references)
            name = self._new_bases.popleft()
            subtypes = self._subtypes.find_subtypes(self._bases[name])
            found[name] = {k: (self._assign_name(node), node) for k, node in subtypes.items()}
            self._convert_waiting()
        alone = {
            name: self._name_alone(name)
            for name, subtypes in found.items()
            if subtypes and isinstance(self._defs[name], dict)
        }
        links = {PREFIX + name: {"$ref": PREFIX + other} for name, other in alone.items()}
        for link in {link for subtypes in found.values() for link, _ in subtypes.values()}:
            schema = self._defs[link]
            if isinstance(schema, dict) and "allOf" in schema:
                schema["allOf"] = [
                    links.get(part["$ref"], part) if _is_bare_reference(part) else part
                    for part in schema["allOf"]
                ]
        self._defs |= {other: self._defs[name] for name, other in alone.items()}
        for name, other in alone.items():
            base = self._defs[other]
            assert isinstance(base, dict)
            self._defs[name] = build_base(self._bases[name], base, found[name], self._defs)
        return alone

    def _name_alone(self, name: str) -> str:
        """A new name for what a base schema says without its subtypes."""
        alone = f"{name}_base"
        while alone in self._taken:
            alone += "_"
        self._taken[alone] = 1
        return alone

    def _merge_conflicting(self) -> None:
        waiting, self._joint = self._joint, []
        torn = [(node, made, find_conflict(made, self._defs)) for node, made in waiting]
        for node, made, reason in torn:
            if reason:
                self._report(node.to_problem(f"no value fits: {reason}; the later one counts"))
                mend = merge_parts(made, self._defs)
                made.clear()
                made.update(mend)

    def _convert_reference(self, node: Node, reference: str, depth: int) -> Schema:
        try:
            target = self._references.resolve_reference(node, reference)
            if isinstance(target.value, dict) and not self._siblings:
                target = self._references.resolve_node(target)
        except UnresolvedReference as error:
            reason = f"{error.problem.reason}; any value is taken here"
            self._report(DocumentProblem(error.problem.file, error.problem.pointer, reason))
            return True
        if not isinstance(target.value, _SCHEMA):
            self._report(
                node.to_problem(f"$ref {reference[:200]!r} is no schema; any value is taken")
            )
            return True
        name = self._assign_name(target)
        # As with schemas without parts, one object for all that say the same.
        link = self._links.setdefault(name, {"$ref": PREFIX + name})
        if len(node.value) == 1:
            self._followed[node.file, reference] = link
            return link
        if self._siblings:
            return _allow_null(node.value, {**link, **self._convert_keywords(node, depth)})
        text = sanitize_line(node.value.get("description"), 500)
        return _allow_null(node.value, {**link, "description": text} if text else {**link})

    def _assign_name(self, target: Node) -> str:
        place = (target.file, target.place)
        if place not in self._names:
            name = base = _derive_name(target)
            while name in self._taken:
                self._taken[base] += 1
                name = f"{base}_{self._taken[base]}"
            self._names[place] = name
            self._taken[name] = 1
            self._waiting.append((name, target))
        return self._names[place]

    def _convert_keywords(self, node: Node, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, raw in node.value.items():
            if key in VALUES:
                result = VALUES[key](raw)
            elif key in HOLDERS:
                result = self._convert_applicator(key, node.get_child(key), depth + 1)
            else:
                continue
            if result is INVALID:
                shown = sanitize_line(repr(raw), 60)
                self._report(node.to_problem(f"{key} cannot be {shown}; it is left out"))
            elif result is not None:
                made[key] = result
        properties = node.value.get("properties")
        needed = [n for n in _list_draft_properties(properties) if properties[n]["required"]]
        if needed:
            made["required"] = list(dict.fromkeys([*made.get("required", ()), *needed]))
        return self._convert_dialect(node, made)

    def _convert_applicator(self, key: str, node: Node, depth: int) -> Any:
        value = node.value
        if value is None:
            return None
        if key in NAMED:
            if isinstance(value, dict) and isinstance(value.get("$ref"), str):
                node, value = self._follow_node(node)
            if not isinstance(value, dict):
                return INVALID
            if key == "properties":
                node = _drop_draft_required(node)
            return {name: self._convert_child(node, name, depth) for name in value}
        if key in ONE and not (key == "items" and isinstance(value, list)):
            return self.convert(node, depth) if isinstance(value, _SCHEMA) else INVALID
        if not isinstance(value, list) or not value:
            return INVALID
        return [self._convert_child(node, number, depth) for number in range(len(value))]

    def _convert_child(self, node: Node, key: str | int, depth: int) -> Schema:
        """Convert the schema under a key: most are in words that were converted before, so where
        they stand does not matter.
        """
        value = node.value[key]
        if type(value) is dict and depth <= MAX_DEPTH:
            if _WITH_PARTS.isdisjoint(value):
                return self._convert_simple(value, node, key)
            reference = value.get("$ref")
            if len(value) == 1 and isinstance(reference, str):
                known = self._followed.get((node.file, reference))
                if known is not None:
                    return known
        return self.convert(node.get_child(key), depth)

    def _follow_node(self, node: Node) -> tuple[Node, Any]:
        # Not allowed, but split documents share whole `properties` maps like this.
        try:
            node = self._references.resolve_node(node)
        except UnresolvedReference as error:
            self._report(error.problem)
            return node, None
        return node, node.value

    def _convert_dialect(self, node: Node, made: dict[str, Any]) -> dict[str, Any]:
        value = node.value
        if _OF_DIALECTS.isdisjoint(value) and made.get("type") != "file":
            return make_sound(made)
        if isinstance(made.get("items"), list):
            made["prefixItems"] = made.pop("items")
            if isinstance(value.get("additionalItems"), dict | bool):
                made["items"] = self.convert(node.get_child("additionalItems"), MAX_DEPTH - 1)
        _convert_exclusive_bounds(made)
        if made.get("type") == "file":
            made.update(type="string", format="binary")
        if self._siblings and value.get("const", True) is None:
            made["const"] = None
        if "enum" in made:
            made["enum"] = _cast_values(made["enum"], made.get("type"))
            self._settle_type(node, made)
        if "example" in made:
            made.setdefault("examples", [made["example"]])
            del made["example"]
        if "discriminator" in value and "oneOf" in made and "anyOf" not in made:
            # Which alternative it is, a property says; that others fit too is no mistake.
            made["anyOf"] = made.pop("oneOf")
        if "anyOf" in made and isinstance(value.get("discriminator"), dict):
            made["anyOf"] = mark_alternatives(made["anyOf"], value["discriminator"])
        return make_sound(made)

    def _settle_type(self, node: Node, made: dict[str, Any]) -> None:
        """Make an enumeration and its type agree where no value has that type: what stands beside
        an array is of its items, else the values count.
        """
        kind, values = made.get("type"), [v for v in made["enum"] if v is not None]
        if not isinstance(kind, str) or not values or any(_has_type(v, kind) for v in values):
            return
        if kind != "array":
            del made["type"]
            self._report(node.to_problem(f"no enumerated value is of type {kind}; they count"))
            return
        items = made.get("items")
        made["items"] = {"enum": made.pop("enum"), **(items if isinstance(items, dict) else {})}
        self._report(node.to_problem("no enumerated value is an array; they are its items'"))


def _list_draft_properties(properties: Any) -> list[str]:
    """The properties that say themselves whether they are required, as up to draft 3."""
    if not isinstance(properties, dict):
        return []
    return [
        name
        for name, schema in properties.items()
        if type(schema) is dict and "required" in schema and isinstance(schema["required"], bool)
    ]


def _drop_draft_required(node: Node) -> Node:
    """The properties without what they say of themselves in the object that they are of."""
    told = _list_draft_properties(node.value)
    if not told:
        return node
    bare = {name: {k: v for k, v in node.value[name].items() if k != "required"} for name in told}
    return Node({**node.value, **bare}, node.file, node.place)


def _is_bare_reference(schema: Schema) -> bool:
    return isinstance(schema, dict) and len(schema) == 1 and "$ref" in schema


def _has_type(value: Any, kind: str) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or (is_number and value.is_integer())
        return is_number and (kind == "number" or whole)
    return isinstance(value, _CLASSES[kind]) if kind in _CLASSES else True


def _convert_exclusive_bounds(made: dict[str, Any]) -> None:
    """Write bounds as 2020-12 does, where drafts before 6 have a flag beside the inclusive one."""
    for exclusive, inclusive in _BOUNDS:
        written = made.get(exclusive)
        if written is True and inclusive in made:
            made[exclusive] = made.pop(inclusive)
        elif isinstance(written, bool):
            del made[exclusive]


def _allow_null(value: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    if value.get("nullable") is not True and value.get("x-nullable") is not True:
        return made
    if "$ref" in made or made.keys() & MANY:
        notes = {key: made.pop(key) for key in _ANNOTATIONS if key in made}
        return {"anyOf": [made, {"type": "null"}], **notes}
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    if "type" in made:
        types = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = types if "null" in types else [*types, "null"]
    return made


def _cast_values(values: list[Any], kind: Any) -> list[Any]:
    """Cast enumerated values to the type beside them: YAML and missing quotes change them."""
    if kind == "string":
        words = {True: "true", False: "false"}
        return [
            words[v] if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v
            for v in values
        ]
    if kind == "boolean":
        return [_FLAGS.get(v.lower(), v) if isinstance(v, str) else v for v in values]
    if kind in ("integer", "number"):
        whole = [
            int(v) if isinstance(v, str) and re.fullmatch(r"-?\d{1,18}", v) else v for v in values
        ]
        return whole if kind == "integer" else list(map(_cast_decimal, whole))
    return values


def _cast_decimal(value: Any) -> Any:
    is_decimal = isinstance(value, str) and re.fullmatch(r"-?\d{1,15}\.\d{1,15}", value)
    return float(value) if is_decimal else value


def _derive_name(target: Node) -> str:
    tokens = list(map(str, target.keys))
    if not tokens:
        tokens = [target.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]]
    is_named = tokens[-2:-1] in (["schemas"], ["definitions"], ["$defs"])
    tokens = tokens[-1:] if is_named else tokens[-3:]
    name = _UNSAFE.sub("_", "_".join(tokens)).strip("_.-")[:80]
    return name or "schema"
