"""The suite stage: tests written before the code, tried on stubs and then on the code."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import CaseResult, StageReport, from_json, to_json
from sandbox.stages.prove import prove_bundle, prove_specification
from sandbox.stages.static.suite import check_suite
from sandbox.stages.suite import build_harness, prove_suite
from sandbox.wire.policy import Policy
from tests.sandbox.computing import CASES, case, computing
from tests.sandbox.local import LocalRunner

RUNTIME = Path(__file__).parents[3] / "images" / "base" / "runtime"
CODE = '''
from toolwright import ToolError, http, tool


@tool
def halve(number):
    """Half of it."""
    if number < 0:
        raise ToolError("negative numbers have no half here")
    return {"half": number / 2}


def zone(name):
    return http.request("GET", "/zones/{name}", path={"name": name}).body
'''
HEAD = """import math

import pytest
from server import halve
from toolwright import ToolError
"""
GOOD = (
    HEAD
    + """

@pytest.mark.parametrize(("number", "half"), [(4, 2), (0, 0), (1e300, 5e299)])
def test_it_is_half(number, half):
    assert halve(number) == {"half": half}


def test_a_negative_number_is_refused():
    with pytest.raises(ToolError, match="negative"):
        halve(number=-1)
"""
)


def tried(tests: str, code: str = CODE, seconds: float = 60.0) -> StageReport:
    bundle = computing(code)
    return asyncio.run(prove_suite(bundle, tests, opened(bundle), seconds=seconds, budget=120.0))


def opened(bundle: Bundle) -> Any:
    runner, made = LocalRunner(), build_harness(bundle)
    return lambda: runner.open(made, Broker(Policy(()), Cassette(())))


def failed(report: StageReport) -> dict[str, CaseResult]:
    assert not report.findings, report.findings
    return {cell.case: cell for cell in report.list_failures()}


def test_code_that_its_tests_describe_passes() -> None:
    report = tried(GOOD)
    assert report.verdict == "passed"
    assert {cell.case for cell in report.cases} == {
        "test_it_is_half[4-2]",
        "test_it_is_half[0-0]",
        "test_it_is_half[1e+300-5e+299]",
        "test_a_negative_number_is_refused",
    }
    assert from_json(to_json(report)) == report


def test_a_failed_assert_is_told_with_both_sides_the_call_and_the_place() -> None:
    (wrong,) = failed(tried(GOOD, CODE.replace("/ 2}", "/ 2 if number != 4 else 3}"))).values()
    assert (wrong.operation, wrong.case) == ("halve", "test_it_is_half[4-2]")
    assert (wrong.got, wrong.expected) == ("{'half': 3}", "{'half': 2}")
    assert wrong.given == "halve(4)"
    assert "tests/test_server.py:10" in wrong.evidence


def test_an_exception_of_the_code_is_told_with_its_line() -> None:
    found = failed(tried(GOOD, CODE.replace("number / 2", "number // missing")))
    assert "NameError" in found["test_it_is_half[4-2]"].evidence
    assert "server.py line 10" in found["test_it_is_half[4-2]"].evidence


@pytest.mark.parametrize(
    ("body", "does"),
    [
        ("assert halve(0) != 3", "always gives None"),
        ("assert not halve(0)", "always gives"),
        ("assert halve(7) == 7", "first argument"),
        ("halve(3)\n    assert True", "always gives"),
        ("assert isinstance(halve(2), dict)", "always gives {}"),
    ],
)
def test_a_test_that_a_stub_passes_is_sent_back(body: str, does: str) -> None:
    bundle = computing(CODE)
    shaped = {"type": "object", "properties": {"half": {"type": "number"}}}
    bundle = replace(bundle, tools=(replace(bundle.tools[0], output_schema=shaped),))
    tests = f"{GOOD}\n\ndef test_nothing():\n    {body}\n"
    report = asyncio.run(prove_suite(bundle, tests, opened(bundle)))
    found = next(cell for cell in report.list_failures() if cell.code == "proves_nothing")
    assert "proves nothing" in found.evidence
    assert found.case == "test_nothing"
    assert found.operation == "tests/test_server.py:18"
    assert does in found.evidence


def test_a_result_that_is_truly_empty_may_have_a_test_beside_one_that_is_not() -> None:
    shaped = {"type": "object", "properties": {"half": {"type": "number"}}}
    bundle = computing(CODE)
    bundle = replace(bundle, tools=(replace(bundle.tools[0], output_schema=shaped),))
    zero = '\n\ndef test_zero():\n    assert halve(0) == {"half": 0}\n'
    assert asyncio.run(prove_suite(bundle, GOOD + zero, opened(bundle))).passed
    alone = asyncio.run(prove_suite(bundle, HEAD + zero, opened(bundle)))
    assert [cell.code for cell in alone.list_failures()] == ["proves_nothing"]


def test_one_row_that_a_stub_passes_does_not_make_a_test_prove_nothing() -> None:
    assert tried(GOOD).verdict == "passed"


def test_a_tool_that_no_test_gives_a_result_of_is_told() -> None:
    only = GOOD[: GOOD.index("@pytest")] + GOOD[GOOD.index("def test_a_negative") :]
    found = failed(tried(only))
    assert list(found) == ["tests"]
    assert "no test says what this tool gives" in found["tests"].evidence


def test_a_tool_may_be_called_by_a_function_of_the_tests() -> None:
    tests = HEAD + "\n\ndef half(n):\n    return halve(n)['half']\n\n\n"
    assert tried(tests + "def test_half():\n    assert half(3) == 1.5\n").verdict == "passed"


def test_a_specification_is_tried_on_stubs_alone() -> None:
    report = tried(GOOD, "")
    assert (report.verdict, report.cases) == ("passed", ())
    assert "no code yet" in report.note


def test_a_specification_is_judged_by_its_tools_tests_and_cases() -> None:
    bundle = replace(computing(""), provenance=computing().provenance)

    def specified(tests: str, examples: Any) -> Any:
        return asyncio.run(prove_specification(bundle, LocalRunner(), tests, examples))

    assert specified(GOOD, CASES).passed
    assert [report.stage for report in specified(GOOD, CASES).reports] == [
        "static",
        "suite",
        "cases",
    ]
    one = specified(GOOD, CASES[:1])
    assert "always gives the same result" in one.reports[-1].list_failures()[0].evidence
    assert (
        "proves nothing"
        in specified(GOOD, (CASES[0], case({}, number=7))).reports[-1].list_failures()[0].evidence
    )
    assert not specified(GOOD.replace("== {", "!= {"), CASES).passed


def test_a_test_without_an_end_fails_and_the_others_are_told() -> None:
    endless = CODE.replace(
        "    if number < 0:", "    while number == 4:\n        pass\n    if number < 0:"
    )
    found = failed(tried(GOOD, endless, seconds=3.0))
    assert list(found) == ["test_it_is_half[4-2]"]
    assert "does not end" in found["test_it_is_half[4-2]"].evidence


ENDLESS = CODE.replace("    if number < 0:", "    while True:\n        pass\n    if number < 0:")
NO_END = "does not end: it takes more than 5,000,000 calls and turns of loops"
ONLY = HEAD + "\n\ndef test_half():\n    assert halve(3) == {'half': 1.5}\n"
SLOW = CODE.replace(
    "    if number < 0:",
    """    from time import perf_counter
    end = perf_counter() + 0.8
    while perf_counter() < end:
        pass
    if number < 0:""",
)


def test_where_no_test_ends_two_are_told_and_the_others_are_not_run() -> None:
    opening = opened(computing(ENDLESS))
    sessions: list[int] = []

    def counted() -> Any:
        sessions.append(1)
        return opening()

    report = asyncio.run(prove_suite(computing(ENDLESS), GOOD, counted, seconds=1.0))
    # Two that find out, and one for each that counts its steps.
    assert (report.verdict, report.coverage, len(sessions)) == ("failed", 0.5, 4)
    assert [cell.case for cell in report.list_failures()] == [
        "test_it_is_half[4-2]",
        "test_it_is_half[0-0]",
    ]
    for cell in report.list_failures():
        assert cell.evidence == f"{NO_END}; 2 other tests were not run for it"
    left = [cell for cell in report.cases if cell.verdict == "inconclusive"]
    assert {cell.evidence for cell in left} == {"was not run: other tests do not end"}


def test_the_only_test_of_all_may_have_no_end() -> None:
    found = failed(tried(ONLY, ENDLESS, seconds=0.5))
    assert found["test_half"].evidence == NO_END


def test_a_test_that_only_the_machine_made_late_passes_by_its_steps() -> None:
    late = CODE.replace("    if number < 0:", "    __import__('time').sleep(1)\n    if number < 0:")
    assert tried(ONLY, late, seconds=0.5).verdict == "passed"


def test_what_neither_time_nor_steps_decide_is_said_as_undecided_and_not_taken_for_good() -> None:
    stuck = CODE.replace("    if number < 0:", "    sum(range(10**12))\n    if number < 0:")
    bundle = computing(stuck)
    report = asyncio.run(prove_suite(bundle, ONLY, opened(bundle), seconds=0.3, budget=1.5))
    assert (report.verdict, report.list_failures()) == ("failed", ())
    (finding,) = report.findings
    assert finding.rule == "undecided"
    assert finding.reason.startswith("undecided: it did not end within 0.3 s")


def test_tests_that_end_their_sandbox_are_told_from_those_that_do_not_end() -> None:
    dying = CODE.replace("    if number < 0:", "    import os\n    os._exit(1)\n    if 0:")
    found = failed(tried(GOOD, dying))
    assert len(found) == 2
    assert all("ended its sandbox" in cell.evidence for cell in found.values())


def test_slow_tests_that_end_are_let_be() -> None:
    assert tried(GOOD, SLOW, seconds=3.0).verdict == "passed"


def test_the_time_of_all_tests_has_a_limit_of_its_own() -> None:
    bundle = computing(SLOW)
    report = asyncio.run(prove_suite(bundle, GOOD, opened(bundle), budget=0.5))
    (finding,) = report.findings
    assert finding.reason == "the tests take more than 0.5 s in all; one may take 10 s"


def test_code_that_cannot_be_loaded_is_one_finding() -> None:
    report = tried(GOOD.replace("import halve", "import halves"))
    assert report.verdict == "failed"
    assert "cannot import name 'halves'" in report.findings[0].reason


def test_what_the_code_raises_on_its_way_out_does_not_end_the_run() -> None:
    leaving = CODE.replace(
        "    if number < 0:", "    if number == 4:\n        raise SystemExit\n    if number < 0:"
    )
    found = failed(tried(GOOD, leaving))
    assert list(found) == ["test_it_is_half[4-2]"]
    assert "SystemExit" in found["test_it_is_half[4-2]"].evidence


API = (
    HEAD.replace("import halve", "import halve, zone")
    + """from toolwright import HttpError
