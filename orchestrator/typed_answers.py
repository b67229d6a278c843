"""Answers to a run's questions out of what a person typed or chose: texts by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sandbox.schemas.coercion import coerce_arguments


def read_typed_answer(question: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a question as a run's result keeps it. `typed` has `confirm` (`yes` or `no`),
    `tool` or `source`, or the missing arguments by their dotted names. Whether the question takes
    the answer is judged where it is given (`orchestrator.tasks.answering`).
    """
    answer: dict[str, Any] = {"question": question["id"]}
    kind = question["kind"]
    if kind == "confirm":
        return {**answer, "confirm": typed.get("confirm") == "yes"}
    if kind == "choose":
        return {**answer, "tool": typed.get("tool", "")}
    if kind == "plan":
        return {**answer, "accept": True}
    if "source" in question["schema"]["properties"]:
        return {**answer, "source": typed.get("source", "").strip()}
    return {**answer, "arguments": nest_arguments(question["shown"], typed)}


def list_wanted(shown: Mapping[str, Any]) -> list[str]:
    """The dotted names of the arguments that a question asks for."""
    return list(shown.get("missing") or {}) or list(shown.get("known") or {})


def nest_arguments(shown: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, Any]:
    """Texts by their dotted names as the tool's schema spells them."""
    arguments: dict[str, Any] = {}
    for name in list_wanted(shown):
        if name not in typed:
            continue
        place = arguments
        *outer, inner = name.split(".")
        for part in outer:
            place = place.setdefault(part, {})
        place[inner] = _parse_value(typed[name])
    return dict(coerce_arguments(shown["inputSchema"], arguments).arguments)


def _parse_value(typed: str) -> Any:
    """An object or a list as JSON; anything else as it was typed."""
    if typed.lstrip().startswith(("{", "[")):
        try:
            return json.loads(typed)
        except (ValueError, RecursionError):
            return typed
    return typed
