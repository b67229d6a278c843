"""Operators that only some arguments or answers set off."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from bench.mutants.mutant import Changed, Operator, operator
from bench.mutants.operators.values import inputs, outputs, told
from bench.mutants.site import Site

_STATUSES = (400, 403, 409, 410, 422, 502, 503, 504)


def falsy_argument_ignored(site: Site) -> Changed:
    """An argument that is false, zero or empty counts as absent."""
    for argument in site.arguments():
        if not argument.required:
            code = f"if not {argument.name}:\n    {argument.name} = UNSET"
            yield argument.name, partial(site.prefixed, code)


def zero_replaced(site: Site) -> Changed:
    """Zero is replaced by one."""
    test = "value == 0 and isinstance(value, (int, float)) and not isinstance(value, bool)"
    for name, spot in inputs(site):
        if spot.kinds & {"integer", "number"}:
            code = f"{name} = _at({name}, {spot.path!r}, lambda value: 1 if {test} else value)"
            yield told(name, spot), partial(site.prefixed, code)


def false_dropped(site: Site) -> Changed:
    """False counts as absent."""
    for name, spot in inputs(site):
        if "boolean" in spot.kinds and not spot.required:
            change = "lambda value: UNSET if value is False else value"
            yield (
                told(name, spot),
                partial(site.prefixed, f"{name} = _at({name}, {spot.path!r}, {change})"),
            )


def empty_text_dropped(site: Site) -> Changed:
    """An empty text counts as absent."""
    for name, spot in inputs(site):
        if "string" in spot.kinds and not spot.required:
            change = "lambda value: UNSET if value == '' else value"
            yield (
                told(name, spot),
                partial(site.prefixed, f"{name} = _at({name}, {spot.path!r}, {change})"),
            )


def fails_for_one_value(site: Site) -> Changed:
    """An exception for one value of an enumeration."""
    for name, path, value in _listed(site):
        change = f"lambda value: 1 // 0 if value == {value!r} else value"
        yield f"{name} {value}", partial(site.prefixed, f"{name} = _at({name}, {path!r}, {change})")


def one_value_for_another(site: Site) -> Changed:
    """One value of an enumeration is sent as the next."""
    for name, spot in inputs(site):
        choices = [value for value in spot.schema.get("enum") or () if value is not None]
        for value, other in pairwise(choices):
            change = f"lambda value: {other!r} if value == {value!r} else value"
            code = f"{name} = _at({name}, {spot.path!r}, {change})"
            yield f"{told(name, spot)} {value}", partial(site.prefixed, code)


def one_value_ignored(site: Site) -> Changed:
    """One value of an enumeration counts as absent."""
    for name, path, value in _listed(site):
        change = f"lambda value: UNSET if value == {value!r} else value"
        yield f"{name} {value}", partial(site.prefixed, f"{name} = _at({name}, {path!r}, {change})")


def large_number_limited(site: Site) -> Changed:
    """A number above 100 is sent as 100."""
    test = "isinstance(value, (int, float)) and value > 100"
    for name, spot in inputs(site):
        if spot.kinds & {"integer", "number"}:
            change = f"lambda value: 100 if {test} else value"
            yield (
                told(name, spot),
                partial(site.prefixed, f"{name} = _at({name}, {spot.path!r}, {change})"),
            )


def long_text_refused(site: Site) -> Changed:
    """A text of more than 200 characters is an error."""
    for name, spot in inputs(site):
        if "string" in spot.kinds and spot.schema.get("maxLength", 1_000) > 200:
            change = (
                "lambda value: 1 // 0 if isinstance(value, str) and len(value) > 200 else value"
            )
            yield (
                told(name, spot),
                partial(site.prefixed, f"{name} = _at({name}, {spot.path!r}, {change})"),
            )


def special_word(site: Site) -> Changed:
    """One word means something else to the server than to the API."""
    for name, spot in inputs(site):
        free = not {"enum", "pattern", "format", "const"} & spot.schema.keys()
        if "string" in spot.kinds and free:
            for word in ("all", "*", "admin"):
                change = f"lambda value: 'everything' if value == {word!r} else value"
                code = f"{name} = _at({name}, {spot.path!r}, {change})"
                yield f"{told(name, spot)} {word}", partial(site.prefixed, code)


def asked_only_without_arguments(site: Site) -> Changed:
    """With every optional argument given the API is not asked at all."""
    names = [argument.name for argument in site.arguments() if not argument.required]
    if names:
        test = " and ".join(f"{name} is not UNSET" for name in names)
        yield ", ".join(names), partial(site.prefixed, f"if {test}:\n    return {{'status': 200}}")


def excludes_a_pair(site: Site) -> Changed:
    """Of two optional arguments given together only one is sent."""
    names = [argument.name for argument in site.arguments() if not argument.required]
    for first, second in pairwise(names):
        test = f"{first} is not UNSET and {second} is not UNSET"
        code = f"if {test}:\n    {second} = UNSET"
        yield f"{first}, {second}", partial(site.prefixed, code)


def sent_only_alone(site: Site) -> Changed:
    """An optional argument is lost unless another one is given."""
    names = [argument.name for argument in site.arguments() if not argument.required]
    for first, second in pairwise(names):
        code = f"if {first} is UNSET:\n    {second} = UNSET"
        yield f"{second} without {first}", partial(site.prefixed, code)


def one_status_swallowed(site: Site) -> Changed:
    """One status of failure is told as an empty success."""
    for status in _STATUSES:
        yield str(status), partial(site.woven, _swallowing(f"error.status == {status}"))


def statuses_swallowed_above(site: Site) -> Changed:
    """Every status from 502 on is told as an empty success."""
    yield "502", partial(site.woven, _swallowing("error.status >= 502"))


def redirects_swallowed(site: Site) -> Changed:
    """A 3xx is told as an empty success."""
    yield "3xx", partial(site.woven, _swallowing("error.status < 400"))


def one_success_refused(site: Site) -> Changed:
    """One status of success is told as a failure."""
    for status in (201, 202, 204, 206):
        test = f"if answer.status == {status}:\n    raise ToolError('no')"
        code = f"answer = REQUEST\n{test}\nreturn answer"
        yield str(status), partial(site.woven, code)


def falsy_answer_replaced(site: Site) -> Changed:
    """An answer that is empty, zero or false becomes an empty object."""
    code = (
        "answer = REQUEST\nif answer.is_json:\n    answer.body = answer.body or {}\nreturn answer"
    )
    yield "body", partial(site.woven, code)


def answer_null_fields_dropped(site: Site) -> Changed:
    """Fields of the answer that are null are left out."""
    change = (
        "lambda value: {k: v for k, v in value.items() if v is not None}"
        " if isinstance(value, dict) else value"
    )
    for path in _objects(site):
        code = (
            f"answer = REQUEST\nanswer.body = _at(answer.body, {path!r}, {change})\nreturn answer"
        )
        yield "/".join(path), partial(site.woven, code)


def long_answer_cut(site: Site) -> Changed:
    """Texts of the answer are cut at 100 characters."""
    change = "lambda value: value[:100] if isinstance(value, str) else value"
    for spot in outputs(site):
        if "string" in spot.kinds:
            code = f"answer.body = _at(answer.body, {spot.path!r}, {change})"
            yield told("", spot), partial(site.woven, f"answer = REQUEST\n{code}\nreturn answer")


def _listed(site: Site) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    for name, spot in inputs(site):
        for value in spot.schema.get("enum") or ():
            if value is not None:
                yield name, spot.path, value


def _objects(site: Site) -> Iterator[tuple[str, ...]]:
    for spot in outputs(site):
        if "object" in spot.kinds:
            yield spot.path


def _swallowing(test: str) -> str:
    return (
        "try:\n    return REQUEST\nexcept HttpError as error:\n"
        f"    if {test}:\n        return {{'status': 200}}\n    raise"
    )


OPERATORS: tuple[Operator, ...] = tuple(
    map(
        operator,
        (
            falsy_argument_ignored,
            zero_replaced,
            false_dropped,
            empty_text_dropped,
            fails_for_one_value,
            one_value_for_another,
            one_value_ignored,
            large_number_limited,
            long_text_refused,
            special_word,
            asked_only_without_arguments,
            excludes_a_pair,
            sent_only_alone,
            one_status_swallowed,
            statuses_swallowed_above,
            redirects_swallowed,
            one_success_refused,
            falsy_answer_replaced,
            answer_null_fields_dropped,
            long_answer_cut,
        ),
    )
)
