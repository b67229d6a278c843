"""`toolwright forge`: generate, prove and register a server."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import click

from forge.addresses import find_locations
from forge.compiler.selection import parse_credential
from forge.sources import ApiSource
from orchestrator.app import App
from orchestrator.approvals.granting import allow_host
from orchestrator.cli.job_report import report_job
from orchestrator.cli.preparation import prepare_engine, set_up_first_pin
from orchestrator.cli.registering import open_registering
from orchestrator.cli.resume import carry_out_asking
from orchestrator.cli.terminal import (
    ask_pin,
    auth_option,
    engine_option,
    is_terminal,
    json_option,
    pin_option,
    print_note,
    print_text,
    report_errors,
    run_coroutine,
)
from orchestrator.cli.tools.argument_hint import render_example_call
from orchestrator.errors import OrchestratorError
from orchestrator.forging.authors.choice import WRITERS
from orchestrator.forging.order import NO_SOURCE
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.errors import NO_ENGINE
from sandbox.plain_secrets import has_login
from sandbox.wire.policy import parse_origin

MAX_READS = 200
DESCRIPTIONS = (".json", ".yaml", ".yml", ".har", ".sh", ".graphql", ".graphqls", ".gql")
"""How files of descriptions end."""
PLACE_MARKS = "/:."
"""What stands in each path and address that is taken for one where a task is expected."""
SCHEMES = ("http", "https")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")


@click.command("forge")
@click.argument("task")
@click.option(
    "--source", default="", help="Where the API's description or documentation is, or `none`."
)
@click.option("--parent", default="", help="A registered server that your code is to change.")
@click.option("--name", default="", help="A name; the parent's own for its next version.")
@click.option("--base-url", default="", help="Replaces the server that the document names.")
@auth_option
@click.option("--allow", multiple=True, help="Allow this HOST:PORT as well. Asks for the PIN.")
@click.option(
    "--author",
    type=click.Choice(WRITERS),
    default=None,
    help="Who writes code where it is needed; by default the configured endpoint, else a client.",
)
@click.option("--experimental", is_flag=True, help="Register even where a stage fails.")
@click.option("--no-probe", is_flag=True, help="Ask the API itself nothing while it is proved.")
@click.option("--brief", is_flag=True, help="Print the whole brief where the job waits for code.")
@pin_option
@json_option
@engine_option
@report_errors
def forge_command(
    task: str,
    source: str,
    parent: str,
    name: str,
    base_url: str,
    auth: tuple[str, ...],
    allow: tuple[str, ...],
    author: str | None,
    experimental: bool,
    no_probe: bool,
    brief: bool,
    pin_file: Path | None,
    as_json: bool,
    engine: str | None,
) -> None:
    """Make a server for TASK from an API's description, prove it and register it.

    TASK may be just the API's URL or the file of its description. At a terminal you are asked for
    what has to be allowed, and a new home is set up on the way. Elsewhere --pin-file gives the PIN,
    and the job waits for `toolwright allow JOB`.

    Where no API is named, or with --parent, code is needed. The model of OPENAI_MODEL writes it
    (docs/authors.md). Without one the job waits until an MCP client or `toolwright submit` hands
    the code in; --brief prints what to write.
    """
    if not task.strip() and not source:
        raise click.UsageError("Give a TASK: what you want in words, or the API's URL.")
    for written in auth:
        parse_credential(written)
    _check_places(task, source)
    source = source or ("" if parent else _find_named_place(task))
    settings = load_settings(engine=engine)
    set_up_first_pin(settings, pin_file, as_json)
    signer = ask_pin(settings, pin_file) if allow or experimental else None
    request = {
        "task": task,
        "source": _resolve_path(source),
        "parent": parent,
        "name": name,
        "base_url": base_url,
        "auth": list(auth),
        "author": author or "",
        "experimental": experimental,
        "no_probe": no_probe,
        "files": "typed",
    }
    job = run_coroutine(_forge_server(settings, request, allow, signer, pin_file, as_json))
    report_job(job, as_json, brief)
    if not as_json:
        _print_example_call(settings, job)


def _check_places(task: str, source: str) -> None:
    """Raises OrchestratorError for a place that no description can be read from, before there is a
    job that waits for something else.
    """
    for place in filter(None, (source, task if len(task.split()) == 1 else "")):
        scheme, mark, _ = place.partition("://")
        if mark and scheme.lower() not in SCHEMES and SCHEME.match(scheme):
            raise OrchestratorError(
                f"{scheme}:// is not read, only http and https: {strip_login(place)[:200]}. Give "
                "the path or URL of the API's description."
            )
        if has_login(place):
            plain = shlex.quote(strip_login(place))
            raise OrchestratorError(
                "the address holds a user name or password, and it would be stored with it. "
                f"Nothing was stored. `toolwright forge {plain} --auth basic=@login` makes the "
                "server, and says with which command user and password are set."
            )
        # A word of a task may also be the name of a directory that stands here by chance.
        is_meant = place == source or (not source and any(mark in place for mark in PLACE_MARKS))
        if is_meant and Path(place).expanduser().is_dir():
            raise OrchestratorError(
                f"{place[:200]}: it is a directory. Give the path or URL of the API's description."
            )


def strip_login(url: str) -> str:
    """A URL without the user and password before its host."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def _find_named_place(task: str) -> str:
    """The file or host that stands in the place of the task; "" for a task in words, and for one
    with addresses that the forge finds in it. Raises OrchestratorError for a word that can only be
    meant as a place and is none: as a task it would wait for somebody to write code.
    """
    path = Path(task).expanduser()
    is_marked = any(mark in task for mark in PLACE_MARKS)
    if len(task.split()) != 1 or task == NO_SOURCE or not is_marked:
        return ""
    if path.is_file():
        return task
    if find_locations(task):
        # In a text `$` begins a placeholder; who gives nothing but a URL means all of it.
        whole = "$" in task and parse_origin(task) is not None and not {*"{<"} & {*task}
        return task if whole else ""
    if path.suffix in DESCRIPTIONS:
        raise OrchestratorError(
            f"{task[:200]}: there is no such file. Give the path or URL of the API's description."
        )
    if ":" not in task and "/" not in task:
        return ""
    if ApiSource(task).urls:
        return task
    raise OrchestratorError(
        f"{task[:200]}: it is neither a file nor an address. Write the address as "
        "http://HOST:PORT/PATH, its port at most 65535. For a task in words that needs no API add "
        "--source none."
    )


