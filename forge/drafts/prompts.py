"""What a model is asked on the way to a server: its specification, its code, its repair.

A prompt is the brief and how far the work is, at most `forge.brief.MAX_BYTES` of UTF-8. What a
model wrote before, and what the stages say of it, is fenced like any stranger's text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from forge.author import Ask
from forge.brief import MAX_BYTES, Brief, fenced

DIAGNOSIS_BYTES = 6_000
CODE_BYTES = 16_000
SPECIFICATION_BYTES = 16_000
SCALES = (1.0, 0.7, 0.5, 0.3, 0.15, 0.05)
"""Shares of these that are shown, until the prompt fits."""
_TOOLS = {"type": "array", "items": {"type": "object"}, "minItems": 1}
_CASES = {"type": "array", "items": {"type": "object"}}
_PACKAGES = {"type": "array", "items": {"type": "string"}}
_TEXT = {"type": "string", "minLength": 1}
_DECLINE = {"type": "string", "description": "Only to decline: why the task is not to be done."}
_SPECIFIED = {"tools": _TOOLS, "cases": _CASES, "tests": _TEXT, "packages": _PACKAGES}


def _answer(properties: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer with these properties: what is `wanted` of it, or why its author declines."""
    declined = {"properties": {"decline": {"minLength": 1}}, "required": ["decline"]}
    return {
        "type": "object",
        "properties": {**properties, "why": _TEXT, "decline": _DECLINE},
        "if": declined,
        "else": wanted,
    }


SPECIFICATION = _answer(_SPECIFIED, {"required": ["tools", "cases", "tests", "why"]})
RESPECIFICATION = _answer(
    _SPECIFIED, {"required": ["why"], "anyOf": [{"required": [name]} for name in _SPECIFIED]}
)
CODE = _answer({"code": _TEXT}, {"required": ["code", "why"]})
REPAIR = _answer({**_SPECIFIED, "code": _TEXT}, {"required": ["code", "why"]})

_ASKED = {
    "specification": """Answer with one JSON object: tools, cases, tests, why; no code yet. The
tests are run on functions that do nothing first: one that passes there is sent back. Whoever writes
the code sees the tests and not the cases: let the cases ask for other things than the tests do.""",
    "code": """The specification below was proved to say something. Write the code for it: answer
with one JSON object, {"code": the whole server.py, "why"}. Its cases are held back: code that knows
only the tests' answers fails.""",
    "repair": """Your last draft failed; nothing was registered. Mend what the diagnosis says, and
every mistake like it: answer with one JSON object, {"code": the whole server.py, "why"}. Its cases
are held back from you. Only where the specification itself is wrong, or asks for too little to
notice the mistake, give what changes of it as well: `tools` whole; of tests and cases those that
change or are new, the others stay (a case takes the place of the one with the same arguments); and
in `why` each changed test's name and what is wrong with it. A tool that you leave out of `tools`
and name in `why` goes with its cases. Nothing is ever weakened so that code passes.""",
    "respecify": """Your last specification was sent back. Mend what the diagnosis says: answer with
one JSON object, why and what changes of tools, cases and tests; no code yet. What you leave out of
these stays; tools and cases that you give take the place of all earlier ones.""",
}


def ask_specification(brief: Brief, max_tokens: int) -> Ask:
    """What the server is to do, and the tests for it, before there is code."""
    prompt = brief.told(_ASKED["specification"])
    return Ask("specification", prompt, SPECIFICATION, max_tokens)


def ask_code(brief: Brief, draft: Mapping[str, Any], max_tokens: int) -> Ask:
    """The code for a proved specification, given as the draft's content."""
    prompt = _fitting(brief, "code", lambda scale: _specification(draft, scale, with_cases=False))
    return Ask("code", prompt, CODE, max_tokens)


def ask_repair(brief: Brief, draft: Mapping[str, Any], diagnosis: str, max_tokens: int) -> Ask:
    """The next draft, given the content of the one that failed and what was found wrong with it."""
    code = str(draft.get("code", ""))

    def work(scale: float) -> str:
        parts = [_section("What is wrong", "diagnosis", diagnosis, DIAGNOSIS_BYTES * scale)]
        if code:
            parts.append(_section("Your last draft", "server.py", code, CODE_BYTES * scale))
        return "\n\n".join([*parts, _specification(draft, scale, with_cases=not code)])

    prompt = _fitting(brief, "repair" if code else "respecify", work)
    return Ask("repair", prompt, REPAIR if code else RESPECIFICATION, max_tokens)


def _fitting(brief: Brief, asked: str, work: Callable[[float], str]) -> str:
    prompts = (brief.told(_ASKED[asked], work(scale)) for scale in SCALES)
    shortest = ""
    for shortest in prompts:
        if len(shortest.encode()) <= MAX_BYTES:
            return shortest
    return cut(shortest, MAX_BYTES)


def _specification(draft: Mapping[str, Any], scale: float, with_cases: bool) -> str:
    room = SPECIFICATION_BYTES * scale
    tools = _lines(draft.get("tools"))
    tests = str(draft.get("tests", ""))
    shown = [_section("The specification", "tools.json", tools, room * 0.4)]
    cases = _lines(draft.get("cases")) if with_cases else ""
    for what, text, share in (("tests", tests, 0.4), ("cases", cases, 0.2)):
        if text:
            shown.append(fenced(cut(text, int(room * share)), what))
    return "\n".join(shown)


def _section(title: str, what: str, text: str, room: float) -> str:
    return f"# {title}\n{fenced(cut(text, int(room)), what)}"


def _lines(items: Any) -> str:
    told = items if isinstance(items, list) else []
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in told)


def cut(text: str, limit: int) -> str:
    """A text of at most `limit` bytes of UTF-8: where it is longer, its beginning and its end."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= limit:
        return text
    note = f"\n[… {len(whole) - limit} bytes are left out …]\n"
    left = max(0, limit - len(note.encode()))
    head, tail = whole[: left * 2 // 3], whole[len(whole) - left // 3 :]
    shown = head.decode("utf-8", "ignore") + note + tail.decode("utf-8", "ignore")
    return shown if left else ""
