"""The control plane: its own process, so that what it stops cannot stop it.

Loopback HTTP with a bearer token (in `control.json`, mode 0600) or the page's cookie. Decisions
additionally want the PIN that was chosen at `setup`.
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from html import escape
from importlib import resources

from prometheus_client import CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from orchestrator import answers
from orchestrator.allowing import always_from, rule_json
from orchestrator.announcer import Announcer
from orchestrator.clearance import Clearance
from orchestrator.consents import Consents
from orchestrator.console import Console
from orchestrator.errors import OrchestratorError
from orchestrator.freeze import Killed, kill
from orchestrator.linkdesk import LinkDesk
from orchestrator.logins import SESSION_SECONDS, Logins
from orchestrator.metrics import StoreCollector
from orchestrator.needs import allow as allow_needs
from orchestrator.needs import digest_of
from orchestrator.page import render_page
from orchestrator.people import Decision, decide
from orchestrator.pin import authority, check_pin, open_key
from orchestrator.requests import body_of, is_same_site
from orchestrator.safeheaders import SafeHeaders
from orchestrator.settings import Settings
from registry.errors import RegistryError, Unknown
from registry.store import Store

COOKIE = "toolwright"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Control:
    """The control plane's parts. `kill_sandboxes` kills all of this installation's sandboxes;
    where there is an `announcer`, the links of its messages lead here.
    """

    settings: Settings
    store: Store
    token: str
    kill_sandboxes: Callable[[], int]
    logins: Logins = field(default_factory=Logins)
    announcer: Announcer | None = None

    def application(self) -> Starlette:
        console = Console(self.settings, self.store)
        return Starlette(
            routes=[
                Route("/healthz", self.health),
                Route("/", self.page),
                Route("/docs", self._guarded(self.docs)),
                Route("/login", self._guarded(self.login), methods=["POST"]),
                Route("/events", self._guarded(console.events)),
                Route("/do", self._guarded(console.do), methods=["POST"]),
                Route("/jobs/{id}", self._guarded(console.job)),
                Route("/jobs/{id}/allow", self._guarded(self.allow), methods=["POST"]),
                Route("/calls/{id}/wrong", self._guarded(console.mark_wrong), methods=["POST"]),
                Route("/replay/{id}", self._guarded(console.replay), methods=["POST"]),
                Route("/search", self._guarded(console.search)),
                Route("/page.js", _asset("page.js", "text/javascript")),
                Route("/page.css", _asset("page.css", "text/css")),
                Route("/metrics", self._guarded(self.metrics)),
                Route("/kill", self._guarded(self.kill), methods=["POST"]),
                Route("/unfreeze", self._guarded(self.unfreeze), methods=["POST"]),
                Route("/approvals", self._guarded(self.approvals)),
                Route("/approvals/{id}", self._guarded(self.decide), methods=["POST"]),
                Route("/rules", self._guarded(self.rules)),
                Route("/rules/{id}/revoke", self._guarded(self.revoke), methods=["POST"]),
                *self._link_routes(),
            ],
            middleware=[Middleware(SafeHeaders)],
        )

    def _link_routes(self) -> tuple[Route, ...]:
        """The ends of one-time links, without token and cookie: the link is the proof."""
        if self.announcer is None:
            return ()
        desk = LinkDesk(self.store, self.announcer.links, self.announcer, self._kill)
        return (
            Route("/decide", desk.show),
            Route("/decide", desk.decide, methods=["POST"]),
        )

    def _kill(self, by: str, reason: str = "") -> Killed:
        return kill(self.store, self.settings.reserve, by, reason, self.kill_sandboxes, time.time)

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Only with the token, from this host's own name, and not from another site's page."""

        @wraps(endpoint)
        async def guarded(request: Request) -> Response:
            if not is_same_site(request):
                return JSONResponse({"error": "wrong Host or Origin"}, 403)
            if not self._knows_token(request):
                if not self._knows_browser(request):
                    return JSONResponse({"error": "the token is missing or wrong"}, 401)
                # A browser names the origin of every POST (Fetch standard, "origin-serialized").
                if request.method != "GET" and "origin" not in request.headers:
                    return JSONResponse({"error": "the Origin is missing"}, 403)
            try:
                return await endpoint(request)
            except Unknown as error:
                return JSONResponse({"error": str(error)}, 404)
            except OrchestratorError as error:
                return JSONResponse({"error": str(error)}, 400)
            except RegistryError as error:
                return JSONResponse({"error": str(error)}, 500)

        return guarded

    def _knows_token(self, request: Request) -> bool:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else ""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _knows_browser(self, request: Request) -> bool:
        return self.logins.knows(request.cookies.get(COOKIE, ""), time.time())

    async def health(self, request: Request) -> Response:
        """Whether the control plane is up. For anyone."""
        return JSONResponse({"ok": True})

    async def page(self, request: Request) -> Response:
        """The control page. `?login=` of `toolwright control --open` logs a browser in, once."""
        code = request.query_params.get("login", "")
        session = self.logins.begin(code, time.time()) if code else None
        if session:
            redirect = RedirectResponse("/", 303)
            redirect.set_cookie(
                COOKIE, session, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict"
            )
            return redirect
        if not is_same_site(request) or not self._knows_browser(request):
            told = "Open this page with `toolwright control --open`: its link works once."
            return HTMLResponse(told, 401)
        return HTMLResponse(render_page(), headers=_page_headers())

    async def login(self, request: Request) -> Response:
        """A path that logs one browser in, once, within two minutes."""
        if not self._knows_token(request):
            return JSONResponse({"error": "only with the token"}, 403)
        return JSONResponse({"path": f"/?login={self.logins.invite(time.time())}"})

    async def docs(self, request: Request) -> Response:
        """This page."""
        routes = [route for route in request.app.routes if isinstance(route, Route)]
        return HTMLResponse(render_docs(routes), headers=_page_headers())

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus, in its text format."""
        collected = CollectorRegistry()
        collected.register(StoreCollector(self.store))
        return Response(generate_latest(collected), media_type="text/plain; version=0.0.4")

    async def kill(self, request: Request) -> Response:
        """Freeze everything: `by`, `reason`. Answers when nothing acts any more."""
        body = await body_of(request)
        by, reason = str(body.get("by") or "control"), str(body.get("reason") or "")
        killed = await asyncio.to_thread(self._kill, by, reason)
        return JSONResponse(killed.as_json())

    async def unfreeze(self, request: Request) -> Response:
        """Lift the freeze: `pin`."""
        body = await body_of(request)
        refused = check_pin(self.settings, str(body.get("pin", "")), time.time())
        if refused:
            return JSONResponse({"error": refused}, 403)
        state = await asyncio.to_thread(self.store.unfreeze, time.time(), "control")
        return JSONResponse({"frozen": state.frozen, "epoch": state.epoch})

    async def approvals(self, request: Request) -> Response:
        """The newest approvals, with the exact request of each."""
        rows = await asyncio.to_thread(self.store.approvals)
        return JSONResponse([answers.approval_json(row) for row in rows])

    async def decide(self, request: Request) -> Response:
        """Decide an approval: `decision` (`approve` or `reject`), `pin`, `reason`, and `digest`,
        that of the request as it was shown. With `always` (`where`, an object of arguments and
        their values or patterns, `until`, `max`, `any_version`) like calls are allowed from now on.
        """
        body = await body_of(request)
        decision = Decision(
            approval=request.path_params["id"],
            approve=body.get("decision") == "approve",
            pin=str(body.get("pin", "")),
            by="page" if COOKIE in request.cookies else "control",
            reason=str(body.get("reason", ""))[:1000],
            digest=str(body.get("digest") or ""),
        )
        if body.get("decision") not in ("approve", "reject"):
            return JSONResponse({"error": "decision is neither approve nor reject"}, 400)
        always = always_from(body["always"]) if decision.approve and body.get("always") else None
        told = await asyncio.to_thread(
            decide, self.settings, self.store, decision, time.time(), always
        )
        if told.refused:
            return JSONResponse({"error": told.refused}, 403 if told.pin_wrong else 409)
        return JSONResponse({"approval": decision.approval, "state": told.state, "rule": told.rule})

    async def allow(self, request: Request) -> Response:
        """Allow what a job waits for (a budget, a host, permissions): `pin`, and `digest`, that of
        the need as it was shown. The job then goes on where a `serve` or `work` runs.
        """
        body = await body_of(request)
        identity = request.path_params["id"]
        opened = open_key(self.settings, str(body.get("pin", "")), time.time())
        if opened.signer is None:
            return JSONResponse({"error": opened.refused}, 403)
        job = await asyncio.to_thread(self.store.job, identity)
        if body.get("digest") and body["digest"] != digest_of(job.needs):
            return JSONResponse({"error": "it needs something else now; look at it again"}, 409)
        consents = Consents(self.store, Clearance(self.store, authority(self.settings)).key)
        told = await asyncio.to_thread(
            allow_needs, self.store, consents, job, "page", opened.signer
        )
        await asyncio.to_thread(Console(self.settings, self.store).work)
        return JSONResponse({"job": identity, "told": f"allowed: {told}"})

    async def rules(self, request: Request) -> Response:
        """The standing rules, with what they say, their uses and whether they count."""
        public = Clearance(self.store, authority(self.settings)).key()
        rows = await asyncio.to_thread(self.store.rules)
        return JSONResponse([rule_json(rule, time.time(), public) for rule in rows])

    async def revoke(self, request: Request) -> Response:
        """End a standing rule. Needs no PIN: it only makes things stricter."""
        identity = request.path_params["id"]
        ended = await asyncio.to_thread(self.store.revoke_rule, identity, "control", time.time())
        return JSONResponse({"rule": identity, "revoked": ended})


def render_docs(routes: Iterable[Route]) -> str:
    """The HTTP API, as its routes and their docstrings say."""
    lines = "".join(
        f"<dt><code>{escape(' '.join(sorted((route.methods or set()) - {'HEAD'})))} "
        f"{escape(route.path)}</code></dt>"
        f"<dd>{escape(inspect.getdoc(route.endpoint) or '')}</dd>"
        for route in routes
        if not route.path.startswith("/page.")
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Toolwright: HTTP API'
        '</title><link rel="stylesheet" href="/page.css"></head><body><h1>HTTP API</h1><p>JSON in '
        "and out. Send <code>Authorization: Bearer TOKEN</code>; address and token are in "
        f"<code>control.json</code> in Toolwright's home.</p><dl>{lines}</dl></body></html>"
    )


def _page_headers() -> dict[str, str]:
    return {
        "Content-Security-Policy": CONTENT_POLICY,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


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
