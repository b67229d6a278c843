"""`toolwright compile`: compile an API description to a bundle. Needs no home or engine."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from forge.compiler.compile import Compilation, compile_document
from forge.compiler.selection import parse_credential
from forge.errors import DocumentError, NoUsableOperation
from forge.readers.document import Document, Fetch, load_document, parse_document
from forge.text import render_count
from orchestrator.cli.terminal import (
    FAILED,
    auth_option,
    err,
    json_option,
    print_json,
    print_text,
    report_errors,
)
from orchestrator.errors import OrchestratorError
from orchestrator.forging.fetch import GuardedFetch
from orchestrator.settings import load_settings, locate_home
from registry.errors import advise
from registry.store import Store
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle, write_bundle
from sandbox.errors import Frozen, SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.wire.policy import Origin, parse_origin

MAX_SHOWN = 40
DOCUMENT_BYTES = 32 * 1024 * 1024


@click.command("compile")
@click.argument("spec")
@click.option("--base-url", default="", help="Replaces the servers that the document names.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Where to write it.")
@click.option("--name", default="", help="A name for the server; by default from the title.")
@click.option("--only", multiple=True, help="Ids, paths or tags to compile, such as '*pets*'.")
@click.option("--tag", multiple=True, help="Tags or groups to compile.")
@click.option("--task", default="", help="Compile the operations that fit these words best.")
@auth_option
@click.option("--allow-private", is_flag=True, help="SPEC's host may have a private address.")
@json_option
@report_errors
def compile_command(
    spec: str,
    base_url: str,
    out: Path,
    name: str,
    only: tuple[str, ...],
    tag: tuple[str, ...],
    task: str,
    auth: tuple[str, ...],
    allow_private: bool,
    as_json: bool,
) -> None:
    """Compile SPEC, the path or URL of an API's description (OpenAPI, GraphQL) or of
    requests to it (Postman, HAR, curl commands), to the bundle OUT. What cannot be compiled is left
    out and listed: file, place in it, reason. Nothing is proved or registered.
    """
    check_replaceable(out)
    try:
        document = _load_document(spec, allow_private)
        made = compile_document(
            document,
            name=name or None,
            base_url=base_url or None,
            chosen=only,
            tags=tag,
            task=task,
            auth=tuple(map(parse_credential, auth)),
        )
    except DocumentError as error:
        if as_json:
            print_json(_encode_refusal(error))
            raise SystemExit(FAILED) from error
        for problem in _list_problems(error)[:MAX_SHOWN]:
            err.print(str(problem), markup=False)
        raise
    replace_bundle(made.bundle, out)
    if as_json:
        print_json(_build_report(made, out))
    else:
        _print_compilation(made, out)


def replace_bundle(bundle: Bundle, out: Path) -> None:
    """Write the whole bundle to `out`, replacing what is there. Raises OrchestratorError."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            fresh = Path(scratch) / "bundle"
            fresh.mkdir()
            write_bundle(bundle, fresh)
            earlier = Path(scratch) / "earlier"
            if out.exists():
                os.rename(out, earlier)
            try:
                os.rename(fresh, out)
            except OSError:
                if earlier.exists():
                    os.rename(earlier, out)
                raise
    except OSError as error:
        told = f"{out} cannot be written: {error.strerror or error}."
        raise OrchestratorError(
            f"{told} {advise(error)}, or name another place as --out."
        ) from error


def check_replaceable(out: Path) -> None:
    """Raises OrchestratorError where `out` holds anything but a bundle, which is not replaced."""
    if out.is_dir() and not out.is_symlink():
        if (out / "bundle.toml").exists() or not any(out.iterdir()):
            return
    elif not out.exists() and not out.is_symlink():
        return
    raise OrchestratorError(f"{out} is there and is no bundle. Name another directory as --out.")


def _load_document(spec: str, allow_private: bool) -> Document:
    if not spec.startswith(("http://", "https://")):
        return load_document(Path(spec).expanduser())
    _check_not_frozen()
    fetch = _build_fetch(spec, allow_private)
    try:
        content = fetch(spec)
    except OSError as error:
        reason = str(error).rpartition(" could not be reached: ")[2]
        todo = "Check the address, or give a file"
        if reason in ("HTTP 401", "HTTP 403"):
            todo = (
                "`compile` sends no credential. Give a file, or have `toolwright forge` ask for it"
            )
        elif not allow_private:
            todo += "; an API on this machine or network needs --allow-private"
        raise OrchestratorError(f"{spec} cannot be fetched: {reason}. {todo}.") from error
    return replace(parse_document(content, spec, url=spec, fetch=fetch), served=True)


def _check_not_frozen() -> None:
    """Raises Frozen where this home is. It needs none to compile."""
    if locate_home(os.environ).exists():
        settings = load_settings()
        if settings.database is not None and settings.database.exists():
            with Store.open(settings.database_url) as store:
                if store.processes.get_freeze().frozen:
                    raise Frozen


def _build_fetch(spec: str, allow_private: bool) -> Fetch:
    """A function that fetches SPEC and its references on its origin, with addresses checked."""
    origin = parse_origin(spec)
    private: frozenset[Origin] = frozenset({origin} if origin and allow_private else ())

    async def get(url: str) -> bytes:
        async with LiveHttp(private, response_bytes=DOCUMENT_BYTES) as upstream:
            answer = await GuardedFetch(upstream, KillSwitch())(url, ())
        if answer.status != 200:
            raise OSError(f"HTTP {answer.status}")
        return answer.body

    def fetch(url: str) -> bytes:
        try:
            return asyncio.run(get(url))
        except SandboxError as error:
            raise OSError(str(error)) from error

    return fetch


def _list_problems(error: DocumentError) -> tuple[Any, ...]:
    return error.problems if isinstance(error, NoUsableOperation) else ()


def _build_report(made: Compilation, out: Path) -> dict[str, Any]:
    reads = sum(tool.access == "read" for tool in made.bundle.tools)
    return {
        "bundle": str(out),
        "name": made.bundle.name,
        "base_url": made.bundle.base_url,
        "tools": len(made.bundle.tools),
        "reads": reads,
        "writes": len(made.bundle.tools) - reads,
        "groups": dict(Counter(tool.group for tool in made.bundle.tools)),
        "credentials": [credential.name for credential in made.bundle.credentials],
        "problems": [vars(problem) for problem in made.problems],
    }


def _encode_refusal(error: DocumentError) -> dict[str, Any]:
    refused = {"file": error.file, "pointer": "", "reason": error.reason}
    return {"refused": refused, "problems": [vars(problem) for problem in _list_problems(error)]}


def _print_compilation(made: Compilation, out: Path) -> None:
    report = _build_report(made, out)
    for problem in made.problems[:MAX_SHOWN]:
        print_text(str(problem), "yellow")
    if len(made.problems) > MAX_SHOWN:
        print_text(f"and {len(made.problems) - MAX_SHOWN} more; --json lists all", "yellow")
    tools = render_count(report["tools"], "tool")
    counts = f"{tools} ({report['reads']} read, {report['writes']} write)"
    groups = [f"{name} {count}" for name, count in report["groups"].items() if name]
    if len(groups) > 1:
        print_text(
            f"groups: {', '.join(groups[:MAX_SHOWN])}{', …' if len(groups) > MAX_SHOWN else ''}"
        )
    print_text(f"{out}: {made.bundle.name}, {counts}", "bold green")
