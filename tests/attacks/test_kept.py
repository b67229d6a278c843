"""What somebody hostile tries with results that are kept for a session: another session's, one
API's answer sent to another's, and answers made to be kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.calls import Call
from orchestrator.errors import ReferenceRefused, UnknownTool
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.results.keeper import ANSWER_BYTES, ResultKeeper
from registry.models import build_entry
from registry.sessions.kept_results import KeepLimits
from registry.store import Store
from registry.trust import TrustRecord, compute_standing
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import build_request_pattern
from tests.engine.samples import bundle

LARGE = {"items": [{"id": number, "note": "n" * 40} for number in range(500)]}
PERMISSIONS = {
    "north": ("network:api.north",),
    "north_too": ("network:api.north:443",),
    "south": ("network:api.south",),
    "plain": (),
    "relay_south": ("call:south.give",),
    "relay_north": ("call:north.give",),
    "writes_files": ("fs:/srv/out:rw",),
    "resolves": ("dns:*",),
}


def make_server(name: str) -> RegisteredServer:
    if name not in PERMISSIONS:
        raise UnknownTool(name)
    made: Bundle = replace(bundle("", "give", pure=True), name=name, permissions=PERMISSIONS[name])
    calls = tuple(filter(None, map(build_request_pattern, PERMISSIONS[name])))
    tools = tuple(replace(tool, requests=calls) for tool in made.tools)
    made = replace(made, tools=tools)
    by_name = {tool.name: tool for tool in made.tools}
    return RegisteredServer(build_entry(made, 1.0), made, compute_standing(TrustRecord(1)), by_name)


@pytest.fixture
def keeper(store: Store) -> ResultKeeper:
    return ResultKeeper(store.kept_results, make_server, KeepLimits())


def keep(keeper: ResultKeeper, value: Any, server: str = "north", session: str = "mine") -> Any:
    """What a session is given of an answer of that server."""
    result = {"content": [{"type": "text", "text": "…"}], "structuredContent": value}
    sources = keeper.find_sources((server,))
    return keeper.shorten_result(result, session, f"call {id(value)}", f"{server}.give", sources)


def refer(
    keeper: ResultKeeper,
    server: str,
    path: str = "$.items[0].note",
    session: str = "mine",
    access: Any = "read",
) -> Call:
    arguments = {"text": {"$ref": "r1", "path": path}}
    return keeper.resolve_references(Call(server, "give", arguments, session=session), access)


@pytest.mark.parametrize("way", ["read", "argument"])
@pytest.mark.parametrize("session", ["theirs", "", "mine\0", "MINE", "mine "])
def test_another_sessions_result_is_neither_read_nor_used(
    keeper: ResultKeeper, way: str, session: str
) -> None:
    keep(keeper, LARGE)
    ways: dict[str, Callable[[], object]] = {
        "read": lambda: keeper.show_part(session, "r1", "$", 0),
        "argument": lambda: refer(keeper, "north", session=session),
    }
    with pytest.raises(ReferenceRefused, match="there is no r1"):
        ways[way]()


def test_a_part_that_is_not_there_says_how_to_see_what_is(keeper: ResultKeeper) -> None:
    keep(keeper, LARGE)
    with pytest.raises(ReferenceRefused) as refused:
        keeper.show_part("mine", "r1", "$.nope", 0)
    assert str(refused.value) == "there is nothing at $.nope; the path $ shows what r1 has"


def test_a_sessions_own_result_is_read_and_used(keeper: ResultKeeper) -> None:
    keep(keeper, LARGE)
    assert keeper.show_part("mine", "r1", "$.items[7].id", 0)["value"] == 7
    assert refer(keeper, "north").arguments == {"text": "n" * 40}


@pytest.mark.parametrize("target", ["south", "relay_south", "writes_files", "resolves"])
def test_a_read_cannot_carry_one_apis_answer_to_another_place(
    keeper: ResultKeeper, target: str
) -> None:
    keep(keeper, LARGE)
    with pytest.raises(ReferenceRefused, match="is taken from an answer of north"):
        refer(keeper, target)


@pytest.mark.parametrize("target", ["north", "north_too", "plain", "relay_north"])
def test_a_read_takes_an_answer_to_where_it_came_from_or_nowhere(
    keeper: ResultKeeper, target: str
) -> None:
    keep(keeper, LARGE)
    assert refer(keeper, target).flow == ""


def test_an_answer_that_was_only_computed_on_in_between_is_still_the_first_apis(
    keeper: ResultKeeper,
) -> None:
    keep(keeper, LARGE)
    computing = refer(keeper, "plain")
    result = {"content": [], "structuredContent": {"items": [{"note": "x"}] * 2_000}}
    sources = (*keeper.find_sources(("plain",)), *computing.sources)
    keeper.shorten_result(result, "mine", "second", "plain.give", sources)
    reference = {"text": {"$ref": "r2", "path": "$.items[0].note"}}
    with pytest.raises(ReferenceRefused, match=r"api\.south:443"):
        keeper.resolve_references(Call("south", "give", reference, session="mine"), "read")
    back = keeper.resolve_references(Call("north", "give", reference, session="mine"), "read")
    assert back.arguments == {"text": "x"}


def test_what_is_said_of_a_tasks_answer_stays_where_the_answer_is_kept(
    keeper: ResultKeeper,
) -> None:
    said = "By `price`, the lowest of all 2000: id 7. " + "x" * 2_000
    blocks = [{"type": "text", "text": text} for text in (said, json.dumps(LARGE))]
    result = {"content": blocks, "structuredContent": LARGE}
    short = keeper.shorten_run(result, "mine", "job", ("north.give",), answered=True, leads=1)
    texts = [block["text"] for block in short["content"]]
    assert short["structuredContent"]["result"] == "r1"
    assert [text.startswith("By `price`, the lowest of all 2000: id 7.") for text in texts] == [
        False,
        True,
    ]
    assert len("".join(texts).encode()) <= ANSWER_BYTES


def test_an_answer_of_a_server_that_is_gone_goes_nowhere(keeper: ResultKeeper) -> None:
    result = {"content": [], "structuredContent": LARGE}
    keeper.shorten_run(result, "mine", "job", ("gone.give",), answered=True)
    with pytest.raises(ReferenceRefused, match="is taken from an answer of gone"):
        refer(keeper, "north")


def test_a_write_that_carries_an_answer_elsewhere_says_so_and_is_always_shown(
    keeper: ResultKeeper,
) -> None:
    keep(keeper, LARGE)
    call = refer(keeper, "south", access="write")
    assert call.flow.startswith("/text is taken from an answer of north (r1)")
    assert refer(keeper, "north", access="write").flow == ""


def test_what_an_answer_holds_is_never_followed(keeper: ResultKeeper) -> None:
    planted = {"items": [{"note": {"$ref": "r1", "path": "$.items[1].id"}}], "pad": ["x" * 90] * 99}
    keep(keeper, planted)
    assert refer(keeper, "north").arguments == {"text": planted["items"][0]["note"]}  # type: ignore[index]


@pytest.mark.parametrize(
    ("count", "path"), [(51, "$.items[0].id"), (50, "$.items")], ids=["many", "large"]
)
def test_references_cannot_blow_up_a_call(keeper: ResultKeeper, count: int, path: str) -> None:
    keep(keeper, {"items": LARGE["items"] * 4})
    arguments = {"a": [{"$ref": "r1", "path": path}] * count}
    with pytest.raises(ReferenceRefused, match="at most"):
        keeper.resolve_references(Call("north", "give", arguments, session="mine"), "read")


def test_some_references_to_small_values_are_resolved(keeper: ResultKeeper) -> None:
    keep(keeper, LARGE)
    arguments = {"a": [{"$ref": "r1", "path": "$.items[2].id"}] * 50}
    call = keeper.resolve_references(Call("north", "give", arguments, session="mine"), "read")
    assert call.arguments == {"a": [2] * 50}


def _nest(levels: int) -> Any:
    value: Any = "x" * 10_000
    for _ in range(levels):
        value = {"in": [value]}
    return value


HOSTILE: dict[str, Callable[[], Any]] = {
    "hidden keys": lambda: {f"a\u200b\u202e\x1b[31m{n}": "x" * 90 for n in range(300)},
    "endless keys": lambda: {"k" * 5_000 + str(n): 1 for n in range(300)},
    "many keys": lambda: {f"key{n}": {"a": n} for n in range(20_000)},
    "many kinds": lambda: {"items": [{f"k{n}": n} for n in range(20_000)]},
    "deep": lambda: _nest(60),
    "too deep": lambda: _nest(3_000),
    "endless text": lambda: {"text": "\u202eZ" * 500_000},
    "long numbers": lambda: {"a": [10**4_000] * 50},
    "keys that close a quotation": lambda: {f"']['{n}\"\\": "x" * 90 for n in range(300)},
}


@pytest.mark.parametrize("kind", list(HOSTILE))
def test_a_hostile_answer_is_told_within_bounds_and_without_what_nobody_sees(
    keeper: ResultKeeper, kind: str
) -> None:
    told = keep(keeper, HOSTILE[kind]())
    text = "".join(block["text"] for block in told["content"])
    structured = json.dumps(told["structuredContent"], ensure_ascii=False)
    for written in (text, structured):
        assert len(written.encode()) <= ANSWER_BYTES + 400
        assert not set(written) & set("\u200b\u202e\x1b")
    if kind != "too deep":
        shown = json.dumps(keeper.show_part("mine", "r1", "$", 0), ensure_ascii=False)
        assert len(shown.encode()) <= ANSWER_BYTES


def test_a_plain_answer_is_told_with_paths_that_find_its_values(keeper: ResultKeeper) -> None:
    value = {"a b": [{"it's": 1}], "pad": ["x" * 90] * 99, 'q"\\': {"n": 2}}
    shape = keep(keeper, value)["structuredContent"]["shape"]
    for path, found in (("$['a b'][0]['it\\'s']", 1), ("$['q\"\\\\'].n", 2)):
        assert path.replace("[0]", "[*]") in shape
        assert keeper.show_part("mine", "r1", path, 0)["value"] == found


@pytest.mark.parametrize(
    "path",
    ["$" + "[*]" * 300, "$" + ".a" * 5_000, "$['" + "\\" * 900, "$[99999999999999999999]", "$.é["],
)
def test_a_hostile_path_ends_at_once(keeper: ResultKeeper, path: str) -> None:
    keep(keeper, {"a": [[[1] * 20] * 20] * 20, "pad": ["x" * 90] * 99})
    if path.endswith("[*]"):
        assert keeper.show_part("mine", "r1", path, 0)["value"] == []
    else:
        with pytest.raises(ReferenceRefused):
            keeper.show_part("mine", "r1", path, 0)
