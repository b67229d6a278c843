"""Binding a step's parameters to fields of earlier results, where name and type agree plainly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.tasks.model import PATH, REF, Plan, Step
from registry.search.words import split_words
from sandbox.schemas.keywords import declared_types

MAX_DEPTH = 5
MAX_FIELDS = 500


@dataclass(frozen=True)
class ResultField:
    """A scalar field of a result: the names on the way to it, None for the items of a list."""

    names: tuple[str | None, ...]
    types: frozenset[str]

    @property
    def lists(self) -> int:
        """How many lists are on the way."""
        return self.names.count(None)

    @property
    def label(self) -> tuple[str, ...]:
        """The words of the field's own name."""
        return tuple(split_words(str(self.names[-1])))

    @property
    def owner(self) -> tuple[str, ...]:
        """The words of what the field is a field of, in the singular."""
        named = [name for name in self.names[:-1] if name is not None]
        words = split_words(named[-1]) if named else []
        return (*words[:-1], to_singular(words[-1])) if words else ()

    def build_path(self, pick: str) -> str:
        """Its JSONPath (RFC 9535), `pick` in the place of a list's items."""
        parts = (f"[{pick}]" if name is None else f"[{_quote(name)}]" for name in self.names)
        return "$" + "".join(parts)


def bind_steps(
    plan: Plan,
    output_schemas: Mapping[str, Mapping[str, Any]],
    input_schemas: Mapping[str, Mapping[str, Any]],
    nouns: Mapping[str, tuple[str, ...]] = {},
) -> Plan:
    """The plan with references in the place of required arguments that nobody gave, each where just
    one field of one earlier result agrees with the parameter by name and type. Schemas are by step,
    and so are `nouns`: what the tools of the steps list, by their names.
    """
    steps = [
        _bind_step(step, plan, output_schemas, input_schemas.get(step.id, {}), nouns)
        for step in plan.steps
    ]
    bound = any(a is not b for a, b in zip(steps, plan.steps, strict=True))
    return replace(plan, steps=tuple(steps), strategy="composed") if bound else plan


def _bind_step(
    step: Step,
    plan: Plan,
    output_schemas: Mapping[str, Mapping[str, Any]],
    input_schema: Mapping[str, Any],
    nouns: Mapping[str, tuple[str, ...]],
) -> Step:
    properties = input_schema.get("properties")
    if not step.after or not isinstance(properties, Mapping):
        return step
    fields = {
        name: tuple(list_result_fields(output_schemas[name]))
        for name in step.after
        if name in output_schemas
    }
    about = {each.id: {*map(to_singular, split_words(each.task))} for each in plan.steps}
    made: dict[str, Any] = {}
    for name in input_schema.get("required", ()):
        if name in step.arguments or not isinstance(properties.get(name), Mapping):
            continue
        found = [
            {REF: earlier, PATH: path}
            for earlier, listed in fields.items()
            for path in _find_paths(
                name, properties[name], listed, step, about[earlier], nouns.get(earlier, ())
            )
        ]
        if len(found) == 1:
            made[name] = found[0]
    return replace(step, arguments={**step.arguments, **made}) if made else step


def _find_paths(
    name: str,
    schema: Mapping[str, Any],
    fields: Sequence[ResultField],
    step: Step,
    about: Set[str],
    noun: tuple[str, ...],
) -> list[str]:
    words, types = tuple(split_words(name)), declared_types(schema)
    wants_list = types == {"array"}
    if wants_list:
        types = declared_types(schema.get("items"))
        words = (*words[:-1], to_singular(words[-1])) if words else words
    agreeing = [
        each
        for each in fields
        if agrees_by_type(types, each.types)
        and (_agrees_by_name(words, each, step.uses, about) or _is_own_id(words, each, noun))
    ]
    exact = [each for each in agreeing if (*each.owner, *each.label) == words]
    paths = [_choose_path(each, step.pick, wants_list) for each in exact or agreeing]
    return [path for path in paths if path]


def _choose_path(field: ResultField, pick: str, wants_list: bool) -> str:
    """The path of a field; "" where it is not plain which item of a list is meant."""
    if field.lists == 0:
        return "" if wants_list else field.build_path("")
    if field.lists > 1:
        return ""
    if wants_list:
        return "" if pick else field.build_path("*")
    return field.build_path("*" if pick == "each" else pick) if pick else ""


def agrees_by_type(wanted: frozenset[str], given: frozenset[str]) -> bool:
    given = given - {"null"}
    wide = wanted | ({"integer"} if "number" in wanted else set())
    return bool(given) and given <= wide


def _is_own_id(words: tuple[str, ...], field: ResultField, noun: tuple[str, ...]) -> bool:
    """Whether a field is the `id` of what a tool lists, where nothing but the tool's name says what
    that is: `talk_id` is the `id` of the rows of `list_talks`.
    """
    nameless = not field.owner or (len(field.names) == 3 and field.owner[-1] in _ENVELOPES)
    return nameless and field.label == ("id",) and field.lists == 1 and words == (*noun, "id")


_ENVELOPES = frozenset("content data entry item object record result row value".split())
"""Names of what only holds a list, in the singular."""


def _agrees_by_name(words: tuple[str, ...], field: ResultField, uses: str, about: Set[str]) -> bool:
    """`zone_id` is `id` of a zone or `zone_id`; `id` is `id`; `zone` is the name of a zone where
    the task says that its name is used. `about` are the words of the step that the result is of:
    they say what a result without a name of its own is.
    """
    if words in (field.label, (*field.owner, *field.label)):
        return True
    used = tuple(split_words(uses))
    singular = (*used[:-1], to_singular(used[-1])) if used else ()
    if not used or field.label not in (used, singular):
        return False
    if field.owner:
        return words == field.owner
    size = len(field.label)
    rest = words[:-size] if words[-size:] == field.label else words
    return bool(rest) and {*rest} <= about


def list_result_fields(schema: Mapping[str, Any]) -> Iterator[ResultField]:
    """The scalar fields of a result, breadth first, at most 500 places of its schema looked at."""
    waiting: list[tuple[tuple[str | None, ...], Any]] = [((), schema)]
    for _ in range(MAX_FIELDS):
        if not waiting:
            return
        names, part = waiting.pop(0)
        part = _follow(part, schema)
        if not isinstance(part, Mapping):
            continue
        types = declared_types(part)
        if names and names[-1] is not None and types and not types & {"object", "array"}:
            yield ResultField(names, types)
        if len(names) >= MAX_DEPTH:
            continue
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            waiting += [((*names, str(name)), inner) for name, inner in properties.items()]
        if "array" in types and isinstance(part.get("items"), Mapping):
            waiting.append(((*names, None), part["items"]))


def _follow(part: Any, root: Mapping[str, Any]) -> Any:
    for _ in range(16):
        if not isinstance(part, Mapping) or "$ref" not in part:
            return part
        name = str(part["$ref"]).removeprefix("#/$defs/")
        part = root.get("$defs", {}).get(name.replace("~1", "/").replace("~0", "~"))
    return None


def to_singular(word: str) -> str:
    """An English noun in the singular, by its ending."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
