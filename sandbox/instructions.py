"""Sentences in a text that speak to the model that reads it and not to the person who calls."""

from __future__ import annotations

import re

# Each has bounded gaps and no nested repeat, so that no text takes more than linear time.
ROLE = re.compile(
    r"(?:^|[.!?:;>)\]\"'\n])\s{0,8}[#*\[<|]{0,4}\s?(?:SYSTEM|ASSISTANT|DEVELOPER)"
    r"(?:\s(?:MESSAGE|PROMPT|NOTE|OVERRIDE))?[\]*>|]{0,4}\s?:"
    r"|(?:^|[.!?\n])\s{0,8}(?i:system|assistant)\s?:\s{0,4}(?i:ignore|disregard|forget|always"
    r"|never|before|you (?:must|are|will)|do not|don't|read|send|pass|call)\b"
    r"|(?i:\bsystem (?:message|prompt|override)\s?:)|<\|(?:im_start|system)\|?>|\[/?INST\]"
)
"""A turn of a conversation in the middle of a text."""
IGNORING = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:(?:about|all|any|every|the|these|those|your|of|system)\s+)"
    r"{0,4}(?:(?:rules|instructions|guidelines|directions|prompts?)(?:\s+(?:above|below|before"
    r"|given|you|so far|until|and)\b|\s*[.;,:!]|\s*$)|(?:above|previous|prior|preceding)"
    r"(?:\s+(?:text|context|rules|instructions|and)\b|\s*[.;,:!]|\s*$))",
    re.IGNORECASE,
)
"""An order to do otherwise than was said before."""
BEFORE_CALLS = re.compile(
    r"\b(?:before|after|prior to)\s+(?:(?:every|each|any)\s+(?:tool\s+)?(?:call|use|invocation)s?"
    r"|(?:using|calling|invoking)\s+(?:this|any|every)\s+tool)(?:\s+(?:of|to)\s+(?:this|any)\s+tool)?"
    r"\s*,?\s*(?:you\s+(?:must|should|have\s+to)\s+)?(?:please\s+)?(?:first\s+|always\s+)?"
    r"(?:read|open|copy|dump|print|collect|gather|send|call|cat)\b",
    re.IGNORECASE,
)
"""An order to do something else around each call."""
SECRETS = re.compile(
    r"\b(?:read|open|look\s+up|take|extract|dump|print|cat|find|get|fetch|copy|collect)\b"
    r"[^.\n]{0,40}(?:\benvironment\s+(?:variables?\b)?|\benv\s+vars?\b|\bos\.environ\b|\.env\b"
    r"|\b[A-Z][A-Z0-9]{0,30}_(?:API_)?(?:KEY|TOKEN|SECRET|PASSWORD)\b|\b(?:user'?s?|your|all|any"
    r"|every|stored|saved)\s+(?:\w{1,20}\s+){0,2}(?:credentials?|secrets?|passwords?"
    r"|(?:api|private|ssh)\s+keys?)\b)[^.\n]{0,80}\b(?:and|then)\s+(?:then\s+)?(?:pass|send|include"
    r"|put|give|provide|copy|forward|supply|attach|insert|append|return)\b",
    re.IGNORECASE,
)
"""An order to hand on a secret of whoever calls."""
_SIGNS = (
    ROLE,
    IGNORING,
    BEFORE_CALLS,
    SECRETS,
    *(
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
    ),
)
_WORDS = tuple(
    "tell mention inform reveal notify ask show ignore disregard forget override tool prompt <| [inst"
    " [/inst system assistant developer environ .env secret password credential _key _token key"
    " call invocation < ~ .ssh".split()
)
"""One of these is in every text that a sign can stand in; most texts hold none."""
MAX_READ = 20_000


def instruction(text: str) -> str:
    """The first words of a text that instruct a model; "" where there are none. A heuristic: what
    is worded otherwise is not found.
    """
    lower = text[:MAX_READ].lower()
    for sign in _SIGNS if any(word in lower for word in _WORDS) else ():
        found = sign.search(text, 0, MAX_READ)
        if found:
            return found[0][:120]
    return ""
