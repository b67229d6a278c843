from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.tasks.reading.read import MAX_TASK, read_arguments
from sandbox.schemas.validator import get_checker

NOW = datetime(2026, 11, 24, 23, 30, tzinfo=UTC)
TEXT: Mapping[str, Any] = {"type": "string"}
WHOLE: Mapping[str, Any] = {"type": "integer"}
NUMBER: Mapping[str, Any] = {"type": "number"}
FLAG: Mapping[str, Any] = {"type": "boolean"}
DAY: Mapping[str, Any] = {"type": "string", "format": "date"}
MAIL: Mapping[str, Any] = {"type": "string", "format": "email"}


def listed(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*values]}


def tool(*required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    named = {name.rstrip("_"): part for name, part in properties.items()}
    return {"type": "object", "properties": named, "required": [*required]}


WEATHER = tool("city", city=TEXT, units=listed("metric", "imperial"), date=DAY)
BERTH = tool("berth_id", berth_id=WHOLE)
BERTHS = tool(free=FLAG, harbour=TEXT, limit=WHOLE, max_length=NUMBER)
RECORDS = tool("zone", zone=TEXT, type=listed("A", "AAAA", "CNAME", "MX", "TXT"))
CONVERT = tool("amount", "from", "to", amount=NUMBER, from_=TEXT, to=TEXT)
EXCHANGE = tool("amount", "base_currency", amount=NUMBER, base_currency=TEXT, target_currency=TEXT)
STAY = tool("start_date", "end_date", start_date=DAY, end_date=DAY)
POINT = tool("latitude", "longitude", latitude=NUMBER, longitude=NUMBER)
BOX = tool("width", "height", width=NUMBER, height=NUMBER)
NEAR = tool(
    "lat", "lon", "radius", lat=NUMBER, lon=NUMBER,
    radius={"type": "number", "description": "Radius in metres."},
)  # fmt: skip
MESSAGE = tool("to", "subject", "body", to=MAIL, subject=TEXT, body=TEXT)
SEARCH = tool("query", query=TEXT, limit=WHOLE)
CREATE = tool(
    "body",
    body={
        "type": "object",
        "properties": {"name": TEXT, "kind": listed("master", "slave"), "ttl": WHOLE},
        "required": ["name"],
    },
)
TAGS = tool("tags", tags={"type": "array", "items": TEXT})
MAILS = tool("recipients", recipients={"type": "array", "items": MAIL})
TICKETS = tool(status=listed("open", "in_progress", "closed"), sort=listed("asc", "desc"))
LEVELS = tool("level", "severity", level=listed("low", "high"), severity=listed("low", "high"))
HOST = tool("ip", ip={"type": "string", "format": "ipv4"})
PAGE = tool("url", url={"type": "string", "format": "uri"})
WHOIS = tool("domain", domain=TEXT)
THING = tool("id", id={"type": "string", "format": "uuid"})
INVOICE = tool("invoice_number", invoice_number=TEXT)
FILE = tool("path", path=TEXT)
WAIT = tool("seconds", seconds=WHOLE)
NIGHTS = tool("nights", nights=WHOLE)
LANGUAGE = tool("text", "language", text=TEXT, language={"type": "string"})
COUNTRY = tool("country", country={"type": "string", "maxLength": 2})
COLOUR = tool("colour", colour=TEXT)
NESTED = tool(
    "guest", guest={"$ref": "#/$defs/guest"}, nights=WHOLE
) | {"$defs": {"guest": {"type": "object", "properties": {"email": MAIL, "name": TEXT},
                         "required": ["email"]}}}  # fmt: skip
MOMENT = tool("since", since={"type": "string", "format": "date-time"})
SLOT = tool("time", time={"type": "string", "description": "Time of day, as HH:MM"})
ORDER = tool("screening", "count", screening=WHOLE, count=WHOLE)
STATIONS = tool(district={"type": "string", "description": "City district"})
BATCH = tool("id", id={"type": "integer", "description": "Batch number"})
CLOCK = tool("time", time={"type": "string", "format": "time"})
MAYBE = tool("berth_id", berth_id={"anyOf": [{"type": "integer"}, {"type": "null"}]})

BOOKING = tool("berth", "arrival", "departure", berth=WHOLE, arrival=DAY, departure=DAY)
TRIP = tool("departure", "arrival", departure=TEXT, arrival=TEXT)
TIDES = tool("harbour", "date", harbour=TEXT, date=DAY)
LENGTHS = tool(
    "value", "from_unit", "to_unit", value=NUMBER, from_unit=listed("km", "mi"),
    to_unit=listed("km", "mi"),
)  # fmt: skip
PAGES = tool(page=WHOLE, page_size=WHOLE)
USERS = tool(active=FLAG, min_age=WHOLE, max_age=WHOLE)
TICKET = tool("id", id=WHOLE)
CERTIFICATE = tool("host", host=TEXT, port={"type": "integer", "default": 443})
PET = tool("body", body={
    "type": "object",
    "properties": {
        "kind": listed("DOG", "CAT"), "category": listed("dog", "cat"), "born": DAY, "name": TEXT,
        "vet": {"type": "object", "properties": {"name": TEXT, "street": TEXT}},
    },
    "required": ["name", "category"],
})  # fmt: skip
VET = {"type": "object", "properties": {"name": TEXT}}
OWNED = {"type": "object", "properties": {"name": TEXT, "vet": VET}}
SHIPPING = tool("order", "status", order=WHOLE, status=TEXT)
SWITCH = tool("project_id", "feature", "environment", project_id=TEXT, feature=TEXT,
              environment=TEXT)  # fmt: skip
SOME = tool(status={"anyOf": [{"type": "array", "items": listed("open", "paid")},
                              listed("open", "paid")]})  # fmt: skip
BUILT = tool("body", body={"$ref": "#/$defs/Built"}) | {"$defs": {
    "Base": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
    "Built": {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"born": DAY}}]},
}}  # fmt: skip
PRICED = tool("body", body={
    "type": "object",
    "properties": {
        "name": TEXT,
        "price": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\d*\.?\d*$"}]},
    },
    "required": ["name", "price"],
})  # fmt: skip
MEMO = tool("input", input={"type": "object", "properties": {"text": TEXT}, "required": ["text"]})

