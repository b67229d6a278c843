"""Values that the rules about a task's words come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.bundle.apispec import Access

TaskKind = Literal["command", "creation", "advice", "remark"]
"""`command`: something is to be done or shown, a plain question for data among it. `creation`: a
tool is to be made. `advice`: an explanation, an opinion, an ability. `remark`: nothing is asked.
"""
IntentReason = Literal[
    "imperative",
    "infinitive",
    "question",
    "polite question",
    "wish",
    "making",
    "wished tool",
    "terse",
    "listing",
    "condition",
    "deferred",
    "negated part",
    "several sentences",
    "figurative",
    "deictic",
    "suggestion",
    "unlike an order",
    "too long",
    "how or why",
    "opinion",
    "ability",
    "about the assistant",
    "definition",
    "idiom",
    "negation",
    "hypothesis",
    "quotation",
    "label",
    "retraction",
    "statement",
    "exclamation",
    "nothing said",
]


@dataclass(frozen=True)
class TaskIntent:
    """What a task's words ask for. Only a `command` or a `creation` may be acted on, and only a
    `certain` one without asking first. `access` is what the words say is done, None where they do
    not say.
    """

    kind: TaskKind
    reason: IntentReason
    certain: bool = True
    access: Access | None = None
    language: str = "en"
