"""Test suites carried from one draft to the next: no test is lost or weakened without a stated
reason.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterator, Mapping

from forge.drafts.inherit import Defining, find_definitions, find_used_names, inherit_code
from sandbox.schemas.validator import SchemaViolation

MAX_CHANGED_LINES, MAX_CHANGED_COLUMNS = 16, 160

SERVER = "server"


def carry_tests(
    tests: str, earlier: str, why: str, gone: Collection[str] = (), free: Collection[str] = ()
) -> str | tuple[SchemaViolation, ...]:
    """Return the tests of a draft with those of an earlier one that it lacks, or what is wrong.

    An earlier test has to stay unchanged unless `why` names it or it is `free` to change; it is
    removed only where `why` says `drop NAME`, or where it uses tools that are `gone`.
    """
    before = find_definitions(earlier)
    if not before or find_definitions(tests) is None:
        return tests
    leaving = {
        name
        for name in _iterate_tests(before)
        if _is_dropped(name, why) or _uses_names(before, name, gone)
    }
    kept = [name for name in _iterate_tests(before) if name not in leaving]
    merged = remove_imports(inherit_code(tests, earlier, kept), gone)
    after = find_definitions(merged) or {}
    changed = [name for name in kept if _dump_test(before, name) != _dump_test(after, name)]
    problems = tuple(
        SchemaViolation(
            "/tests",
            f"{name} is not what it was in the earlier draft. Tests stay as they are; where one is "
            f"wrong, name it in `why` and say what is wrong with it",
        )
        for name in changed
        if name not in free and not is_test_named(name, why)
    )
    return problems or merged


def is_test_named(name: str, why: str) -> bool:
    """Whether a text mentions a name as a whole word."""
    return re.search(rf"\b{re.escape(name)}\b", why) is not None


def remove_dropped_tests(tests: str, why: str) -> str:
    """Return the tests except those for which `why` says `drop NAME`."""
    names = list_tests(tests)
    kept = [name for name in names if not _is_dropped(name, why)]
    return tests if len(kept) == len(names) else inherit_code("", tests, kept)


def find_tests_about(tests: str, tools: Collection[str]) -> tuple[str, ...]:
    """Return the names of the tests that use one of these tools, directly or through helpers."""
    known = find_definitions(tests) or {}
    return tuple(name for name in _iterate_tests(known) if _uses_names(known, name, tools))


def find_altered_tests(tests: str, earlier: str, gone: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of an earlier suite's tests that this one lacks or changes, except those
    about tools that are `gone`.
    """
    before, after = find_definitions(earlier) or {}, find_definitions(tests) or {}
    return tuple(
        name
        for name in _iterate_tests(before)
        if not _uses_names(before, name, gone)
        and (name not in after or _dump_test(before, name) != _dump_test(after, name))
    )


def list_test_changes(tests: str, earlier: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the lines of these tests that went (`-`) and came (`+`), at most MAX_CHANGED_LINES."""
    before, after = find_definitions(earlier) or {}, find_definitions(tests) or {}
    lines: list[str] = []
    for name in names:
        old, new = (
            ast.unparse(known[name]).splitlines() if name in known else []
            for known in (before, after)
        )
        lines += [line for line in difflib.ndiff(old, new) if line[0] in "-+"]
    return tuple(line[:MAX_CHANGED_COLUMNS] for line in lines[:MAX_CHANGED_LINES])


def remove_imports(tests: str, gone: Collection[str]) -> str:
    """Remove these names from the imports of the server."""
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


def find_tests_at(tests: str, lines: Collection[int]) -> tuple[str, ...]:
    """Return the names of the tests that contain one of these line numbers."""
    known = find_definitions(tests) or {}
    return tuple(
        name
        for name in _iterate_tests(known)
        if any(known[name].lineno <= at <= (known[name].end_lineno or 0) for at in lines)
    )


def list_tests(tests: str) -> tuple[str, ...]:
    """Return the names of a suite's tests; none where it does not parse."""
    return tuple(_iterate_tests(find_definitions(tests) or {}))


def _iterate_tests(known: Mapping[str, Defining]) -> Iterator[str]:
    for name, node in known.items():
        if name.startswith("test") and isinstance(node, ast.FunctionDef):
            yield name


def _is_dropped(name: str, why: str) -> bool:
    return re.search(rf"\bdrop(?:s|ped)?[: ]+{name}\b", why, re.IGNORECASE) is not None


def _uses_names(known: Mapping[str, Defining], test: str, names: Collection[str]) -> bool:
    return any(name in names for name in _find_reached_names(known, test))


def _dump_test(known: Mapping[str, Defining], test: str) -> tuple[str, ...]:
    """Dump a test and all that it uses, except imports, for comparison."""
    return tuple(
        ast.dump(known[name])
        for name in sorted(_find_reached_names(known, test))
        if name in known and not isinstance(known[name], ast.Import | ast.ImportFrom)
    )


def _find_reached_names(known: Mapping[str, Defining], test: str) -> frozenset[str]:
    reached, pending = {test}, [test]
    while pending:
        node = known.get(pending.pop())
        for name in find_used_names(node) if node is not None else ():
            if name not in reached:
                reached.add(name)
                pending.append(name)
    return frozenset(reached)
