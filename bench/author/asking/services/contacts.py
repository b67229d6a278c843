"""Contacts of a list, of a composite that writes."""

from typing import Any

from bench.author.asking.service import (
    Service,
    Variant,
    World,
    answer_call,
    build_schema,
    fail_call,
)

CODE = '''"""Contacts."""

from toolwright import ToolError, servers, tool


@tool
def add_contact(email, group):
    """Add a contact to a group, if it is not there."""
    groups = servers.call("crm.list_groups", {})["body"]
    fitting = [each["id"] for each in groups if each["name"] == group]
    if len(fitting) != 1:
        raise ToolError(f"{len(fitting)} groups are named {group}")
    found = servers.call("crm.search_contacts", {"email": email})["body"]
    if any(each["email"] == email.lower() for each in found["contacts"]):
        raise ToolError(f"{email} is there already")
    entry = {"email": email.lower(), "group": fitting[0]}
    made = servers.call("crm.create_contact", {"body": entry})
    return {"contact": made["body"]["id"], "group": fitting[0]}
'''
TOOLS = [
    {
        "name": "add_contact",
        "description": "Create a contact with an e-mail address in a group, if there is none yet.",
        "access": "write",
        "input_schema": build_schema(
            email={"type": "string", "pattern": "^[^@ ]{1,60}@[^@ ]{1,60}$"},
            group={"type": "string", "minLength": 1, "maxLength": 40},
        ),
        "output_schema": build_schema(contact={"type": "integer"}, group={"type": "integer"}),
        "permissions": [
            "call:crm.list_groups",
            "call:crm.search_contacts",
            "call:crm.create_contact",
            "call:news.subscribe",
        ],
    }
]
GROUPS = [(3, "Press"), (4, "Staff"), (5, "Guests"), (6, "Guests")]


def world(
    email: Any,
    group: Any,
    found: Any = (),
    groups: Any = GROUPS,
    made: Any = 77,
    bare: Any = (),
    busy: Any = "",
) -> World:
    listed = [{"id": i, "name": name} for i, name in groups]
    told = {"contacts": [{"id": 1, "email": each} for each in found]}
    told = {key: value for key, value in told.items() if key not in bare}
    answers = [
        answer_call("crm.list_groups", {}, listed),
        answer_call("crm.search_contacts", {"email": email}, told),
        answer_call("news.subscribe", {"email": email}, {"ok": True}),
    ]
    for i, _ in groups:
        for address in {email, email.lower()}:
            asked = {"body": {"email": address, "group": i}}
            answers.append(answer_call("crm.create_contact", asked, {"id": made}))
    if busy:
        answers = [
            fail_call(a["tool"], a["arguments"], "503: busy") if a["tool"] == busy else a
            for a in answers
        ]
    return World("add_contact", {"email": email, "group": group}, answers)


MADE = """    made = servers.call("crm.create_contact", {"body": entry})
"""
CONTACTS = Service(
    "contacts",
    "Add a contact with an e-mail address, in small letters, to the group of a name. Refuse an "
    "address that is there already, and a name that is not of exactly one group. Nothing else is "
    "changed.",
    CODE,
    TOOLS,
    [
        world("a@x.test", "Press"),
        world("B@x.test", "Staff", ["bb@x.test"], made=78),
        world("c@x.test", "Press", ["c@x.test"]),
        world("d@x.test", "None"),
    ],
    [
        world("E@y.test", "Press"),
        world("f@y.test", "Guests"),
        world("G@y.test", "Press", ["g@y.test"]),
        world("h@y.test", "Press", bare=("contacts",)),
        world("o@y.test", "Press", busy="crm.create_contact"),
        world("p@y.test", "Press", ["p@y.test"], busy="crm.search_contacts"),
        world("i@y.test", "Staff", ["j@y.test"]),
    ],
    (
        Variant(
            "subscribes quietly",
            ((MADE, MADE + '    servers.call("news.subscribe", {"email": email})\n'),),
        ),
        Variant(
            "write sent again",
            (
                (
                    MADE,
                    '    asked = {"body": entry}\n'
                    "    try:\n"
                    '        made = servers.call("crm.create_contact", asked)\n'
                    "    except ToolError:\n"
                    '        made = servers.call("crm.create_contact", asked)\n',
                ),
            ),
        ),
        Variant("contacts defaulted", (('found["contacts"]', 'found.get("contacts", [])'),)),
        Variant("the first of many", (("if len(fitting) != 1:", "if not fitting:"),), reader=True),
        Variant(
            "any address is there",
            (
                (
                    'if any(each["email"] == email.lower() for each in found["contacts"]):',
                    'if found["contacts"]:',
                ),
            ),
            reader=True,
        ),
        Variant(
            "search failure ignored",
            (
                (
                    '    found = servers.call("crm.search_contacts", {"email": email})["body"]\n',
                    "    try:\n"
                    '        told = servers.call("crm.search_contacts", {"email": email})\n'
                    '        found = told["body"]\n'
                    "    except ToolError:\n"
                    '        found = {"contacts": []}\n',
                ),
            ),
        ),
    ),
    (
        ("in small letters", world("K@z.test", "Staff")),
        ("not of exactly one group", world("l@z.test", "Guests")),
        ("an address that is there already", world("m@z.test", "Press", ["m@z.test"])),
        ("Nothing else is changed", world("n@z.test", "Press", ["nn@z.test"])),
    ),
)
