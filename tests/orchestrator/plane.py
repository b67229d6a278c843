"""A control plane that listens, for tests of its API and of its page."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from orchestrator.control.server import ControlPlane
from orchestrator.settings import Settings
from registry.store import Store

TOKEN = "the-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Plane:
    """A control plane that listens; `kills` counts how often sandboxes were to be killed."""

    url: str = ""
    kills: list[float] = field(default_factory=list)

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        """By default with the token; `headers` replace it."""
        given = {"headers": BEARER, **more}
        with httpx.Client(trust_env=False, base_url=self.url, timeout=120) as client:
            return client.request(method, path, **given)  # type: ignore[arg-type]


@pytest.fixture
def plane(settings: Settings, store: Store) -> Iterator[Plane]:
    here = Plane()

    def kill_sandboxes() -> int:
        here.kills.append(time.time())
        return 0

    with listening(
        ControlPlane(settings, store, TOKEN, kill_sandboxes).build_application()
    ) as here.url:
        yield here


@contextmanager
def listening(application: Starlette) -> Iterator[str]:
    """Serve it on a free port of 127.0.0.1 until the block ends; its URL."""
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def logged_in(plane: Plane) -> dict[str, str]:
    """The headers of a browser that has used a login link."""
    path = plane.ask("POST", "/login").json()["path"]
    cookie = plane.ask("GET", path, headers={}).headers["set-cookie"]
    return {"Cookie": cookie.partition(";")[0]}
