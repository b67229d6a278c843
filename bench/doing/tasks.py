"""Sixty tasks in words: thirty reads, eight of two steps, eight writes, eight that need a new
server, six that nothing here can do.

Of each stands what is right: the requests that have to arrive, and words that the answer has to
hold. `tool`, `arguments` and `plan` are what a model that understands the task answers; the product
sees them only as answers to its questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["read", "steps", "write", "forge", "none"]


@dataclass(frozen=True)
class Doing:
    """A task. `service` is whose requests count; of a `forge`, where the new server's API is."""

    words: str
    kind: Kind
    service: str = ""
    requests: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    plan: tuple[Mapping[str, Any], ...] = ()


def _read(words: str, tool: str, request: str, *holds: str, **arguments: Any) -> Doing:
    return Doing(words, "read", tool.partition(".")[0], (request,), holds, tool, arguments)


def _write(words: str, tool: str, request: str, **arguments: Any) -> Doing:
    return Doing(words, "write", tool.partition(".")[0], (request,), (), tool, arguments)


def _forge(
    words: str, service: str, tool: str, request: str, *holds: str, **arguments: Any
) -> Doing:
    return Doing(words, "forge", service, (request,), holds, f"{service}.{tool}", arguments)


READS = (
    _read(
        "weather in Bergen",
        "weather.get_weather",
        "GET /weather?city=Bergen",
        "storm",
        city="Bergen",
    ),
    _read(
        "What is the weather in Seville in fahrenheit?",
        "weather.get_weather",
        "GET /weather?city=Seville&units=fahrenheit",
        "87.8",
        city="Seville",
        units="fahrenheit",
    ),
    _read(
        "track parcel PX200",
        "parcels.track_parcel",
        "GET /parcels/PX200",
        "delivered",
        number="PX200",
    ),
    _read(
        "where is my parcel PX100?",
        "parcels.track_parcel",
        "GET /parcels/PX100",
        "Lyon",
        number="PX100",
    ),
    _read(
        "list parcel depots in Gent",
        "parcels.list_depots",
        "GET /depots?city=Gent",
        "Kaai",
        city="Gent",
    ),
    _read("show invoice 2", "invoices.get_invoice", "GET /invoices/2", "Borg", id=2),
    _read(
        "list overdue invoices",
        "invoices.list_invoices",
        "GET /invoices?status=overdue",
        "Borg",
        status="overdue",
    ),
    _read(
        "which invoices of the customer Acme are paid?",
        "invoices.list_invoices",
        "GET /invoices?customer=Acme&status=paid",
        "10",
        customer="Acme",
        status="paid",
    ),
    _read("list all DNS zones", "dns.list_zones", "GET /zones", "example.net"),
    _read(
        "show the zone example.net",
        "dns.get_zone",
        "GET /zones/example.net",
        "slave",
        name="example.net",
    ),
    _read(
        "list the MX records of the zone example.org",
        "dns.list_records",
        "GET /records?type=MX&zone=example.org",
        "mx.example",
        zone="example.org",
        type="MX",
    ),
    _read("show berth 3", "harbour.get_berth", "GET /berths/3", "south", id=3),
    _read(
        "list the berths of the south pier",
        "harbour.list_berths",
        "GET /berths?pier=south",
        "55",
        pier="south",
    ),
    _read(
        "vacant moorings for my yacht",
        "harbour.list_berths",
        "GET /berths?free=true",
        "north",
        free=True,
    ),
    _read(
        "search books by the author Austen",
        "library.search_books",
        "GET /books?author=Austen",
        "Emma",
        author="Austen",
    ),
    _read(
        "show the book with ISBN 9780142437247",
        "library.get_book",
        "GET /books/9780142437247",
        "Moby",
        isbn="9780142437247",
    ),
    _read(
        "convert 100 EUR to USD",
        "money.convert_currency",
        "GET /convert?amount=100&source=EUR&target=USD",
        "125",
        amount=100,
        source="EUR",
        target="USD",
    ),
    _read(
        "how much is 50 NOK in EUR?",
        "money.convert_currency",
        "GET /convert?amount=50&source=NOK&target=EUR",
        "5",
        amount=50,
        source="NOK",
        target="EUR",
    ),
    _read("list the currencies", "money.list_currencies", "GET /currencies", "NOK"),
    _read(
        "list employees of the team billing",
        "people.list_employees",
        "GET /employees?team=billing",
        "Cy Ros",
        team="billing",
    ),
    _read("show employee 2", "people.get_employee", "GET /employees/2", "Bo Lund", id=2),
    _read(
        "what is the phone number of Cy Ros?",
        "people.list_employees",
        "GET /employees?name=Cy Ros",
        "33",
        name="Cy Ros",
    ),
    _read(
        "list open support tickets",
        "tickets.list_tickets",
        "GET /tickets?state=open",
        "Printer",
        state="open",
    ),
    _read(
        "list open tickets with high priority",
        "tickets.list_tickets",
        "GET /tickets?priority=high&state=open",
        "Printer",
        state="open",
        priority="high",
    ),
    _read(
        "search japanese recipes",
        "recipes.search_recipes",
        "GET /recipes?cuisine=japanese",
        "Miso",
        cuisine="japanese",
    ),
    _read("show recipe 2", "recipes.get_recipe", "GET /recipes/2", "Risotto", id=2),
    _read(
        "status of flight SK401",
        "flights.get_flight",
        "GET /flights/SK401",
        "delayed",
        number="SK401",
    ),
    _read(
        "list departures from OSL",
        "flights.list_departures",
        "GET /departures?origin=OSL",
        "DY12",
        origin="OSL",
    ),
    _read(
        "departures from OSL to CDG",
        "flights.list_departures",
        "GET /departures?destination=CDG&origin=OSL",
        "DY12",
        origin="OSL",
        destination="CDG",
    ),
    _read(
        "humidity in the attic",
        "sensors.list_readings",
        "GET /readings?room=attic",
        "30",
        room="attic",
    ),
)