READ = [
    ("create a product Pen with price 19.99", PRICED, {"body": {"name": "Pen", "price": 19.99}}),
    ("add a product called Pen for 20", PRICED, {"body": {"name": "Pen", "price": 20}}),
    ("list the paid orders", SOME, {"status": ["paid"]}),
    ("create a pet called Bello, born 2021-05-06", BUILT,
     {"body": {"name": "Bello", "born": "2021-05-06"}}),
    ("create a pet called Bello, category dog, born 2021-05-06", PET,
     {"body": {"name": "Bello", "category": "dog", "born": "2021-05-06"}}),
    ("create a pet with name Bello and vet name Olga and category cat", PET,
     {"body": {"name": "Bello", "category": "cat", "vet": {"name": "Olga"}}}),
    ("add a pet named rex with category dog", PET, {"body": {"name": "rex", "category": "dog"}}),
    ("set the status of order 1 to shipped", SHIPPING, {"order": 1, "status": "shipped"}),
    ("enable feature f1 of project default in environment production", SWITCH,
     {"feature": "f1", "project_id": "default", "environment": "production"}),
    ("create a note with the text buy milk", MEMO, {"input": {"text": "buy milk"}}),
    ("a table at 19:30", SLOT, {"time": "19:30"}),
    ("a table at 19:30:10", SLOT, {"time": "19:30:10"}),
    ("a table at 7:30 pm", CLOCK, {"time": "19:30:00"}),
    ("buy two tickets for screening 31", ORDER, {"screening": 31, "count": 2}),
    ("list the bike stations in Altona", STATIONS, {"district": "Altona"}),
    ("when was batch 17 brewed", BATCH, {"id": 17}),
    ("book berth 12 from 2026-12-01 to 2026-12-05", BOOKING,
     {"berth": 12, "arrival": "2026-12-01", "departure": "2026-12-05"}),
    ("a trip from Oslo to Bergen", TRIP, {"departure": "Oslo", "arrival": "Bergen"}),
    ("tides at Bergen Harbour on 3 January 2027", TIDES,
     {"harbour": "Bergen Harbour", "date": "2027-01-03"}),
    ("convert 5 km to miles", LENGTHS, {"value": 5, "from_unit": "km", "to_unit": "mi"}),
    ("second page with 20 per page", PAGES, {"page_size": 20}),
    ("page 3, page size 50", PAGES, {"page": 3, "page_size": 50}),
    ("list inactive users", USERS, {"active": False}),
    ("list active users", USERS, {"active": True}),
    ("users with min age 20 and max age 30", USERS, {"min_age": 20, "max_age": 30}),
    ("show ticket 4711", TICKET, {"id": 4711}),
    ("check example.org on port 8443", CERTIFICATE, {"host": "example.org", "port": 8443}),
    ("what is the weather in Bergen", WEATHER, {"city": "Bergen"}),
    ("what is the weather in Bergen in °C", WEATHER, {"city": "Bergen", "units": "metric"}),
    ("weather for New York in Fahrenheit", WEATHER, {"city": "New York", "units": "imperial"}),
    ("weather in Bergen tomorrow", WEATHER, {"city": "Bergen", "date": "2026-11-25"}),
    ("weather in Bergen on 1 December 2026", WEATHER, {"city": "Bergen", "date": "2026-12-01"}),
    ("weather in Rio de Janeiro today", WEATHER, {"city": "Rio de Janeiro", "date": "2026-11-24"}),
    ("show berth 12", BERTH, {"berth_id": 12}),
    ("who owns berth number 7?", BERTH, {"berth_id": 7}),
    ("show berth #7", BERTH, {"berth_id": 7}),
    ("show the berth with id 7", BERTH, {"berth_id": 7}),
    ("berth_id=7", BERTH, {"berth_id": 7}),
    ("show berth 12", MAYBE, {"berth_id": 12}),
    ("list free berths at Bergen Harbour, first 5", BERTHS,
     {"free": True, "harbour": "Bergen Harbour", "limit": 5}),
    ("list berths in harbour Bergen with max length 12.5", BERTHS,
     {"harbour": "Bergen", "max_length": 12.5}),
    ("list berths that are not free", BERTHS, {"free": False}),
    ("list berths, free=false", BERTHS, {"free": False}),
    ("show the first three berths", BERTHS, {"limit": 3}),
    ("berths, at most 20 results", BERTHS, {"limit": 20}),
    ("list the berths", BERTHS, {}),
    ("list MX records of zone example.org", RECORDS, {"zone": "example.org", "type": "MX"}),
    ("list the mx records for example.org.", RECORDS, {"zone": "example.org", "type": "MX"}),
    ("records of a.b.example.org", RECORDS, {"zone": "a.b.example.org"}),
    ("convert 100 EUR to USD", CONVERT, {"amount": 100, "from": "EUR", "to": "USD"}),
    ("convert 1,250.50 EUR to USD", CONVERT, {"amount": 1250.5, "from": "EUR", "to": "USD"}),
    ("how much is 250 euros in yen", EXCHANGE,
     {"amount": 250, "base_currency": "EUR", "target_currency": "JPY"}),
    ("what is €40 in GBP?", EXCHANGE,
     {"amount": 40, "base_currency": "EUR", "target_currency": "GBP"}),
    ("bookings from 2026-12-01 to 2026-12-05", STAY,
     {"start_date": "2026-12-01", "end_date": "2026-12-05"}),
    ("bookings between 1 December 2026 and December 5th, 2026", STAY,
     {"start_date": "2026-12-01", "end_date": "2026-12-05"}),
    ("what is at 60.39, 5.32", POINT, {"latitude": 60.39, "longitude": 5.32}),
    ("what is at 33.9 S, 151.2 E", POINT, {"latitude": -33.9, "longitude": 151.2}),
    ("a box with width 3 and height 4", BOX, {"width": 3, "height": 4}),
    ("harbours within 2 km of 60.39, 5.32", NEAR, {"lat": 60.39, "lon": 5.32, "radius": 2000}),
    ('send "hello" to bob@example.org with subject "Hi"', MESSAGE,
     {"to": "bob@example.org", "subject": "Hi", "body": "hello"}),
    ('search for "red boats" limit 5', SEARCH, {"query": "red boats", "limit": 5}),
    ("create a zone named example.org of kind master", CREATE,
     {"body": {"name": "example.org", "kind": "master"}}),
    ("create the zone named example.org with ttl 300", CREATE,
     {"body": {"name": "example.org", "ttl": 300}}),
    ("set tags red, blue and green", TAGS, {"tags": ["red", "blue", "green"]}),
    ('tags "red", "light blue" and "green"', TAGS, {"tags": ["red", "light blue", "green"]}),
    ("mail a@example.org and b@example.org", MAILS,
     {"recipients": ["a@example.org", "b@example.org"]}),
    ("list tickets in progress sorted descending", TICKETS,
     {"status": "in_progress", "sort": "desc"}),
    ("list closed tickets", TICKETS, {"status": "closed"}),
    ("ping 192.0.2.7", HOST, {"ip": "192.0.2.7"}),
    ("fetch https://example.org/a?b=c.", PAGE, {"url": "https://example.org/a?b=c"}),
    ("whois example.org", WHOIS, {"domain": "example.org"}),
    ("show 3f2504e0-4f89-11d3-9a0c-0305e82c3301", THING,
     {"id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}),
    ("get invoice INV-2024-118", INVOICE, {"invoice_number": "INV-2024-118"}),
    ("get invoice number 4711", INVOICE, {"invoice_number": "4711"}),
    ("read the file /var/log/messages", FILE, {"path": "/var/log/messages"}),
    ("wait 2 minutes", WAIT, {"seconds": 120}),
    ("stay 3 nights", NIGHTS, {"nights": 3}),
    ('translate "good morning" to French', LANGUAGE, {"text": "good morning", "language": "fr"}),
    ("holidays in Norway", COUNTRY, {"country": "NO"}),
    ("colour=blue", COLOUR, {"colour": "blue"}),
    ('colour "light blue"', COLOUR, {"colour": "light blue"}),
    ("book 2 nights for ada@example.org", NESTED, {"guest": {"email": "ada@example.org"},
                                                   "nights": 2}),
    ("since 2026-01-02T03:04:05Z", MOMENT, {"since": "2026-01-02T03:04:05Z"}),
    ("alarm at 7:30 pm", CLOCK, {"time": "19:30:00"}),
]  # fmt: skip


@pytest.mark.parametrize(("task", "schema", "expected"), READ, ids=[case[0] for case in READ])
def test_what_a_task_says_is_read(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert found.arguments == expected
    assert (found.missing, found.unused, found.problem) == ((), (), "")
    assert found.is_complete
    assert all(origin == "task" for origin in found.origins.values())
    assert found.by == "rules"


UNREAD = [
    ("book a berth for 40 EUR", BERTH, ("berth_id",), ("40 EUR",)),
    ("show ticket 007", TICKET, ("id",), ("007",)),
    ("show me 3 tickets", TICKET, ("id",), ("3",)),
    ("show ticket 12 of customer 9", TICKET, ("id",), ("12", "9")),
    ("weather for May", WEATHER, ("city",), ("May",)),
    ("weather in Paris, France", WEATHER, ("city",), ("Paris", "France")),
    ("a box 3 by 4", BOX, ("width", "height"), ("3", "4")),
    ("show berth 12 and berth 14", BERTH, ("berth_id",), ("12", "14")),
    ("show a berth", BERTH, ("berth_id",), ()),
    ("bookings on 2026-12-01", STAY, ("start_date", "end_date"), ("2026-12-01",)),
    ("weather in Bergen and Oslo", WEATHER, ("city",), ("Bergen", "Oslo")),
    ("what is the weather", WEATHER, ("city",), ()),
    ("weather in general", WEATHER, ("city",), ()),
    ("set it to low", LEVELS, ("level", "severity"), ()),
    ("convert 1,5 EUR to USD", EXCHANGE, ("amount",), ("1,5",)),
    ("list berths 10-20", BERTH, ("berth_id",), ("10-20",)),
    ("wait 2 km", WAIT, ("seconds",), ("2 km",)),
    ("within 2 months", WAIT, ("seconds",), ("2 months",)),
    ("show berth 12.5", BERTH, ("berth_id",), ("12.5",)),
    ("ping 999.1.1.1", HOST, ("ip",), ("999.1.1.1",)),
    ("since 2026-01-02T03:04:05", MOMENT, ("since",), ("2026-01-02T03:04:05",)),
    ("mail bob", MESSAGE, ("to", "subject", "body"), ()),
    ("on 2026-13-45", STAY, ("start_date", "end_date"), ("2026-13-45",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "schema", "missing", "unused"), UNREAD, ids=[case[0] for case in UNREAD]
)
def test_what_has_two_readings_is_asked_for(
    task: str, schema: Mapping[str, Any], missing: tuple[str, ...], unused: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert found.missing == missing
    assert found.unused == unused
    assert not found.is_complete


def test_an_object_that_is_required_and_of_which_nothing_is_said_is_asked_for_as_a_whole() -> None:
    price = {"type": "object", "properties": {"name": TEXT, "price_cents": WHOLE}}
    change = tool("plant_id", "body", plant_id=WHOLE, body={"$ref": "#/$defs/Change"})
    found = read_arguments("change plant 4", change | {"$defs": {"Change": price}}, now=NOW)
    assert (found.arguments, found.missing, found.problem) == ({"plant_id": 4}, ("body",), "")
    said = read_arguments("change plant 4, name Fern", tool("body", plant_id=WHOLE, body=price))
    assert said.missing == ()


LEFT_OVER = [
    ("Combien de vélos à la station 4 ?", tool("station", station=WHOLE), ()),
    ("¿Qué barcos hay en el muelle 4?", tool("muelle", muelle=WHOLE), ()),
    ("show berth 12 in Oslo on 2026-01-01", BERTH, ("Oslo", "2026-01-01")),
    ("list berths on 03/04/2026", BERTHS, ("03/04/2026",)),
    ("list berths next week", BERTHS, ("next week",)),
    ("list berths for 3 boats", BERTHS, ("3",)),
    ("users between 20 EUR and 30 EUR", USERS, ("20 EUR", "30 EUR")),
    ("list users longer than 30", USERS, ("30",)),
    ("list low and high alarms", tool(level=listed("low", "high")), ("low", "high")),
    ("list high alarms", tool(level=listed("low", "high"), risk=listed("low", "high")), ("high",)),
    ("list A records", BERTHS, ("A",)),
    ("check example.org:8443", CERTIFICATE, ("8443",)),
    ("list berths under 40 EUR", BERTHS, ("40 EUR",)),
    ('list berths with "shore power"', BERTHS, ('"shore power"',)),
    ("list berths of ada@example.org", BERTHS, ("ada@example.org",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "schema", "unused"), LEFT_OVER, ids=[case[0] for case in LEFT_OVER]
)
def test_values_that_went_nowhere_are_told(
    task: str, schema: Mapping[str, Any], unused: tuple[str, ...]
) -> None:
    assert read_arguments(task, schema, now=NOW).unused == unused


SHOP = tool(
    kind=listed("sail", "motor"), min_price=NUMBER, max_price=NUMBER,
    limit={"type": "integer", "maximum": 100}, sort=listed("due", "price", "newest"),
    assignee=TEXT,
)  # fmt: skip
TITLED = tool(
    "body",
    body={"type": "object", "properties": {"title": TEXT, "assignee": TEXT}, "required": ["title"]},
)
TIME: Mapping[str, Any] = {"type": "string", "format": "date-time"}
MOVED = tool("meeting_id", "start", meeting_id=WHOLE, start=TIME, end=TIME)
CHANGED = tool("ticket_id", ticket_id=WHOLE, body={"type": "object", "properties": {
    "title": TEXT, "assignee": TEXT, "price": NUMBER}})  # fmt: skip
SAID = [
    ("list boats cheaper than 20000", SHOP, {"max_price": 20000}, ()),
    ("list boats with a price of at least 20,000", SHOP, {"min_price": 20000}, ()),
    ("list boats with a price from 10 to 50", SHOP, {"min_price": 10, "max_price": 50}, ()),
    ("list boats over 5 and under 9", SHOP, {"min_price": 5, "max_price": 9},
     ("min_price", "max_price")),
    ("list boats at most 20000", SHOP, {"max_price": 20000}, ("max_price",)),
    ("list at most 20 boats", SHOP, {"limit": 20}, ()),
    ("users between 20 and 30", USERS, {"min_age": 20, "max_age": 30}, ("min_age", "max_age")),
    ("list boats with length over 8", SHOP, {}, ()),
    ("list boats that cost at most 90", SHOP, {"max_price": 90}, ()),
    ("users older than 20", USERS, {"min_age": 20}, ()),
    ("list boats due before the party", SHOP, {}, ()),
    ("list boats sorted by price", SHOP, {"sort": "price"}, ()),
    ("list boats by price", SHOP, {"sort": "price"}, ()),
    ("list the newest boats", SHOP, {"sort": "newest"}, ()),
    ("list the boats of Ada", SHOP, {"assignee": "Ada"}, ("assignee",)),
    ('create a ticket titled "Broken sink" for Ada', TITLED,
     {"body": {"title": "Broken sink", "assignee": "Ada"}}, ("body.assignee",)),
    ("create a ticket titled Broken sink for Ada", TITLED,
     {"body": {"title": "Broken sink", "assignee": "Ada"}}, ("body.title", "body.assignee")),
    ("create a ticket with the title Door stuck", TITLED, {"body": {"title": "Door stuck"}},
     ("body.title",)),
    ("change the title of ticket 3 to Slow search page", CHANGED,
     {"ticket_id": 3, "body": {"title": "Slow search page"}}, ("body.title",)),
    ("comment on ticket 3: works for me", tool("ticket_id", ticket_id=WHOLE), {"ticket_id": 3}, ()),
    ("move meeting 1 to 2026-12-03T10:00:00Z", MOVED,
     {"meeting_id": 1, "start": "2026-12-03T10:00:00Z"}, ()),
    ("set the price of ticket 3 to 20", CHANGED, {"ticket_id": 3, "body": {"price": 20}}, ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "schema", "expected", "doubtful"), SAID, ids=[case[0] for case in SAID]
)
def test_bounds_orders_titles_and_changes_are_read_and_doubted_where_nothing_names_their_field(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any], doubtful: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert found.arguments == expected
    assert {*found.doubtful} == {*doubtful}


def test_the_field_that_is_changed_is_the_things_own_before_that_of_what_it_holds() -> None:
    task = "change the name of pet 2 to Kitty"
    own = read_arguments(task, tool("id", id=WHOLE, body=OWNED), now=NOW)
    assert own.arguments == {"id": 2, "body": {"name": "Kitty"}}
    # A `name` beside the body may be that by which the thing is found.
    two = read_arguments(task, tool("id", id=WHOLE, name=TEXT, body=OWNED), now=NOW)
    assert (two.arguments, two.unused) == ({"id": 2}, ("Kitty",))


@pytest.mark.parametrize("name", ["page", "pageNumber", "offset", "page[number]"])
def test_a_number_is_no_page_that_a_list_requires_unless_it_is_said_to_be(name: str) -> None:
    page = {"type": "number", "default": 1}
    schema = {"type": "object", "properties": {name: page}, "required": [name]}
    seen = read_arguments("show album 3", schema)
    assert (seen.arguments, seen.unused) == ({name: 1}, ("3",))
    said = "list the albums, offset 3" if name == "offset" else "list the albums, page 3"
    if name in ("page", "offset"):
        assert read_arguments(said, schema).arguments == {name: 3}


def test_a_number_before_several_things_counts_them_and_is_no_id() -> None:
    one = read_arguments("list 2 boats", tool("boat_id", boat_id=WHOLE), tool="get_boat")
    assert (one.missing, one.unused) == (("boat_id",), ("2",))
    many = read_arguments("list 2 boats", SHOP, tool="list_boats")
    assert many.arguments == {"limit": 2}
    for said in ("list 404 boats", "list 12 volt boats"):
        assert read_arguments(said, tool(limit=WHOLE), tool="list_boats").arguments == {}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("find tickets about search", {"q": "search"}),
        ("search tickets for login", {"q": "login"}),
        ("tell me about the tickets", {}),
        ("search for tickets", {}),
        ("list tickets", {}),
    ],
)
def test_what_things_are_about_is_searched_for_where_a_tool_searches(
    task: str, expected: dict[str, str]
) -> None:
    found = read_arguments(task, tool(q=TEXT, limit=WHOLE), now=NOW, tool="list_tickets")
    assert (found.arguments, found.doubtful) == (expected, tuple(expected))


def test_a_name_beside_a_quotation_is_no_title() -> None:
    schema = tool("title", title=TEXT)
    found = read_arguments('create a ticket "Broken sink" for Ada', schema, now=NOW)
    assert found.arguments.get("title") != "Ada"


def test_near_days_are_dates_only_with_a_clock() -> None:
    found = read_arguments("weather in Bergen tomorrow", WEATHER)
    assert found.arguments == {"city": "Bergen"}
    assert found.unused == ("tomorrow",)


def test_the_server_a_task_names_is_no_value() -> None:
    task = "list the berths at Harbourmaster Pro"
    assert read_arguments(task, tool(limit=WHOLE)).unused == ("Harbourmaster Pro",)
    assert read_arguments(task, tool(limit=WHOLE), about="Harbourmaster Pro API").unused == ()


def test_each_argument_tells_its_origin_and_the_words_it_came_from() -> None:
    schema = tool(
        "zone", "server", "view", "page", "key", zone=TEXT, server=TEXT,
        view={"type": "string", "default": "public"}, page={"type": "integer", "examples": [1]},
        key=TEXT, note=TEXT,
    )  # fmt: skip
    found = read_arguments(
        "show zone example.org",
        schema,
        given={"note": "mine"},
        memory={"key": "k1", "zone": "other.example", "limit": 5},
        defaults={"server": "localhost"},
    )
    assert found.arguments == {
        "zone": "example.org",
        "server": "localhost",
        "view": "public",
        "page": 1,
        "key": "k1",
        "note": "mine",
    }
    assert found.origins == {
        "zone": "task",
        "server": "default",
        "view": "default",
        "page": "example",
        "key": "memory",
        "note": "given",
    }
    assert found.evidence["zone"] == "zone example.org"


def test_what_was_given_is_kept_whatever_the_task_says() -> None:
    found = read_arguments("show berth 12", BERTH, given={"berth_id": 14})
    assert found.arguments == {"berth_id": 14}
    assert found.origins == {"berth_id": "given"}


def test_a_value_that_was_given_and_is_said_too_is_not_left_over() -> None:
    found = read_arguments("weather in Bergen", WEATHER, given={"city": "Bergen"})
    assert found.unused == ()
    assert read_arguments("weather in Bergen", WEATHER, given={"city": "Oslo"}).unused == (
        "Bergen",
    )


def test_what_the_task_says_in_two_ways_is_not_filled_in_from_elsewhere() -> None:
    found = read_arguments(
        "show berth 12 or berth 14", BERTH, memory={"berth_id": 3}, defaults={"berth_id": 4}
    )
    assert found.missing == ("berth_id",)


def test_given_arguments_are_read_by_their_types_and_checked() -> None:
    assert read_arguments("", BERTH, given={"berth_id": "14"}).arguments == {"berth_id": 14}
    wrong = read_arguments("", BERTH, given={"berth_id": "fourteen"})
    assert wrong.problem
    assert not wrong.is_complete


@pytest.mark.parametrize("name", ["action", "method", "operation", "command", "purge"])
def test_words_never_choose_what_a_call_does_unless_they_are_quoted(name: str) -> None:
    schema = tool(name, **{name: listed("list", "delete")})
    for task in (f"{name} delete", f"{name}=delete", "delete it", f"the {name} is delete"):
        found = read_arguments(task, schema, memory={name: "delete"})
        assert found.arguments == {}
        assert found.missing == (name,)
    assert read_arguments(f'{name} "delete"', schema).arguments == {name: "delete"}


def test_a_free_text_that_chooses_is_not_filled_from_words() -> None:
    schema = tool("action", action=TEXT)
    assert read_arguments("action: purge", schema).missing == ("action",)
    assert read_arguments("do a purge of ABC-1", schema).missing == ("action",)


def test_a_path_comes_from_the_task_alone() -> None:
    schema = tool("content", content={"type": "string", "x-toolwright-file": True})
    found = read_arguments("upload the report", schema)
    assert found.missing == ("content",)
    assert read_arguments("upload /tmp/a.txt", FILE).arguments == {"path": "/tmp/a.txt"}


@pytest.mark.parametrize(
    ("task", "schema", "doubtful"),
    [
        ("weather in bergen", WEATHER, ("city",)),
        ("search for red boats", SEARCH, ("query",)),
        ("weather in Bergen", WEATHER, ()),
    ],
)
def test_words_that_may_mean_something_else_are_doubtful(
    task: str, schema: Mapping[str, Any], doubtful: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema)
    assert found.missing == ()
    assert found.doubtful == doubtful


SCHEMAS = [case[1] for case in READ]


@given(st.sampled_from(SCHEMAS), st.text(max_size=300))
def test_any_text_is_read_without_making_values_up(schema: Mapping[str, Any], task: str) -> None:
    found = read_arguments(task, schema)
    assert {*found.origins.values()} <= {"task"}
    if found.is_complete:
        assert get_checker(schema).find_problem(found.arguments) is None
    json.dumps(dict(found.arguments))


@given(
    st.sampled_from(READ), st.sampled_from(["", "please ", "Hello, "]), st.sampled_from(["", "."])
)
def test_politeness_changes_no_value(case: Any, before: str, after: str) -> None:
    task, schema, expected = case
    assert read_arguments(before + task + after, schema, now=NOW).arguments == expected


def test_a_task_past_the_limit_is_not_read() -> None:
    assert read_arguments("show berth 12" + " " * MAX_TASK, BERTH).missing == ("berth_id",)


def test_schemas_of_strangers_are_walked_within_bounds() -> None:
    endless = {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{name}"} for name in "als"},
        "$defs": {
            "a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": TEXT}},
            "l": {"type": "array", "items": {"$ref": "#/$defs/l"}},
            "r": {"$ref": "#/$defs/r"},
            "s": {"allOf": [{"$ref": "#/$defs/s"}, {"$ref": "#/$defs/s"}]},
        },
        "required": ["a"],
    }
    assert read_arguments("b 12", endless).arguments is not None
    wide = tool(*[f"p{n}" for n in range(5_000)], **{f"p{n}": TEXT for n in range(5_000)})
    assert len(read_arguments("p1 12", wide).missing) <= 200


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"a": True, "b": False, "c": 7}, "required": "a"},
        {"properties": {"a": {"enum": "x", "type": 7}}, "required": ["a"]},
        {"properties": {"a": {"anyOf": 3}}, "required": ["a"]},
        {"properties": {"": {"type": "string"}}, "required": [""]},
    ],
)
def test_schemas_of_the_wrong_shape_are_no_failure(schema: Mapping[str, Any]) -> None:
    assert read_arguments('a "x" 12 Bergen', schema) is not None


