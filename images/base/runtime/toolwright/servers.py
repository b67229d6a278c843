"""Tools of other servers, as far as `call:` permissions go and a person granted them."""

from __future__ import annotations

import json

from .calls import current_call
from .errors import ToolError, Upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class CallFailed(Upstream):
    """The called tool failed; `failure` is the kind of its failure (docs/runtime-protocol.md)."""

    def __init__(self, tool: str, failure: str, message: str) -> None:
        self.tool, self.failure = tool, failure
        if failure == "arguments":
            # It was asked wrongly: by this tool's caller, or by its code.
            self.kind = "tool"
        super().__init__(f"{tool} failed ({failure}): {message}")


def call(tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """What a tool, named as `server.tool`, gives for these arguments: its structured content, or
    `{"text": …}` where it has none.

    Raises CallFailed where it fails, RequestFailed where it may not be called.
    """
    try:
        body = json.dumps(dict(arguments or {}), sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ToolError(f"the arguments for {tool} are no JSON: {error}") from error
    answer = current_call().ask("call", {"tool": tool}, body)
    told = json.loads(answer.data)
    if answer.status != 200:
        raise CallFailed(tool, str(told.get("kind")), str(told.get("message")))
    return told
