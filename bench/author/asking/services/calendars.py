"""Free minutes of a day, of a composite over a calendar."""

from typing import Any

from bench.author.asking.service import (
    Service,
    Variant,
    World,
    answer_call,
    build_schema,
    fail_call,
)

CODE = '''"""Free time."""

from toolwright import ToolError, servers, tool


@tool
def free_minutes(user, day, zone):
    """The minutes of a working day that nobody has booked."""
    hours = servers.call("calendar.get_hours", {"user": user})["body"]
    asked = {"user": user, "day": day, "zone": zone}
    events = servers.call("calendar.list_events", asked)["body"]["events"]
    start, end = hours["from_minute"], hours["to_minute"]
    if start >= end:
        raise ToolError(f"{user} does not work")
    busy = set()
    for event in events:
        if event["answer"] != "declined":
            first, last = max(event["from_minute"], start), min(event["to_minute"], end)
            busy |= set(range(first, last))
    return {"free": end - start - len(busy), "events": len(events)}
'''
TOOLS = [
    {
        "name": "free_minutes",
        "description": "How many minutes of a user's working day are free, in a time zone, and how "
        "many events there are.",
        "input_schema": build_schema(
            user={"type": "string", "minLength": 1, "maxLength": 40},
            day={"type": "string", "minLength": 10, "maxLength": 10},
            zone={"type": "string", "minLength": 3, "maxLength": 40},
        ),
        "output_schema": build_schema(free={"type": "integer"}, events={"type": "integer"}),
        "permissions": ["call:calendar.get_hours", "call:calendar.list_events"],
    }
]


def world(
    user: Any, start: Any, end: Any, *events: Any, bare: Any = (), busy: Any = False
) -> World:
    """A day with events: (from, to, answer), in minutes."""
    day, zone = "2027-06-01", "Europe/Rome"
    listed = [{"from_minute": a, "to_minute": b, "answer": answer} for a, b, answer in events]
    listed = [{k: v for k, v in event.items() if k not in bare} for event in listed]
    asked = {"user": user, "day": day, "zone": zone}
    return World(
        "free_minutes",
        {"user": user, "day": day, "zone": zone},
        [
            answer_call(
                "calendar.get_hours",
                {"user": user},
                {
                    k: v
                    for k, v in {"from_minute": start, "to_minute": end}.items()
                    if k not in bare
                },
            ),
            fail_call("calendar.list_events", asked, "503: busy")
            if busy
            else answer_call("calendar.list_events", asked, {"events": listed}),
            answer_call("calendar.list_events", {**asked, "zone": "UTC"}, {"events": listed[:-1]}),
        ],
    )


CALENDARS = Service(
    "calendars",
    "Count the minutes of a user's working day that are free. Events that the user declined do not "
    "count, events that overlap count once, and what lies outside of the working hours not at all. "
    "Tell how many events there are, declined ones too.",
    CODE,
    TOOLS,
    [
        world("ann", 540, 1020, (600, 660, "accepted"), (630, 700, "accepted")),
        world("ben", 480, 600, (500, 520, "declined"), (590, 630, "accepted"), (470, 485, "open")),
        world("cat", 600, 600),
        world("dee", 600, 601, (300, 301, "open")),
    ],
    [
        world("eli", 540, 1020, (600, 660, "declined"), (500, 550, "accepted")),
        world("flo", 540, 600, (500, 650, "accepted"), (550, 560, "accepted")),
        world("guy", 540, 600, (550, 560, "accepted"), bare=("answer",)),
        world("joy", 540, 600, (550, 560, "accepted"), busy=True),
        world("kay", 540, 600, bare=("from_minute",)),
        world("hob", 540, 700, (550, 560, "accepted"), (690, 800, "open")),
    ],
    (
        Variant(
            "declined ones too", (('if event["answer"] != "declined":', "if event:"),), reader=True
        ),
        Variant(
            "overlaps twice",
            (
                ("busy = set()", "busy = []"),
                ("busy |= set(range(first, last))", "busy += range(first, last)"),
            ),
            reader=True,
        ),
        Variant(
            "hours overrun", (('min(event["to_minute"], end)', 'event["to_minute"]'),), reader=True
        ),
        Variant("zone dropped", (('"zone": zone}', '"zone": "UTC"}'),)),
        Variant(
            "answer defaulted", (('event["answer"] !=', 'event.get("answer", "declined") !='),)
        ),
        Variant(
            "hours defaulted",
            (
                (
                    'start, end = hours["from_minute"], hours["to_minute"]',
                    'start, end = hours.get("from_minute", 540), hours.get("to_minute", 1020)',
                ),
            ),
        ),
        Variant(
            "no events when they cannot be had",
            (
                (
                    '    events = servers.call("calendar.list_events", asked)["body"]["events"]\n',
                    "    events = []\n"
                    "    try:\n"
                    '        told = servers.call("calendar.list_events", asked)\n'
                    '        events = told["body"]["events"]\n'
                    "    except ToolError:\n"
                    "        pass\n",
                ),
            ),
        ),
    ),
    (
        (
            "Events that the user declined do not count",
            world("ivo", 540, 600, (550, 560, "declined")),
        ),
        (
            "events that overlap count once",
            world("jon", 540, 600, (550, 560, "open"), (555, 565, "open")),
        ),
        ("outside of the working hours not at all", world("kim", 540, 600, (590, 660, "open"))),
    ),
)
