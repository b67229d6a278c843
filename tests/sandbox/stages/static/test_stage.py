"""What the static stage finds, rule by rule, and what it lets be."""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from sandbox.bundle.model import Bundle, RequestPattern, read_bundle
from sandbox.bundle.modules import MODULES
from sandbox.bundle.report import Finding
from sandbox.bundle.source import MAX_DEPTH, UnparsableSource, parse_source
from sandbox.engines.wasm.component import list_modules
from sandbox.schemas.wellformed import find_schema_problems
from sandbox.stages.static.stage import MAX_FINDINGS, prove_static

GOOD = read_bundle(Path(__file__).parents[3] / "fixtures" / "bad_bundles" / "good")


def findings(bundle: Bundle) -> tuple[Finding, ...]:
    return prove_static(bundle).findings


def rules(bundle: Bundle) -> set[str]:
    return {finding.rule for finding in findings(bundle)}


def with_code(extra: str) -> Bundle:
    return replace(GOOD, source_code=GOOD.source_code + "\n\n" + extra)


def with_tool(**changes: Any) -> Bundle:
    first, *others = GOOD.tools
    return replace(GOOD, tools=(replace(first, **changes), *others))


def test_a_good_bundle_has_no_findings() -> None:
    report = prove_static(GOOD)
    assert report.findings == ()
    assert report.verdict == "passed"


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import os", "forbidden-import"),
        ("import urllib.request", "forbidden-import"),
        ("from subprocess import run", "forbidden-import"),
        ("from json import *", "forbidden-import"),
        ("from toolwright import _secret", "forbidden-import"),
        ("from . import x", "forbidden-import"),
        ("import toolwright.broker", "forbidden-import"),
        ("def f():\n    eval('1')", "dynamic-code"),
        ("def f():\n    return exec", "dynamic-code"),
        ("def f(x):\n    return globals()", "dynamic-code"),
        ("def f():\n    open('x')", "dynamic-code"),
        ("def f(x, n):\n    return getattr(x, n)", "dynamic-attribute"),
        ("def f(x):\n    return getattr(x, '_p')", "dynamic-attribute"),
        ("def f(x):\n    g = getattr\n    return g", "dynamic-attribute"),
        ("def f(x):\n    return x.__class__", "dunder-access"),
        ("X = __builtins__", "dunder-access"),
        ("def f(t, x):\n    return t.format(x)", "format-access"),
        ("def f(x):\n    return '{0.__class__}'.format(x)", "format-access"),
        ("def f():\n    print('x')", "printing"),
        ("X = []\n\n\ndef f():\n    global X", "shared-state"),
        ("def d(f):\n    return f\n\n\n@d\ndef g():\n    pass", "other-decorator"),
        ("class C:\n    @tool\n    def g(self):\n        pass", "other-decorator"),
        ("@tool\nasync def f():\n    pass", "asynchronous"),
        ("def f():\n    import json", "import-inside"),
        ("if True:\n    import json", "import-inside"),
        ("list_notes()", "work-on-load"),
        ("for x in (1,):\n    pass", "work-on-load"),
        ("X = http.request('GET', '/x')", "work-on-load"),
        ("class C(metaclass=type):\n    pass", "work-on-load"),
        ("class C:\n    x = list_notes()", "work-on-load"),
        ("@tool\ndef unlisted():\n    pass", "mismatches"),
        ("def f():\n    assert_ = '0.0.0.0'\n    return assert_", "bandit-B104"),
        ("def f(:", "syntax"),
    ],
)
def test_code_that_breaks_a_rule_is_found(code: str, rule: str) -> None:
    bundle = with_code(code)
    assert rule in rules(bundle)
    found = next(finding for finding in findings(bundle) if finding.rule == rule)
    assert found.file == "server.py"
    assert found.where.startswith("line ")
    assert found.reason


def test_a_finding_names_its_line() -> None:
    (found,) = findings(with_code("import os"))
    line = int(found.where.removeprefix("line "))
    assert with_code("import os").source_code.splitlines()[line - 1] == "import os"
    assert found.reason == "A module is imported that servers may not use: os"


def test_a_comment_does_not_silence_a_finding() -> None:
    assert "bandit-B104" in rules(with_code("X = '0.0.0.0'  # nosec"))


