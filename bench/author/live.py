"""The tasks forged by a model behind an endpoint: success, hand-ins, tokens and money.

The endpoint is asked by Toolwright, or as the model of an MCP client that lets itself be sampled.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

import mcp.types as types
import openai
from mcp import Client, MCPDeprecationWarning

from bench.author.task import Task
from bench.author.trial import missed
from orchestrator.app import App, open_app
from orchestrator.forging.order import NO_SOURCE
from orchestrator.frontends.server import build_front_server
from orchestrator.settings import load_settings
from registry.models import ENDED_JOBS, Job

ROOM = 4
"""A day's budget in that of a forge, for each task: no line of a day is to end a measurement."""


@dataclass(frozen=True)
class LiveForge:
    """What came of a task: `missed` are the hidden checks that its server does not hold, None where
    nothing was registered; `drafts` those with code. Tokens are both ways, `cost` is in the
    currency of the prices, 0 where the model's are not known.
    """

    task: str
    state: str
    missed: int | None
    drafts: int
    questions: int
    tokens_in: int
    tokens_out: int
    cost: float
    seconds: float
    told: str = ""

    @property
    def right(self) -> bool:
        return self.missed == 0

    def line(self) -> str:
        came = {None: self.state, 0: "right"}.get(self.missed, f"{self.missed} checks missed")
        spent = f"{self.tokens_in:7} + {self.tokens_out:6} tokens, {self.cost:.4f}"
        counted = f"{self.drafts} drafts, {self.questions:2} questions"
        told = "" if self.missed is not None else f"  {self.told[:200]}"
        return f"{self.task:15} {came:18} {counted}, {spent}, {self.seconds:5.0f} s{told}"


Source = Literal["endpoint", "sampling"]
"""Who asks the endpoint: Toolwright, or the client that Toolwright samples."""


async def measure_live(
    engine: str,
    tasks: Sequence[Task],
    environment: Mapping[str, str],
    source: Source = "endpoint",
) -> list[LiveForge]:
    """Forge each task by the endpoint that the environment names, which is paid for. Prints as it
    goes.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="toolwright-author-") as directory:
        home = Path(directory)
        given = _build_environment(environment, home, len(tasks))
        if source == "sampling":
            given = {name: value for name, value in given.items() if name not in ENDPOINT}
        settings = load_settings(given, home=home, engine=engine)
        async with open_app(settings, "serve" if source == "sampling" else "forge") as app:
            async with AsyncExitStack() as stack:
                client = None
                if source == "sampling":
                    client = await stack.enter_async_context(_connect_sampled(app, environment))
                for task in tasks:
                    found.append(await _forge_task(app, task, client))
                    print(found[-1].line(), flush=True)
    return found


ENDPOINT = ("OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY")


@asynccontextmanager
async def _connect_sampled(app: App, environment: Mapping[str, str]) -> AsyncIterator[Client]:
    """An MCP client whose own model is the environment's endpoint."""
    base, model, key = (environment.get(name) for name in ENDPOINT)
    async with openai.AsyncOpenAI(base_url=base, api_key=key or "none") as endpoint:

        async def sample(context: Any, params: types.CreateMessageRequestParams) -> Any:
            told = [("system", params.system_prompt or "")]
            told += [(each.role, _read_text(each.content)) for each in params.messages]
            messages: Any = [{"role": role, "content": text} for role, text in told if text]
            said = await endpoint.chat.completions.create(
                model=model or "", messages=messages, max_completion_tokens=params.max_tokens
            )
            choice = said.choices[0]
            content = types.TextContent(type="text", text=choice.message.content or "")
            stopped = "maxTokens" if choice.finish_reason == "length" else "endTurn"
            return types.CreateMessageResult(
                role="assistant", content=content, model=said.model, stop_reason=stopped
            )

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            client = Client(build_front_server(app), mode="legacy", sampling_callback=sample)
            async with client:
                yield client


def _read_text(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    return "\n".join(part.text for part in parts if isinstance(part, types.TextContent))


def _build_environment(given: Mapping[str, str], home: Path, tasks: int) -> dict[str, str]:
    """The environment with budgets that hold for all tasks, where it names none itself."""
    tokens = int(given.get("TOOLWRIGHT_FORGE_TOKENS", "200000"))
    usual = {
        "TOOLWRIGHT_FORGES_PER_DAY": str(tasks),
        "TOOLWRIGHT_DAY_TOKENS": str(ROOM * tokens * tasks),
        "TOOLWRIGHT_VAULT_KEY_FILE": str(home / "vault.key"),
    }
    return usual | dict(given)


async def _forge_task(app: App, task: Task, client: Client | None) -> LiveForge:
    started = time.perf_counter()
    order = {"task": task.text, "name": task.name, "source": NO_SOURCE}
    if client is None:
        job = await _forge_by_endpoint(app, {**order, "author": "openai"})
    else:
        job = await _forge_by_client(app, client, {**order, "author": "sampling"})
    wrong = None
    if job.state == "done":
        entry = app.store.servers.get(str(order["name"]))
        wrong = await missed(app.forge.engine, app.forge.shelf.load_bundle(entry), task)
        wrong = len(task.checks) if wrong is None else wrong
    spent = app.store.model_usage.sum_for_job(job.id)
    drafts = [row for row in app.store.drafts.find(job.id) if row.content.get("code")]
    return LiveForge(
        task.name,
        job.state,
        wrong,
        len(drafts),
        spent.calls,
        spent.tokens_in,
        spent.tokens_out,
        spent.cost,
        time.perf_counter() - started,
        job.message,
    )


async def _forge_by_endpoint(app: App, order: Mapping[str, str]) -> Job:
    job = app.jobs.create_job("forge", order)
    claimed = app.store.jobs.claim(job.id, app.process, time.time())
    assert claimed is not None
    await app.jobs.run_job(claimed)
    return app.store.jobs.get(job.id)


async def _forge_by_client(app: App, client: Client, order: Mapping[str, str]) -> Job:
    told = await client.call_tool("forge", dict(order))
    identity = str((told.structured_content or {})["job"])
    while app.store.jobs.get(identity).state not in (*ENDED_JOBS, "waiting"):
        await client.call_tool("status", {"job": identity, "wait": 25})
    return app.store.jobs.get(identity)


def summarize_live(found: Sequence[LiveForge]) -> str:
    registered = [each for each in found if each.missed is not None]
    right = [each for each in found if each.right]
    drafts = [each.drafts for each in found]
    tokens = sum(each.tokens_in + each.tokens_out for each in found)
    money = sum(each.cost for each in found)
    return (
        f"{len(found)} tasks: {len(registered)} registered, {len(right)} right by all hidden "
        f"checks; hand-ins of code: median {median(drafts):g}, most {max(drafts)}\n"
        f"{tokens} tokens ({tokens // len(found)} a task), money {money:.4f} "
        f"({money / len(found):.4f} a task); 0 where the model's price is not known"
    )
