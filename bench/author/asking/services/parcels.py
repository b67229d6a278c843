"""Where a parcel is, of a composite over two tools of a carrier."""

from typing import Any

from bench.author.asking.service import (
    Service,
    Variant,
    World,
    answer_call,
    build_schema,
    fail_call,
)

CODE = '''"""Where parcels are."""

from toolwright import ToolError, servers, tool


def list_events(code):
    """All events of a parcel, page by page."""
    events, cursor = [], None
    while True:
        asked = {"code": code} if cursor is None else {"code": code, "cursor": cursor}
        page = servers.call("parcel.list_events", asked)["body"]
        events += page["events"]
        cursor = page["next_cursor"]
        if cursor is None:
            return events


@tool
def where_is(code):
    """The last place of a parcel."""
    parcel = servers.call("parcel.get_parcel", {"code": code})["body"]
    events = list_events(code)
    if not events:
        raise ToolError(f"no event of {code} is known")
    last = max(events, key=lambda event: event["at"])
    return {
        "state": parcel["state"],
        "place": last["place"],
        "at": last["at"],
        "events": len(events),
    }
'''
TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "where_is",
        "description": "Where and when a parcel was seen last, its state and number of events.",
        "input_schema": build_schema(code={"type": "string", "minLength": 1, "maxLength": 30}),
        "output_schema": build_schema(state=TEXT, place=TEXT, at=TEXT, events={"type": "integer"}),
        "permissions": ["call:parcel.get_parcel", "call:parcel.list_events"],
    }
]


def world(code: Any, state: Any, *pages: Any) -> World:
    """A parcel whose events come in pages of (place, time)."""
    answers = [answer_call("parcel.get_parcel", {"code": code}, {"code": code, "state": state})]
    for at, page in enumerate(pages):
        asked = {"code": code} if at == 0 else {"code": code, "cursor": f"c{at}"}
        body = {
            "events": [{"place": place, "at": when} for place, when in page],
            "next_cursor": f"c{at + 1}" if at + 1 < len(pages) else None,
        }
        answers.append(answer_call("parcel.list_events", asked, body))
    return World("where_is", {"code": code}, answers)


SHOWN = [
    world("AA", "moving", [("Bremen", "2027-01-02T08:00"), ("Kassel", "2027-01-03T09:00")]),
    world("BB", "lost", [("Ulm", "2027-02-01T08:00")]),
    world("CC", "waiting", []),
]
HIDDEN = [
    world("DD", "moving", [("Jena", "2027-01-09T08:00")], [("Gera", "2027-01-10T07:00")]),
    world("EE", "moving", [("Suhl", "2027-01-09T08:00"), ("Hof", "2027-01-08T08:00")]),
    World(
        "where_is",
        {"code": "FF"},
        [
            answer_call("parcel.get_parcel", {"code": "FF"}, {"code": "FF", "state": "moving"}),
            fail_call("parcel.list_events", {"code": "FF"}, "503: busy"),
        ],
    ),
    World(
        "where_is",
        {"code": "GG"},
        [
            answer_call("parcel.get_parcel", {"code": "GG"}, {"code": "GG"}),
            answer_call(
                "parcel.list_events",
                {"code": "GG"},
                {"events": [{"place": "Bonn", "at": "2027-01-01T00:00"}], "next_cursor": None},
            ),
        ],
    ),
]
PAGED = """        cursor = page["next_cursor"]
        if cursor is None:
            return events
"""
PARCELS = Service(
    "parcels",
    "Say where a parcel was seen last: the place and time of its latest event, its state, and how "
    "many events there are in all pages. Where nothing is known of it, refuse.",
    CODE,
    TOOLS,
    SHOWN,
    HIDDEN,
    (
        Variant("first page only", ((PAGED, "        return events\n"),)),
        Variant(
            "swallowed error",
            (
                (
                    '        page = servers.call("parcel.list_events", asked)["body"]\n',
                    "        try:\n"
                    '            page = servers.call("parcel.list_events", asked)["body"]\n'
                    "        except ToolError:\n"
                    '            page = {"events": [{"place": "unknown", "at": ""}],'
                    ' "next_cursor": None}\n',
                ),
            ),
        ),
        Variant("defaulted field", (('parcel["state"]', 'parcel.get("state", "moving")'),)),
        Variant("oldest event", (("last = max(", "last = min("),), reader=True),
        Variant(
            "listed last",
            (('last = max(events, key=lambda event: event["at"])', "last = events[-1]"),),
            reader=True,
        ),
    ),
    (
        (
            "the place and time of its latest event",
            world("HH", "moving", [("Celle", "2027-01-09T08:00"), ("Peine", "2027-01-08T08:00")]),
        ),
        (
            "how many events there are in all pages",
            world("II", "lost", [("A", "2027-01-01T08:00")], [("B", "2027-01-02T08:00")]),
        ),
    ),
    (
        Variant(
            "sorted",
            (
                (
                    'last = max(events, key=lambda event: event["at"])',
                    'last = sorted(events, key=lambda event: event["at"])[-1]',
                ),
            ),
        ),
    ),
)