PROJECT = {
    "type": "object",
    "properties": {"project": {"type": "string", "description": "Name of the project"}},
    "required": ["project"],
}


@pytest.mark.parametrize(
    ("task", "project"),
    [
        ("get the release notes of the latest release of the project lantern", "lantern"),
        ("close the project lantern.", "lantern"),
        ("status of the project today", None),
        ("show the project", None),
        ("project lantern is late", None),
    ],
)
def test_a_plain_word_behind_a_parameters_name_is_read_where_a_clause_ends(
    task: str, project: str | None
) -> None:
    found = read_arguments(task, PROJECT)
    assert found.arguments.get("project") == project
    # Nothing in the word's form says that it is a value, so that it is asked about.
    assert found.doubtful == (("project",) if project else ())


@pytest.mark.parametrize(
    ("task", "schema", "arguments"),
    [
        ("which berths are empty?", BERTHS, {"free": True}),
        ("list vacant berths", BERTHS, {"free": True}),
        ("which berths are taken?", BERTHS, {"free": False}),
        ("which tickets are unresolved?", TICKETS, {"status": "open"}),
    ],
)
def test_another_word_for_a_state_is_read_and_has_to_be_shown(
    task: str, schema: Mapping[str, Any], arguments: dict[str, Any]
) -> None:
    found = read_arguments(task, schema)
    assert found.arguments == arguments
    assert found.doubtful == tuple(arguments)