from toolwright.testing import answers


def test_an_error_of_the_api_is_passed_on():
    with answers((404, {"why": "gone"}), (200, {"id": 7}), "timeout") as asked:
        with pytest.raises(HttpError) as told:
            zone("a/b")
        assert told.value.status == 404
        assert zone("c") == {"id": 7}
        with pytest.raises(ToolError):
            zone("c")
    assert [request.url for request in asked][0] == "https://api.test/zones/a%2Fb"


def test_without_answers_nothing_is_asked():
    with pytest.raises(RuntimeError):
        zone("c")


def test_half():
    assert math.isclose(halve(3)["half"], 1.5)
"""
)
MIXED = (
    HEAD
    + """

class_of = type(1)


@pytest.mark.parametrize("unit", ["m", "", "ü\\n", None, 1.0, True, b"x", int])
@pytest.mark.parametrize("number, half", [(4, 2), (4, 2), (5, 2), ([], 1), ("a" * 101, 1)])
def test_many_ids(number, half, unit):
    assert halve(number)["half"] == half, f"with {unit}"


@pytest.mark.parametrize("number", [2, 3], ids=["two", None])
def test_named(number):
    assert halve(number) != {"half": 1}
    assert 0 < halve(number)["half"] < 9 and number in (2, 3)


def test_wrong_match():
    with pytest.raises(ToolError, match="positive"):
        halve(-1)


