"""An author that keeps to its budget, stops while frozen, and reuses the answer to a repeated
question.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from forge.authors.interface import Author, ModelReply, ModelRequest
from forge.authors.json_answers import estimate_tokens
from forge.errors import AuthorFailed
from orchestrator.approvals.needs import render_line
from orchestrator.errors import BudgetSpent
from orchestrator.forging.authors.budget import DAY_SECONDS, CostEstimate, find_reached_limit
from orchestrator.settings import Budget
from registry.jobs.model_usage import ModelCall, ModelUsageTable
from registry.needs import BudgetLine
from sandbox.errors import Frozen
from sandbox.killswitch import KillSwitch

LOOK_SECONDS = 1.0
UNKNOWN = frozenset({"timeout", "endless"})
"""Failures after which the endpoint may have charged for all that was asked."""


@dataclass(frozen=True)
class MeteredAuthor:
    """An author for one job's questions about one server. Each is a row before it is asked.

    `allowed` tells how many budgets more a person gave the job. `alive` is asked every second and
    raises where the job is no longer ours (JobLost). `model` is the one that is asked, by whose
    price a question is estimated; "" where the endpoint chooses.
    """

    inner: Author
    model_usage: ModelUsageTable
    kill_switch: KillSwitch
    budget: Budget
    job: str
    server: str
    allowed: Callable[[], int] = lambda: 0
    alive: Callable[[], object] = lambda: None
    now: Callable[[], float] = time.time
    model: str = ""

    @property
    def name(self) -> str:
        return self.inner.name

    async def write(self, ask: ModelRequest) -> ModelReply:
        """The answer; the earlier one where this job had one to the very same question.

        Raises AuthorFailed, BudgetSpent, Frozen, and what `alive` raises.
        """
        digest = hash_request(ask)
        kept = self.model_usage.find_answer(self.job, digest) if self.job else None
        if kept is not None:
            return ModelReply(
                kept.content, kept.model, kept.tokens_in, kept.tokens_out, kept.seconds
            )
        self.kill_switch.raise_if_engaged()
        call = self._begin_call(ask, digest)
        try:
            reply = await self._write_unless_frozen(ask)
        except AuthorFailed as error:
            spent = (error.tokens_in, error.tokens_out)
            if error.kind in UNKNOWN:
                spent = (max(call.tokens_in, spent[0]), max(call.tokens_out, spent[1]))
            self._end_call(replace(call, state="failed", message=error.reason), *spent)
            raise
        except BaseException as error:
            # What was cut may have been paid for: it counts as the most that it could cost.
            message = f"cut: {type(error).__name__}"
            cut = replace(call, state="failed", message=message)
            self._end_call(cut, call.tokens_in, call.tokens_out)
            raise
        answered = replace(call, state="answered", model=reply.model, content=reply.content)
        self._end_call(answered, reply.tokens_in, reply.tokens_out, reply.cached)
        return reply

    def _begin_call(self, ask: ModelRequest, digest: str) -> ModelCall:
        tokens_in = estimate_tokens(ask.prompt) + estimate_tokens(json.dumps(dict(ask.answer)))
        call = ModelCall(
            job=self.job,
            server=self.server,
            purpose=ask.purpose,
            author=self.name,
            prompt=ask.prompt,
            prompt_digest=digest,
            started=self.now(),
            tokens_in=tokens_in,
            tokens_out=ask.max_tokens,
            cost=self._compute_cost(tokens_in, ask.max_tokens, self.model),
        )
        question = CostEstimate(ask.purpose, call.tokens, call.cost)
        verdict = partial(find_reached_limit, self.budget, question, allowed=self.allowed())
        begun = self.model_usage.begin_call(call, self.now() - DAY_SECONDS, verdict)
        if isinstance(begun, BudgetLine):
            raise BudgetSpent(begun, render_line(begun))
        return begun

    def _end_call(self, call: ModelCall, tokens_in: int, tokens_out: int, cached: int = 0) -> None:
        seconds = self.now() - call.started
        cost = self._compute_cost(tokens_in, tokens_out, call.model or self.model, cached)
        spent = replace(
            call, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost, seconds=seconds
        )
        self.model_usage.end_call(spent, self.now())

    def _compute_cost(self, tokens_in: int, tokens_out: int, model: str, cached: int = 0) -> float:
        """A client's own model costs us nothing. What an endpoint calls its model is its own word:
        it costs no less than the one that was asked.
        """
        if self.name != "openai":
            return 0.0
        told = self.budget.compute_cost(tokens_in, tokens_out, model, cached)
        return max(told, self.budget.compute_cost(tokens_in, tokens_out, self.model, cached))

    async def _write_unless_frozen(self, ask: ModelRequest) -> ModelReply:
        """The answer, cut at once by a freeze, and within a second where the job is lost."""
        asked = asyncio.ensure_future(self.inner.write(ask))
        try:
            with self.kill_switch.on_engage(partial(_cancel_future, asked)):
                while not asked.done():
                    await asyncio.wait({asked}, timeout=LOOK_SECONDS)
                    if not asked.done():
                        self.alive()
        finally:
            asked.cancel()
        if asked.cancelled():
            raise Frozen
        return asked.result()


def _cancel_future(asked: asyncio.Future[ModelReply]) -> None:
    asked.cancel()


def hash_request(ask: ModelRequest) -> str:
    """sha256 over everything that is asked, in hex."""
    told = json.dumps([ask.purpose, ask.prompt, dict(ask.answer), ask.max_tokens], sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