def _resolve_path(source: str) -> str:
    """An existing path made absolute, other sources as they are: a job may run elsewhere."""
    path = Path(source).expanduser()
    return str(path.absolute()) if source and path.exists() else source


async def _forge_server(
    settings: Settings,
    request: dict[str, Any],
    allow: tuple[str, ...],
    signer: Signer | None,
    pin_file: Path | None,
    quiet: bool,
) -> Job:
    async with open_registering(settings, "forge", quiet) as app:
        if signer is not None:
            for host in allow:
                allow_host(app.store.grants, host, "terminal", signer)
        if is_terminal(quiet):
            await _prepare_missing_engine(app)
        job = app.jobs.take_job("forge", request)
        return await carry_out_asking(app, job, quiet, pin_file, job)


async def _prepare_missing_engine(app: App) -> None:
    """Make an engine ready where the home finds none, before there is a job that waits for it."""
    try:
        app.forge.engine.check_available()
    except NO_ENGINE:
        print_note(await asyncio.to_thread(prepare_engine, app.settings))
        await app.forge.engine.look_again()


def _print_example_call(settings: Settings, job: Job) -> None:
    """A call of the server that was just registered: of a read that takes the least."""
    with Store.open(settings.database_url) as store:
        tools = store.servers.get(job.result["server"]).tools
    reads = [each for each in tools if each.access == "read"]
    if reads:
        schemas = {each.name: each.definition["inputSchema"] for each in reads[:MAX_READS]}
        name = min(schemas, key=lambda name: len(schemas[name].get("required", ())))
        example = render_example_call(f"{job.result['server']}.{name}", schemas[name])
        print_text(f"Call one: {example}")
