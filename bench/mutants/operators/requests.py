"""Operators on the request: method, route, query, headers, cookies."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from bench.mutants.mutant import Changed, Operator, operator
from bench.mutants.site import Site, expression

_SCALAR = frozenset({"string", "integer", "number", "boolean"})
_METHODS: Mapping[str, str] = {
    "GET": "POST",
    "POST": "PUT",
    "PUT": "PATCH",
    "PATCH": "POST",
    "DELETE": "POST",
    "HEAD": "GET",
}


def wrong_method(site: Site) -> Changed:
    """Another HTTP method."""
    instead = _METHODS.get(site.operation.method, "GET")
    yield instead, partial(site.asked, partial(_set_argument, 0, instead))


def wrong_path_segment(site: Site) -> Changed:
    """Another literal segment in the path."""
    for segment in _literals(site):
        changed = _template(site).replace(f"/{segment}", f"/{segment}s", 1)
        yield segment, partial(site.asked, partial(_set_argument, 1, changed))


def dropped_path_segment(site: Site) -> Changed:
    """A literal segment of the path is missing."""
    for segment in _literals(site):
        changed = _template(site).replace(f"/{segment}", "", 1)
        yield segment, partial(site.asked, partial(_set_argument, 1, changed or "/"))


def changed_path_case(site: Site) -> Changed:
    """A literal segment in capital letters."""
    for segment in _literals(site):
        if segment.upper() != segment:
            changed = _template(site).replace(f"/{segment}", f"/{segment.upper()}", 1)
            yield segment, partial(site.asked, partial(_set_argument, 1, changed))


def trailing_slash(site: Site) -> Changed:
    """A slash too many or too few at the path's end."""
    route, mark, query = _template(site).partition("?")
    changed = route[:-1] if route.endswith("/") and len(route) > 1 else f"{route}/"
    yield changed, partial(site.asked, partial(_set_argument, 1, changed + mark + query))


def swapped_path_values(site: Site) -> Changed:
    """Two path parameters in each other's place."""
    yield from _swapped(site, "path")


def constant_path_value(site: Site) -> Changed:
    """A constant in place of a path value."""
    for name, _ in site.pairs("path"):
        constant = ast.Constant("1")
        yield name, partial(site.repaired, "path", _instead(site, "path", name, constant))


def twice_encoded_path_value(site: Site) -> Changed:
    """A path value percent-encoded twice."""
    for name, value in site.pairs("path"):
        twice = expression(f"quote(str({ast.unparse(value)}), safe='')")
        yield name, partial(site.repaired, "path", _instead(site, "path", name, twice))


def twice_encoded_query_value(site: Site) -> Changed:
    """A query value percent-encoded twice."""
    for name, value in _plain(site, "query"):
        text = ast.unparse(value)
        twice = expression(f"quote({text}, safe='') if isinstance({text}, str) else {text}")
        yield name, partial(site.repaired, "query", _instead(site, "query", name, twice))


def changed_base_url(site: Site) -> Changed:
    """Another path before every route."""
    base = site.bundle.base_url.rstrip("/")
    yield f"{base}/v0", partial(replace, site.bundle, base_url=f"{base}/v0")


def dropped_query(site: Site) -> Changed:
    """A query parameter is not sent."""
    yield from _dropped(site, "query")


def dropped_header(site: Site) -> Changed:
    """A header is not sent."""
    yield from _dropped(site, "header")


def dropped_cookie(site: Site) -> Changed:
    """A cookie is not sent."""
    yield from _dropped(site, "cookie")


def renamed_query(site: Site) -> Changed:
    """A query parameter under another name."""
    yield from _renamed(site, "query")


def renamed_header(site: Site) -> Changed:
    """A header under another name."""
    yield from _renamed(site, "header")


def renamed_cookie(site: Site) -> Changed:
    """A cookie under another name."""
    yield from _renamed(site, "cookie")


def duplicated_query(site: Site) -> Changed:
    """A query parameter's value once more under a second name."""
    for name, value in site.pairs("query"):
        pairs = [*site.pairs("query"), (f"{name}2", value)]
        yield name, partial(site.repaired, "query", pairs)


def repeated_query(site: Site) -> Changed:
    """A query parameter twice."""
    for name, value in _plain(site, "query"):
        twice = expression(f"[{ast.unparse(value)}] * 2")
        yield name, partial(site.repaired, "query", _instead(site, "query", name, twice))


