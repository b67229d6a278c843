"""Arguments that are files: the caller names one of the host's, the tool gets its text."""

from __future__ import annotations

import re

from .errors import ArgumentInvalid, RequestFailed
from .schema import first_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .calls import Call

MARK = "x-toolwright-file"
FILE = "file:///"
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def marked(input_schema: Any) -> tuple[str, ...]:
    """The arguments that may be files, by an input schema."""
    properties = input_schema.get("properties") if isinstance(input_schema, dict) else None
    if not isinstance(properties, dict):
        return ()
    return tuple(
        name for name, part in properties.items() if isinstance(part, dict) and part.get(MARK)
    )


def contents(call: Call, names: tuple[str, ...], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the files that arguments name as `file:///PATH`.

    Raises ArgumentInvalid where one may not be read, is no text in UTF-8 or not as the schema wants
    it, and RequestFailed.
    """
    found = {}
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value.startswith(FILE):
            found[name] = _text(call, name, value)
    return found


def _text(call: Call, name: str, url: str) -> str:
    raw = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), url[len(FILE) - 1 :].encode())
    try:
        path = raw.decode()
        text = call.ask("file", {"op": "read", "path": path}).data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentInvalid(f"/{name[:60]}", "names no text in UTF-8") from error
    except RequestFailed as error:
        if error.kind != "refused":
            raise
        how = f"A person grants files: `toolwright grant SERVER fs:{path}:ro`"
        raise ArgumentInvalid(
            f"/{name[:60]}", f"names no file to be read. {error} {how}"
        ) from error
    problem = first_problem(call.tool.definition["input_schema"]["properties"][name], text)
    if problem:
        raise ArgumentInvalid(f"/{name[:60]}", f"the file's text {problem[1]}")
    return text
