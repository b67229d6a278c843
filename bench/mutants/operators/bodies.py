"""Operators on the request body."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise

from bench.mutants.mutant import Changed, Operator, operator
from bench.mutants.shapes import ITEM, Spot, spots
from bench.mutants.site import Argument, Site

_OTHER_TYPES: Mapping[str, str] = {
    "json": "text/plain",
    "form": "text/plain",
    "multipart": "application/octet-stream",
    "text": "application/octet-stream",
    "binary": "text/plain",
}


def body_field_lost(site: Site) -> Changed:
    """A field of the body is not sent."""
    yield from _fields(site, 1, 1, "UNSET")


def nested_body_field_lost(site: Site) -> Changed:
    """A field deeper in the body is not sent."""
    yield from _fields(site, 2, 5, "UNSET")


def body_field_null(site: Site) -> Changed:
    """A field of the body is sent as null."""
    yield from _fields(site, 1, 3, "None")


def body_field_renamed(site: Site) -> Changed:
    """A field of the body under another name."""
    for body, spot in _named(site, 1, 3):
        name = spot.path[-1]
        change = (
            f"lambda value: {{(k + 'x' if k == {name!r} else k): v for k, v in value.items()}}"
            " if isinstance(value, dict) else value"
        )
        yield _told(spot), partial(site.prefixed, _edit(body.name, spot.path[:-1], change))


def body_field_added(site: Site) -> Changed:
    """A field in the body that nobody gave."""
    for body, _ in _roots(site):
        change = "lambda value: {**value, 'extra': 1} if isinstance(value, dict) else value"
        yield "extra", partial(site.prefixed, _edit(body.name, (), change))


def swapped_body_fields(site: Site) -> Changed:
    """Two fields of the body with each other's values."""
    for body, root in _roots(site):
        names = [spot.path[0] for spot in spots(root.schema, _defs(site)) if len(spot.path) == 1]
        for first, second in pairwise(names):
            swap = f"{{{first!r}: {second!r}, {second!r}: {first!r}}}"
            change = (
                f"lambda value: {{{swap}.get(k, k): v for k, v in value.items()}}"
                " if isinstance(value, dict) else value"
            )
            yield f"{first}, {second}", partial(site.prefixed, _edit(body.name, (), change))


def body_flattened(site: Site) -> Changed:
    """What an object in the body holds stands beside it in place of inside."""
    for body, spot in _named(site, 1, 1):
        if "object" in spot.kinds:
            name = spot.path[0]
            change = (
                f"lambda value: {{**{{k: v for k, v in value.items() if k != {name!r}}}, "
                f"**value[{name!r}]}} if isinstance(value.get({name!r}), dict) else value"
            )
            yield name, partial(site.prefixed, _edit(body.name, (), change))


def body_wrapped(site: Site) -> Changed:
    """The body inside another object."""
    for body, _ in _roots(site):
        code = f"if {body.name} is not UNSET:\n    {body.name} = {{'data': {body.name}}}"
        yield "data", partial(site.prefixed, code)


def body_dropped(site: Site) -> Changed:
    """The body is not sent."""
    for kind in _kinds(site):
        yield kind, partial(site.asked, partial(_without, kind))


def body_emptied(site: Site) -> Changed:
    """An empty object in place of the body."""
    for body, root in _roots(site):
        if "object" in root.kinds:
            code = f"if {body.name} is not UNSET:\n    {body.name} = {{}}"
            yield body.name, partial(site.prefixed, code)


def empty_body_dropped(site: Site) -> Changed:
    """An empty body is left out."""
    for body in site.arguments("body"):
        code = f"if not {body.name}:\n    {body.name} = UNSET"
        yield body.name, partial(site.prefixed, code)


def empty_parts_dropped(site: Site) -> Changed:
    """Empty lists, objects and strings in the body are left out."""
    for body, _ in _roots(site):
        change = (
            "lambda value: {k: v for k, v in value.items() if v not in ('', [], {})}"
            " if isinstance(value, dict) else value"
        )
        yield body.name, partial(site.prefixed, _edit(body.name, (), change))


def nulls_dropped(site: Site) -> Changed:
    """Fields that are null are left out of the body."""
    for body, _ in _roots(site):
        change = (
            "lambda value: {k: v for k, v in value.items() if v is not None}"
            " if isinstance(value, dict) else value"
        )
        yield body.name, partial(site.prefixed, _edit(body.name, (), change))


def falsy_fields_dropped(site: Site) -> Changed:
    """Fields that are false, zero or empty are left out of the body."""
    for body, _ in _roots(site):
        change = (
            "lambda value: {k: v for k, v in value.items() if v}"
            " if isinstance(value, dict) else value"
        )
        yield body.name, partial(site.prefixed, _edit(body.name, (), change))


