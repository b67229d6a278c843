"""Detection of prompt injection: phrases in a text that instruct the model that reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from sandbox.linear_patterns import Selector, compile_linear_set, join_words

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
    r"\b(?:ignore|disregard|forget)\s{1,4}(?:(?:about|all|any|every|the|these|those|your|of|system)\s{1,4})"
    r"{0,4}(?:(?:rules|instructions|guidelines|directions|prompts?)(?:\s{1,4}(?:above|below|before"
    r"|given|you|so far|until|and)\b|\s{0,4}[.;,:!]|\s{0,4}$)|(?:above|previous|prior|preceding)"
    r"(?:\s{1,4}(?:text|context|rules|instructions|and)\b|\s{0,4}[.;,:!]|\s{0,4}$))",
    re.IGNORECASE,
)
"""An order to do otherwise than was said before."""
BEFORE_CALLS = re.compile(
    r"\b(?:before|prior to)\s{1,4}"
    r"(?:(?:every|each|any)\s{1,4}(?:tool\s{1,4})?(?:call|use|invocation)s?"
    r"|(?:using|calling|invoking)\s{1,4}(?:this|any|every)\s{1,4}tool)"
    r"(?:\s{1,4}(?:of|to)\s{1,4}(?:this|any)\s{1,4}tool)?\s{0,4},?\s{0,4}"
    r"(?:you\s{1,4}(?:must|should|have\s{1,4}to)\s{1,4})?(?:(?:please|first|always)\s{1,4}){0,2}"
    r"(?:read|open|copy|dump|print|collect|gather|send|call|cat)\b",
    re.IGNORECASE,
)
"""An order to do something else around each call."""
SECRETS = re.compile(
    r"\b(?:read|open|look\s{1,4}up|take|extract|dump|print|cat|find|get|fetch|copy|collect)\b"
    r"[^.\n]{0,40}(?:\benvironment\s{1,4}variables?\b|\benv\s{1,4}vars?\b|\bos\.environ\b|\.env\b"
    r"|\b[A-Z][A-Z0-9]{0,30}_(?:API_)?(?:KEY|TOKEN|SECRET|PASSWORD)\b|\b(?:user'?s?|your|all|any"
    r"|every|stored|saved)\s{1,4}(?:\w{1,20}\s{1,4}){0,2}(?:credentials?|secrets?|passwords?"
    r"|(?:api|private|ssh)\s{1,4}keys?)\b)[^.\n]{0,80}\b(?:and|then)\s{1,4}(?:then\s{1,4})?(?:pass|send"
    r"|include|put|give|provide|copy|forward|supply|attach|insert|append|return)\b",
    re.IGNORECASE,
)
"""An order to hand on a secret of whoever calls."""
Sign = tuple[tuple[tuple[str, ...], ...], re.Pattern[str]]
"""Groups of words, in the order in which they stand in what a pattern finds, and the pattern: it is
searched only where a word of each group follows one of the group before, as in few texts.
"""
SIGNS: tuple[Sign, ...] = (
    (
        (("system", "assistant", "developer", "<|", "[inst", "[/inst"),),
        ROLE,
    ),
    ((("ignore", "disregard", "forget"),), IGNORING),
    ((("before", "prior"), ("every", "each", "any", "using", "calling", "invoking")), BEFORE_CALLS),
    (
        (
            tuple("read open look take extract dump print cat find get fetch copy collect".split()),
            ("env", "credential", "secret", "password", "key", "token"),
            ("and", "then"),
            tuple(
                "pass send include put give provide copy forward supply attach insert append "
                "return".split()
            ),
        ),
        SECRETS,
    ),
    (
        (("ignore", "disregard", "forget", "override"),),
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier"
            r"|all|other)\b[^.\n]{0,40}\b(?:instruction|prompt|rule|direction|message)s?\b",
            re.IGNORECASE,
        ),
    ),
    (
        (
            ("do not", "don't", "must not", "never", "without"),
            ("tell", "inform", "mention", "reveal", "notif", "show", "ask"),
            ("user", "human", "person", "operator"),
        ),
        re.compile(
            r"\b(?:do not|don't|never|must not|without)\s+(?:tell|inform|mention|reveal|notify|show"
            r"|ask|telling|mentioning|informing|notifying|asking)\b[^.\n]{0,60}\b(?:user|human|person"
            r"|operator)\b",
            re.IGNORECASE,
        ),
    ),
    (
        (("<",),),
        re.compile(
            r"<\s*+/?\s*+(?:important|system|instructions?|secret|hidden|assistant)\s*+>",
            re.IGNORECASE,
        ),
    ),
    (
        (("tool",),),
        re.compile(
            r"\b(?:before|after|when|whenever)\s+(?:using|calling|invoking|running"
            r"|you (?:use|call))\s+(?:this|any|other|the|another)\b"
            r"[^.\n]{0,20}\btools?\b[^.\n]{0,80}\b(?:read|send|call|pass|include|fetch|use|run|first|must)\b",
            re.IGNORECASE,
        ),
    ),
    (
        (("chat history", "system prompt", "tool", "~", ".ssh"),),
        re.compile(
            r"\b(?:pass|send|include|put|copy|forward|read)\b[^.\n]{0,60}(?:\bchat history\b"
            r"|\bsystem prompt\b|\b(?:all|any|every) other tools?\b|~/\.|\.ssh/)",
            re.IGNORECASE,
        ),
    ),
)
MAX_READ = 20_000


class SignSearch:
    """A search for the phrases that signs find, with one look at a text for the words of all."""

    def __init__(self, signs: Iterable[Sign]) -> None:
        self.signs = tuple(signs)

    @cached_property
    def _words(self) -> Selector:
        joined = (".*".join(map(join_words, groups)) for groups, _ in self.signs)
        return compile_linear_set("(?is)" + words for words in joined)

    def find_phrase(self, text: str) -> str:
        """The phrase of the first sign that finds one in the first `MAX_READ` characters, at most
        120 characters of it; "" if none does.
        """
        near = self._words.Match(text[:MAX_READ].encode(errors="replace"))
        for number in sorted(near or ()):
            found = self.signs[number][1].search(text, 0, MAX_READ)
            if found:
                return found[0][:120]
        return ""


_INSTRUCTIONS = SignSearch(SIGNS)


def find_instruction(text: str) -> str:
    """The first phrase, at most 120 characters, that instructs a model; "" if there is none. A
    heuristic over the first `MAX_READ` characters: other wordings are not found.
    """
    return _INSTRUCTIONS.find_phrase(text)
