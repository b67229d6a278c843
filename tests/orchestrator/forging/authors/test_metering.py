"""A metered author: within its budget, cut by a freeze, and never asked twice for one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forge.authors.interface import ModelReply, ModelRequest
from forge.errors import AuthorFailed
from orchestrator.errors import BudgetSpent
from orchestrator.forging.authors.metering import MeteredAuthor
from orchestrator.settings import Budget
from registry.errors import JobLost
from registry.store import Store
from sandbox.errors import Frozen
from sandbox.killswitch import KillSwitch

ASK = ModelRequest("code", "Write it.", {"type": "object"}, 100)
GOOD = ModelReply({"code": "x"}, "m-1", 40, 9, 1.0)


@dataclass
class Desk:
    """An author that says what a test tells it."""

    answer: Callable[[ModelRequest], Any]
    name: str = "openai"
    asked: list[ModelRequest] = field(default_factory=list)

    async def write(self, ask: ModelRequest) -> ModelReply:
        self.asked.append(ask)
        told = self.answer(ask)
        if isinstance(told, BaseException):
            raise told
        if told is None:
            await asyncio.Event().wait()
        reply: ModelReply = told
        return reply


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        yield opened


def metered(
    store: Store, desk: Desk, kill_switch: KillSwitch | None = None, **more: Any
) -> MeteredAuthor:
    budget = Budget(forges=1, forge_tokens=1000, price_in=1e6, price_out=1e6)
    given = {"job": "j1", "server": "lengths", "budget": budget, **more}
    return MeteredAuthor(desk, store.model_usage, kill_switch or KillSwitch(), **given)


def test_an_answer_is_kept_with_what_it_cost_and_not_asked_for_again(store: Store) -> None:
    desk = Desk(lambda ask: GOOD)
    first = asyncio.run(metered(store, desk).write(ASK))
    again = asyncio.run(metered(store, Desk(lambda ask: None)).write(ASK))
    assert (first.content, again.content) == ({"code": "x"}, {"code": "x"})
    assert len(desk.asked) == 1
    (call,) = store.model_usage.find("j1")
    assert (call.state, call.tokens, call.cost) == ("answered", 49, 49.0)


def test_another_job_asks_for_itself(store: Store) -> None:
    desk = Desk(lambda ask: GOOD)
    asyncio.run(metered(store, desk).write(ASK))
    asyncio.run(metered(store, desk, job="j2", budget=Budget()).write(ASK))
    assert len(desk.asked) == 2


def test_past_its_budget_nothing_is_asked(store: Store) -> None:
    desk = Desk(lambda ask: GOOD)
    with pytest.raises(BudgetSpent, match="tokens"):
        asyncio.run(metered(store, desk, budget=Budget(forge_tokens=50)).write(ASK))
    asyncio.run(metered(store, desk).write(ASK))
    with pytest.raises(BudgetSpent, match="1 forges had a model write"):
        asyncio.run(metered(store, desk, job="j2").write(ASK))
    asyncio.run(metered(store, desk, job="j2", allowed=lambda: 1).write(ASK))
    assert len(desk.asked) == 2


@pytest.mark.parametrize(
    ("kind", "tokens"), [("malformed", 12), ("unavailable", 12), ("timeout", 107)]
)
def test_a_failure_costs_what_is_known_or_the_most_there_may_be(
    store: Store, kind: Any, tokens: int
) -> None:
    failing = Desk(lambda ask: AuthorFailed(kind, "so it is", 10, 2))
    with pytest.raises(AuthorFailed):
        asyncio.run(metered(store, failing).write(ASK))
    (call,) = store.model_usage.find("j1")
    assert (call.state, call.message) == ("failed", "so it is")
    assert abs(call.tokens - tokens) <= 10
    assert asyncio.run(metered(store, Desk(lambda ask: GOOD)).write(ASK)) == GOOD


def test_while_frozen_nothing_is_asked(store: Store) -> None:
    kill_switch, desk = KillSwitch(), Desk(lambda ask: GOOD)
    kill_switch.engage()
    with pytest.raises(Frozen):
        asyncio.run(metered(store, desk, kill_switch).write(ASK))
    assert desk.asked == []
    assert store.model_usage.find("j1") == ()


def test_a_freeze_cuts_a_question_at_once(store: Store) -> None:
    kill_switch = KillSwitch()

    def answer(ask: ModelRequest) -> None:
        asyncio.get_running_loop().call_soon(kill_switch.engage)

    with pytest.raises(Frozen):
        asyncio.run(metered(store, Desk(answer), kill_switch).write(ASK))
    (call,) = store.model_usage.find("j1")
    assert (call.state, call.message) == ("failed", "cut: Frozen")
    assert call.tokens > 100


def test_a_job_that_was_cancelled_stops_asking(store: Store) -> None:
    def lost() -> None:
        raise JobLost("j1", 1)

    with pytest.raises(JobLost):
        asyncio.run(metered(store, Desk(lambda ask: None), alive=lost).write(ASK))
    assert store.model_usage.find("j1")[0].state == "failed"


def test_a_clients_own_model_costs_us_no_money(store: Store) -> None:
    asyncio.run(metered(store, Desk(lambda ask: GOOD, name="sampling")).write(ASK))
    assert store.model_usage.find("j1")[0].cost == 0.0
