"""Eight more services, and tasks about them that no rule was made for: what is done unasked.

A task has the request that it means, "" where none of the services can do it or nothing is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.doing.apis import (
    Api,
    Operation,
    Parameter,
    add_row,
    change_row,
    get_row,
    list_rows,
    remove_row,
)

ID = Parameter("id", "The number of the record", "integer", required=True)
BARREL = {"id": 7, "variety": "merlot", "litres": 225, "cellar": "east", "filled": "2030-10-02"}
LESSON = {"id": 3, "title": "Yoga basics", "day": "monday", "trainer": "Ines Duarte", "seats": 12}
TRAINER = {"id": 1, "name": "Ines Duarte", "sport": "yoga", "phone": "555-01"}
VEHICLE = {"plate": "AB-123", "model": "Sprinter", "status": "idle", "driver": "Jon", "mileage": 9}
PRINTER = {"name": "laser-2", "floor": 2, "toner": 40, "state": "ready"}
JOB = {"id": 91, "printer": "laser-2", "pages": 4, "owner": "Mia"}
GUEST = {"id": 5, "name": "Lars Holm", "room": 12, "nights": 3, "country": "DK"}
ROOM = {"number": 12, "beds": 4, "free": True, "price": 28}
ACCOUNT = {"number": "1002003", "owner": "Mia Falk", "balance": 310.5, "currency": "EUR"}
TRANSFER = {"id": 1, "account": "1002003", "amount": 20, "to": "4005006", "date": "2031-01-04"}
TELESCOPE = {"id": 2, "name": "Big Eye", "aperture": 80, "dome": "west"}
COMET = {"name": "Halley", "period": 76, "magnitude": 2.1}
STOP = {"code": "K12", "name": "Old Bridge", "lines": 3, "shelter": True}

VINEYARD = Api(
    "vineyard",
    "Wine cellar",
    "Barrels of a winery.",
    (
        Operation(
            "GET",
            "/barrels",
            "listBarrels",
            "List barrels",
            list_rows("barrels", "variety", "cellar"),
            (
                Parameter("variety", "Only of this grape", choices=("merlot", "riesling")),
                Parameter("cellar", "Only in this cellar", choices=("east", "west")),
            ),
            answer=[BARREL],
        ),
        Operation(
            "GET",
            "/barrels/{id}",
            "getBarrel",
            "Show a barrel",
            get_row("barrels"),
            (ID,),
            answer=BARREL,
        ),
        Operation(
            "POST",
            "/barrels/{id}/empty",
            "emptyBarrel",
            "Empty a barrel",
            change_row("barrels"),
            (ID,),
            answer=BARREL,
        ),
    ),
    {"barrels": [BARREL, {**BARREL, "id": 8, "variety": "riesling", "cellar": "west"}]},
)
GYM = Api(
    "gym",
    "Sports club",
    "Lessons and trainers.",
    (
        Operation(
            "GET",
            "/lessons",
            "listLessons",
            "List lessons of the week",
            list_rows("lessons", "day"),
            (Parameter("day", "Only on this day", choices=("monday", "tuesday", "friday")),),
            answer=[LESSON],
        ),
        Operation(
            "GET",
            "/lessons/{id}",
            "getLesson",
            "Show a lesson",
            get_row("lessons"),
            (ID,),
            answer=LESSON,
        ),
        Operation(
            "GET",
            "/trainers",
            "listTrainers",
            "List trainers",
            list_rows("trainers"),
            answer=[TRAINER],
        ),
        Operation(
            "GET",
            "/trainers/{id}",
            "getTrainer",
            "Show a trainer",
            get_row("trainers"),
            (ID,),
            answer=TRAINER,
        ),
    ),
    {
        "lessons": [LESSON, {**LESSON, "id": 4, "title": "Boxing", "day": "friday"}],
        "trainers": [TRAINER, {**TRAINER, "id": 2, "name": "Karl Voss", "sport": "boxing"}],
    },
)
FLEET = Api(
    "fleet",
    "Car pool",
    "Vehicles of a company.",
    (
        Operation(
            "GET",
            "/vehicles",
            "listVehicles",
            "List vehicles",
            list_rows("vehicles", "status"),
            (Parameter("status", "Only with this status", choices=("idle", "driving")),),
            answer=[VEHICLE],
        ),
        Operation(
            "GET",
            "/vehicles/{plate}",
            "getVehicle",
            "Show a vehicle",
            get_row("vehicles", "plate"),
            (Parameter("plate", "The number plate", required=True),),
            answer=VEHICLE,
        ),
        Operation(
            "DELETE",
            "/vehicles/{plate}",
            "retireVehicle",
            "Retire a vehicle",
            remove_row("vehicles", "plate"),
            (Parameter("plate", "The number plate", required=True),),
            answer={"removed": "AB-123"},
        ),
    ),
    {"vehicles": [VEHICLE, {**VEHICLE, "plate": "XY-900", "status": "driving"}]},
)
PRINTERS = Api(
    "printers",
    "Printers",
    "Printers of an office and what they print.",
    (
        Operation(
            "GET",
            "/printers",
            "listPrinters",
            "List printers",
            list_rows("printers"),
            answer=[PRINTER],
        ),
        Operation(
            "GET",
            "/jobs",
            "listJobs",
            "List print jobs",
            list_rows("jobs", "printer"),
            (Parameter("printer", "The printer's name", required=True),),
            answer=[JOB],
        ),
        Operation(
            "DELETE",
            "/jobs/{id}",
            "cancelJob",
            "Cancel a print job",
            remove_row("jobs"),
            (ID,),
            answer={"removed": "91"},
        ),
    ),
    {"printers": [PRINTER, {**PRINTER, "name": "ink-1"}], "jobs": [JOB]},
)
HOSTEL = Api(
    "hostel",
    "Hostel",
    "Rooms and guests.",
    (
        Operation(
            "GET",
            "/rooms",
            "listRooms",
            "List rooms",
            list_rows("rooms", "free"),
            (Parameter("free", "Only rooms that are free, or taken", "boolean"),),
            answer=[ROOM],
        ),
        Operation(
            "GET", "/guests", "listGuests", "List guests", list_rows("guests"), answer=[GUEST]
        ),
        Operation(
            "GET",
            "/guests/{id}",
            "getGuest",
            "Show a guest",
            get_row("guests"),
            (ID,),
            answer=GUEST,
        ),
        Operation(
            "POST",
            "/guests",
            "addGuest",
            "Check a guest in",
            add_row("guests", "name", "room"),
            body=(
                Parameter("name", "Full name", required=True),
                Parameter("room", "Number of the room", "integer", required=True),
            ),
            answer=GUEST,
        ),
    ),
    {
        "rooms": [ROOM, {**ROOM, "number": 14, "free": False}],
        "guests": [GUEST, {**GUEST, "id": 6, "name": "Ana Prieto", "room": 14}],
    },
)
BANKING = Api(
    "banking",
    "Savings bank",
    "Accounts and transfers.",
    (
        Operation(
            "GET",
            "/accounts",
            "listAccounts",
            "List accounts",
            list_rows("accounts"),
            answer=[ACCOUNT],
        ),
        Operation(
            "GET",
            "/accounts/{number}/balance",
            "getBalance",
            "Get the balance of an account",
            get_row("accounts", "number"),
            (Parameter("number", "The account's number", required=True),),
            answer=ACCOUNT,
        ),
        Operation(
            "GET",
            "/transfers",
            "listTransfers",
            "List transfers of an account",
            list_rows("transfers", "account"),
            (Parameter("account", "The account's number", required=True),),
            answer=[TRANSFER],
        ),
        Operation(
            "POST",
            "/transfers",
            "createTransfer",
            "Send money",
            add_row("transfers", "account", "amount", "to"),
            body=(
                Parameter("account", "From this account", required=True),
                Parameter("amount", "How much", "number", required=True),
                Parameter("to", "To this account", required=True),
            ),
            answer=TRANSFER,
        ),
    ),
    {"accounts": [ACCOUNT], "transfers": [TRANSFER]},
)
OBSERVATORY = Api(
    "observatory",
    "Observatory",
    "Telescopes and what they see.",
    (
        Operation(
            "GET",
            "/telescopes",
            "listTelescopes",
            "List telescopes",
            list_rows("telescopes"),
            answer=[TELESCOPE],
        ),
        Operation(
            "GET",
            "/telescopes/{id}",
            "getTelescope",
            "Show a telescope",
            get_row("telescopes"),
            (ID,),
            answer=TELESCOPE,
        ),
        Operation(
            "GET",
            "/comets/{name}",
            "getComet",
            "Show a comet",
            get_row("comets", "name"),
            (Parameter("name", "The comet's name", required=True),),
            answer=COMET,
        ),
    ),
    {
        "telescopes": [TELESCOPE, {**TELESCOPE, "id": 3, "name": "Little Eye"}],
        "comets": [COMET],
    },
)
BUSES = Api(
    "buses",
    "Town buses",
    "Stops of the bus lines.",
    (
        Operation(
            "GET", "/stops", "listStops", "List bus stops", list_rows("stops"), answer=[STOP]
        ),
        Operation(
            "GET",
            "/stops/{code}",
            "getStop",
            "Show a bus stop",
            get_row("stops", "code"),
            (Parameter("code", "The stop's code", required=True),),
            answer=STOP,
        ),
    ),
    {"stops": [STOP, {**STOP, "code": "M03", "name": "Mill Lane"}]},
)
APIS = (VINEYARD, GYM, FLEET, PRINTERS, HOSTEL, BANKING, OBSERVATORY, BUSES)


@dataclass(frozen=True)
class HeldOut:
    """A task, and the request that it means: `server METHOD path?query`, "" for none. `before` are
    reads on the way to it.
    """

    words: str
    request: str = ""
    before: tuple[str, ...] = ()


DOABLE = (
    HeldOut("list the barrels", "vineyard GET /barrels"),
    HeldOut("barrel list please", "vineyard GET /barrels"),
    HeldOut("what barrels do we have in the west cellar?", "vineyard GET /barrels?cellar=west"),
    HeldOut("show me all merlot barrels", "vineyard GET /barrels?variety=merlot"),
    HeldOut("barrel 8", "vineyard GET /barrels/8"),
    HeldOut("how many litres are in barrel 7?", "vineyard GET /barrels/7"),
    HeldOut("pull up barrel 7", "vineyard GET /barrels/7"),
    HeldOut("tell me about barrel 8", "vineyard GET /barrels/8"),
    HeldOut("which lessons are on friday", "gym GET /lessons?day=friday"),
    HeldOut("lessons on monday?", "gym GET /lessons?day=monday"),
    HeldOut("show me the lessons", "gym GET /lessons"),
    HeldOut("look up lesson 4", "gym GET /lessons/4"),
    HeldOut("who are the trainers?", "gym GET /trainers"),
    HeldOut("trainers?", "gym GET /trainers"),
    HeldOut("get trainer 2", "gym GET /trainers/2"),
    HeldOut(
        "show me the phone number of the trainer Karl Voss",
        "gym GET /trainers/2",
        ("gym GET /trainers",),
    ),
    HeldOut("list all vehicles that are idle", "fleet GET /vehicles?status=idle"),
    HeldOut("vehicles, the full list", "fleet GET /vehicles"),
    HeldOut("show vehicle AB-123", "fleet GET /vehicles/AB-123"),
    HeldOut("details of vehicle XY-900", "fleet GET /vehicles/XY-900"),
    HeldOut("what is the mileage of vehicle AB-123?", "fleet GET /vehicles/AB-123"),
    HeldOut("which printers are there?", "printers GET /printers"),
    HeldOut("show me the print jobs of laser-2", "printers GET /jobs?printer=laser-2"),
    HeldOut("all printers", "printers GET /printers"),
    HeldOut("show the free rooms", "hostel GET /rooms?free=true"),
    HeldOut("which rooms are free?", "hostel GET /rooms?free=true"),
    HeldOut("guest 6 please", "hostel GET /guests/6"),
    HeldOut(
        "what room is the guest Ana Prieto in?", "hostel GET /guests/6", ("hostel GET /guests",)
    ),
    HeldOut("Zeig mir alle Gäste", "hostel GET /guests"),
    HeldOut("muéstrame las cuentas", "banking GET /accounts"),
    HeldOut("balance of account 1002003", "banking GET /accounts/1002003/balance"),
    HeldOut("what's the balance of account 1002003?", "banking GET /accounts/1002003/balance"),
    HeldOut("show transfers of account 1002003", "banking GET /transfers?account=1002003"),
    HeldOut("which telescopes do you know of", "observatory GET /telescopes"),
    HeldOut("telescope 3 info", "observatory GET /telescopes/3"),
    HeldOut("show the comet Halley", "observatory GET /comets/Halley"),
    HeldOut("bus stops?", "buses GET /stops"),
    HeldOut("does stop K12 have a shelter?", "buses GET /stops/K12"),
    HeldOut("give me an overview of the bus stops", "buses GET /stops"),
    HeldOut("quels arrêts de bus y a-t-il ?", "buses GET /stops"),
)
UNDOABLE = tuple(
    map(
        HeldOut,
        (
            "list the barrels and empty the oldest",
            "empty barrel 7",
            "barrel 7 is empty, I think",
            "we have him over a barrel",
            "barrel organ music",
            "list the wines of Bordeaux",
            "who drank barrel 8?",
            "order two barrels of merlot",
            "he taught me a lesson",
            "lesson learned",
            "lesson 4 was boring",
            "which trainer should I pick?",
            "book lesson 3 for me",
            "white trainers, size 42",
            "is trainer 2 married?",
            "retire vehicle AB-123",
            "vehicle AB-123 broke down",
            "refuel vehicle XY-900",
            "show vehicle AB-123 the door",
            "show vehicle AB-123 as driving",
            "the printers are always jammed",
            "why are the printers so slow?",
            "print job 91",
            "cancel job 91",
            "list jobs at Google",
            "laser-2 printer toner, cheapest offers",
            "don't show me the rooms",
            "check in guest Tom Bell to room 14",
            "room 12 smells",
            "be my guest",
            "guest list for my wedding",
            "send 20 euros from account 1002003 to 4005006",
            "on no account list the accounts",
            "by all accounts the balance was off",
            "if the balance of account 1002003 is below 100, show me the transfers",
            "transfer of Ronaldo in 2009",
            "buy a telescope",
            "comet cleaning powder",
            "stop it",
            "stop 5 minutes early",
            "- [ ] list stops",
            'my note says "show the guests"',
        ),
    )
)
TASKS = (*DOABLE, *UNDOABLE)
