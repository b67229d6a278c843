"""The interface of authors: model requests, replies and endpoints. Replies are untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

AskPurpose = Literal[
    "specification",
    "code",
    "repair",
    "api",
    "arguments",
    "choice",
    "plan",
    "diagnosis",
    "acceptance",
    "verdict",
]


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model. `prompt` is all that it sees, without any secret; `answer` is the JSON
    Schema (an object at its root) of the one JSON object to return; `max_tokens` limits its length.
    """

    purpose: AskPurpose
    prompt: str
    answer: Mapping[str, Any]
    max_tokens: int = 8_000


@dataclass(frozen=True)
class ModelReply:
    """An object that is valid under the request's schema and otherwise untrusted. The tokens are
    its cost, earlier attempts included, estimated where the endpoint does not report them, and of
    those that were asked `cached` came from the endpoint's cache of prompts; `model` is the name
    that the endpoint reports; `seconds` is the time waited.
    """

    content: Mapping[str, Any]
    model: str
    tokens_in: int
    tokens_out: int
    seconds: float
    cached: int = 0


@dataclass(frozen=True)
class Endpoint:
    """The address of an OpenAI-compatible endpoint. Without a `model` the only one that the
    endpoint lists is used; `seconds` bounds one answer, its `retries` after 429, 5xx and lost
    connections included. `effort` is how much a model that reasons is to reason, in the endpoint's
    words; "" leaves it to the endpoint.
    """

    base_url: str
    model: str = ""
    key: str = field(default="", repr=False)
    seconds: float = 300.0
    retries: int = 2
    effort: str = ""


class Author(Protocol):
    """A model that writes: `openai` asks an endpoint, `sampling` the connected client's model."""

    @property
    def name(self) -> str: ...

    async def write(self, ask: ModelRequest) -> ModelReply:
        """Return the reply to a request. Raises AuthorFailed (`forge.errors`), and what whoever
        meters it does.
        """
        ...
