"""A client that can ask its user shows the exact request; an answer may reject, never approve."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitResult

from tests.functional.home import Home
from tests.functional.letters import Letters, letters_api, letters_home

ERAS = ["legacy", "2026-07-28"]
ANSWERS: dict[str, ElicitResult] = {
    "reject": ElicitResult(action="accept", content={"decision": "reject"}),
    "leave": ElicitResult(action="accept", content={"decision": "leave it waiting"}),
    "approve": ElicitResult(action="accept", content={"decision": "approve"}),
    "yes": ElicitResult(action="accept", content={"approve": True, "pin": "00000000"}),
    "empty": ElicitResult(action="accept"),
    "decline": ElicitResult(action="decline"),
    "cancel": ElicitResult(action="cancel"),
}


@pytest.fixture(scope="module")
def letters() -> Iterator[Letters]:
    with letters_api() as api:
        yield api


@pytest.fixture(scope="module")
def home(
    any_engine: str, letters: Letters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    with letters_home(tmp_path_factory.mktemp("elicitation"), any_engine, letters) as home:
        yield home


async def written(
    home: Home, mode: Any, replies: list[ElicitResult]
) -> list[tuple[CallToolResult, str]]:
    """The results of as many writes as there are replies, and what the user was shown of each."""
    shown: list[str] = []

    async def asked(_context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        shown.append(params.message)
        return replies[len(shown) - 1]

    command = home.launch("serve", "--no-control")
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=home.environment)
    arguments = {"tool": "letters.send_letter", "arguments": {"body": {"text": "hello"}}}
    async with Client(parameters, mode=mode, elicitation_callback=asked) as client:
        results = [await client.call_tool("call_write", arguments) for _ in replies]
    assert len(shown) == len(replies)
    return list(zip(results, shown, strict=True))


@pytest.mark.parametrize("mode", ERAS)
def test_what_the_client_says_may_reject_and_nothing_else(
    home: Home, letters: Letters, mode: str
) -> None:
    told = asyncio.run(written(home, mode, list(ANSWERS.values())))
    states = {}
    for name, (result, message) in zip(ANSWERS, told, strict=True):
        assert f"POST {letters.url}/letters" in message
        assert '"hello"' in message
        assert "toolwright approve" in message
        assert bool(result.is_error) == (name == "reject")
        value: Any = result.structured_content
        with home.store() as store:
            states[name] = store.approvals.get(value["approval"]).state
    assert states == {name: "rejected" if name == "reject" else "pending" for name in ANSWERS}
    assert letters.sent == []
