"""Prompts for the author of a server: its specification, its code, its repair.

A prompt is the brief and the state of the work, at most `forge.drafts.brief.MAX_BYTES` of UTF-8.
Earlier output of a model and the stages' messages are fenced like any untrusted text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from forge.authors.interface import ModelRequest
from forge.drafts.brief import MAX_BYTES, Brief, fence_text

DIAGNOSIS_BYTES = 6_000
CODE_BYTES = 16_000
SPECIFICATION_BYTES = 16_000
SCALES = (1.0, 0.7, 0.5, 0.3, 0.15, 0.05)
"""Shares of these that are shown, until the prompt fits."""
_TOOLS = {"type": "array", "items": {"type": "object"}, "minItems": 1}
_CASES = {"type": "array", "items": {"type": "object"}}
_PACKAGES = {"type": "array", "items": {"type": "string"}}
_TEXT = {"type": "string", "minLength": 1}
_API = {"type": "object", "description": "Of a server with an API of its own, as told above."}
_DECLINE = {"type": "string", "description": "Only to decline: why the task is not to be done."}
_SPECIFIED = {"tools": _TOOLS, "cases": _CASES, "tests": _TEXT, "packages": _PACKAGES}


def _build_answer_schema(
    properties: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Build the schema of an answer with these properties: either what is `wanted`, or a reason to
    decline.
    """
    declined = {"properties": {"decline": {"minLength": 1}}, "required": ["decline"]}
    return {
        "type": "object",
        "properties": {**properties, "why": _TEXT, "decline": _DECLINE},
        "if": declined,
        "else": wanted,
    }


SPECIFICATION = _build_answer_schema(_SPECIFIED, {"required": ["tools", "cases", "tests", "why"]})
RESPECIFICATION = _build_answer_schema(
    _SPECIFIED, {"required": ["why"], "anyOf": [{"required": [name]} for name in _SPECIFIED]}
)
CODE = _build_answer_schema({"code": _TEXT}, {"required": ["code", "why"]})
REPAIR = _build_answer_schema({**_SPECIFIED, "code": _TEXT}, {"required": ["code", "why"]})

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


def build_specification_request(brief: Brief, max_tokens: int) -> ModelRequest:
    """Build the request for the specification: tools, cases and tests, without code."""
    asked = _ASKED["specification"]
    if _may_have_api(brief):
        asked += "\nAn API that the server asks stands beside them, as `api`."
    answer = _offer_api(brief, SPECIFICATION)
    return ModelRequest("specification", brief.render_prompt(asked), answer, max_tokens)


def _may_have_api(brief: Brief) -> bool:
    """Whether the server may have an API of its own; a changed one keeps its parent's."""
    return brief.kind == "http" and brief.parent is None


def _offer_api(brief: Brief, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an answer, with `api` where the server may have one of its own."""
    if not _may_have_api(brief):
        return answer
    return {**answer, "properties": {**answer["properties"], "api": _API}}


def build_code_request(brief: Brief, draft: Mapping[str, Any], max_tokens: int) -> ModelRequest:
    """Build the request for the code of a proved specification, given as the draft's content."""
    prompt = _fit_prompt(
        brief, "code", lambda scale: _render_specification(draft, scale, with_cases=False)
    )
    return ModelRequest("code", prompt, CODE, max_tokens)


def build_repair_request(
    brief: Brief, draft: Mapping[str, Any], diagnosis: str, max_tokens: int
) -> ModelRequest:
    """Build the request for the next draft from the content of the failed one and its diagnosis."""
    code = str(draft.get("code", ""))

    def work(scale: float) -> str:
        parts = [_render_section("What is wrong", "diagnosis", diagnosis, DIAGNOSIS_BYTES * scale)]
        if code:
            parts.append(_render_section("Your last draft", "server.py", code, CODE_BYTES * scale))
        return "\n\n".join([*parts, _render_specification(draft, scale, with_cases=not code)])

    prompt = _fit_prompt(brief, "repair" if code else "respecify", work)
    answer = _offer_api(brief, REPAIR if code else RESPECIFICATION)
    return ModelRequest("repair", prompt, answer, max_tokens)


def _fit_prompt(brief: Brief, asked: str, work: Callable[[float], str]) -> str:
    prompts = (brief.render_prompt(_ASKED[asked], work(scale)) for scale in SCALES)
    shortest = ""
    for shortest in prompts:
        if len(shortest.encode()) <= MAX_BYTES:
            return shortest
    return cut_middle(shortest, MAX_BYTES)


def _render_specification(draft: Mapping[str, Any], scale: float, with_cases: bool) -> str:
    room = SPECIFICATION_BYTES * scale
    tools = _render_lines(draft.get("tools"))
    tests = str(draft.get("tests", ""))
    shown = [_render_section("The specification", "tools.json", tools, room * 0.4)]
    api = draft.get("api")
    if isinstance(api, Mapping):
        told = json.dumps(api, ensure_ascii=False)
        shown.append(fence_text(cut_middle(told, int(room * 0.4)), "api"))
    cases = _render_lines(draft.get("cases")) if with_cases else ""
    for what, text, share in (("tests", tests, 0.4), ("cases", cases, 0.2)):
        if text:
            shown.append(fence_text(cut_middle(text, int(room * share)), what))
    return "\n".join(shown)


def _render_section(title: str, what: str, text: str, room: float) -> str:
    return f"# {title}\n{fence_text(cut_middle(text, int(room)), what)}"


def _render_lines(items: Any) -> str:
    told = items if isinstance(items, list) else []
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in told)


def cut_middle(text: str, limit: int) -> str:
    """Cut a text to `limit` bytes of UTF-8: of a longer one the beginning and the end remain."""
    whole = text.encode("utf-8", "replace")
    if len(whole) <= limit:
        return text
    note = f"\n[… {len(whole) - limit} bytes are left out …]\n"
    left = max(0, limit - len(note.encode()))
    head, tail = whole[: left * 2 // 3], whole[len(whole) - left // 3 :]
    shown = head.decode("utf-8", "ignore") + note + tail.decode("utf-8", "ignore")
    return shown if left else ""
