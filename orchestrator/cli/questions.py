"""Questions of task runs at a terminal: shown, and answered by the person there."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from rich.text import Text

from orchestrator.approvals.text import escape_line
from orchestrator.cli.terminal import err
from registry.models import Job
from sandbox.schemas.coercion import coerce_arguments, nest_values

T = TypeVar("T")


def ask_person(ask: Callable[[], T]) -> T:
    """What a function that prompts returns. Ctrl-C ends it at once: the event loop's own handler
    would only note it, and the prompt would go on.
    """
    if threading.current_thread() is not threading.main_thread():
        return ask()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return ask()
    finally:
        signal.signal(signal.SIGINT, before)


def ask_question(job: Job) -> dict[str, Any] | None:
    """The answer of the person at the terminal to what a run asks; None for none."""
    question = job.result["question"]
    answer = {"question": question["id"]}
    kind, shown = question["kind"], question["shown"]
    if kind == "confirm":
        return {**answer, "confirm": _confirm_call(shown)}
    if kind == "choose":
        return {**answer, "tool": _choose_tool(shown)}
    if kind == "plan":
        return {**answer, "accept": True} if _confirm_steps(shown) else None
    if "source" in question["schema"]["properties"]:
        _print(question["text"])
        return {**answer, "source": click.prompt("Source", err=True).strip()}
    return {**answer, "arguments": _read_values(question["text"], shown)}


def _confirm_call(shown: Mapping[str, Any]) -> bool:
    _print(f"{shown['tool']} ({shown['access']})", style="bold")
    for name, value in shown["arguments"].items():
        _print(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    for reason in shown["why"]:
        _print(f"  {reason}")
    return click.confirm("Is this call meant?", default=False, err=True)


def _choose_tool(shown: Mapping[str, Any]) -> str:
    _print(f"Which tool does this: {shown['task']}", style="bold")
    candidates = shown["candidates"]
    for number, candidate in enumerate(candidates, 1):
        _print(f"  {number}  {candidate['tool']}: {candidate['description']}")
    _print("  0  none of them")
    number = click.prompt("Number", type=click.IntRange(0, len(candidates)), err=True)
    return str(candidates[number - 1]["tool"]) if number else "none"


def _confirm_steps(shown: Mapping[str, Any]) -> bool:
    _print("The task has several steps:", style="bold")
    for step in shown["steps"]:
        after = f" (after {', '.join(step['after'])})" if step.get("after") else ""
        by = f" with {step['tool']}" if step.get("tool") else ""
        _print(f"  {step['id']}  {step['task']}{after}{by}")
    return click.confirm("Do them in this order?", default=False, err=True)


def _read_values(text: str, shown: Mapping[str, Any]) -> dict[str, Any]:
    """The values by their names, as the tool's schema spells them."""
    _print(text, style="bold")
    for name, value in shown["known"].items():
        _print(f"  {name}: {json.dumps(value, ensure_ascii=False)}")
    wanted = list(shown["missing"]) or list(shown["known"])
    earlier = shown.get("earlier") or {}
    typed = {
        name: _parse_value(click.prompt(name, err=True, default=_write_default(earlier.get(name))))
        for name in wanted
    }
    return dict(coerce_arguments(shown["inputSchema"], nest_values(typed)).arguments)


def _write_default(value: Any) -> str | None:
    """A value as it is typed; None where there is none, so that one has to be typed."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _parse_value(typed: str) -> Any:
    """An object or a list as JSON; anything else as it was typed."""
    if typed.lstrip().startswith(("{", "[")):
        try:
            return json.loads(typed)
        except (ValueError, RecursionError):
            return typed
    return typed


def _print(line: str, style: str = "") -> None:
    err.print(Text(escape_line(line), style=style))
