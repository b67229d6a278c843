"""Questions that a task run asks of whoever asked for the task, and the answers that they take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from orchestrator.tasks.model import Question
from orchestrator.tasks.planning.parse import ANSWER
from orchestrator.tasks.reading.parameters import resolve_schema
from orchestrator.tasks.routing.intent import is_english
from registry.database.canonical import hash_text, to_canonical_json
from registry.needs import AnswerNeed
from sandbox.sanitize import clean_text
from sandbox.schemas.coercion import nest_values

NONE = "none"
"""The tool that an answer names where none of the candidates fits."""
MAY_BE_MADE = "Of the public APIs that are known, one of these may be meant:"
MAX_SHOWN = 300
MAX_ROOM = 1_200
"""Characters that the schemas of a question's tools have together: the whole question, as a client
gets it, is to stay within 1,500 tokens.
"""
MAX_FIELDS = 8
"""Of an object that is asked for as a whole."""
MAX_REASONS = 2
MAX_LISTS = 3
_REASONS: Mapping[str, str] = {
    "writes": "It writes, and words alone are not enough for that.",
    "uncertain_intent": "The words are not plainly an order.",
    "memory_value": "Only an earlier answer of this session says which tool is meant.",
    "below_act": "It is likely the tool that is meant, but not certain.",
    "unnamed_words": "The task has words that are none of the tool's names.",
    "words_only": "Only words were compared, not meanings (extra `semantic`).",
    "untrusted": "Its server has too few successful calls yet to be called by words alone.",
}
"""What a decision's codes say to whoever is asked, the most telling first."""
MAX_DESCRIBED = 160
MAX_CHOICE = 60
MAX_CUT = 40


def build_confirmation(
    step: str,
    number: int,
    tool: str,
    access: str,
    arguments: Mapping[str, Any],
    why: Sequence[str],
    schema: Mapping[str, Any] | None = None,
) -> Question:
    """Whether a call is meant, with the call as it would be made. `why` it is asked. `schema` is
    what the tool takes, where something else than this may be meant.
    """
    filled = _shorten(json.dumps(arguments, ensure_ascii=False))
    verb = "reads" if access == "read" else "writes, once a person approves it"
    reasons = f" {' '.join(why)}" if why else ""
    shown = {"tool": tool, "access": access, "arguments": dict(arguments), "why": list(why)}
    if schema is not None:
        shown["inputSchema"] = _shorten_schema(dict(schema), MAX_ROOM)
    return Question(
        _number("confirm", step, number),
        "confirm",
        step,
        f"Call {tool} ({verb}) with {filled}?{reasons}{_OTHERWISE if schema is not None else ''}",
        shown,
        _build_schema({"confirm": {"type": "boolean"}, "arguments": _INSTEAD}, "confirm"),
    )


_OTHERWISE = " With `arguments` beside `confirm` true it is called with those instead."
_INSTEAD = {"type": "object", "description": "All arguments of the call, instead of those shown."}


def explain_reasons(reasons: Sequence[str]) -> list[str]:
    """Why a call is shown before it is made, in one or two sentences."""
    told = [text for code, text in _REASONS.items() if code in reasons]
    return told[:MAX_REASONS] or ["The words fit it, and nothing else says that it is meant."]


def build_choice(
    step: str,
    number: int,
    task: str,
    candidates: Sequence[Mapping[str, Any]],
    services: Sequence[str] = (),
    failed: str = "",
    made: Sequence[str] = (),
) -> Question:
    """Which of the candidates does a step, or none. `services` are lines about public APIs that the
    task may mean where nothing registered fits it, `failed` is a tool that was tried in vain,
    `made` are the servers that were made for it.
    """
    names = [str(candidate["tool"]) for candidate in candidates]
    shown = shorten_candidates(candidates)
    told = [f"{failed} failed, and nothing that is known mends it."] if failed else []
    if made:
        told.append(f"{', '.join(made)} was made for this, but no tool of it plainly does it.")
    return Question(
        _number("choose", step, number),
        "choose",
        step,
        "\n".join((*told, _ask_which(task, names, bool(made)), *_list_services(services))),
        {"task": _shorten(task), "candidates": shown},
        # Where services are named too, it is likely that none of the tools does it.
        _build_schema(
            {
                "tool": {"enum": [NONE, *names] if services else [*names, NONE]},
                "arguments": {"type": "object"},
            },
            "tool",
        ),
    )