def swapped_query_values(site: Site) -> Changed:
    """Two query parameters with each other's values."""
    yield from _swapped(site, "query")


def undeclared_query(site: Site) -> Changed:
    """A query parameter that nobody asked for."""
    pairs = [*site.pairs("query"), ("debug", ast.Constant("1"))]
    yield "debug", partial(site.repaired, "query", pairs)


def undeclared_header(site: Site) -> Changed:
    """A header that nobody asked for."""
    pairs = [*site.pairs("header"), ("x-trace", ast.Constant("1"))]
    yield "x-trace", partial(site.repaired, "header", pairs)


def undeclared_cookie(site: Site) -> Changed:
    """A cookie that nobody asked for."""
    pairs = [*site.pairs("cookie"), ("session", ast.Constant("1"))]
    yield "session", partial(site.repaired, "cookie", pairs)


def undeclared_body(site: Site) -> Changed:
    """A body where none is documented."""
    if site.operation.body is None:
        yield "json", partial(site.asked, partial(_add_keyword, "json", expression("{}")))


def query_into_header(site: Site) -> Changed:
    """A query parameter as a header."""
    yield from _moved(site, "query", "header")


def header_into_query(site: Site) -> Changed:
    """A header as a query parameter."""
    yield from _moved(site, "header", "query")


def cookie_into_query(site: Site) -> Changed:
    """A cookie as a query parameter."""
    yield from _moved(site, "cookie", "query")


def query_into_body(site: Site) -> Changed:
    """The query as a JSON body."""
    written = site.part("query")
    if written is not None and site.operation.body is None:
        yield "query", partial(site.asked, partial(_rename_keyword, "query", "json"))


def wrong_style(site: Site) -> Changed:
    """A list or object in another style than its own."""
    for location in ("query", "path", "header", "cookie"):
        for name, value in site.pairs(location):
            if not _is_structured(site, location, name):
                continue
            for style in ("pipes", "ssv", "json_text", "csv", "deep", "matrix", "label"):
                inner = value.args[0] if isinstance(value, ast.Call) else value
                changed = expression(f"{style}({ast.unparse(inner)})")
                if ast.unparse(changed) != ast.unparse(value):
                    pairs = _instead(site, location, name, changed)
                    yield f"{name} {style}", partial(site.repaired, location, pairs)


def style_lost(site: Site) -> Changed:
    """A value in the default style of its place in place of its own."""
    for location in ("query", "path", "header", "cookie"):
        for name, value in site.pairs(location):
            if isinstance(value, ast.Call):
                pairs = _instead(site, location, name, value.args[0])
                yield name, partial(site.repaired, location, pairs)


def wrong_explode(site: Site) -> Changed:
    """A list or object exploded that is not, or the other way round."""
    for location in ("query", "path", "header", "cookie"):
        for name, value in site.pairs(location):
            if not _is_structured(site, location, name):
                continue
            inner = value.args[0] if isinstance(value, ast.Call) else value
            wrapper = "csv" if ast.unparse(value) == ast.unparse(inner) else "exploded"
            changed = expression(f"{wrapper}({ast.unparse(inner)})")
            yield name, partial(site.repaired, location, _instead(site, location, name, changed))


def default_sent_unasked(site: Site) -> Changed:
    """An argument that was not given is sent with a value of ours."""
    for argument in site.arguments("query", "header", "cookie"):
        if not argument.required:
            schema = argument.schema
            value = (schema.get("enum") or [schema.get("default", schema.get("minimum", 1))])[0]
            code = f"if {argument.name} is UNSET:\n    {argument.name} = {value!r}"
            yield argument.name, partial(site.prefixed, code)


def empty_sent_for_absent(site: Site) -> Changed:
    """An argument that was not given is sent as an empty string."""
    for argument in site.arguments("query", "header", "cookie"):
        if not argument.required:
            code = f"if {argument.name} is UNSET:\n    {argument.name} = ''"
            yield argument.name, partial(site.prefixed, code)


