"""The eighteen services: twelve that are registered before the tasks come, six that nobody has."""

from __future__ import annotations

from bench.doing.apis import (
    Api,
    Arguments,
    Operation,
    Parameter,
    Reply,
    Rows,
    add_row,
    change_row,
    find_row,
    get_row,
    list_rows,
    remove_row,
)

ID = Parameter("id", "The number of the record", "integer", required=True)
BERTH = {"id": 1, "pier": "north", "length": 12, "free": True, "price": 40}
ZONE = {"name": "example.org", "kind": "master", "serial": 7}
RECORD = {"id": 1, "zone": "example.org", "type": "A", "content": "192.0.2.1", "ttl": 300}
INVOICE = {"id": 1, "customer": "Acme", "amount": 120.5, "status": "open", "due": "2031-03-01"}
PARCEL = {"number": "PX100", "status": "in transit", "city": "Lyon", "weight": 2.5}
BOOK = {"id": 1, "title": "Moby Dick", "author": "Melville", "copies": 2, "isbn": "9780142437247"}
STAFF = {"id": 1, "name": "Ada Berg", "team": "billing", "mail": "ada@corp.example", "phone": "11"}
TICKET = {"id": 1, "subject": "Printer on fire", "priority": "high", "state": "open", "owner": "Bo"}
RECIPE = {"id": 1, "title": "Leek soup", "cuisine": "french", "minutes": 35, "servings": 4}
FLIGHT = {
    "number": "SK401",
    "origin": "OSL",
    "destination": "BGO",
    "status": "delayed",
    "gate": "C",
}
SENSOR = {"id": "s-1", "room": "cellar", "celsius": 11.5, "humidity": 70}
PAINTING = {"id": 1, "title": "The Wave", "artist": "Hokusai", "year": 1831, "room": 4}
TIDE = {"port": "Brest", "high": "06:12", "low": "12:40", "metres": 6.1}
TRAM = {"line": "5", "stop": "Market", "minutes": 4}
PLANT = {"id": 1, "name": "Basil", "light": "sun", "days": 2}
SHARE = {"symbol": "ACME", "price": 12.5, "currency": "EUR"}
HOLIDAY = {"date": "2031-05-01", "name": "Labour Day", "country": "NO"}


def _convert(rows: Rows, given: Arguments) -> Reply:
    rates = {row["code"]: row["euro"] for row in rows["rates"]}
    source, target = str(given["source"]).upper(), str(given["target"]).upper()
    if source not in rates or target not in rates:
        return 404, {"error": "no such currency"}
    result = float(given["amount"]) / rates[source] * rates[target]
    return 200, {"amount": round(result, 2), "currency": target}


def _forecast(rows: Rows, given: Arguments) -> Reply:
    row = find_row(rows["places"], "city", given["city"])
    if row is None:
        return 404, {"error": f"no weather for {given['city']}"}
    fahrenheit = given.get("units") == "fahrenheit"
    degrees = row["celsius"] * 9 / 5 + 32 if fahrenheit else row["celsius"]
    return 200, {"city": row["city"], "degrees": degrees, "sky": row["sky"]}


