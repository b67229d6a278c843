"""The documentation: generated pages and pictures are current, lines and pages short, every page is
in the site, links lead somewhere, and the commands that it shows exist.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from orchestrator.cli.main import toolwright
from scripts.diagrams import DIAGRAMS, render
from scripts.howto import PAGES as HOWTO
from scripts.howto import Step, find_difference, read_page
from scripts.reference import render_commands, render_json_page, render_runtime, render_schemas

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WIDTH = 100
HOWTO_LINES = 80
PAGES = [
    *sorted(DOCS.glob("**/*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "examples").glob("**/*.md")),
]
# Placeholders: what stands in the place of a command's options.
_ELLIPSES = frozenset({"…", "[OPTIONS]", "COMMAND"})
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|^ {4}.*?$|`[^`\n]*`", re.M | re.S)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    ("name", "render_page"),
    [
        ("commands.md", render_commands),
        ("runtime.md", render_runtime),
        ("json.md", render_json_page),
    ],
)
def test_a_page_of_reference_is_as_the_code_says(name: str, render_page: Any) -> None:
    told = (DOCS / name).read_text("utf-8")
    assert told == render_page(), "run `.venv/bin/python scripts/reference.py --write`"


def test_the_schemas_are_those_that_the_page_names_and_no_others() -> None:
    written = {f"json/{path.name}": path.read_text("utf-8") for path in DOCS.glob("json/*")}
    assert written == render_schemas(), "run `.venv/bin/python scripts/reference.py --write`"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_no_line_but_a_tables_is_longer_than_a_terminal_is_wide(page: Path) -> None:
    lines = enumerate(page.read_text("utf-8").splitlines(), 1)
    assert [at for at, line in lines if len(line) > WIDTH and not line.startswith("|")] == []


@pytest.mark.parametrize("page", sorted(HOWTO.glob("*.md")), ids=_name)
def test_a_howto_page_is_short(page: Path) -> None:
    assert len(page.read_text("utf-8").splitlines()) <= HOWTO_LINES


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site: Mapping[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")}
    assert set(_list_pages(site["nav"])) == pages


def test_every_howto_page_is_in_their_overview() -> None:
    listed = _LINK.findall((HOWTO / "index.md").read_text("utf-8"))
    pages = {page.name for page in HOWTO.glob("*.md")} - {"index.md"}
    assert {link for link in listed if "/" not in link} == pages


def test_the_pictures_are_small() -> None:
    pictures = sorted(DOCS.glob("*.png"))
    assert [picture.name for picture in pictures] == ["approvals.png", "home.png"]
    assert [picture.name for picture in pictures if picture.stat().st_size > 150_000] == []


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_as_its_script_draws_it(name: str) -> None:
    drawn = (DOCS / name).read_text("utf-8")
    assert drawn == render(DIAGRAMS[name]), "run `.venv/bin/python scripts/diagrams.py --write`"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_to_a_file_leads_to_it_and_to_its_heading(page: Path) -> None:
    text = _CODE.sub("", page.read_text("utf-8"))
    links = [link for link in _LINK.findall(text) if "://" not in link]
    assert [link for link in links if not _leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    wrong = [(line, each) for line in _list_commands(page) for each in _find_unknown(line)]
    assert wrong == []


def test_an_unknown_command_and_an_unknown_option_are_noticed() -> None:
    assert list(_find_unknown("toolwright mend harbour")) == ["mend"]
    assert list(_find_unknown("toolwright secret give x")) == ["give"]
    assert list(_find_unknown("toolwright call x --fast; toolwright list --all")) == [
        "--fast",
        "--all",
    ]
    assert list(_find_unknown("toolwright add x --allow h -- npx --yes y")) == []


PAGE = """<!-- first: toolwright setup --yes -->
```console
$ toolwright call a.b \\
    x=1
id 0123456789abcdef
$ toolwright approve 0123
```
"""


def test_a_page_is_read_as_commands_with_what_they_print() -> None:
    page = read_page(PAGE)
    assert page.first == ("toolwright setup --yes",)
    assert page.steps == (
        Step("toolwright call a.b x=1", ("id 0123456789abcdef",)),
        Step("toolwright approve 0123", ()),
    )


@pytest.mark.parametrize(
    ("expected", "printed", "differs"),
    [
        (["a", "b"], ["a", "b"], False),
        (["took 3 ms"], ["took 12.5 ms"], False),
        (["call 0123456789abcdef"], ["call fedcba9876543210"], False),
        (["a", "…", "d"], ["a", "b", "c", "d"], False),
        (["a", "…"], ["a", "b"], False),
        (["a longer …"], ["a longer line"], False),
        (["a"], ["a", "b"], True),
        (["a", "d"], ["a", "b", "c", "d"], True),
        (["…", "d"], ["a"], True),
        (["a", "b"], ["a"], True),
        (["passed, 125 checks"], ["passed, 124 checks"], True),
    ],
)
def test_what_is_printed_is_held_against_the_page(
    expected: list[str], printed: list[str], differs: bool
) -> None:
    assert bool(find_difference(expected, printed)) is differs


def _list_pages(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, Mapping):
        for below in entries.values():
            yield from _list_pages(below)
    else:
        for entry in entries:
            yield from _list_pages(entry)


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in _list_anchors(target.read_text("utf-8"))


def _list_anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as mkdocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", _CODE.sub(lambda code: code[0].strip("`"), text), re.M)
    kept = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in kept}


def _list_commands(page: Path) -> Iterator[str]:
    """What a page shows as typed: lines of indented blocks, and those after `$ `."""
    for line in page.read_text("utf-8").replace("\\\n", " ").splitlines():
        if found := re.match(r"(?: {4}|\$ )((?:\w+=\S+ )?toolwright .*)", line):
            yield re.sub(r"\s#.*", "", found[1])


def _find_unknown(line: str) -> Iterator[str]:
    """Words of the commands of a line that are no command and no option."""
    for words in _split_commands(line):
        command: click.Command = toolwright
        context = click.Context(command)
        while isinstance(command, click.Group) and words and words[0][0].isalpha():
            below = command.get_command(context, words[0])
            if below is None:
                if not command.invoke_without_command or command is toolwright:
                    yield words[0]
                break
            command, context = below, click.Context(below, parent=context)
            words = words[1:]
        options = {"-h", "--help"}
        for each in command.get_params(context):
            options |= {*each.opts, *each.secondary_opts}
        given = (word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word))
        yield from (option for option in given if option not in options)


def _split_commands(line: str) -> Iterator[list[str]]:
    """The words after each `toolwright`, up to the end of that command or its `--`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] | None = None
    for word in [*lexer, ";"]:
        if word[0] in ";|&" or word == "--":
            if words is not None:
                yield [each for each in words if each not in _ELLIPSES]
            words = None
        elif words is not None:
            words.append(word)
        elif word == "toolwright":
            words = []
