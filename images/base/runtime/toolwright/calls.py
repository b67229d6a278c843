"""One tool call: whose it is, and running it to its result."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from .byreference import contents
from .errors import ArgumentInvalid, Cancelled, MalformedAnswer, RequestFailed, ToolError
from .results import bug, conforming, failure, success
from .wholes import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from .answers import Answer
    from .bundle import Tool
    from .requests import WireRequest
    from .schema import Schema

    class Transport(Protocol):
        """The way out: the host's broker, or an HTTPS client of our own.

        `checks_arguments` is whether the far side has validated them already. `base_url` is what
        relative templates extend.
        """

        checks_arguments: bool
        base_url: str

        def send(self, request: WireRequest, call: Call) -> Answer: ...

        def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes, call: Call) -> Answer: ...


MAX_NOTE = 2000


class Call:
    """A tool call while it runs. `identity` is the id of its `tools/call` request."""

    def __init__(self, identity: int | str, tool: Tool, transport: Transport) -> None:
        self.identity, self.tool, self.transport = identity, tool, transport

    @property
    def base_url(self) -> str:
        return self.transport.base_url

    def send(self, request: WireRequest) -> Answer:
        """Raises RequestFailed, or Cancelled where the caller gave up."""
        return self.transport.send(request, self)

    def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes = b"") -> Answer:
        """Something of the host's: kind `file`, `env`, `call`, `dns`, `tls`, `tcp` or
        `progress`.

        Raises RequestFailed, or Cancelled.
        """
        return self.transport.ask(kind, wanted, body, self)

    def run(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The `CallToolResult`. Raises only Cancelled."""
        token = _CURRENT.set(self)
        try:
            return self._result(arguments)
        finally:
            _CURRENT.reset(token)

    def _result(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            schema = self.tool.definition["input_schema"]
            if not self.transport.checks_arguments:
                _check(self.tool.accepted_schema, arguments)
            given = {**whole(schema, arguments), **contents(self, self.tool.files, arguments)}
            value = self.tool.function(**_bound(self.tool, given))
            return self._succeed(value)
        except MalformedAnswer as error:
            return self._hand_on(error)
        except ToolError as error:
            return failure(error)
        except Cancelled:
            raise
        # A tool's code may raise anything, also SystemExit; none of it may end the server.
        except BaseException as error:
            _note(error)
            return bug(error)

    def _succeed(self, value: Any, malformed: str = "") -> dict[str, Any]:
        definition = self.tool.definition
        # Code that makes a value of its own answers for it; an API's answer is what it is.
        is_strict = not definition.get("operation")
        made = success(value, self.tool.output_schema, definition["name"], is_strict, malformed)
        return made if self.transport.checks_arguments else conforming(made)

    def _hand_on(self, error: MalformedAnswer) -> dict[str, Any]:
        """The result of an answer that is no JSON, as its type says: a failure only for a tool of
        its own making, whose code may have to know.
        """
        if not self.tool.definition.get("operation"):
            return failure(error)
        try:
            return self._succeed(error.answer, error.reason)
        except ToolError as reason:
            return failure(reason)


_CURRENT: ContextVar[Call] = ContextVar("call")


@contextmanager
def playing(call: Call) -> Iterator[None]:
    """A block whose code runs as that call's."""
    token = _CURRENT.set(call)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_call() -> Call:
    """The call whose code is running. Raises RuntimeError outside of one."""
    try:
        return _CURRENT.get()
    except LookupError:
        raise RuntimeError("http.request works only while a tool is called") from None


def progress(done: float, total: float | None = None, message: str = "") -> None:
    """Tell who waits for this call how far it has come; nothing where nobody can be told."""
    said = {"progress": done, "total": total, "message": message}
    with suppress(RequestFailed):
        current_call().ask("progress", said)


def _check(schema: Schema, arguments: Mapping[str, Any]) -> None:
    problem = schema.first_problem(arguments)
    if problem:
        raise ArgumentInvalid(*problem)


def _bound(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if not tool.takes_any:
        for name in arguments:
            if name not in tool.parameters:
                raise ArgumentInvalid(f"/{name[:60]}", "is not an argument of this tool")
    return {**tool.defaults, **arguments}


def _note(error: BaseException) -> None:
    """For whoever repairs the code: what the caller is shown has the type and line only."""
    try:
        print(f"{type(error).__name__}: {error}"[:MAX_NOTE], file=sys.stderr, flush=True)
    except BaseException:  # An exception's own __str__ is a tool's code too.
        return
