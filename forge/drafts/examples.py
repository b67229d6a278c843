"""The briefs' examples of drafts, one of each kind: each is accepted as it stands (a test has them
proved and registered).
"""

from __future__ import annotations

from typing import Any

EXAMPLE_TASK = "Convert Roman numerals to numbers, also unusual ones (IIII)."
EXAMPLE_CODE = '''"""Roman numerals."""

from toolwright import ToolError, tool

DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


@tool
def from_roman(numeral):
    """What the letters add up to, a smaller one before a larger one subtracted: also IIII is 4."""
    values = [DIGITS.get(letter, 0) for letter in numeral.upper()]
    if not values or 0 in values:
        raise ToolError("not a Roman numeral")
    pairs = zip(values, [*values[1:], 0])
    return {"number": sum(-one if one < after else one for one, after in pairs)}
'''
EXAMPLE_TESTS = """import pytest
from server import from_roman
from toolwright import ToolError


@pytest.mark.parametrize(("numeral", "number"), [("XIV", 14), ("IIII", 4), ("mdc", 1600), ("I", 1)])
def test_normal(numeral, number):
    assert from_roman(numeral=numeral) == {"number": number}


def test_boundary_the_longest():
    assert from_roman(numeral="M" * 40)["number"] == 40_000


@pytest.mark.parametrize("numeral", ["", "abc", "X V", "\u0130"])
def test_error_no_numeral(numeral):
    with pytest.raises(ToolError, match="not a Roman numeral"):
        from_roman(numeral=numeral)
"""
EXAMPLE: dict[str, Any] = {
    "code": EXAMPLE_CODE,
    "tools": [
        {
            "name": "from_roman",
            "description": "Convert a Roman numeral such as XIV to a number: letters add up, a "
            "smaller one before a larger one is subtracted, in unusual forms (IIII) as well.",
            "input_schema": {
                "type": "object",
                "properties": {"numeral": {"type": "string", "maxLength": 40}},
                "required": ["numeral"],
                "additionalProperties": False,
            },
            "output_schema": {
                "type": "object",
                "properties": {"number": {"type": "integer"}},
                "required": ["number"],
            },
        }
    ],
    "cases": [
        {"tool": "from_roman", "arguments": {"numeral": "XLII"}, "result": {"number": 42}},
        {"tool": "from_roman", "arguments": {"numeral": "mcml"}, "result": {"number": 1950}},
        {"tool": "from_roman", "arguments": {"numeral": "abc"}, "failure": "tool"},
    ],
    "tests": EXAMPLE_TESTS,
    "why": "first draft",
}
HTTP_TASK = """Book the shortest free berth that is long enough for a boat.
Base URL: https://api.harbour.example/v1
Every request needs your key in the header `X-Harbour-Key`.
`GET /berths` lists berths; query `min_length` (integer): only berths at least this long.
Answers 200: {"berths": [{"id": 4, "length": 12, "free": true}]}
`POST /bookings` with a JSON body books one: `berth` (integer, required), `boat` (string, required).
It answers 201 with {"number": 7}, 409 when the berth is taken."""
HTTP_CODE = """from toolwright import HttpError, ToolError, http, tool


@tool
def book_berth(boat, length):
    answer = http.request("GET", "/berths", query={"min_length": length})
    listed = answer.body.get("berths") if isinstance(answer.body, dict) else None
    if not isinstance(listed, list):
        raise ToolError("the harbour's list of berths is not readable")
    fits = [b for b in listed if b["free"] is True and b["length"] >= length]
    if not fits:
        raise ToolError(f"no free berth of {length} metres")
    berth = min(fits, key=lambda b: (b["length"], b["id"]))
    try:
        made = http.request("POST", "/bookings", json={"berth": berth["id"], "boat": boat})
    except HttpError as error:
        if error.status == 409:
            raise ToolError(f"berth {berth['id']} was taken meanwhile") from error
        raise
    return {"berth": berth["id"], "booking": made.body["number"]}
"""
HTTP_TESTS = """import pytest
from server import book_berth
from toolwright import ToolError
from toolwright.testing import answers

BERTHS = {"berths": [{"id": 4, "length": 12, "free": True}, {"id": 5, "length": 9, "free": True}]}


def test_normal_the_shortest_that_fits():
    with answers((200, BERTHS), (201, {"number": 7})) as asked:
        assert book_berth(boat="Ann", length=9) == {"berth": 5, "booking": 7}
    assert [a.method for a in asked] == ["GET", "POST"]
    assert asked[0].url.endswith("/berths?min_length=9")


def test_boundary_none_is_long_enough():
    with answers((200, BERTHS)), pytest.raises(ToolError, match="no free berth of 13 metres"):
        book_berth(boat="Ann", length=13)


def test_error_taken_meanwhile():
    with answers((200, BERTHS), (409, "taken")), pytest.raises(ToolError, match="taken meanwhile"):
        book_berth(boat="Ann", length=9)


def test_quality_of_data_no_list():
    with answers((200, "<html>")), pytest.raises(ToolError, match="not readable"):
        book_berth(boat="Ann", length=9)
"""
HTTP_EXAMPLE: dict[str, Any] = {
    "api": {
        "base_url": {
            "url": "https://api.harbour.example/v1",
            "quote": "Base URL: https://api.harbour.example/v1",
        },
        "auth": {
            "kind": "header",
            "name": "X-Harbour-Key",
            "quote": "your key in the header `X-Harbour-Key`",
        },
        "operations": [
            {
                "method": "GET",
                "path": "/berths",
                "quote": "`GET /berths` lists berths",
                "parameters": [
                    {
                        "name": "min_length",
                        "in": "query",
                        "type": "integer",
                        "quote": "`min_length` (integer)",
                    }
                ],
                "responses": [
                    {
                        "status": 200,
                        "quote": "Answers 200",
                        "example": '{"berths": [{"id": 4, "length": 12, "free": true}]}',
                    }
                ],
            },
            {
                "method": "POST",
                "path": "/bookings",
                "quote": "`POST /bookings` with a JSON body",
                "body": {
                    "quote": "with a JSON body",
                    "fields": [
                        {
                            "name": "berth",
                            "type": "integer",
                            "required": True,
                            "quote": "`berth` (integer, required)",
                        },
                        {
                            "name": "boat",
                            "type": "string",
                            "required": True,
                            "quote": "`boat` (string, required)",
                        },
                    ],
                },
                "responses": [
                    {"status": 201, "quote": "It answers 201", "example": '{"number": 7}'}
                ],
                "errors": [{"status": 409, "quote": "409 when the berth is taken"}],
            },
        ],
    },
    "tools": [
        {
            "name": "book_berth",
            "description": "Book the shortest free berth that is at least as long as a boat.",
            "calls": ["GET /berths", "POST /bookings"],
            "input_schema": {
                "type": "object",
                "properties": {
                    "boat": {"type": "string", "minLength": 1, "maxLength": 80},
                    "length": {"type": "integer", "minimum": 1, "maximum": 400},
                },
                "required": ["boat", "length"],
                "additionalProperties": False,
            },
            "output_schema": {
                "type": "object",
                "properties": {"berth": {"type": "integer"}, "booking": {"type": "integer"}},
                "required": ["berth", "booking"],
            },
        }
    ],
    "cases": [
        {
            "tool": "book_berth",
            "arguments": {"boat": "Ann", "length": 10},
            "answers": [
                {
                    "request": "GET /berths?min_length=10",
                    "status": 200,
                    "body": {
                        "berths": [
                            {"id": 1, "length": 11, "free": False},
                            {"id": 3, "length": 14, "free": True},
                            {"id": 2, "length": 12, "free": True},
                        ]
                    },
                },
                {
                    "request": "POST /bookings",
                    "sent": {"berth": 2, "boat": "Ann"},
                    "status": 201,
                    "body": {"number": 31},
                },
            ],
            "result": {"berth": 2, "booking": 31},
        },
        {
            "tool": "book_berth",
            "arguments": {"boat": "Bob", "length": 30},
            "answers": [
                {"request": "GET /berths?min_length=30", "status": 200, "body": {"berths": []}}
            ],
            "failure": "tool",
        },
    ],
    "tests": HTTP_TESTS,
    "code": HTTP_CODE,
    "why": "first draft",
}

