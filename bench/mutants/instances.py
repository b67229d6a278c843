"""Instances of JSON Schemas in several moods, made from a seed by code of our own: nothing here is
shared with the stages' sampler, whose blind spots this must not have.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from typing import Any, Literal

from bench.mutants.shapes import kinds, resolved
from sandbox.schemas import regex

Mood = Literal["minimal", "full", "random", "falsy", "high", "low", "hostile", "many", "single"]
MAX_DEPTH = 7
MAX_VALUES = 600
HOSTILE = (
    "a/b?c=d&e#f%20g+h i",
    "ünï ©ödé 漢字 \U0001f600",
    'He said "no", \\ {x} <y>',
    "  spaces  ",
    "line\nfeed\ttab",
    "MiXeD CaSe",
    "x" * 300,
    "1,2,3",
    "null",
    "all",
    "*",
    "admin",
    "0042",
    "",
)
_FORMATS: Mapping[str, tuple[str, ...]] = {
    "date": ("2020-02-29", "1999-12-31"),
    "date-time": ("2020-02-29T23:59:59Z", "1999-12-31T00:00:00+02:00"),
    "time": ("23:59:59Z",),
    "email": ("Some.One@Example.org",),
    "uuid": ("3f2504e0-4f89-41d3-9a0c-0305e82c3301",),
    "uri": ("https://Example.org/a%20b?c=d#e",),
    "url": ("https://Example.org/a%20b?c=d#e",),
    "hostname": ("a-b.example.org",),
    "ipv4": ("203.0.113.7",),
    "ipv6": ("2001:db8::7",),
}


class Instances:
    """Makes values for schemas that share definitions. No value is promised to be an instance."""

    def __init__(self, defs: Mapping[str, Any], rng: random.Random) -> None:
        self._defs, self._rng = defs, rng
        self._left = 0
        self._word: str | None = None

    def make(self, schema: Any, mood: Mood, word: str | None = None) -> Any:
        """A value; in the hostile mood free texts are `word`, or one of ours by chance."""
        self._left, self._word = MAX_VALUES, word
        return self._value(schema, mood, 0)

    def _value(self, schema: Any, mood: Mood, depth: int) -> Any:
        self._left -= 1
        made = self._chosen(schema, mood)
        if "const" in made:
            return made["const"]
        if made.get("enum"):
            return self._rng.choice(made["enum"])
        named = sorted(kinds(made)) or ["string"]
        if "null" in named and mood == "falsy":
            return None
        kind = self._rng.choice([name for name in named if name != "null"] or ["null"])
        if kind == "object":
            return self._object(made, mood, depth)
        if kind == "array":
            return self._array(made, mood, depth)
        if kind in ("integer", "number"):
            return self._number(made, mood, kind)
        if kind == "boolean":
            return False if mood in ("falsy", "single") else self._rng.random() < 0.5
        return None if kind == "null" else self._string(made, mood)

    def _chosen(self, schema: Any, mood: Mood) -> Mapping[str, Any]:
        """One branch of the schema, by chance where that matters."""
        for key in ("anyOf", "oneOf"):
            if isinstance(schema, Mapping) and schema.get(key) and mood in ("random", "hostile"):
                branch = self._rng.choice(schema[key])
                rest = {k: v for k, v in schema.items() if k != key}
                return resolved({**rest, "allOf": [*schema.get("allOf", ()), branch]}, self._defs)
        return resolved(schema, self._defs)

    def _object(self, made: Mapping[str, Any], mood: Mood, depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = made.get("properties") or {}
        needed = list(made.get("required") or ())
        out = {name: self._value(properties.get(name, {}), mood, depth + 1) for name in needed}
        optional = [name for name in properties if name not in out]
        self._rng.shuffle(optional)
        for name in optional:
            if depth >= MAX_DEPTH or self._left < 0 or mood == "minimal":
                break
            if mood != "random" or self._rng.random() < 0.6:
                out[name] = self._value(properties[name], mood, depth + 1)
        extra = made.get("additionalProperties")
        if isinstance(extra, Mapping) and mood not in ("minimal", "falsy") and depth < MAX_DEPTH:
            out["Key one"] = self._value(extra, mood, depth + 1)
        return out

    def _array(self, made: Mapping[str, Any], mood: Mood, depth: int) -> list[Any]:
        least, most = int(made.get("minItems") or 0), int(made.get("maxItems", 1_000))
        usual = {"minimal": 0, "falsy": 0, "low": 1, "many": 12, "full": 2, "single": 1}
        wanted = usual.get(mood, 3)
        if depth >= MAX_DEPTH or self._left < 0:
            wanted = 0
        count = min(max(least, wanted), most, 50)
        return [self._value(made.get("items", {}), mood, depth + 1) for _ in range(count)]

    def _number(self, made: Mapping[str, Any], mood: Mood, kind: str) -> int | float:
        low = made.get("minimum", made.get("exclusiveMinimum"))
        high = made.get("maximum", made.get("exclusiveMaximum"))
        usual: dict[str, float] = {"falsy": 0, "single": 0, "low": -(2**53) - 1, "high": 2**53 + 1}
        value: float = usual.get(mood, self._rng.randrange(1, 5_000))
        if kind == "number":
            value = value if mood in usual else value + self._rng.choice((0.0, 0.5, 0.125))
        if made.get("format") == "int32":
            value = max(-(2**31), min(2**31 - 1, value))
        if isinstance(high, int | float):
            value = min(value, high - (high == made.get("exclusiveMaximum")))
        if isinstance(low, int | float):
            value = max(value, low + (low == made.get("exclusiveMinimum")))
        step = made.get("multipleOf")
        if isinstance(step, int | float) and step > 0:
            value = int(value // step) * step
        return int(value) if kind == "integer" else value

    def _string(self, made: Mapping[str, Any], mood: Mood) -> str:
        least, most = int(made.get("minLength") or 0), int(made.get("maxLength", 10_000))
        known = [v for v in (made.get("default"), made.get("example")) if isinstance(v, str)]
        if isinstance(made.get("pattern"), str):
            parsed = regex.parse_pattern(made["pattern"])
            if parsed is not None:
                return parsed.sample_text(self._rng, 12)
            return self._rng.choice([*known, "abc"])
        if made.get("contentEncoding") == "base64" or made.get("format") in ("byte", "binary"):
            data = bytes(range(200, 256)) * (1 if mood == "minimal" else 3)
            return base64.b64encode(data).decode() if mood != "falsy" else ""
        given = _FORMATS.get(str(made.get("format")))
        if given:
            return self._rng.choice(given)
        text = "" if mood in ("falsy", "low", "single") else f"Text{self._rng.randrange(10_000)}"
        if mood in ("hostile", "random"):
            text = self._rng.choice([*HOSTILE, *known]) if self._word is None else self._word
        elif mood == "high":
            text = "Long " * 60
        return text[:most].ljust(least, "y")
