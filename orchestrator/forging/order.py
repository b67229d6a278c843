"""What is asked of a forge, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.authorship import Wanted
from registry.records import Entry
from sandbox.bundle import Bundle
from sandbox.report import Proof

MAX_REPAIRS = 3
"""How often what a stage refuses is mended and tried again."""
NO_SOURCE = "none"
"""The source of what needs no API."""


@dataclass(frozen=True)
class Order:
    """What is to be forged. `source` is a path, URL or host, or NO_SOURCE; `document` an API
    description given as text instead. `base_url` replaces the servers that the document names.
    `auth` are credentials that the description forgot (`forge.selection.credential`); without any,
    those of the server's earlier version count. `parent` is the server that the client's code is to
    change. `author` is who writes the code, "" for whoever can (`orchestrator.authorship`).
    `failing` is a call of the parent whose recording has to come out; with `alike` so do the last
    calls that succeeded, as they did.
    """

    task: str = ""
    source: str = ""
    document: str = ""
    name: str = ""
    base_url: str = ""
    auth: tuple[str, ...] = ()
    parent: str = ""
    author: Wanted = ""
    failing: str = ""
    alike: bool = False
    experimental: bool = False

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Order:
        known = {key: data[key] for key in Order.__dataclass_fields__ if data.get(key)}
        return Order(**{**known, "auth": tuple(known.get("auth", ()))})


@dataclass(frozen=True)
class Step:
    """Progress of a forge: the stage's name, how far the whole is (0..1), and what happened."""

    stage: str
    progress: float
    message: str


Report = Callable[[Step], None]


@dataclass(frozen=True)
class Forged:
    """A forge's result. `left_out` are the document's problems, located, or what the task of code
    that somebody wrote leaves open.
    """

    entry: Entry
    bundle: Bundle
    proof: Proof
    left_out: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
