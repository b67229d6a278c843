"""HTTP server of the control plane, a process of its own, so that what it stops cannot stop it.

Loopback HTTP with a bearer token (in `control.json`, mode 0600) or, at the page's own origin, its
session. Decisions additionally want the PIN that was chosen at `setup`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import resources
from typing import Any
from urllib.parse import quote

from prometheus_client import CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from forge.text import render_count
from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.needs import (
    allow_needs,
    hash_needs,
    is_allowable,
    is_met,
    names_file,
)
from orchestrator.approvals.rules import encode_rule, parse_rule_request
from orchestrator.approvals.sending import Send, render_outcome, send_approved, wait_for_outcome
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, open_key, sign_audit
from orchestrator.control.access import COOKIE, ControlAccess, Refusal
from orchestrator.control.answering import AnswerDesk
from orchestrator.control.clicks import name_clicks_of
from orchestrator.control.console import MAX_WAIT_SECONDS, PageConsole, parse_number
from orchestrator.control.granting import GrantDesk
from orchestrator.control.link_pages import LinkPages
from orchestrator.control.logins import SESSION_SECONDS
from orchestrator.control.metrics import StoreCollector
from orchestrator.control.middleware import SafeHeaders, read_body
from orchestrator.control.notify.announcer import Announcer
from orchestrator.control.page import open_readers, render_page
from orchestrator.control.plain import WAIT_SECONDS, Act, PlainPage
from orchestrator.control.rendering import render_template
from orchestrator.control.rooms.place import parse_place
from orchestrator.control.trying import ToolTrial
from orchestrator.errors import FormInvalid, LoginInAddress, OrchestratorError
from orchestrator.processes.kill import KillReport, freeze_everything, kill_until_gone
from orchestrator.settings import Settings
from orchestrator.views.records import encode_shown_approval
from registry.audit.heads import HeadSigner
from registry.errors import RegistryError, RowNotFound
from registry.models import Approval, Freeze
from registry.processes import ProcessTable
from registry.store import Store
from sandbox.clock import SystemClock

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

NO_DIGEST = (
    "no digest says what was decided: send `digest` as {} shows it beside all that is asked, or "
    "decide on the page or at the terminal"
)

CONTROL, PAGE = "control", "page"
"""Who is said to have done what was asked for with the token, and on the page."""
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class LiftedFreeze:
    """The state after a freeze was lifted, None where it was not, and what came of it in words."""

    state: Freeze | None
    told: str


@dataclass(frozen=True)
class RouteDescription:
    """A route of the API in its documentation."""

    methods: str
    path: str
    about: str


@dataclass(frozen=True)
class ControlPlane:
    """The control plane's parts. `kill_sandboxes` kills all of this installation's sandboxes;
    where there is an `announcer`, the links of its messages lead here. `send` has an approved write
    carried out; by default by whoever lives, else by a fresh process.
    """

    settings: Settings
    store: Store
    token: str = field(repr=False)
    kill_sandboxes: Callable[[], int]
    announcer: Announcer | None = None
    send: Send | None = None
    _access: ControlAccess = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_access", ControlAccess(self.token))

    def build_application(self) -> Starlette:
        console = PageConsole(self.settings, self.store, self._access)
        trial = ToolTrial(self.settings, self.store, self._access)
        desk = GrantDesk(self.settings, self.store)
        answers = AnswerDesk(self.store, console.ensure_worker)
        readers = open_readers(self.settings, self.store)
        acts = self._list_plain_acts()
        plain = PlainPage(self._access, self.store, acts, self.settings, readers)
        return Starlette(
            routes=[
                Route("/healthz", self.report_health),
                Route("/", self.show_page),
                Route("/rooms/{room}", self.show_page),
                Route("/rooms/{room}/{name}", self.show_page),
                Route("/plain", plain.open_page),
                Route("/plain", plain.use_form, methods=["POST"]),
                Route("/docs", self._guard_view(self.show_docs)),
                Route("/login", self._guard_endpoint(self.create_login), methods=["POST"]),
                Route("/events", self._guard_endpoint(console.stream_events)),
                Route("/do", self._guard_endpoint(console.start_task), methods=["POST"]),
                Route("/jobs/{id}", self._guard_endpoint(console.wait_for_job)),
                Route(
                    "/jobs/{id}/again", self._guard_endpoint(console.repeat_task), methods=["POST"]
                ),
                Route("/jobs/{id}/allow", self._guard_endpoint(self.allow_job), methods=["POST"]),
                Route(
                    "/calls/{id}/wrong", self._guard_endpoint(console.mark_wrong), methods=["POST"]
                ),
                Route(
                    "/servers/{server}/tools/{tool}/call",
                    self._guard_endpoint(trial.call_tool),
                    methods=["POST"],
                ),
                *self._build_posts(
                    {
                        "/servers": console.forge_server,
                        "/sources": desk.add_source,
                        "/sources/remove": desk.remove_source,
                        "/hosts": desk.allow_host,
                        "/servers/{server}/hosts": desk.allow_server_host,
                        "/grants/remove": desk.remove_grant,
                        "/secrets": desk.set_secret,
                        "/secrets/remove": desk.remove_secret,
                        "/jobs/{id}/answer": answers.answer_run,
                        "/jobs/{id}/cancel": answers.cancel_job,
                        "/doctor": console.check_installation,
                        "/logout": console.log_out,
                    }
                ),
                Route("/replay/{id}", self._guard_endpoint(console.replay_call), methods=["POST"]),
                Route("/audit/verify", self._guard_endpoint(self.verify_audit), methods=["POST"]),
                Route("/search", self._guard_endpoint(console.search_records)),
                Route("/page.js", _serve_asset("page.js", "text/javascript")),
                Route("/page.css", _serve_asset("page.css", "text/css")),
                Route("/metrics", self._guard_endpoint(self.export_metrics)),
                Route("/kill", self._guard_endpoint(self.kill_everything), methods=["POST"]),
                Route("/unfreeze", self._guard_endpoint(self.lift_freeze), methods=["POST"]),
                Route("/approvals", self._guard_endpoint(self.list_approvals)),
                Route(
                    "/approvals/{id}", self._guard_endpoint(self.decide_approval), methods=["POST"]
                ),
                Route("/rules", self._guard_endpoint(self.list_rules)),
                Route(
                    "/rules/{id}/revoke", self._guard_endpoint(self.revoke_rule), methods=["POST"]
                ),
                *self._build_link_routes(),
            ],
            middleware=[Middleware(SafeHeaders)],
        )

    def _build_posts(self, endpoints: Mapping[str, Endpoint]) -> tuple[Route, ...]:
        return tuple(
            Route(path, self._guard_endpoint(endpoint), methods=["POST"])
            for path, endpoint in endpoints.items()
        )

    def _build_link_routes(self) -> tuple[Route, ...]:
        """The routes of one-time links, without token or cookie: the link authenticates itself."""
        if self.announcer is None:
            return ()
        desk = LinkPages(
            self.store.approvals,
            self.announcer.links,
            self.announcer,
            self._freeze_everything,
            self._send_approved,
        )
        return (
            Route("/decide", desk.show_link),
            Route("/decide", desk.use_link, methods=["POST"]),
        )

    def _send_approved(self, approval: str, seconds: float) -> Approval:
        """Have it sent, and wait so long for what comes of it."""
        sending = (self.send or partial(send_approved, self.settings, self.store))(approval)
        return wait_for_outcome(self.store.approvals, approval, sending, seconds)

    def _freeze_everything(self, by: str, reason: str = "") -> KillReport:
        report = freeze_everything(
            self.store.processes,
            self.settings.reserve,
            by,
            reason,
            self.kill_sandboxes,
            SystemClock(),
            self.settings.silence_seconds,
        )
        if report.left:
            # Who asked hears how many are left; those are killed on until none is.
            again = (self.kill_sandboxes, SystemClock())
            threading.Thread(target=kill_until_gone, args=again, daemon=True).start()
        return report

    def _list_plain_acts(self) -> Mapping[str, Act]:
        """What forms of the page without script ask for: the same as its buttons with script."""
        return {
            "freeze": self._freeze_plainly,
            "unfreeze": self._unfreeze_plainly,
            "approve": self._decide_plainly,
            "reject": self._decide_plainly,
        }

    async def _freeze_plainly(self, fields: Mapping[str, Any]) -> str:
        killed = await asyncio.to_thread(self._freeze_everything, PAGE)
        await asyncio.to_thread(sign_audit, self.settings, self.store.audit)
        return render_killed(killed)

    async def _unfreeze_plainly(self, fields: Mapping[str, Any]) -> str:
        return (await self._unfreeze(str(fields.get("pin", "")), PAGE)).told

    async def _decide_plainly(self, fields: Mapping[str, Any]) -> str:
        decision = Decision(
            approval=str(fields.get("approval", "")),
            approve=fields.get("act") == "approve",
            pin=str(fields.get("pin", "")),
            by=PAGE,
            digest=str(fields.get("digest", "")),
        )
        if not decision.digest:
            return NO_DIGEST.format("the page")
        try:
            told = await asyncio.to_thread(
                decide_with_pin, self.settings, self.store, decision, time.time(), None
            )
        except (OrchestratorError, RegistryError) as error:
            return str(error)
        if told.refused:
            return told.refused
        if not decision.approve:
            return f"{decision.approval}: {told.state}"
        ended = await asyncio.to_thread(self._send_approved, decision.approval, WAIT_SECONDS)
        return f"{ended.id}: {render_outcome(ended)}"

    def _guard_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Require the token, or a page of ours; and a Host and Origin of ours."""

        @wraps(endpoint)
        async def guarded(request: Request) -> Response:
            refusal = self._access.check_request(request)
            if refusal is not None:
                return _build_refusal(refusal)
            try:
                return await endpoint(request)
            except RowNotFound as error:
                return JSONResponse({"error": str(error)}, 404)
            except OrchestratorError as error:
                problems = find_problems(error)
                more = {"problems": problems} if problems else {}
                return JSONResponse({"error": self._tell_error(error, request), **more}, 400)
            except RegistryError as error:
                return JSONResponse({"error": str(error)}, 500)

        return guarded

    def _tell_error(self, error: OrchestratorError, request: Request) -> str:
        return str(error) if self._access.has_token(request) else name_clicks_of(error)

    def _guard_view(self, endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        async def guarded(request: Request) -> Response:
            refusal = self._access.check_view(request)
            return await endpoint(request) if refusal is None else _build_refusal(refusal)

        return guarded

    async def report_health(self, request: Request) -> Response:
        """Whether the control plane is up, and in which process. For anyone."""
        return JSONResponse({"ok": True, "pid": os.getpid()})

    async def show_page(self, request: Request) -> Response:
        """A room of the control page, by default the first. `?login=` of `toolwright control
        --open` logs a browser in, once.
        """
        code = request.query_params.get("login", "")
        if code and not self._access.is_page_origin(request):
            # What logs in does so at the page's own origin only.
            return RedirectResponse(self._access.build_page_url(request, f"/?login={quote(code)}"))
        begun = self._access.logins.begin_session(code, time.time()) if code else None
        if begun is not None:
            # A fragment is sent to no server (RFC 9110 section 4.2.5); the page's script keeps it.
            redirect = RedirectResponse(f"/#{begun.key}", 303)
            redirect.set_cookie(
                COOKIE, begun.cookie, max_age=int(SESSION_SECONDS), httponly=True, samesite="strict"
            )
            return redirect
        session = self._access.find_session(request)
        if session is None or not self._access.is_own_site(request):
            notice = render_template("logged_out", heading="You are not logged in")
            return HTMLResponse(notice, 401, headers=_build_page_headers())
        room, name = (request.path_params.get(each, "") for each in ("room", "name"))
        place = parse_place(room or "home", name, request.query_params)
        if place is None:
            notice = render_template("no_room", heading="There is no such room")
            return HTMLResponse(notice, 404, headers=_build_page_headers())
        return HTMLResponse(render_page(session, place), headers=_build_page_headers())

    async def create_login(self, request: Request) -> Response:
        """The `url` that logs one browser in, once, in two minutes, and its `path`: with `plain`
        to the page without script.
        """
        if not self._access.has_token(request):
            return JSONResponse({"error": "only with the token"}, 403)
        place = "/plain" if (await read_body(request)).get("plain") is True else "/"
        path = f"{place}?login={self._access.logins.create_code(time.time())}"
        return JSONResponse({"path": path, "url": self._access.build_page_url(request, path)})

    async def show_docs(self, request: Request) -> Response:
        """This page."""
        routes = [route for route in request.app.routes if isinstance(route, Route)]
        return HTMLResponse(render_docs(routes), headers=_build_page_headers())

    async def export_metrics(self, request: Request) -> Response:
        """Counts for Prometheus, in its text format."""
        collected = CollectorRegistry()
        collected.register(StoreCollector(self.store))
        return Response(generate_latest(collected), media_type="text/plain; version=0.0.4")

    async def kill_everything(self, request: Request) -> Response:
        """Freeze everything: `by`, `reason`. Answers when nothing acts any more."""
        body = await read_body(request)
        by, reason = str(body.get("by") or self._name_place(request)), str(body.get("reason") or "")
        killed = await asyncio.to_thread(self._freeze_everything, by, reason)
        signing = BackgroundTask(sign_audit, self.settings, self.store.audit)
        return JSONResponse({**killed.to_json(), "told": render_killed(killed)}, background=signing)

    async def lift_freeze(self, request: Request) -> Response:
        """Lift the freeze: `pin`."""
        body = await read_body(request)
        lifted = await self._unfreeze(str(body.get("pin", "")), self._name_place(request))
        if lifted.state is None:
            return JSONResponse({"error": lifted.told}, 403)
        answer = {"frozen": lifted.state.frozen, "epoch": lifted.state.epoch}
        return JSONResponse({**answer, "told": lifted.told})

    def _name_place(self, request: Request) -> str:
        """Where somebody asks from, as the audit has it."""
        return CONTROL if self._access.has_token(request) else PAGE

    async def _unfreeze(self, pin: str, by: str) -> LiftedFreeze:
        opened = open_key(self.settings, pin, time.time(), by)
        if opened.signer is None:
            return LiftedFreeze(None, opened.refused)
        state = await asyncio.to_thread(
            self.store.processes.unfreeze, time.time(), by, opened.signer.sign
        )
        return LiftedFreeze(state, "The freeze is lifted.")

    async def list_approvals(self, request: Request) -> Response:
        """The newest approvals: the exact request of each, its `text` as it is shown, and the
        `digest` that a decision names.
        """
        rows = await asyncio.to_thread(self.store.approvals.find)
        return JSONResponse([encode_shown_approval(row) for row in rows])

    async def decide_approval(self, request: Request) -> Response:
        """Decide an approval: `decision` (`approve` or `reject`), `pin`, `reason`, and `digest`,
        that of the request as it was shown. With `always` (`where`, an object of arguments and
        their values or patterns, `until`, `max`, `any_version`) like calls are allowed from now on.
        With `wait` (seconds, up to 25) it answers with what came of the write: `state`, `told`.
        """
        body = await read_body(request)
        decision = Decision(
            approval=request.path_params["id"],
            approve=body.get("decision") == "approve",
            pin=str(body.get("pin", "")),
            by=self._name_place(request),
            reason=str(body.get("reason", ""))[:1000],
            digest=str(body.get("digest") or ""),
        )
        if body.get("decision") not in ("approve", "reject"):
            return JSONResponse({"error": "decision is neither approve nor reject"}, 400)
        if not decision.digest:
            return JSONResponse({"error": NO_DIGEST.format("GET /approvals")}, 400)
        always = (
            parse_rule_request(body["always"]) if decision.approve and body.get("always") else None
        )
        told = await asyncio.to_thread(
            decide_with_pin, self.settings, self.store, decision, time.time(), always
        )
        if told.refused:
            return JSONResponse({"error": told.refused}, 403 if told.pin_wrong else 409)
        answer = {"approval": decision.approval, "state": told.state, "rule": told.rule}
        if not decision.approve:
            return JSONResponse({**answer, "told": f"{decision.approval}: {told.state}"})
        wait = min(parse_number(body.get("wait")), MAX_WAIT_SECONDS)
        if not wait:
            sending = BackgroundTask(self._send_approved, decision.approval, MAX_WAIT_SECONDS)
            return JSONResponse(answer, background=sending)
        ended = await asyncio.to_thread(self._send_approved, decision.approval, wait)
        outcome = f"{ended.id}: {render_outcome(ended)}"
        return JSONResponse({**answer, "state": ended.state, "told": outcome})

    async def allow_job(self, request: Request) -> Response:
        """Allow what a job waits for (a budget, a host, permissions): `pin`, and `digest`, that of
        the need as it was shown. The job then goes on where a `serve` or `work` runs.
        """
        body = await read_body(request)
        identity = request.path_params["id"]
        if not body.get("digest"):
            return JSONResponse({"error": NO_DIGEST.format("GET /jobs/ID")}, 400)
        by = self._name_place(request)
        opened = open_key(self.settings, str(body.get("pin", "")), time.time(), by)
        if opened.signer is None:
            return JSONResponse({"error": opened.refused}, 403)
        job = await asyncio.to_thread(self.store.jobs.get, identity)
        if body["digest"] != hash_needs(job.needs):
            return JSONResponse({"error": "it needs something else now; look at it again"}, 409)
        if is_allowable(job.needs) and names_file(job.needs):
            told = f"a path is allowed at the terminal alone: `toolwright allow {identity}`"
            return JSONResponse({"error": told}, 409)
        consents = open_grants(SignedPolicy(self.store, build_authority(self.settings)))
        told = await asyncio.to_thread(
            allow_needs, self.store.grants, consents, job, "page", opened.signer
        )
        if is_met(consents, job):
            # Its card goes at once, whoever carries it on.
            await asyncio.to_thread(self.store.jobs.resume, identity, "page", time.time())
        await asyncio.to_thread(PageConsole(self.settings, self.store, self._access).ensure_worker)
        return JSONResponse({"job": identity, "told": f"Allowed: {told}. It goes on by itself."})

    async def list_rules(self, request: Request) -> Response:
        """The standing rules, with what they say, their uses and whether they count."""
        public = SignedPolicy(self.store, build_authority(self.settings)).find_key()
        rows = await asyncio.to_thread(self.store.rules.find)
        return JSONResponse([encode_rule(rule, time.time(), public) for rule in rows])

    async def revoke_rule(self, request: Request) -> Response:
        """End a standing rule. Needs no PIN: it only makes things stricter."""
        identity, by = request.path_params["id"], self._name_place(request)
        ended = await asyncio.to_thread(self.store.rules.revoke, identity, by, time.time())
        await asyncio.to_thread(sign_audit, self.settings, self.store.audit)
        told = f"The rule {identity} {'is revoked' if ended else 'had ended before'}."
        return JSONResponse({"rule": identity, "revoked": ended, "told": told})

    async def verify_audit(self, request: Request) -> Response:
        """Check every chain of the audit, its archives and the signed heads."""
        signer = HeadSigner(self.settings.heads)
        broken, rows = await asyncio.to_thread(signer.verify_and_count, self.store.audit)
        policy = SignedPolicy(self.store, build_authority(self.settings))
        differences = await asyncio.to_thread(find_differences, policy)
        told = (
            f"{rows} rows, every chain whole."
            if broken is None
            else f"Chain {broken.chain}, row {broken.sequence}: {broken.reason}"
        )
        whole = broken is None and not differences
        return JSONResponse({"whole": whole, "told": " ".join((told, *differences))[:2000]})


def find_problems(error: OrchestratorError) -> dict[str, str]:
    """What an error says of fields of the form that was sent, by their names."""
    if isinstance(error, LoginInAddress):
        return {error.name.lower(): name_clicks_of(error)}
    return error.problems if isinstance(error, FormInvalid) else {}


def render_killed(killed: KillReport) -> str:
    """What a freeze came to, in a sentence."""
    stopped = render_count(killed.processes, "process")
    told = f"Frozen in {killed.milliseconds:.0f} ms: {stopped} stopped"
    if killed.engine_silent:
        return f"{told}; the engine does not answer, so that nobody knows which sandboxes run."
    return f"{told}, {render_count(killed.containers, 'sandbox')} killed, {killed.left} left."


def render_docs(routes: Iterable[Route]) -> str:
    """HTML documentation of the API, from its routes and their docstrings."""
    shown = [
        RouteDescription(
            " ".join(sorted((route.methods or set()) - {"HEAD"})),
            route.path,
            inspect.getdoc(route.endpoint) or "",
        )
        for route in routes
        if not route.path.startswith("/page.")
    ]
    return render_template("docs", routes=shown)


def _build_refusal(refusal: Refusal) -> Response:
    return JSONResponse({"error": refusal.reason}, refusal.status)


def _build_page_headers() -> dict[str, str]:
    return {
        "Content-Security-Policy": CONTENT_POLICY,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


# The page's script is our own and not htmx with its extension for events. That one listens with an
# EventSource, which sends no headers (https://html.spec.whatwg.org/multipage/server-sent-events.html):
# the key of a log-in, which cookies must not be enough without, would stand in an address. What is
# left would not become smaller: typed text, focus and opened parts that stay while a part is
# replaced, JSON with the PIN, the digest and a form's token, and answers told in words.
def _serve_asset(name: str, media_type: str) -> Endpoint:
    content = resources.files("orchestrator").joinpath("control", "assets", name).read_text()

    async def asset(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return asset


@asynccontextmanager
async def keep_heartbeat(processes: ProcessTable, process: str) -> AsyncIterator[None]:
    """Store a heartbeat of this process every 5 seconds."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(5)
            await asyncio.to_thread(processes.record_heartbeat, process, time.time())

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
