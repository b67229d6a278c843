"""A refund, of an API that writes."""

from typing import Any

from bench.author.asking.service import (
    ASK_OBJECT,
    Service,
    Variant,
    World,
    answer_request,
    build_schema,
)

CODE = (
    '''"""Refunds of payments."""

import uuid

from toolwright import ToolError, http, tool

BASE = "https://pay.test"


'''
    + ASK_OBJECT
    + '''@tool
def refund_payment(payment, cents):
    """Refund a part of a payment."""
    known = ask("GET", "/payments/{id}", path={"id": payment})
    left = known["amount"] - known["refunded"]
    if cents > left:
        raise ToolError(f"only {left} cents of {payment} can be refunded")
    made = ask(
        "POST",
        "/refunds",
        header={"Idempotency-Key": str(uuid.uuid4())},
        json={"payment": payment, "amount": cents, "currency": known["currency"]},
    )
    return {"refund": made["id"], "left": left - cents, "currency": known["currency"]}
'''
)
TOOLS = [
    {
        "name": "refund_payment",
        "description": "Refund a part of a payment, in cents, and tell what is left to refund.",
        "access": "write",
        "input_schema": build_schema(
            payment={"type": "string", "pattern": "^[a-z0-9]{2,20}$"},
            cents={"type": "integer", "minimum": 1, "maximum": 10_000_000},
        ),
        "output_schema": build_schema(
            refund={"type": "string"}, left={"type": "integer"}, currency={"type": "string"}
        ),
        "requests": [
            {"method": "GET", "url": "https://pay.test/payments/{id}"},
            {"method": "POST", "url": "https://pay.test/refunds"},
        ],
        "permissions": ["network:pay.test"],
    }
]


def world(
    payment: Any,
    cents: Any,
    amount: Any,
    refunded: Any,
    currency: Any = "EUR",
    made: Any = "re_1",
    status: Any = 201,
    known: Any = None,
) -> World:
    """A payment, and what the API answers to its refund."""
    body = {"id": payment, "amount": amount, "refunded": refunded, "currency": currency}
    asked = {"payment": payment, "amount": cents, "currency": currency}
    told = {"id": made, **asked} if status < 300 else {"error": "unavailable"}
    return World(
        "refund_payment",
        {"payment": payment, "cents": cents},
        [
            answer_request(f"https://pay.test/payments/{payment}", known or body),
            answer_request("https://pay.test/refunds", told, status, method="POST", json=asked),
        ],
    )


POST = """    made = ask(
        "POST",
        "/refunds",
        header={"Idempotency-Key": str(uuid.uuid4())},
        json={"payment": payment, "amount": cents, "currency": known["currency"]},
    )
"""
RETRIED = """    def post():
        return ask(
            "POST",
            "/refunds",
            header={"Idempotency-Key": str(uuid.uuid4())},
            json={"payment": payment, "amount": cents, "currency": known["currency"]},
        )

    try:
        made = post()
    except ToolError:
        made = post()
"""
SWALLOWED = """    try:
        made = ask(
            "POST",
            "/refunds",
            header={"Idempotency-Key": str(uuid.uuid4())},
            json={"payment": payment, "amount": cents, "currency": known["currency"]},
        )
    except ToolError:
        made = {"id": "pending"}
"""
REFUNDS = Service(
    "refunds",
    "Refund a part of a payment, in cents, never more than is left of it, and in its currency. "
    "Tell the refund's id, what is left to refund after it, and the currency. A refund is "
    "sent once.",
    CODE,
    TOOLS,
    [
        world("p100", 500, 2000, 0),
        world("p101", 1000, 1500, 500, "USD", "re_2"),
        world("p102", 1001, 1500, 500),
        world("p103", 1, 1, 0, "CHF", "re_4"),
    ],
    [
        world("p200", 700, 1000, 200),
        world("p201", 900, 1000, 200),
        world("p202", 100, 1000, 200, status=500),
        world("p203", 100, 1000, 0, known={"id": "p203", "amount": 1000, "currency": "EUR"}),
    ],
    (
        Variant("write sent again", ((POST, RETRIED),)),
        Variant("failure told as pending", ((POST, SWALLOWED),)),
        Variant("defaulted sum", (('known["refunded"]', 'known.get("refunded", 0)'),)),
        Variant(
            "limit of the whole",
            (("if cents > left:", 'if cents > known["amount"]:'),),
            reader=True,
        ),
        Variant("left before", (("left - cents", "left"),), reader=True),
    ),
    (
        ("never more than is left of it", world("p300", 801, 1000, 200)),
        ("what is left to refund after it", world("p301", 300, 1000, 200)),
    ),
    (Variant("the other way round", (("if cents > left:", "if left - cents < 0:"),)),),
)
