"""The static gate, rule by rule: `tests/fixtures/gate` has what each finds and what it lets be.

A sample is added to a server that is admitted as it is. Samples are apart by a line of `---`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.bundle.model import ToolDefinition
from sandbox.bundle.modules import MODULES, RUNTIME, list_public_names
from sandbox.cage import admit
from sandbox.stages.static.code import RULES

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "gate"
RUNTIME_SOURCE = Path(__file__).parents[2] / "images" / "base" / "runtime" / "toolwright"
NUMBER = {"type": "number"}
ADD = ToolDefinition(
    "add",
    "Adds.",
    {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}},
    {"type": "object"},
    "read",
)
SERVER = """from toolwright import UNSET, http, tool

@tool
def add(a=0, b=0):
    return {"sum": a + b}


"""


def samples(kind: str) -> list[tuple[str, str]]:
    return [
        (path.name.removesuffix(f".{kind}.txt"), sample)
        for path in sorted(EXAMPLES.glob(f"*.{kind}.txt"))
        for sample in path.read_text().split("---\n")
    ]


@pytest.mark.parametrize(("rule", "sample"), samples("fails"))
def test_code_that_reaches_further_than_it_may_is_refused(rule: str, sample: str) -> None:
    assert rule in {finding.rule for finding in admit(SERVER + sample, (), (ADD,))}


@pytest.mark.parametrize(("rule", "sample"), samples("passes"))
def test_code_of_the_allowed_language_is_admitted(rule: str, sample: str) -> None:
    assert admit(SERVER + sample, (), (ADD,)) == ()


def test_every_rule_has_an_example_of_either_kind() -> None:
    rules = {rule.__name__.replace("_", "-") for rule in RULES}
    assert rules <= {rule for rule, _ in samples("fails")}
    assert {rule for rule, _ in samples("fails")} == {rule for rule, _ in samples("passes")}


def test_what_a_bundle_declares_may_be_used_and_no_more() -> None:
    declared = ("network:api.test", "env:TOKEN", "fs:/data:ro")
    code = """from toolwright import environment, files


def f():
    http.request("GET", "https://api.test/{id}")
    return environment.get("TOKEN"), files.read("/data/x")
"""
    assert admit(SERVER + code, declared) == ()
    for less in (declared[1:], declared[:1], declared[:2], ("network:api.test:80", *declared[1:])):
        found = admit(SERVER + code, less)
        assert {f.rule for f in found} == {"undeclared-use"}
        if less[0] == declared[0]:
            assert any('declare it in the tool: "permissions": ["' in f.reason for f in found)


def test_what_code_may_use_of_the_runtime_is_there() -> None:
    for module, names in RUNTIME.items():
        path = RUNTIME_SOURCE.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = path.read_text()
        submodules = {file.stem for file in RUNTIME_SOURCE.glob("*.py")}
        for name in names:
            assert (
                f"def {name}(" in text
                or f"class {name}" in text
                or name in submodules | set(text.replace(",", " ").split())
            ), (module, name)


def test_no_module_lends_another_that_servers_may_not_import() -> None:
    for module in MODULES:
        assert not list_public_names(module) & {
            "os",
            "sys",
            "open",
            "builtins",
            "eval",
            "subprocess",
        }
    assert list_public_names("os") == frozenset()


def test_a_large_hostile_source_is_judged_in_linear_time() -> None:
    many = "def f(x):\n    return [" + ", ".join(["getattr(x, 'a')"] * 3_000) + "]\n"
    assert admit(SERVER + many, (), (ADD,)) == ()
