"""An OpenAI-compatible endpoint on loopback that answers what a test tells it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.world.loopback import JSON, Answering, served


@dataclass(frozen=True)
class Said:
    """An answer: the message's content, or a whole body. A body of `chunks` is sent until the
    client goes away; `finish` is the finish reason.
    """

    content: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    chunks: Callable[[], Iterator[bytes]] | None = None
    finish: str = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None


def said(value: Any) -> Said:
    return Said(json.dumps(value))


Answers = Callable[[Mapping[str, Any]], Said]


@dataclass
class Model:
    """`answer` may be changed while it runs; `asked` are the requests' bodies."""

    url: str
    answer: Answers
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    models: tuple[str, ...] = ("m-1",)

    @property
    def prompts(self) -> list[str]:
        return [one["messages"][-1]["content"] for one in self.asked]

    def purposes(self) -> list[str]:
        return [purpose(one) for one in self.asked]


def purpose(request: Mapping[str, Any]) -> str:
    """What a request is for, as the name of its schema says."""
    shape = request.get("response_format") or {}
    return str(shape.get("json_schema", {}).get("name", ""))


@contextmanager
def model(answer: Answers) -> Iterator[Model]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, lambda url: Model(f"{url}/v1", answer)) as here:
        yield here


class _Answering(Answering):
    def do_GET(self) -> None:
        here: Model = self.world
        listed = [{"id": name} for name in here.models]
        self.answer_json(200, {"object": "list", "data": listed})

    def do_POST(self) -> None:
        here: Model = self.world
        request = json.loads(self.body())
        here.asked.append(request)
        here.headers.append({name.lower(): value for name, value in self.headers.items()})
        with suppress(ConnectionError):
            said = here.answer(request)
            body = said.body if said.body is not None else _completion(said)
            self.answer(said.status, body, (*JSON, *said.headers), said.chunks)


def _completion(answer: Said) -> bytes:
    message = {"role": "assistant", "content": answer.content, **answer.message}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
    told: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    usage_told = usage if answer.usage is None else answer.usage
    return json.dumps({**told, "choices": [choice], "usage": usage_told}).encode()
