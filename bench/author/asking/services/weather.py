"""The warmest hour of a day, of an API with times in UTC."""

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
    '''"""Temperatures of a day."""

from datetime import datetime, timedelta

from toolwright import ToolError, http, tool

BASE = "https://sky.test"


'''
    + ASK_OBJECT
    + '''@tool
def warmest_hour(place, day):
    """The warmest hour of a day at a place, in its own time."""
    found = ask("GET", "/places", query={"name": place})["places"]
    if len(found) != 1:
        raise ToolError(f"{len(found)} places are named {place}")
    spot = found[0]
    told = ask("GET", "/hours", query={"station": spot["station"]})
    shift = timedelta(minutes=spot["utc_offset_minutes"])
    best = None
    for hour in told["hours"]:
        local = datetime.fromisoformat(hour["utc"]) + shift
        if local.date().isoformat() == day and (best is None or hour["kelvin"] > best[0]):
            best = (hour["kelvin"], local)
    if best is None:
        raise ToolError(f"nothing is known of {day}")
    return {"celsius": round(best[0] - 273.15, 2), "hour": best[1].strftime("%H:%M")}
'''
)
TOOLS = [
    {
        "name": "warmest_hour",
        "description": "The warmest hour of a day at a place, in its own time, in Celsius.",
        "input_schema": build_schema(
            place={"type": "string", "minLength": 2, "maxLength": 60},
            day={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        ),
        "output_schema": build_schema(celsius={"type": "number"}, hour={"type": "string"}),
        "requests": [
            {"method": "GET", "url": "https://sky.test/places"},
            {"method": "GET", "url": "https://sky.test/hours"},
        ],
        "permissions": ["network:sky.test"],
    }
]


def world(
    place: Any, day: Any, offset: Any, hours: Any, named: Any = 1, shown: Any = True
) -> World:
    """A place with hours: (UTC, kelvin)."""
    spot = {"name": place, "station": "s1", "utc_offset_minutes": offset}
    if not shown:
        del spot["utc_offset_minutes"]
    told = [{"utc": utc, "kelvin": kelvin} for utc, kelvin in hours]
    return World(
        "warmest_hour",
        {"place": place, "day": day},
        [
            answer_request(f"https://sky.test/places?name={place}", {"places": [spot] * named}),
            answer_request("https://sky.test/hours?station=s1", {"hours": told}),
        ],
    )


WEATHER = Service(
    "weather",
    "Tell the warmest hour of a day at a place, in the place's own time, with its temperature in "
    "degrees Celsius, rounded to hundredths. Refuse a name that is not of exactly one place.",
    CODE,
    TOOLS,
    [
        world("Lima", "2027-03-01", 0, [("2027-03-01T10:00", 293.15), ("2027-03-01T14:00", 300.4)]),
        world("Faro", "2027-03-02", 60, [("2027-03-02T12:00", 290.0), ("2027-03-02T09:00", 288.5)]),
        world("Bath", "2027-03-02", 60, [("2027-03-01T23:30", 291.0), ("2027-03-02T09:00", 288.5)]),
        world("York", "2027-03-02", 0, [("2027-03-02T12:00", 290.0)], named=2),
        world("Kiel", "2027-03-02", 0, [("2027-03-05T12:00", 290.0)]),
        world("Reno", "2027-03-02", 0, [("2027-03-02T12:00", 290.0), ("2027-03-02T13:00", 290.0)]),
    ],
    [
        world(
            "Tokyo", "2027-05-02", 540, [("2027-05-01T20:00", 299.0), ("2027-05-02T16:00", 305.0)]
        ),
        world(
            "Quito", "2027-05-02", -300, [("2027-05-03T01:00", 299.0), ("2027-05-02T03:00", 305.0)]
        ),
        world("Delhi", "2027-05-02", 330, [("2027-05-02T05:00", 310.0)], shown=False),
        world("Fargo", "2027-05-02", 0, [("2027-05-09T05:00", 290.0)]),
        world("Essen", "2027-05-02", 120, [("2027-05-02T05:00", 290.0)], named=3),
        world(
            "Genoa", "2027-05-02", 0, [("2027-05-02T05:00", 260.05), ("2027-05-02T06:00", 260.0)]
        ),
    ],
    (
        Variant("timezone dropped", (('["utc"]) + shift', '["utc"])'),)),
        Variant(
            "defaulted offset",
            (('spot["utc_offset_minutes"]', 'spot.get("utc_offset_minutes", 0)'),),
        ),
        Variant("wrong sign", (('["utc"]) + shift', '["utc"]) - shift'),), reader=True),
        Variant("rounded to whole", (("273.15, 2)", "273.15)"),), reader=True),
        Variant("the first of many", (("if len(found) != 1:", "if not found:"),), reader=True),
        Variant(
            "coldest", (('hour["kelvin"] > best[0]', 'hour["kelvin"] < best[0]'),), reader=True
        ),
        Variant(
            "defaulted hours",
            (
                ('told["hours"]', 'told.get("hours") or []'),
                (
                    '        raise ToolError(f"nothing is known of {day}")',
                    '        return {"celsius": 0, "hour": "00:00"}',
                ),
            ),
        ),
    ),
    (
        (
            "in the place's own time",
            world(
                "Perth",
                "2027-05-02",
                480,
                [("2027-05-01T20:00", 299.0), ("2027-05-02T17:00", 305.0)],
            ),
        ),
        (
            "a name that is not of exactly one place",
            world("Ayr", "2027-05-02", 0, [("2027-05-02T05:00", 290.0)], named=2),
        ),
        (
            "rounded to hundredths",
            world(
                "Oban", "2027-05-02", 0, [("2027-05-02T05:00", 290.0), ("2027-05-02T07:00", 280.0)]
            ),
        ),
    ),
)