def test_a_word_for_two_states_or_for_both_ends_of_one_is_left_out() -> None:
    bills = tool(status=listed("open", "paid", "overdue"))
    assert read_arguments("list unpaid invoices", bills).arguments == {}
    assert read_arguments("list empty and taken berths", BERTHS).arguments == {}


@pytest.mark.parametrize("task", ["are there open tickets?", "which tickets are open?"])
def test_the_verb_of_a_question_may_be_a_state(task: str) -> None:
    found = read_arguments(task, TICKETS)
    assert (found.arguments, found.doubtful) == ({"status": "open"}, ())
    assert read_arguments("open a ticket", TICKETS).arguments == {}


URGENCY = tool(priority=listed("low", "normal", "high", "urgent"), state=listed("open", "closed"))


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("list the open urgent tickets", {"priority": "urgent", "state": "open"}),
        ("list important tickets", {"priority": "high"}),
        ("list urgent and low tickets", {}),
    ],
)
def test_a_word_that_is_a_value_itself_stands_for_no_other_one(
    task: str, arguments: dict[str, Any]
) -> None:
    assert read_arguments(task, URGENCY).arguments == arguments


SHIFTS = tool(from_=DAY, to=DAY, room=TEXT)
ROOM = tool("room", room=TEXT)
NOTE = tool("key", "body", key=TEXT, body=tool("text", text=TEXT, title=TEXT))
PRICE = tool("sku", "price", sku=TEXT, price=NUMBER)
REPORT = tool("title", title=TEXT, priority=listed("low", "high"))
DOUBTED = [
    ("list the shifts on 2026-12-01", SHIFTS,
     {"from": "2026-12-01", "to": "2026-12-01"}, ("from", "to")),
    ("list the shifts tomorrow", SHIFTS,
     {"from": "2026-11-25", "to": "2026-11-25"}, ("from", "to")),
    ("list the shifts since 2026-12-01", SHIFTS, {"from": "2026-12-01"}, ()),
    ("list the shifts until 2026-12-01", SHIFTS, {"to": "2026-12-01"}, ()),
    ("is the Blue room free", ROOM, {"room": "Blue"}, ("room",)),
    ("are Blue rooms free", ROOM, {}, ()),
    ("comment on APP-12: fixed in build 77", NOTE,
     {"key": "APP-12", "body": {"text": "fixed in build 77"}}, ("body.text",)),
    ("comment on APP-12", NOTE, {"key": "APP-12"}, ()),
    ("set the price of TEA-1 to 5.20", PRICE, {"sku": "TEA-1", "price": 5.2}, ()),
    ("report a fault for Mira Holt", REPORT, {"title": "Mira Holt"}, ("title",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "schema", "arguments", "doubtful"), DOUBTED, ids=[case[0] for case in DOUBTED]
)
def test_what_only_the_place_of_a_value_says_is_read_and_has_to_be_shown(
    task: str,
    schema: Mapping[str, Any],
    arguments: dict[str, Any],
    doubtful: tuple[str, ...],
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert (found.arguments, found.doubtful) == (arguments, doubtful)


@pytest.mark.parametrize(
    "task",
    ["add a pet to the team called Rockets", "add a pet to our team named Rockets", "rename a pet"],
)
def test_a_name_of_another_thing_is_not_read(task: str) -> None:
    assert "name" not in read_arguments(task, PET, now=NOW).arguments.get("body", {})


FLEET = tool(kind=listed("van", "truck"), available=FLAG)
REPORT = tool(period=listed("daily", "weekly"))


@pytest.mark.parametrize(
    ("task", "name", "schema", "expected"),
    [
        ("list the vans", "list_vans", FLEET, {}),
        ("which vans are available", "list_vans", FLEET, {"available": True}),
        ("list the trucks", "list_vans", FLEET, {"kind": "truck"}),
        ("list the vehicles of kind van", "list_vans", FLEET, {"kind": "van"}),
        ("list the vans", "list_vehicles", FLEET, {"kind": "van"}),
        ("show the daily report", "get_daily_report", REPORT, {"period": "daily"}),
    ],
)
def test_the_word_for_what_a_tool_is_about_chooses_nothing(
    task: str, name: str, schema: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    found = read_arguments(task, schema, now=NOW, tool=name)
    assert (found.arguments, found.unused) == (expected, ())


SHELF = tool("item_id", "body", item_id=WHOLE, body={
    "type": "object", "properties": {"rack": TEXT, "count": WHOLE},
    "required": ["rack"]})  # fmt: skip
GUEST = tool("guest_id", "body", guest_id=WHOLE, body={
    "type": "object", "properties": {"name": TEXT, "phone": TEXT}})  # fmt: skip
NAMED = tool(last_name=TEXT, q=TEXT)


@pytest.mark.parametrize(
    ("task", "schema", "expected"),
    [
        ("move item 1 to rack B", SHELF, {"item_id": 1, "body": {"rack": "B"}}),
        ("put item 3 in the rack 5-10", SHELF, {"item_id": 3, "body": {"rack": "5-10"}}),
        (
            "change the phone of guest 2 to 555-9",
            GUEST,
            {"guest_id": 2, "body": {"phone": "555-9"}},
        ),
        (
            "change the phone number of guest 2 to 99",
            GUEST,
            {"guest_id": 2, "body": {"phone": "99"}},
        ),
        (
            "update guest 2, phone +49 171 (55) 20",
            GUEST,
            {"guest_id": 2, "body": {"phone": "+49 171 (55) 20"}},
        ),
        ("guests called Berg", NAMED, {"last_name": "Berg"}),
        ("change guest 2 name to Ann Lee", GUEST, {"guest_id": 2, "body": {"name": "Ann Lee"}}),
        (
            "open a ticket: title Screen broken, assignee Bob",
            TITLED,
            {"body": {"title": "Screen broken", "assignee": "Bob"}},
        ),
    ],
)
def test_plain_values_behind_the_name_of_an_argument_are_read(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert (found.arguments, found.missing, found.unused) == (expected, (), ())


EVENTS = tool(from_=DAY, to=DAY)
OPENED = tool(opened_after=DAY, opened_before=DAY)
CALENDAR = tool(start_after=TIME, start_before=TIME)


@pytest.mark.parametrize(
    ("task", "schema", "expected", "doubtful"),
    [
        # NOW is a Tuesday, 24 November 2026.
        ("events after 3 December", EVENTS, {"from": "2026-12-03"}, ("from",)),
        ("events since 3 November", EVENTS, {"from": "2026-11-03"}, ()),
        ("events from Dec 3rd to December 5", EVENTS, {"from": "2026-12-03", "to": "2026-12-05"},
         ()),
        ("tickets opened after 1 March", OPENED, {"opened_after": "2026-03-01"}, ()),
        ("tickets opened after 1 December", OPENED, {"opened_after": "2025-12-01"},
         ("opened_after",)),
        ("events until 15 January", EVENTS, {"to": "2027-01-15"}, ("to",)),
        ("events until Friday", EVENTS, {"to": "2026-11-27"}, ()),
        ("events until Tuesday", EVENTS, {"to": "2026-12-01"}, ("to",)),
        ("events next week", EVENTS, {"from": "2026-11-30", "to": "2026-12-06"}, ("from", "to")),
        ("events last month", EVENTS, {"from": "2026-10-01", "to": "2026-10-31"}, ("from", "to")),
        ("meetings this week", CALENDAR,
         {"start_after": "2026-11-23T00:00:00+00:00", "start_before": "2026-11-29T23:59:59+00:00"},
         ("start_after", "start_before")),
        ("meetings that start after 1 December", CALENDAR,
         {"start_after": "2026-12-01T00:00:00+00:00"}, ("start_after",)),
        ("move meeting 1 to tomorrow at 3pm", MOVED,
         {"meeting_id": 1, "start": "2026-11-25T15:00:00+00:00"}, ("start",)),
        ("move meeting 1 to 9:30 on Friday", MOVED,
         {"meeting_id": 1, "start": "2026-11-27T09:30:00+00:00"}, ("start",)),
        ("move meeting 1 to 2026-12-09 11:00", MOVED,
         {"meeting_id": 1, "start": "2026-12-09T11:00:00+00:00"}, ("start",)),
    ],
)  # fmt: skip
def test_days_and_times_are_read_from_the_day_on_which_they_are_said(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any], doubtful: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert (found.arguments, found.unused) == (expected, ())
    assert tuple(dict.fromkeys(found.doubtful)) == doubtful


STATED = tool(status=listed("open", "closed"), opened_after=DAY)
TWO = tool(opened_after=DAY, closed_after=DAY)


@pytest.mark.parametrize(
    ("task", "schema", "expected", "doubtful"),
    [
        ("tickets opened after 1 March", STATED, {"opened_after": "2026-03-01"}, ()),
        ("opened tickets", STATED, {"status": "open"}, ()),
        ("tickets closed after 1 March", STATED,
         {"opened_after": "2026-03-01", "status": "closed"}, ("status", "opened_after")),
        ("tickets opened tomorrow", STATED, {"opened_after": "2026-11-25"}, ("opened_after",)),
        ("tickets closed after 1 March", TWO, {"closed_after": "2026-03-01"}, ()),
        ("tickets since 1 March", TWO, {"opened_after": "2026-03-01"}, ("opened_after",)),
    ],
)  # fmt: skip
def test_what_happened_at_a_time_is_no_state_and_no_other_field(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any], doubtful: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert (found.arguments, tuple(found.doubtful)) == (expected, doubtful)


STAYING = tool("dog_id", "check_in", "check_out", dog_id=WHOLE, check_in=DAY, check_out=DAY)
PUPIL = tool("firstName", "lastName", firstName=TEXT, lastName=TEXT)
ORDERED = tool("number", number=TEXT)
LESSON = tool("student", student=WHOLE, minutes=WHOLE)


@pytest.mark.parametrize(
    ("task", "schema", "expected", "unused"),
    [
        ("book dog 2 in from 5 December to 9 December", STAYING,
         {"dog_id": 2, "check_in": "2026-12-05", "check_out": "2026-12-09"}, ()),
        ("enrol a student named Lisa Bell", PUPIL, {"firstName": "Lisa", "lastName": "Bell"}, ()),
        ("orders of Jon Dahl", ORDERED, {}, ("Jon Dahl",)),
        ("orders from 1815", ORDERED, {}, ("1815",)),
        ("plan a 45 minute lesson for student 2", LESSON, {"student": 2, "minutes": 45}, ()),
        ("move item 1 from rack A to rack B", SHELF, {"item_id": 1, "body": {"rack": "B"}},
         ("A",)),
        ("events in December", EVENTS, {"from": "2026-12-01", "to": "2026-12-31"}, ()),
        ("events in March 2027", EVENTS, {"from": "2027-03-01", "to": "2027-03-31"}, ()),
    ],
)  # fmt: skip
def test_values_go_where_the_words_around_them_say(
    task: str, schema: Mapping[str, Any], expected: Mapping[str, Any], unused: tuple[str, ...]
) -> None:
    found = read_arguments(task, schema, now=NOW)
    assert (found.arguments, found.unused) == (expected, unused)


def test_what_is_after_a_day_is_not_on_it() -> None:
    on, after = (
        read_arguments(f"events {word} tomorrow", tool(day=DAY), now=NOW) for word in ("", "after")
    )
    assert on.arguments == after.arguments == {"day": "2026-11-25"}
    assert (on.doubtful, after.doubtful) == ((), ("day",))


@pytest.mark.parametrize(
    "said",
    ["next Friday", "last Friday", "29 February", "Friday morning", "every Friday", "last week"],
)
def test_days_that_may_be_two_are_asked_for(said: str) -> None:
    assert read_arguments(f"events until {said}", EVENTS, now=NOW).arguments == {}


REJECT = tool("id", "reason", id=WHOLE, reason=TEXT)
FLAGGED = tool("body", body=tool("key", "name", key=TEXT, name=TEXT, owner=TEXT))
NOTED = tool("id", id=WHOLE, body=tool(note=TEXT, score=WHOLE))
WEIGHED = tool("pet_id", pet_id=WHOLE, body=tool(name=TEXT, weight_kg=NUMBER))
SLIPS = tool("employee_id", employee_id=TEXT, year=WHOLE)
BONUS = tool("body", body=tool("employee_id", "amount", employee_id=TEXT, amount=NUMBER))
WARMTH = tool("room", "celsius", room=TEXT, celsius=NUMBER)
SHARE = tool("key", "percentage", key=TEXT, percentage=WHOLE)


@pytest.mark.parametrize(
    ("task", "schema", "name", "expected"),
    [
        ("reject report 3, reason: two receipts missing", REJECT, "reject_report",
         {"id": 3, "reason": "two receipts missing"}),
        ("reject report 3 because two receipts are missing.", REJECT, "reject_report",
         {"id": 3, "reason": "two receipts are missing"}),
        ("reject report 3, reason: duplicate", REJECT, "reject_report",
         {"id": 3, "reason": "duplicate"}),
        ("create a flag with key quick-pay and name Quick pay", FLAGGED, "create_flag",
         {"body": {"key": "quick-pay", "name": "Quick pay"}}),
        ("create a flag with name Quick pay and more, key quick-pay", FLAGGED, "create_flag",
         {"body": {"key": "quick-pay", "name": "Quick pay"}}),
        ("score report 3 with note well explained", NOTED, "score_report",
         {"id": 3, "body": {"note": "well explained"}}),
        ("change the weight of pet 13 to 0.45", WEIGHED, "update_pet",
         {"pet_id": 13, "body": {"weight_kg": 0.45}}),
        ("change the weight of pet 13 to 450 g", WEIGHED, "update_pet",
         {"pet_id": 13, "body": {"weight_kg": 0.45}}),
        ("payslips of employee E101 for 2026", SLIPS, "list_payslips",
         {"employee_id": "E101", "year": 2026}),
        ("payslips of employee E101 over 2026", SLIPS, "list_payslips", {"employee_id": "E101"}),
        ("give Sofia Marino a bonus of 1500", BONUS, "grant_bonus", {"body": {"amount": 1500}}),
        ("set the bedroom to 19 degrees", WARMTH, "set_temperature", {"celsius": 19}),
        ("roll dark-mode out to 50 percent", SHARE, "set_rollout", {"percentage": 50}),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)  # fmt: skip
def test_texts_years_and_amounts_are_read_by_the_words_beside_them(
    task: str, schema: Mapping[str, Any], name: str, expected: Mapping[str, Any]
) -> None:
    assert read_arguments(task, schema, now=NOW, tool=name).arguments == expected


PARKED = tool(zone=listed("A", "B"), plate=TEXT)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("permits in zone A", {"zone": "A"}),
        ("zone B permits", {"zone": "B"}),
        ("a permit for the zone a friend lives in", {}),
        ("permits of class A", {}),
    ],
)
def test_a_value_of_one_letter_is_read_behind_the_name_of_its_argument(
    task: str, expected: Mapping[str, Any]
) -> None:
    found = read_arguments(task, PARKED, now=NOW, tool="list_permits").arguments
    assert found == expected


OWNERS_PETS = tool("owner_id", owner_id=WHOLE)
FINE = tool("fine_no", fine_no=WHOLE)
BILLS = tool(customer_id=TEXT, status=listed("open", "paid"))


@pytest.mark.parametrize(
    ("task", "schema", "name", "expected"),
    [
        ("the owner of pet 11", OWNERS_PETS, "list_owner_pets", {}),
        ("the pets of owner 11", OWNERS_PETS, "list_owner_pets", {"owner_id": 11}),
        ("fines of 120", FINE, "get_fine", {}),
        ("the amount of fine 120", FINE, "get_fine", {"fine_no": 120}),
        ("batches of 12", TICKET, "get_batch", {}),
        ("the pets of 11", OWNERS_PETS, "list_owner_pets", {"owner_id": 11}),
        ("the status of invoice INV-2026-003", BILLS, "list_invoices", {}),
        ("the invoices of C-17", BILLS, "list_invoices", {"customer_id": "C-17"}),
    ],
)
def test_an_id_behind_the_word_for_another_thing_is_no_id_of_this_one(
    task: str, schema: Mapping[str, Any], name: str, expected: Mapping[str, Any]
) -> None:
    assert read_arguments(task, schema, now=NOW, tool=name).arguments == expected


SINCE = tool(published_after=WHOLE, city=TEXT)


@pytest.mark.parametrize(
    ("task", "expected", "doubtful"),
    [
        ("books since 2011", {"published_after": 2011}, ()),
        ("books from 2011 on", {"published_after": 2011}, ()),
        ("books from 2011", {"published_after": 2011}, ("published_after",)),
        ("books in Bern", {"city": "Bern"}, ()),
        ("books in bern", {"city": "bern"}, ("city",)),
    ],
)
def test_a_year_that_may_be_meant_itself_and_a_place_without_a_capital_have_to_be_shown(
    task: str, expected: Mapping[str, Any], doubtful: tuple[str, ...]
) -> None:
    found = read_arguments(task, SINCE, now=NOW, tool="list_books")
    assert (found.arguments, found.doubtful) == (expected, doubtful)
