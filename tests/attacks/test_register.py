"""The register of attacks agrees with the tests that it names and with the documentation."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.attacks.register import LINES, Attack, read_register
from tests.attacks.test_gate import samples

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
ENFORCEMENT = ROOT / "docs" / "enforcement.md"
ATTACKS = read_register()
LEAST = 128


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@cache
def texts(file: str) -> frozenset[str]:
    """Every text of a test file: its parameters are among them."""
    tree = ast.parse((TESTS / file).read_text())
    words = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return frozenset(word for word in words if isinstance(word, str))


def missing(node: str) -> str:
    """Why a node id names no test; "" where it names one."""
    match = re.fullmatch(r"(?P<file>[\w/]+\.py)::(?P<name>\w+)(?:\[(?P<parameter>.+)\])?", node)
    if match is None:
        return f"{node} is no node id"
    if match["name"] not in functions(match["file"]):
        return f"{match['file']} has no test {match['name']}"
    known = texts(match["file"]) | {
        rule for kind in ("fails", "passes") for rule, _ in samples(kind)
    }
    if match["parameter"] and match["parameter"] not in known:
        return f"{match['file']} has no parameter {match['parameter']!r}"
    return ""


@pytest.mark.parametrize("line", LINES)
def test_every_attack_of_a_line_and_its_twin_are_tests(line: str) -> None:
    attacks = [attack for attack in ATTACKS if attack.line == line]
    assert attacks
    told = [missing(node) for attack in attacks for node in (attack.test, attack.twin)]
    assert [each for each in told if each] == []


def test_no_attack_is_listed_twice_and_each_says_how_it_is_seen() -> None:
    assert [
        name for name, times in Counter(attack.id for attack in ATTACKS).items() if times > 1
    ] == []
    per_line = Counter((attack.line, attack.test) for attack in ATTACKS)
    assert [node for node, times in per_line.items() if times > 1] == []
    assert all(attack.channel and attack.oracle and attack.line in LINES for attack in ATTACKS)
    assert len(ATTACKS) >= LEAST


def test_an_attack_is_not_its_own_twin() -> None:
    own = [attack.id for attack in ATTACKS if attack.test == attack.twin]
    assert own == []


def test_a_node_that_is_none_is_seen() -> None:
    own = "attacks/test_register.py"
    assert missing(f"{own}::test_a_node_that_is_none_is_seen") == ""
    for node in (f"{own}::test_x", f"{own}::missing[x-y-z]", own, "nowhere"):
        assert missing(node)


def test_the_documentation_says_for_every_line_where_it_is_enforced_and_what_shows_it() -> None:
    rows = re.findall(
        r"^\| ([a-z -]+) \| (`.+) \| (`tests.+) \|$", ENFORCEMENT.read_text(), re.MULTILINE
    )
    told = {line: (where, shown) for line, where, shown in rows if line in LINES}
    assert list(told) == list(LINES)
    for line, (where, shown) in told.items():
        files = set(re.findall(r"`tests/([\w/]+\.py)`", shown))
        assert files == {attack.test.partition("::")[0] for attack in attacks_of(line)}, line
        for path in re.findall(r"`([^`]+)`", where):
            assert (ROOT / path).exists(), path


def attacks_of(line: str) -> list[Attack]:
    return [attack for attack in ATTACKS if attack.line == line]