def wrong_content_type(site: Site) -> Changed:
    """The body under another media type."""
    for kind in _kinds(site):
        yield kind, partial(site.asked, partial(_typed, _OTHER_TYPES[kind]))


def form_instead_of_json(site: Site) -> Changed:
    """A form in place of JSON."""
    yield from _rewritten(site, "json", "form")


def json_instead_of_form(site: Site) -> Changed:
    """JSON in place of a form."""
    yield from _rewritten(site, "form", "json")


def json_instead_of_multipart(site: Site) -> Changed:
    """JSON in place of multipart."""
    yield from _rewritten(site, "multipart", "json")


def form_instead_of_multipart(site: Site) -> Changed:
    """A form in place of multipart."""
    yield from _rewritten(site, "multipart", "form")


def text_instead_of_bytes(site: Site) -> Changed:
    """The base64 text in place of the bytes that it stands for."""
    yield from _rewritten(site, "binary", "text")


def json_twice(site: Site) -> Changed:
    """JSON inside a JSON string."""
    for body in site.arguments("body"):
        if site.part("json") is not None:
            code = f"if {body.name} is not UNSET:\n    {body.name} = json.dumps({body.name})"
            yield body.name, partial(site.prefixed, code)


def file_wrapper_lost(site: Site) -> Changed:
    """A file or typed part is sent as a plain value."""
    written = site.part("multipart")
    if isinstance(written, ast.Name) and len(site.function.body) > 1:
        statement = site.function.body[-2]
        if isinstance(statement, ast.If):
            yield "optional body", partial(site.rewritten, _unwrapped(site))
    elif isinstance(written, ast.Dict):
        plain = ast.Name(site.arguments("body")[0].name, ast.Load())
        yield "body", partial(site.asked, partial(_replaced, "multipart", plain))


def _unwrapped(site: Site) -> ast.FunctionDef:
    function = site.function
    kept = [node for node in function.body if not isinstance(node, ast.If)]
    return ast.FunctionDef(
        name=function.name,
        args=function.args,
        body=kept,
        decorator_list=function.decorator_list,
        returns=None,
        type_comment=None,
        lineno=function.lineno,
    )


def _defs(site: Site) -> Mapping[str, object]:
    defs: Mapping[str, object] = site.tool.input_schema.get("$defs", {})
    return defs


def _kinds(site: Site) -> list[str]:
    return [kind for kind in _OTHER_TYPES if site.part(kind) is not None]


def _roots(site: Site) -> Iterator[tuple[Argument, Spot]]:
    for body in site.arguments("body"):
        yield body, next(spots(body.schema, _defs(site)))


def _named(site: Site, least: int, most: int) -> Iterator[tuple[Argument, Spot]]:
    """The fields of the body that lie so deep."""
    for body in site.arguments("body"):
        for spot in spots(body.schema, _defs(site)):
            if least <= len(spot.path) <= most and spot.path[-1] != ITEM:
                yield body, spot


def _fields(site: Site, least: int, most: int, value: str) -> Changed:
    for body, spot in _named(site, least, most):
        code = _edit(body.name, spot.path, f"lambda value: {value}")
        yield _told(spot), partial(site.prefixed, code)


def _told(spot: Spot) -> str:
    return "/".join(spot.path)


def _edit(name: str, path: tuple[str, ...], change: str) -> str:
    return f"{name} = _at({name}, {path!r}, {change})"


def _without(kind: str, call: ast.Call) -> None:
    call.keywords = [k for k in call.keywords if k.arg not in (kind, "content_type")]


def _typed(kind: str, call: ast.Call) -> None:
    call.keywords = [k for k in call.keywords if k.arg != "content_type"]
    call.keywords.append(ast.keyword("content_type", ast.Constant(kind)))


def _replaced(kind: str, value: ast.expr, call: ast.Call) -> None:
    for keyword in call.keywords:
        if keyword.arg == kind:
            keyword.value = value


def _rewritten(site: Site, kind: str, other: str) -> Changed:
    if site.part(kind) is not None:

        def edit(call: ast.Call) -> None:
            call.keywords = [k for k in call.keywords if k.arg != "content_type"]
            for keyword in call.keywords:
                if keyword.arg == kind:
                    keyword.arg = other

        yield other, partial(site.asked, edit)


OPERATORS: tuple[Operator, ...] = tuple(
    map(
        operator,
        (
            body_field_lost,
            nested_body_field_lost,
            body_field_null,
            body_field_renamed,
            body_field_added,
            swapped_body_fields,
            body_flattened,
            body_wrapped,
            body_dropped,
            body_emptied,
            empty_body_dropped,
            empty_parts_dropped,
            nulls_dropped,
            falsy_fields_dropped,
            wrong_content_type,
            form_instead_of_json,
            json_instead_of_form,
            json_instead_of_multipart,
            form_instead_of_multipart,
            text_instead_of_bytes,
            json_twice,
            file_wrapper_lost,
        ),
    )
)
