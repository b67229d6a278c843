"""What a permission lets a server do, in words for the person who is asked for it."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.permissions import Kind, Permission, permissions_of
from sandbox.recording import CLOCK, RANDOM

_PLAIN = {
    CLOCK: "to know the present time, so that results may change with it",
    RANDOM: "to draw at random, so that results may differ from call to call",
}
_KINDS: Mapping[Kind, str] = {
    "network": "to send requests to {name}",
    "env": "to read the value that the vault holds as {name}",
    "fs": "to read the file {name}, or all that lies in it",
    "call": "to run the tool {name}, with all that it may do",
    "tls": "to begin a TLS connection to {name} and see who answers",
    "dns": "to ask the name system about {name}",
    "tcp": "to send bytes to {name} and read the answer",
}


def meaning(permission: str) -> str:
    """What a permission of a bundle allows, from its text; "" for what is none."""
    if permission in _PLAIN:
        return _PLAIN[permission]
    found = permissions_of((permission,))
    return _meaning(found[0]) if found else ""


def _meaning(permission: Permission) -> str:
    told = _KINDS[permission.kind].format(name=permission.name)
    if permission.writable:
        told = told.replace("to read", "to read and change")
    return f"{told} ({permission.loud})" if permission.loud else told
