"""Values of a forge: the order, its progress steps and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.forging.authors.choice import Wanted
from orchestrator.forging.contact.wanted import UnsetCredential
from registry.models import Entry
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof

MAX_REPAIRS = 3
"""How often what a stage refuses is mended and tried again."""
NO_SOURCE = "none"
"""The source of what needs no API."""
NO_TOOL = "none"
"""The tool of a task run for which a server is to be forged."""
ORDER = "order"
"""Where in the request of a task run the order of its present step is kept."""

FileAccess = Literal["", "granted", "typed"]
"""Files that an order's source may be: none (over HTTP), those that a person granted, or, where a
person typed the source at the terminal, any.
"""


@dataclass(frozen=True)
class ForgeOrder:
    """What is to be forged. `source` is a path, URL or host, or NO_SOURCE; `document` an API
    description given as text instead. `base_url` replaces the servers that the document names.
    `auth` are credentials that the description forgot
    (`forge.compiler.selection.parse_credential`); without any, those of the server's earlier
    version count. `parent` is the server that the client's code is to change. `author` is who
    writes the code, "" for whoever can (`orchestrator.forging.authors.choice`). `failing` is a call
    of the parent whose recording has to come out; with `alike` so do the last calls that succeeded,
    as they did. `files` says which files of this machine the source may be. With `no_probe` the API
    itself is asked nothing. Without a `name`, an API that has a server gets its next version.
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
    files: FileAccess = ""
    no_probe: bool = False

    @staticmethod
    def from_request(request: Mapping[str, Any]) -> ForgeOrder:
        """The order that a job's request makes."""
        return ForgeOrder.from_json(extract_order(request))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ForgeOrder:
        known = {key: data[key] for key in ForgeOrder.__dataclass_fields__ if data.get(key)}
        known |= {"auth": tuple(known.get("auth", ()))}
        return ForgeOrder(**known)


def extract_order(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a job's request orders: of a task run what its present step is to have made (ORDER),
    for the request's own words are those of whoever asked.
    """
    order = request.get(ORDER)
    return order if isinstance(order, Mapping) else request


@dataclass(frozen=True)
class ForgeStep:
    """Progress of a job: the stage's name, how far the whole is (0..1), and what happened."""

    stage: str
    progress: float
    message: str


Report = Callable[[ForgeStep], None]


@dataclass(frozen=True)
class ForgeResult:
    """A forge's result. `left_out` are the document's problems, located, or what the task of code
    that somebody wrote leaves open; `wanted` are the credentials that its API takes and nobody has
    given. `is_unchanged`: its very files were registered before.
    """

    entry: Entry
    bundle: Bundle
    proof: Proof
    left_out: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    wanted: tuple[UnsetCredential, ...] = ()
    is_unchanged: bool = False
