"""The protocol between a command and the resident process, and who may speak it.

Frames are four bytes of length and a JSON object. The process greets first; the command sends its
request; the answer is one frame that declines, or what to print in parts and then the exit status.
A command that was not greeted or was declined does its work by itself: nothing was done for it.

Every command loads this module, so it loads little. Named tuples are here in place of data classes,
which take a third of the time that such a command has.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

SWITCH = "TOOLWRIGHT_RESIDENT"
"""`off` in this variable: commands do their work by themselves and start no resident process. A
number: so many seconds a command waits for its greeting, in place of GREETING_SECONDS.
"""
GREETING_SECONDS, MAX_GREETING_SECONDS = 0.5, 600.0
"""After that a command goes on by itself; nothing was asked yet."""
SOCKET = "resident.sock"
GREETING: Mapping[str, Any] = {"greeting": 1}
"""Its number is another one where the frames mean something else."""
MAX_REQUEST = 4 << 20
MAX_FRAME = 8 << 20
PART_LETTERS = 1 << 20
"""Letters of a text in one frame: at most six bytes each as JSON."""
MAX_NAMES = 1_000

_JSON = frozenset({"--json"})
ANSWERED: Mapping[str, frozenset[str]] = {
    "": _JSON,
    "approvals": _JSON | {"--all"},
    "call": _JSON | {"--task"},
    "find": _JSON | {"-k"},
    "jobs": _JSON | {"--brief", "--cost", "--draft"},
    "list": _JSON,
    "logs": _JSON | {"--audit", "--call", "-n"},
    "rules": _JSON | {"--all"},
    "show": _JSON | {"--matrix"},
    "source": _JSON,
    "versions": _JSON,
}
"""The commands that the resident process answers, with the options that they may have there: none
of them asks anybody, decides anything, or names a file. Nor an account: calls to a server share a
session, which goes out with one.
"""
BELOW: Mapping[str, frozenset[str]] = {
    "rules": frozenset({"", "list"}),
    "source": frozenset({"list"}),
}
"""Of commands that have others below them, those that only look."""
SENDING = frozenset({"call"})
"""Those that an API may hear of, and that are therefore never done twice."""
FILE = "=@"
"""In a word of `call`: what follows names a file, which only the command itself reads."""

_PREFIXES = ("DOCKER_", "OPENAI_", "SSL_CERT_", "TOOLWRIGHT_")
_NAMES = frozenset(
    "HOME LANG LOGNAME PATH SHELL TMPDIR USER XDG_CACHE_HOME XDG_CONFIG_HOME ALL_PROXY HTTP_PROXY "
    "HTTPS_PROXY NO_PROXY REQUESTS_CA_BUNDLE".split()
)
_OWN = frozenset({SWITCH, "TOOLWRIGHT_HOME"})
TERMINAL = (
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LINES",
    "NO_COLOR",
    "TERM",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
"""Variables by which rich chooses width and colours."""


class FrameInvalid(Exception):
    """What came is no frame of the protocol, or too large."""


class Terminal(NamedTuple):
    """Where a command prints: `variables` are those of TERMINAL, `columns` its width."""

    columns: int
    is_out_terminal: bool
    is_err_terminal: bool
    out_encoding: str
    err_encoding: str
    variables: Mapping[str, str]


class ExecutionContext(NamedTuple):
    """What has to be the same at both ends: which code runs with which Python in which namespaces,
    and the variables that settings, engines and servers are chosen by.
    """

    code: str
    python: str
    namespaces: tuple[str, ...]
    environment: Mapping[str, str]


class Request(NamedTuple):
    """A command to answer: its words without `toolwright`."""

    words: tuple[str, ...]
    caller: ExecutionContext
    terminal: Terminal


def is_answerable(words: Sequence[str]) -> bool:
    """Whether the resident process may answer a command with these words."""
    name = words[0] if words and not words[0].startswith("-") else ""
    options = ANSWERED.get(name)
    below = next((word for word in words[1:] if not word.startswith("-")), "")
    if options is None or below not in BELOW.get(name, {below}):
        return False
    given = (word.partition("=")[0] for word in words if word.startswith("-"))
    return all(each in options for each in given) and not any(FILE in word for word in words)


def is_switched_off(environment: Mapping[str, str]) -> bool:
    """Whether somebody said so, or this system lacks what tells who is at the other end."""
    return environment.get(SWITCH) == "off" or not hasattr(socket, "SO_PEERCRED")


def read_patience(environment: Mapping[str, str]) -> float:
    """How many seconds a command waits to be greeted."""
    given = environment.get(SWITCH, "")
    return min(float(given), MAX_GREETING_SECONDS) if given.isdecimal() else GREETING_SECONDS


def find_home(environment: Mapping[str, str]) -> str:
    """The directory of the home, as `load_settings` finds it; it may not exist."""
    return os.path.abspath(
        os.path.expanduser(environment.get("TOOLWRIGHT_HOME") or os.path.join("~", ".toolwright"))
    )


def describe_caller(environment: Mapping[str, str]) -> ExecutionContext:
    """This process. Raises OSError where the system does not tell its namespaces."""
    return ExecutionContext(
        os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)),
        f"{sys.prefix} {sys.version}",
        tuple(os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "net", "pid")),
        {name: value for name, value in environment.items() if _matters(name)},
    )


def _matters(name: str) -> bool:
    if name in _OWN:
        return False
    return name.startswith(_PREFIXES) or name.upper() in _NAMES


@contextmanager
def open_place(home: str, owner: int) -> Iterator[tuple[int, str]]:
    """The home's directory and a path of its socket, which is short enough for the kernel wherever
    the home lies. Raises OSError, and PermissionError where others may write there.
    """
    place = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(place)
        if status.st_uid != owner or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"others than user {owner} may write in {home}")
        yield place, f"/proc/self/fd/{place}/{SOCKET}"
    finally:
        os.close(place)


def check_peer(connection: socket.socket, owner: int) -> None:
    """Raises PermissionError where another user is at the other end, as the kernel tells it
    (unix(7), SO_PEERCRED).
    """
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user = struct.unpack("3i", told)[1]
    if user != owner:
        raise PermissionError(f"user {user} is at the other end, not {owner}")


def write_frame(value: Mapping[str, Any]) -> bytes:
    """A frame with this object."""
    content = json.dumps(value).encode()
    return struct.pack("!I", len(content)) + content


def read_length(head: bytes, most: int) -> int:
    """The length of a frame by its first four bytes. Raises FrameInvalid."""
    length: int = struct.unpack("!I", head)[0]
    if length > most:
        raise FrameInvalid(f"a frame of {length} bytes; {most} are taken")
    return length


def read_object(content: bytes) -> dict[str, Any]:
    """The object in a frame. Raises FrameInvalid."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FrameInvalid(str(error)) from error
    if not isinstance(value, dict):
        raise FrameInvalid("no JSON object")
    return value


