"""What is asked of whoever writes for us, and what comes back; nothing of it is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

AskPurpose = Literal[
    "specification", "code", "repair", "api", "arguments", "diagnosis", "acceptance", "verdict"
]


@dataclass(frozen=True)
class Ask:
    """One question to a model. `prompt` is all that it sees, without any secret; `answer` is the
    JSON Schema (an object at its root) of the one JSON object wanted; `max_tokens` bounds it.
    """

    purpose: AskPurpose
    prompt: str
    answer: Mapping[str, Any]
    max_tokens: int = 8_000


@dataclass(frozen=True)
class Reply:
    """An object that meets the ask's schema, otherwise a stranger's. The tokens are what it cost,
    earlier attempts included, estimated where the endpoint does not say; `model` is the endpoint's
    own word; `seconds` are those waited.
    """

    content: Mapping[str, Any]
    model: str
    tokens_in: int
    tokens_out: int
    seconds: float


@dataclass(frozen=True)
class Endpoint:
    """Where an OpenAI-compatible endpoint is. Without a `model` it is the only one that the
    endpoint lists; `seconds` bounds one answer, its `retries` after 429, 5xx and lost connections
    included.
    """

    base_url: str
    model: str = ""
    key: str = field(default="", repr=False)
    seconds: float = 300.0
    retries: int = 2


class Author(Protocol):
    """A model that answers: `openai` is an endpoint, `sampling` a client's own."""

    @property
    def name(self) -> str: ...

    async def write(self, ask: Ask) -> Reply:
        """Raises AuthorFailed, BudgetSpent (`forge.errors`)."""
        ...
