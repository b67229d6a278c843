"""A stock list, of an API with pages."""

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
    '''"""Stock of articles."""

from toolwright import ToolError, http, tool

BASE = "https://stock.test"


'''
    + ASK_OBJECT
    + '''@tool
def free_stock(article):
    """How many of an article are free in all warehouses."""
    free, houses, page = 0, [], 1
    for _ in range(200):
        told = ask(
            "GET", "/levels", query={"article": article, "page": page}
        )
        for level in told["levels"]:
            left = level["on_hand"] - level["reserved"]
            if left > 0:
                free += left
                houses.append(level["warehouse"])
        page = told["next"]
        if page is None:
            break
    else:
        raise ToolError("there are too many pages")
    if not houses:
        raise ToolError(f"nothing of {article} is free")
    return {"free": free, "warehouses": houses}
'''
)
TOOLS = [
    {
        "name": "free_stock",
        "description": "How many of an article are free, in all warehouses, and in which.",
        "input_schema": build_schema(article={"type": "string", "minLength": 2, "maxLength": 20}),
        "output_schema": build_schema(
            free={"type": "integer"}, warehouses={"type": "array", "items": {"type": "string"}}
        ),
        "requests": [{"method": "GET", "url": "https://stock.test/levels"}],
        "permissions": ["network:stock.test"],
    }
]


def world(article: Any, *pages: Any, failing: Any = 0, bare: Any = ()) -> World:
    """An article with pages of levels: (warehouse, on hand, reserved)."""
    answers = []
    for at, page in enumerate(pages, 1):
        levels = [
            {"warehouse": name, "on_hand": there, "reserved": kept} for name, there, kept in page
        ]
        levels = [{k: v for k, v in level.items() if k not in bare} for level in levels]
        told = {"levels": levels, "next": at + 1 if at < len(pages) else None}
        told = {key: value for key, value in told.items() if key not in bare}
        url = f"https://stock.test/levels?article={article}&page={at}"
        status = 503 if at == failing else 200
        answers.append(answer_request(url, told if status == 200 else {"error": "busy"}, status))
    return World("free_stock", {"article": article}, answers)


STOCK = Service(
    "stock",
    "Count how many pieces of an article are free in all warehouses together, that is on hand and "
    "not reserved, and name the warehouses that have some. A warehouse that reserved more than it "
    "has counts as none.",
    CODE,
    TOOLS,
    [
        world("nut", [("A", 5, 1), ("B", 3, 3)], [("C", 2, 0)]),
        world("bolt", [("A", 7, 2), ("D", 2, 1)]),
        world("screw", [("A", 0, 0)]),
        world("cog", [("A", 2, 4), ("B", 9, 5)]),
    ],
    [
        world("pin", [("A", 5, 0)], [("B", 6, 1)], [("C", 7, 1)]),
        world("cap", [("A", 5, 8), ("B", 6, 1)]),
        world("lid", [("A", 5, 0)], [("B", 6, 1)], failing=2),
        world("peg", [("A", 5, 2)], bare=("next",)),
        world("rod", [("A", 5, 2)], bare=("reserved",)),
    ],
    (
        Variant(
            "two pages at most",
            (('page = told["next"]', 'page = told["next"] if page < 2 else None'),),
        ),
        Variant("first page only", (('page = told["next"]', "page = None"),)),
        Variant(
            "partial failure hidden",
            (
                (
                    "        told = ask(\n"
                    '            "GET", "/levels", query={"article": article, "page": page}\n'
                    "        )\n",
                    "        try:\n"
                    "            told = ask(\n"
                    '                "GET", "/levels", query={"article": article, "page": page}\n'
                    "            )\n"
                    "        except ToolError:\n"
                    "            break\n",
                ),
            ),
        ),
        Variant("reserved defaulted", (('level["reserved"]', 'level.get("reserved", 0)'),)),
        Variant("reserved ignored", ((' - level["reserved"]', ""),), reader=True),
        Variant(
            "negatives added",
            (
                (
                    "            if left > 0:\n"
                    "                free += left\n                houses",
                    "            free += left\n            if left > 0:\n                houses",
                ),
            ),
            reader=True,
        ),
        Variant("next defaulted", (('page = told["next"]', 'page = told.get("next")'),)),
    ),
    (
        ("on hand and not reserved", world("jar", [("A", 5, 2)])),
        ("in all warehouses together", world("tin", [("A", 5, 2)], [("B", 5, 1)])),
        ("counts as none", world("box", [("A", 1, 2), ("B", 4, 1)])),
    ),
)
