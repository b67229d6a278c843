"""`toolwright submit`: submit the draft or description that a forge job waits for."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click

from orchestrator.cli.identifiers import StoredId
from orchestrator.cli.job_report import report_job
from orchestrator.cli.registering import open_registering
from orchestrator.cli.resume import carry_out_job
from orchestrator.cli.terminal import (
    FAILED,
    engine_option,
    err,
    json_option,
    print_json,
    report_errors,
    run_coroutine,
)
from orchestrator.errors import OrchestratorError
from orchestrator.forging.documentation import awaits_document
from orchestrator.forging.drafts.compose import CONTENT, DECLINE
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from sandbox.sanitize import clean_text
from sandbox.schemas.validator import SchemaViolation

MAX_BYTES = 4 * 1024 * 1024


@click.command("submit")
@click.argument("job", type=StoredId("job"))
@click.argument("draft", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--why", default="", help="What this draft does, or changes.")
@json_option
@engine_option
@report_errors
def submit_command(job: str, draft: Path, why: str, as_json: bool, engine: str | None) -> None:
    """Hand in DRAFT for JOB. It is proved and registered, or you are told what is wrong with it.

    DRAFT is a JSON file (`-` is standard input) with code, tools, cases, tests, packages,
    acceptance, api and why; or a directory with server.py, tools.json, cases.json, test_server.py,
    packages.txt, acceptance.json and api.json. A draft without code is a specification: the job
    then waits for the code. A file with {"decline": "why"} alone ends the job.

    A job that waits for an API's description takes a file with that description (an OpenAPI
    document, or what the brief asks for), or code with `api`.
    """
    taken = run_coroutine(_submit_draft(load_settings(engine=engine), job, draft, why, as_json))
    if isinstance(taken, Job):
        report_job(taken, as_json)
        return
    if as_json:
        print_json({"problems": [{"pointer": p.where, "reason": p.reason} for p in taken]})
    for problem in () if as_json else taken:
        err.print(clean_text(f"{problem.where}: {problem.reason}"), markup=False)
    raise SystemExit(FAILED)


async def _submit_draft(
    settings: Settings, job: str, draft: Path, why: str, quiet: bool
) -> Job | tuple[SchemaViolation, ...]:
    async with open_registering(settings, "submit", quiet) as app:
        if awaits_document(app.store.jobs.get(job)) and not _is_code(draft):
            made = app.submissions.resubmit_order(job, _read_text(draft))
            return await carry_out_job(app, made, quiet)
        given = _read_directory(draft) if draft.is_dir() else _read_draft(draft)
        if why:
            given["why"] = why
        if DECLINE in given:
            return app.submissions.decline_job(job, given)
        taken = app.submissions.submit_draft(job, given)
        if isinstance(taken, tuple):
            return taken
        return await carry_out_job(app, app.store.jobs.get(job), quiet)


def _is_code(draft: Path) -> bool:
    """Whether what is handed in for an API is code that asks it, not its description."""
    if draft.is_dir():
        return True
    if draft.suffix != ".json":
        return False
    value = _read_json(draft)
    return isinstance(value, dict) and "tools" in value and "api" in value


def _read_directory(place: Path) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key in ("tools", "cases", "acceptance"):
        name = f"{key}.json"
        if (place / name).exists():
            given[key] = _read_list(place / name, key)
    if (place / "api.json").exists():
        given["api"] = _read_json(place / "api.json")
    for key, name in (("code", "server.py"), ("tests", "test_server.py")):
        if (place / name).exists():
            given[key] = _read_text(place / name)
    if (place / "packages.txt").exists():
        given["packages"] = _read_text(place / "packages.txt").split()
    return given


def _read_list(path: Path, key: str) -> Any:
    """The list in a JSON file, by itself or as the value of `key` in an object."""
    value = _read_json(path)
    if not isinstance(value, dict):
        return value
    _check_keys(path, value, (key,))
    return value.get(key)


def _read_draft(path: Path) -> dict[str, Any]:
    """Read a draft's JSON object. Raises OrchestratorError for anything else or unknown keys."""
    value = _read_json(path)
    if not isinstance(value, dict):
        raise OrchestratorError(f"{path} holds no JSON object.")
    _check_keys(path, value, (*CONTENT, DECLINE))
    return value


def _check_keys(path: Path, value: dict[str, Any], known: Collection[str]) -> None:
    unknown = sorted(value.keys() - set(known))
    if unknown:
        names = ", ".join(unknown)[:200]
        raise OrchestratorError(
            f"{path} has {names}, and takes only {', '.join(known)}. What a tool asks for stands "
            'in the tool: "permissions": ["fs:/path:ro"].'
        )


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise OrchestratorError(f"{path} is no JSON: {error}.") from error


def _read_text(path: Path) -> str:
    try:
        if str(path) == "-":
            return sys.stdin.read(MAX_BYTES)
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OrchestratorError(f"{path} cannot be read: {reason}.") from error
