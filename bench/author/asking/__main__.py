"""Drafts of tools that ask through the stages: how many broken ones are accepted, and how many good
ones refused.

    python -m bench.author.asking [--engine none|wasm|docker] [--only SERVICE,…] [--out FILE]

Each service has a good draft and variants of it. The cases of a variant are what its own code gives
for the service's answers, as those of an author are who is wrong and does not know it. Whether it
is good is said by calls that no stage sees, whose outcome and writes are compared with those of the
good draft. What no stage refuses is then read again: against claims of the task with the answers of
the API, which a reader who reads rightly makes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.author.asking.document import compile_api
from bench.author.asking.service import Service, Variant, World
from bench.author.asking.services import SERVICES
from bench.runners import opened_runner
from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.draft import Draft, parse_draft
from sandbox.broker.broker import Broker
from sandbox.broker.cassette import Cassette
from sandbox.broker.host.tools import KnownCalls
from sandbox.bundle.example import Example, parse_answers
from sandbox.bundle.model import Bundle
from sandbox.errors import CallTimedOut, LoadFailed, SessionBroken
from sandbox.session.interface import Outcome, Runner
from sandbox.session.recording import CallLog
from sandbox.stages.acceptance import Claim, prove_acceptance
from sandbox.stages.prove import prove_bundle
from sandbox.stages.replay.calls import describe_asked, name_asked
from sandbox.stages.replay.conduct import is_writing
from sandbox.stages.trials import OpenSession
from sandbox.wire.policy import Policy

AS_IT_IS = Variant("as it is", ())


@dataclass(frozen=True)
class AskingTrial:
    """What came of a variant: the stage that refused it, and whether a second reading would."""

    service: str
    variant: str
    good: bool
    caught: str
    reason: str
    read: str
    reader: bool
    seconds: float

    @property
    def fate(self) -> str:
        return f"{'refused' if self.caught else 'accepted'}-{'good' if self.good else 'bad'}"


def build_draft(service: Service, code: str, cases: Sequence[Any]) -> Draft:
    given = {"code": code, "tools": service.tools, "cases": list(cases), "why": "first draft"}
    draft = parse_draft(given)
    if not isinstance(draft, Draft):
        raise ValueError(f"{service.name}: {draft}")
    return draft


async def run_worlds(
    runner: Runner, bundle: Bundle, worlds: Sequence[World]
) -> list[tuple[Any, list[Any]]]:
    """What a bundle gives in each world (None: it fails), and its writes."""
    found: list[tuple[Any, list[Any]]] = []
    for world in worlds:
        calls = KnownCalls(parse_answers([*world.answers]))
        try:
            async with build_opener(bundle, runner)() as session:
                tape = CallLog(calls=calls)
                came = await session.call(world.tool, world.arguments, 20.0, tape)
        except (SessionBroken, CallTimedOut, LoadFailed):
            found.append(("broken", []))
            continue
        found.append((None if came.failure else came.structured, _list_writes(bundle, came)))
    return found


def _list_writes(bundle: Bundle, came: Outcome) -> list[Any]:
    tool = bundle.get_tool(came.tool)
    asked = [e.request for e in came.exchanges if is_writing(tool, e.request)]
    told = [(name_asked(request), describe_asked(request)) for request in asked]
    return [(name, {k: v for k, v in given.items() if k != "headers"}) for name, given in told]


def build_server(service: Service, code: str) -> Bundle:
    """The bundle of a service's tools with this code, as the forge assembles it."""
    made = build_bundle(build_draft(service, code, ()), Purpose(service.task, service.name, ""))
    api = compile_api(service)
    if api is None:
        return made
    permissions = tuple(sorted({*made.permissions, *api.permissions}))
    return replace(made, spec=api.spec, base_url=api.base_url, permissions=permissions)


def build_opener(bundle: Bundle, runner: Runner) -> OpenSession:
    """Sessions for cases, which send nothing."""
    return lambda: runner.open(bundle, Broker(Policy(()), Cassette(())))


