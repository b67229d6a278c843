"""The requests of jobs, checked before they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.errors import LoginInAddress, SecretInTask
from registry.models import JobKind
from sandbox.plain_secrets import find_secrets_in_task, has_login

ADDRESSES = ("source", "base_url", "task", "document")
"""Where a request may name an address; a task may be one."""


def check_request(kind: JobKind, request: Mapping[str, Any]) -> None:
    """Raises SecretInTask for a task to do that has a secret in its words, and LoginInAddress for
    an address with a user or password. A job is stored with its request.
    """
    kinds = find_secrets_in_task(str(request.get("task") or "")) if kind == "do" else ()
    if kinds:
        raise SecretInTask(kinds)
    for name in ADDRESSES:
        value = request.get(name)
        if isinstance(value, str) and (name != "document" or len(value.split()) == 1):
            check_address(value, name)


def check_address(address: str, name: str = "source") -> None:
    """Raises LoginInAddress for an address with a user or password; `name` is where it stood."""
    if has_login(address):
        raise LoginInAddress(name)
