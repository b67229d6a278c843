"""What a tool's code decides by, read off its source."""

from __future__ import annotations

import pytest

from sandbox.stages.mock.branches import find_decisions

HEAD = """from toolwright import UNSET, HttpError, Unset, http, tool
from toolwright.styles import csv
"""


def decided(body: str, arguments: str = "a=UNSET, body=UNSET", rest: str = "") -> object:
    code = f"{HEAD}{rest}\n@tool\ndef f({arguments}):\n    {body}\n"
    return find_decisions(code)["f"]


@pytest.mark.parametrize(
    "body",
    [
        'return http.request("GET", "/x")',
        '"""Said."""\n    return http.request("GET", "/x", query={"a": csv(a)})',
        'return http.request("POST", "/x", form={**body, "t": csv(body.get("t", UNSET))})',
        'if body is not UNSET:\n        body = {**body, "t": csv(body.get("t", UNSET))}\n'
        '    return http.request("POST", "/x", form=body)',
        "if not isinstance(body, Unset):\n        body = {**body}\n"
        '    return http.request("POST", "/x", form=body)',
    ],
)
def test_code_that_hands_its_arguments_on_decides_nothing(body: str) -> None:
    assert decided(body).plain


@pytest.mark.parametrize(
    "body",
    [
        'answer = http.request("GET", "/x")\n    return answer',
        'return {"status": http.request("GET", "/x").status}',
        'return http.request("GET", "/x", query={"a": a + 1})',
        'return http.request("GET", "/x", query={"a": a if a else UNSET})',
        'return http.request("GET", "/x", query={"a": a[:1]})',
        'return http.request("GET", "/x", query={"a": str(a)})',
        "if a is not UNSET:\n        a = UNSET\n    else:\n        a = 1\n"
        '    return http.request("GET", "/x")',
        'if a == 7:\n        body = {}\n    return http.request("GET", "/x")',
        'try:\n        return http.request("GET", "/x")\n    except HttpError:\n        return {}',
        'return _asked("/x")',
    ],
)
def test_anything_else_decides(body: str) -> None:
    assert not decided(body).plain


def test_the_constants_of_code_that_decides_are_found_with_those_of_its_helpers() -> None:
    found = decided(
        'return _asked(a) if a == "admin" else http.request("GET", "/x")',
        rest='LIMIT = 412\ndef _asked(a):\n    return a == "root"\n',
    )
    assert {"admin", "root", "GET", "/x"} <= set(found.words)
    assert found.numbers == (412,)


def test_code_that_does_not_parse_decides_nothing_that_could_be_said() -> None:
    assert find_decisions("def (") == {}
