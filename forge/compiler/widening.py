"""An answer schema made wider by what was really answered: types and enum values, nothing else.

The widening is written into the API's spec and the tools are designed from that anew, so that what
a tool says and what its document is taken to say stay one thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from forge import media
from forge.design import design
from forge.render import render
from sandbox.apispec import Operation, Response, Schema
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.validation import checker
from sandbox.widening import MAX_TYPES, MAX_VALUES, MAX_WIDENINGS, VALUE, Widening

MAX_DEPTH = 30
MAX_STEPS = 8
_PREFIX = "#/$defs/"
_BODY = "/body"


class NotWidened(ValueError):
    """Why an answer is not taken: a person or an author has to look at it."""


def widened(bundle: Bundle, tool: str, answer: Any) -> Bundle:
    """The bundle whose `tool` also takes what `answer`, its structured content, holds.

    Raises NotWidened, and KeyError for a tool that it has not.
    """
    made = bundle
    for _ in range(MAX_STEPS):
        problem = checker(made.tool(tool).output_schema).problem(answer)
        if problem is None:
            break
        before, made = made, _step(made, tool, problem.where, answer)
        if made.widened == before.widened:
            raise NotWidened(f"at {problem.where or '/'}: {problem.reason}")
    else:
        raise NotWidened("its answer differs in too many places from what is documented")
    if made is bundle:
        raise NotWidened("the recorded answer is what its schema says")
    return made


def _step(bundle: Bundle, tool: str, where: str, answer: Any) -> Bundle:
    """The bundle with one place widened."""
    widening = _widening(bundle, tool, where, _at(answer, where))
    return with_widenings(bundle, (*bundle.widened, widening))


def with_widenings(bundle: Bundle, widenings: Iterable[Widening]) -> Bundle:
    """The bundle with those widenings that its description still has a place for, which is compiled
    code's alone.
    """
    kept: list[Widening] = []
    spec = bundle.spec
    if spec is None or bundle.provenance.author != "compiler":
        return bundle
    for one in _merged(widenings):
        operation = _operation(bundle, one.tool)
        after = operation and _widened_operation(operation, spec.schemas, one)
        if operation and after and after != operation:
            spec = replace(
                spec, operations=tuple(after if o.id == after.id else o for o in spec.operations)
            )
            bundle = replace(bundle, spec=spec)
        if operation and after:
            kept.append(one)
    if not kept:
        return bundle
    server = design(spec, bundle.name)
    return replace(
        bundle,
        source_code=render(server),
        tools=tuple(tool.definition for tool in server.tools),
        spec=spec,
        widened=tuple(kept),
    )


def _widening(bundle: Bundle, tool: str, where: str, value: Any) -> Widening:
    """What has to be added for a value. Raises NotWidened."""
    definition = bundle.tool(tool)
    if bundle.provenance.author != "compiler" or _operation(bundle, tool) is None:
        raise NotWidened("its schemas were written by hand, or belong to no API's description")
    if not where.startswith(_BODY):
        raise NotWidened("it is not about the answer's body")
    node, pattern = _found(definition.output_schema, where)
    kind = _type_of(value)
    if kind is None:
        raise NotWidened("a list or an object came where none is documented")
    if not isinstance(node, Mapping):
        raise NotWidened("nothing is documented there")
    text = value if isinstance(value, str) else ""
    types = () if _takes_type(node, kind) else (kind,)
    values = (text,) if text and _enumerates(node) and not types else ()
    if values and not VALUE.match(text):
        raise NotWidened("a value came that is not documented and is no plain word")
    if not types and not values:
        raise NotWidened("more than a type or an enumerated value differs there")
    return Widening(tool, pattern, types, values)


def _merged(widenings: Iterable[Widening]) -> list[Widening]:
    """One widening for each place. Raises NotWidened where that is too much."""
    places: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for one in widenings:
        types, values = places.setdefault((one.tool, one.where), ({}, {}))
        types.update(dict.fromkeys(one.types))
        values.update(dict.fromkeys(one.values))
    too_many = any(len(t) > MAX_TYPES or len(v) > MAX_VALUES for t, v in places.values())
    if too_many or len(places) > MAX_WIDENINGS:
        raise NotWidened("its answers differ in too many ways from what is documented")
    return [Widening(*place, tuple(t), tuple(v)) for place, (t, v) in places.items()]


def _operation(bundle: Bundle, tool: str) -> Operation | None:
    called = next((t.operation for t in bundle.tools if t.name == tool), "")
    operations = bundle.spec.operations if bundle.spec else ()
    return next((o for o in operations if called and o.id == called), None)


def _widened_operation(
    operation: Operation, schemas: Mapping[str, Schema], one: Widening
) -> Operation | None:
    """The operation with its JSON answers widened; None where none has such a place."""
    tokens = _tokens(one.where.removeprefix(_BODY))
    found = False
    responses: list[Response] = []
    for response in operation.responses:
        content = []
        for each in response.content if response.status.startswith("2") else ():
            after = None
            if media.is_json(each.type) or media.bare(each.type) == "*/*":
                after = _rewritten(each.schema, schemas, tokens, one)
            found |= after is not None
            content.append(each if after is None else replace(each, schema=after))
        responses.append(replace(response, content=tuple(content) or response.content))
    return replace(operation, responses=tuple(responses)) if found else None


def _rewritten(
    schema: Any, defs: Mapping[str, Schema], tokens: tuple[str, ...], one: Widening, depth: int = 0
) -> dict[str, Any] | None:
    """The schema with the place at `tokens` widened, references on the way to it written out; None
    where there is no such place. What else refers to the same definitions keeps them as they are.
    """
    schema = _resolved(schema, defs, depth)
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    if not tokens:
        return _wider(schema, defs, one)
    made = dict(schema)
    branched = False
    for key in ("allOf", "anyOf", "oneOf"):
        branches = [
            _rewritten(branch, defs, tokens, one, depth + 1) for branch in made.get(key, ())
        ]
        if any(branch is not None for branch in branches):
            pairs = zip(branches, made[key], strict=True)
            made[key] = [old if new is None else new for new, old in pairs]
            branched = True
    holder, name = _child(made, tokens[0])
    if holder is None:
        return made if branched else None
    part = made[holder] if name is None else made[holder][name]
    after = _rewritten(part, defs, tokens[1:], one, depth + 1)
    if after is None:
        return made if branched else None
    made[holder] = after if name is None else {**made[holder], name: after}
    return made


def _wider(schema: Mapping[str, Any], defs: Mapping[str, Schema], one: Widening) -> dict[str, Any]:
    """The schema with the types and values added, where it does not take them already."""
    made = dict(schema)
    if "allOf" in made:
        parts = [_resolved(part, defs) for part in made["allOf"]]
        made["allOf"] = [
            _wider(part, defs, one) if isinstance(part, Mapping) else part for part in parts
        ]
    if "const" in made and one.values:
        made["enum"] = [made.pop("const")]
    if "enum" in made:
        made["enum"] = [*made["enum"], *(v for v in one.values if v not in made["enum"])]
    missing = [kind for kind in one.types if not _takes_type(made, kind)]
    if not missing:
        return made
    for key in ("anyOf", "oneOf"):
        if key in made and "type" not in made:
            return {**made, key: [*made[key], {"type": missing}]}
    if _enumerates(made):
        return {"anyOf": [made, {"type": missing}]}
    types = made["type"]
    made["type"] = [*([types] if isinstance(types, str) else types), *missing]
    return made


def _found(schema: Mapping[str, Any], where: str) -> tuple[Any, str]:
    """The schema at a place of an answer, and the place with `*` for a list's items."""
    defs = schema.get("$defs", {})
    node: Any = schema
    pattern = ""
    for token in _tokens(where):
        node = _resolved(node, defs)
        holder, name = _child(node, token) if isinstance(node, Mapping) else (None, None)
        if holder is None:
            node = _in_branches(node, token, defs)
        else:
            node = node[holder] if name is None else node[holder][name]
        pattern += "/*" if holder in ("items", "additionalProperties") else f"/{_escaped(token)}"
    return _resolved(node, defs), pattern


