"""Which operations a forge leaves out: those that fail by themselves, not of a busy moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.app import open_app
from orchestrator.forging.order import ForgeOrder, ForgeResult
from orchestrator.settings import load_settings
from sandbox.errors import CallTimedOut
from tests.granted import allow
from tests.world.zones import owners_api


@dataclass
class LateSession:
    """A session of which the first calls of one tool come too late."""

    session: Any
    engine: LateEngine

    async def list_tools(self) -> Any:
        return await self.session.list_tools()

    async def call(self, tool: str, arguments: Mapping[str, Any], *more: Any, **named: Any) -> Any:
        if tool == self.engine.tool and self.engine.late:
            self.engine.late -= 1
            raise CallTimedOut(tool, 0.1)
        return await self.session.call(tool, arguments, *more, **named)


@dataclass
class LateEngine:
    """The engine of a machine that is busy with other work."""

    engine: Any
    tool: str
    late: int

    @property
    def modules(self) -> Any:
        return self.engine.modules

    @property
    def base(self) -> str:
        return str(self.engine.base)

    @asynccontextmanager
    async def open(self, *given: Any, **named: Any) -> AsyncIterator[LateSession]:
        async with self.engine.open(*given, **named) as session:
            yield LateSession(session, self)


def forge_late(home: Path, engine: str, late: int) -> ForgeResult:
    settings = load_settings(home=home, engine=engine)

    async def story() -> ForgeResult:
        async with open_app(settings, "do") as app:
            allow(settings, app.store, owners.url)
            busy: Any = LateEngine(app.forge.engine, "count_owners", late)
            order = ForgeOrder(source=owners.url, name="owners")
            return await replace(app.forge, engine=busy).forge_server(order, lambda step: None)

    with owners_api() as owners:
        return asyncio.run(story())


def list_tools(made: ForgeResult) -> list[str]:
    return sorted(tool.name for tool in made.bundle.tools)


def test_an_operation_that_failed_once_and_passes_by_itself_stays(
    tmp_path: Path, any_engine: str
) -> None:
    made = forge_late(tmp_path, any_engine, 1)
    assert list_tools(made) == ["count_owners", "find_owner"]
    assert made.proof.passed
    assert made.left_out == ()


def test_an_operation_that_fails_by_itself_too_is_left_out_and_told(
    tmp_path: Path, any_engine: str
) -> None:
    made = forge_late(tmp_path, any_engine, 10_000)
    assert list_tools(made) == ["find_owner"]
    assert any("countOwners" in told or "count_owners" in told for told in made.left_out)
