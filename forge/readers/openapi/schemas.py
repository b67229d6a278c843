"""Schema objects of every OpenAPI dialect as JSON Schema 2020-12.

What a document says wrongly is dropped and reported, so that what comes out always passes the
meta-schema. A `$ref` becomes `#/$defs/NAME`; recursion stays recursion.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from forge.document import Problem
from forge.openapi.conflicts import conflict, mended
from forge.openapi.keywords import INVALID, VALUES
from forge.openapi.references import Node, References, Unresolved
from forge.prose import visible
from forge.subschemas import MANY, NAMED, ONE, PREFIX, cut, endless, sound
from sandbox.apispec import Schema

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
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Schemas:
    """Converts schemas and collects those that references name."""

    def __init__(
        self, references: References, siblings: bool, report: Callable[[Problem], None]
    ) -> None:
        """`siblings`: whether keywords beside a `$ref` count (from 3.1 on)."""
        self._references, self._siblings, self._report = references, siblings, report
        self._names: dict[tuple[str, str], str] = {}
        self._taken: dict[str, int] = {}
        self._waiting: deque[tuple[str, Node]] = deque()
        self._defs: dict[str, Schema] = {}
        self._joint: list[tuple[Node, dict[str, Any]]] = []

    def convert(self, node: Node, depth: int = 0) -> Schema:
        """The schema at a node; True (any value) where there is none that can be used."""
        value = node.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            self._report(node.problem("a schema must be an object; any value is taken here"))
            return True
        if depth > MAX_DEPTH:
            self._report(node.problem(f"nested over {MAX_DEPTH} deep; any value is taken here"))
            return True
        reference = value.get("$ref", value.get("$dynamicRef"))
        if isinstance(reference, str):
            return self._reference(node, reference, depth)
        made = self._keywords(node, depth)
        if "allOf" in made:
            self._joint.append((node, made))
        return _nullable(value, made)

    def named(self) -> dict[str, Schema]:
        """Every schema that a reference named so far, by its NAME in `#/$defs/NAME`.

        Schemas whose parts contradict each other are mended then, those that `convert` returned
        earlier too.
        """
        while self._waiting:
            name, node = self._waiting.popleft()
            self._defs[name] = self.convert(node)
        places = {name: place for place, name in self._names.items()}
        for name, other in endless(self._defs):
            self._defs[name] = cut(self._defs[name], other)
            reason = f"the schema is made of {other!r}, which is made of it; that part is left out"
            self._report(Problem(*places[name], reason))
        self._mend()
        return self._defs

    def _mend(self) -> None:
        waiting, self._joint = self._joint, []
        torn = [(node, made, conflict(made, self._defs)) for node, made in waiting]
        for node, made, reason in torn:
            if reason:
                self._report(node.problem(f"no value fits: {reason}; the later one counts"))
                mend = mended(made, self._defs)
                made.clear()
                made.update(mend)

    def _reference(self, node: Node, reference: str, depth: int) -> Schema:
        try:
            target = self._references.target(node, reference)
            if isinstance(target.value, dict) and not self._siblings:
                target = self._references.follow(target)
        except Unresolved as error:
            reason = f"{error.problem.reason}; any value is taken here"
            self._report(Problem(error.problem.file, error.problem.pointer, reason))
            return True
        if not isinstance(target.value, dict | bool):
            self._report(node.problem(f"$ref {reference[:200]!r} is no schema; any value is taken"))
            return True
        link = {"$ref": PREFIX + self._name(target)}
        if self._siblings:
            return _nullable(node.value, {**link, **self._keywords(node, depth)})
        text = visible(node.value.get("description"), 500)
        return _nullable(node.value, {**link, "description": text} if text else link)

    def _name(self, target: Node) -> str:
        place = (target.file, target.pointer)
        if place not in self._names:
            name = base = _name_of(target)
            while name in self._taken:
                self._taken[base] += 1
                name = f"{base}_{self._taken[base]}"
            self._names[place] = name
            self._taken[name] = 1
            self._waiting.append((name, target))
        return self._names[place]

    def _keywords(self, node: Node, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, raw in node.value.items():
            if key in VALUES:
                result = VALUES[key](raw)
            elif key in ONE or key in MANY or key in NAMED:
                result = self._applicator(key, node.child(key), depth + 1)
            else:
                continue
            if result is INVALID:
                shown = visible(repr(raw), 60)
                self._report(node.problem(f"{key} cannot be {shown}; it is left out"))
            elif result is not None:
                made[key] = result
        return self._in_this_dialect(node, made)

    def _applicator(self, key: str, node: Node, depth: int) -> Any:
        value = node.value
        if value is None:
            return None
        if key in NAMED:
            if isinstance(value, dict) and isinstance(value.get("$ref"), str):
                node, value = self._followed(node)
            if not isinstance(value, dict):
                return INVALID
            return {name: self.convert(node.child(name), depth) for name in value}
        if key in ONE and not (key == "items" and isinstance(value, list)):
            return self.convert(node, depth) if isinstance(value, dict | bool) else INVALID
        if not isinstance(value, list) or not value:
            return INVALID
        return [self.convert(element, depth) for element in node.elements()]

    def _followed(self, node: Node) -> tuple[Node, Any]:
        # Not allowed, but split documents share whole `properties` maps like this.
        try:
            node = self._references.follow(node)
        except Unresolved as error:
            self._report(error.problem)
            return node, None
        return node, node.value

    def _in_this_dialect(self, node: Node, made: dict[str, Any]) -> dict[str, Any]:
        value = node.value
        if isinstance(made.get("items"), list):
            made["prefixItems"] = made.pop("items")
            if isinstance(value.get("additionalItems"), dict | bool):
                made["items"] = self.convert(node.child("additionalItems"), MAX_DEPTH - 1)
        for exclusive, inclusive in (
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ):
            if made.get(exclusive) is True and inclusive in made:
                made[exclusive] = made.pop(inclusive)
            elif isinstance(made.get(exclusive), bool):
                del made[exclusive]
        if made.get("type") == "file":
            made.update(type="string", format="binary")
        if self._siblings and value.get("const", True) is None:
            made["const"] = None
        if "enum" in made:
            made["enum"] = _as_typed(made["enum"], made.get("type"))
        if "example" in made:
            made.setdefault("examples", [made["example"]])
            del made["example"]
        if "discriminator" in value and "oneOf" in made and "anyOf" not in made:
            # Which alternative it is, a property says; that others fit too is no mistake.
            made["anyOf"] = made.pop("oneOf")
        return sound(made)


def _nullable(value: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
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


def _as_typed(values: list[Any], kind: Any) -> list[Any]:
    """Enumerated values as the type beside them wants: YAML and careless quoting change them."""
    if kind == "string":
        words = {True: "true", False: "false"}
        return [
            words[v] if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v
            for v in values
        ]
    if kind == "integer":
        return [
            int(v) if isinstance(v, str) and re.fullmatch(r"-?\d{1,18}", v) else v for v in values
        ]
    return values


def _name_of(target: Node) -> str:
    tokens = [
        token.replace("~1", "/").replace("~0", "~") for token in target.pointer.split("/")[1:]
    ]
    if not tokens:
        tokens = [target.file.rsplit("/", 1)[-1].rsplit(".", 1)[0]]
    is_named = tokens[-2:-1] in (["schemas"], ["definitions"], ["$defs"])
    tokens = tokens[-1:] if is_named else tokens[-3:]
    name = _UNSAFE.sub("_", "_".join(tokens)).strip("_.-")[:80]
    return name or "schema"