def _ref(step: str, path: str) -> dict[str, str]:
    return {"$ref": step, "path": path}


def _steps(
    words: str,
    service: str,
    requests: tuple[str, ...],
    holds: tuple[str, ...],
    *plan: Mapping[str, Any],
) -> Doing:
    return Doing(words, "steps", service, requests, holds, plan=plan)


def _step(
    name: str, task: str, tool: str, arguments: Mapping[str, Any], *after: str
) -> Mapping[str, Any]:
    return {
        "id": name,
        "task": task,
        "tool": tool,
        "arguments": dict(arguments),
        "after": list(after),
    }


STEPS = (
    _steps(
        "list overdue invoices, then show the first invoice",
        "invoices",
        ("GET /invoices?status=overdue", "GET /invoices/2"),
        ("Borg",),
        _step("s1", "list overdue invoices", "invoices.list_invoices", {"status": "overdue"}),
        _step(
            "s2",
            "show the first invoice",
            "invoices.get_invoice",
            {"id": _ref("s1", "$[0].id")},
            "s1",
        ),
    ),
    _steps(
        "list the berths of the south pier; show berth 1",
        "harbour",
        ("GET /berths?pier=south", "GET /berths/1"),
        ("north",),
        _step("s1", "list the berths of the south pier", "harbour.list_berths", {"pier": "south"}),
        _step("s2", "show berth 1", "harbour.get_berth", {"id": 1}),
    ),
    _steps(
        "list all zones, then list the records of the second zone",
        "dns",
        ("GET /zones", "GET /records?zone=example.net"),
        ("spf1",),
        _step("s1", "list all zones", "dns.list_zones", {}),
        _step(
            "s2", "list its records", "dns.list_records", {"zone": _ref("s1", "$[1].name")}, "s1"
        ),
    ),
    _steps(
        "find the book Emma, then show that book by its ISBN",
        "library",
        ("GET /books?title=Emma", "GET /books/9780141439587"),
        ("Austen",),
        _step("s1", "find the book Emma", "library.search_books", {"title": "Emma"}),
        _step("s2", "show that book", "library.get_book", {"isbn": _ref("s1", "$[0].isbn")}, "s1"),
    ),
    _steps(
        "list employees of the team support, then show the first employee",
        "people",
        ("GET /employees?team=support", "GET /employees/2"),
        ("Bo Lund",),
        _step("s1", "list employees of support", "people.list_employees", {"team": "support"}),
        _step("s2", "show the first", "people.get_employee", {"id": _ref("s1", "$[0].id")}, "s1"),
    ),
    _steps(
        "list departures from OSL, then get the status of flight DY12",
        "flights",
        ("GET /departures?origin=OSL", "GET /flights/DY12"),
        ("on time",),
        _step("s1", "list departures from OSL", "flights.list_departures", {"origin": "OSL"}),
        _step("s2", "status of flight DY12", "flights.get_flight", {"number": "DY12"}),
    ),
    _steps(
        "search italian recipes, then show the first recipe",
        "recipes",
        ("GET /recipes?cuisine=italian", "GET /recipes/2"),
        ("Risotto",),
        _step("s1", "search italian recipes", "recipes.search_recipes", {"cuisine": "italian"}),
        _step(
            "s2", "show the first recipe", "recipes.get_recipe", {"id": _ref("s1", "$[0].id")}, "s1"
        ),
    ),
    _steps(
        "list open tickets with low priority, then close the first ticket",
        "tickets",
        ("GET /tickets?priority=low&state=open", "POST /tickets/2/close"),
        (),
        _step(
            "s1", "list open tickets", "tickets.list_tickets", {"state": "open", "priority": "low"}
        ),
        _step("s2", "close the first", "tickets.close_ticket", {"id": _ref("s1", "$[0].id")}, "s1"),
    ),
)
WRITES = (
    _write("close ticket 1", "tickets.close_ticket", "POST /tickets/1/close", id=1),
    _write(
        "open a support ticket with the subject 'Coffee is out'",
        "tickets.create_ticket",
        "POST /tickets",
        body={"subject": "Coffee is out"},
    ),
    _write(
        "set the heating of the attic to 20 degrees",
        "sensors.set_heating",
        "PUT /heating/attic",
        room="attic",
        body={"celsius": 20},
    ),
    _write("delete the DNS record 2", "dns.delete_record", "DELETE /records/2", id=2),
    _write(
        "change the status of invoice 1 to paid",
        "invoices.update_invoice",
        "PATCH /invoices/1",
        id=1,
        body={"status": "paid"},
    ),
    _write(
        "book berth 3 for the boat Nemo",
        "harbour.book_berth",
        "POST /bookings",
        body={"berth": 3, "boat": "Nemo"},
    ),
    _write(
        "borrow book 1 for the reader Ida",
        "library.borrow_book",
        "POST /loans",
        body={"book": 1, "reader": "Ida"},
    ),
    _write(
        "change the phone of employee 3 to 99",
        "people.update_employee",
        "PATCH /employees/3",
        id=3,
        body={"phone": "99"},
    ),
)
FORGES = (
    _forge(
        "list the paintings of the artist Monet ({url})",
        "museum",
        "list_paintings",
        "GET /paintings?artist=Monet",
        "Iris",
        artist="Monet",
    ),
    _forge(
        "high and low water of the port Dover, from {url}",
        "tides",
        "get_tides",
        "GET /tides/Dover",
        "01:05",
        port="Dover",
    ),
    _forge(
        "next trams at the stop Castle, the API is at {url}",
        "trams",
        "list_arrivals",
        "GET /arrivals?stop=Castle",
        "11",
        stop="Castle",
    ),
    _forge(
        "list plants that like shade ({url})",
        "plants",
        "list_plants",
        "GET /plants?light=shade",
        "Fern",
        light="shade",
    ),
    _forge(
        "price of the share BORG from {url}",
        "shares",
        "get_quote",
        "GET /quotes/BORG",
        "99",
        symbol="BORG",
    ),
    _forge(
        "public holidays of the country FR, see {url}",
        "holidays",
        "list_holidays",
        "GET /holidays?country=FR",
        "Bastille",
        country="FR",
    ),
    _forge(
        "make me a tool that lists paintings, the API is {url}",
        "museum",
        "list_paintings",
        "GET /paintings",
        "Wave",
    ),
    _forge(
        "tides of the port Brest ({url})",
        "tides",
        "get_tides",
        "GET /tides/Brest",
        "06:12",
        port="Brest",
    ),
)
NOTHING = tuple(
    Doing(words, "none")
    for words in (
        "we will have to weather this outage",
        "that flight of fancy is over",
        "order a pizza for tonight",
        "how do I cancel my subscription?",
        "don't close ticket 1",
        "should we repaint the north pier?",
    )
)
TASKS = (*READS, *STEPS, *WRITES, *FORGES, *NOTHING)
