"""Instances of JSON Schemas, made from a seed: the same seed gives the same values.

Leaves are recognisable: strings and numbers differ from each other, so that whoever gets them back
can tell which one was lost. Every sample has been judged an instance before it is handed out.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sandbox.bundle.apispec import Schema
from sandbox.schemas.directional import HIDDEN, DirectionalValidator
from sandbox.schemas.keywords import NAMED
from sandbox.schemas.regex import fit_text, sample_string
from sandbox.schemas.regex import parse_pattern as read_pattern

_LARGER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_JOINED = NAMED | {"dependentRequired"}
_BOTH = frozenset({"items", "contains", "propertyNames"})
_BRANCHES = frozenset({"oneOf", "anyOf", "$ref"})
_FIRST = frozenset({"format", "pattern", "contentEncoding", "readOnly", "writeOnly", "if"})


def merge_schemas(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose instances are meant to satisfy both; the caller checks what it samples."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged or merged[key] == value:
            merged[key] = value
        else:
            _combine_keyword(merged, key, merged[key], value)
    return merged


def _combine_keyword(merged: dict[str, Any], key: str, left: Any, right: Any) -> None:
    if key in _JOINED:
        merged[key] = _join_properties(left, right)
    elif key == "required":
        merged[key] = list(dict.fromkeys([*left, *right]))
    elif key in _LARGER:
        merged[key] = max(left, right)
    elif key in _SMALLER:
        merged[key] = min(left, right)
    elif key == "enum":
        merged[key] = [value for value in left if value in right] or right
    elif key == "type":
        merged[key] = _intersect_types(left, right)
    elif key == "allOf":
        merged[key] = [*left, *right]
    elif key == "additionalProperties":
        merged[key] = False if left is False or right is False else {"allOf": [left, right]}
    elif key in _BRANCHES:
        merged["allOf"] = [*merged.get("allOf", ()), {key: right}]
    elif key in _BOTH:
        merged[key] = {"allOf": [left, right]}
    elif key == "not":
        merged[key] = {"anyOf": [left, right]}
    elif key not in _FIRST:
        merged[key] = right


def _join_properties(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(left)
    for name, schema in right.items():
        both = name in joined and joined[name] != schema
        joined[name] = {"allOf": [joined[name], schema]} if both else schema
    return joined


def _intersect_types(left: Any, right: Any) -> Any:
    wanted = [right] if isinstance(right, str) else right
    offered = [left] if isinstance(left, str) else left
    shared = [name for name in offered if name in wanted]
    if not shared and {"integer", "number"} <= {*offered, *wanted}:
        shared = ["integer"]
    return shared[0] if len(shared) == 1 else shared or offered


Variant = Literal["minimal", "full"]


@dataclass(frozen=True)
class SampleStyle:
    """What values are like where their schema leaves a choice; None leaves it to chance.

    A free string is `text`, a number the nearest to `number` that is allowed, a list has `items`
    items or as many as are allowed, and what may be null is, with `null`. `turn` chooses among
    enumerated values, branches and optional properties; `wanted` names values and properties that
    come first, and with `deep` optional properties are filled in far below the root.
    """

    text: str | None = None
    number: float | None = None
    items: int | None = None
    boolean: bool | None = None
    null: bool = False
    turn: int | None = None
    wanted: frozenset[str] = frozenset()
    deep: bool = False


USUAL = SampleStyle()
ATTEMPTS = 12
ROUND = 4
"""Attempts of a kind: with what is asked for, with all that is optional, with some of that."""

MAX_NODES = 2_000
OPTIONAL_NODES = 150
MAX_DEPTH = 24
OPTIONAL_DEPTH = 4
DEEP_NODES = 500
DEEP_DEPTH = 9
MAX_ITEMS = 500
MAX_REFERENCES = 32


class Unsatisfiable(Exception):
    """No instance was found. The message says what stood in the way."""


@dataclass(frozen=True)
class _StringEndings:
    usual: str
    inside: Mapping[str, str]


class Sampler:
    """Makes instances that `judge` accepts, travelling in the judge's direction."""

    def __init__(self, judge: DirectionalValidator, seed: int = 0) -> None:
        self._judge, self._seed, self._nodes = judge, seed, 0

    @property
    def effort(self) -> int:
        """What all samples have taken, in values made and judged: the same for the same samples."""
        return self._nodes + self._judge.effort

    def make_sample(
        self,
        schema: Schema | None,
        variant: Variant = "full",
        suffixes: Mapping[str, str] | None = None,
        suffix: str = "",
        flavour: SampleStyle = USUAL,
    ) -> Any:
        """An instance: only what is required, or as much as the budget allows.

        Free strings end with `suffix`, or with what `suffixes` has for the top-level property they
        are in, unless the flavour says what they are. Raises Unsatisfiable.
        """
        endings = _StringEndings(suffix, suffixes or {})
        reason = ""
        for attempt in range(ATTEMPTS):
            # What a flavour asks for may be impossible together with the rest of a schema.
            tried = flavour if attempt < 2 * ROUND else USUAL
            attempted = _SampleAttempt(
                self._judge, self._seed, attempt, variant == "full", endings, tried
            )
            try:
                value = attempted.build_value(True if schema is None else schema, 0)
            except (Unsatisfiable, RecursionError) as obstacle:
                reason = str(obstacle)
                continue
            except (TypeError, ValueError, AttributeError, ArithmeticError) as malformed:
                raise Unsatisfiable(f"the schema is malformed: {malformed}") from malformed
            finally:
                self._nodes += attempted.effort
            problem = self._judge.find_problem(schema, value)
            if problem is None:
                return value
            reason = problem
        raise Unsatisfiable(reason[:300])