def _in_branches(node: Any, token: str, defs: Mapping[str, Any]) -> Any:
    """What the first branch of a composed schema says of a property."""
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in node.get(key, ()) if isinstance(node, Mapping) else ():
            branch = _resolved(branch, defs)
            holder, name = _child(branch, token) if isinstance(branch, Mapping) else (None, None)
            if holder is not None:
                return branch[holder] if name is None else branch[holder][name]
    return None


def _child(schema: Mapping[str, Any], token: str) -> tuple[str | None, str | None]:
    """Where a schema says what stands at a token: the keyword, and the name in it."""
    if token in schema.get("properties", {}):
        return "properties", token
    if isinstance(schema.get("items"), Mapping) and (token == "*" or token.isdigit()):
        return "items", None
    if isinstance(schema.get("additionalProperties"), Mapping):
        return "additionalProperties", None
    return None, None


def _resolved(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Any:
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith(_PREFIX):
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = defs.get(reference.removeprefix(_PREFIX))
        schema = {**target, **rest} if isinstance(target, Mapping) else target
    return None


def _takes_type(node: Mapping[str, Any], kind: str) -> bool:
    """Whether a schema takes any value of a type, its enumerations aside for what is enumerated."""
    types = node.get("type")
    if types is None:
        branches = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        if branches:
            return any(isinstance(b, Mapping) and _takes_type(b, kind) for b in branches)
        return not _enumerates(node) or kind == "string"
    known = {types} if isinstance(types, str) else set(types)
    return kind in known or (kind == "integer" and "number" in known)


def _enumerates(node: Mapping[str, Any]) -> bool:
    return "enum" in node or "const" in node


def _type_of(value: Any) -> str | None:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return kinds.get(type(value))


def _at(answer: Any, where: str) -> Any:
    """The value at a JSON pointer. Raises NotWidened."""
    for token in _tokens(where):
        try:
            answer = answer[int(token)] if isinstance(answer, list) else answer[token]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise NotWidened(f"the recorded answer has nothing at {where[:100]}") from error
    return answer


def _tokens(pointer: str) -> tuple[str, ...]:
    """RFC 6901."""
    parts = pointer.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def changed_tools(before: Bundle, after: Bundle) -> tuple[ToolDefinition, ...]:
    """The tools whose definition is another than before."""
    known = {tool.name: tool for tool in before.tools}
    return tuple(tool for tool in after.tools if known.get(tool.name) != tool)
