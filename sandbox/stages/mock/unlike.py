"""Answers unlike their documentation, as real APIs give them: each has to come through whole.

Null where none is documented, another scalar type, a list for an object or an object for anything
else, a field too many or too few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_NULLS = 24
"""How many fields are null in an answer of their own."""
EXTRA = {"Extra-Field": {"List": [4, 7, 1, 9], "Text": "  EXTRA-4719 "}}
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class UnlikeAnswer:
    """The name of a cell, and the JSON value that is answered."""

    name: str
    value: Any


def build_unlike_answers(sample: Any, decided: bool) -> Iterator[UnlikeAnswer]:
    """The answers that are made of a documented one.

    Code that decides nothing treats every field alike, so several differences share an answer.
    """
    leaves, fields = list(_iterate_leaves(sample, ())), _list_fields(sample)
    is_scalar = leaves == [()]
    if decided or is_scalar or not leaves:
        yield UnlikeAnswer("null:", None)
    if leaves and not is_scalar:
        yield UnlikeAnswer("null:*", _change_all(sample, leaves))
    is_object = isinstance(sample, Mapping)
    yield UnlikeAnswer("shape", [sample, None, EXTRA] if is_object else {**EXTRA, "None": None})
    scalars = [path for path in leaves if _get(sample, path) is not None]
    if decided:
        yield from _build_single_differences(sample, fields, scalars)
    elif fields:
        left = [path for path in scalars if path[: len(fields[0])] != fields[0]]
        mixed = _change(sample, left[-1], _change_type) if left else sample
        yield UnlikeAnswer("mixed", _add_extra(_without(mixed, fields[0]), fields[0]))


def _build_single_differences(
    sample: Any, fields: list[Path], scalars: list[Path]
) -> Iterator[UnlikeAnswer]:
    """Answers with one difference each, for code that may look for it."""
    for path in fields[:MAX_NULLS]:
        made = _change(sample, path, lambda _: None)
        yield UnlikeAnswer(f"null:{_render_pointer(path)}", made)
    if scalars:
        yield UnlikeAnswer("scalar", _change(sample, scalars[0], _change_type))
    if fields:
        yield UnlikeAnswer("extra", _add_extra(sample, fields[0]))
        yield UnlikeAnswer("missing", _without(sample, fields[0]))


def _add_extra(sample: Any, field: Path) -> Any:
    """The value with fields that nothing documents, beside this one."""
    return _change(sample, field[:-1], lambda value: {**value, **EXTRA})


def _list_fields(value: Any) -> list[Path]:
    """The fields of the answer's object, or of the first item of its list."""
    first: Path = ()
    while isinstance(value, list) and value:
        first, value = (*first, 0), value[0]
    return [(*first, name) for name in value] if isinstance(value, Mapping) else []


def _iterate_leaves(value: Any, path: Path) -> Iterator[Path]:
    """The places of scalars; of a list only those in its first item, since items may have to
    differ from each other.
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _iterate_leaves(item, (*path, name))
    elif isinstance(value, list):
        for item in value[:1]:
            yield from _iterate_leaves(item, (*path, 0))
    else:
        yield path


def _change_type(value: Any) -> Any:
    """A scalar of another type."""
    return 84_710.25 if isinstance(value, str) else "scalar-8472"


def _change_all(value: Any, paths: list[Path]) -> Any:
    for path in paths:
        value = _change(value, path, lambda _: None)
    return value


def _change(value: Any, path: Path, edit: Callable[[Any], Any]) -> Any:
    """The value with the part at `path` edited; the value itself stays as it is."""
    if not path:
        return edit(value)
    step, rest = path[0], path[1:]
    made: Any = dict(value) if isinstance(value, Mapping) else list(value)
    made[step] = _change(made[step], rest, edit)
    return made


def _without(value: Any, path: Path) -> Any:
    """The value without the field at `path`."""
    *holder, name = path
    return _change(value, tuple(holder), lambda part: {k: v for k, v in part.items() if k != name})


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _render_pointer(path: Path) -> str:
    """The place as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
