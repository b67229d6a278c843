"""A question to a model, and what questions cost together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

WRITING = ("specification", "code", "repair", "api")
"""The purposes that make a job a forge where a model wrote."""


@dataclass(frozen=True)
class ModelCall:
    """One question to a model. `job` and `server` are what it was about, "" where it was about
    none; `cost` is money in the currency of the prices. While it is `asked`, tokens and cost are
    what they may be at most; `message` says why it `failed`.
    """

    job: str
    server: str
    purpose: str
    author: str
    prompt: str = field(repr=False)
    prompt_digest: str
    started: float
    tokens_in: int
    tokens_out: int
    cost: float = 0.0
    model: str = ""
    seconds: float = 0.0
    state: Literal["asked", "answered", "failed"] = "asked"
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    message: str = ""
    id: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True)
class Spent:
    """Tokens, money and questions; `forges` are the jobs among them where a model wrote."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    calls: int = 0
    forges: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out
