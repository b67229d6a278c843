"""Good cases of tools that ask are replayed: exchanges fail, fields are missing, texts hostile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.bundle.example import Example, ExampleAnswer
from sandbox.bundle.model import Bundle, RequestPattern
from sandbox.bundle.report import CaseResult
from sandbox.session.recording import CallLog
from sandbox.stages.replay.replay import CaseReplay
from sandbox.wire.policy import Policy
from tests.sandbox.computing import computing, takes
from tests.sandbox.local import LocalRunner

ORDERS = "shop.list_orders"
GOOD = """
from toolwright import ToolError, servers, tool


@tool
def owed(customer):
    orders, page = [], 1
    while page:
        told = servers.call("shop.list_orders", {"customer": customer, "page": page})
        orders += told["orders"]
        page = told["next"]
    if not orders:
        raise ToolError("no order")
    return {"cents": sum(order["cents"] for order in orders if not order["paid"])}
"""


def page(customer: str, number: int, orders: list[Any], after: int | None = None) -> ExampleAnswer:
    told = {"orders": [{"cents": cents, "paid": paid} for cents, paid in orders], "next": after}
    return ExampleAnswer(ORDERS, {"customer": customer, "page": number}, told)


def owed(customer: str, cents: int, *answers: ExampleAnswer) -> Example:
    return Example("owed", {"customer": customer}, {"cents": cents}, answers=answers)


CASES = (
    owed("ada", 700, page("ada", 1, [(500, False), (30, True)], 2), page("ada", 2, [(200, False)])),
    owed("bob", 90, page("bob", 1, [(90, False)])),
    Example("owed", {"customer": "cyd"}, failure="tool", answers=(page("cyd", 1, []),)),
)
ONE_PAGE = CASES[1:]


def asking(code: str, **changes: Any) -> Bundle:
    bundle = computing(code, permissions=(f"call:{ORDERS}",))
    tool = replace(
        bundle.tools[0],
        name="owed",
        description="What a customer owes.",
        input_schema=takes(customer={"type": "string", "minLength": 2}),
        output_schema={"type": "object", "properties": {"cents": {"type": "integer"}}},
        requests=(RequestPattern("CALL", f"call:{ORDERS}"),),
    )
    return replace(bundle, tools=(replace(tool, **changes),))


def replayed(bundle: Bundle, examples: Sequence[Example] = CASES) -> list[CaseResult]:
    async def replay() -> list[CaseResult]:
        broker = Broker(Policy(()), Cassette(()))
        async with LocalRunner().open(bundle, broker) as session:

            async def call(tool: Any, arguments: Any, calls: Any) -> Any:
                return await session.call(tool.name, arguments, 60.0, CallLog(calls=calls))

            found = CaseReplay(bundle, examples, call)
            for tool in bundle.tools:
                await found.replay_tool(tool)
            return found.cells

    return asyncio.run(replay())


def test_a_good_tool_withstands() -> None:
    assert replayed(asking(GOOD)) == []


def test_a_tool_without_answers_is_not_replayed() -> None:
    assert replayed(computing(), (Example("halve", {"number": 4}, {"half": 2}),)) == []


SWALLOWED = GOOD.replace(
    "        told = servers",
    "        try:\n            told = servers",
).replace(
    '"page": page})\n',
    '"page": page})\n        except ToolError:\n            break\n',
)


@pytest.mark.parametrize(
    ("old", "new", "examples", "told"),
    [
        ('order["cents"]', 'order.get("cents", 0)', CASES, "cents is missing in the answer"),
        ('order["paid"]', 'order.get("paid", True)', CASES, "paid is missing in the answer"),
        ('order["paid"]', 'order.get("paid", False)', ONE_PAGE, "paid is missing in the answer"),
        ('page = told["next"]', "page = None", ONE_PAGE, "that more follows"),
        (
            '{"customer": customer, "page": page}',
            '{"customer": "bob", "page": page}',
            (ONE_PAGE[0], owed("bib", 90, page("bob", 1, [(90, False)]))),
            "customer decides neither",
        ),
        (
            '        orders += told["orders"]',
            '        servers.call("shop.list_orders", {"customer": customer, "page": page})\n'
            '        orders += told["orders"]',
            ONE_PAGE,
            "the same twice",
        ),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, examples: Any, told: str) -> None:
    assert GOOD.count(old) == 1
    cells = replayed(asking(GOOD.replace(old, new)), examples)
    assert any(told in cell.evidence for cell in cells), cells
    assert all(cell.verdict == "failed" and cell.operation == "owed" for cell in cells)


def test_an_outage_that_is_swallowed_on_a_later_page_is_told_with_its_case() -> None:
    cells = replayed(asking(SWALLOWED))
    assert cells[0].case == "case 1, shop.list_orders: 429 with Retry-After"
    assert "gives another result as if all were well" in cells[0].evidence
    assert (json.loads(cells[0].given), cells[0].example) == ({"customer": "ada"}, 1)


def test_an_exception_counts_where_a_case_shows_it_and_the_description_names_it() -> None:
    failing = ExampleAnswer(ORDERS, {"customer": "dee", "page": 2}, failure="503: busy")
    shown = owed("dee", 500, page("dee", 1, [(500, False)], 2), failing)
    named = "What a customer owes; where list_orders fails, by the pages until then."
    cells = replayed(asking(SWALLOWED, description=named), (*CASES, shown))
    assert not any("as if all were well" in cell.evidence for cell in cells)
    unnamed = replayed(asking(SWALLOWED), (*CASES, shown))
    assert any("as if all were well" in cell.evidence for cell in unnamed)


def test_a_refusal_that_an_outage_turns_into_a_result_is_told() -> None:
    code = """
