"""The part of an API's schemas that one direction of traffic and one tool need."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import orjson

from forge.schemas.tolerance import drop_presence, relax_alternatives
from forge.schemas.walk import (
    PREFIX,
    convert_parts,
    list_references,
    make_once,
    memoize,
    rebuild_schema,
)
from forge.text import sanitize_prose, shorten_text
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import HOLDERS, parts

Direction = Literal["request", "response"]
MAX_TEXT = 300
MAX_PARTS = 200
MAX_LEAF = 300
MAX_KEYWORD = 200
MAX_NEEDED = 16
MAX_OUTLINED = 8
"""How deep alternatives of alternatives are looked into for their type."""
_PROSE = frozenset({"title", "description", "examples", "default", "deprecated"})
CHOSEN_BY = "x-chosen-by"
"""At an alternative of a schema with a discriminator: its property, and the values for this one."""
HAS_SUBTYPES = "x-has-subtypes"
"""At a base schema: its `anyOf` are its subtypes."""
_FLAGS = frozenset({"readOnly", "writeOnly", "xml", CHOSEN_BY, HAS_SUBTYPES})
_NOT_IN_RESPONSES = _PROSE | _FLAGS
_NAMING_PROPERTIES = frozenset({"allOf", "properties", "required"})
_WITH_PARTS = HOLDERS | _NAMING_PROPERTIES
_CHOICES = ("anyOf", "oneOf")
_COUNTS = ("minItems", "maxItems", "uniqueItems")
_DEPTHS = (12, 8, 6, 4, 3, 2, 1)
_Reach = tuple[list[str], int, bool]
"""The names in reach, nearest first, as far as a limit goes, the size of the selection and whether
all of them are in it.
"""
# Schemas refer to each other by name, so none holds itself.
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


@dataclass(frozen=True)
class SchemaSelection:
    """Schemas that were asked for, and the definitions that they and each other refer to.

    `whole` is False where parts were replaced by their outline, the type, to stay within the size
    that was allowed; `size` is the characters of JSON that all of it takes.
    """

    schemas: tuple[Schema, ...]
    defs: Mapping[str, Schema]
    size: int
    whole: bool = True


class Projection:
    """An API's schemas as one direction sees them: requests without readOnly properties, responses
    without writeOnly ones and, since nobody writes them, without prose; responses with the
    tolerance of `forge.schemas.tolerance`. What is made of a named schema is made once and shared.
    """

    def __init__(self, schemas: Mapping[str, Schema], direction: Direction) -> None:
        self._schemas, self._direction = schemas, direction
        self._hide = "readOnly" if direction == "request" else "writeOnly"
        self._hiding = frozenset({self._hide, "$ref", "allOf"})
        self._made: dict[str, Schema] = {}
        self._needs: dict[str, set[str]] = {}
        self._sizes: dict[str, int] = {}
        self._flags: dict[str, bool] = {}
        self._outlines: dict[tuple[str, bool], Schema] = {}
        self._roots: dict[tuple[int, ...], tuple[Schema, ...]] = {}
        self._reaches: dict[int, dict[int, tuple[Any, _Reach]]] = defaultdict(dict)
        """By limit."""
        self._projected: dict[int, tuple[Any, Schema]] = {}
        self._simple: dict[int, tuple[Any, Schema]] = {}
        self._weigh_root = memoize(lambda root: (_measure_json(root), list_references(root)))

    def project_root(self, schema: Schema) -> Schema:
        """The schema projected, without the definitions that it refers to."""
        return make_once(self._projected, schema, self._project_schema)

    def project_roots(self, schemas: Iterable[Schema]) -> tuple[Schema, ...]:
        """The schemas projected, as `share_roots`."""
        return self.share_roots(map(self.project_root, schemas))

    def share_roots(self, roots: Iterable[Schema]) -> tuple[Schema, ...]:
        """The projected schemas as the tuple of before where they were asked for before: what it
        takes is found out once.
        """
        made = tuple(roots)
        return self._roots.setdefault(tuple(map(id, made)), made)

    def measure_selection(self, roots: tuple[Schema, ...], limit: int) -> int:
        """The `size` of what `select` makes of them."""
        return self._find_reach(roots, limit)[1]

    def select_schemas(self, roots: tuple[Schema, ...], limit: int) -> SchemaSelection:
        """The projected schemas with their definitions, in about `limit` characters of JSON."""
        names, size, whole = self._find_reach(roots, limit)
        if whole:
            return SchemaSelection(roots, {name: self._project_named(name) for name in names}, size)
        kept = set(names)
        if _measure_json(roots) > limit:
            roots = self._flatten_roots(roots, limit)
        defs = {
            name: self._project_named(name)
            if self._find_references(name) <= kept
            else self._keep_references(self._project_named(name), kept)
            for name in names
        }
        cut = tuple(self._keep_references(root, kept) for root in roots)
        return SchemaSelection(cut, defs, limit, whole=False)

    def _find_reach(self, roots: tuple[Schema, ...], limit: int) -> _Reach:
        known = self._reaches[limit]
        return make_once(known, roots, lambda roots: self._collect_nearest(roots, limit))

    def _collect_nearest(self, roots: tuple[Schema, ...], limit: int) -> _Reach:
        # The brackets of a list, and a comma between each two of its items.
        weighed = [self._weigh_root(root) for root in roots]
        left = limit - 2 - max(0, len(roots) - 1) - sum(size for size, _ in weighed)
        names: dict[str, None] = {}
        wave = sorted(set().union(*(references for _, references in weighed)))
        whole = left >= 0
        while wave:
            fitting = []
            for name in wave:
                left -= self._measure_named(name)
                if left < 0:
                    whole = False
                else:
                    names[name] = None
                    fitting.append(name)
            wave = sorted(set().union(*(self._find_references(n) for n in fitting)) - names.keys())
            if not whole:
                break
        return list(names), limit - left if whole else limit, whole

    def _keep_references(self, schema: Schema, names: Collection[str]) -> Schema:
        """The schema with references to all other names replaced by outlines of what they name."""
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema and schema["$ref"].removeprefix(PREFIX) not in names:
            return self._outline_schema(schema)
        made = rebuild_schema(schema, lambda part: self._keep_references(part, names))
        return loosen_schema(made, schema)

    def _outline_schema(
        self, schema: Mapping[str, Any], needed: bool = True, depth: int = 0
    ) -> Schema:
        """A small schema without parts as it is; of another its type and what it cannot do without;
        true where nothing says its type.
        """
        if depth > MAX_OUTLINED:
            return True
        if len(schema) > 1 or "$ref" not in schema:
            return self._draw_outline(schema, needed, depth)
        key = (schema["$ref"], needed)
        if key not in self._outlines:
            self._outlines[key] = self._draw_outline(schema, needed, depth)
        return self._outlines[key]

    def _draw_outline(self, schema: Mapping[str, Any], needed: bool, depth: int) -> Schema:
        leaf = self._find_leaf(schema)
        if leaf is not None:
            return {**leaf, **{key: value for key, value in schema.items() if key != "$ref"}}
        found = list_applied_schemas(schema, self._schemas)
        types = self._find_types(found, depth)
        if types is None:
            return True
        notes = {key: schema[key] for key in ("description",) if key in schema}
        if self._direction == "response":
            return {"type": types, **notes}
        counts = {key: part[key] for part in reversed(found) for key in _COUNTS if key in part}
        required = self._outline_required(found) if needed else {}
        return {"type": types, **counts, **required, **notes}

    def _find_types(self, found: list[Mapping[str, Any]], depth: int) -> Any:
        """The `type` of a schema's values, from its parts or else from its alternatives."""
        for part in found:
            if "type" in part:
                return part["type"]
        for part in found:
            outlines = [
                self._outline_schema(branch, False, depth + 1) if isinstance(branch, dict) else True
                for key in _CHOICES
                for branch in part.get(key, ())
            ]
            kinds = [outline["type"] for outline in outlines if _has_type(outline)]
            if kinds and len(kinds) == len(outlines):
                names = [
                    name for kind in kinds for name in ([kind] if isinstance(kind, str) else kind)
                ]
                unique = list(dict.fromkeys(names))
                return unique[0] if len(unique) == 1 else unique
        return "object" if any("properties" in part for part in found) else None

    def _outline_required(self, found: list[Mapping[str, Any]]) -> dict[str, Any]:
        """What an object cannot do without: its required properties, each as an outline."""
        hidden = {name for part in found for name in self._find_hidden(part)}
        named = [name for part in found for name in part.get("required", ()) if name not in hidden]
        required = list(dict.fromkeys(named))[:MAX_NEEDED]
        properties: dict[str, Schema] = {}
        for part in reversed(found):
            properties.update(part.get("properties", {}))
        outlines = {
            name: self._outline_schema(part, needed=False)
            for name in required
            if isinstance(part := properties.get(name), Mapping)
        }
        made: dict[str, Any] = {"properties": outlines} if outlines else {}
        return {**made, "required": required} if required else made

    def _find_leaf(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        name = str(schema.get("$ref", "")).removeprefix(PREFIX)
        named = self._project_named(name) if name else self._project_schema(schema)
        if not isinstance(named, dict) or "$ref" in named or any(True for _ in parts(named)):
            return None
        kept = {key: value for key, value in named.items() if key not in _PROSE}
        if _measure_json(kept) > MAX_LEAF:
            # A long enumeration or pattern goes, and what else is told of the value stays.
            kept = {
                key: value for key, value in kept.items() if _measure_json(value) <= MAX_KEYWORD
            }
        return kept if _measure_json(kept) <= MAX_LEAF else None

    def _flatten_roots(self, roots: tuple[Schema, ...], limit: int) -> tuple[Schema, ...]:
        """The schemas cut at a depth, outlines in place of what lies deeper."""
        for depth in _DEPTHS:
            made = tuple(self._cut_schema(root, depth) for root in roots)
            if _measure_json(made) <= limit:
                return made
        return tuple(True if isinstance(root, dict) else root for root in roots)

    def _cut_schema(self, schema: Schema, depth: int) -> Schema:
        if not isinstance(schema, dict):
            return schema
        if depth == 0:
            return self._outline_schema(schema)
        made = rebuild_schema(schema, lambda part: self._cut_schema(part, depth - 1))
        return loosen_schema(made, schema)

    def _project_named(self, name: str) -> Schema:
        if name not in self._made:
            self._made[name] = self._project_schema(self._schemas.get(name, True))
        return self._made[name]

    def _find_references(self, name: str) -> set[str]:
        if name not in self._needs:
            self._needs[name] = list_references(self._project_named(name))
        return self._needs[name]

    def _measure_named(self, name: str) -> int:
        if name not in self._sizes:
            self._sizes[name] = len(name) + _measure_json(self._project_named(name))
        return self._sizes[name]

    def _project_schema(self, schema: Schema, inherited: frozenset[str] = frozenset()) -> Schema:
        if not isinstance(schema, dict):
            return schema
        if _WITH_PARTS.isdisjoint(schema):
            return make_once(self._simple, schema, self._keep_keywords)
        hidden = inherited
        if not _NAMING_PROPERTIES.isdisjoint(schema):
            hidden = inherited | self._find_hidden(schema)
        kept = self._keep_keywords(schema)
        if hidden:
            kept = _remove_properties(kept, hidden)
        together = kept.pop("allOf", None)
        made = convert_parts(kept, self._project_schema)
        if together is not None:
            made["allOf"] = [self._project_schema(part, hidden) for part in together]
        return relax_alternatives(made) if self._direction == "response" else made

    def _keep_keywords(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords that this direction needs, their parts not yet projected."""
        if self._direction == "response":
            # An answer may have more than is told, so the base is enough of it.
            own = {"anyOf"} if HAS_SUBTYPES in schema else set()
            return drop_presence(schema, _NOT_IN_RESPONSES | own)
        kept = dict(schema)
        if not _FLAGS.isdisjoint(schema):
            kept = {key: value for key, value in schema.items() if key not in _FLAGS}
        if len(kept.get("description", "")) > MAX_TEXT:
            kept["description"] = shorten_text(kept["description"], MAX_TEXT)
        if kept.get("format") == "binary":
            kept.setdefault("contentEncoding", "base64")
        if CHOSEN_BY in schema:
            kept |= self._build_choice(schema, **schema[CHOSEN_BY])
        return kept

    def _build_choice(
        self, schema: Mapping[str, Any], property: str, values: list[str]
    ) -> dict[str, Any]:
        """What tells a caller how to choose an alternative; nothing where it says that itself."""
        written = merge_properties(schema, self._schemas).get(property)
        found = list_applied_schemas(written or {}, self._schemas)
        is_told = any("enum" in part or "const" in part or self._hide in part for part in found)
        is_text = all(part.get("type", "string") == "string" for part in found)
        if not found or is_told or not is_text or "properties" in schema:
            return {}
        text = sanitize_prose(f"Is {' or '.join(map(repr, values))} here.", MAX_TEXT)
        return {"properties": {property: {"type": "string", "description": text}}}

    def _find_hidden(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """The properties of an object, in all its parts, that this direction does not carry."""
        found = set()
        for part in list_applied_schemas(schema, self._schemas):
            for name, value in part.get("properties", {}).items():
                if isinstance(value, dict) and not self._hiding.isdisjoint(value):
                    if self._is_hidden(value):
                        found.add(name)
        return frozenset(found)

    def _is_hidden(self, schema: Mapping[str, Any]) -> bool:
        if "allOf" in schema:
            return self._is_flagged(schema)
        if schema.get(self._hide) is True or "$ref" not in schema:
            return schema.get(self._hide) is True
        name = schema["$ref"]
        known = self._flags.get(name)
        if known is None:
            known = self._flags[name] = self._is_flagged({"$ref": name})
        return known

    def _is_flagged(self, schema: Mapping[str, Any]) -> bool:
        return any(
            part.get(self._hide) is True for part in list_applied_schemas(schema, self._schemas)
        )


def list_applied_schemas(schema: Schema, schemas: Mapping[str, Schema]) -> list[Mapping[str, Any]]:
    """The schema and what its `$ref` and `allOf` add to it."""
    if not isinstance(schema, dict):
        return []
    if "$ref" not in schema and "allOf" not in schema:
        return [schema]
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    waiting: list[Schema] = [schema]
    while waiting and len(found) < MAX_PARTS:
        item = waiting.pop()
        if not isinstance(item, dict):
            continue
        found.append(item)
        waiting += item.get("allOf", ())
        name = item["$ref"].removeprefix(PREFIX) if "$ref" in item else ""
        if name in schemas and name not in seen:
            seen.add(name)
            waiting.append(schemas[name])
    return found


def merge_properties(schema: Schema | None, schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The properties that an object has by its own, its `$ref`'s and its `allOf`'s word."""
    if isinstance(schema, dict) and "$ref" not in schema and "allOf" not in schema:
        return dict(schema.get("properties", {}))
    made: dict[str, Schema] = {}
    for part in reversed(list_applied_schemas(True if schema is None else schema, schemas)):
        made.update(part.get("properties", {}))
    return made


def resolve_schema(schema: Schema, schemas: Mapping[str, Schema]) -> Mapping[str, Any]:
    """What a schema's chain of bare references ends at; empty for a boolean."""
    for _ in range(16):
        if not isinstance(schema, dict):
            return {}
        if "$ref" not in schema:
            return schema
        schema = schemas.get(schema["$ref"].removeprefix(PREFIX), True)
    return {}


def _has_type(schema: Schema) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(schema, dict) and "type" in schema


def _remove_properties(schema: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {k: v for k, v in made["properties"].items() if k not in hidden}
    if "required" in made:
        made["required"] = [name for name in made["required"] if name not in hidden]
        if not made["required"]:
            del made["required"]
    return made


def loosen_schema(made: dict[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
    """A schema some of whose parts now take more values than they did, so that it takes no less.

    Of two looser alternatives both may fit, which `oneOf` refuses; what a looser `not` refuses is
    more than was meant; and a part that says less evaluates less.
    """
    if "oneOf" in made and made["oneOf"] != original["oneOf"]:
        made.setdefault("anyOf", made.pop("oneOf"))
    if "not" in made and made["not"] != original["not"]:
        del made["not"]
    if "if" in made and made["if"] != original["if"]:
        for key in ("if", "then", "else"):
            made.pop(key, None)
    for key in ("unevaluatedProperties", "unevaluatedItems"):
        made.pop(key, None)
    return made


def _measure_json(value: Any) -> int:
    """The characters of a value's JSON, with escapes for all that is not ASCII."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # An integer beyond 64 bits, or too deep.
        written = b"\xff"
    return len(written) if written.isascii() else len(_ENCODER.encode(value))
