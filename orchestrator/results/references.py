"""References to kept results in a call's arguments: `{"$ref": "r1", "path": "$.items[3].id"}`.

They are resolved once, before gate, rules and digest: what a person is shown is what is sent. What
a value itself holds is never read as a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.calls import split_tool_name
from orchestrator.errors import UnknownTool
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.gateway.composition import MAX_DEPTH
from orchestrator.results.paths import PathProblem, find_value
from orchestrator.results.shape import measure_json
from registry.errors import RowNotFound
from registry.sessions.kept_results import HANDLE, KeptResult, MissingResult, ResultSource
from sandbox.bundle.permissions import parse_permissions
from sandbox.errors import BundleInvalid

REF, PATH = "$ref", "path"
MAX_REFERENCES = 50
MAX_LEVELS = 64
MAX_RESOLVED = 1 << 20
ANYWHERE = "anywhere"
"""The place of a server that may talk to all: one that runs without a cage."""

Find = Callable[[str], KeptResult | MissingResult]


@dataclass(frozen=True)
class ResultReference:
    """A reference, and where it stands in the arguments as a JSON pointer."""

    handle: str
    path: str
    where: str


@dataclass(frozen=True)
class ResultReferenceProblem:
    """Why a reference in the arguments stands for no value, in words."""

    where: str
    reason: str


@dataclass(frozen=True)
class Flow:
    """A value of one server's result that goes into a call of another server, which may talk to
    `places` that the first may not.
    """

    where: str
    source: str
    handle: str
    target: str
    places: tuple[str, ...]

    def __str__(self) -> str:
        told = ", ".join(place.partition(":")[2] or place for place in self.places[:5])
        return (
            f"{self.where} is taken from an answer of {self.source} ({self.handle}) and "
            f"{self.target} may send it to {told}"
        )


@dataclass(frozen=True)
class ResolvedArguments:
    """Arguments without references. `used` are the results that values were taken of, with the
    paths; `at` is where in the arguments each went.
    """

    arguments: Mapping[str, Any]
    used: tuple[tuple[KeptResult, str], ...] = ()
    at: tuple[str, ...] = ()
    problems: tuple[ResultReferenceProblem, ...] = field(default=())


def list_taken_sources(
    resolved: ResolvedArguments,
) -> dict[str, tuple[ResultSource, ...]]:
    """The sources of the results that values were taken of, by the argument that they went into."""
    taken: dict[str, tuple[ResultSource, ...]] = {}
    for (result, _), where in zip(resolved.used, resolved.at, strict=True):
        name = where.split("/")[1].replace("~1", "/").replace("~0", "~")
        taken[name] = merge_sources(taken.get(name, ()), result.sources)
    return taken


def find_new_places(source: ResultSource, places: frozenset[str]) -> tuple[str, ...]:
    """The places to which a value of the source's answers would get for the first time, where it
    goes to a server that may talk to these `places`.
    """
    return tuple(sorted(places - (source.places - {ANYWHERE}))) if source.places else ()


def has_references(arguments: Mapping[str, Any]) -> bool:
    """Whether a reference stands in a call's arguments."""
    return next(_iterate_references(arguments, "", MAX_LEVELS), None) is not None


def resolve_arguments(arguments: Mapping[str, Any], find: Find) -> ResolvedArguments:
    """The arguments with the values that their references stand for. Problems accumulate.

    What only looks like a reference, such as `{"$ref": "#/definitions/x"}`, is left as it is.
    """
    found = tuple(_iterate_references(arguments, "", MAX_LEVELS))
    if not found:
        return ResolvedArguments(arguments)
    if len(found) > MAX_REFERENCES:
        told = f"at most {MAX_REFERENCES} references can be in a call's arguments"
        return ResolvedArguments(arguments, problems=(ResultReferenceProblem("/", told),))
    if not found[0].where:
        told = "a reference stands for the value of an argument, not for all arguments"
        return ResolvedArguments(arguments, problems=(ResultReferenceProblem("/", told),))
    values: dict[str, Any] = {}
    room = MAX_RESOLVED
    used, problems, looked = [], [], {handle: find(handle) for handle in {f.handle for f in found}}
    for reference in found:
        result = looked[reference.handle]
        value = (
            PathProblem(describe_missing(result))
            if isinstance(result, MissingResult)
            else find_value(result.value, reference.path)
        )
        room -= 0 if isinstance(value, PathProblem) else measure_json(value)
        if room < 0:
            told = f"a call's references stand for at most {MAX_RESOLVED:,} bytes of JSON"
            return ResolvedArguments(
                arguments, problems=(ResultReferenceProblem(reference.where, told),)
            )
        if isinstance(value, PathProblem):
            problems.append(ResultReferenceProblem(reference.where, value.reason))
        elif isinstance(result, KeptResult):
            values[reference.where] = value
            used.append((result, reference.path))
    if problems:
        return ResolvedArguments(arguments, problems=tuple(problems))
    made = _replace_references(arguments, "", values, MAX_LEVELS)
    return ResolvedArguments(made, tuple(used), tuple(f.where for f in found))


