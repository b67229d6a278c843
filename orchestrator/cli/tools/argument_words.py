"""Arguments of a tool as words of a command line: `key=value`, read by the tool's own input schema.

`key=value` is of the type that the schema wants, `key:=JSON` is JSON whatever it wants, `key=@FILE`
and `key:=@FILE` are read from a local file, `key=@@value` is a text that begins with `@`.
`outer.inner=value` is a value inside an object, and a key that is repeated makes a list.
"""

from __future__ import annotations

import base64
import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.text import escape_line
from sandbox import exactjson
from sandbox.schemas.keywords import BRANCHES, declared_types

MAX_FILE_BYTES = 32 << 20
MAX_DEPTH = 8
MAX_ALTERNATIVES = 64
MAX_KEYS = 500
SHOWN = 60
NEAR = 3
ANY: Mapping[str, Any] = {"additionalProperties": True}
"""The schema of a tool that takes whatever it is given."""
_DEFINITIONS = "#/$defs/"
_SPELLED = {"boolean": "true or false"}
"""Types that are named by how their values are typed."""


@dataclass(frozen=True)
class _Word:
    """One word: its key, what stands behind `=`, and whether that was said to be JSON (`:=`)."""

    key: str
    text: str
    is_json: bool

    @property
    def file(self) -> str:
        """The path of a file, "" where the value stands in the word itself."""
        return self.text[1:] if self.text.startswith("@") and self.text[1:2] != "@" else ""


def is_word(text: str) -> bool:
    """Whether this argument of a command is a `key=value`, not a JSON object."""
    return "=" in text and not text.lstrip().startswith(("{", "["))


def read_words(words: Sequence[str], schema: Mapping[str, Any], usage: str) -> dict[str, Any]:
    """The arguments that these words give a tool with that input schema. `usage` is an example
    call, which every problem comes with. Raises click.UsageError.
    """
    by_key: dict[str, list[_Word]] = {}
    for word in map(_split_word, words):
        by_key.setdefault(word.key, []).append(word)
    found: dict[str, Any] = {}
    try:
        for key, given in by_key.items():
            path, wanted = _find_place(key, key, schema, schema)
            _put(found, path, _read_given(given, _Wanted(wanted, schema)), key)
    except _WordUnreadable as problem:
        raise click.UsageError(f"{problem} For example: {usage}") from problem
    return found


