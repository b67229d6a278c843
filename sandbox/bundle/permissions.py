"""Permissions of a server: `network:HOST:PORT` for HTTP, `env:NAME`, `fs:PATH:ro|rw`,
`call:SERVER.TOOL` for the tools of other servers, and for the network besides HTTP
`tls:HOST:PORT`, `tls:*:PORT`, `dns:ZONE[@SERVER]`, `dns:*[@SERVER]` and `tcp:HOST:PORT`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandbox.bundle.model import RequestPattern
from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.errors import PathRefused

CLOCK, RANDOM = "clock", "random"
"""Permissions of a bundle whose pure tools get the present time, or fresh randomness."""

Kind = Literal["network", "env", "fs", "call", "tls", "dns", "tcp"]
MAX_PATH = 250
SYSTEM = ("/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/etc", "/var/lib/docker")
"""Directories never given to a server: devices, the engine's socket, the machine's secrets."""

_TOOL = re.compile(r"[a-z][a-z0-9_]{0,39}\.[a-z][a-z0-9_]{0,39}\Z")
_ANY_HOST = re.compile(r"\*:[1-9][0-9]{0,4}\Z")
_NETWORK: Mapping[str, Kind] = {"tls": "tls", "dns": "dns", "tcp": "tcp"}
DNS_PORT = 53
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_LOADERS = re.compile(r"LD_.*|.*_PROXY|NO_PROXY|PATH|HOME|NODE_OPTIONS|PYTHON.*\Z", re.IGNORECASE)
"""Variables that would change which program is started, or where its connections go."""


@dataclass(frozen=True)
class Permission:
    """One permission. `name` is the text after the kind: a variable, an absolute path,
    and so on.
    """

    kind: Kind
    name: str
    writable: bool = False

    def __str__(self) -> str:
        mode = (":rw" if self.writable else ":ro") if self.kind == "fs" else ""
        return f"{self.kind}:{self.name}{mode}"

    @property
    def warning(self) -> str:
        """The warning to show when it is granted; "" for most."""
        if self.kind == "tls" and self.name.startswith("*:"):
            return f"any public host on port {self.name[2:]}, by a TLS handshake"
        if self.kind == "dns" and self.name.partition("@")[0] == "*":
            return "any name: what is asked for can carry data away"
        return ""

    @property
    def target(self) -> NetworkTarget:
        """The host and port of a network permission. Raises ValueError for another."""
        found = parse_target(self.name) if self.kind == "network" else None
        if found is None:
            raise ValueError(f"{self} names no host")
        return found


def parse_permission(text: str) -> Permission:
    """Parse a permission. Raises ValueError that says what is wrong.

    Checks only the form of a path; see `check_path` for the file itself.
    """
    kind, colon, rest = text.partition(":")
    if kind == "network" and colon:
        target = parse_target(rest)
        if target is None:
            raise ValueError(f"{rest[:200]!r} is no HOST[:PORT]")
        return Permission("network", str(target))
    if kind == "env" and _ENV.match(rest):
        if _LOADERS.match(rest):
            raise ValueError(f"{rest} changes what is started, and is not a server's to have")
        return Permission("env", rest)
    if kind == "call" and _TOOL.match(rest):
        return Permission("call", rest)
    if kind in _NETWORK:
        return _parse_network(_NETWORK[kind], rest)
    path, _, mode = rest.rpartition(":")
    if kind == "fs" and mode in ("ro", "rw"):
        problem = _find_form_problem(path)
        if problem:
            raise ValueError(f"{path[:200]!r} {problem}")
        return Permission("fs", path, mode == "rw")
    raise ValueError(
        f"{text[:200]!r} is none of network:HOST[:PORT], env:NAME, fs:/PATH:ro|rw, "
        "call:SERVER.TOOL, tls:HOST:PORT, dns:ZONE, tcp:HOST:PORT, requests:NUMBER (101 to 10000)"
    )


def _parse_network(kind: Kind, rest: str) -> Permission:
    """Raises ValueError."""
    if kind == "dns":
        zone, at, place = rest.partition("@")
        server = parse_target(place, DNS_PORT) if at else None
        plain = parse_target(zone, DNS_PORT) if ":" not in zone else None
        known = zone == "*" or (plain is not None and plain.is_named)
        if not known or (at and server is None):
            raise ValueError(f"{rest[:200]!r} is no ZONE or ZONE@SERVER")
        name = zone if plain is None else plain.host
        return Permission(kind, f"{name}@{server}" if server else name)
    if kind == "tls" and _ANY_HOST.match(rest):
        return Permission(kind, rest)
    target = parse_target(rest, None)
    if target is None:
        raise ValueError(f"{rest[:200]!r} is no HOST:PORT")
    return Permission(kind, str(target))


def parse_permissions(texts: Iterable[str]) -> tuple[Permission, ...]:
    """Parse the permissions that a bundle declares; invalid ones are skipped and grant nothing."""
    found = []
    for text in texts:
        try:
            found.append(parse_permission(text))
        except ValueError:
            continue
    return tuple(found)


def is_readable(permission: Permission) -> bool:
    """Whether it is a read-only permission for files."""
    return permission.kind == "fs" and not permission.writable


def check_path(path: str, private: Iterable[Path] = ()) -> None:
    """Raises PathRefused unless a server may be given that directory or file as it is on disk now.

    Refused are special files, paths through a symbolic link, system directories (`SYSTEM`),
    dot-files of a home directory, the `private` directories of Toolwright, and any directory that
    contains one of these.
    """
    ours = tuple(Path(os.path.realpath(place)) for place in private)
    problem = find_path_problem(path, ours)
    if problem:
        raise PathRefused(path[:300], problem)
    real = os.path.realpath(path)
    if real != path:
        raise PathRefused(path[:300], f"there is a symbolic link in it; it leads to {real[:300]}")
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        raise PathRefused(path[:300], error.strerror or str(error)) from error
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        raise PathRefused(path[:300], "it is neither a directory nor a plain file")


def check_nesting(permissions: Iterable[Permission]) -> None:
    """Raises PathRefused where one path lies in a writable one, because the server could replace
    the inner path before it is mounted.
    """
    paths = [permission for permission in permissions if permission.kind == "fs"]
    for outer in paths:
        for inner in paths:
            if outer.writable and Path(outer.name) in Path(inner.name).parents:
                raise PathRefused(inner.name, f"it lies in {outer.name}, which may be written")


def find_path_problem(path: str, private: tuple[Path, ...] = ()) -> str:
    """The reason why no server may be given this path, as text or for where it is; "" where one
    may. Looks at no file.
    """
    return _find_form_problem(path) or find_place_problem(Path(path), private)


def _find_form_problem(path: str) -> str:
    if not path.startswith("/") or os.path.normpath(path) != path or path.startswith("//"):
        return "is no absolute path in its plain form, such as /srv/data"
    if len(path) > MAX_PATH or not path.isprintable() or set(path) & set(':,"\\'):
        return "is too long, or has characters that a path given to a server may not have"
    return ""


def find_place_problem(path: Path, private: tuple[Path, ...] = ()) -> str:
    """The reason why no server may be given this path, whatever lies there; "" where one may.
    `private` are directories of Toolwright.
    """
    homes = {Path.home(), Path("/root"), *(Path("/home") / part for part in path.parts[2:3])}
    for root in (*map(Path, SYSTEM), *private):
        if path == root or root in path.parents:
            return f"{root} is not a server's to see"
    for home in homes:
        if home in path.parents and path.relative_to(home).parts[0].startswith("."):
            return "dot-files of a home directory hold secrets"
    for held in (*map(Path, SYSTEM), *private, *homes, Path("/home/somebody")):
        if path == held or path in held.parents:
            return f"it holds what is not a server's to see, such as {held}"
    return ""


METHODS: Mapping[str, str] = {"call": "CALL", "tls": "READ", "dns": "READ", "tcp": "TALK"}
"""Method of the request pattern, by kind of permission."""
READING = frozenset({"CALL", "READ"})
"""Methods that a tool with read access may use; a called tool has an access class of its own."""


def build_request_pattern(permission: str) -> RequestPattern | None:
    """The request pattern for a permission in its normal form; None for other kinds, whose use is
    not declared by requests.
    """
    method = METHODS.get(permission.partition(":")[0])
    plain = (str(each) for each in parse_permissions((permission,)))
    return RequestPattern(method, permission) if method and permission in plain else None


def is_permission_request(request: RequestPattern) -> bool:
    """Whether a declared request stands for a permission, as `build_request_pattern` builds it."""
    return build_request_pattern(request.url) == request


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


def explain_permission(permission: str) -> str:
    """What a permission allows, in words for people; "" for an invalid one."""
    if permission in _PLAIN:
        return _PLAIN[permission]
    found = parse_permissions((permission,))
    return _explain_parsed(found[0]) if found else ""


def _explain_parsed(permission: Permission) -> str:
    told = _KINDS[permission.kind].format(name=permission.name)
    if permission.writable:
        told = told.replace("to read", "to read and change")
    return f"{told} ({permission.warning})" if permission.warning else told
