"""Widening of response schemas by recorded answers: types and enum values, nothing else.

The widening is applied to the API's spec and the tools are designed from that anew, so that the
tools and the spec cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from forge.compiler.design import design_server
from forge.compiler.render import render_server
from forge.schemas import media
from sandbox.bundle.apispec import Operation, Response, Schema
from sandbox.bundle.model import Bundle
from sandbox.bundle.widening import MAX_TYPES, MAX_VALUES, MAX_WIDENINGS, VALUE, Widening
from sandbox.schemas.validator import get_checker

MAX_DEPTH = 30
MAX_STEPS = 8
_PREFIX = "#/$defs/"
_BODY = "/body"


class WideningRefused(ValueError):
    """An answer cannot be accepted by widening; a person or an author has to look at it."""


def widen_for_answer(bundle: Bundle, tool: str, answer: Any) -> Bundle:
    """Return the bundle whose `tool` also accepts `answer`, its structured content.

    Raises NotWidened, and KeyError for a tool that the bundle does not have.
    """
    made = bundle
    for _ in range(MAX_STEPS):
        problem = get_checker(made.get_tool(tool).output_schema).find_problem(answer)
        if problem is None:
            break
        before, made = made, _widen_one_place(made, tool, problem.where, answer)
        if made.widened == before.widened:
            raise WideningRefused(f"at {problem.where or '/'}: {problem.reason}")
    else:
        raise WideningRefused("its answer differs in too many places from what is documented")
    if made is bundle:
        raise WideningRefused("the recorded answer is what its schema says")
    return made


def _widen_one_place(bundle: Bundle, tool: str, where: str, answer: Any) -> Bundle:
    """Widen the schema at one place."""
    widening = _find_widening(bundle, tool, where, _resolve_pointer(answer, where))
    return apply_widenings(bundle, (*bundle.widened, widening))


def apply_widenings(bundle: Bundle, widenings: Iterable[Widening]) -> Bundle:
    """Apply the widenings whose place still exists in the description; only compiled code can be
    widened, other bundles are returned unchanged.
    """
    kept: list[Widening] = []
    spec = bundle.spec
    if spec is None or bundle.provenance.author != "compiler":
        return bundle
    for one in _merge_widenings(widenings):
        operation = _find_operation(bundle, one.tool)
        after = operation and _widen_operation(operation, spec.schemas, one)
        if operation and after and after != operation:
            spec = replace(
                spec, operations=tuple(after if o.id == after.id else o for o in spec.operations)
            )
            bundle = replace(bundle, spec=spec)
        if operation and after:
            kept.append(one)
    if not kept:
        return bundle
    server = design_server(spec, bundle.name)
    return replace(
        bundle,
        source_code=render_server(server),
        tools=tuple(tool.definition for tool in server.tools),
        spec=spec,
        widened=tuple(kept),
    )


def _find_widening(bundle: Bundle, tool: str, where: str, value: Any) -> Widening:
    """Return the widening that a value at a place needs. Raises NotWidened."""
    definition = bundle.get_tool(tool)
    if bundle.provenance.author != "compiler" or _find_operation(bundle, tool) is None:
        raise WideningRefused("its schemas were written by hand, or belong to no API's description")
    if not where.startswith(_BODY):
        raise WideningRefused("it is not about the answer's body")
    node, pattern = _locate_schema(definition.output_schema, where)
    kind = _get_json_type(value)
    if kind is None:
        raise WideningRefused("a list or an object came where none is documented")
    if not isinstance(node, Mapping):
        raise WideningRefused("nothing is documented there")
    text = value if isinstance(value, str) else ""
    types = () if _accepts_type(node, kind) else (kind,)
    values = (text,) if text and _has_enumeration(node) and not types else ()
    if values and not VALUE.match(text):
        raise WideningRefused("a value came that is not documented and is no plain word")
    if not types and not values:
        raise WideningRefused("more than a type or an enumerated value differs there")
    return Widening(tool, pattern, types, values)


def _merge_widenings(widenings: Iterable[Widening]) -> list[Widening]:
    """Merge widenings to one per place. Raises NotWidened where there are too many."""
    places: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for one in widenings:
        types, values = places.setdefault((one.tool, one.where), ({}, {}))
        types.update(dict.fromkeys(one.types))
        values.update(dict.fromkeys(one.values))
    too_many = any(len(t) > MAX_TYPES or len(v) > MAX_VALUES for t, v in places.values())
    if too_many or len(places) > MAX_WIDENINGS:
        raise WideningRefused("its answers differ in too many ways from what is documented")
    return [Widening(*place, tuple(t), tuple(v)) for place, (t, v) in places.items()]


def _find_operation(bundle: Bundle, tool: str) -> Operation | None:
    called = next((t.operation for t in bundle.tools if t.name == tool), "")
    operations = bundle.spec.operations if bundle.spec else ()
    return next((o for o in operations if called and o.id == called), None)


def _widen_operation(
    operation: Operation, schemas: Mapping[str, Schema], one: Widening
) -> Operation | None:
    """Return the operation with its JSON responses widened; None where none has such a place."""
    tokens = _split_pointer(one.where.removeprefix(_BODY))
    found = False
    responses: list[Response] = []
    for response in operation.responses:
        content = []
        for each in response.content if response.status.startswith("2") else ():
            after = None
            if media.is_json(each.type) or media.strip_parameters(each.type) == "*/*":
                after = _widen_place(each.schema, schemas, tokens, one)
            found |= after is not None
            content.append(each if after is None else replace(each, schema=after))
        responses.append(replace(response, content=tuple(content) or response.content))
    return replace(operation, responses=tuple(responses)) if found else None


def _widen_place(
    schema: Any, defs: Mapping[str, Schema], tokens: tuple[str, ...], one: Widening, depth: int = 0
) -> dict[str, Any] | None:
    """Return the schema with the place at `tokens` widened; None where there is no such place.

    References on the way to it are written out, so other references to the same definitions keep
    them unchanged.
    """
    schema = _resolve_reference(schema, defs, depth)
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    if not tokens:
        return _widen_schema(schema, defs, one)
    made = dict(schema)
    branched = False
    for key in ("allOf", "anyOf", "oneOf"):
        branches = [
            _widen_place(branch, defs, tokens, one, depth + 1) for branch in made.get(key, ())
        ]
        if any(branch is not None for branch in branches):
            pairs = zip(branches, made[key], strict=True)
            made[key] = [old if new is None else new for new, old in pairs]
            branched = True
    holder, name = _find_child(made, tokens[0])
    if holder is None:
        return made if branched else None
    part = made[holder] if name is None else made[holder][name]
    after = _widen_place(part, defs, tokens[1:], one, depth + 1)
    if after is None:
        return made if branched else None
    made[holder] = after if name is None else {**made[holder], name: after}
    return made


def _widen_schema(
    schema: Mapping[str, Any], defs: Mapping[str, Schema], one: Widening
) -> dict[str, Any]:
    """Add the types and values that the schema does not accept already."""
    made = dict(schema)
    if "allOf" in made:
        parts = [_resolve_reference(part, defs) for part in made["allOf"]]
        made["allOf"] = [
            _widen_schema(part, defs, one) if isinstance(part, Mapping) else part for part in parts
        ]
    if "const" in made and one.values:
        made["enum"] = [made.pop("const")]
    if "enum" in made:
        made["enum"] = [*made["enum"], *(v for v in one.values if v not in made["enum"])]
    missing = [kind for kind in one.types if not _accepts_type(made, kind)]
    if not missing:
        return made
    for key in ("anyOf", "oneOf"):
        if key in made and "type" not in made:
            return {**made, key: [*made[key], {"type": missing}]}
    if _has_enumeration(made):
        return {"anyOf": [made, {"type": missing}]}
    types = made["type"]
    made["type"] = [*([types] if isinstance(types, str) else types), *missing]
    return made


def _locate_schema(schema: Mapping[str, Any], where: str) -> tuple[Any, str]:
    """Return the schema at a place of an answer, and the place with `*` for a list's items."""
    defs = schema.get("$defs", {})
    node: Any = schema
    pattern = ""
    for token in _split_pointer(where):
        node = _resolve_reference(node, defs)
        holder, name = _find_child(node, token) if isinstance(node, Mapping) else (None, None)
        if holder is None:
            node = _find_in_branches(node, token, defs)
        else:
            node = node[holder] if name is None else node[holder][name]
        pattern += (
            "/*" if holder in ("items", "additionalProperties") else f"/{_escape_token(token)}"
        )
    return _resolve_reference(node, defs), pattern


