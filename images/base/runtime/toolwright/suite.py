"""Runs a server's tests where the server runs: the same file passes pytest.

docs/runtime-protocol.md, section 6.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import Context

from . import plainpytest, testing
from .asserts import GLOBALS, MAX_SHOWN, Unequal, compiled, shown
from .calls import progress
from .errors import ToolError
from .results import SOURCE, line_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType
    from typing import Any

FILE = "test_server.py"
MAX_TESTS = 300
RAISES, ARGUMENT, VALUE = "raises", "argument", "value"
"""What a stub does: raise ToolError, give its first argument back, give a value."""

__all__ = ["run", "testing"]


class Test:
    """One test with its arguments."""

    def __init__(self, name: str, function: Callable[..., Any], given: dict[str, Any]) -> None:
        self.name, self.function, self.given = name, function, given


class Calls:
    """Which of the server's tools a test called first, and how it called the last one."""

    def __init__(self) -> None:
        self.first = self.last = ""
        self._depth = 0

    def clear(self) -> None:
        self.first = self.last = ""

    def noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose calls are noted."""

        def call(*given: Any, **named: Any) -> Any:
            if not self._depth:
                self.first, self.last = self.first or name, _call(name, given, named)
            self._depth += 1
            try:
                return function(*given, **named)
            finally:
                self._depth -= 1

        return call


def _call(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> str:
    parts = [*map(shown, given), *(f"{key}={shown(each)}" for key, each in named.items())]
    return f"{name}({', '.join(parts)})"[: 2 * MAX_SHOWN]


def run(tests: str, code: str = "", skip: list[str] | None = None) -> dict[str, Any]:
    """What came of each test that is not to be skipped, on the code of `server.py`:
    `{"results": […]}`, or `{"error": …}` where there is nothing to run.

    How far it is is told by `progress`, one for each test that begins.
    """
    calls = Calls()
    try:
        server = type(sys)("server")
        with _modules(server=server, pytest=plainpytest.module()):
            _fill(server, code, calls)
            found = _collected(tests)
            results = []
            for at, test in enumerate(found):
                if test.name not in (skip or ()):
                    progress(at + 1, len(found))
                    results.append(_result(test, calls))
            return {"results": results}
    # Loading is a stranger's code too, which may raise anything.
    except BaseException as error:
        return {"error": _told(error), "line": _line(error)}


def on_stubs(tests: str, stubs: list[dict[str, Any]]) -> dict[str, Any]:
    """The ids of all tests, and for each stub in place of the server those that pass on it:
    `{"ids": […], "passed": [[…], …]}`, or as `run` an `error`.

    A stub has a `kind` and, of kind `value`, `values` by function and a `default` for others.
    """
    try:
        with _modules(pytest=plainpytest.module()):
            passed = [_passed(tests, stub) for stub in stubs]
            with _modules(server=_stubs({"kind": VALUE})):
                return {"ids": [test.name for test in _collected(tests)], "passed": passed}
    except BaseException as error:
        return {"error": _told(error), "line": _line(error)}


def _passed(tests: str, stub: Mapping[str, Any]) -> list[str]:
    with _modules(server=_stubs(stub)):
        return [test.name for test in _collected(tests) if _raised(test) is None]


def _fill(server: ModuleType, code: str, calls: Calls) -> None:
    """Run `server.py` in its module; the calls of its tools are noted."""
    server.__file__ = SOURCE
    compiled_code = compile(code, SOURCE, "exec", dont_inherit=True)
    exec(compiled_code, server.__dict__)  # nosec B102 # what the cage is for
    for name, value in list(vars(server).items()):
        if getattr(value, "toolwright_tool", None) is True:
            setattr(server, name, calls.noted(name, value))


def _stubs(stub: Mapping[str, Any]) -> ModuleType:
    """A server whose every function is a stub."""
    kind, values = stub["kind"], stub.get("values") or {}

    def made(name: str) -> Callable[..., Any]:
        def function(*given: Any, **named: Any) -> Any:
            if kind == RAISES:
                raise plainpytest.expected_anyway(ToolError("a stub"))
            if kind == ARGUMENT:
                return next(iter((*given, *named.values())), None)
            return values.get(name, stub.get("default"))

        if name.startswith("__"):
            raise AttributeError(name)
        return function

    server = type(sys)("server")
    server.__getattr__ = made  # type: ignore[method-assign]
    return server


@contextmanager
def _modules(**made: ModuleType) -> Iterator[None]:
    """These modules can be imported for the time of the block, whatever was there before."""
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _collected(tests: str) -> list[Test]:
    module = type(sys)("test_server")
    module.__file__ = FILE
    module.__dict__.update(GLOBALS)
    code = compiled(tests, FILE)
    exec(code, module.__dict__)  # nosec B102 # what the cage is for
    functions = [
        (name, value)
        for name, value in vars(module).items()
        if name.startswith("test") and callable(value)
    ]
    found = [
        Test(identity, function, given)
        for name, function in functions
        for identity, given in plainpytest.expanded(name, function)
    ]
    if not found:
        raise ValueError("there is no test: a test is a function whose name begins with test")
    if len(found) > MAX_TESTS:
        raise ValueError(f"{len(found)} tests are more than {MAX_TESTS}")
    return found


def _result(test: Test, calls: Calls) -> dict[str, Any]:
    calls.clear()
    error = _raised(test)
    told: dict[str, Any] = {"id": test.name, "verdict": _verdict(error)}
    if error is None:
        return told
    called = {"tool": calls.first, "call": calls.last}
    told |= {"reason": _told(error), "line": _line(error), **called}
    if isinstance(error, Unequal):
        told |= {"left": error.left, "right": error.right}
    return told


def _raised(test: Test) -> BaseException | None:
    """What the test raised, run as outside of any call, as pytest would."""
    try:
        Context().run(test.function, **test.given)
    except BaseException as error:  # A test may raise anything, also SystemExit.
        return error
    return None


def _verdict(error: BaseException | None) -> str:
    if error is None:
        return "passed"
    return "failed" if isinstance(error, AssertionError) else "error"


def _told(error: BaseException) -> str:
    if isinstance(error, Unequal):
        return f"{error.said}: {error.told[:MAX_SHOWN]}" if error.told else error.said
    where = line_of(error.__traceback__)
    at = f" (server.py line {where})" if where else ""
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # An exception's own __str__ is a stranger's code too.
        text = type(error).__name__
    return text[:MAX_SHOWN].encode("utf-8", "backslashreplace").decode() + at


def _line(error: BaseException) -> int | None:
    """The line of the tests that it came from."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
