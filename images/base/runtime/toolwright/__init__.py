"""The library of a forged server's code. docs/runtime-protocol.md, section 4, is its reference."""

from __future__ import annotations

from . import content, http, network, servers
from .answers import Answer
from .calls import progress
from .errors import HttpError, MalformedAnswer, Refused, ToolError, Upstream
from .values import UNSET, Unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = [
    "UNSET",
    "Answer",
    "HttpError",
    "MalformedAnswer",
    "Refused",
    "ToolError",
    "Unset",
    "Upstream",
    "content",
    "http",
    "network",
    "progress",
    "servers",
    "tool",
]


def tool(function: Function) -> Function:
    """Make a function a tool of that name; its keyword parameters are the arguments."""
    function.toolwright_tool = True  # type: ignore[attr-defined]
    return function