from toolwright import ToolError, servers, tool


@tool
def owed(customer):
    try:
        told = servers.call("shop.list_orders", {"customer": customer, "page": 1})["orders"]
    except ToolError:
        told = []
    if told:
        raise ToolError("there are orders")
    return {"cents": 1}
"""
    cases = (
        Example(
            "owed", {"customer": "ada"}, failure="tool", answers=(page("ada", 1, [(5, True)]),)
        ),
        owed("bob", 1, page("bob", 1, [])),
    )
    cells = replayed(asking(code), cases)
    assert [cell.case for cell in cells if cell.example == 1], cells
    passed_on = code.replace("        told = []", "        raise")
    assert not [cell for cell in replayed(asking(passed_on), cases) if cell.example == 1]


def test_a_field_that_the_output_schema_lets_be_null_may_be_missing() -> None:
    code = GOOD.replace(
        'return {"cents": sum(order["cents"] for order in orders if not order["paid"])}',
        'return {"cents": orders[0].get("cents")}',
    )
    examples = (owed("eve", 5, page("eve", 1, [(5, False)])),)
    loose = {"type": "object", "properties": {"cents": {"type": ["integer", "null"]}}}
    silent = replayed(asking(code, output_schema={"type": "object"}), examples)
    assert any("is missing" in cell.evidence for cell in silent)
    assert not any(
        "is missing" in c.evidence for c in replayed(asking(code, output_schema=loose), examples)
    )


WRITES = """
from toolwright import ToolError, servers, tool


@tool
def owed(customer):
    made = servers.call("shop.create_note", {"customer": customer})
    return {"cents": made["id"]}
