"""The listener on the loopback to which a browser brings the answer of a log-in (RFC 8252,
section 7.3). Whatever else connects is answered and changes nothing.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from orchestrator.errors import LoginFailed
from sandbox.sanitize import clean_text

HOST = "127.0.0.1"
PATH = "/callback"
MAX_HEAD = 16 * 1024
MAX_TOLD = 300
HEAD_SECONDS = 30.0
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Toolwright</title>"
    "<p style='font:1.2em sans-serif;margin:3em'>{text}</p>"
)
_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n"
)


@dataclass(frozen=True)
class LoginRedirect:
    """What the authorization server sent back by the browser (RFC 6749 section 4.1.2)."""

    code: str = field(repr=False)
    issuer: str = ""


@dataclass
class RedirectListener:
    """Waits for one redirect that carries `state`. Made by `listen_for_redirect`."""

    state: str = field(repr=False)
    port: int = 0
    _answer: asyncio.Future[dict[str, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def url(self) -> str:
        """The redirect URI that the authorization server is given."""
        return f"http://{HOST}:{self.port}{PATH}"

    async def wait_for_redirect(self, seconds: float) -> LoginRedirect:
        """The redirect's code. Raises LoginFailed where the server refused, or none came."""
        try:
            async with asyncio.timeout(seconds):
                given = await asyncio.shield(self._answer)
        except TimeoutError:
            raise LoginFailed(
                f"nobody logged in within {seconds:g} s. Run the command again when you can"
            ) from None
        if "error" in given or not given.get("code"):
            told = ": ".join(filter(None, (given.get("error"), given.get("error_description"))))
            shown = " ".join(clean_text(told or "without a reason").split())[:MAX_TOLD]
            raise LoginFailed(f"the authorization server refused: {shown}")
        return LoginRedirect(given["code"], given.get("iss", ""))

    async def answer_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer one request, and take its parameters where it is the redirect."""
        with suppress(
            OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                given = self._read_redirect(head)
                status, text = (
                    (
                        "200 OK",
                        "You are logged in as far as the browser goes; this page may be "
                        "closed. The terminal says whether it worked.",
                    )
                    if given
                    else ("404 Not Found", "There is nothing here.")
                )
                body = _PAGE.format(text=text).encode()
                answer = f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body)}\r\n\r\n"
                writer.write(answer.encode() + body)
                await writer.drain()
                if given and not self._answer.done():
                    self._answer.set_result(given)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _read_redirect(self, head: bytes) -> dict[str, str]:
        """The parameters of the redirect; {} for any other request: another method or path, another
        name for this machine (DNS rebinding), another state, a parameter twice, a second redirect.
        """
        try:
            first, *lines = head.decode("ascii").split("\r\n")
            method, target, version = first.split(" ")
        except ValueError:
            return {}
        hosts = [line[5:].strip() for line in lines if line.lower().startswith("host:")]
        parts = urlsplit(target)
        if method != "GET" or not version.startswith("HTTP/1.") or self._answer.done():
            return {}
        if hosts != [f"{HOST}:{self.port}"] or not target.startswith("/") or parts.path != PATH:
            return {}
        pairs = parse_qsl(parts.query, max_num_fields=100)
        given = dict(pairs)
        if len(given) != len(pairs):
            return {}
        fits = hmac.compare_digest(given.get("state", "").encode(), self.state.encode())
        return given if fits else {}


@asynccontextmanager
async def listen_for_redirect(state: str, port: int = 0) -> AsyncIterator[RedirectListener]:
    """Listen on 127.0.0.1, on a port that is free or on the one given, until the block ends."""
    listener = RedirectListener(state)
    try:
        server = await asyncio.start_server(
            listener.answer_connection, HOST, port, limit=MAX_HEAD, reuse_address=False
        )
    except OSError as error:
        raise LoginFailed(f"port {port} of {HOST} cannot be had: {error.strerror}") from error
    async with server:
        listener.port = server.sockets[0].getsockname()[1]
        yield listener
