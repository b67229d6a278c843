"""A control plane that listens, for tests of its API and of its page."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from orchestrator.approvals.sending import Sending
from orchestrator.control.server import ControlPlane
from orchestrator.settings import Settings
from registry.store import Store

TOKEN = "the-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Plane:
    """A control plane that listens; `kills` counts how often sandboxes were to be killed, `sent`
    are the approvals whose writes it had sent: nobody does that here. While `may_send` is not set
    they are on their way."""

    url: str = ""
    kills: list[float] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    may_send: threading.Event = field(default_factory=threading.Event)

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        """By default with the token; `headers` replace it."""
        given = {"headers": BEARER, **more}
        with httpx.Client(trust_env=False, base_url=self.url, timeout=120) as client:
            return client.request(method, path, **given)  # type: ignore[arg-type]


@pytest.fixture
def plane(settings: Settings, store: Store) -> Iterator[Plane]:
    here = Plane()
    here.may_send.set()

    def kill_sandboxes() -> int:
        here.kills.append(time.time())
        return 0

    def send(approval: str) -> Sending:
        here.sent.append(approval)
        here.may_send.wait(60)
        return Sending(frozen=True)

    control = ControlPlane(settings, store, TOKEN, kill_sandboxes, send=send)
    with listening(control.build_application()) as here.url:
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


@dataclass(frozen=True)
class LoggedIn:
    """A browser that has used a login link: the page's host, its cookie and its key."""

    plane: Plane
    host: str
    cookie: str
    key: str

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def shown(self) -> dict[str, str]:
        """The headers with which the browser itself goes to the page."""
        return {"Host": self.host, "Cookie": self.cookie}

    @property
    def headers(self) -> dict[str, str]:
        """Those with which the page's script asks."""
        return {**self.shown, "Origin": self.origin, "X-Toolwright-Key": self.key}

    def read_events(self, room: str = "home") -> dict[str, str]:
        """A room's parts as a page that was just opened gets them."""
        with (
            httpx.Client(trust_env=False, base_url=self.plane.url, timeout=120) as client,
            client.stream("GET", f"/events?room={room}", headers=self.headers) as answer,
        ):
            first = next(line for line in answer.iter_lines() if line.startswith("data: "))
            parts: dict[str, str] = json.loads(first.removeprefix("data: "))
            return parts

    def find_form(self, path: str, room: str = "home") -> str:
        """The token of what a room offers to post to a path."""
        for html in self.read_events(room).values():
            found = re.search(rf'data-post="{re.escape(path)}" data-form="([\w-]+)"', html)
            if found:
                return found[1]
        raise AssertionError(f"the page offers no {path}")

    def press(self, path: str, **more: object) -> httpx.Response:
        """Post as the page's script does once its button is pressed."""
        headers = {**self.headers, "X-Toolwright-Form": self.find_form(path)}
        return self.plane.ask("POST", path, headers=headers, **more)


def log_in(plane: Plane) -> LoggedIn:
    """Use a login link as a browser does. Only browsers find the page's name by themselves."""
    url = urlsplit(plane.ask("POST", "/login").json()["url"])
    answer = plane.ask("GET", f"/?{url.query}", headers={"Host": url.netloc})
    assert answer.status_code == 303
    path, _, key = answer.headers["location"].partition("#")
    assert path == "/"
    return LoggedIn(plane, url.netloc, answer.headers["set-cookie"].partition(";")[0], key)