@pytest.mark.parametrize(
    "code",
    [
        "import json\nimport re\nfrom urllib.parse import quote",
        "PATTERN = re.compile('x')\nLIMITS = {'a': [1, 2]}",
        "def _helper(answer):\n    return getattr(answer, 'body', None)",
        "def _text(n):\n    return '{} of {name}'.format(n, name='x')",
        'class NotFound(Exception):\n    """Nothing there."""',
        "def _double(x: int = 1, *, y: int) -> int:\n    return x * y",
    ],
)
def test_plain_code_is_let_be(code: str) -> None:
    bundle = with_code(code)
    assert findings(replace(bundle, source_code="import re\n" + bundle.source_code)) == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("def get_note(note_id)", "def get_notes(note_id)", "get_note of tools.json"),
        ("def get_note(note_id)", "def get_note(note)", "the parameter note is not"),
        ("def get_note(note_id)", "def get_note(note_id, more=1)", "the parameter more"),
        ("def get_note(note_id)", "def get_note(**all)", "named one by one"),
        ("limit=UNSET, ", "", "the property limit"),
        ("tag=UNSET", "tag", "needs a default"),
    ],
)
def test_functions_and_definitions_correspond(old: str, new: str, told: str) -> None:
    assert old in GOOD.source_code
    found = findings(replace(GOOD, source_code=GOOD.source_code.replace(old, new)))
    assert any(told in finding.reason for finding in found if finding.rule == "mismatches")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"description": "List\u200bnotes"}, "hidden-text"),
        ({"description": "List notes\x1b[2J"}, "hidden-text"),
        ({"title": "Notes\U000e0041"}, "hidden-text"),
        ({"output_schema": {"type": "object", "description": "a\u202eb"}}, "hidden-text"),
        ({"output_schema": {"type": "object", "properties": []}}, "invalid-schema"),
        ({"output_schema": {"type": "object", "$ref": "#/$defs/Gone"}}, "invalid-schema"),
        ({"requests": (RequestPattern("GET", "https://evil.example/x"),)}, "undeclared-host"),
        ({"requests": (RequestPattern("GET", "ftp://notes.example/x"),)}, "undeclared-host"),
        ({"requests": (RequestPattern("GET", "https://notes.example/v1"),)}, "other-request"),
        (
            {
                "requests": (
                    *GOOD.tools[0].requests,
                    RequestPattern("POST", "https://notes.example/v1/notes"),
                )
            },
            "other-request",
        ),
        ({"operation": "gone"}, "unknown-operation"),
        (
            {
                "operation": "",
                "requests": (RequestPattern("GET", "https://notes.example/v1/others"),),
            },
            "unproved-request",
        ),
        ({"operation": "addNote"}, "understated-access"),
    ],
)
def test_definitions_that_break_a_rule_are_found(changes: dict[str, Any], rule: str) -> None:
    bundle = with_tool(**changes)
    assert rule in rules(bundle)
    found = next(finding for finding in findings(bundle) if finding.rule == rule)
    assert found.file == "tools.json"
    assert found.where.startswith("list_notes/")


def test_text_in_other_scripts_is_let_be() -> None:
    assert findings(with_tool(description="Récupère les notes.\n笔记 · заметки 📝")) == ()


def test_an_argument_without_a_place_is_found() -> None:
    schema = copy.deepcopy(dict(GOOD.tools[0].input_schema))
    del schema["properties"]["limit"]["x-in"]
    assert rules(with_tool(input_schema=schema)) == {"wrong-places"}


def test_code_that_is_too_deep_or_no_code_is_no_source() -> None:
    deep = "x = " + "-" * (MAX_DEPTH + 5) + "1"
    assert isinstance(parse_source(deep), UnparsableSource)
    assert isinstance(parse_source("x = " + "(" * 5000 + ")" * 5000), UnparsableSource)
    assert isinstance(parse_source("x = 1\0"), UnparsableSource)
    assert rules(replace(GOOD, source_code=deep)) == {"syntax"}


def test_findings_are_bounded() -> None:
    found = findings(with_code("import os\n" * 1000))
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].rule == "too-many"


SCHEMA_BASES: tuple[dict[str, Any], ...] = (
    {"type": "object", "properties": {"a": {"type": ["string", "null"], "minLength": 1}}},
    {"type": "array", "items": {"enum": [1]}, "uniqueItems": True, "minItems": 0},
    {"anyOf": [{"const": 1}, True], "not": {"pattern": "^a$"}, "required": ["a"]},
    {"$defs": {"A/b": {"maximum": 3.5}}, "$ref": "#/$defs/A~1b", "dependentRequired": {"a": ["b"]}},
)
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1.5, "string", "[", [], ["a", "a"], ["a"], {}, {"a": 1}, [{}], [7]]
)
KEYWORDS = (
    "type properties items anyOf not required enum pattern minLength maximum multipleOf "
    "uniqueItems additionalProperties patternProperties prefixItems dependentRequired format "
    "description $ref"
).split()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(SCHEMA_BASES), st.sampled_from(KEYWORDS), VALUES)
def test_what_the_walker_accepts_the_metaschema_accepts(
    base: dict[str, Any], keyword: str, value: Any
) -> None:
    schema = {**base, keyword: value}
    if any(find_schema_problems(schema)):
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        pytest.fail(f"{schema}: {error.message}")


@pytest.mark.parametrize("schema", SCHEMA_BASES)
def test_the_walker_accepts_valid_schemas(schema: dict[str, Any]) -> None:
    assert list(find_schema_problems(schema)) == []


def test_a_schema_nested_without_end_is_told() -> None:
    schema: dict[str, Any] = {}
    for _ in range(500):
        schema = {"items": schema}
    assert "nested" in next(reason for _, reason in find_schema_problems(schema))


def test_two_functions_of_one_name_are_found() -> None:
    found = findings(with_code("@tool\ndef add_note(body):\n    return 1"))
    assert any("defined twice" in finding.reason for finding in found)


def test_a_request_that_may_write_makes_its_tool_a_write() -> None:
    unsafe = (RequestPattern("DELETE", "https://notes.example/v1/notes"),)
    assert "unsafe-read" in rules(with_tool(requests=unsafe))
    assert "unsafe-read" not in rules(with_tool(requests=unsafe, access="write"))


def test_what_an_engine_cannot_import_is_refused_with_the_other_engine_named() -> None:
    importing = with_code("import statistics\nfrom urllib import parse")
    assert prove_static(importing, MODULES).passed
    (finding,) = prove_static(importing, MODULES - {"statistics"}).findings
    assert finding.rule == "absent"
    assert finding.reason.endswith("statistics; leave it out, or use --engine docker")


def test_the_wasm_engine_has_all_that_servers_may_import() -> None:
    assert set(list_modules()) >= MODULES


def test_nothing_of_a_judged_program_is_left_on_the_nodes_that_all_programs_share() -> None:
    prove_static(with_code("X = 1 + 2\nY = [X, not X, X and X, X < 3]\ndel Y"))
    other = ast.parse("a = b + c and not d < e\ndel f")
    shared = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    marked = [vars(node) for node in ast.walk(other) if isinstance(node, shared) and vars(node)]
    assert marked == []
