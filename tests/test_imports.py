"""Which folder may import which, and where a heavy package may be imported at all."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("forge", "orchestrator", "registry", "sandbox", "images")
MAY_IMPORT = {
    "sandbox": {"sandbox"},
    "registry": {"registry", "sandbox"},
    "forge": {"forge", "sandbox"},
    "orchestrator": {"orchestrator", "forge", "registry", "sandbox"},
}
ONLY_IN = {
    "docker": ("sandbox/cage.py", "sandbox/engines/docker/*.py"),
    "bandit": ("sandbox/stages/static/*.py",),
    "apprise": ("orchestrator/control/notify/apprise.py",),
    "alembic": ("registry/database/migrate.py", "registry/database/migrations/*"),
    "langgraph": ("orchestrator/tasks/task_graph.py",),
    "wasmtime": ("sandbox/engines/wasm/*.py",),
    "openai": ("forge/authors/endpoint.py",),
    "graphql": ("forge/readers/graphql/sdl.py",),
    "jsonpath": ("orchestrator/results/jsonpaths.py",),
    "jinja2": ("orchestrator/control/rendering.py",),
    "markupsafe": ("orchestrator/control/page.py", "orchestrator/control/rendering.py"),
    "itsdangerous": ("orchestrator/control/logins.py", "orchestrator/control/notify/links.py"),
}
"""Packages that cost much to import: the files that may, and that others load when they need."""

LOOKING = ("approvals", "find", "jobs", "logs", "show", "versions")
"""Modules of commands that only show what is stored."""
UNSHOWN = (
    "bandit",
    "docker",
    "graphql",
    "jsonschema",
    "langgraph",
    "mcp",
    "openai",
    "structlog",
    "wasmtime",
)
"""What they start without: people run them by hand, in loops and in prompts."""

SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    if folder != "images"
    for path in (ROOT / folder).rglob("*.py")
)


def imports(source: str) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of every import, wherever it stands in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def layer_breaches(path: str, source: str) -> list[str]:
    allowed = MAY_IMPORT[path.partition("/")[0]]
    return [
        f"{path}:{line} imports {name}"
        for line, name in imports(source)
        if name.startswith(".") or (name.partition(".")[0] in {*FOLDERS, "tests"} - allowed)
    ]


def hidden_imports(path: str, source: str) -> list[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return [
        f"{path}:{inner.lineno} imports inside {getattr(outer, 'name', 'a lambda')}"
        for outer in ast.walk(ast.parse(source))
        if isinstance(outer, functions)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]


def heavy_imports(path: str, source: str) -> list[str]:
    return [
        f"{path}:{line} imports {name}, which only {', '.join(ONLY_IN[package])} may"
        for line, name in imports(source)
        if (package := name.partition(".")[0]) in ONLY_IN
        and not any(fnmatch(path, pattern) for pattern in ONLY_IN[package])
    ]


@pytest.mark.parametrize("folder", sorted({path.partition("/")[0] for path in SOURCES}))
def test_files_keep_to_their_layers(folder: str) -> None:
    found = []
    for path in (path for path in SOURCES if path.partition("/")[0] == folder):
        source = (ROOT / path).read_text()
        found += layer_breaches(path, source)
        found += hidden_imports(path, source)
        found += heavy_imports(path, source)
    assert found == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sandbox/x.py", "import forge.compiler.design"),
        ("sandbox/x.py", "def f():\n    from registry import store"),
        ("registry/x.py", "from forge import sources"),
        ("forge/x.py", "import registry.store as s"),
        ("forge/x.py", "from . import sources"),
        ("orchestrator/x.py", "import images.base"),
        ("orchestrator/x.py", "from tests.world import site"),
    ],
)
def test_a_breach_of_the_layers_is_seen(path: str, source: str) -> None:
    assert len(layer_breaches(path, source)) == 1


def test_an_import_inside_a_function_is_seen() -> None:
    assert hidden_imports("forge/x.py", "class A:\n    async def f(self):\n        import json\n")


def test_a_heavy_import_is_seen_outside_its_files_and_allowed_in_them() -> None:
    assert heavy_imports(
        "orchestrator/frontends/server.py", "from langgraph.graph import StateGraph"
    )
    assert heavy_imports("forge/compiler/render.py", "if True:\n    import openai")
    assert not heavy_imports("sandbox/stages/static/rules.py", "import bandit")
    assert not heavy_imports("sandbox/x.py", "import dockerfile_parse")


def list_loaded(modules: str) -> list[str]:
    """All that is loaded once those modules are, by name with commas between."""
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return loaded.stdout.split()


def test_commands_that_only_look_load_nothing_that_runs_or_forges() -> None:
    commands = ", ".join(f"orchestrator.cli.commands.{name}" for name in LOOKING)
    assert not set(UNSHOWN) & set(list_loaded(commands))


def test_the_command_that_calls_loads_nothing_that_forges() -> None:
    names = list_loaded("orchestrator.cli.commands.call")
    forging = ("forge.compiler", "forge.readers", "sandbox.stages", "orchestrator.forging", "mcp")
    assert [name for name in names if name.startswith(forging)] == []


def test_a_process_that_serves_loads_what_makes_servers_only_for_a_job() -> None:
    names = list_loaded(
        "orchestrator.frontends.single_server, orchestrator.cli.commands.serve_process"
    )
    making = ("forge.compiler", "forge.readers", "sandbox.stages", "orchestrator.job_parts", "mcp")
    assert [name for name in names if name.startswith(making)] == []


@pytest.mark.parametrize("command", ["serve", "run"])
def test_what_answers_a_client_that_connects_is_loaded_without_what_calls(command: str) -> None:
    names = {name.partition(".")[0] for name in list_loaded(f"orchestrator.cli.commands.{command}")}
    assert not names & {
        "asyncio",
        "docker",
        "httpx",
        "jsonschema",
        "rich",
        "sqlalchemy",
        "wasmtime",
    }


def test_a_command_that_the_resident_process_answers_loads_only_the_standard_library() -> None:
    names = set(list_loaded("orchestrator.cli.entry"))
    assert not names & {"asyncio", "click", "dataclasses", "pathlib", "rich", "sqlite3"}
    assert {name for name in names if name.partition(".")[0] in FOLDERS} == {
        "orchestrator",
        *("orchestrator.cli", "orchestrator.cli.entry"),
        *("orchestrator.cli.progress", "orchestrator.cli.progress.working"),
        *("orchestrator.cli.resident", "orchestrator.cli.resident.client"),
        "orchestrator.cli.resident.protocol",
    }


def test_the_import_contracts_hold() -> None:
    """The layers of pyproject.toml, and which modules of a sub-package others may import."""
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_architecture_page_shows_the_contracts() -> None:
    """`python scripts/arrows.py` writes it anew."""
    shown = subprocess.run([sys.executable, "scripts/arrows.py", "--check"], cwd=ROOT, check=False)
    assert shown.returncode == 0
