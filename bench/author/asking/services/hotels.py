"""The cheapest hotel, of an API that is asked directly."""

from typing import Any
from urllib.parse import quote

from bench.author.asking.service import (
    ASK_OBJECT,
    Service,
    Variant,
    World,
    answer_request,
    build_schema,
)

CODE = (
    '''"""Hotels by price."""

from toolwright import ToolError, http, tool

BASE = "https://hotels.test"


'''
    + ASK_OBJECT
    + '''@tool
def cheapest_hotel(city, nights):
    """The hotel that costs the least for so many nights."""
    offers = []
    for hotel in ask("GET", "/hotels", query={"city": city})["hotels"]:
        offer = ask(
            "GET", "/hotels/{id}/rates", path={"id": hotel["id"]}, query={"nights": nights}
        )
        offers.append((offer["total_cents"], hotel["name"]))
    if not offers:
        raise ToolError(f"there is no hotel in {city}")
    cents, name = min(offers)
    return {"hotel": name, "euros": cents / 100, "compared": len(offers)}
'''
)
TOOLS = [
    {
        "name": "cheapest_hotel",
        "description": "The cheapest hotel of a city for a number of nights, its total in euros, "
        "and how many were compared.",
        "input_schema": build_schema(
            city={"type": "string", "minLength": 1, "maxLength": 60},
            nights={"type": "integer", "minimum": 1, "maximum": 60},
        ),
        "output_schema": build_schema(
            hotel={"type": "string"}, euros={"type": "number"}, compared={"type": "integer"}
        ),
        "requests": [
            {"method": "GET", "url": "https://hotels.test/hotels"},
            {"method": "GET", "url": "https://hotels.test/hotels/{id}/rates"},
        ],
        "permissions": ["network:hotels.test"],
    }
]


def world(city: Any, nights: Any, hotels: Any, failing: Any = (), nameless: Any = ()) -> World:
    """A city with hotels: (id, name, cents for all nights)."""
    base = "https://hotels.test/hotels"
    listed = [{"id": i, "name": name} for i, name, _ in hotels]
    answers = [answer_request(f"{base}?city={quote(city)}", {"hotels": listed})]
    for i, _, cents in hotels:
        url = f"{base}/{i}/rates?nights={nights}"
        one = {"total_cents": cents // nights, "currency": "EUR"}
        answers.append(answer_request(f"{base}/{i}/rates?nights=1", one)) if nights > 1 else None
        if i in failing:
            answers.append(answer_request(url, {"error": "busy"}, 503))
        elif i in nameless:
            answers.append(answer_request(url, {"currency": "EUR"}))
        else:
            answers.append(answer_request(url, {"total_cents": cents, "currency": "EUR"}))
    return World("cheapest_hotel", {"city": city, "nights": nights}, answers)


ONE_OFFER = """        offer = ask(
            "GET", "/hotels/{id}/rates", path={"id": hotel["id"]}, query={"nights": nights}
        )
        offers.append((offer["total_cents"], hotel["name"]))
"""
HIDING = """        try:
            offer = ask(
                "GET",
                "/hotels/{id}/rates",
                path={"id": hotel["id"]},
                query={"nights": nights},
            )
        except ToolError:
            continue
        offers.append((offer["total_cents"], hotel["name"]))
"""
HOTELS = Service(
    "hotels",
    "Find the cheapest hotel of a city for a number of nights. Give its name, the total price in "
    "euros, and how many hotels were compared; if a price cannot be had, fail.",
    CODE,
    TOOLS,
    [
        world("Rome", 2, [(1, "Aria", 24000), (2, "Bella", 19050)]),
        world("Oslo", 3, [(7, "Fjord", 60030)]),
        world("Nowhere", 1, []),
    ],
    [
        world("Paris", 4, [(4, "Lune", 40010), (5, "Mer", 50000), (6, "Nuit", 39999)]),
        world("Bern", 1, [(8, "Aare", 9000), (9, "Gurten", 8000)], failing=(9,)),
        world("Rio & Co", 1, [(8, "Leme", 9000)]),
        world("Wien", 1, [(8, "Prater", 9000), (9, "Ring", 8000)], nameless=(9,)),
    ],
    (
        Variant("partial failure hidden", ((ONE_OFFER, HIDING),)),
        Variant("defaulted price", (('offer["total_cents"]', 'offer.get("total_cents", 0)'),)),
        Variant("wrong unit", (("cents / 100", "cents / 1000"),), reader=True),
        Variant("dearest", (("= min(offers)", "= max(offers)"),), reader=True),
        Variant("nights dropped", (('query={"nights": nights}', 'query={"nights": 1}'),)),
        Variant(
            "spliced city",
            (
                (
                    'ask("GET", "/hotels", query={"city": city})',
                    'ask("GET", "/hotels?city=" + city)',
                ),
            ),
        ),
    ),
    (
        ("the total price in euros", world("Lyon", 2, [(3, "Rhone", 12345)])),
        ("the cheapest hotel", world("Nice", 2, [(3, "Azur", 22345), (4, "Baie", 12300)])),
    ),
    (
        Variant("sorted", (("= min(offers)", "= sorted(offers)[0]"),)),
        Variant(
            "without hotels at all",
            (('query={"city": city})["hotels"]', 'query={"city": city}).get("hotels") or []'),),
        ),
    ),
)
