"""The two ways in which a person logs in: with a browser here, or by a code typed in elsewhere."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.errors import LoginFailed
from orchestrator.logins.exchange import (
    Client,
    TokenClient,
    build_authorization_url,
    generate_pkce,
    register_client,
)
from orchestrator.logins.loopback import HOST, PATH, listen_for_redirect
from orchestrator.logins.metadata import AuthorizationServer, Fetch
from orchestrator.logins.plan import LoginPlan
from sandbox.clock import Clock, SystemClock
from sandbox.credentials.token_endpoint import GivenTokens
from sandbox.wire.policy import parse_origin

LOGIN_SECONDS = 300.0


@dataclass(frozen=True)
class LoginResult:
    """What a log-in gave: the tokens, the client that they were given to, and the flow's grant.
    `registered` says that the client was registered for this log-in.
    """

    tokens: GivenTokens
    client: Client
    grant: str
    registered: bool


@dataclass(frozen=True)
class LoginTerminal:
    """How a log-in reaches its person: `show` prints a line, `open_page` opens a browser and says
    whether there is one.
    """

    show: Callable[[str], None]
    open_page: Callable[[str], bool]
    has_browser: bool = True
    seconds: float = LOGIN_SECONDS
    clock: Clock = field(default_factory=SystemClock)


async def log_in(
    plan: LoginPlan, fetch: Fetch, terminal: LoginTerminal, device: bool = False, port: int = 0
) -> LoginResult:
    """Log in by the browser; by a code where `device` says so, or where there is no browser and the
    server gives codes. Raises LoginFailed.
    """
    server = plan.server
    if device and not server.device_url:
        raise LoginFailed("this authorization server gives no codes to type in (RFC 8628)")
    by_code = device or not server.authorization_url
    if by_code or (not terminal.has_browser and server.device_url):
        return await _log_in_by_code(plan, fetch, terminal)
    return await _log_in_by_browser(plan, fetch, terminal, port)


async def _log_in_by_browser(
    plan: LoginPlan, fetch: Fetch, terminal: LoginTerminal, port: int
) -> LoginResult:
    server, state, pkce = plan.server, secrets.token_urlsafe(32), generate_pkce()
    async with listen_for_redirect(state, port) as listener:
        client = plan.client or await register_client(
            server, listener.url, plan.wanted.scopes, fetch
        )
        url = build_authorization_url(server, client, plan.wanted, listener.url, state, pkce)
        terminal.show(f"Log in with the browser of this machine: {url}")
        # Some browsers return only once they are closed, so nothing waits for this thread.
        threading.Thread(target=terminal.open_page, args=(url,), daemon=True).start()
        redirect = await listener.wait_for_redirect(terminal.seconds)
        check_issuer(server, redirect.issuer)
        asking = TokenClient(server, client, fetch)
        tokens = await asking.exchange_code(redirect.code, listener.url, pkce)
    return LoginResult(tokens, client, "authorization_code", plan.client is None)


async def _log_in_by_code(plan: LoginPlan, fetch: Fetch, terminal: LoginTerminal) -> LoginResult:
    redirect = f"http://{HOST}{PATH}"
    client = plan.client or await register_client(plan.server, redirect, plan.wanted.scopes, fetch)
    asking = TokenClient(plan.server, client, fetch)
    device = await asking.request_device_code(plan.wanted)
    terminal.show(f"Open {device.page} on any device and type in this code: {device.user_code}")
    tokens = await asking.poll_device(device, terminal.clock)
    return LoginResult(tokens, client, "device_code", plan.client is None)


def check_issuer(server: AuthorizationServer, issuer: str) -> None:
    """Raises LoginFailed for an answer of another server than the one that was asked (RFC 9207
    section 2.4): its code is given to nobody. Where only a description named the endpoints, the
    issuer has to be of the origin of one: else a page could send the browser on to another server,
    and have the code that this one gives.
    """
    if issuer and not server.issuer:
        urls = (server.authorization_url, server.token_url)
        if parse_origin(issuer) not in map(parse_origin, urls):
            raise LoginFailed(
                f"the answer came from {issuer[:200]!r}, which is at none of the hosts that you "
                "were shown. If that is who logs in: `toolwright login … --issuer URL`"
            )
    if server.issuer and issuer and issuer != server.issuer:
        raise LoginFailed(f"the answer came from {issuer[:200]!r}, not from {server.issuer}")
    if server.names_itself and not issuer:
        raise LoginFailed(f"the answer does not say that it comes from {server.issuer}")


def find_browser() -> bool:
    """Whether a browser with windows can be opened here."""
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_browser(url: str) -> bool:
    """Open a page in the person's browser; False where none takes it."""
    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
