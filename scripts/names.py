"""Count how the project names things: `python scripts/names.py [--list]`.

Prints, for the four folders, the share of functions whose name is one word or begins with a
participle, class names that stand in several modules, folders with many modules, and module
docstrings that open with a question word. `--list` shows them one by one. It only counts: nothing
fails by it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("forge", "orchestrator", "registry", "sandbox")
QUESTION = re.compile(r"(What|Who|How|Whether)\b")
PARTICIPLE = re.compile(
    r"(told|given|came|made|ran|shown|found|kept|taken|asked|said|sent|written|seen|held|heard|known"
    r"|wanted|meant|drawn|left|put)(_|$)"
)


@dataclass
class Names:
    """Everything that was found, as `path:line name` by what is odd about it."""

    functions: int = 0
    one_word: list[str] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    classes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    modules: Counter[str] = field(default_factory=Counter)


def read_names() -> Names:
    names = Names()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            read_module(path, names)
    return names


def read_module(path: Path, names: Names) -> None:
    tree, place = ast.parse(path.read_text()), path.relative_to(ROOT).as_posix()
    names.modules[str(Path(place).parent)] += path.name != "__init__.py"
    if QUESTION.match(ast.get_docstring(tree) or ""):
        names.questions.append(place)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            names.classes[node.name].add(place)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            read_function(node, place, names)


def read_function(node: ast.FunctionDef | ast.AsyncFunctionDef, place: str, names: Names) -> None:
    if node.name.startswith("__"):
        return
    bare, names.functions = node.name.strip("_"), names.functions + 1
    if "_" not in bare:
        names.one_word.append(f"{place}:{node.lineno} {node.name}")
    if PARTICIPLE.match(bare):
        names.participles.append(f"{place}:{node.lineno} {node.name}")


def render_report(names: Names, everything: bool) -> Iterator[str]:
    several = {name: places for name, places in names.classes.items() if len(places) > 1}
    yield f"{names.functions} functions"
    for title, found in (("of one word", names.one_word), ("by participle", names.participles)):
        yield f"  {title}: {len(found)} ({len(found) / names.functions:.0%})"
        if everything:
            yield from (f"    {line}" for line in found)
    yield f"class names in several modules: {len(several)}"
    yield from (
        f"  {name}: {', '.join(sorted(places))}" for name, places in sorted(several.items())
    )
    yield f"module docstrings that open with a question word: {len(names.questions)}"
    yield from (f"  {place}" for place in names.questions)
    yield "folders of more than 20 modules:"
    yield from (f"  {name}: {size}" for name, size in names.modules.most_common() if size > 20)


if __name__ == "__main__":
    print("\n".join(render_report(read_names(), "--list" in sys.argv)))