def write_request(request: Request) -> bytes:
    """The frame of a request."""
    return write_frame(
        {
            "words": request.words,
            "caller": request.caller._asdict(),
            "terminal": request.terminal._asdict(),
        }
    )


def read_request(content: bytes) -> Request:
    """The request in a frame. Raises FrameInvalid."""
    value = read_object(content)
    try:
        words, caller, terminal = value["words"], value["caller"], value["terminal"]
        return Request(
            _read_texts(words),
            ExecutionContext(
                _read_text(caller["code"]),
                _read_text(caller["python"]),
                _read_texts(caller["namespaces"]),
                _read_variables(caller["environment"]),
            ),
            Terminal(
                max(1, min(int(terminal["columns"]), 10_000)),
                terminal["is_out_terminal"] is True,
                terminal["is_err_terminal"] is True,
                _read_text(terminal["out_encoding"]),
                _read_text(terminal["err_encoding"]),
                _read_variables(terminal["variables"]),
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FrameInvalid(f"no request: {error!r}") from error


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _read_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return tuple(map(_read_text, value))


def _read_variables(value: Mapping[str, object]) -> dict[str, str]:
    if len(value) > MAX_NAMES:
        raise ValueError("too many variables")
    return {name: _read_text(each) for name, each in value.items()}
