"""`toolwright call`: call one tool of a registered server."""

from __future__ import annotations

import base64
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from orchestrator.approvals.accounts import choose_account
from orchestrator.approvals.text import escape_line
from orchestrator.calling import Caller, open_caller
from orchestrator.calls import Call, Done, Pending, Reply, split_tool_name
from orchestrator.cli.answers import print_answer, print_failure
from orchestrator.cli.identifiers import (
    ArgumentWord,
    StoredName,
    is_tool_missing,
    load_input_schema,
)
from orchestrator.cli.progress.working import WorkingLine, open_shown
from orchestrator.cli.terminal import (
    FAILED,
    WAITING,
    engine_option,
    json_option,
    out,
    parse_arguments,
    print_json,
    print_note,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.cli.tools.argument_hint import render_arguments, render_example_call
from orchestrator.cli.tools.argument_words import ANY, is_word, list_keys, read_words
from orchestrator.errors import OrchestratorError, UnknownTool
from orchestrator.settings import Settings, load_settings
from orchestrator.views.replies import build_reply_result
from sandbox.session.interface import Outcome
from sandbox.wire.content import get_media_data, join_texts

TERMINAL = ("called at the terminal", "terminal")
PAGE = ("called on the control page", "page")
"""The reason and the session of a call, by where a person made it. The page calls by this command.
"""
MAX_ARGUMENTS = 16 << 20
"""Characters read from standard input."""
MadeCall = tuple[Reply, list[str]]
"""What came of a call, and where the tool did not take its arguments what it takes."""


class CallCommand(click.Command):
    """A command whose mistaken option, where it is an argument of the tool, is told as a word."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        typed = list(args)
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            tool = next((each for each in typed if split_tool_name(each)), "")
            name, equals, value = error.option_name.lstrip("-").partition("=")
            keys = list_keys(load_input_schema(tool) or {})
            key = next((k for k in (name, name.replace("-", "_")) if k in keys), "")
            if not key:
                raise
            place = next(n for n, each in enumerate(typed) if each.startswith(error.option_name))
            rest = typed[place].partition("=")[2] or "".join(typed[place + 1 : place + 2])
            word = shlex.join(["toolwright", "call", tool, f"{key}={value if equals else rest}"])
            raise click.UsageError(
                f"There is no option {error.option_name}; {key} is an argument of {tool}: `{word}`"
            ) from error


@click.command("call", cls=CallCommand)
@click.argument("tool", type=StoredName("tool"))
@click.argument("arguments", nargs=-1, type=ArgumentWord())
@click.option("--task", default="", help="What it is for; kept in the audit log.")
@click.option("--account", help="Go out with this account (`toolwright accounts SERVER`).")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the answer's image, recording or document to this file.",
)
@click.option("--from-page", is_flag=True, hidden=True)
@json_option
@engine_option
@click.pass_obj
@report_errors
def call_command(
    make_call: Callable[[Call], MadeCall] | None,
    tool: str,
    arguments: tuple[str, ...],
    task: str,
    account: str | None,
    save: Path | None,
    from_page: bool,
    as_json: bool,
    engine: str | None,
) -> None:
    """Call TOOL (`server.tool`) with ARGUMENTS: words like `name=example.org limit=3`, or one JSON
    object; `-` reads that object from standard input.

    Each value is read as the tool's input schema says. `outer.inner=3` is a value inside an object,
    a repeated key makes a list, `key=@FILE` reads a local file (`key=@@x` is the text @x), and
    `key:=JSON` is JSON whatever the schema says. `toolwright show TOOL` lists the keys.

    A write waits for `toolwright approve`, which has it sent.
    """
    parts = split_tool_name(tool)
    if parts is None:
        raise UnknownTool(tool)
    place = PAGE if from_page else TERMINAL
    call = Call(*parts, _read_arguments(tool, arguments), task, *place)
    with choose_account(call.server, account):
        # The resident process has everything open, and gives what makes calls with it.
        reply, hint = (
            make_call(call)
            if make_call
            else run_coroutine(_call_alone(load_settings(engine=engine), call, as_json))
        )
    if as_json:
        print_json(build_reply_result(reply))
    else:
        _print_reply(reply)
        for line in hint:
            print_note(line)
    if save and isinstance(reply, Done) and reply.outcome.ok:
        save_media(reply.outcome, save)
    if isinstance(reply, Pending):
        raise SystemExit(WAITING)
    if not isinstance(reply, Done) or not reply.outcome.ok:
        raise SystemExit(FAILED)


def _read_arguments(tool: str, given: tuple[str, ...]) -> Mapping[str, Any]:
    """Arguments of a command line, as words or as one JSON object. Raises click.UsageError."""
    if given == ("-",):
        return parse_arguments(sys.stdin.read(MAX_ARGUMENTS))
    if len(given) < 2 and not any(map(is_word, given)):
        return _read_object(tool, given[0]) if given else {}
    schema = load_input_schema(tool) or ANY
    if schema is ANY and is_tool_missing(tool):
        raise UnknownTool(tool)
    return read_words(given, schema, render_example_call(tool, schema))


def _read_object(tool: str, text: str) -> Mapping[str, Any]:
    """One JSON object. Raises click.BadParameter, which says how the one argument of a tool that
    wants one is written.
    """
    try:
        return parse_arguments(text)
    except click.BadParameter as error:
        required = (load_input_schema(tool) or {}).get("required")
        if text.lstrip().startswith(("{", "[")) or not isinstance(required, list):
            raise
        if len(required) != 1:
            raise
        word = escape_line(shlex.join(["toolwright", "call", tool, f"{required[0]}={text}"]))
        raise click.BadParameter(
            f"{text[:60]!r} is no key=value. For {required[0]}: `{word}`"
        ) from error


async def _call_alone(settings: Settings, call: Call, quiet: bool) -> MadeCall:
    async with open_shown(open_caller(settings, "call"), quiet) as caller:
        with WorkingLine(call.name, quiet):
            return await call_tool(caller, call)


async def call_tool(caller: Caller, call: Call) -> MadeCall:
    """Make a call as a person at a terminal makes it."""
    reply = await caller.dispatch.call_tool(call)
    failure = reply.outcome.failure if isinstance(reply, Done) else None
    if failure is None or failure.kind != "arguments":
        return reply, []
    schema = caller.roster.find_tool(call.server, call.tool).input_schema
    return reply, render_arguments(call.name, schema)


def save_media(outcome: Outcome, path: Path) -> None:
    """Write the first bytes that the result holds. Raises OrchestratorError."""
    held = next(filter(None, map(get_media_data, outcome.result["content"])), None)
    if held is None:
        raise OrchestratorError(f"The answer holds no file, so {path} was not written.")
    try:
        path.write_bytes(base64.b64decode(held))
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}.") from error


def _print_reply(reply: Reply) -> None:
    """A person at the terminal gets the answer as a table or lines, a pipe as it came."""
    if isinstance(reply, Done):
        if reply.outcome.failure:
            print_failure(reply.outcome.result, reply.outcome.failure.message)
            if reply.is_drift:
                print_note(f"(Why: {reply.cause})")
        elif out.is_terminal:
            print_answer(reply.outcome.delivered)
        elif reply.outcome.difference is not None:
            # What differs is told beside the answer, so that a pipe gets the answer alone.
            *answer, note = reply.outcome.result["content"]
            print_text(join_texts(answer))
            print_note(str(note["text"]))
        else:
            print_text(reply.outcome.text)
    elif isinstance(reply, Pending):
        print_text(f"{reply.approval.wire.method} {reply.approval.wire.url} waits for a person.")
        if reply.claims:
            print_text(f"{reply.claims}. The API will probably refuse it.", "yellow")
        print_text(f"toolwright approve {reply.approval.id}")
    else:
        print_text(reply.reason, "red")