def write_words(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """The words that `read_words` reads as these arguments: a word for each value inside objects,
    where names without dots lead to it.
    """
    return [word for name, value in arguments.items() for word in _write_value(name, value, schema)]


def list_keys(schema: Mapping[str, Any]) -> list[str]:
    """Every key that a tool's words may have, an object's own before those inside it."""
    found: list[str] = []
    for key in _walk_keys(schema, schema, "", MAX_DEPTH):
        found.append(key)
        if len(found) == MAX_KEYS:
            break
    return found


def takes_file(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether `key=@FILE` gives a file, or the one file of a list, to a tool with that input
    schema.
    """
    try:
        _, part = _find_place(key, key, schema, schema)
    except _WordUnreadable:
        return False
    wanted = _Wanted(part, schema)
    return bool(wanted.file_form or wanted.item.file_form)


class _WordUnreadable(Exception):
    """A word that is not read, and what to type instead."""


class _Wanted:
    """The value that a schema wants: its alternatives with references resolved, and their types.

    `is_written_plain` says whether the value is a parameter or an item of one, which a number and
    its text are the same in.
    """

    def __init__(
        self, schema: Any, root: Mapping[str, Any], is_written_plain: bool | None = None
    ) -> None:
        self.root = root
        self.alternatives = list_alternatives(schema, root)
        self.types = frozenset(kind for each in self.alternatives for kind in list_types(each))
        if is_written_plain is None:
            place = str(next((each["x-in"] for each in self.alternatives if "x-in" in each), ""))
            is_written_plain = place.partition(":")[0] in ("path", "query", "header", "cookie")
        self.is_written_plain = is_written_plain

    @property
    def item(self) -> _Wanted:
        """What an item of the list has to be."""
        held = [each["items"] for each in self.alternatives if "items" in each]
        return _Wanted(held[0] if held else {}, self.root, self.is_written_plain)

    @property
    def file_form(self) -> str:
        """How a file is given: `named` with its name beside its content, `bytes` as base64, ""
        where the value is no file.
        """
        for each in self.alternatives:
            if {"base64", "filename"} <= {*merge_properties(list_alternatives(each, self.root))}:
                return "named"
        is_bytes = any(each.get("contentEncoding") == "base64" for each in self.alternatives)
        return "bytes" if is_bytes else ""

    @property
    def is_decimal(self) -> bool:
        """Whether the value is a number that may be given as its text, so that no digit is lost."""
        return self.types - {"null"} == {"number", "string"} and not any(
            list_own_values(each) for each in self.alternatives
        )

    def takes(self, value: Any) -> bool:
        kinds = _find_kinds(value)
        return not self.types or bool(kinds & self.types)


def _split_word(text: str) -> _Word:
    key, equals, value = text.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key or key.lstrip().startswith(("{", "[")):
        raise click.UsageError(
            f"{text[:SHOWN]!r} is no key=value. Give either one JSON object or words like "
            "name=example.org limit=3"
        )
    return _Word(key, value, is_json)


def list_alternatives(
    schema: Any, root: Mapping[str, Any], branches: Iterable[str] = BRANCHES
) -> list[Mapping[str, Any]]:
    """A schema and those that apply to the same value, in the order that they are written in."""
    found: list[Mapping[str, Any]] = []
    left = [(schema, 0)]
    while left and len(found) < MAX_ALTERNATIVES:
        part, depth = left.pop(0)
        if not isinstance(part, Mapping) or depth > MAX_DEPTH:
            continue
        found.append(part)
        name = str(part.get("$ref", ""))
        definitions = root.get("$defs")
        if name.startswith(_DEFINITIONS) and isinstance(definitions, Mapping):
            left.append((definitions.get(name.removeprefix(_DEFINITIONS)), depth + 1))
        for branch in branches:
            held = part.get(branch)
            left += [(each, depth + 1) for each in held] if isinstance(held, list) else []
    return found


def list_types(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that a schema names or shows by its values, without those of its alternatives."""
    named = declared_types(schema)
    if named:
        return named
    values = list_own_values(schema)
    if values:
        return frozenset(kind for value in values for kind in _find_kinds(value))
    if "properties" in schema:
        return frozenset({"object"})
    return frozenset({"array"}) if "items" in schema else frozenset()


def list_own_values(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema itself lists; none where it does not."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return values if isinstance(values, list) else []


def _find_kinds(value: Any) -> frozenset[str]:
    """The types of JSON Schema that a value is of."""
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"integer", "number"})
    if isinstance(value, float):
        return frozenset({"number"})
    if isinstance(value, str):
        return frozenset({"string"})
    return frozenset({"array" if isinstance(value, list) else "object"})


def _find_place(
    key: str, whole: str, schema: Any, root: Mapping[str, Any]
) -> tuple[tuple[str, ...], Any]:
    """The names that lead to a key's value, and the schema of that. A name that holds dots itself
    goes before a path. `key` is what is left of the `whole` key inside this schema.
    """
    wanted = _Wanted(schema, root)
    declared = merge_properties(wanted.alternatives)
    ends = [len(key), *(at for at in range(len(key) - 1, 0, -1) if key[at] == ".")]
    for end in ends:
        name, rest = key[:end], key[end + 1 :]
        if name in declared and rest:
            inner, last = _find_place(rest, whole, declared[name], root)
            return (name, *inner), last
        if name in declared and end == len(key):
            return (name,), declared[name]
    free = _find_free(wanted, declared)
    if free is None:
        raise _WordUnreadable(_render_unknown(whole, key, wanted))
    return tuple(key.split(".")), {} if "." in key else free


def merge_properties(alternatives: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The properties that any of these schemas declares, each as all have it that declare it: the
    `kind` of a union is that of any of its members.
    """
    found: dict[str, list[Any]] = {}
    for each in alternatives:
        properties = each.get("properties")
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            found.setdefault(str(name), []).append(part)
    return {name: _join(parts) for name, parts in found.items()}


def _join(parts: list[Any]) -> Any:
    return parts[0] if all(part == parts[0] for part in parts) else {"anyOf": parts}


def _find_free(wanted: _Wanted, declared: Mapping[str, Any]) -> Any:
    """The schema of what an object has beside its declared names; None where it has nothing."""
    for each in wanted.alternatives:
        more = each.get("additionalProperties")
        if more is True or isinstance(more, Mapping):
            return {} if more is True else more
    is_object = not wanted.types or "object" in wanted.types
    closed = any(each.get("additionalProperties") is False for each in wanted.alternatives)
    return {} if is_object and not declared and not closed else None


def _render_unknown(key: str, rest: str, holder: _Wanted) -> str:
    """Why a key has no place. `rest` is what of it `holder` does not have."""
    known = list_keys(holder.root)
    near = difflib.get_close_matches(key, known, NEAR, 0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    takes = f" It takes {', '.join(known[:20]) or 'no arguments'}." if not near else ""
    ways = meant + takes + _render_json_way(key.removesuffix(rest).rstrip("."), rest, holder)
    return f"there is no argument {key[:SHOWN]!r}.{escape_line(ways)}"


def _render_json_way(above: str, rest: str, holder: _Wanted) -> str:
    """How the value `above` takes as JSON what no key says: what is in a list, and what an object
    may have beside what it declares.
    """
    inside = f'{{"{rest[:SHOWN]}":…}}'
    if above and "array" in holder.types:
        word = shlex.quote(f"{above}:=[{inside}]")
        return f" {above} is a list, which is given as JSON: {word}."
    closed = any(each.get("additionalProperties") is False for each in holder.alternatives)
    if above and not closed and (not holder.types or "object" in holder.types):
        word = shlex.quote(f"{above}:={inside}")
        return f" What {above} does not declare it takes as JSON: {word}."
    return ""


def _walk_keys(schema: Any, root: Mapping[str, Any], before: str, depth: int) -> Iterator[str]:
    declared = merge_properties(list_alternatives(schema, root))
    yield from (f"{before}{name}" for name in declared)
    if depth:
        for name, part in declared.items():
            yield from _walk_keys(part, root, f"{before}{name}.", depth - 1)


def _read_given(given: Sequence[_Word], wanted: _Wanted) -> Any:
    if len(given) == 1:
        return _read_word(given[0], wanted)
    if wanted.types and "array" not in wanted.types:
        raise _WordUnreadable(f"{given[0].key} takes one value and is given {len(given)}.")
    return [_read_word(each, wanted.item) for each in given]


def _read_word(word: _Word, wanted: _Wanted) -> Any:
    if word.is_json:
        return _parse_json(word)
    if word.file:
        return _read_file(word, wanted)
    return _read_text(
        word, word.text.removeprefix("@") if word.text[:2] == "@@" else word.text, wanted
    )


def _parse_json(word: _Word) -> Any:
    content = _load_file(word) if word.file else word.text.encode()
    try:
        return exactjson.loads(content)
    except (ValueError, RecursionError) as error:
        raise _WordUnreadable(f"what {word.key}:= gives is not JSON: {error}.") from error


def _read_text(word: _Word, text: str, wanted: _Wanted) -> Any:
    """A text as the type that is wanted. Raises _WordUnreadable for two readings or none."""
    if wanted.types == {"string"}:
        return text
    is_text = not wanted.types or "string" in wanted.types
    try:
        value = exactjson.loads(text.encode())
    except (ValueError, RecursionError):
        value = text
    if not isinstance(value, str) and wanted.takes(value):
        if is_text and wanted.is_written_plain and isinstance(value, bool | int | float):
            return text
        if wanted.is_decimal and isinstance(value, int | float):
            return value if exactjson.dumps(value).decode() == text else text
        if is_text:
            raise _WordUnreadable(_render_readings(word, text))
        return value
    if is_text:
        return text
    if "array" in wanted.types:
        return [_read_item(word, text, wanted.item)]
    kinds = " or ".join(_SPELLED.get(kind, kind) for kind in sorted(wanted.types))
    raise _WordUnreadable(f"{word.key} takes {kinds}, not {text[:SHOWN]!r}.")


def _read_item(word: _Word, text: str, wanted: _Wanted) -> Any:
    """A text as the one value of a list."""
    try:
        return _read_text(word, text, wanted)
    except _WordUnreadable as problem:
        each = f"For a list repeat {word.key}=VALUE for each of its values."
        raise _WordUnreadable(f"{problem} {each}") from problem


def _render_readings(word: _Word, text: str) -> str:
    if word.file:
        return (
            f"{word.file} may be meant as JSON or as text. {word.key}:=@{word.file} takes it as "
            "JSON."
        )
    as_text = shlex.quote(f"{word.key}:={exactjson.dumps(text).decode()}")
    as_json = shlex.quote(f"{word.key}:={text}")
    return (
        f"{word.key} may be a text or JSON, and {text[:SHOWN]!r} can be read as both. For the text "
        f"write {as_text}, for JSON {as_json}."
    )


def _load_file(word: _Word) -> bytes:
    try:
        with Path(word.file).expanduser().open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        text = shlex.quote(f"{word.key}=@{word.text}")
        raise _WordUnreadable(
            f"{word.file} cannot be read: {error.strerror}. If {word.text[:SHOWN]!r} is meant as a "
            f"text, write {text}."
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise _WordUnreadable(f"{word.file} is larger than {MAX_FILE_BYTES >> 20} MB.")
    return content


def _read_file(word: _Word, wanted: _Wanted) -> Any:
    """A file's content as what is wanted: base64 where the schema says so, else its text."""
    if not wanted.file_form and "array" in wanted.types and wanted.item.file_form:
        return [_read_file(word, wanted.item)]
    content = _load_file(word)
    if wanted.file_form:
        encoded = base64.b64encode(content).decode()
        is_named = wanted.file_form == "named"
        return {"base64": encoded, "filename": Path(word.file).name} if is_named else encoded
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _WordUnreadable(
            f"{word.file} is no text in UTF-8, which {word.key} takes."
        ) from error
    return _read_text(word, text, wanted)


def _put(found: dict[str, Any], path: tuple[str, ...], value: Any, key: str) -> None:
    """Put a value where its key says. Raises _WordUnreadable where another key gave it."""
    for name in path[:-1]:
        found = found.setdefault(name, {})
        if not isinstance(found, dict):
            raise _WordUnreadable(f"{key} is inside {name}, which is given as a whole beside it.")
    if path[-1] in found:
        raise _WordUnreadable(f"{key} is given as a whole and in parts.")
    found[path[-1]] = value


def _write_value(key: str, value: Any, schema: Mapping[str, Any]) -> list[str]:
    if isinstance(value, Mapping) and value and all("." not in name for name in value):
        parts = [
            word
            for name, part in value.items()
            for word in _write_value(f"{key}.{name}", part, schema)
        ]
        if _is_read_as(parts, key, value, schema):
            return parts
    text = value if isinstance(value, str) else exactjson.dumps(value).decode()
    plain = f"{key}=@{text}" if text.startswith("@") else f"{key}={text}"
    if _is_read_as([plain], key, value, schema):
        return [plain]
    # As JSON it has one reading.
    return [f"{key}:={exactjson.dumps(value).decode()}"]


def _is_read_as(words: Sequence[str], key: str, value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        found: Any = read_words(words, schema, "")
    except click.UsageError:
        return False
    for name in key.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return bool(found == value)
