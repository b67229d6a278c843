"""A request that somebody recorded or wrote down, whatever the notation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]{0,59})\}")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Credential:
    """How a request proves who sends it, never with what. `parameter` is set for an apiKey."""

    kind: Literal["bearer", "basic", "digest", "apiKey", "oauth2"]
    location: Literal["header", "query", "cookie"] = "header"
    parameter: str = ""
    token_url: str = ""


@dataclass(frozen=True)
class FormField:
    """One field of a form. A file has no value."""

    name: str
    value: str = ""
    is_file: bool = False


@dataclass(frozen=True)
class Body:
    """What was sent: a text, or the fields of a form; neither where it is not known."""

    media_type: str
    text: str = field(default="", repr=False)
    fields: tuple[FormField, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What came back, as far as it was kept."""

    status: int
    media_type: str = ""
    text: str = field(default="", repr=False)


@dataclass(frozen=True)
class RecordedRequest:
    """`origin` is scheme and host, or "" where the notation leaves them open; `path` has what
    varies as `{name}`. `where` is a JSON pointer into the document. `shares` says whether its
    values may be shown as examples: they may not where they are a person's own traffic.
    """

    method: str
    origin: str
    path: str
    where: str
    name: str = ""
    description: str = ""
    group: str = ""
    query: tuple[Pair, ...] = ()
    headers: tuple[Pair, ...] = ()
    body: Body | None = None
    answers: tuple[Answer, ...] = ()
    credential: Credential | None = None
    shares: bool = True


@dataclass(frozen=True)
class Recording:
    """All requests of one document. `left_out` are places and why they were left out."""

    title: str
    dialect: str
    requests: tuple[RecordedRequest, ...]
    description: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