def _find_in_branches(node: Any, token: str, defs: Mapping[str, Any]) -> Any:
    """Return the schema that the first branch of a composed schema gives a property."""
    for key in ("allOf", "anyOf", "oneOf"):
        for branch in node.get(key, ()) if isinstance(node, Mapping) else ():
            branch = _resolve_reference(branch, defs)
            holder, name = (
                _find_child(branch, token) if isinstance(branch, Mapping) else (None, None)
            )
            if holder is not None:
                return branch[holder] if name is None else branch[holder][name]
    return None


def _find_child(schema: Mapping[str, Any], token: str) -> tuple[str | None, str | None]:
    """Return where a schema describes a token: the keyword, and the name below it."""
    if token in schema.get("properties", {}):
        return "properties", token
    if isinstance(schema.get("items"), Mapping) and (token == "*" or token.isdigit()):
        return "items", None
    if isinstance(schema.get("additionalProperties"), Mapping):
        return "additionalProperties", None
    return None, None


def _resolve_reference(schema: Any, defs: Mapping[str, Any], depth: int = 0) -> Any:
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith(_PREFIX):
            return schema
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = defs.get(reference.removeprefix(_PREFIX))
        schema = {**target, **rest} if isinstance(target, Mapping) else target
    return None


def _accepts_type(node: Mapping[str, Any], kind: str) -> bool:
    """Whether a schema accepts values of a type; an enumeration of strings counts as accepting
    strings.
    """
    types = node.get("type")
    if types is None:
        branches = [*node.get("anyOf", ()), *node.get("oneOf", ())]
        if branches:
            return any(isinstance(b, Mapping) and _accepts_type(b, kind) for b in branches)
        return not _has_enumeration(node) or kind == "string"
    known = {types} if isinstance(types, str) else set(types)
    return kind in known or (kind == "integer" and "number" in known)


def _has_enumeration(node: Mapping[str, Any]) -> bool:
    return "enum" in node or "const" in node


def _get_json_type(value: Any) -> str | None:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return kinds.get(type(value))


def _resolve_pointer(answer: Any, where: str) -> Any:
    """Return the value at a JSON pointer. Raises NotWidened."""
    for token in _split_pointer(where):
        try:
            answer = answer[int(token)] if isinstance(answer, list) else answer[token]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise WideningRefused(f"the recorded answer has nothing at {where[:100]}") from error
    return answer


def _split_pointer(pointer: str) -> tuple[str, ...]:
    """Split a JSON pointer to its unescaped tokens (RFC 6901 section 4)."""
    parts = pointer.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _escape_token(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