def shorten_candidates(candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Candidates as an answer has room for them."""
    room = MAX_ROOM // max(1, len(candidates))
    return [_shorten_candidate(candidate, room) for candidate in candidates]


def build_missing(
    step: str,
    number: int,
    tool: str,
    schema: Mapping[str, Any],
    known: Mapping[str, Any],
    missing: Sequence[str],
    problem: str,
) -> Question:
    """The arguments that a tool takes and nobody said."""
    named = ", ".join(_name_missing(schema, name) for name in missing)
    wanted = f"its {named}" if missing else "other arguments"
    because = f" ({problem})" if problem and not missing else ""
    outer = list(dict.fromkeys(name.partition(".")[0] for name in missing))
    required = {"type": "object", "required": outer}
    return Question(
        _number("arguments", step, number),
        "arguments",
        step,
        f"{tool} needs {wanted}{because}. What is meant?",
        {
            "tool": tool,
            "known": dict(known),
            "missing": {
                name: _shorten_schema(_describe(schema, name), MAX_ROOM // 3 // len(missing))
                for name in missing
            },
            "inputSchema": _shorten_schema(dict(schema), MAX_ROOM),
        },
        _build_schema({"arguments": required}, "arguments"),
    )


def name_lists(question: Question, lists: Mapping[str, str]) -> Question:
    """A question for arguments with the read that gives the ids among them, for who has names."""
    if not lists:
        return question
    told = "; ".join(f"{tool} lists {name}" for name, tool in [*lists.items()][:MAX_LISTS])
    text = f"{question.text} If only a name is known: {told}."
    return replace(question, text=text, shown={**question.shown, "listed_by": dict(lists)})


def suggest_values(question: Question, earlier: Mapping[str, Any]) -> Question:
    """A question for arguments with the values that an earlier run of the task had for them, as far
    as they have room: whoever answers takes them or gives others.
    """
    values: dict[str, Any] = {}
    for name in question.shown["missing"]:
        known, value = _find_value(earlier, name)
        if known and _measure(values | {name: value}) <= MAX_SHOWN:
            values[name] = value
    if not values:
        return question
    text = f"{question.text} The run before had: {', '.join(values)}."
    return replace(question, text=text, shown={**question.shown, "earlier": values})


def _find_value(arguments: Any, name: str) -> tuple[bool, Any]:
    """Whether there is an argument of that dotted name, and its value."""
    found = arguments
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return False, None
        found = found[part]
    return True, found


def build_which(
    missing: Question,
    said: str,
    listed: str,
    choices: Sequence[Mapping[str, Any]],
    matches: int,
) -> Question:
    """The question for an id that was looked up by a name, where not just one row of what `listed`
    gave is called so: with the rows to choose from, so many as have room.
    """
    name = next(iter(missing.shown["missing"]))
    rows = [{key: _shorten_value(value) for key, value in each.items()} for each in choices]
    while rows and _measure(rows) > MAX_ROOM // 2:
        rows.pop()
    told = ", ".join(_describe_row(each, name) for each in rows)
    named = f"\u201c{_shorten(said)}\u201d"
    if matches:
        why = f"{matches} that {listed} gave are called {named}"
    else:
        why = f"None that {listed} gave is called {named}"
    shown = f": {told}" if matches else f"; it gave {told}" if rows else ""
    left = f" and {len(choices) - len(rows)} more" if rows and len(choices) > len(rows) else ""
    tool = missing.shown["tool"]
    return replace(
        missing,
        text=f"{why}{shown}{left}. Which {name} is meant for {tool}?",
        shown={**missing.shown, "choices": rows},
    )


def _describe_row(row: Mapping[str, Any], key: str) -> str:
    more = [f"{name} {value}" for name, value in row.items() if name not in (key, "name")]
    return f"{key} {row[key]} ({', '.join(filter(None, [row.get('name'), *more]))})"


def _shorten_value(value: Any) -> Any:
    return _shorten(value)[:MAX_CHOICE] if isinstance(value, str) else value


def build_source(
    step: str,
    number: int,
    task: str,
    services: Sequence[str] = (),
    resting: Sequence[str] = (),
) -> Question:
    """Where the API is that a server has to be made for, once. `services` are lines about public
    APIs that the task may mean, `resting` about tools of servers out of use that would fit.
    """
    asked = (
        f"No registered tool was found for {_quote_task(task)}. Where is its API (URL, host or "
        f"path of its description)? `{NONE}` for what only computes; `stop` to leave it."
    )
    if not is_english(task):
        asked += " Tools are mostly described in English: said in English, one may be found."
    return Question(
        _number("source", step, number),
        "arguments",
        step,
        "\n".join((asked, *map(_shorten, resting), *_list_services(services))),
        {"task": _shorten(task), "missing": {"source": {"type": "string"}}},
        _build_schema({"source": {"type": "string", "minLength": 1, "maxLength": 2000}}, "source"),
    )


def _list_services(services: Sequence[str]) -> tuple[str, ...]:
    return (MAY_BE_MADE, *map(_shorten, services)) if services else ()


def build_plan_question(
    number: int,
    steps: Sequence[Mapping[str, Any]],
    candidates: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Question:
    """How the steps of a task hang together: which tool does each, on what."""
    told = "; ".join(_describe_step(step) for step in steps)
    length = min(MAX_DESCRIBED, MAX_ROOM // max(1, len(steps)))
    return Question(
        _number("plan", "", number),
        "plan",
        "",
        f"The task has several steps ({_shorten(told)}). Answer `accept` true, or the steps with "
        'the tool of each; an argument may be {"$ref": "s1", "path": "$.zones[0].id"}.',
        {
            "steps": [{**each, "task": str(each["task"])[:length]} for each in steps],
            "candidates": _shorten_listed(candidates),
        },
        _build_schema(
            {
                "accept": {"const": True},
                "steps": ANSWER["properties"]["steps"],
            }
        ),
    )


def _describe_step(step: Mapping[str, Any]) -> str:
    by = f" ({step['tool']}, as in an earlier run)" if step.get("tool") else ""
    return f"{step['id']}: {step['task']}{by}"


def name_question(question: Question, run: str) -> str:
    """The name that an answer has to give: of this question, of this run, about just this. An
    answer to what another run asks, or to an earlier question, has another.
    """
    content = [run, question.id, question.text, question.shown, question.schema]
    return f"{question.id}.{hash_text(to_canonical_json(content))[:8]}"


def build_need(question: Question, run: str) -> AnswerNeed:
    """What a run that asks waits for."""
    name = name_question(question, run)
    properties = {**question.schema["properties"], "question": {"const": name}}
    schema = {**question.schema, "properties": properties}
    return AnswerNeed(name, clean_text(question.text), schema)


def encode_question(question: Question, run: str) -> dict[str, Any]:
    """A question as a run's result keeps it, and what answers it."""
    need = build_need(question, run)
    return {
        "question": {
            "id": need.question,
            "kind": question.kind,
            "step": question.step,
            "text": need.text,
            "shown": dict(question.shown),
            "schema": dict(need.schema),
        },
        "answer_with": {"run": run, "answer": _build_example(question, need.question)},
    }


def _build_example(question: Question, name: str) -> dict[str, Any]:
    """An answer that the question takes, but for the values that nobody knows."""
    example: dict[str, Any] = {"question": name}
    if question.kind == "confirm":
        return {**example, "confirm": True}
    if question.kind == "choose":
        return {**example, "tool": question.schema["properties"]["tool"]["enum"][0]}
    if question.kind == "plan":
        return {**example, "accept": True}
    if "source" in question.schema["properties"]:
        return {**example, "source": "…"}
    missing = question.shown["missing"]
    values = {name: _hold_place(schema) for name, schema in missing.items()}
    return {**example, "arguments": nest_values(values | question.shown.get("earlier", {}))}


def _hold_place(schema: Mapping[str, Any]) -> Any:
    """What stands for a value that nobody knows: of an object for one of its fields."""
    fields = schema.get("properties")
    return dict.fromkeys(islice(fields, 1), "…") if isinstance(fields, Mapping) else "…"


def _describe(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The schema of an argument, or of a field of one, by its dotted name."""
    found: Mapping[str, Any] = schema
    for part in name.split("."):
        properties = found.get("properties")
        inner = properties.get(part) if isinstance(properties, Mapping) else None
        found = resolve_schema(inner, schema) or {}
    return found


def _name_missing(schema: Mapping[str, Any], name: str) -> str:
    """An argument as it is asked for; of an object, what it can hold."""
    fields = _describe(schema, name).get("properties")
    if not isinstance(fields, Mapping) or not fields:
        return name
    listed = ", ".join(list(fields)[:MAX_FIELDS])
    return f"{name} ({listed}{', …' if len(fields) > MAX_FIELDS else ''})"


def _ask_which(task: str, names: Sequence[str], is_made: bool) -> str:
    words = _quote_task(task)
    if not names and is_made:
        return (
            f"Ask anew and say {words} in the words of its tools, or answer {NONE} to have "
            "another server made."
        )
    if not names:
        return f"No registered tool fits {words}. Answer {NONE} to have a server made."
    return f"Which tool does {words}? One of {', '.join(names)}, or {NONE}."


def _quote_task(task: str) -> str:
    """A task inside a sentence of ours, which has marks of its own."""
    return f"\u201c{_shorten(task).rstrip(' .?!')}\u201d"


def _build_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    named = {"question": {"type": "string", "maxLength": 100}, **properties}
    return {
        "type": "object",
        "properties": named,
        "required": ["question", *required],
        "additionalProperties": False,
    }


def _number(kind: str, step: str, number: int) -> str:
    place = f"{step}.{kind}" if step else kind
    return place if number == 0 else f"{place}{number + 1}"


def _shorten(text: str) -> str:
    clean = " ".join(clean_text(text).split())
    return clean if len(clean) <= MAX_SHOWN else f"{clean[:MAX_SHOWN]}…"


def _shorten_candidate(candidate: Mapping[str, Any], room: int) -> dict[str, Any]:
    """A candidate in so many characters; without its schema where that leaves none for it."""
    keys = ("tool", "call_with", "server", "trust")
    told = {key: candidate[key] for key in keys if key in candidate}
    told["description"] = _shorten(str(candidate.get("description", "")))[:MAX_DESCRIBED]
    schema = _shorten_schema(candidate.get("inputSchema", {}), room)
    return {**told, "inputSchema": schema} if schema else told


def _shorten_listed(
    candidates: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, list[dict[str, Any]]]:
    """The candidates of each step, with less of each, and fewer, the more there are."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for most, described, room in _LISTINGS:
        listed = {
            step: [_list_candidate(each, described, room) for each in found[:most]]
            for step, found in candidates.items()
        }
        if _measure(listed) <= MAX_ROOM:
            break
    return listed


_LISTINGS = (
    (3, MAX_DESCRIBED, MAX_ROOM),
    (3, MAX_DESCRIBED, 150),
    (3, 60, 0),
    (2, 0, 0),
    (1, 0, 0),
)
"""How many candidates a step has, with how much of its description and of its schema each."""


def _list_candidate(candidate: Mapping[str, Any], described: int, room: int) -> dict[str, Any]:
    short = _shorten_candidate(candidate, room)
    told = {"tool": short["tool"], "description": short["description"][:described]}
    schema = {"inputSchema": short["inputSchema"]} if "inputSchema" in short else {}
    return {**{name: text for name, text in told.items() if text}, **schema}


def _shorten_schema(schema: Any, room: int) -> Any:
    """A schema; where it has more than `room` characters, its properties' names and types, as many
    as have room, the required ones first.
    """
    if _measure(schema) <= room:
        return schema
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return {}
    required = [name for name in schema.get("required") or () if name in properties]
    names = list(dict.fromkeys([*required, *properties]))[:MAX_CUT]
    while names:
        typed = {name: _keep_type(properties[name]) for name in names}
        needed = [name for name in required if name in typed]
        cut = {"type": "object", "properties": typed, "required": needed, "cut": True}
        if _measure(cut) <= room:
            return cut
        names.pop()
    return {}


def _keep_type(schema: Any) -> dict[str, Any]:
    return {"type": schema["type"]} if isinstance(schema, Mapping) and "type" in schema else {}


def _measure(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))
