"""The servers and scenarios of this bench: values, and a function that judges."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

Arguments = Mapping[str, Any]


class Wrong(Exception):
    """What a judge saw is not what has to be. The message says what was expected and what came."""


@dataclass(frozen=True)
class Answer:
    """What a client was given for a call: `body` is the API's own answer, decoded where it is JSON;
    `data` the bytes of pictures, sounds and files.
    """

    body: Any
    text: str
    is_error: bool
    data: tuple[bytes, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """An answer, and a client of the server itself, with the credential, to look at what it did."""

    answer: Answer
    direct: httpx.Client
    directory: Path

    @property
    def body(self) -> Any:
        return self.answer.body

    def get(self, path: str, **query: str) -> Any:
        """What the server itself says under a path: JSON where it is JSON."""
        response = self.direct.get(path, params=query or None)
        try:
            return response.json()
        except ValueError:
            return response.text

    def expect_success(self) -> None:
        if self.answer.is_error:
            raise Wrong(f"expected a result, got an error: {self.answer.text[:300]}")

    def expect(self, what: str, expected: Any, got: Any) -> None:
        if expected != got:
            raise Wrong(f"{what}: expected {_show(expected)}, got {_show(got)}")


Judge = Callable[[Seen], None]


@dataclass(frozen=True)
class Scenario:
    """One call. `operation` is `METHOD /path` of the description, or a tool's name; `arguments` are
    named as in the description, with the body under `body`; a function makes them of what is there
    before. An error is right only where `refused`.
    """

    name: str
    operation: str
    arguments: Arguments | Callable[[httpx.Client], Arguments]
    judge: Judge
    through_serve: bool = False
    refused: bool = False


@dataclass(frozen=True)
class Running:
    """A server that is up. `description` is where its document is: what FastMCP is given; `key` a
    credential that it made itself.
    """

    url: str
    directory: Path
    description: str = ""
    key: str = ""

    @property
    def host(self) -> str:
        return self.url.partition("://")[2].partition("/")[0]


@dataclass(frozen=True)
class RealServer:
    """`sources` are tried in turn, the bare address first, each with `{host}`, `{url}` and
    `{description}` in it; further words of one are options of that try, `options` are of all.
    `secrets` are the values by the names that the description gives; `headers` and `query` are the
    same credential for everyone else, each with `{key}` in it where the server made it.
    """

    name: str
    kind: str
    task: str
    start: Callable[[Path], AbstractContextManager[Running]]
    scenarios: tuple[Scenario, ...]
    sources: tuple[str, ...] = ("{host}",)
    options: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def list_headers(self, running: Running) -> dict[str, str]:
        return {name: value.format(key=running.key) for name, value in self.headers.items()}

    def list_query(self, running: Running) -> dict[str, str]:
        return {name: value.format(key=running.key) for name, value in self.query.items()}


def _show(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return shown if len(shown) <= 200 else f"{shown[:200]}…"
