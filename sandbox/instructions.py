"""Sentences in a text that speak to the model that reads it and not to the person who calls."""

from __future__ import annotations

import re

# Each has bounded gaps and no nested repeat, so that no text takes more than linear time.
_SIGNS = tuple(
    re.compile(sign, re.IGNORECASE)
    for sign in (
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all"
        r"|other)\b[^.\n]{0,40}\b(?:instruction|prompt|rule|direction|message)s?\b",
        r"\b(?:do not|don't|never|must not|without)\s+(?:tell|inform|mention|reveal|notify|show|ask"
        r"|telling|mentioning|informing|notifying|asking)\b[^.\n]{0,60}\b(?:user|human|person"
        r"|operator)\b",
        r"<\s*/?\s*(?:important|system|instructions?|secret|hidden|assistant)\s*>",
        r"\b(?:before|after|when|whenever)\s+(?:using|calling|invoking|running|you (?:use|call))\s+"
        r"(?:this|any|other|the|another)\b[^.\n]{0,20}\btools?\b[^.\n]{0,80}\b(?:read|send|call|pass"
        r"|include|fetch|use|run|first|must)\b",
        r"\b(?:pass|send|include|put|copy|forward|read)\b[^.\n]{0,60}(?:\bchat history\b"
        r"|\bsystem prompt\b|\b(?:all|any|every) other tools?\b|~/\.|\.ssh/)",
    )
)
_WORDS = re.compile(
    r"tell|mention|inform|reveal|notify|ask|show|ignore|disregard|forget|override|tool|prompt"
    r"|chat h|[<~]|\.ssh",
    re.IGNORECASE,
)
"""One of these is in every text that a sign can stand in; most texts hold none."""
MAX_READ = 20_000


def instruction(text: str) -> str:
    """The first words of a text that instruct a model; "" where there are none. A heuristic: what
    is worded otherwise is not found.
    """
    for sign in _SIGNS if _WORDS.search(text) else ():
        found = sign.search(text, 0, MAX_READ)
        if found:
            return found[0][:120]
    return ""
