"""Write the pages of reference that are made of the code: docs/commands.md from the commands' own
`--help`, docs/runtime.md from the docstrings of the runtime in `images/base/runtime`, docs/json.md
and the schemas in docs/json from scripts/json_schemas.py.

    python scripts/reference.py          # says which page is not current
    python scripts/reference.py --write
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from orchestrator.cli.main import GROUPS, toolwright
from scripts.json_schemas import COMMANDS, build_schema, name_file

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RUNTIME = ROOT / "images/base/runtime"
WIDTH = 98
COMMANDS_HEAD = """\
# Commands

This page is made from the commands' own `--help` by `scripts/reference.py`.
[Tasks](tasks.md) has the same commands by what you want to do.

`--json` prints JSON for scripts: [JSON output](json.md). Exit codes: 0 done, 1 failed (of
`replay`: a difference), 2 wrong usage, 3 waits for a person, 4 cannot be replayed.
"""
JSON_HEAD = """\
# JSON output

This page is made by `scripts/reference.py`.

Every command that prints an answer takes `--json`. It prints one JSON value on standard output;
whatever else is told (progress, questions, errors) goes to standard error. Each command has a
schema (JSON Schema, draft 2020-12), and tests hold its real output against it. What a schema
requires stays, under its name and of its type; more properties may be added. What no schema names
may change.

A command that fails prints an error in words on standard error and nothing on standard output,
unless its schema says otherwise. [Commands](commands.md) lists the exit codes. Times are seconds
since 1970, durations milliseconds unless the name says `seconds`. Results of tools are exactly what
the API answered; Toolwright's own figures are rounded.

`serve` and `run` speak MCP, `completion` prints a script and `demo` shows a story: they have none.

| command | prints | schema |
|---|---|---|
"""
RUNTIME_HEAD = """\
# What code of a server may use

This page is made from the docstrings of `images/base/runtime` by `scripts/reference.py`.
Everything here is imported from `toolwright`. A server reaches nothing else outside its container.
What a tool asks for and nobody granted raises `RequestFailed`, and the message names the grant.
[Between host and container](runtime-protocol.md) describes the messages below this.
"""
RUNTIME_PARTS: Mapping[str, tuple[str, ...]] = {
    "": ("tool", "progress"),
    "http": ("request",),
    "servers": ("call",),
    "network": ("dns", "tls_peer", "tcp"),
    "files": ("read", "read_text", "entries", "write"),
    "environment": ("get",),
    "content": ("text", "image", "audio", "document", "mixed"),
}
ERRORS = (
    *("ToolError", "Refused", "ArgumentInvalid", "Upstream", "HttpError", "MalformedAnswer"),
    "RequestFailed",
)


def render_pages() -> Mapping[str, str]:
    """The pages by their file name, in Markdown."""
    pages = {
        "commands.md": render_commands(),
        "runtime.md": render_runtime(),
        "json.md": render_json_page(),
    }
    return pages | render_schemas()


def render_json_page() -> str:
    """A row for each command that prints JSON."""
    rows = (
        f"| `{build_schema(command)['title'].removesuffix(' --json')}` | {says} "
        f"| [schema](json/{name_file(command)}) |\n"
        for command, (says, _) in COMMANDS.items()
    )
    return JSON_HEAD + "".join(rows)


def render_schemas() -> Mapping[str, str]:
    """The schemas by their file name."""
    return {
        f"json/{name_file(command)}": f"{json.dumps(build_schema(command), indent=1)}\n"
        for command in COMMANDS
    }


def render_commands() -> str:
    """A section for each group of commands, and a part of it for each command."""
    context = click.Context(toolwright, info_name="toolwright")
    parts = [COMMANDS_HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            command = toolwright.get_command(context, name)
            assert command is not None
            parts.extend(_render_command(command, f"toolwright {name}", context))
    return "\n".join(parts)


def _render_command(command: click.Command, path: str, parent: click.Context) -> Iterator[str]:
    """A command and those below it."""
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    yield f"{'#' * (path.count(' ') + 2)} {path}\n"
    yield "\n\n".join(_render_help(command.help or "")) + "\n"
    yield "    " + " ".join((path, *command.collect_usage_pieces(context))) + "\n"
    rows = [
        (record[0], " ".join(record[1].split()))
        for each in command.get_params(context)
        if isinstance(each, click.Option) and (record := each.get_help_record(context))
    ]
    lines = [_wrap(f"- `{names}`: {text}", "  ") for names, text in rows if "--help" not in names]
    if lines:
        yield "\n".join(lines) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _render_command(below, f"{path} {name}", context)


def _render_help(text: str) -> Iterator[str]:
    """The paragraphs of a help text; one that begins with \\b is a block, as click prints it."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield textwrap.indent(paragraph.removeprefix("\b").strip("\n"), "    ")
        else:
            yield _wrap(" ".join(paragraph.split()))


