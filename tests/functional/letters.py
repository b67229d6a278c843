"""An API with one operation, a write whose answer comes only when the test says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.functional.home import SECONDS, Home, new_home
from tests.world.loopback import Answering, served

LETTER = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Letters", "version": "1"},
    "servers": [{"url": "/"}],
    "paths": {
        "/letters": {
            "post": {
                "operationId": "sendLetter",
                "summary": "Send a letter",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": LETTER}},
                },
                "responses": {
                    "201": {
                        "description": "The letter, sent.",
                        "content": {"application/json": {"schema": LETTER}},
                    }
                },
            }
        }
    },
}


@dataclass
class Letters:
    """`sent` are the texts that arrived; while `held` is set none of them is answered."""

    url: str
    sent: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)


@contextmanager
def letters_api() -> Iterator[Letters]:
    """Serve it on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, Letters) as here:
        try:
            yield here
        finally:
            here.release.set()


class _Answering(Answering):
    def do_GET(self) -> None:
        known = self.path == "/openapi.json"
        self.answer_json(200 if known else 404, DOCUMENT if known else {})

    def do_POST(self) -> None:
        here: Letters = self.world
        letter = json.loads(self.body())
        here.sent.append(letter["text"])
        if here.held.is_set():
            here.release.wait(SECONDS)
        with suppress(OSError):
            self.answer_json(201, letter)


@contextmanager
def letters_home(directory: Path, engine: str, letters: Letters) -> Iterator[Home]:
    """A home with the server `letters`, forged for this API."""
    with new_home(directory, engine) as home:
        host = letters.url.removeprefix("http://")
        home.person("forge", "send letters", "--source", letters.url, "--allow", host)
        yield home