def null_sent_for_absent(site: Site) -> Changed:
    """An argument that was not given is sent as null."""
    for argument in site.arguments():
        if not argument.required:
            code = f"if {argument.name} is UNSET:\n    {argument.name} = None"
            if argument.location != "body":
                code = f"if {argument.name} is UNSET:\n    {argument.name} = 'null'"
            yield argument.name, partial(site.prefixed, code)


def changed_accept(site: Site) -> Changed:
    """Another type is asked for than the operation documents."""
    accept = expression("'text/html'")
    yield "text/html", partial(site.asked, partial(_set_keyword, "accept", accept))


def _template(site: Site) -> str:
    """The route as the code has it; it may be an absolute URL."""
    written = site.request().args[1]
    assert isinstance(written, ast.Constant)
    assert isinstance(written.value, str)
    return written.value


def _literals(site: Site) -> list[str]:
    route = _template(site).partition("?")[0].partition("://")[2] or _template(site)
    segments = route.partition("?")[0].split("/")[1:]
    return [segment for segment in dict.fromkeys(segments) if segment and "{" not in segment]


def _set_argument(at: int, value: str, call: ast.Call) -> None:
    call.args[at] = ast.Constant(value)


def _set_keyword(name: str, value: ast.expr, call: ast.Call) -> None:
    call.keywords = [k for k in call.keywords if k.arg != name]
    _add_keyword(name, value, call)


def _add_keyword(name: str, value: ast.expr, call: ast.Call) -> None:
    call.keywords.append(ast.keyword(name, copy.deepcopy(value)))


def _rename_keyword(name: str, other: str, call: ast.Call) -> None:
    for keyword in call.keywords:
        if keyword.arg == name:
            keyword.arg = other


def _instead(site: Site, location: str, name: str, value: ast.expr) -> list[tuple[str, ast.expr]]:
    return [(key, value if key == name else own) for key, own in site.pairs(location)]


def _plain(site: Site, location: str) -> Iterator[tuple[str, ast.expr]]:
    """The pairs whose value is an argument as it is."""
    for name, value in site.pairs(location):
        if isinstance(value, ast.Name) and not _is_structured(site, location, name):
            yield name, value


def _is_structured(site: Site, location: str, name: str) -> bool:
    for argument in site.arguments(location):
        if argument.target == name:
            kind: Any = argument.schema.get("type", "object")
            return not _SCALAR.issuperset([kind] if isinstance(kind, str) else kind)
    return False


def _dropped(site: Site, location: str) -> Changed:
    for name, _ in site.pairs(location):
        pairs = [pair for pair in site.pairs(location) if pair[0] != name]
        yield name, partial(site.repaired, location, pairs)


def _renamed(site: Site, location: str) -> Changed:
    for name, _ in site.pairs(location):
        pairs = [(f"{k}x" if k == name else k, value) for k, value in site.pairs(location)]
        yield name, partial(site.repaired, location, pairs)


def _moved(site: Site, origin: str, other: str) -> Changed:
    for name, value in site.pairs(origin):
        left = [pair for pair in site.pairs(origin) if pair[0] != name]
        changed = {origin: left, other: [*site.pairs(other), (name, value)]}
        yield name, partial(site.repaired_all, changed)


def _swapped(site: Site, location: str) -> Changed:
    for (first, left), (second, right) in pairwise(site.pairs(location)):
        values = {first: right, second: left}
        pairs = [(name, values.get(name, value)) for name, value in site.pairs(location)]
        yield f"{first}, {second}", partial(site.repaired, location, pairs)


OPERATORS: tuple[Operator, ...] = tuple(
    map(
        operator,
        (
            wrong_method,
            wrong_path_segment,
            dropped_path_segment,
            changed_path_case,
            trailing_slash,
            swapped_path_values,
            constant_path_value,
            twice_encoded_path_value,
            twice_encoded_query_value,
            changed_base_url,
            dropped_query,
            dropped_header,
            dropped_cookie,
            renamed_query,
            renamed_header,
            renamed_cookie,
            duplicated_query,
            repeated_query,
            swapped_query_values,
            undeclared_query,
            undeclared_header,
            undeclared_cookie,
            undeclared_body,
            query_into_header,
            header_into_query,
            cookie_into_query,
            query_into_body,
            wrong_style,
            style_lost,
            wrong_explode,
            default_sent_unasked,
            empty_sent_for_absent,
            null_sent_for_absent,
            changed_accept,
        ),
    )
)