HARBOUR = Api(
    "harbour",
    "Harbour",
    "Berths of a marina and their bookings.",
    (
        Operation(
            "GET",
            "/berths",
            "listBerths",
            "List berths",
            list_rows("berths", "pier", "free"),
            (
                Parameter("pier", "Only berths of this pier", choices=("north", "south")),
                Parameter("free", "Only berths that are free, or taken", "boolean"),
                Parameter("limit", "At most so many", "integer"),
            ),
            answer=[BERTH],
        ),
        Operation(
            "GET",
            "/berths/{id}",
            "getBerth",
            "Show a berth",
            get_row("berths"),
            (ID,),
            answer=BERTH,
        ),
        Operation(
            "POST",
            "/bookings",
            "bookBerth",
            "Book a berth for a boat",
            add_row("bookings", "berth", "boat"),
            body=(
                Parameter("berth", "The berth's number", "integer", required=True),
                Parameter("boat", "The boat's name", required=True),
            ),
            answer={"id": 1, "berth": 1, "boat": "Nemo"},
        ),
    ),
    {
        "berths": [
            BERTH,
            {"id": 2, "pier": "north", "length": 9, "free": False, "price": 30},
            {"id": 3, "pier": "south", "length": 15, "free": True, "price": 55},
        ],
        "bookings": [],
    },
)
WEATHER = Api(
    "weather",
    "Weather",
    "The weather of today by city.",
    (
        Operation(
            "GET",
            "/weather",
            "getWeather",
            "Get the weather of a city",
            _forecast,
            (
                Parameter("city", "Name of the city", required=True),
                Parameter("units", "Unit of degrees", choices=("celsius", "fahrenheit")),
            ),
            answer={"city": "Oslo", "degrees": 3.5, "sky": "rain"},
        ),
        Operation(
            "GET",
            "/stations",
            "listStations",
            "List weather stations",
            list_rows("places"),
            answer=[{"city": "Oslo", "celsius": 3.5, "sky": "rain"}],
        ),
    ),
    {
        "places": [
            {"city": "Oslo", "celsius": 3.5, "sky": "rain"},
            {"city": "Bergen", "celsius": 8.0, "sky": "storm"},
            {"city": "Seville", "celsius": 31.0, "sky": "clear"},
        ]
    },
)
DNS = Api(
    "dns",
    "DNS zones",
    "Zones and records of name servers.",
    (
        Operation(
            "GET", "/zones", "listZones", "List all zones", list_rows("zones"), answer=[ZONE]
        ),
        Operation(
            "GET",
            "/zones/{name}",
            "getZone",
            "Show a zone",
            get_row("zones", "name"),
            (Parameter("name", "The zone's domain name", required=True),),
            answer=ZONE,
        ),
        Operation(
            "GET",
            "/records",
            "listRecords",
            "List DNS records of a zone",
            list_rows("records", "zone", "type"),
            (
                Parameter("zone", "The zone's domain name", required=True),
                Parameter("type", "Type of record", choices=("A", "AAAA", "MX", "TXT")),
            ),
            answer=[RECORD],
        ),
        Operation(
            "POST",
            "/records",
            "createRecord",
            "Create a DNS record",
            add_row("records", "zone", "type", "content"),
            body=(
                Parameter("zone", "The zone's domain name", required=True),
                Parameter("type", "Type of record", required=True),
                Parameter("content", "The record's value", required=True),
            ),
            answer=RECORD,
        ),
        Operation(
            "DELETE",
            "/records/{id}",
            "deleteRecord",
            "Delete a DNS record",
            remove_row("records"),
            (ID,),
            answer={"removed": "1"},
        ),
    ),
    {
        "zones": [ZONE, {"name": "example.net", "kind": "slave", "serial": 3}],
        "records": [
            RECORD,
            {"id": 2, "zone": "example.org", "type": "MX", "content": "mx.example", "ttl": 60},
            {"id": 3, "zone": "example.net", "type": "TXT", "content": "v=spf1", "ttl": 60},
        ],
    },
)
INVOICES = Api(
    "invoices",
    "Invoices",
    "Bills of a company's customers.",
    (
        Operation(
            "GET",
            "/invoices",
            "listInvoices",
            "List invoices",
            list_rows("invoices", "status", "customer"),
            (
                Parameter("status", "Only of this status", choices=("open", "paid", "overdue")),
                Parameter("customer", "Only of this customer"),
            ),
            answer=[INVOICE],
        ),
        Operation(
            "GET",
            "/invoices/{id}",
            "getInvoice",
            "Show an invoice",
            get_row("invoices"),
            (ID,),
            answer=INVOICE,
        ),
        Operation(
            "PATCH",
            "/invoices/{id}",
            "updateInvoice",
            "Change the status of an invoice",
            change_row("invoices", "status"),
            (ID,),
            (Parameter("status", "The new status", required=True, choices=("open", "paid")),),
            INVOICE,
        ),
    ),
    {
        "invoices": [
            INVOICE,
            {"id": 2, "customer": "Borg", "amount": 80.0, "status": "overdue", "due": "2031-01-01"},
            {"id": 3, "customer": "Acme", "amount": 10.0, "status": "paid", "due": "2031-02-01"},
        ]
    },
)
PARCELS = Api(
    "parcels",
    "Parcel tracking",
    "Where parcels are.",
    (
        Operation(
            "GET",
            "/parcels/{number}",
            "trackParcel",
            "Track a parcel by its number",
            get_row("parcels", "number"),
            (Parameter("number", "The tracking number", required=True),),
            answer=PARCEL,
        ),
        Operation(
            "GET",
            "/depots",
            "listDepots",
            "List parcel depots in a city",
            list_rows("depots", "city"),
            (Parameter("city", "Name of the city", required=True),),
            answer=[{"city": "Lyon", "street": "Quai 3"}],
        ),
    ),
    {
        "parcels": [
            PARCEL,
            {"number": "PX200", "status": "delivered", "city": "Gent", "weight": 1},
        ],
        "depots": [{"city": "Lyon", "street": "Quai 3"}, {"city": "Gent", "street": "Kaai 9"}],
    },
)
LIBRARY = Api(
    "library",
    "Town library",
    "Books and loans.",
    (
        Operation(
            "GET",
            "/books",
            "searchBooks",
            "Search books by author or title",
            list_rows("books", "author", "title"),
            (Parameter("author", "The author's name"), Parameter("title", "The book's title")),
            answer=[BOOK],
        ),
        Operation(
            "GET",
            "/books/{isbn}",
            "getBook",
            "Show a book by its ISBN",
            get_row("books", "isbn"),
            (Parameter("isbn", "The book's ISBN", required=True),),
            answer=BOOK,
        ),
        Operation(
            "POST",
            "/loans",
            "borrowBook",
            "Borrow a book for a reader",
            add_row("loans", "book", "reader"),
            body=(
                Parameter("book", "The book's number", "integer", required=True),
                Parameter("reader", "The reader's name", required=True),
            ),
            answer={"id": 1, "book": 1, "reader": "Ida"},
        ),
    ),
    {
        "books": [
            BOOK,
            {"id": 2, "title": "Emma", "author": "Austen", "copies": 0, "isbn": "9780141439587"},
        ],
        "loans": [],
    },
)
MONEY = Api(
    "money",
    "Exchange rates",
    "Currencies and what they are worth.",
    (
        Operation(
            "GET",
            "/convert",
            "convertCurrency",
            "Convert an amount of money to another currency",
            _convert,
            (
                Parameter("amount", "How much", "number", required=True),
                Parameter("source", "ISO 4217 code of the currency to convert from", required=True),
                Parameter("target", "ISO 4217 code of the currency to convert to", required=True),
            ),
            answer={"amount": 1.5, "currency": "USD"},
        ),
        Operation(
            "GET",
            "/currencies",
            "listCurrencies",
            "List the currencies",
            list_rows("rates"),
            answer=[{"code": "USD", "euro": 1.1}],
        ),
    ),
    {
        "rates": [
            {"code": "EUR", "euro": 1},
            {"code": "USD", "euro": 1.25},
            {"code": "NOK", "euro": 10},
        ]
    },
)
PEOPLE = Api(
    "people",
    "Staff directory",
    "Who works here and how they are reached.",
    (
        Operation(
            "GET",
            "/employees",
            "listEmployees",
            "List employees",
            list_rows("employees", "team", "name"),
            (
                Parameter("team", "Only of this team"),
                Parameter("name", "The employee's full name"),
            ),
            answer=[STAFF],
        ),
        Operation(
            "GET",
            "/employees/{id}",
            "getEmployee",
            "Show an employee",
            get_row("employees"),
            (ID,),
            answer=STAFF,
        ),
        Operation(
            "PATCH",
            "/employees/{id}",
            "updateEmployee",
            "Change an employee's phone or team",
            change_row("employees", "phone", "team"),
            (ID,),
            (Parameter("phone", "Phone number"), Parameter("team", "Team")),
            STAFF,
        ),
    ),
    {
        "employees": [
            STAFF,
            {
                "id": 2,
                "name": "Bo Lund",
                "team": "support",
                "mail": "bo@corp.example",
                "phone": "22",
            },
            {
                "id": 3,
                "name": "Cy Ros",
                "team": "billing",
                "mail": "cy@corp.example",
                "phone": "33",
            },
        ]
    },
)
TICKETS = Api(
    "tickets",
    "Support tickets",
    "Problems that customers reported.",
    (
        Operation(
            "GET",
            "/tickets",
            "listTickets",
            "List support tickets",
            list_rows("tickets", "state", "priority", "owner"),
            (
                Parameter("state", "Only in this state", choices=("open", "closed")),
                Parameter("priority", "Only of this priority", choices=("low", "high")),
                Parameter("owner", "Only of this owner"),
            ),
            answer=[TICKET],
        ),
        Operation(
            "POST",
            "/tickets",
            "createTicket",
            "Open a support ticket",
            add_row("tickets", "subject", "priority", "state"),
            body=(
                Parameter("subject", "What is wrong", required=True),
                Parameter("priority", "How urgent it is", choices=("low", "high")),
            ),
            answer=TICKET,
        ),
        Operation(
            "POST",
            "/tickets/{id}/close",
            "closeTicket",
            "Close a support ticket",
            change_row("tickets"),
            (ID,),
            answer=TICKET,
        ),
    ),
    {
        "tickets": [
            TICKET,
            {"id": 2, "subject": "No sound", "priority": "low", "state": "open", "owner": "Cy"},
            {"id": 3, "subject": "Lost key", "priority": "low", "state": "closed", "owner": "Bo"},
        ]
    },
)
RECIPES = Api(
    "recipes",
    "Cookbook",
    "Recipes.",
    (
        Operation(
            "GET",
            "/recipes",
            "searchRecipes",
            "Search recipes",
            list_rows("recipes", "cuisine"),
            (Parameter("cuisine", "Kind of cooking", choices=("french", "italian", "japanese")),),
            answer=[RECIPE],
        ),
        Operation(
            "GET",
            "/recipes/{id}",
            "getRecipe",
            "Show a recipe",
            get_row("recipes"),
            (ID,),
            answer=RECIPE,
        ),
    ),
    {
        "recipes": [
            RECIPE,
            {"id": 2, "title": "Risotto", "cuisine": "italian", "minutes": 40, "servings": 2},
            {"id": 3, "title": "Miso soup", "cuisine": "japanese", "minutes": 15, "servings": 2},
        ]
    },
)
FLIGHTS = Api(
    "flights",
    "Airport board",
    "Departures of today.",
    (
        Operation(
            "GET",
            "/flights/{number}",
            "getFlight",
            "Get the status of a flight",
            get_row("flights", "number"),
            (Parameter("number", "The flight number", required=True),),
            answer=FLIGHT,
        ),
        Operation(
            "GET",
            "/departures",
            "listDepartures",
            "List departures from an airport",
            list_rows("flights", "origin", "destination"),
            (
                Parameter("origin", "IATA code of the airport", required=True),
                Parameter("destination", "IATA code of the airport it flies to"),
            ),
            answer=[FLIGHT],
        ),
    ),
    {
        "flights": [
            FLIGHT,
            {
                "number": "DY12",
                "origin": "OSL",
                "destination": "CDG",
                "status": "on time",
                "gate": "A",
            },
        ]
    },
)
SENSORS = Api(
    "sensors",
    "House sensors",
    "Measurements in the rooms of a house, and its heating.",
    (
        Operation(
            "GET",
            "/readings",
            "listReadings",
            "List temperature and humidity readings of rooms",
            list_rows("readings", "room"),
            (Parameter("room", "Only of this room"),),
            answer=[SENSOR],
        ),
        Operation(
            "PUT",
            "/heating/{room}",
            "setHeating",
            "Set the heating of a room",
            change_row("heating", "celsius", key="room"),
            (Parameter("room", "The room", required=True),),
            (Parameter("celsius", "Degrees to keep", "number", required=True),),
            {"room": "cellar", "celsius": 12.5},
        ),
    ),
    {
        "readings": [SENSOR, {"id": "s-2", "room": "attic", "celsius": 24.5, "humidity": 30}],
        "heating": [{"room": "cellar", "celsius": 12.0}, {"room": "attic", "celsius": 18.0}],
    },
)
REGISTERED = (
    HARBOUR,
    WEATHER,
    DNS,
    INVOICES,
    PARCELS,
    LIBRARY,
    MONEY,
    PEOPLE,
    TICKETS,
    RECIPES,
    FLIGHTS,
    SENSORS,
)
MUSEUM = Api(
    "museum",
    "Museum collection",
    "Paintings of a museum.",
    (
        Operation(
            "GET",
            "/paintings",
            "listPaintings",
            "List paintings",
            list_rows("paintings", "artist"),
            (Parameter("artist", "Only of this artist"),),
            answer=[PAINTING],
        ),
    ),
    {
        "paintings": [
            PAINTING,
            {"id": 2, "title": "Iris", "artist": "Monet", "year": 1914, "room": 2},
        ]
    },
)
TIDES = Api(
    "tides",
    "Tide tables",
    "High and low water.",
    (
        Operation(
            "GET",
            "/tides/{port}",
            "getTides",
            "Get high and low water of a port",
            get_row("tides", "port"),
            (Parameter("port", "Name of the port", required=True),),
            answer=TIDE,
        ),
    ),
    {"tides": [TIDE, {"port": "Dover", "high": "01:05", "low": "07:30", "metres": 6.8}]},
)
TRAMS = Api(
    "trams",
    "City trams",
    "When the next tram comes.",
    (
        Operation(
            "GET",
            "/arrivals",
            "listArrivals",
            "List the next trams at a stop",
            list_rows("arrivals", "stop"),
            (Parameter("stop", "Name of the stop", required=True),),
            answer=[TRAM],
        ),
    ),
    {"arrivals": [TRAM, {"line": "9", "stop": "Castle", "minutes": 11}]},
)
PLANTS = Api(
    "plants",
    "House plants",
    "How to care for plants.",
    (
        Operation(
            "GET",
            "/plants",
            "listPlants",
            "List plants with the light they need",
            list_rows("plants", "light"),
            (Parameter("light", "Only plants that like it", choices=("sun", "shade")),),
            answer=[PLANT],
        ),
    ),
    {"plants": [PLANT, {"id": 2, "name": "Fern", "light": "shade", "days": 4}]},
)
SHARES = Api(
    "shares",
    "Share prices",
    "Prices of shares.",
    (
        Operation(
            "GET",
            "/quotes/{symbol}",
            "getQuote",
            "Get the price of a share by its symbol",
            get_row("quotes", "symbol"),
            (Parameter("symbol", "The share's ticker symbol", required=True),),
            answer=SHARE,
        ),
    ),
    {"quotes": [SHARE, {"symbol": "BORG", "price": 99.0, "currency": "USD"}]},
)
HOLIDAYS = Api(
    "holidays",
    "Public holidays",
    "Days without work.",
    (
        Operation(
            "GET",
            "/holidays",
            "listHolidays",
            "List public holidays of a country",
            list_rows("holidays", "country"),
            (Parameter("country", "ISO code of the country", required=True),),
            answer=[HOLIDAY],
        ),
    ),
    {"holidays": [HOLIDAY, {"date": "2031-07-14", "name": "Bastille Day", "country": "FR"}]},
)
UNREGISTERED = (MUSEUM, TIDES, TRAMS, PLANTS, SHARES, HOLIDAYS)
