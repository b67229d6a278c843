"""Planning a task by rules: its steps in order, and which of them use an earlier step's result."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.tasks.model import Plan, Step, Strategy
from orchestrator.tasks.routing.intent import classify_task
from orchestrator.tasks.routing.sentences import MAX_TASK

MAX_STEPS = 10
MAX_SPELLED = 300
# A run of spaces is tried at its beginning alone, so that a long one is not tried from each place.
_JOINTS = re.compile(r";|\n+|(?:,|(?<!\s))\s+(?:and\s+)?then\s+", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_THEN = re.compile(r"\bthen\b", re.IGNORECASE)
_PASSING = re.compile(
    r"(?:,|(?<!\s))\s+and\s+(?=(?:for\s+each|for\s+every|use\s+(?:its|their|that|this|the)\s)\b)",
    re.IGNORECASE,
)
"""Where the next step says itself that it goes on with what came before."""
_USE = re.compile(
    r"^(?:use|using|with|take|pass)\s+(?:its|their|that|this|the|each)\s+(?P<field>[\w-]{1,40})"
    r"(?:\s+of\s+(?:it|each|them|that|the\s+[\w-]{1,40}))?(?:\s+(?:to|and|in\s+order\s+to)\s+|,\s*)"
    r"(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_EACH = re.compile(
    r"^for\s+(?:each|every)(?:\s+(?:of\s+(?:them|these|those)|one))?(?P<noun>(?:\s+[\w-]{1,40}){0,2}?)"
    r"\s*(?:,|:)\s*(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_EACH_OF = re.compile(
    r"^for\s+(?:each|every)(?:\s+(?:of\s+(?:them|these|those)|one))?\s+(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_POINTING = re.compile(
    r"\b(?:its|their|it|them|that|those|these|this|the results?|each of them|each one|"
    r"(?:first|second|third|fourth|fifth|last) one)\b(?!\s+(?:is|was)\b)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\b(?:its|their)\s+(?P<field>[\w-]{1,40})", re.IGNORECASE)
_ORDINALS = {"first": "0", "second": "1", "third": "2", "fourth": "3", "fifth": "4", "last": "-1"}
_ORDINAL = re.compile(
    r"\b(?:the\s+)?(?P<which>first|second|third|fourth|fifth|last)\s+(?:one|of\s+(?:them|these|those))\b",
    re.IGNORECASE,
)
_OF_EACH = re.compile(r"\b(?:of|for|in|from|to)\s+each(?:\s+of\s+them|\s+one)?\b", re.IGNORECASE)


_SHOWING = (
    r"(?P<order>(?:please\s+)?(?:show|list|get|give|fetch|find|display|read|view|see|print)"
    r"(?:\s+(?:me|us))?)\s+(?P<thing>(?:the\s+)?(?P<noun>[^\W\d_][\w-]{0,40})\s+#?\d[\w.-]{0,60})"
    r"\s*,?\s+(?:and|plus)\s+(?:also\s+)?"
)
_AND_ITS = re.compile(
    _SHOWING + r"(?:all\s+)?(?:of\s+)?(?:its|his|her|their)\s+(?P<part>[^\W\d_][\w -]{0,40})",
    re.IGNORECASE,
)
_AND_ANOTHER = re.compile(
    _SHOWING + r"(?P<other>(?:the\s+)?(?P=noun)\s+#?\d[\w.-]{0,60})", re.IGNORECASE
)
_THING = r"(?:(?:the|all|our|my)\s+){0,2}(?:[^\W\d_]{2,40}s|people|staff)"
_LISTED = re.compile(
    r"(?P<order>(?:please\s+)?(?:show|list|get|give|fetch|find|display|read|view|see|print)"
    rf"(?:\s+(?:me|us))?)\s+(?P<things>{_THING}(?:\s*,\s*{_THING}){{0,8}}\s*,?\s+and\s+{_THING})",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\s*(?:please\s+)?(?:manage|handle|administer|work\s+with|deal\s+with|look\s+after)\s+"
    r"[^:;,.!?\n]{1,80}?(?:\s*[:;.\n]\s*|\s[-\u2013\u2014]\s|,\s*(?:(?:and|then)\s+)?|\s+(?:and|then)\s+)"
    r"(?P<order>\w.*)",
    re.IGNORECASE | re.DOTALL,
)


def find_order(task: str) -> str:
    """What is to be done of a task that first says what a tool is for: `manage ski resorts: list
    the open lifts`. The task itself where it says no such thing.
    """
    found = _PURPOSE.fullmatch(task) if len(task) <= MAX_TASK else None
    if found is None:
        return task
    order = str(found["order"])
    intent = classify_task(order)
    return order if intent.kind == "command" and intent.certain else task


def split_task(task: str) -> tuple[str, ...]:
    """The steps of a task in order, one to ten: split at lines, semicolons and `then`."""
    parts = (_BULLET.sub("", part.strip()).strip(" .") for part in _JOINTS.split(task))
    steps = tuple(part for part in parts if part)[:MAX_STEPS]
    return steps or (task,)


def spell_out(task: str) -> tuple[str, ...]:
    """The steps of an order to show several things: `show ticket 3 and its comments`, `show order
    15 and order 16`, `list the boats and the orders`. Any other task is one step.
    """
    words = task.strip(" .!?\n")
    if len(words) > MAX_SPELLED:
        return (task,)
    if found := _AND_ITS.fullmatch(words):
        order, thing = found["order"], found["thing"]
        return f"{order} {thing}", f"{order} the {found['part']} of {thing}"
    if found := _AND_ANOTHER.fullmatch(words):
        return f"{found['order']} {found['thing']}", f"{found['order']} {found['other']}"
    if found := _LISTED.fullmatch(words):
        things = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", found["things"], flags=re.IGNORECASE)
        return tuple(f"{found['order']} {thing}" for thing in things)
    return (task,)


def plan_task(task: str) -> Plan:
    """The plan of a task: one step, several in order, or several that pass values on.

    An order to make a tool is one step, and so is a task of more than 4,000 characters. Steps
    without an order between them that all read may run side by side; every other step waits for
    the one before.
    """
    if len(task) > MAX_TASK:
        return Plan((Step("s1", task),), "single")
    task = find_order(task)
    intent = classify_task(task)
    if intent.kind == "creation":
        return Plan((Step("s1", task),), "forced" if intent.certain else "single")
    parts = tuple(step for part in _split_passing(split_task(task)) for step in spell_out(part))
    parts = parts[:MAX_STEPS]
    if len(parts) == 1:
        return Plan((Step("s1", parts[0] if task.strip() else task),), "single")
    steps = _chain_steps(parts, is_ordered=_is_ordered(task, parts))
    passes = any(step.uses or step.pick or _points_back(step) for step in steps[1:])
    strategy: Strategy = "composed" if passes else "sequential"
    return Plan(tuple(steps), strategy)


def _split_passing(parts: Sequence[str]) -> tuple[str, ...]:
    found = [piece for part in parts for piece in _PASSING.split(part)]
    kept = tuple(piece.strip(" .,") for piece in found if piece.strip(" .,"))[:MAX_STEPS]
    return kept or tuple(parts)


def _is_ordered(task: str, parts: Sequence[str]) -> bool:
    """Whether each step has to wait for the one before it: `then` says so, and what is not surely
    a read may change what the next one sees.
    """
    if _THEN.search(task):
        return True
    found = [classify_task(part) for part in parts]
    return not all(each.kind == "command" and each.access == "read" for each in found)


def _chain_steps(parts: Sequence[str], *, is_ordered: bool) -> list[Step]:
    steps: list[Step] = []
    for number, part in enumerate(parts, start=1):
        step = read_step(f"s{number}", part) if steps else Step("s1", part)
        waits = bool(steps) and (is_ordered or bool(step.uses or step.pick) or _points_back(step))
        after = (steps[-1].id,) if waits else ()
        steps.append(Step(step.id, step.task, after=after, uses=step.uses, pick=step.pick))
    return steps


def read_step(name: str, part: str) -> Step:
    """A later step: the words of what it does, and which value of the result before it uses."""
    uses, pick, task = "", "", part
    each = _EACH.match(task) or _EACH_OF.match(task)
    if each is not None:
        pick, task = "each", each["rest"]
    used = _USE.match(task)
    if used is not None:
        uses, task = used["field"].lower(), used["rest"]
    named, ordinal = _FIELD.search(task), _ORDINAL.search(part)
    if not uses and named is not None:
        uses = named["field"].lower()
    if not pick and ordinal is not None:
        pick = _ORDINALS[ordinal["which"].lower()]
    if not pick and _OF_EACH.search(part):
        pick = "each"
    return Step(name, task.strip(" .,"), uses=uses, pick=pick)


def _points_back(step: Step) -> bool:
    return _POINTING.search(step.task) is not None
