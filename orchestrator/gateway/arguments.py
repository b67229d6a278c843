"""Reading a call's arguments before gate, rules and digest see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.calls import Done, Pending, Reply
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.accepted import build_accepted_schema, list_empty_bodies
from sandbox.schemas.classes import find_other_class
from sandbox.schemas.coercion import coerce_arguments, render_notes
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Outcome


@dataclass(frozen=True)
class ReadArguments:
    """Arguments with unambiguous values in their types, a note of those that were read as another,
    and why these may make the tool do something else; "" each where there is none.
    """

    arguments: Mapping[str, Any]
    note: str = ""
    asks: str = ""


def adapt_arguments(
    bundle: Bundle, tool: ToolDefinition, arguments: Mapping[str, Any]
) -> ReadArguments:
    """Arguments that break a tool's schema, as they count."""
    accepted = build_accepted_schema(bundle, tool)
    if accepted is not tool.input_schema:
        arguments = {**list_empty_bodies(tool.input_schema, arguments), **arguments}
    note = ""
    if get_checker(accepted).find_problem(arguments) is not None:
        read = coerce_arguments(accepted, arguments)
        arguments, note = read.arguments, render_notes(read.notes)
    return ReadArguments(arguments, note, find_other_class(bundle, tool, arguments))


def add_note(reply: Reply, note: str) -> Reply:
    """The reply, telling how its call's arguments were read."""
    if isinstance(reply, Done):
        return replace(reply, outcome=tell_note(reply.outcome, note))
    if isinstance(reply, Pending):
        return replace(reply, reason=f"{reply.reason}. {note}")
    return reply


def tell_note(outcome: Outcome, note: str) -> Outcome:
    """The outcome with a note behind what its tool answered."""
    content = [*outcome.result.get("content", ()), {"type": "text", "text": note}]
    return replace(outcome, result={**outcome.result, "content": content})
