"""An OpenAI-compatible endpoint on loopback that answers what a test tells it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.world.loopback import JSON, Answering, served

EVENTS = (("Content-Type", "text/event-stream"),)
PIECE = 7


@dataclass(frozen=True)
class Said:
    """An answer: the message's content, or a whole body. A body of `chunks` is sent until the
    client goes away; `finish` is the finish reason. Where a stream is asked for, a message comes as
    events of `PIECE` letters, unless it is sent `whole` all the same.
    """

    content: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    chunks: Callable[[], Iterator[bytes]] | None = None
    finish: str = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    whole: bool = False


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
            if request.get("stream") and not (said.whole or said.chunks or said.body is not None):
                self.answer(said.status, _stream(said), (*EVENTS, *said.headers))
                return
            body = said.body if said.body is not None else _completion(said)
            typed = any(name == "Content-Type" for name, _ in said.headers)
            headers = said.headers if typed else (*JSON, *said.headers)
            self.answer(said.status, body, headers, said.chunks)


def _message(answer: Said) -> dict[str, Any]:
    return {"role": "assistant", "content": answer.content, **answer.message}


def _usage(answer: Said) -> Mapping[str, Any]:
    usual = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return usual if answer.usage is None else answer.usage


_HEAD = {"id": "c", "created": 1, "model": "m-1"}


def _completion(answer: Said) -> bytes:
    choice = {"index": 0, "message": _message(answer), "finish_reason": answer.finish}
    told = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)}
    return json.dumps(told).encode()


def _stream(answer: Said) -> bytes:
    message = _message(answer)
    content = message.pop("content")
    pieces: list[Any] = [message]
    if isinstance(content, str):
        pieces += [{"content": content[n : n + PIECE]} for n in range(0, len(content), PIECE)]
    else:
        pieces.append({"content": content})
    choices = [{"index": 0, "delta": piece, "finish_reason": None} for piece in pieces]
    choices.append({"index": 0, "delta": {}, "finish_reason": answer.finish})
    told = [{**_HEAD, "object": "chat.completion.chunk", "choices": [one]} for one in choices]
    told.append({**_HEAD, "choices": [], "usage": _usage(answer)})
    return b"".join(event(json.dumps(one)) for one in told) + event("[DONE]")


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()
