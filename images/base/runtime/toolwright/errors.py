"""Failures of a tool call. Each becomes an `isError` result whose kind is the class's `kind`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .answers import Answer

BROKER_KINDS = frozenset(
    {"refused", "timeout", "unreachable", "too_large", "rate_limited", "frozen", "captured"}
)
MAX_BODY_TEXT = 64 * 1024
_ADVICE = {
    401: "the credential is missing or not accepted",
    403: "the credential does not allow this",
    407: "a proxy wants a credential",
    409: "what is there stands against it; read it first",
    412: "it has changed meanwhile; read it again",
    413: "send less",
    415: "the API does not take a body of this type",
    429: "too many requests; wait before the next",
    503: "try again later",
}


class Cancelled(BaseException):
    """The caller gave the call up. Not an Exception, so that a tool's code does not stop it."""


class ToolError(Exception):
    """The tool cannot do what it was asked; the message is for whoever called it."""

    kind = "tool"
    blocks: Sequence[dict[str, Any]] = ()
    """Content beside the message."""

    def details(self) -> dict[str, Any]:
        """What `_meta["toolwright/error"]` holds besides the kind."""
        return {}


class Refused(ToolError):
    """The tool refuses what it was asked, as it says of itself: `code` is one of the tool's
    `refusals` in `tools.json`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)

    def details(self) -> dict[str, Any]:
        return {"code": self.code}


class Upstream(ToolError):
    """What the tool asked failed: its API, another server's tool, or the host."""

    kind = "upstream"


class ArgumentInvalid(ToolError):
    """An argument cannot be used. `where` is a JSON pointer into the arguments."""

    kind = "arguments"

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"argument {where or '/'}: {reason}")

    def details(self) -> dict[str, Any]:
        return {"where": self.where, "reason": self.reason}


class HttpError(Upstream):
    """The API answered with another status than 2xx; `answer` is what it said."""

    kind = "http"

    def __init__(self, answer: Answer) -> None:
        self.answer, self.status, self.retry_after = answer, answer.status, answer.retry_after
        wait = "" if self.retry_after is None else f" (retry after {self.retry_after:g} s)"
        advice = f": {_ADVICE[answer.status]}" if answer.status in _ADVICE else ""
        moved = answer.headers.get("location", "")
        onward = f" to {moved[:2000]}" if 300 <= answer.status < 400 and moved else ""
        status = f"HTTP {answer.status} {answer.reason}"
        super().__init__(f"{status}{wait}{onward}{advice}{quoted(answer)}")

    def details(self) -> dict[str, Any]:
        wait = {} if self.retry_after is None else {"retry_after": self.retry_after}
        return {"status": self.status, **wait}


class MalformedAnswer(Upstream):
    """A 2xx answer is declared to be JSON and does not parse; `answer` is what arrived."""

    kind = "malformed"

    def __init__(self, answer: Answer, reason: str) -> None:
        self.answer, self.reason = answer, reason
        start = f"HTTP {answer.status}, but the {answer.content_type} body does not parse: {reason}"
        super().__init__(start + quoted(answer))

    def details(self) -> dict[str, Any]:
        return {"status": self.answer.status, "reason": self.reason}


class SchemaBroken(ToolError):
    """The result breaks the tool's output schema. `where` is a JSON pointer into the result.

    It is told all the same, whole, as text and `blocks`; not as structured content, which some
    clients throw away where it breaks the schema.
    """

    kind = "schema"

    def __init__(
        self,
        where: str,
        reason: str,
        answer: Answer | None,
        text: str,
        blocks: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.where, self.reason, self.blocks = where, reason, blocks
        said = f"HTTP {answer.status} {answer.reason}, but " if answer else ""
        message = f"{said}the result breaks the output schema at {where or '/'}: {reason}"
        super().__init__(f"{message}\n\n{text}")

    def details(self) -> dict[str, Any]:
        return {"where": self.where, "reason": self.reason}


class RequestFailed(Upstream):
    """No answer was had; `kind` is one of `BROKER_KINDS`."""

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        self.kind, self.retry_after = kind, retry_after
        wait = "" if retry_after is None else f" (retry after {retry_after:g} s)"
        super().__init__(f"{kind}: {message}{wait}")

    def details(self) -> dict[str, Any]:
        return {} if self.retry_after is None else {"retry_after": self.retry_after}


class LoadError(Exception):
    """The bundle cannot be served; the message names the line of `server.py` where there is one."""


def quoted(answer: Answer) -> str:
    """What an answer said, for the end of a message; only what is very long is cut."""
    text = answer.printable()
    if len(text) > MAX_BODY_TEXT:
        text = f"{text[:MAX_BODY_TEXT]}… ({len(text)} characters in all)"
    return f"\n\n{text}" if text else ""
