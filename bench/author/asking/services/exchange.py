"""Conversion of money, of an API with rates."""

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
    '''"""Conversion of money."""

from toolwright import ToolError, http, tool

BASE = "https://rates.test"


'''
    + ASK_OBJECT
    + '''@tool
def convert_money(cents, source, target, day):
    """An amount in another currency, by the rates of a day."""
    told = ask("GET", "/rates", query={"day": day})
    if told["day"] != day:
        raise ToolError(f"the rates are of {told['day']}")
    rates = {told["base"]: 1.0, **told["rates"]}
    for currency in (source, target):
        if currency not in rates:
            raise ToolError(f"{currency} has no rate")
    return {"cents": round(cents / rates[source] * rates[target]), "day": told["day"]}
'''
)
CURRENCY = {"type": "string", "pattern": "^[A-Z]{3}$"}
TOOLS = [
    {
        "name": "convert_money",
        "description": "Convert an amount from one currency to another by the rates of a day.",
        "input_schema": build_schema(
            cents={"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
            source=CURRENCY,
            target=CURRENCY,
            day={"type": "string", "minLength": 10, "maxLength": 10},
        ),
        "output_schema": build_schema(cents={"type": "integer"}, day={"type": "string"}),
        "requests": [{"method": "GET", "url": "https://rates.test/rates"}],
        "permissions": ["network:rates.test"],
    }
]
RATES = {"USD": 1.25, "CHF": 0.8, "JPY": 160.0, "NOK": 12.5}


def world(
    cents: Any, source: Any, target: Any, day: Any = "2027-01-04", told: Any = None, bare: Any = ()
) -> World:
    body = {"base": "EUR", "day": told or day, "rates": RATES}
    body = {key: value for key, value in body.items() if key not in bare}
    given = {"cents": cents, "source": source, "target": target, "day": day}
    return World(
        "convert_money",
        given,
        [
            answer_request(f"https://rates.test/rates?day={day}", body),
            answer_request("https://rates.test/rates?day=latest", {**body, "day": "2027-01-09"}),
        ],
    )


EXCHANGE = Service(
    "exchange",
    "Convert an amount in cents from one currency to another by the rates of a given day, which "
    "say how much of a currency one euro is worth, rounded to whole cents. Refuse a currency "
    "without a rate, and rates of another day.",
    CODE,
    TOOLS,
    [
        world(1000, "EUR", "USD"),
        world(1001, "USD", "CHF"),
        world(999, "CHF", "EUR", "2027-01-05"),
        world(5, "EUR", "XXX"),
        world(5, "XXX", "EUR"),
        world(5, "EUR", "USD", "2027-01-06", "2027-01-05"),
    ],
    [
        world(12345, "JPY", "USD"),
        world(777, "USD", "NOK", "2027-01-06"),
        world(5, "EUR", "USD", "2027-02-06", "2027-02-05"),
        world(999, "JPY", "USD"),
        world(50, "ZZZ", "USD"),
        world(50, "CHF", "USD", bare=("day",)),
        world(50, "EUR", "QQQ"),
    ],
    (
        Variant(
            "the other way round",
            (("cents / rates[source] * rates[target]", "cents * rates[source] / rates[target]"),),
            reader=True,
        ),
        Variant(
            "rate defaulted",
            (
                (
                    "        if currency not in rates:\n"
                    '            raise ToolError(f"{currency} has no rate")\n',
                    "        rates.setdefault(currency, 1.0)\n",
                ),
            ),
            reader=True,
        ),
        Variant(
            "the latest day",
            (
                ('query={"day": day}', 'query={"day": "latest"}'),
                ('if told["day"] != day:', 'if not told["day"]:'),
            ),
        ),
        Variant(
            "stale rates taken",
            (('if told["day"] != day:', 'if len(told["day"]) != len(day):'),),
            reader=True,
        ),
        Variant(
            "cut, not rounded",
            (
                (
                    "round(cents / rates[source] * rates[target])",
                    "int(cents / rates[source] * rates[target])",
                ),
            ),
            reader=True,
        ),
        Variant(
            "base defaulted",
            (
                ('{told["base"]: 1.0,', '{told.get("base", "EUR"): 1.0,'),
                ('if told["day"] != day:', 'if told.get("day", day) != day:'),
                ('"day": told["day"]}', '"day": day}'),
            ),
        ),
    ),
    (
        ("how much of a currency one euro is worth", world(1000, "NOK", "CHF")),
        ("rates of another day", world(1000, "NOK", "CHF", "2027-03-01", "2027-02-28")),
        ("Refuse a currency without a rate", world(1000, "NOK", "ABC")),
        ("rounded to whole cents", world(1, "CHF", "USD")),
        ("rounded to whole cents", world(999, "JPY", "USD")),
    ),
)