"""
NOTE = "shop.create_note"
NOTED = (
    owed(
        "ada",
        7,
        ExampleAnswer(NOTE, {"customer": "ada"}, {"id": 7}),
        ExampleAnswer("news.subscribe", {"customer": "ada"}, {"ok": True}),
    ),
    owed(
        "bob",
        8,
        ExampleAnswer(NOTE, {"customer": "bob"}, {"id": 8}),
        ExampleAnswer("news.subscribe", {"customer": "bob"}, {"ok": True}),
    ),
)


def noting(code: str, description: str = "Create a note on a customer.") -> Bundle:
    asked = tuple(RequestPattern("CALL", f"call:{name}") for name in (NOTE, "news.subscribe"))
    return asking(code, access="write", description=description, requests=asked)


def test_a_write_that_is_sent_again_after_it_may_be_done_is_told() -> None:
    assert replayed(noting(WRITES), NOTED) == []
    again = WRITES.replace(
        '    made = servers.call("shop.create_note", {"customer": customer})\n',
        "    try:\n"
        '        made = servers.call("shop.create_note", {"customer": customer})\n'
        "    except ToolError:\n"
        '        made = servers.call("shop.create_note", {"customer": customer})\n',
    )
    cells = replayed(noting(again), NOTED)
    assert any("it writes again" in cell.evidence for cell in cells), cells


def test_a_quiet_write_and_one_that_the_description_does_not_tell_are_told() -> None:
    quiet = WRITES.replace(
        "    return {", '    servers.call("news.subscribe", {"customer": customer})\n    return {'
    )
    assert any("makes 2 writes" in cell.evidence for cell in replayed(noting(quiet), NOTED))
    cells = replayed(noting(WRITES, "What is known."), NOTED)
    assert any("its description says nothing" in cell.evidence for cell in cells)


def test_a_document_that_is_put_together_from_texts_is_told() -> None:
    code = """
from toolwright import servers, tool


@tool
def owed(customer):
    query = '{ owed(customer: "' + customer + '") { cents } }'
    return {"cents": servers.call("shop.list_orders", {"query": query})["cents"]}
"""
    examples = tuple(
        owed(
            name,
            cents,
            ExampleAnswer(
                ORDERS, {"query": f'{{ owed(customer: "{name}") {{ cents }} }}'}, {"cents": cents}
            ),
        )
        for name, cents in (("ada", 7), ("bob", 8))
    )
    assert any("splicing" in cell.case for cell in replayed(asking(code), examples))
    good = code.replace("""    query = '{ owed(customer: "' + customer + '") { cents } }'\n""", "")
    good = good.replace('{"query": query}', '{"query": "q", "variables": {"c": customer}}')
    held = tuple(
        owed(
            name,
            cents,
            ExampleAnswer(ORDERS, {"query": "q", "variables": {"c": name}}, {"cents": cents}),
        )
        for name, cents in (("ada", 7), ("bob", 8))
    )
    assert replayed(asking(good), held) == []


POLLING = """
from toolwright import ToolError, servers, tool


@tool
def owed(customer):
    for _ in range(4):
        told = servers.call("shop.list_orders", {"customer": customer, "page": 1})
        if told["next"] == 0:
            return {"cents": sum(order["cents"] for order in told["orders"])}
        if told["next"] != 1:
            raise ToolError("neither done nor pending")
    raise ToolError("not done")
"""


def polled(customer: str, cents: int) -> Example:
    pending, done = page(customer, 1, [], 1), page(customer, 1, [(cents, False)], 0)
    return owed(customer, cents, pending, pending, done)


def test_a_read_that_a_case_answers_otherwise_later_may_be_asked_again() -> None:
    cases = (polled("ada", 700), polled("bob", 90))
    assert not any("the same twice" in cell.evidence for cell in replayed(asking(POLLING), cases))


def test_a_write_is_made_once_whatever_a_case_has_the_second_answer() -> None:
    cases = (polled("ada", 700), polled("bob", 90))
    code = POLLING.replace("shop.list_orders", "shop.create_order")
    made = [replace(a, tool="shop.create_order") for a in cases[0].answers]
    bundle = asking(
        code, access="write", requests=(RequestPattern("CALL", "call:shop.create_order"),)
    )
    cells = replayed(bundle, (replace(cases[0], answers=tuple(made)),))
    assert any("the same twice" in cell.evidence for cell in cells)
