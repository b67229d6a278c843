"""Setting or removing one entry in a client's configuration file, in JSON, TOML or YAML.

Everything else, comments, order and layout, stays as it is. One function per format, from text to
text; each raises ConfigNotUnderstood, and then nothing is to be written.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import json5
import tomlkit
from json5.dumper import ModelDumper
from json5.loader import ModelLoader
from json5.model import Comment, DoubleQuotedString, JSONObject, JSONText, Value
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from tomlkit.exceptions import TOMLKitError

from orchestrator.errors import ConfigNotUnderstood

INDENT = "  "
_SURROGATE = re.compile("[\ud800-\udfff]")
Entry = Mapping[str, Any]


def set_in_json(text: str, path: Sequence[str], entry: Entry | None) -> str:
    """Set or remove an entry. Strict JSON (RFC 8259) is written again with an indent of two; JSON
    with comments or trailing commas, as in editors' settings, is edited in place, and so is what
    would not be the same once it is written again.
    """
    try:
        config = json.loads(
            text or "{}",
            parse_float=_read_float,
            parse_constant=_read_float,
            object_pairs_hook=_read_members,
        )
    except RecursionError as error:
        raise ConfigNotUnderstood(str(error)) from error
    except ValueError:
        return _set_in_commented_json(text, path, entry)
    _set_entry(config, path, entry, dict)
    return _write_json(config) + "\n"


def _read_float(text: str) -> float:
    """Raises ValueError for a number that no double holds as it is written, such as 1e400."""
    value = float(text)
    try:
        is_same = isfinite(value) and Decimal(repr(value)) == Decimal(text)
    except ArithmeticError:
        is_same = False
    if not is_same:
        raise ValueError(f"{text[:40]} would be another number")
    return value


def _read_members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a name that is there twice: one of the two would be lost."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is there twice")
    return members


def _write_json(value: Any) -> str:
    """JSON as people read it. Half a surrogate pair, as clients leave it where they cut a text,
    stays an escape: UTF-8 has no bytes for it (RFC 3629 section 3).
    """
    written = json.dumps(value, indent=len(INDENT), ensure_ascii=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def set_in_toml(text: str, path: Sequence[str], entry: Entry | None) -> str:
    """Set or remove an entry in TOML (v1.0.0)."""
    try:
        config = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigNotUnderstood(str(error)) from error
    _set_entry(config, path, entry, lambda: tomlkit.table(is_super_table=True))
    return tomlkit.dumps(config).rstrip("\n") + "\n"


def set_in_yaml(text: str, path: Sequence[str], entry: Entry | None) -> str:
    """Set or remove an entry in YAML 1.2."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    try:
        config = yaml.load(text)
    except (YAMLError, RecursionError) as error:
        raise ConfigNotUnderstood(str(error)) from error
    config = {} if config is None else config
    _set_entry(config, path, entry, dict)
    written = io.StringIO()
    yaml.dump(config, written)
    return written.getvalue()


