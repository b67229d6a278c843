"""Temperatures in four scales."""

from __future__ import annotations

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `convert_temperature(value, from_scale, to_scale)` that gives {"value": number}. The
scales are "C", "F", "K" and "R" (Rankine). A temperature below absolute zero is refused. Round
the result to 6 decimals."""
_TO_KELVIN = {
    "C": lambda v: v + 273.15,
    "F": lambda v: (v + 459.67) * 5 / 9,
    "K": lambda v: v,
    "R": lambda v: v * 5 / 9,
}
_FROM_KELVIN = {
    "C": lambda k: k - 273.15,
    "F": lambda k: k * 9 / 5 - 459.67,
    "K": lambda k: k,
    "R": lambda k: k * 9 / 5,
}


def convert_temperature(value: float, from_scale: str, to_scale: str) -> dict[str, float]:
    if from_scale not in _TO_KELVIN or to_scale not in _FROM_KELVIN:
        raise Refused
    kelvin = _TO_KELVIN[from_scale](value)
    if kelvin < -1e-9:
        raise Refused
    return {"value": round(_FROM_KELVIN[to_scale](kelvin), 6)}


def _call(value: float, from_scale: str, to_scale: str) -> tuple[str, dict[str, object]]:
    given = {"value": value, "from_scale": from_scale, "to_scale": to_scale}
    return "convert_temperature", given


TASK = Task(
    "temperatures",
    _TEXT,
    checks(
        {"convert_temperature": convert_temperature},
        [
            *(_call(100, "C", scale) for scale in "CFKR"),
            *(_call(-40, "F", scale) for scale in "CFKR"),
            *(_call(300.5, "K", scale) for scale in "CFKR"),
            *(_call(671.67, "R", scale) for scale in "CFKR"),
            _call(-273.16, "C", "K"),
            _call(-459.68, "F", "C"),
            _call(-1, "K", "C"),
            _call(-0.5, "R", "R"),
            _call(10, "X", "C"),
            _call(10, "C", "c"),
            _call(0, "K", "F"),
            _call(37.7778, "C", "F"),
        ],
    ),
)
