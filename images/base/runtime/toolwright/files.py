"""Files of the host, as far as the bundle's `fs:` permissions go and a person granted them."""

from __future__ import annotations

import json

from .calls import current_call
from .errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read(path: str) -> bytes:
    """The content of a plain file, at most 8 MiB. Raises RequestFailed."""
    return current_call().ask("file", {"op": "read", "path": path}).data


def read_text(path: str) -> str:
    """The same as text in UTF-8. Raises RequestFailed, or ToolError where it is none."""
    try:
        return read(path).decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no UTF-8 text: {error}") from error


def entries(path: str) -> list[dict[str, Any]]:
    """What is in a directory: `name`, `kind` (`file`, `directory`, `other`) and `size` of each.

    Raises RequestFailed.
    """
    found: list[dict[str, Any]] = json.loads(
        current_call().ask("file", {"op": "list", "path": path}).data
    )
    return found


def write(path: str, content: str | bytes) -> None:
    """Make a plain file of that content, whole or not at all. Raises RequestFailed."""
    data = content.encode() if isinstance(content, str) else content
    current_call().ask("file", {"op": "write", "path": path}, data)