def read_json(text: str) -> Any:
    """Parse JSON, with or without comments. Raises ConfigNotUnderstood, as the two below."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ConfigNotUnderstood(str(error)) from error
    except ValueError:
        pass
    try:
        return json5.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigNotUnderstood(str(error)) from error


def read_toml(text: str) -> Any:
    try:
        return tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        raise ConfigNotUnderstood(str(error)) from error


def read_yaml(text: str) -> Any:
    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, RecursionError) as error:
        raise ConfigNotUnderstood(str(error)) from error


def _set_entry(config: Any, path: Sequence[str], entry: Entry | None, make: Any) -> None:
    """Set the entry at the path in nested mappings, or remove it where it is None."""
    *parents, name = path
    for key in parents:
        if not isinstance(config, dict):
            raise ConfigNotUnderstood("it is not made of objects")
        if key not in config:
            if entry is None:
                return
            config[key] = make()
        config = config[key]
    if not isinstance(config, dict):
        raise ConfigNotUnderstood(f"`{'.'.join(parents)}` is not an object")
    if entry is not None:
        config[name] = dict(entry)
    elif name in config:
        del config[name]


def _set_in_commented_json(text: str, path: Sequence[str], entry: Entry | None) -> str:
    try:
        document: JSONText = json5.loads(text, loader=ModelLoader())
    except (ValueError, RecursionError, AssertionError) as error:
        raise ConfigNotUnderstood(str(error)) from error
    *parents, name = path
    here: Value = document.value
    for depth, key in enumerate(parents):
        found = _find_member(here, key)
        if found is None and entry is None:
            return text
        here = _set_member(here, key, {}, depth) if found is None else found
    if entry is not None:
        _set_member(here, name, entry, len(parents))
    else:
        _remove_member(here, name)
    return json5.dumps(document, dumper=ModelDumper())  # type: ignore[arg-type]


def _find_index(members: Value, name: str) -> int | None:
    if not isinstance(members, JSONObject):
        raise ConfigNotUnderstood("it is not made of objects")
    names = [getattr(key, "characters", None) or getattr(key, "name", "") for key in members.keys]
    if names.count(name) > 1:
        raise ConfigNotUnderstood(f"`{name}` is there twice")
    return names.index(name) if name in names else None


def _find_member(members: Value, name: str) -> Value | None:
    index = _find_index(members, name)
    assert isinstance(members, JSONObject)
    return None if index is None else members.values[index]


def _set_member(members: Value, name: str, entry: Entry, depth: int) -> Value:
    """Set a member: in its place where it exists, else as the last one."""
    index = _find_index(members, name)
    assert isinstance(members, JSONObject)
    value = _build_value(entry, depth + 1)
    if index is not None:
        value.wsc_before = members.values[index].wsc_before
        value.wsc_after = members.values[index].wsc_after
        members.values[index] = value
        return value
    key = DoubleQuotedString(name, json.dumps(name))
    value.wsc_before = [" "]
    break_inside, break_after = "\n" + INDENT * (depth + 1), "\n" + INDENT * depth
    if members.keys:
        key.wsc_before = [*_drop_last_break(_take_tail(members)), break_inside]
    else:
        members.leading_wsc = [*_drop_last_break(members.leading_wsc), break_inside]
    if members.trailing_comma:
        members.trailing_comma.wsc_after = [break_after]
    else:
        value.wsc_after = [break_after]
    members.keys.append(key)
    members.values.append(value)
    return value


def _remove_member(members: Value, name: str) -> None:
    index = _find_index(members, name)
    if index is None:
        return
    assert isinstance(members, JSONObject)
    was_last = index == len(members.keys) - 1
    before = _drop_last_break(members.keys.pop(index).wsc_before)
    value = members.values.pop(index)
    if not was_last:
        members.keys[index].wsc_before = [*before, *members.keys[index].wsc_before]
    elif not members.keys:
        members.trailing_comma = None
        members.leading_wsc = _drop_last_break(members.leading_wsc)
    elif members.trailing_comma:
        members.trailing_comma.wsc_after = [*before, *members.trailing_comma.wsc_after]
    else:
        members.values[-1].wsc_after = [*before, *value.wsc_after]


def _take_tail(members: JSONObject) -> list[str | Comment]:
    """Remove and return the whitespace and comments before the closing brace."""
    last = members.trailing_comma or members.values[-1]
    tail, last.wsc_after = last.wsc_after, []
    return tail


def _drop_last_break(items: list[str | Comment]) -> list[str | Comment]:
    return items[:-1] if items and isinstance(items[-1], str) else items


def _build_value(entry: Entry, depth: int) -> Value:
    """The entry as a JSON node, indented for its depth in the file."""
    text = _write_json(entry)
    document: JSONText = json5.loads(
        text.replace("\n", "\n" + INDENT * depth), loader=ModelLoader()
    )
    return document.value
