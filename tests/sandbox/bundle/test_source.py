"""Questions about the syntax tree of a `server.py`."""

from __future__ import annotations

import ast

from sandbox.bundle.source import ParsedSource, find_local_uses, parse_source

CODE = """
import json

def first(json):
    return json.a

class Second:
    type = 1
    def third(self):
        type = self.b
        return type
"""


def parsed() -> ParsedSource:
    source = parse_source(CODE)
    assert isinstance(source, ParsedSource)
    return source


def test_nodes_of_several_types_are_found_in_the_order_of_the_tree() -> None:
    source = parsed()
    wanted = (ast.Name, ast.Attribute, ast.FunctionDef)
    assert list(source.find_nodes(*wanted)) == [n for n in source.nodes if isinstance(n, wanted)]
    assert list(source.find_nodes(ast.Await)) == []


def test_names_that_a_function_binds_are_its_own_and_those_of_a_class_body_are_not() -> None:
    source = parsed()
    names = {"json", "type"}
    own = find_local_uses(source, names)
    lines = [n.lineno for n in source.find_nodes(ast.Name) if n.id in names and id(n) in own]
    assert sorted(lines) == [5, 10, 11]
    assert find_local_uses(source, {"socket"}) == set()
