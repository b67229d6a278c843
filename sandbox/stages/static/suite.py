"""Rules on a server's tests, which are plain functions with asserts that pytest can run too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.bundle import modules
from sandbox.bundle.report import Finding, finding_at
from sandbox.bundle.source import (
    FunctionNode,
    ParsedSource,
    UnparsableSource,
    get_called_name,
    parse_source,
)
from sandbox.plain_secrets import find_secrets_in_code
from sandbox.stages.static import attributes, code

FILE = "tests/test_server.py"
"""Where a bundle's tests lie."""
MAX_BYTES = 128 * 1024
MAX_FINDINGS = 30
MAX_DETAIL = 300
MODULES = (modules.MODULES - {"toolwright.environment", "toolwright.files", "toolwright.pages"}) | {
    "pytest",
    "server",
    "toolwright.testing",
}
PLAIN_SECRET = "A secret stands in the tests; write an example such as example-token"
PARAMETRIZE, RAISES = "pytest.mark.parametrize", "pytest.raises"

Found = Iterator[tuple[int, str]]


def check_suite(tests: str) -> tuple[Finding, ...]:
    """The findings in the text of a suite."""
    if len(tests.encode("utf-8", "replace")) > MAX_BYTES:
        return (Finding(FILE, "", "size", f"the tests are longer than {MAX_BYTES} bytes"),)
    source = parse_source(tests)
    if isinstance(source, UnparsableSource):
        return (finding_at(FILE, source.line, "syntax", source.reason[:MAX_DETAIL]),)
    found = [
        finding_at(FILE, line, _get_rule_name(rule), f"{_get_message(rule)}: {detail}"[:MAX_DETAIL])
        for rule in RULES
        for line, detail in rule(source)
    ]
    found += [
        finding_at(FILE, secret.line, "plain-secret", f"{PLAIN_SECRET}: {secret.kind}")
        for secret in find_secrets_in_code(tests)
    ]
    return tuple(found[:MAX_FINDINGS])


def forbidden_import(source: ParsedSource) -> Found:
    """A module is imported that tests may not use."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in MODULES or alias.name == "server" or alias.asname == "pytest":
                    yield node.lineno, f"{alias.name} (write `from server import …`)"
        elif isinstance(node, ast.ImportFrom):
            yield from _check_import(node)


def _check_import(node: ast.ImportFrom) -> Found:
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        whole = f"{module}.{alias.name}"
        if alias.name == "*" or alias.name.startswith("_") or module == "pytest":
            yield node.lineno, whole
        elif module not in MODULES and whole not in MODULES:
            yield node.lineno, module
        elif (alias.asname or alias.name).startswith(("test", "Test")) and module == "server":
            yield node.lineno, f"{whole}, which pytest would take for a test"


def other_pytest(source: ParsedSource) -> Found:
    """Of pytest, tests use mark.parametrize as a decorator and raises after with, nothing else."""
    allowed = {id(part) for node in _find_plain_uses(source) for part in ast.walk(node)}
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id == "pytest" and id(node) not in allowed:
            yield node.lineno, "compare fractions with math.isclose, write helpers as functions"


def _find_plain_uses(source: ParsedSource) -> Iterator[ast.expr]:
    for node in source.nodes:
        if isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items]
            yield from (c.func for c in calls if _is_call(c, RAISES))  # type: ignore[attr-defined]
        elif isinstance(node, FunctionNode):
            decorators = node.decorator_list
            yield from (d.func for d in decorators if _is_call(d, PARAMETRIZE))  # type: ignore[attr-defined]


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and get_called_name(node) == name


def other_decorator(source: ParsedSource) -> Found:
    """A decorator is no pytest.mark.parametrize, or not on a test."""
    for node in source.nodes:
        if isinstance(node, FunctionNode | ast.ClassDef):
            for decorator in node.decorator_list:
                if not _is_call(decorator, PARAMETRIZE) or not _is_test(node):
                    yield node.lineno, f"@{ast.unparse(decorator)[:60]}"


def asynchronous(source: ParsedSource) -> Found:
    """A test awaits something; call the tool, which is a plain function."""
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node.lineno, type(node).__name__


def other_class(source: ParsedSource) -> Found:
    """Tests are functions; a class is defined."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name


def no_claim(source: ParsedSource) -> Found:
    """A test asserts nothing."""
    for test in _iterate_tests(source):
        claims = (
            isinstance(node, ast.Assert)
            or (
                isinstance(node, ast.With)
                and any(_is_call(i.context_expr, RAISES) for i in node.items)
            )
            for node in ast.walk(test)
        )
        if not any(claims):
            yield test.lineno, test.name


def no_argument(source: ParsedSource) -> Found:
    """A test has a parameter that nothing gives: there are no fixtures."""
    for test in _iterate_tests(source):
        given: set[str] = set()
        for decorator in test.decorator_list:
            if isinstance(decorator, ast.Call) and decorator.args:
                given |= _parse_names(decorator.args[0])
        arguments = test.args
        named = {a.arg for a in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}
        if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kw_defaults:
            yield test.lineno, f"{test.name}: plain parameters only"
        for name in sorted(named ^ given):
            yield test.lineno, f"{test.name}: {name}"


def _parse_names(node: ast.expr) -> set[str]:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    texts = (part.value for part in parts if isinstance(part, ast.Constant))
    return {name.strip() for text in texts for name in str(text).split(",") if name.strip()}


def same_name(source: ParsedSource) -> Found:
    """A test has an earlier one's name, which would never run."""
    seen: set[str] = set()
    for test in _iterate_tests(source):
        if test.name in seen:
            yield test.lineno, test.name
        seen.add(test.name)


def other_statement(source: ParsedSource) -> Found:
    """At the top level stands more than imports, functions and values."""
    plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    for node in source.tree.body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not text and not isinstance(node, plain):
            yield node.lineno, ast.unparse(node)[:80]


def no_test(source: ParsedSource) -> Found:
    """There is no test: a function whose name begins with test."""
    if not any(True for _ in _iterate_tests(source)):
        yield 0, "write at least one"


def _iterate_tests(source: ParsedSource) -> Iterator[ast.FunctionDef]:
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and _is_test(node):
            yield node


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test")


def _get_rule_name(rule: code.Rule) -> str:
    return rule.__name__.replace("_", "-")


def _get_message(rule: code.Rule) -> str:
    return (rule.__doc__ or "").partition("\n")[0].rstrip(".")


RULES: tuple[code.Rule, ...] = (
    no_test,
    forbidden_import,
    other_pytest,
    other_decorator,
    other_class,
    no_claim,
    no_argument,
    same_name,
    code.dynamic_code,
    code.dynamic_attribute,
    attributes.dunder_access,
    attributes.private_attribute,
    code.format_access,
    code.printing,
    code.shared_state,
    asynchronous,
    code.import_inside,
    attributes.introspection,
    other_statement,
)
