"""What is wrong with a draft as it came, before anything of it is proved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forge.acceptance import read_claims
from forge.draft import Draft
from forge.heldback import repeats
from forge.literals import unasked
from orchestrator.orders import Order
from sandbox.permissions import permissions_of, place_problem
from sandbox.validation import Problem


def of_a_models(order: Order, draft: Draft, private: tuple[Path, ...]) -> tuple[Problem, ...]:
    """What is wrong with a draft that a model wrote; `private` is where our own files are."""
    return (*repeats(draft), *_left_out(order, draft), *_ours(draft, private))


def of_a_clients(
    order: Order, content: Mapping[str, Any], draft: Draft, private: tuple[Path, ...]
) -> tuple[Problem, ...]:
    """What is wrong with a draft that was handed in as `content`, its second reading included."""
    claims = _unclaimed(order, content, draft)
    return (*_left_out(order, draft), *_ours(draft, private), *claims)


def _left_out(order: Order, draft: Draft) -> tuple[Problem, ...]:
    """What the task names and nothing asks for. The task of a repair is ours, and names places."""
    return () if order.failing else unasked(order.task, draft)


def _ours(draft: Draft, private: tuple[Path, ...]) -> tuple[Problem, ...]:
    """The paths that a draft asks for and that lie where our own files are."""
    asked = (each for each in permissions_of(draft.permissions) if each.kind == "fs")
    refused = ((each, place_problem(Path(each.name), private)) for each in asked)
    return tuple(
        Problem("/tools", f"{each} is granted to no server: {why}") for each, why in refused if why
    )


def _unclaimed(order: Order, content: Mapping[str, Any], draft: Draft) -> tuple[Problem, ...]:
    """What is wrong with the second reading that was handed in."""
    if not isinstance(content.get("acceptance", []), list):
        return (Problem("/acceptance", "is not an array of claims"),)
    return read_claims(content.get("acceptance"), order.task, draft.tools)[1]
