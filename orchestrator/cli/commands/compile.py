"""`toolwright compile`: an API description as a bundle in a directory. Needs no home or engine."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import click

from forge.compile import Compilation, compile_document
from forge.document import Document, Fetch, load, parse
from forge.errors import DocumentError, NoUsableOperation
from forge.selection import credential
from orchestrator.errors import OrchestratorError
from orchestrator.fetching import GuardedFetch
from orchestrator.terminal import (
    FAILED,
    auth_option,
    err,
    json_option,
    print_json,
    reported,
    say,
)
from sandbox.brake import Brake
from sandbox.bundle import Bundle, write_bundle
from sandbox.errors import SandboxError
from sandbox.livehttp import LiveHttp
from sandbox.policy import Origin, origin_of

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
@reported
def command(
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
    """Compile SPEC, the path or URL of an API's description (OpenAPI, GraphQL introspection) or of
    requests to it (Postman, HAR, curl commands), to the bundle OUT. What cannot be compiled is left
    out and listed: file, place in it, reason. Nothing is proved or registered.
    """
    refuse_foreign(out)
    try:
        document = _document(spec, allow_private)
        made = compile_document(
            document,
            name=name or None,
            base_url=base_url or None,
            chosen=only,
            tags=tag,
            task=task,
            auth=tuple(map(credential, auth)),
        )
    except DocumentError as error:
        if as_json:
            print_json(_refusal(error))
            raise SystemExit(FAILED) from error
        for problem in _causes(error)[:MAX_SHOWN]:
            err.print(str(problem), markup=False)
        raise
    place(made.bundle, out)
    if as_json:
        print_json(_report(made, out))
    else:
        _print(made, out)


def place(bundle: Bundle, out: Path) -> None:
    """Write the bundle whole to `out`, or in place of what is there. Raises OrchestratorError."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            fresh = Path(scratch) / "bundle"
            fresh.mkdir()
            write_bundle(bundle, fresh)
            if out.exists():
                os.rename(out, Path(scratch) / "earlier")
            os.rename(fresh, out)
    except OSError as error:
        raise OrchestratorError(f"{out} cannot be written: {error}.") from error


def refuse_foreign(out: Path) -> None:
    """Raises OrchestratorError where `out` holds what is no bundle: it is not ours to replace."""
    if out.is_dir() and not out.is_symlink():
        if (out / "bundle.toml").exists() or not any(out.iterdir()):
            return
    elif not out.exists() and not out.is_symlink():
        return
    raise OrchestratorError(f"{out} is there and is no bundle. Name another directory as --out.")


def _document(spec: str, allow_private: bool) -> Document:
    if not spec.startswith(("http://", "https://")):
        return load(Path(spec).expanduser())
    fetch = _fetch(spec, allow_private)
    try:
        content = fetch(spec)
    except OSError as error:
        raise OrchestratorError(f"{spec} cannot be fetched: {error}.") from error
    return parse(content, spec, url=spec, fetch=fetch)


def _fetch(spec: str, allow_private: bool) -> Fetch:
    """Gets SPEC and what it refers to on its origin, over the network that guards addresses."""
    origin = origin_of(spec)
    private: frozenset[Origin] = frozenset({origin} if origin and allow_private else ())

    async def get(url: str) -> bytes:
        async with LiveHttp(private, response_bytes=DOCUMENT_BYTES) as upstream:
            answer = await GuardedFetch(upstream, Brake())(url, ())
        if answer.status != 200:
            raise OSError(f"HTTP {answer.status}")
        return answer.body

    def fetch(url: str) -> bytes:
        try:
            return asyncio.run(get(url))
        except SandboxError as error:
            raise OSError(str(error)) from error

    return fetch


def _causes(error: DocumentError) -> tuple[Any, ...]:
    return error.problems if isinstance(error, NoUsableOperation) else ()


def _report(made: Compilation, out: Path) -> dict[str, Any]:
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


def _refusal(error: DocumentError) -> dict[str, Any]:
    refused = {"file": error.file, "pointer": "", "reason": error.reason}
    return {"refused": refused, "problems": [vars(problem) for problem in _causes(error)]}


def _print(made: Compilation, out: Path) -> None:
    report = _report(made, out)
    for problem in made.problems[:MAX_SHOWN]:
        say(str(problem), "yellow")
    if len(made.problems) > MAX_SHOWN:
        say(f"and {len(made.problems) - MAX_SHOWN} more; --json lists all", "yellow")
    counts = f"{report['tools']} tools ({report['reads']} read, {report['writes']} write)"
    groups = [f"{name} {count}" for name, count in report["groups"].items() if name]
    if len(groups) > 1:
        say(f"groups: {', '.join(groups[:MAX_SHOWN])}{', …' if len(groups) > MAX_SHOWN else ''}")
    say(f"{out}: {made.bundle.name}, {counts}", "bold green")