def describe_missing(missing: MissingResult) -> str:
    """Why a handle names nothing, and what to do, in words."""
    again = f"call {missing.tool} again" if missing.tool else "call the tool again"
    if missing.reason == "expired":
        return f"{missing.handle} has expired; {again}"
    if missing.reason == "dropped":
        return f"{missing.handle} was dropped to make room; {again}"
    return (
        f"there is no {missing.handle[:20]} in this session; give the `session` in which it was "
        "answered, or call the tool again"
    )


def find_flows(used: ResolvedArguments, target: str, places: frozenset[str]) -> tuple[Flow, ...]:
    """The values that would go from one server's answer to places that this server cannot reach by
    itself. Pure; `target` is the called server, `places` what it may talk to.
    """
    return tuple(
        Flow(where, source.server, result.handle, target, beyond)
        for (result, _), where in zip(used.used, used.at, strict=True)
        for source in result.sources
        if (beyond := find_new_places(source, places))
    )


def find_places(
    server: str, get: Callable[[str], RegisteredServer], *, reading: bool = False
) -> frozenset[str]:
    """The places that a server may take a value to, and those of the servers that it calls, as
    permissions; files that it may write are places as well. With `reading` those too that it can
    only read from.
    """
    return frozenset(_iterate_places(server, get, reading, MAX_DEPTH))


def merge_sources(*groups: Iterable[ResultSource]) -> tuple[ResultSource, ...]:
    """Each server once, with all places that were told of it."""
    merged: dict[str, frozenset[str]] = {}
    for source in (each for group in groups for each in group):
        merged[source.server] = merged.get(source.server, frozenset()) | source.places
    return tuple(ResultSource(server, places) for server, places in merged.items())


def _iterate_places(
    server: str, get: Callable[[str], RegisteredServer], reading: bool, depth: int
) -> Iterator[str]:
    try:
        bundle = get(server).bundle
    except (UnknownTool, RowNotFound, BundleInvalid):
        if reading:
            # Nobody can say any more where its data is from.
            yield ANYWHERE
        return
    if bundle.launch is not None and bundle.launch.way == "process":
        yield ANYWHERE
    for permission in parse_permissions(bundle.permissions):
        if permission.kind == "call":
            called = split_tool_name(permission.name)
            if called and depth:
                yield from _iterate_places(called[0], get, reading, depth - 1)
        elif reading or permission.kind not in ("env", "fs") or permission.writable:
            yield str(permission)


def _iterate_references(value: Any, where: str, levels: int) -> Iterator[ResultReference]:
    if levels == 0:
        return
    if isinstance(value, Mapping):
        reference = _read_reference(value, where)
        if reference is not None:
            yield reference
            return
        for key, inner in value.items():
            yield from _iterate_references(inner, f"{where}/{_escape(key)}", levels - 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _iterate_references(inner, f"{where}/{number}", levels - 1)


def _read_reference(value: Mapping[str, Any], where: str) -> ResultReference | None:
    handle, path = value.get(REF), value.get(PATH, "$")
    if not isinstance(handle, str) or HANDLE.match(handle) is None or not isinstance(path, str):
        return None
    return ResultReference(handle, path, where) if value.keys() <= {REF, PATH} else None


def _replace_references(value: Any, where: str, values: Mapping[str, Any], levels: int) -> Any:
    if where in values:
        return values[where]
    if levels == 0:
        return value
    if isinstance(value, Mapping):
        return {
            key: _replace_references(inner, f"{where}/{_escape(key)}", values, levels - 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _replace_references(inner, f"{where}/{number}", values, levels - 1)
            for number, inner in enumerate(value)
        ]
    return value


def _escape(key: str) -> str:
    """A key as a JSON pointer writes it (RFC 6901)."""
    return str(key).replace("~", "~0").replace("/", "~1")
