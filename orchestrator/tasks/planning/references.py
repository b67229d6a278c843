"""References to results of earlier steps inside a step's arguments, resolved within bounds.

A reference is `{"$ref": "s1", "path": "$.zones[0].id"}`; `orchestrator.results.jsonpaths` says
which paths are followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.results.jsonpaths import is_singular, parse_path, select_values
from orchestrator.tasks.model import PATH, REF
from sandbox import exactjson
from sandbox.schemas.keywords import declared_types

MAX_REFERENCES = 50
MAX_VALUES = 1_000
MAX_EACH = 50
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_BYTES = 256 * 1024

ReferenceCode = Literal[
    "malformed",
    "bad_path",
    "unbounded_path",
    "unknown_step",
    "no_value",
    "several_values",
    "too_many",
    "too_large",
    "too_deep",
]


@dataclass(frozen=True)
class StepReferenceProblem:
    """What is wrong with a reference. `where` is a JSON pointer into the arguments, `step` and
    `path` are the reference's own.
    """

    where: str
    code: ReferenceCode
    step: str = ""
    path: str = ""


@dataclass(frozen=True)
class StepReference:
    """A reference and where it stands in the arguments, as a JSON pointer."""

    where: str
    step: str
    path: str


@dataclass(frozen=True)
class Resolution:
    """Arguments with values in the place of references; `steps` are those that values came from, by
    the argument. With `problems` the arguments are as they were.
    """

    arguments: Mapping[str, Any]
    problems: tuple[StepReferenceProblem, ...] = ()
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def find_references(arguments: Mapping[str, Any]) -> tuple[StepReference, ...]:
    """The references in arguments, in their order; malformed ones are left out."""
    return tuple(
        StepReference(where, value[REF], value.get(PATH, "$"))
        for where, value in _iterate_references(arguments)
        if _check_form(where, value) is None
    )


def check_references(
    arguments: Mapping[str, Any], steps: frozenset[str]
) -> tuple[StepReferenceProblem, ...]:
    """What is wrong with the references of arguments, before there are results. `steps` are those
    whose results there will be.
    """
    problems: list[StepReferenceProblem] = []
    count = 0
    try:
        for where, value in _iterate_references(arguments):
            count += 1
            problem = _check_form(where, value)
            if problem is None and value[REF] not in steps:
                problem = StepReferenceProblem(
                    where, "unknown_step", value[REF], value.get(PATH, "$")
                )
            problems += [problem] if problem is not None else []
            if count > MAX_REFERENCES:
                return (*problems, StepReferenceProblem(where, "too_many"))
    except _TooDeep as error:
        problems.append(StepReferenceProblem(error.where, "too_deep"))
    return tuple(problems)


def resolve_references(
    arguments: Mapping[str, Any],
    results: Mapping[str, Any],
    input_schema: Mapping[str, Any] | None = None,
) -> Resolution:
    """Put the values of results in the place of references.

    A path of names and indices is one value; any other is a list of values, or the only one of them
    where the input schema takes no list there.
    """
    problems = check_references(arguments, frozenset(results))
    if problems:
        return Resolution(arguments, problems)
    made = _Resolver(results, input_schema or {})
    resolved = {name: made.replace(value, (name,)) for name, value in arguments.items()}
    if not made.problems and len(exactjson.dumps(resolved)) > MAX_BYTES:
        made.problems.append(StepReferenceProblem("", "too_large"))
    if made.problems:
        return Resolution(arguments, tuple(made.problems))
    return Resolution(resolved, steps={k: tuple(v) for k, v in made.steps.items()})


def expand_each(arguments: Mapping[str, Any], results: Mapping[str, Any]) -> tuple[Resolution, ...]:
    """The arguments of one call for each value of the only reference to several; at most 50."""
    problems = check_references(arguments, frozenset(results))
    if problems:
        return (Resolution(arguments, problems),)
    several = [each for each in find_references(arguments) if not is_singular(each.path)]
    if len(several) != 1:
        where = several[1].where if several else ""
        code: ReferenceCode = "too_many" if several else "no_value"
        return (Resolution(arguments, (StepReferenceProblem(where, code),)),)
    (one,) = several
    values = select_values(one.path, results[one.step], MAX_VALUES)
    if len(values) > MAX_EACH:
        problem = StepReferenceProblem(one.where, "too_many", one.step, one.path)
        return (Resolution(arguments, (problem,)),)
    found = []
    for value in values:
        placed = _Resolver(results, {}, {one.where: value})
        made = {name: placed.replace(part, (name,)) for name, part in arguments.items()}
        steps = {k: tuple(v) for k, v in placed.steps.items()}
        bad = tuple(placed.problems)
        found.append(Resolution(arguments if bad else made, bad, {} if bad else steps))
    return tuple(found)


class _TooDeep(Exception):
    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


def _iterate_references(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object with a `$ref`, with its pointer. Raises _TooDeep past the bounds."""
    waiting: list[tuple[str, int, Any]] = [("", 0, arguments)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        where, depth, value = waiting.pop()
        if depth > MAX_DEPTH:
            raise _TooDeep(where)
        if isinstance(value, Mapping):
            if REF in value and depth:
                yield where, value
                continue
            inner = [(f"{where}/{_escape(str(k))}", depth + 1, v) for k, v in value.items()]
        elif isinstance(value, list):
            inner = [(f"{where}/{at}", depth + 1, item) for at, item in enumerate(value)]
        else:
            continue
        waiting += reversed(inner)
    raise _TooDeep("")


def _check_form(where: str, value: Mapping[str, Any]) -> StepReferenceProblem | None:
    step, path = value[REF], value.get(PATH, "$")
    if not isinstance(step, str) or not isinstance(path, str) or value.keys() - {REF, PATH}:
        return StepReferenceProblem(where, "malformed")
    parsed = parse_path(path)
    if not isinstance(parsed, str):
        return None
    return StepReferenceProblem(where, parsed, step[:80], path[:300])


class _Resolver:
    """Replaces references in one step's arguments; `fixed` are values of references by pointer."""

    def __init__(
        self,
        results: Mapping[str, Any],
        schema: Mapping[str, Any],
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        self._results, self._schema, self._fixed = results, schema, fixed or {}
        self.problems: list[StepReferenceProblem] = []
        self.steps: dict[str, list[str]] = {}

    def replace(self, value: Any, place: tuple[str | int, ...]) -> Any:
        if isinstance(value, Mapping):
            if REF in value:
                return self._look_up(value, place)
            return {name: self.replace(part, (*place, name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self.replace(item, (*place, at)) for at, item in enumerate(value)]
        return value

    def _look_up(self, value: Mapping[str, Any], place: tuple[str | int, ...]) -> Any:
        step, path = value[REF], value.get(PATH, "$")
        where = "".join(f"/{_escape(str(part))}" for part in place)
        known = self.steps.setdefault(str(place[0]), [])
        if step not in known:
            known.append(step)
        if where in self._fixed:
            return self._fixed[where]
        found = select_values(path, self._results[step], MAX_VALUES)
        if len(found) > MAX_VALUES:
            self._refuse(where, "too_many", step, path)
        elif is_singular(path):
            if found:
                return found[0]
            self._refuse(where, "no_value", step, path)
        elif self._takes_list(place):
            return found
        elif len(found) == 1:
            return found[0]
        else:
            self._refuse(where, "several_values" if found else "no_value", step, path)
        return None

    def _refuse(self, where: str, code: ReferenceCode, step: str, path: str) -> None:
        self.problems.append(StepReferenceProblem(where, code, step, path))

    def _takes_list(self, place: tuple[str | int, ...]) -> bool:
        """Whether a list may stand at a place, as far as the schema says."""
        schema: Any = self._schema
        for part in place:
            if not isinstance(schema, Mapping):
                return True
            schema = schema.get("items") if isinstance(part, int) else _get_property(schema, part)
        types = declared_types(schema)
        return not types or "array" in types


def _get_property(schema: Mapping[str, Any], name: str) -> Any:
    properties = schema.get("properties")
    return properties.get(name) if isinstance(properties, Mapping) else None


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")[:80]