class _SampleAttempt:
    """One try: where a schema leaves a choice, `attempt` turns it another way."""

    def __init__(
        self,
        judge: DirectionalValidator,
        seed: int,
        attempt: int,
        full: bool,
        endings: _StringEndings,
        flavour: SampleStyle = USUAL,
    ) -> None:
        self.judge, self.attempt, self.flavour = judge, attempt, flavour
        self.optional_nodes = DEEP_NODES if flavour.deep else OPTIONAL_NODES
        self.optional_depth = DEEP_DEPTH if flavour.deep else OPTIONAL_DEPTH
        # What tells the branches of a oneOf apart is often optional.
        self.full = full or attempt >= ROUND
        self.endings, self.suffix = endings, endings.usual
        self.rng = random.Random(seed * ATTEMPTS + attempt)
        self.numbers = itertools.count(self.rng.randrange(1_000, 5_000))
        self.nodes = self.effort = 0

    def build_value(self, schema: Schema, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise Unsatisfiable("the schema needs more values than the budget allows")
        flat = self.flatten_schema(schema)
        if "const" in flat:
            return flat["const"]
        if flat.get("enum"):
            return self._choose_listed(flat["enum"])
        kind = self._choose_type(flat)
        if kind == "object":
            return self._build_object(flat, depth)
        if kind == "array":
            return self._build_array(flat, depth)
        if kind in ("integer", "number"):
            return self._build_number(flat, kind)
        if kind == "boolean":
            n = next(self.numbers)
            return n % 2 == 0 if self.flavour.boolean is None else self.flavour.boolean
        return None if kind == "null" else self._build_string(flat)

    def _choose_listed(self, values: list[Any]) -> Any:
        """One of an enumeration's values."""
        n = next(self.numbers)
        if self.flavour.null and None in values:
            return None
        choices = [choice for choice in values if choice is not None] or [None]
        for choice in choices if self.flavour.wanted else ():
            if isinstance(choice, str) and choice in self.flavour.wanted:
                return choice
        return choices[(n if self.flavour.turn is None else self.flavour.turn) % len(choices)]

    def flatten_schema(self, schema: Schema, depth: int = 0) -> dict[str, Any]:
        """The schema without references and branches: one way through them is chosen."""
        self.effort += 1
        if schema is False:
            raise Unsatisfiable("the schema is false")
        if schema is True:
            return {}
        if depth > MAX_DEPTH:
            raise Unsatisfiable("the schema refers to itself without end")
        flat = self._follow_references(schema)
        for part in flat.pop("allOf", ()):
            flat = merge_schemas(flat, self.flatten_schema(part, depth + 1))
        for key in ("anyOf", "oneOf"):
            branches = flat.pop(key, None)
            if branches:
                flat = merge_schemas(
                    self.flatten_schema(self._choose_branch(branches), depth + 1), flat
                )
        if "if" in flat:
            flat = self._apply_condition(flat, depth)
        if any(key in flat for key in ("$ref", "allOf", "anyOf", "oneOf")):
            return self.flatten_schema(flat, depth + 1)
        return flat

    def _follow_references(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        flat = dict(schema)
        for _ in range(MAX_REFERENCES):
            reference = flat.pop("$ref", None)
            if reference is None:
                return flat
            target = self.judge.resolve_reference(reference)
            if target is None or target is False:
                raise Unsatisfiable(f"{reference} leads nowhere")
            flat = merge_schemas({} if target is True else target, flat)
        raise Unsatisfiable("references lead in a circle")

    def _choose_branch(self, branches: list[Schema]) -> Schema:
        nulls = [branch for branch in branches if _is_null(branch)]
        if self.flavour.null and nulls:
            return nulls[0]
        usable = [branch for branch in branches if not _is_null(branch)] or branches
        turn = self.attempt % ROUND
        if self.flavour.turn is not None:
            turn = (turn + self.flavour.turn) % len(usable)
        if turn < len(usable) and self.attempt < 2 * ROUND:
            return usable[turn]
        return self.rng.choice(usable)

    def _apply_condition(self, flat: dict[str, Any], depth: int) -> dict[str, Any]:
        condition = flat.pop("if")
        positive, negative = flat.pop("then", True), flat.pop("else", True)
        if self.attempt % 2:
            return merge_schemas(flat, self.flatten_schema(negative, depth + 1))
        flat = merge_schemas(flat, self.flatten_schema(condition, depth + 1))
        return merge_schemas(flat, self.flatten_schema(positive, depth + 1))

    def _choose_type(self, flat: Mapping[str, Any]) -> str:
        kind = flat.get("type")
        if isinstance(kind, list):
            if self.flavour.null and "null" in kind:
                return "null"
            kinds = [name for name in kind if name != "null"] or ["null"]
            return str(kinds[(self.attempt + (self.flavour.turn or 0)) % len(kinds)])
        if isinstance(kind, str):
            return kind
        for name, keys in _IMPLIED.items():
            if any(key in flat for key in keys):
                return name
        return "string"

    def _build_object(self, flat: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Schema] = flat.get("properties") or {}
        required = list(flat.get("required") or ())
        out: dict[str, Any] = {}
        for name in required:
            schema = properties.get(name, self._get_rest_schema(flat))
            if self.attempt < ROUND and self._is_hidden(schema):
                continue
            out[name] = self._build_property(name, schema, depth)
        if self.full and depth < self.optional_depth:
            self._add_optional(out, properties, flat.get("maxProperties"), depth)
        self._add_unnamed(out, flat, depth)
        return out

    def _build_property(self, name: str, schema: Schema, depth: int) -> Any:
        if depth:
            return self.build_value(schema, depth + 1)
        self.suffix = self.endings.inside.get(name, self.endings.usual)
        value = self.build_value(schema, depth + 1)
        self.suffix = self.endings.usual
        return value

    def _add_optional(
        self, out: dict[str, Any], properties: Mapping[str, Schema], most: int | None, depth: int
    ) -> None:
        for name in self._order_properties(properties):
            schema = properties[name]
            if name in out or self.nodes > self.optional_nodes or len(out) == most:
                continue
            # What keeps a value from being an instance is often one optional property too many.
            if self._is_hidden(schema) or (self.attempt >= 2 * ROUND and self.rng.random() < 0.5):
                continue
            nodes = self.nodes
            try:
                out[name] = self._build_property(name, schema, depth)
            except Unsatisfiable:
                self.nodes = nodes

    def _order_properties(self, properties: Mapping[str, Schema]) -> list[str]:
        """The names in the order in which they are filled in until the budget is spent."""
        names = list(properties)
        if self.flavour.turn:
            start = self.flavour.turn * 7 % max(1, len(names))
            names = names[start:] + names[:start]
        if self.flavour.wanted:
            names.sort(key=lambda name: name not in self.flavour.wanted)
        return names

    def _add_unnamed(self, out: dict[str, Any], flat: Mapping[str, Any], depth: int) -> None:
        """Properties that are not named: as many as are needed, one where there are no others."""
        for name, needed in (flat.get("dependentRequired") or {}).items():
            for other in needed if name in out else ():
                if other not in out:
                    schema = (flat.get("properties") or {}).get(other, True)
                    out[other] = self.build_value(schema, depth + 1)
        open_ended = flat.get("additionalProperties", True) is not False
        patterned = dict(flat.get("patternProperties") or {})
        wanted = int(flat.get("minProperties") or 0)
        spare = self.full and not flat.get("properties") and depth < self.optional_depth
        if spare and flat.get("maxProperties") != 0 and (open_ended or patterned):
            wanted = max(wanted, 1)
        for name, schema in (flat.get("properties") or {}).items():
            if len(out) < wanted and name not in out:
                out[name] = self.build_value(schema, depth + 1)
        for _ in range(min(wanted, MAX_ITEMS) * 4):
            if len(out) >= wanted:
                break
            expression, schema = next(iter(patterned.items()), ("", self._get_rest_schema(flat)))
            out[self._build_name(flat, expression)] = self.build_value(schema, depth + 1)

    def _build_name(self, flat: Mapping[str, Any], expression: str) -> str:
        if expression:
            parsed = read_pattern(expression)
            return parsed.sample_text(self.rng, 3) if parsed else f"k{next(self.numbers)}"
        names = flat.get("propertyNames", True)
        name = self.build_value({"type": "string", **names} if names is not True else True, 0)
        return str(name) if names is not True else f"k{next(self.numbers)}"

    def _get_rest_schema(self, flat: Mapping[str, Any]) -> Schema:
        rest: Schema = flat.get("additionalProperties", True)
        return rest

    def _is_hidden(self, schema: Schema) -> bool:
        """Whether a property does not travel in the judge's direction."""
        if not isinstance(schema, Mapping):
            return False
        flag = HIDDEN[self.judge.direction]
        if flag in schema or "$ref" not in schema:
            return schema.get(flag) is True
        target = self.judge.resolve_reference(schema["$ref"])
        return isinstance(target, Mapping) and target.get(flag) is True

    def _build_array(self, flat: Mapping[str, Any], depth: int) -> list[Any]:
        low, high = int(flat.get("minItems") or 0), flat.get("maxItems", MAX_ITEMS)
        if low > MAX_ITEMS:
            raise Unsatisfiable(f"minItems is {low}")
        # A minimal argument that is a list has an item: a path cannot leave it out.
        usual = 2 if self.full and depth <= 2 else 1 if self.full or depth == 1 else 0
        if self.flavour.deep and self.nodes < self.optional_nodes:
            usual = 2
        if self.flavour.items is not None and self.nodes < self.optional_nodes:
            usual = min(self.flavour.items, MAX_ITEMS)
        wanted = max(low, usual)
        out = [self.build_value(schema, depth + 1) for schema in flat.get("prefixItems") or ()]
        items: Schema = flat.get("items", True)
        if "contains" in flat and len(out) < high:
            out.append(self.build_value({"allOf": [items, flat["contains"]]}, depth + 1))
        for _ in range(4 * wanted):
            if len(out) >= min(wanted, high) or items is False:
                break
            nodes = self.nodes
            try:
                value = self.build_value(items, depth + 1)
            except Unsatisfiable:
                if len(out) < low:
                    raise
                self.nodes = nodes
                break
            if not flat.get("uniqueItems") or value not in out:
                out.append(value)
        return out

    def _build_number(self, flat: Mapping[str, Any], kind: str) -> float:
        low, high = _find_bounds(flat, 1 if kind == "integer" else 0.25)
        n = next(self.numbers)
        step = flat.get("multipleOf")
        value: float = n if kind == "integer" else n + 0.5
        if self.flavour.number is not None:
            value = _clamp_value(self.flavour.number, low, high)
            if flat.get("format") == "int32":
                value = _clamp_value(value, -(2**31), 2**31 - 1)
        elif low is not None and high is not None:
            value = low + n % (int(high - low) + 1) if high - low >= 1 else (low + high) / 2
        elif low is not None:
            value = max(value, low + n % 50)
        elif high is not None:
            value = min(value, high - n % 50)
        if step:
            value = _round_to_multiple(value, step, low, high)
        if kind == "integer" and value != int(value) and low is not None:
            value = -(-low // 1)
        return int(value) if kind == "integer" else value

    def _build_string(self, flat: Mapping[str, Any]) -> str:
        n, text = next(self.numbers), None
        if self.flavour.text is not None:
            text = fit_text(flat, self.flavour.text)
        if text is None:
            text = sample_string(flat, n, self.rng, self.suffix)
        if text is None:
            raise Unsatisfiable(f"no string for pattern {str(flat.get('pattern'))[:100]!r}")
        return text


_IMPLIED = {
    "object": ("properties", "additionalProperties", "required", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "number": ("minimum", "maximum", "multipleOf"),
}


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Mapping) and (
        schema.get("type") == "null" or schema.get("enum") == [None]
    )


def _find_bounds(flat: Mapping[str, Any], step: float) -> tuple[float | None, float | None]:
    lows = [flat[key] for key in ("minimum",) if key in flat]
    highs = [flat[key] for key in ("maximum",) if key in flat]
    if "exclusiveMinimum" in flat:
        lows.append(flat["exclusiveMinimum"] + step)
    if "exclusiveMaximum" in flat:
        highs.append(flat["exclusiveMaximum"] - step)
    if lows and highs and max(lows) > min(highs) and step < 1:
        middle = (max(lows) + min(highs)) / 2
        return middle, middle
    return max(lows, default=None), min(highs, default=None)


def _clamp_value(value: float, low: float | None, high: float | None) -> float:
    if high is not None:
        value = min(value, high)
    return value if low is None else max(value, low)


def _round_to_multiple(value: float, step: float, low: float | None, high: float | None) -> float:
    count = round(value / step)
    if high is not None and count * step > high:
        count = int(high // step)
    if low is not None and count * step < low:
        count = -int(-low // step)
    product = count * step
    return product if isinstance(step, int) else round(product, 9)
