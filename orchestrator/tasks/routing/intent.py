"""The kind of a task in words, by rules: only a command or a question for data may be acted on.

The rules look at forms (imperatives, questions, negations, conditions, quotations), never at what
is registered. What they cannot tell is a command that is not certain, which is asked about first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.tasks.routing.chinese import classify_chinese
from orchestrator.tasks.routing.english import classify_sentence, strip_politeness
from orchestrator.tasks.routing.european import classify_european, detect_lexicon
from orchestrator.tasks.routing.idioms import IDIOMS
from orchestrator.tasks.routing.kinds import TaskIntent
from orchestrator.tasks.routing.sentences import MAX_TASK, Sentence, is_chinese, split_sentences
from orchestrator.tasks.routing.words import RETRACTIONS, THANKS
from sandbox.bundle.apispec import Access

_CHECKBOX = re.compile(r"\s*(?:[-*+]\s*)?\[[ xX]?\]")
"""The beginning of a line in a list of things to do, which orders nothing now."""
_BECAUSE = re.compile(r"\sbecause\s[^\n.!?;]{0,500}[.!]?\s{0,5}\Z", re.IGNORECASE)
"""Why something is wanted, which is no statement: `reject report 3 because it was late`."""
GREETINGS = frozenset("hey hi hello please ok okay so well now".split())


def classify_task(task: str) -> TaskIntent:
    """The kind of a task. Any text is valid; of more than 4,000 characters none is certain."""
    if _CHECKBOX.match(task):
        return TaskIntent("remark", "label")
    found = _classify(_BECAUSE.sub("", task, count=1))
    if len(task) > MAX_TASK and found.certain:
        return replace(found, reason="too long", certain=False)
    return found


def is_english(task: str) -> bool:
    """Whether a task is in none of the other languages that are known."""
    sentences = split_sentences(task)
    if any(is_chinese(word) for said in sentences for word in said.words):
        return False
    return detect_lexicon(sentences, opened="¿" in task or "¡" in task) is None


def _classify(task: str) -> TaskIntent:
    sentences = split_sentences(task)
    if not sentences:
        return TaskIntent("remark", "nothing said", False, None, "")
    # People greet in English before they go on in another language.
    plain = [_strip_greeting(said) for said in sentences]
    if any(is_chinese(word) for said in plain for word in said.words):
        return classify_chinese(" ".join(" ".join(said.words) for said in plain))
    if any(said.has_phrase(RETRACTIONS) for said in sentences):
        return TaskIntent("remark", "retraction")
    if any(said.has_phrase(IDIOMS) for said in sentences):
        return TaskIntent("remark", "idiom")
    lexicon = detect_lexicon(sentences, opened="¿" in task or "¡" in task)
    if lexicon is not None:
        return combine_intents([classify_european(said, lexicon) for said in plain])
    telling = [said for said in sentences if not _is_thanks(said)]
    return combine_intents([classify_sentence(said) for said in telling])


def combine_intents(found: Sequence[TaskIntent]) -> TaskIntent:
    """The intent of a task of several sentences: certain only where all are commands, or where the
    first orders a tool and the others describe it.
    """
    if not found:
        return TaskIntent("remark", "nothing said", False)
    if len(found) == 1:
        return found[0]
    first = found[0]
    if first.kind == "creation":
        undone = any(each.reason in ("negation", "idiom") for each in found)
        return replace(first, certain=first.certain and not undone)
    commands = [each for each in found if each.kind in ("command", "creation")]
    if not commands:
        advice = [each for each in found if each.kind == "advice"]
        return (advice or list(found))[0]
    accesses = {each.access for each in commands}
    access: Access | None = "write" if "write" in accesses else commands[0].access
    certain = all(each.kind == "command" and each.certain for each in found)
    if certain:
        return replace(first, access=access)
    return replace(commands[0], reason="several sentences", certain=False, access=access)


def _strip_greeting(said: Sentence) -> Sentence:
    while len(said.words) > 1 and said.words[0] in GREETINGS:
        said = said.drop(1)
    return said


def _is_thanks(said: Sentence) -> bool:
    return all(word in THANKS or word == "," for word in said.words) or (
        len(said.words) < 4 and not strip_politeness(said).words
    )
