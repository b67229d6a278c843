"""How a forge job stands, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.needs import ALLOWED
from orchestrator.terminal import FAILED, WAITING, print_json, say
from registry.drafts import awaits_draft
from registry.records import Job


def tell(job: Job, as_json: bool, with_brief: bool = False) -> None:
    """Print how a forge job stands, and leave with the status that says so."""
    if as_json:
        needs = {"needs": dict(job.needs)} if job.needs else {}
        told = {"job": job.id, "state": job.state, "message": job.message, "result": job.result}
        print_json({**told, **needs})
    elif job.state == "done":
        _print(job.result)
    elif job.state == "waiting":
        if with_brief and awaits_draft(job):
            say(f"{job.result['brief']}\n")
        say(f"{job.message}\nTo go on:", "yellow")
        for way in _ways(job):
            say(f"- {way}", "yellow")
    else:
        say(job.message, "red")
    if job.state != "done":
        held = job.state == "waiting" or isinstance(job.result, dict)
        raise SystemExit(WAITING if held else FAILED)


def _ways(job: Job) -> Iterator[str]:
    """How a person lets a waiting job go on."""
    resume = f"toolwright jobs {job.id} --resume"
    kind = job.needs.get("kind")
    if kind in ALLOWED:
        yield f"allow it: {job.needs['how']}"
    elif kind:
        yield f"{job.needs['how']}, then {resume}"
    if not awaits_draft(job):
        return
    brief = f"toolwright jobs {job.id} --brief"
    yield f"write it yourself: {brief} says what is wanted; toolwright submit {job.id} FILE"
    if kind not in ("unfreeze", "engine") and not _is_by_hand(job):
        yield f"have a model write it: set OPENAI_MODEL (docs/authors.md), then {resume}"
    yield f"let an MCP client's model write it: have it ask `status` with job={job.id}"


def _is_by_hand(job: Job) -> bool:
    """Whether no model would be asked for it: a client began, or was chosen."""
    drafts = job.result.get("drafts", ())
    return job.request.get("author") == "client" or any(d["author"] == "client" for d in drafts)


def _print(result: dict[str, Any]) -> None:
    say(f"{result['server']} version {result['version']} is {result['state']}.", "bold green")
    say(f"{len(result['tools'])} tools; try: toolwright show {result['server']}")
    for problem in result["problems"]:
        say(f"left out: {problem}", "yellow")