def test_other_error():
    with pytest.raises(ToolError):
        halve("a")


def test_nothing_raised():
    with pytest.raises((ToolError, KeyError)):
        halve(1)


def test_nan():
    assert halve(math.nan)["half"] == math.nan
"""
)


def test_pytest_comes_to_the_same_verdicts(tmp_path: Path) -> None:
    suites = {"test_good": GOOD, "test_api": API, "test_mixed": MIXED}
    ours = {
        (name, cell.case): cell.verdict
        for name, tests in suites.items()
        for cell in tried(tests).cases
        if "proves nothing" not in cell.evidence
    }
    (tmp_path / "server.py").write_text(CODE)
    for name, tests in suites.items():
        (tmp_path / f"{name}.py").write_text(tests)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull]
    subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *options, "--junitxml=told.xml", "."],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{RUNTIME}{os.pathsep}{tmp_path}"},
        capture_output=True,
        check=False,
    )
    theirs = {
        (case.get("classname"), case.get("name")): (
            "failed" if case.find("failure") is not None else "passed"
        )
        for case in ElementTree.parse(tmp_path / "told.xml").iter("testcase")
    }
    assert len(theirs) > 50
    assert ours == theirs


@pytest.mark.parametrize(
    ("tests", "rule"),
    [
        ("import os\n" + GOOD, "forbidden-import"),
        ("import server\n" + GOOD, "forbidden-import"),
        ("from toolwright.files import read\n" + GOOD, "forbidden-import"),
        ("from pytest import raises\n" + GOOD, "forbidden-import"),
        (GOOD.replace("import halve", "import halve as test_halve"), "forbidden-import"),
        (GOOD + "\n\n@pytest.fixture\ndef one():\n    return 1\n", "other-decorator"),
        (GOOD + "\n\ndef test_a():\n    pytest.skip('no')\n    assert halve(3)\n", "other-pytest"),
        (GOOD + "\n\nX = pytest.raises\n", "other-pytest"),
        (GOOD + "\n\nclass TestA:\n    pass\n", "other-class"),
        (GOOD + "\n\ndef test_a():\n    halve(2)\n", "no-claim"),
        (GOOD + "\n\ndef test_a(tmp_path):\n    assert halve(2)\n", "no-argument"),
        (GOOD + GOOD, "same-name"),
        (HEAD, "no-test"),
        (GOOD + "\n\nprint(halve)\n", "printing"),
        (GOOD + "\n\ndef test_a():\n    assert eval('1')\n", "dynamic-code"),
        (GOOD + "\n\nasync def test_a():\n    assert halve\n", "asynchronous"),
        (GOOD + "\n\nfor x in []:\n    pass\n", "other-statement"),
        ("def test(:", "syntax"),
        ("#" * 200_000, "size"),
    ],
)
def test_a_suite_that_breaks_a_rule_is_not_run(tests: str, rule: str) -> None:
    found = check_suite(tests)
    assert rule in {finding.rule for finding in found}
    assert tried(tests).verdict == "failed"


def test_plain_tests_break_no_rule() -> None:
    assert check_suite(GOOD) == ()
    assert check_suite(API) == ()


def test_the_suite_stands_between_the_static_stage_and_the_cases() -> None:
    bundle = computing(CODE)
    proof = asyncio.run(prove_bundle(bundle, LocalRunner(), examples=CASES, suite=GOOD))
    assert [report.stage for report in proof.reports][:3] == ["static", "suite", "cases"]
    wrong = asyncio.run(
        prove_bundle(bundle, LocalRunner(), examples=CASES, suite=GOOD.replace("(4, 2)", "(4, 3)"))
    )
    assert [report.verdict for report in wrong.reports] == ["passed", "failed"]
