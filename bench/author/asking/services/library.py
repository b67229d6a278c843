"""Fines of a library's member, of a composite."""

from typing import Any

from bench.author.asking.service import (
    Service,
    Variant,
    World,
    answer_call,
    build_schema,
    fail_call,
)

CODE = '''"""Fines for books that are late."""

from datetime import date

from toolwright import ToolError, servers, tool


@tool
def owed_fines(member, today):
    """What a member owes for books that are late."""
    try:
        day = date.fromisoformat(today)
    except ValueError as error:
        raise ToolError(f"{today} is no date") from error
    rules = servers.call("library.get_rules", {})["body"]
    loans = servers.call("library.list_loans", {"member": member})["body"]
    cents, books = 0, []
    for loan in loans:
        late = (day - date.fromisoformat(loan["due"])).days
        if loan["returned"] or late <= rules["free_days"]:
            continue
        cents += min((late - rules["free_days"]) * rules["cents_per_day"], rules["most_cents"])
        books.append(loan["title"])
    return {"cents": cents, "books": sorted(books)}
'''
TOOLS = [
    {
        "name": "owed_fines",
        "description": "What a member owes on a day for late books, in cents, and for which.",
        "input_schema": build_schema(
            member={"type": "string", "minLength": 1, "maxLength": 20},
            today={"type": "string", "minLength": 10, "maxLength": 10},
        ),
        "output_schema": build_schema(
            cents={"type": "integer"}, books={"type": "array", "items": {"type": "string"}}
        ),
        "permissions": ["call:library.get_rules", "call:library.list_loans"],
    }
]


def world(
    member: Any,
    today: Any,
    loans: Any,
    rules: Any = (1, 20, 500),
    bare: Any = (),
    busy: Any = False,
) -> World:
    """A member with loans: (title, due, returned)."""
    told = dict(zip(("free_days", "cents_per_day", "most_cents"), rules, strict=True))
    told = {key: value for key, value in told.items() if key not in bare}
    listed = [{"title": t, "due": due, "returned": back} for t, due, back in loans]
    listed = [{k: v for k, v in loan.items() if k not in bare} for loan in listed]
    return World(
        "owed_fines",
        {"member": member, "today": today},
        [
            fail_call("library.get_rules", {}, "503: busy")
            if busy
            else answer_call("library.get_rules", {}, told),
            answer_call("library.list_loans", {"member": member}, listed),
        ],
    )


LATE, LATER = ("Emma", "2027-04-01", False), ("Dune", "2027-01-01", False)
LIBRARY = Service(
    "library",
    "Tell what a member of a library owes for late books: for each book that is not returned, so "
    "many cents for every day after the free days, and never more than the most for one book.",
    CODE,
    TOOLS,
    [
        world("m1", "2027-04-05", [LATE, LATER, ("Ulysses", "2027-03-01", True)]),
        world("m2", "2027-04-02", [LATE, ("Utopia", "2027-03-31", False)]),
        world("m3", "2027-04-06", [("Walden", "2027-04-02", False), LATE], (2, 30, 90)),
        world("m5", "2027-04-31", [LATE]),
    ],
    [
        world("n1", "2027-04-04", [LATE], (0, 10, 25)),
        world("n2", "2027-04-04", [LATE, ("Ubik", "2027-04-03", False), LATER], (1, 7, 900)),
        world("n3", "2027-04-20", [LATE], bare=("most_cents",)),
        world("n6", "2027-04-30", [LATE, ("Emil", "2027-04-01", False)], (1, 100, 250)),
        world("n7", "2027-04-30", [LATE], busy=True),
        world("n8", "2027-04-30", [LATE, LATER], bare=("due",)),
        world("n4", "2027-04-20", [LATE], bare=("free_days",)),
        world("n5", "2027-04-20", [("Faust", "2027-04-10", True), LATE], (3, 5, 50)),
    ],
    (
        Variant(
            "a day off",
            (
                ("late <= rules", "late < rules"),
                ('(late - rules["free_days"])', '(late - rules["free_days"] + 1)'),
            ),
            reader=True,
        ),
        Variant("returned ones too", (('if loan["returned"] or late', "if late"),), reader=True),
        Variant(
            "free days charged",
            (('(late - rules["free_days"]) *', "late *"),),
            reader=True,
        ),
        Variant(
            "defaulted rule",
            (
                ('rules["free_days"]:', 'rules.get("free_days", 0):'),
                ('(late - rules["free_days"])', '(late - rules.get("free_days", 0))'),
            ),
        ),
        Variant(
            "most for all",
            (
                (
                    'cents += min((late - rules["free_days"]) * rules["cents_per_day"], '
                    'rules["most_cents"])',
                    'cents += (late - rules["free_days"]) * rules["cents_per_day"]',
                ),
                ('"cents": cents,', '"cents": min(cents, rules["most_cents"]),'),
            ),
            reader=True,
        ),
        Variant(
            "swallowed rules",
            (
                (
                    '    rules = servers.call("library.get_rules", {})["body"]\n',
                    "    try:\n"
                    '        rules = servers.call("library.get_rules", {})["body"]\n'
                    "    except ToolError:\n"
                    '        rules = {"free_days": 1, "cents_per_day": 20, "most_cents": 500}\n',
                ),
            ),
        ),
        Variant("defaulted due", (('loan["due"]', 'loan.get("due", today)'),)),
    ),
    (
        ("for every day after the free days", world("o1", "2027-04-04", [LATE], (1, 10, 900))),
        (
            "never more than the most for one book",
            world("o2", "2027-04-30", [LATE, ("Emil", "2027-04-01", False)], (1, 100, 250)),
        ),
        (
            "that is not returned",
            world("o3", "2027-04-30", [("Momo", "2027-04-01", True), LATE], (1, 1, 250)),
        ),
    ),
)
