"""What is wrong with a value that no alternative of a schema takes, where something tells which of
them is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jsonschema.exceptions import ValidationError, best_match

from sandbox.schemas.bounded import cut_message

MAX_DEPTH = 16
MAX_VALUES = 20
_LISTING = ("const", "enum")
_Place = tuple[str | int, ...]


def find_telling(error: ValidationError) -> ValidationError:
    """The error that says most: of a value that none of several alternatives takes, what is wrong
    by the one that a field of it names (`kind`), that the field names none of them, or that it
    lacks what all of them require. The error itself where nothing of this is so.
    """
    for _ in range(MAX_DEPTH):
        found = _choose_error(error)
        if found is None:
            return error
        error = found
    return error


def _choose_error(error: ValidationError) -> ValidationError | None:
    # What takes another type of value is not meant.
    branches = [each for each in _group_by_branch(error) if not any(map(_is_of_type, each))]
    if len(branches) == 1:
        return _choose_best(branches[0])
    return (_find_by_field(error, branches) or _find_missing(branches)) if branches else None


def _is_of_type(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _choose_best(errors: list[ValidationError]) -> ValidationError | None:
    best: ValidationError | None = best_match(iter(errors))
    return best


def _group_by_branch(error: ValidationError) -> list[list[ValidationError]]:
    """The errors of each alternative; none where those of one were not kept."""
    listed = error.validator_value if error.validator in ("anyOf", "oneOf") else ()
    count = len(listed) if isinstance(listed, list) else 0
    branches: list[list[ValidationError]] = [[] for _ in range(count)]
    for each in error.context or ():
        place = next(iter(each.relative_schema_path), None)
        if isinstance(place, int) and place < count:
            branches[place].append(each)
    return branches if count > 1 and all(branches) else []


def _find_by_field(
    error: ValidationError, branches: list[list[ValidationError]]
) -> ValidationError | None:
    """By a field for which each alternative lists values: the errors of the one that lists this
    value, or that none does.
    """
    listed = [{_place(e): e for e in errors if e.validator in _LISTING} for errors in branches]
    for place in dict.fromkeys(place for found in listed for place in found if place):
        meant = [at for at, found in enumerate(listed) if place not in found]
        if len(meant) == 1:
            return _choose_best(branches[meant[0]])
        if not meant:
            values = [value for found in listed for value in _list_values(found[place])]
            shown = list({repr(value): value for value in values}.values())[:MAX_VALUES]
            first = listed[0][place]
            message = f"{first.instance!r} is not one of {shown!r}"
            path = tuple(first.relative_path)
            return cut_message(ValidationError(message, "enum", path, parent=error))
    return None


def _find_missing(branches: list[list[ValidationError]]) -> ValidationError | None:
    """The error of a field that all alternatives require and the value lacks."""
    lacking = [{name: e for e in errors for name in _list_missing(e)} for errors in branches]
    common = (name for name in lacking[0] if all(name in found for found in lacking))
    return next((lacking[0][name] for name in common), None)


def _list_missing(error: ValidationError) -> Iterator[str]:
    """The field that an error of `required` is about: there is one for each that is missing."""
    required, value = error.validator_value, error.instance
    if error.validator == "required" and not error.relative_path:
        for name in required if isinstance(required, list) else ():
            is_lacking = isinstance(value, Mapping) and name not in value
            if is_lacking and error.message.startswith(f"{name!r} "):
                yield name


def _list_values(error: ValidationError) -> Iterator[object]:
    value = error.validator_value
    yield from (value if error.validator == "enum" and isinstance(value, list) else (value,))


def _place(error: ValidationError) -> _Place:
    return tuple(error.relative_path)
