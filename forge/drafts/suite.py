"""Tests from one draft to the next: none is lost or weakened without a word."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from forge.inheritance import Defining, definitions, inherit, used
from sandbox.validation import Problem

SERVER = "server"


def carried(
    tests: str, earlier: str, why: str, gone: Collection[str] = (), free: Collection[str] = ()
) -> str | tuple[Problem, ...]:
    """The tests of a draft with those of an earlier one that it does not have, or what is wrong.

    An earlier test stays as it was unless `why` names it or it is `free` to change; it is left out
    only where `why` says `drop NAME`, or where it is about tools that are `gone`.
    """
    before = definitions(earlier)
    if not before or definitions(tests) is None:
        return tests
    leaving = {name for name in _tests(before) if _dropped(name, why) or _uses(before, name, gone)}
    kept = [name for name in _tests(before) if name not in leaving]
    merged = without_imports(inherit(tests, earlier, kept), gone)
    after = definitions(merged) or {}
    changed = [name for name in kept if _whole(before, name) != _whole(after, name)]
    problems = tuple(
        Problem(
            "/tests",
            f"{name} is not what it was in the earlier draft. Tests stay as they are; where one is "
            f"wrong, name it in `why` and say what is wrong with it",
        )
        for name in changed
        if name not in free and not is_named(name, why)
    )
    return problems or merged


def is_named(name: str, why: str) -> bool:
    """Whether a text speaks of what has that name."""
    return re.search(rf"\b{re.escape(name)}\b", why) is not None


def without_dropped(tests: str, why: str) -> str:
    """The tests but for those of which `why` says `drop NAME`."""
    names = test_names(tests)
    kept = [name for name in names if not _dropped(name, why)]
    return tests if len(kept) == len(names) else inherit("", tests, kept)


def about(tests: str, tools: Collection[str]) -> tuple[str, ...]:
    """The tests of a suite that use one of these tools."""
    known = definitions(tests) or {}
    return tuple(name for name in _tests(known) if _uses(known, name, tools))


def altered(tests: str, earlier: str, gone: Collection[str] = ()) -> tuple[str, ...]:
    """The tests of an earlier suite that are not in this one, or not what they were, but for those
    about tools that are `gone`.
    """
    before, after = definitions(earlier) or {}, definitions(tests) or {}
    return tuple(
        name
        for name in _tests(before)
        if not _uses(before, name, gone)
        and (name not in after or _whole(before, name) != _whole(after, name))
    )


def without_imports(tests: str, gone: Collection[str]) -> str:
    """The tests without importing these names from the server."""
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tests
    lines = tests.splitlines()
    for node in reversed(tree.body):
        if not isinstance(node, ast.ImportFrom) or node.module != SERVER:
            continue
        left = [alias for alias in node.names if alias.name not in gone]
        if len(left) < len(node.names):
            names = ", ".join(map(ast.unparse, left))
            line = [f"from {SERVER} import {names}"] if left else []
            lines[node.lineno - 1 : node.end_lineno] = line
    return "\n".join(lines).rstrip() + "\n" if any(lines) else ""


def tests_at(tests: str, lines: Collection[int]) -> tuple[str, ...]:
    """The tests of a suite that these lines are part of."""
    known = definitions(tests) or {}
    return tuple(
        name
        for name in _tests(known)
        if any(known[name].lineno <= at <= (known[name].end_lineno or 0) for at in lines)
    )


def test_names(tests: str) -> tuple[str, ...]:
    """The names of a suite's tests; none of a text that does not parse."""
    return tuple(_tests(definitions(tests) or {}))


def _tests(known: Mapping[str, Defining]) -> Iterator[str]:
    for name, node in known.items():
        if name.startswith("test") and isinstance(node, ast.FunctionDef):
            yield name


def _dropped(name: str, why: str) -> bool:
    return re.search(rf"\bdrop(?:s|ped)?[: ]+{name}\b", why, re.IGNORECASE) is not None


def _uses(known: Mapping[str, Defining], test: str, names: Collection[str]) -> bool:
    return any(name in names for name in _reached(known, test))


def _whole(known: Mapping[str, Defining], test: str) -> tuple[str, ...]:
    """A test with all that it uses, but for imports."""
    return tuple(
        ast.dump(known[name])
        for name in sorted(_reached(known, test))
        if name in known and not isinstance(known[name], ast.Import | ast.ImportFrom)
    )


def _reached(known: Mapping[str, Defining], test: str) -> frozenset[str]:
    reached, pending = {test}, [test]
    while pending:
        node = known.get(pending.pop())
        for name in used(node) if node is not None else ():
            if name not in reached:
                reached.add(name)
                pending.append(name)
    return frozenset(reached)
