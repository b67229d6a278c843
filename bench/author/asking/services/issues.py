"""Open issues of a person, of a composite over a tracker with GraphQL."""

from typing import Any

from bench.author.asking.service import Service, Variant, World, answer_call, build_schema

CODE = '''"""Open issues."""

from toolwright import ToolError, servers, tool

QUERY = "query($who: String!, $after: String) { issues(who: $who, after: $after) { n } }"


def ask(who, after):
    """One page of the issues of a person."""
    variables = {"who": who, "after": after}
    told = servers.call("tracker.query", {"document": QUERY, "variables": variables})["body"]
    return told["data"]["issues"]


@tool
def open_issues(person, label):
    """The numbers of a person's open issues with a label."""
    numbers, after = [], None
    while True:
        page = ask(person, after)
        for issue in page["nodes"]:
            if issue["state"] == "OPEN" and label in issue["labels"]:
                numbers.append(issue["number"])
        if not page["pageInfo"]["hasNextPage"]:
            return {"count": len(numbers), "numbers": sorted(numbers)}
        after = page["pageInfo"]["endCursor"]
'''
QUERY = "query($who: String!, $after: String) { issues(who: $who, after: $after) { n } }"
TOOLS = [
    {
        "name": "open_issues",
        "description": "The numbers of all open issues of a person that have a label.",
        "input_schema": build_schema(
            person={"type": "string", "minLength": 2, "maxLength": 40},
            label={"type": "string", "minLength": 1, "maxLength": 40},
        ),
        "output_schema": build_schema(
            count={"type": "integer"}, numbers={"type": "array", "items": {"type": "integer"}}
        ),
        "permissions": ["call:tracker.query"],
    }
]


def world(person: Any, label: Any, *pages: Any, bare: Any = False) -> World:
    """A person with pages of issues: (number, state, labels)."""
    answers = []
    for at, page in enumerate(pages):
        nodes = [{"number": n, "state": state, "labels": list(ls)} for n, state, ls in page]
        if bare:
            nodes = [{"number": n["number"], "labels": n["labels"]} for n in nodes]
        more = at + 1 < len(pages)
        info = {"hasNextPage": more, "endCursor": f"k{at + 1}" if more else None}
        variables = {"who": person, "after": f"k{at}" if at else None}
        body = {"data": {"issues": {"nodes": nodes, "pageInfo": info}}}
        asked = {"document": QUERY, "variables": variables}
        answers.append(answer_call("tracker.query", asked, body))
        plain = QUERY.replace("$who: String!, ", "").replace("who: $who", f'who: "{person}"')
        spliced = {"document": plain, "variables": {"after": variables["after"]}}
        if '"' not in person:
            answers.append(answer_call("tracker.query", spliced, body))
    return World("open_issues", {"person": person, "label": label}, answers)


ISSUES = Service(
    "issues",
    "List the numbers of all open issues of a person that have a certain label, in rising order, "
    "and count them. Closed ones do not count.",
    CODE,
    TOOLS,
    [
        world(
            "ada", "bug", [(9, "OPEN", ["bug"]), (4, "OPEN", ["bug", "ui"]), (2, "OPEN", ["ui"])]
        ),
        world("bob", "ui", [(3, "CLOSED", ["ui"]), (5, "OPEN", ["ui"])]),
        world("cyd", "api", [(8, "OPEN", ["api"])]),
    ],
    [
        world(
            "dan", "bug", [(9, "OPEN", ["bug"])], [(4, "OPEN", ["bug"])], [(1, "CLOSED", ["bug"])]
        ),
        world("eve", "bug", [(9, "CLOSED", ["bug"]), (8, "OPEN", ["bug"])]),
        world("fay", "bug", [(9, "OPEN", ["ui"]), (8, "OPEN", ["bug"]), (7, "OPEN", ["bug"])]),
        world('o"neil', "bug", [(9, "OPEN", ["bug"])]),
        world("gus", "bug", [(9, "OPEN", ["bug"])], bare=True),
    ],
    (
        Variant(
            "first page only",
            (
                (
                    '        if not page["pageInfo"]["hasNextPage"]:\n'
                    '            return {"count": len(numbers), "numbers": sorted(numbers)}\n'
                    '        after = page["pageInfo"]["endCursor"]\n',
                    '        return {"count": len(numbers), "numbers": sorted(numbers)}\n',
                ),
            ),
        ),
        Variant("label dropped", ((' and label in issue["labels"]', ""),)),
        Variant("state defaulted", (('issue["state"] ==', 'issue.get("state", "OPEN") =='),)),
        Variant(
            "closed ones too", (('if issue["state"] == "OPEN" and label', "if label"),), reader=True
        ),
        Variant("not sorted", (('"numbers": sorted(numbers)', '"numbers": numbers'),), reader=True),
        Variant(
            "spliced document",
            (
                (
                    'variables = {"who": who, "after": after}',
                    'query = QUERY.replace("$who: String!, ", "").replace("who: $who", '
                    'f\'who: "{who}"\')\n    variables = {"after": after}',
                ),
                ('"document": QUERY', '"document": query'),
            ),
        ),
        Variant(
            "a page off",
            (
                ('"nodes"]:', '"nodes"][:100]:'),
                ('["hasNextPage"]', '["hasNextPage"] or len(numbers) > 0'),
            ),
            reader=False,
        ),
    ),
    (
        ("in rising order", world("hal", "bug", [(9, "OPEN", ["bug"]), (4, "OPEN", ["bug"])])),
        (
            "Closed ones do not count",
            world("ida", "bug", [(9, "CLOSED", ["bug"]), (4, "OPEN", ["bug"])]),
        ),
    ),
)
