"""Sockets that listen, and who has a port that is taken."""

from __future__ import annotations

import errno
import socket

import psutil

from orchestrator.errors import ListenRefused


def open_listener(host: str, port: int) -> socket.socket:
    """A socket that listens there; the port 0 takes a free one. Raises ListenRefused."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        elsewhere = isinstance(error, socket.gaierror) or (
            isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL
        )
        if elsewhere:
            reason = "it is no address of this machine"
            raise ListenRefused(host, port, reason, elsewhere=True) from error
        reason = f"taken by {find_listener(port)}" if taken else _read_reason(error)
        raise ListenRefused(host, port, reason) from error
    return listener


def find_listener(port: int) -> str:
    """Who listens on a port of this machine: name and process id, as far as this user may know."""
    try:
        found = psutil.net_connections("tcp")
    except psutil.Error:
        found = []
    for each in found:
        if each.status == psutil.CONN_LISTEN and each.laddr[1:2] == (port,) and each.pid:
            try:
                return f"{psutil.Process(each.pid).name()}, process {each.pid}"
            except psutil.Error:
                break
    return "another process"


def _read_reason(error: OSError | OverflowError) -> str:
    return str(getattr(error, "strerror", "") or error)