COMPOSITE_TASK = "Add two Roman numerals, and say the sum as a number."
COMPOSITE_CODE = """from toolwright import ToolError, servers, tool


@tool
def add_roman(first, second):
    numbers = []
    for numeral in (first, second):
        told = servers.call("roman.from_roman", {"numeral": numeral})
        number = told.get("number") if isinstance(told, dict) else None
        if not isinstance(number, int):
            raise ToolError(f"nothing was read of {numeral}")
        numbers.append(number)
    return {"sum": sum(numbers)}
"""
COMPOSITE_TESTS = """import pytest
from server import add_roman
from toolwright import ToolError
from toolwright.testing import tools

TEN = {"tool": "roman.from_roman", "arguments": {"numeral": "X"}, "result": {"number": 10}}
ONE = {"tool": "roman.from_roman", "arguments": {"numeral": "I"}, "result": {"number": 1}}
BAD = {"tool": "roman.from_roman", "arguments": {"numeral": "?"}, "failure": "not a numeral"}


def test_normal_both_are_asked_for_in_order():
    with tools(TEN, ONE) as asked:
        assert add_roman(first="X", second="I") == {"sum": 11}
    assert [b'"X"' in each.body for each in asked] == [True, False]


def test_boundary_the_same_twice():
    with tools(ONE):
        assert add_roman(first="I", second="I") == {"sum": 2}


def test_error_what_the_called_tool_refuses():
    with tools(TEN, BAD), pytest.raises(ToolError, match="not a numeral"):
        add_roman(first="X", second="?")


def test_quality_of_data_no_number():
    odd = {**ONE, "result": {"number": "one"}}
    with tools(odd), pytest.raises(ToolError, match="nothing was read of I"):
        add_roman(first="I", second="I")
"""
_NUMERAL = {"type": "string", "maxLength": 40}
COMPOSITE_EXAMPLE: dict[str, Any] = {
    "tools": [
        {
            "name": "add_roman",
            "description": "Add two Roman numerals; the sum is a number.",
            "permissions": ["call:roman.from_roman"],
            "input_schema": {
                "type": "object",
                "properties": {"first": _NUMERAL, "second": _NUMERAL},
                "required": ["first", "second"],
                "additionalProperties": False,
            },
            "output_schema": {
                "type": "object",
                "properties": {"sum": {"type": "integer"}},
                "required": ["sum"],
            },
        }
    ],
    "cases": [
        {
            "tool": "add_roman",
            "arguments": {"first": "XL", "second": "II"},
            "answers": [
                {
                    "tool": "roman.from_roman",
                    "arguments": {"numeral": "XL"},
                    "result": {"number": 40},
                },
                {
                    "tool": "roman.from_roman",
                    "arguments": {"numeral": "II"},
                    "result": {"number": 2},
                },
            ],
            "result": {"sum": 42},
        },
        {
            "tool": "add_roman",
            "arguments": {"first": "no", "second": "II"},
            "answers": [
                {
                    "tool": "roman.from_roman",
                    "arguments": {"numeral": "no"},
                    "failure": "not a Roman numeral",
                }
            ],
            "failure": "tool",
        },
    ],
    "tests": COMPOSITE_TESTS,
    "code": COMPOSITE_CODE,
    "why": "first draft",
}
