"""The HTTP server of our processes."""

from __future__ import annotations

import logging
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp


class QuietServer(uvicorn.Server):
    """Serves an application; what its end cuts off is no error that is written anywhere.

    Clients that listen and pages that are open do so without end, so nearly every end cuts some
    off: uvicorn writes a traceback for each.
    """

    def __init__(self, application: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                application, log_level="warning", access_log=False, timeout_graceful_shutdown=1
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        _write_no_errors()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _write_no_errors()
        await super().shutdown(sockets)


def _write_no_errors() -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
