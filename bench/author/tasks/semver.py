"""Versions in order (Semantic Versioning 2.0.0)."""

from __future__ import annotations

import re
from functools import cmp_to_key

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `compare_versions(left, right)` by Semantic Versioning 2.0.0 (https://semver.org) that
gives {"order": -1, 0 or 1}: -1 where `left` comes first. Build metadata is ignored. And a tool
`sort_versions(versions)` that gives {"versions": [...]}, lowest first, equal ones in the order
given; the list has at most 1000. What is no valid semantic version (1.0, 01.2.3, 1.2.3-01,
v1.2.3, 1.2.3-) is refused."""
_PART = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_FORM = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def _parsed(text: str) -> tuple[tuple[int, ...], list[str]]:
    found = _FORM.fullmatch(text)
    if not found:
        raise Refused
    return tuple(map(int, found.groups()[:3])), found[4].split(".") if found[4] else []


def _order(left: str, right: str) -> int:
    (one, before), (two, after) = _parsed(left), _parsed(right)
    if one != two:
        return -1 if one < two else 1
    if not before or not after:
        return bool(after) - bool(before) if bool(before) != bool(after) else 0
    for a, b in zip(before, after, strict=False):
        if a != b:
            if a.isdigit() and b.isdigit():
                return -1 if int(a) < int(b) else 1
            if a.isdigit() != b.isdigit():
                return -1 if a.isdigit() else 1
            return -1 if a < b else 1
    return (len(before) > len(after)) - (len(before) < len(after))


def compare_versions(left: str, right: str) -> dict[str, int]:
    return {"order": _order(left, right)}


def sort_versions(versions: list[str]) -> dict[str, list[str]]:
    for version in versions:
        _parsed(version)
    return {"versions": sorted(versions, key=cmp_to_key(_order))}


_PAIRS = (
    ("1.0.0", "2.0.0"),
    ("2.1.0", "2.0.9"),
    ("1.2.3", "1.2.3"),
    ("1.10.0", "1.9.0"),
    ("1.0.0-alpha", "1.0.0"),
    ("1.0.0", "1.0.0-rc.1"),
    ("1.0.0-alpha", "1.0.0-alpha.1"),
    ("1.0.0-alpha.1", "1.0.0-alpha.beta"),
    ("1.0.0-beta.2", "1.0.0-beta.11"),
    ("1.0.0-rc.1", "1.0.0-beta.11"),
    ("1.0.0+a", "1.0.0+b"),
    ("1.0.0-1", "1.0.0-a"),
    ("1.0.0-a-b", "1.0.0-a.b"),
    ("99999999999999999999.0.0", "99999999999999999998.9.9"),
    ("1.0", "1.0.0"),
    ("01.2.3", "1.2.3"),
    ("1.2.3-01", "1.2.3"),
    ("v1.2.3", "1.2.3"),
    ("1.2.3-", "1.2.3"),
    ("1.2.3", ""),
    ("1.2.3+", "1.2.3"),
    ("1.0.0-A", "1.0.0-a"),
)

TASK = Task(
    "semver",
    _TEXT,
    checks(
        {"compare_versions": compare_versions, "sort_versions": sort_versions},
        [
            *(("compare_versions", {"left": a, "right": b}) for a, b in _PAIRS),
            ("sort_versions", {"versions": []}),
            ("sort_versions", {"versions": ["1.10.0", "1.9.0", "1.0.0-rc.1", "1.0.0"]}),
            ("sort_versions", {"versions": ["1.0.0+b", "1.0.0+a", "0.1.0"]}),
            ("sort_versions", {"versions": ["1.0.0", "one"]}),
        ],
    ),
)
