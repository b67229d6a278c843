"""Tasks in words and their results: sixty of them over eighteen APIs on loopback.

    python -m bench.do [--thinker client|endpoint] [--engine wasm|docker] [--verbose]
    python -m bench.do --fresh FILE.jsonl
    python -m bench.do --held-out

A fresh home with twelve servers, each standing well; a real `serve` over stdio. Whoever asked
answers what a run asks, as somebody who knows what was meant: what was done unasked is what rules
alone do, what took three calls of `do` at most is what a client's model does. With `--thinker
endpoint`, an endpoint of loopback answers what models are asked. A wrong act is a request that
arrived at an API and was not the task's.

`--fresh` gives tasks that others wrote, a JSON object a line (`task`, `tool` where one fits), each
asked once and never answered: what was called without a question, and whether that was right.
`--held-out` does the same with other services and tasks (`bench.doing.held_out`), of each of which
it is known which request it means.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.doing import held_out
from bench.doing.apis import DOCUMENT, Api, Request, Service, run_api
from bench.doing.services import REGISTERED, UNREGISTERED
from bench.doing.tasks import TASKS, Doing
from bench.soaking.client import Client
from orchestrator.app import App, open_app
from orchestrator.approvals.decide import Decision, decide_signed
from orchestrator.calls import Call, Done
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings, load_settings
from registry.store import Store
from tests.granted import allow, person
from tests.world.model import Said, model, purpose, said

ROOT = Path(__file__).parents[1]
CALLS_TO_STANDING = 12
MAX_ANSWERS = 4
BYTES_A_TOKEN = 3.5
"""Of English and JSON, by tokenizers of the GPT family: an upper bound of the tokens."""
SETTLED = frozenset({"done", "failed", "rejected", "expired", "unknown"})


@dataclass
class Attempt:
    """What became of one task. `wrong` are requests that were not its own."""

    doing: Doing
    right: bool
    answers: int
    seconds: float
    tokens: int
    wrong: tuple[str, ...] = ()
    forged: int = 0
    state: str = ""
    note: str = ""


@dataclass
class World:
    """A home, its `serve`, and the services."""

    settings: Settings
    client: Client
    services: Mapping[str, Service]
    log: list[str] = field(default_factory=list)

    def forget(self) -> None:
        for service in self.services.values():
            service.requests.clear()

    def list_requests(self) -> list[tuple[str, Request]]:
        return [(name, each) for name, one in self.services.items() for each in one.requests]

    @contextmanager
    def store(self) -> Iterator[Store]:
        with Store.open(self.settings.database_url) as store:
            yield store

    def list_servers(self) -> list[str]:
        with self.store() as store:
            return [entry.base_url for entry in store.servers.find()]


async def attempt(world: World, doing: Doing) -> Attempt:
    """One task, from its words to its end."""
    world.forget()
    before = len(world.list_servers())
    url = world.services[doing.service].url if doing.service in world.services else ""
    words = doing.words.replace("{url}", url)
    started, answers, told = time.monotonic(), 0, 0
    reply = await world.client.call("do", task=words)
    while True:
        told += len(json.dumps(reply.get("content"), ensure_ascii=False).encode())
        value = reply.get("structuredContent") or {}
        answer = answer_question(doing, value) if value.get("state") == "asking" else None
        if answer is None or answers == MAX_ANSWERS:
            break
        answers += 1
        reply = await world.client.call("do", run=value["run"], answer=answer)
    seconds = time.monotonic() - started
    if value.get("state") == "pending":
        await approve(world, str(value["approval"]))
    wrong, missing = judge_requests(doing, world.list_requests())
    text = json.dumps([reply.get("content"), value], ensure_ascii=False)
    unheard = [word for word in doing.holds if word not in text]
    failed = bool(reply.get("isError")) and doing.kind != "none"
    return Attempt(
        doing,
        not (wrong or missing or unheard or failed),
        answers,
        seconds,
        round(told / BYTES_A_TOKEN),
        tuple(wrong),
        len(world.list_servers()) - before,
        str(value.get("state", "")),
        f"missing {missing} unheard {unheard} {text[:300]}",
    )


def answer_question(doing: Doing, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """What somebody who knows what was meant answers; None where it leads nowhere."""
    question, named = value["question"], value["question"]["id"]
    shown = question["shown"]
    if doing.kind == "none":
        return None
    wanted = list_wanted(doing)
    if question["kind"] == "confirm":
        fitting = [given for tool, given in wanted if is_meant(doing, tool, shown["tool"])]
        if not fitting:
            return None
        if shown["arguments"] in fitting:
            return {"question": named, "confirm": True}
        literal = [each for each in fitting if "$ref" not in json.dumps(each)]
        more = {"arguments": dict(literal[0])} if literal else {}
        return {"question": named, "confirm": True, **more}
    if question["kind"] == "choose":
        offered = question["schema"]["properties"]["tool"]["enum"]
        for name, given in wanted:
            tool = next((each for each in offered if is_meant(doing, name, each)), "")
            if tool:
                more = {} if "$ref" in json.dumps(given) else {"arguments": given}
                return {"question": named, "tool": tool, **more}
        return {"question": named, "tool": "none"} if doing.kind == "forge" else None
    if question["kind"] == "plan":
        steps = [{**each, "after": list(each["after"])} for each in doing.plan]
        return {"question": named, "steps": steps} if steps else {"question": named, "accept": True}
    if "source" in question["schema"]["properties"]:
        return None
    for tool, given in wanted:
        if is_meant(doing, tool, shown.get("tool", "")) and "$ref" not in json.dumps(given):
            return {"question": named, "arguments": given}
    return None


def is_meant(doing: Doing, wanted: str, tool: str) -> bool:
    """Whether a tool is the one that is wanted; a new server's name is its description's."""
    if doing.kind == "forge":
        return tool.partition(".")[2] == wanted.partition(".")[2]
    return tool == wanted


def is_offered(doing: Doing | None, wanted: str, tool: str) -> bool:
    """The same where the task may be a step that no task of the bench is by itself."""
    return tool == wanted if doing is None else is_meant(doing, wanted, tool)


def list_wanted(doing: Doing) -> list[tuple[str, dict[str, Any]]]:
    """The tools that a task means, each with its arguments."""
    if doing.plan:
        return [(step["tool"], dict(step["arguments"])) for step in doing.plan]
    return [(doing.tool, dict(doing.arguments))]


def judge_requests(
    doing: Doing, requests: Sequence[tuple[str, Request]]
) -> tuple[list[str], list[str]]:
    """The requests that are not the task's, and those of it that are missing. What proving a new
    server reads there is its own, and so is what a write would change, read to be shown.
    """
    wanted = Counter((doing.service, each) for each in doing.requests)
    shown = {each.replace(each.split()[0], "GET", 1) for each in doing.requests}
    wrong = []
    for name, request in requests:
        key = (name, str(request))
        if wanted[key] and has_body(doing, request):
            wanted[key] -= 1
        elif doing.kind == "write" and name == doing.service and str(request) in shown:
            continue
        elif not (doing.kind == "forge" and name == doing.service and request.method == "GET"):
            wrong.append(f"{name}: {request} {request.body or ''}")
    return wrong, [request for (_, request), left in wanted.items() if left]


def has_body(doing: Doing, request: Request) -> bool:
    body = doing.arguments.get("body")
    return body is None or request.body == body


async def approve(world: World, approval: str) -> None:
    """Approve as a person with the PIN, and wait for the outcome."""
    with world.store() as store:
        shown = store.approvals.get(approval)
        decided = Decision(shown.id, True, "", by="bench")
        decide_signed(store.approvals, shown, decided, person(world.settings.pin), time.time())
    while True:
        reply = await world.client.call("status", approval=approval, wait=5)
        if (reply.get("structuredContent") or {}).get("state") in SETTLED | {None}:
            return


def answer_model(request: Mapping[str, Any]) -> Said:
    """What a model that understands the tasks answers, by the task in its prompt."""
    prompt = request["messages"][-1]["content"]
    told = [each for each in TASKS if each.words.partition(" ({")[0].partition("{")[0] in prompt]
    steps = [step for each in TASKS for step in each.plan if step["task"] in prompt]
    doing = max(told, key=lambda each: len(each.words), default=None)
    asked = purpose(request)
    if asked == "plan" and doing is not None:
        return said({"steps": list(doing.plan)})
    wanted = list_wanted(doing) if doing else [(s["tool"], dict(s["arguments"])) for s in steps]
    if asked == "choice":
        offered = re.findall(r'"tool": "([\w.]+)"', prompt)
        fits = (each for tool, _ in wanted for each in offered if is_offered(doing, tool, each))
        return said({"tool": next(fits, "none")})
    for tool, given in wanted:
        if f'"{tool.partition(".")[2]}"' in prompt and "$ref" not in json.dumps(given):
            return said({"arguments": given, "missing": []})
    return said({"arguments": {}, "missing": ["what is not said"]})


async def prepare(
    settings: Settings, services: Mapping[str, Service], registered: Sequence[Api] = REGISTERED
) -> None:
    """Register the twelve or others, and let each stand well."""
    async with open_app(settings, "bench") as app:
        for service in services.values():
            allow(settings, app.store, service.url)
        for api in registered:
            order = ForgeOrder(source=services[api.name].url + DOCUMENT, name=api.name)
            await app.forge.forge_server(order, lambda step: None)
            await stand(app, api.name)


async def stand(app: App, server: str) -> None:
    """Have a server earn the level `standard`."""
    reads = [each for each in TASKS if each.tool.startswith(f"{server}.") and each.kind == "read"]
    tool = reads[0].tool.partition(".")[2] if reads else find_plain_read(app, server)
    given = reads[0].arguments if reads else {}
    for _ in range(CALLS_TO_STANDING):
        reply = await app.dispatch.call_tool(Call(server, tool, given))
        assert isinstance(reply, Done), reply
        assert reply.outcome.ok, reply.outcome.failure


def find_plain_read(app: App, server: str) -> str:
    """A tool of a server that reads and needs nothing."""
    tools = app.roster.get_server(server).tools.values()
    return next(t.name for t in tools if t.access == "read" and not t.input_schema.get("required"))


def print_attempts(attempts: Sequence[Attempt], thinker: str, twins: int, verbose: bool) -> None:
    kinds = ("read", "steps", "write", "forge", "none")
    print(f"{'kind':8} {'tasks':>6} {'right':>6} {'unasked':>8} {'one':>5} {'more':>5}")
    for kind in (*kinds, "all"):
        mine = [a for a in attempts if kind in (a.doing.kind, "all")]
        right = [a for a in mine if a.right]
        asked = Counter(min(a.answers, 2) for a in right)
        print(f"{kind:8} {len(mine):6} {len(right):6} {asked[0]:8} {asked[1]:5} {asked[2]:5}")
    wrong = [each for a in attempts for each in a.wrong]
    false = sum(a.forged for a in attempts if a.doing.kind != "forge")
    quick = sum(a.right and a.answers <= 2 for a in attempts)
    print(f"{thinker}: in at most three calls {quick} of {len(attempts)}")
    print(f"wrong acts {len(wrong)}, false forges {false}, twins {twins}")
    seconds = statistics.median(a.seconds for a in attempts)
    tokens = statistics.median(a.tokens for a in attempts)
    print(f"p50 {seconds * 1000:.0f} ms, p50 {tokens:.0f} tokens of answers (an upper bound)")
    for each in attempts:
        if each.wrong or (verbose and not each.right):
            print(f"- {each.doing.words}: {each.state} {' '.join(each.wrong)} {each.note}")


async def ask_fresh(world: World, file: Path) -> None:
    """Tasks that others wrote, asked once each."""
    acts, wrong = Counter[str](), []
    rows = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    for row in rows:
        world.forget()
        reply = await world.client.call("do", task=row["task"])
        value = reply.get("structuredContent") or {}
        arrived = [f"{name}: {request}" for name, request in world.list_requests()]
        steps = [step.get("tool") for step in value.get("steps") or []]
        if value.get("state") == "asking":
            # Only so many may wait.
            with world.store() as store:
                store.jobs.cancel(value["run"], "bench", time.time())
        acts["acted" if arrived else str(value.get("state") or value.get("error"))[:60]] += 1
        fitting = row.get("tool") and {name.partition(":")[0] for name in arrived} == {
            row["tool"].partition(".")[0]
        }
        if arrived:
            print(
                f"{'ok   ' if fitting else 'WRONG'} {row['task']!r}: {arrived} {steps}", flush=True
            )
        if arrived and not fitting:
            wrong.append(row["task"])
    print(f"{len(rows)} tasks: {dict(acts)}; acts at another server than the task's: {len(wrong)}")
    print(f"with none in {len(rows)}, the rate is below {3 / len(rows):.2%} (95 %, rule of three)")


async def ask_held_out(world: World) -> None:
    """Tasks of which it is known what they mean, asked once each."""
    acts, wrong = Counter[str](), 0
    for task in held_out.TASKS:
        world.forget()
        reply = await world.client.call("do", task=task.words)
        value = reply.get("structuredContent") or {}
        if value.get("state") == "asking":
            with world.store() as store:
                store.jobs.cancel(value["run"], "bench", time.time())
        arrived = [f"{name} {request}" for name, request in world.list_requests()]
        meant = [*task.before, *filter(None, [task.request])]
        kind = "doable" if task.request else "not doable"
        acts[f"{kind}: done" if arrived == meant and meant else f"{kind}: not done"] += 1
        strange = [each for each in arrived if each not in meant]
        wrong += bool(strange)
        end = "WRONG" if strange else "done " if arrived == meant and meant else "     "
        print(f"{end} {task.words!r}: {arrived} {value.get('state') or value.get('error')}")
    print(f"{dict(acts)}; wrong acts: {wrong}")


async def run(given: argparse.Namespace, directory: Path) -> None:
    with ExitStack() as stack:
        registered = held_out.APIS if given.held_out else REGISTERED
        apis = (*registered, *(() if given.held_out else UNREGISTERED))
        services = {api.name: stack.enter_context(run_api(api)) for api in apis}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment |= {
            "TOOLWRIGHT_HOME": str(directory / "home"),
            "TOOLWRIGHT_ENGINE": given.engine,
        }
        if given.thinker == "endpoint":
            here = stack.enter_context(model(answer_model))
            environment |= {"OPENAI_BASE_URL": here.url, "OPENAI_API_KEY": "k"}
            environment |= {"OPENAI_MODEL": "m-1"}
        settings = load_settings(environment)
        person(settings.pin)
        await prepare(settings, services, registered)
        with Store.open(settings.database_url) as store:
            while store.search.fill_vectors():
                pass
        command = [sys.executable, "-m", "orchestrator", "serve", "--no-control"]
        client = await Client.started(command, environment, directory / "serve.log")
        world = World(settings, client, services)
        try:
            if given.held_out:
                await ask_held_out(world)
                return
            if given.fresh:
                await ask_fresh(world, given.fresh)
                return
            chosen = [doing for doing in TASKS if given.only in doing.words]
            attempts = [await attempt(world, doing) for doing in chosen]
        finally:
            await client.close()
        urls = world.list_servers()
        print_attempts(attempts, given.thinker, len(urls) - len({*urls}), given.verbose)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thinker", choices=("client", "endpoint"), default="client")
    parser.add_argument("--engine", choices=("docker", "wasm"), default="wasm")
    parser.add_argument("--verbose", action="store_true", help="Tell of each that went wrong.")
    parser.add_argument("--only", default="", help="Tasks with these words alone.")
    parser.add_argument("--fresh", type=Path, help="Tasks that others wrote.")
    parser.add_argument("--held-out", action="store_true", help="Other services and tasks.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(run(given, Path(directory)))


if __name__ == "__main__":
    main()