async def try_variant(
    runner: Runner, service: Service, variant: Variant, right: list[Any]
) -> AskingTrial:
    started = time.perf_counter()
    code = variant.apply(service.code)
    bundle = build_server(service, code)
    shown = await run_worlds(runner, bundle, service.shown)
    cases = [
        {"tool": w.tool, "arguments": w.arguments, "answers": w.answers}
        | ({"failure": "tool"} if came is None else {"result": came})
        for w, (came, _) in zip(service.shown, shown, strict=True)
        if came != "broken"
    ]
    draft = build_draft(service, code, cases)
    proof = await prove_bundle(bundle, runner, examples=draft.examples)
    failed = next((report for report in proof.reports if not report.passed), None)
    told = [f.reason for f in failed.findings] if failed else []
    told += [f"{c.case}: {c.evidence}" for c in failed.list_failures()] if failed else []
    good = await run_worlds(runner, bundle, service.hidden) == right
    read = "" if failed else await _read(runner, service, bundle)
    seconds = time.perf_counter() - started
    caught = failed.stage if failed else ""
    reason = (told or [""])[0][:200]
    return AskingTrial(
        service.name, variant.name, good, caught, reason, read, variant.reader, seconds
    )


async def _read(runner: Runner, service: Service, bundle: Bundle) -> str:
    """What a second reading that is right finds; "" for nothing."""
    plain = replace(bundle, source_code=service.code)
    worlds = [world for _, world in service.read]
    wanted = await run_worlds(runner, plain, worlds)
    claims = [
        Claim(
            Example(
                w.tool,
                w.arguments,
                came,
                "tool" if came is None else None,
                parse_answers([*w.answers]),
            ),
            says,
        )
        for (says, w), (came, _) in zip(service.read, wanted, strict=True)
    ]
    report = await prove_acceptance(bundle, claims, build_opener(bundle, runner))
    return next((cell.evidence[:200] for cell in report.list_failures()), "")


async def measure(engine: str, only: str) -> list[AskingTrial]:
    trials = []
    async with opened_runner(engine, spares=1) as runner:
        for service in SERVICES:
            if only and service.name not in only.split(","):
                continue
            bundle = build_server(service, service.code)
            right = await run_worlds(runner, bundle, service.hidden)
            for variant in (AS_IT_IS, *service.good, *service.bad):
                trial = await try_variant(runner, service, variant, right)
                trials.append(trial)
                print(render_trial(trial), flush=True)
    return trials


def render_trial(trial: AskingTrial) -> str:
    read = "read" if trial.read else ""
    return (
        f"{trial.fate:13} {trial.service:10} {trial.variant:28} {trial.caught:9} {read:5}"
        f"{trial.seconds:5.1f} s  {trial.reason[:110]}"
    )


def summarize(trials: Sequence[AskingTrial]) -> str:
    fates = Counter(trial.fate for trial in trials)
    left = [trial for trial in trials if trial.fate == "accepted-bad"]
    caught = Counter(trial.caught for trial in trials if not trial.good and trial.caught)
    wrong = sum(bool(trial.read) for trial in trials if trial.good)
    return "\n".join(
        (
            ", ".join(f"{fate} {count}" for fate, count in sorted(fates.items())),
            "bad ones refused by " + ", ".join(f"{s} {n}" for s, n in caught.most_common()),
            f"accepted-bad before a second reading {len(left)}, of them such as only one can tell "
            f"{sum(t.reader for t in left)}; after it {sum(not t.read for t in left)}; good ones "
            f"that it refuses {wrong}",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", default="none", choices=("wasm", "docker", "none"))
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    trials = asyncio.run(measure(given.engine, given.only))
    if given.out:
        given.out.write_text("\n".join(json.dumps(asdict(trial)) for trial in trials) + "\n")
    print(summarize(trials))


if __name__ == "__main__":
    main()
