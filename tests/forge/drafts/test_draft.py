"""What a client hands in: read whole with every problem located, and nothing believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.drafts.assemble import Purpose, build_bundle, choose_name
from forge.drafts.brief import EXAMPLE
from forge.drafts.draft import MAX_CODE, MAX_TOOLS, Draft, parse_draft
from forge.drafts.gains import format_reference, list_gains
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, RequestPattern, parse_files, read_bundle, render_files
from sandbox.schemas.validator import SchemaViolation
from tests.sandbox.computing import CASES, HALVE, computing

NOTES = read_bundle(Path(__file__).parents[2] / "fixtures" / "bad_bundles" / "good")
OBJECT = {"type": "object"}
TOOL = {"name": "t", "description": "T.", "input_schema": OBJECT, "output_schema": OBJECT}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def draft(parent: Bundle | None = None, **given: Any) -> Draft:
    found = parse_draft({**({} if parent else EXAMPLE), **given}, parent)
    assert isinstance(found, Draft), found
    return found


def places(parent: Bundle | None = None, **given: Any) -> dict[str, str]:
    found = parse_draft({**EXAMPLE, **given}, parent)
    assert not isinstance(found, Draft)
    return {problem.where: problem.reason for problem in found}


def made(found: Draft, parent: Bundle | None = None, name: str = "mutant") -> Bundle:
    return build_bundle(found, Purpose("do it", name, "d" * 64), parent)


@pytest.mark.parametrize("permission", ["env:NAME", "fs:/data/in:ro", "clock", "network:a.example"])
def test_a_tool_may_ask_for_a_permission(permission: str) -> None:
    tool = {**EXAMPLE["tools"][0], "permissions": [permission]}
    assert draft(tools=[tool]).permissions == (permission,)


@pytest.mark.parametrize(
    "permission",
    [
        "fs:/data:rw",
        "fs:data:ro",
        "fs:/a b:ro",
        "fs:/a\u00a0b:ro",
        "env:PATH",
        "env:",
        "x",
        "fs:/a/../b:ro",
    ],
)
def test_a_permission_that_no_tool_may_have_is_refused(permission: str) -> None:
    tool = {**EXAMPLE["tools"][0], "permissions": [permission]}
    assert "fs:/PATH:ro" in places(tools=[tool])["/tools/0/permissions/0"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "/etc"),
        ("/proc/self/environ", "/proc"),
        ("/sys", "/sys"),
        ("/var/run/docker.sock", "/var/run"),
        ("/root/.ssh/id_rsa", "dot-files"),
        ("/home/somebody/.aws", "dot-files"),
        ("/home", "holds what is not a server's to see"),
        ("/", "holds what is not a server's to see"),
    ],
)
def test_a_path_that_is_granted_to_no_server_is_refused_at_the_draft(path: str, why: str) -> None:
    tool = {**EXAMPLE["tools"][0], "permissions": ["clock", f"fs:{path}:ro", "fs:/data:ro"]}
    found = places(tools=[tool])
    assert [*found] == ["/tools/0/permissions/1"]
    assert f"fs:{path}:ro is granted to no server" in found["/tools/0/permissions/1"]
    assert why in found["/tools/0/permissions/1"]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"code": None}, "/code"),
        ({"code": 7}, "/code"),
        ({"code": "x" * (MAX_CODE + 1)}, "/code"),
        ({"code": "\ud800"}, "/code"),
        ({"why": "x" * 5000}, "/why"),
        ({"tools": []}, "/tools"),
        ({"tools": {}}, "/tools"),
        ({"tools": [7]}, "/tools/0"),
        ({"tools": [TOOL, TOOL]}, "/tools/1/name"),
        ({"tools": [{**TOOL, "name": "No"}]}, "/tools/0/name"),
        ({"tools": [{**TOOL, "pin": 1}]}, "/tools/0/pin"),
        ({"tools": [{**TOOL, "description": ""}]}, "/tools/0/description"),
        ({"tools": [{**TOOL, "input_schema": {"type": "array"}}]}, "/tools/0/input_schema"),
        ({"tools": [{**TOOL, "output_schema": True}]}, "/tools/0/output_schema"),
        ({"tools": [{**TOOL, "access": "admin"}]}, "/tools/0/access"),
        ({"tools": [{**TOOL, "access": "write"}]}, "/tools/0/access"),
        ({"tools": [{**TOOL, "requests": [{"method": "GET"}]}]}, "/tools/0/requests"),
        ({"tools": [{**TOOL, "permissions": ["fs:/:rw"]}]}, "/tools/0/permissions/0"),
        ({"tools": [{**TOOL, "permissions": "clock"}]}, "/tools/0/permissions"),
        ({"tools": [{**TOOL, "permissions": [7]}]}, "/tools/0/permissions/0"),
        ({"tools": [{"name": "t"}]}, "/tools/0/description"),
        ({"tools": [{**TOOL, "name": f"t{n}"} for n in range(MAX_TOOLS + 1)]}, "/tools"),
        ({"cases": {}}, "/cases"),
        ({"cases": [7]}, "/cases/0"),
        ({"cases": [{"tool": "t", "arguments": {}, "result": 1}]}, "/cases/0/tool"),
        ({"cases": [{"tool": "from_roman", "result": 1}]}, "/cases/0/arguments"),
        ({"cases": [{"tool": "from_roman", "arguments": {}}]}, "/cases/0"),
        (
            {"cases": [{"tool": "from_roman", "arguments": {}, "failure": "bug"}]},
            "/cases/0/failure",
        ),
    ],
)
def test_each_problem_is_located(given: dict[str, Any], where: str) -> None:
    assert where in places(**given)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("code", "tools", "cases", "why"), JSON)))
def test_any_json_is_a_draft_or_has_located_problems(given: dict[str, Any]) -> None:
    found = parse_draft(given, NOTES)
    problems = () if isinstance(found, Draft) else found
    assert all(isinstance(p, SchemaViolation) and p.where.startswith("/") for p in problems)


def test_the_same_draft_with_another_excuse_is_the_same_draft() -> None:
    assert draft().compute_digest() == draft(why="other").compute_digest()
    assert draft().compute_digest() != draft(code=EXAMPLE["code"] + "\n# other\n").compute_digest()
    assert draft().compute_digest() != draft(cases=EXAMPLE["cases"][:2]).compute_digest()


def test_a_tool_that_is_only_named_stays_as_its_parent_has_it_code_and_cases_included() -> None:
    parent = computing()
    found = parse_draft({"tools": [{"name": "halve"}]}, parent, CASES)
    assert isinstance(found, Draft)
    assert found.tools == parent.tools
    assert found.examples == CASES
    assert "def halve(number):" in found.source_code
    assert "from toolwright import ToolError, tool" in found.source_code


def test_cases_that_are_given_for_a_tool_take_the_place_of_its_parents() -> None:
    given = {"tool": "halve", "arguments": {"number": 8}, "result": {"half": 4}}
    found = parse_draft({"tools": [{"name": "halve"}], "cases": [given]}, computing(), CASES)
    assert isinstance(found, Draft)
    assert found.examples == (Example("halve", {"number": 8}, {"half": 4}),)


def test_an_operation_is_proved_by_the_mock_so_cases_for_it_are_refused() -> None:
    case = {"tool": "list_notes", "arguments": {}, "result": 1}
    assert "/cases/0/tool" in places(NOTES, tools=[{"name": "list_notes"}], cases=[case])


def test_code_is_taken_over_with_what_it_uses_and_no_more() -> None:
    parent = computing(
        "import math\nimport json\nHALF = 2\nOTHER = 3\n\n\ndef by(n):\n    return n / HALF\n"
        + HALVE.replace("number / 2", "by(number) * math.pi")
    )
    code = draft(parent, tools=[{"name": "halve"}]).source_code
    assert "import math" in code
    assert "HALF = 2" in code
    assert "def by(n):" in code
    assert "json" not in code
    assert "OTHER" not in code


def test_the_drafts_own_helpers_go_before_its_parents() -> None:
    parent = computing("HALF = 2\n" + HALVE.replace("/ 2", "/ HALF"))
    code = draft(parent, code="HALF = 4\n", tools=[{"name": "halve"}]).source_code
    assert code.startswith("HALF = 4\n")
    assert "HALF = 2" not in code


def test_code_that_does_not_parse_is_left_for_the_static_stage_to_tell() -> None:
    assert draft(computing(), code="def (", tools=[{"name": "halve"}]).source_code == "def ("


def test_a_mutant_names_its_parent_and_may_do_no_more_than_it() -> None:
    mutant = made(draft(NOTES, tools=[{"name": "list_notes"}]), NOTES)
    assert (
        mutant.provenance.parent
        == format_reference(NOTES)
        == f"{NOTES.name}@1:{NOTES.compute_digest()}"
    )
    assert mutant.provenance.author == "client"
    assert list_gains(mutant, NOTES) == ()
    assert mutant.spec is not None
    assert [operation.id for operation in mutant.spec.operations] == ["listNotes"]


def test_a_mutant_that_only_computes_keeps_no_way_out() -> None:
    mutant = made(draft(NOTES, **{k: EXAMPLE[k] for k in ("code", "tools", "cases")}), NOTES)
    assert (mutant.spec, mutant.permissions, mutant.base_url) == (None, (), "")


@pytest.mark.parametrize(
    ("change", "gained"),
    [
        ({"permissions": ["network:evil.example"]}, "network:evil.example"),
        ({"permissions": ["clock"]}, "clock"),
        ({"requests": [{"method": "GET", "url": "https://e.x/a"}]}, "GET https://e.x/a"),
        ({"name": "add_note", "access": "read"}, "add_note as a tool that only reads"),
    ],
)
def test_what_a_mutant_takes_for_itself_is_named(change: dict[str, Any], gained: str) -> None:
    mutant = made(draft(NOTES, tools=[{"name": "list_notes", **change}]), NOTES)
    assert gained in list_gains(mutant, NOTES)


def test_without_a_parent_all_that_a_bundle_may_do_is_a_gain() -> None:
    tool = {**TOOL, "permissions": ["network:a.example"]}
    asking = {**tool, "requests": [{"method": "POST", "url": "https://a.example/x"}]}
    gained = list_gains(made(draft(tools=[asking], cases=[])), None)
    assert gained == ("network:a.example", "POST https://a.example/x")
    assert made(draft(tools=[asking], cases=[])).tools[0].requests == (
        RequestPattern("POST", "https://a.example/x"),
    )


def test_a_bundle_without_a_parent_keeps_the_digest_that_it_had() -> None:
    files = render_files(NOTES)
    assert b"parent" not in files["bundle.toml"]
    assert parse_files(files, "here") == NOTES
    mutant = made(draft(NOTES, tools=[{"name": "list_notes"}]), NOTES)
    assert parse_files(render_files(mutant), "here") == mutant


@pytest.mark.parametrize(
    ("task", "parent", "taken", "name"),
    [
        ("Please convert the units of length", "", (), "convert_units_length"),
        (
            "Please convert the units of length",
            "",
            ("convert_units_length",),
            "convert_units_length_2",
        ),
        ("Make a tool `to_roman(number)` that …", "", (), "to_roman"),
        ("also Fahrenheit", "units", ("units",), "units_2"),
        ("also Fahrenheit", "units", ("units", "units_2"), "units_3"),
        ("", "", (), "computation"),
        ("日本", "", (), "computation"),
        ("x" * 5000, "", (), None),
        ("x", "a" * 40, ("a" * 40,), None),
    ],
)
def test_a_server_gets_a_free_name_of_its_task_or_parent(
    task: str, parent: str, taken: tuple[str, ...], name: str | None
) -> None:
    found = choose_name(task, parent, taken)
    assert found not in taken
    assert 0 < len(found) <= 40
    assert name in (None, found)
