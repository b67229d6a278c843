"""Which value of a task fits which parameter, as far as type, format, unit and kind say."""

from __future__ import annotations

from typing import Any

from orchestrator.tasks.reading.parameters import ToolParameter
from orchestrator.tasks.reading.units import COUNTRIES, LANGUAGES, convert_number
from orchestrator.tasks.reading.values import Value

NOTHING = object()
"""Stands for no value; None is one in JSON."""
_MONEY = frozenset("amount balance budget charge cost fee money price sum total value".split())
_STRICT = frozenset({"email", "url", "ip", "uuid", "datetime", "date", "time"})
"""Kinds of parameters that take no other text than that kind's."""
_ACCEPTED: dict[str, frozenset[str]] = {
    "email": frozenset({"email"}),
    "url": frozenset({"url", "domain"}),
    "ip": frozenset({"ip"}),
    "uuid": frozenset({"uuid"}),
    "datetime": frozenset({"datetime"}),
    "date": frozenset({"date"}),
    "time": frozenset({"time"}),
    "domain": frozenset({"domain", "ip", "quoted", "code"}),
    "currency": frozenset({"currency"}),
    "language": frozenset({"name", "quoted"}),
    "path": frozenset({"path", "quoted"}),
    "place": frozenset({"name", "quoted"}),
    "person": frozenset({"name", "quoted"}),
    "name": frozenset({"name", "quoted", "code", "domain"}),
    "text": frozenset({"quoted", "name"}),
    "id": frozenset({"code", "number", "uuid", "quoted", "domain", "date"}),
    "": frozenset(
        {"quoted", "code", "number", "uuid", "name", "email", "url", "domain", "ip", "currency"}
    ),
}


def fit_value(value: Value, parameter: ToolParameter, *, is_named: bool) -> Any:
    """The value as the parameter takes it, or `NOTHING`. A value that the task names the parameter
    with may be of any kind that the type allows.
    """
    if value.kind == "vague":
        return NOTHING
    if parameter.is_choosing and value.kind != "quoted":
        return NOTHING
    if parameter.enum:
        return _fit_listed(value, parameter)
    if value.kind == "json":
        wanted = "array" if isinstance(value.value, list) else "object"
        return value.value if wanted in parameter.types else NOTHING
    if parameter.is_numeric:
        return _fit_number(value, parameter, is_named)
    if "string" in parameter.types:
        return _fit_text(value, parameter, is_named)
    return NOTHING


def _fit_listed(value: Value, parameter: ToolParameter) -> Any:
    said = str(value.value).lower()
    found = [each for each in parameter.enum if str(each).lower() == said]
    return found[0] if len(found) == 1 else NOTHING


def _fit_number(value: Value, parameter: ToolParameter, is_named: bool) -> Any:
    if value.kind != "number":
        return NOTHING
    if value.currency and not is_named and not _MONEY & {*parameter.words}:
        return NOTHING
    number = value.value
    if value.unit is not None:
        if parameter.unit is None:
            # "3 nights" says what "nights" is; of "2 km" a radius without a unit says nothing.
            plain = {value.unit.name, value.text.split()[-1].lower().rstrip("s")}
            if not plain & {word.rstrip("s") for word in parameter.words}:
                return NOTHING
        else:
            number = convert_number(number, value.unit, parameter.unit)
            if number is None:
                return NOTHING
    if parameter.kind in ("latitude", "longitude") and value.unit is not None:
        return NOTHING
    if "number" not in parameter.types and isinstance(number, float):
        return int(number) if number.is_integer() and "." not in value.text else NOTHING
    return number


def _fit_text(value: Value, parameter: ToolParameter, is_named: bool) -> Any:
    kind = parameter.kind
    if kind == "currency" and value.kind == "number" and value.currency not in ("", "?"):
        return NOTHING
    accepted = _ACCEPTED.get(kind, _ACCEPTED[""])
    if value.kind not in accepted:
        loose = is_named and kind not in _STRICT and kind not in ("currency", "language")
        named = kind in ("place", "person") and value.kind not in ("code", "number")
        if not loose or named or value.kind in ("coordinates", "json"):
            return NOTHING
    if kind == "url" and value.kind == "domain":
        return value.value if is_named else NOTHING
    if kind == "time" and value.kind == "time" and not _wants_seconds(value, parameter):
        return str(value.value)[:5]
    if kind == "language":
        return LANGUAGES.get(str(value.value).lower(), value.value if is_named else NOTHING)
    if kind == "place" and _wants_country_code(parameter):
        said = str(value.value)
        code = COUNTRIES.get(said.lower())
        return code or (said if len(said) == 2 and said.isupper() else NOTHING)
    if value.kind == "number":
        if value.unit is not None or value.currency:
            return NOTHING
        return value.text
    return value.value


def _wants_country_code(parameter: ToolParameter) -> bool:
    short = parameter.schema.get("maxLength") == 2 or "ISO" in parameter.description
    return "country" in parameter.words and bool(short)


def _wants_seconds(value: Value, parameter: ToolParameter) -> bool:
    """Whether a time of day is given with its seconds: where the task says them or the schema has a
    format, which is RFC 3339's.
    """
    return value.text.count(":") > 1 or "format" in parameter.schema


def is_confident(value: Value, parameter: ToolParameter) -> bool:
    """Whether a value goes into a parameter because of its kind alone: the parameter asks for just
    this kind.
    """
    if parameter.kind in ("", "text"):
        return value.kind == "quoted"
    if parameter.kind == "id":
        return value.kind in ("code", "uuid", "number", "quoted")
    return value.kind in _ACCEPTED[parameter.kind] if parameter.kind in _ACCEPTED else False
