"""The control plane: its own process, so that what it stops cannot stop it.

Loopback HTTP with a bearer token (in `control.json`, mode 0600) or the page's cookie. Decisions
additionally want the PIN that was chosen at `setup`.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from orchestrator import answers
from orchestrator.freeze import kill
from orchestrator.metrics import StoreCollector
from orchestrator.page import render_live, render_page
from orchestrator.people import Decision, check_pin, decide
from orchestrator.settings import Settings
from registry.errors import RegistryError, Unknown
from registry.store import Store

COOKIE = "toolwright"
MAX_BODY = 64 * 1024
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Control:
    """The control plane's parts. `kill_sandboxes` kills all of this installation's sandboxes."""

    settings: Settings
    store: Store
    token: str
    kill_sandboxes: Callable[[], int]

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/healthz", self.health),
                Route("/", self.page),
                Route("/live", self._guarded(self.live)),
                Route("/page.js", _asset("page.js", "text/javascript")),
                Route("/page.css", _asset("page.css", "text/css")),
                Route("/metrics", self._guarded(self.metrics)),
                Route("/kill", self._guarded(self.kill), methods=["POST"]),
                Route("/unfreeze", self._guarded(self.unfreeze), methods=["POST"]),
                Route("/approvals", self._guarded(self.approvals)),
                Route("/approvals/{id}", self._guarded(self.decide), methods=["POST"]),
            ]
        )

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Only with the token, from this host's own name, and not from another site's page."""

        async def guarded(request: Request) -> Response:
            if not _same_site(request):
                return JSONResponse({"error": "wrong Host or Origin"}, 403)
            if not self._knows_token(request):
                return JSONResponse({"error": "the token is missing or wrong"}, 401)
            try:
                return await endpoint(request)
            except Unknown as error:
                return JSONResponse({"error": str(error)}, 404)
            except RegistryError as error:
                return JSONResponse({"error": str(error)}, 500)

        return guarded

    def _knows_token(self, request: Request) -> bool:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def health(self, request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def page(self, request: Request) -> Response:
        """The page; `?token=` from `toolwright control --open` becomes a cookie."""
        given = request.query_params.get("token", "")
        if given and hmac.compare_digest(given.encode(), self.token.encode()):
            redirect = RedirectResponse("/", 303)
            redirect.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
            return redirect
        if not _same_site(request) or not self._knows_token(request):
            return HTMLResponse("Open this page with `toolwright control --open`.", 401)
        return HTMLResponse(render_page(), headers={"Content-Security-Policy": CONTENT_POLICY})

    async def live(self, request: Request) -> Response:
        return HTMLResponse(await asyncio.to_thread(render_live, self.store, time.time()))

    async def metrics(self, request: Request) -> Response:
        collected = CollectorRegistry()
        collected.register(StoreCollector(self.store))
        return Response(generate_latest(collected), media_type="text/plain; version=0.0.4")

    async def kill(self, request: Request) -> Response:
        body = await _body(request)
        by, reason = str(body.get("by") or "control"), str(body.get("reason") or "")
        killed = await asyncio.to_thread(
            kill, self.store, self.settings.reserve, by, reason, self.kill_sandboxes, time.time
        )
        return JSONResponse(killed.as_json())

    async def unfreeze(self, request: Request) -> Response:
        body = await _body(request)
        refused = check_pin(self.settings, str(body.get("pin", "")), time.time())
        if refused:
            return JSONResponse({"error": refused}, 403)
        state = await asyncio.to_thread(self.store.unfreeze, time.time(), "control")
        return JSONResponse({"frozen": state.frozen, "epoch": state.epoch})

    async def approvals(self, request: Request) -> Response:
        rows = await asyncio.to_thread(self.store.approvals)
        return JSONResponse([answers.approval_json(row) for row in rows])

    async def decide(self, request: Request) -> Response:
        body = await _body(request)
        decision = Decision(
            approval=request.path_params["id"],
            approve=body.get("decision") == "approve",
            pin=str(body.get("pin", "")),
            by="page" if COOKIE in request.cookies else "control",
            reason=str(body.get("reason", ""))[:1000],
        )
        if body.get("decision") not in ("approve", "reject"):
            return JSONResponse({"error": "decision is neither approve nor reject"}, 400)
        told = await asyncio.to_thread(decide, self.settings, self.store, decision, time.time())
        if told.refused:
            return JSONResponse({"error": told.refused}, 403 if told.pin_wrong else 409)
        return JSONResponse({"approval": decision.approval, "state": told.state})


def _same_site(request: Request) -> bool:
    """Whether the request names this host as people do, and comes from no other site's page."""
    host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
    origin = request.headers.get("origin")
    names = {"127.0.0.1", "localhost", "[::1]"}
    return host in names and (
        origin is None or origin == f"http://{request.headers.get('host', '')}"
    )


async def _body(request: Request) -> dict[str, Any]:
    """A JSON object or a form of the page; anything else, or too much of it, is empty."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            return {}
    try:
        value = json.loads(content or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _asset(name: str, media_type: str) -> Endpoint:
    content = resources.files("orchestrator").joinpath("assets", name).read_text()

    async def asset(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return asset


@asynccontextmanager
async def keeping_heartbeat(store: Store, process: str) -> AsyncIterator[None]:
    """Say every few seconds that this process is alive."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(5)
            await asyncio.to_thread(store.heartbeat, process, time.time())

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