def render_runtime() -> str:
    """A section for each module that servers use, and one for what is raised."""
    sys.path.insert(0, str(RUNTIME))
    try:
        import toolwright as runtime
        from toolwright import answers, environment, errors, files, servers
    finally:
        sys.path.remove(str(RUNTIME))
    modules = {"files": files, "environment": environment}
    parts = [RUNTIME_HEAD]
    for name, functions in RUNTIME_PARTS.items():
        module = modules.get(name) or (getattr(runtime, name) if name else runtime)
        parts.append(f"## {f'toolwright.{name}' if name else 'toolwright'}\n")
        if name:
            parts.append(_read_docstring(module))
        for function in functions:
            parts.extend(_render_member(module, name, function))
    parts.append("## What comes back\n")
    parts.extend(_render_class(answers.Answer, "toolwright.Answer"))
    parts.append("## What is raised\n")
    parts.append("An error that the code does not catch is the tool's failure.\n")
    for each in ERRORS:
        parts.extend(_render_class(getattr(errors, each), f"toolwright.errors.{each}"))
    parts.extend(_render_class(servers.CallFailed, "toolwright.servers.CallFailed"))
    return "\n".join(parts)


def _render_member(module: ModuleType, prefix: str, name: str) -> Iterator[str]:
    function = getattr(module, name)
    yield f"### {f'{prefix}.' if prefix else ''}{name}\n"
    yield (
        textwrap.indent(_render_signature(function, f"{prefix}.{name}".lstrip(".")), "    ") + "\n"
    )
    if inspect.getdoc(function):
        yield _read_docstring(function)


def _render_signature(function: Any, name: str) -> str:
    """The call as one line, or with a parameter a line where that is too long."""
    signature = inspect.signature(function)
    given = [_render_parameter(each) for each in signature.parameters.values()]
    kinds = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        given.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    end = f") -> {signature.return_annotation}"
    whole = f"{name}({', '.join(given)}{end}"
    if len(whole) < WIDTH - 4:
        return whole
    return "\n".join([f"{name}(", *(f"    {each}," for each in given), end])


def _render_parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
    stated = f"{star}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return stated
    plain = isinstance(parameter.default, str | int | None)
    return f"{stated} = {parameter.default!r}" if plain else f"{stated} = UNSET"


def _render_class(kind: type, name: str) -> Iterator[str]:
    yield f"### {name}\n"
    yield _read_docstring(kind)


def _read_docstring(source: object) -> str:
    """The docstring's paragraphs, wrapped."""
    paragraphs = (inspect.getdoc(source) or "").split("\n\n")
    return "\n\n".join(_wrap(" ".join(each.split())) for each in paragraphs) + "\n"


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _read_page(name: str) -> str:
    path = DOCS / name
    return path.read_text("utf-8") if path.exists() else ""


def main() -> None:
    pages = render_pages()
    if "--write" in sys.argv[1:]:
        for name, text in pages.items():
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_text(text, "utf-8")
        return
    stale = [name for name, text in pages.items() if _read_page(name) != text]
    if stale:
        sys.exit(f"not current: {', '.join(stale)}; run scripts/reference.py --write")


if __name__ == "__main__":
    main()
