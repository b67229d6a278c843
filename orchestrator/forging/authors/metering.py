"""A model that is asked within its budget, never while frozen, and never twice for one answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from forge.author import Ask, Author, Reply
from forge.authors.answer import tokens_of
from forge.errors import AuthorFailed, BudgetSpent
from orchestrator.budget import DAY_SECONDS, Budget, Question, reached
from registry.modelcalls import ModelCall
from registry.store import Store
from sandbox.brake import Brake
from sandbox.errors import Frozen

LOOK_SECONDS = 1.0
UNKNOWN = frozenset({"timeout", "endless"})
"""Failures after which the endpoint may have charged for all that was asked."""


@dataclass(frozen=True)
class Metered:
    """An author for one job's questions about one server. Each is a row before it is asked.

    `allowed` tells how many budgets more a person gave the job. `alive` is asked every second and
    raises where the job is no longer ours (JobLost).
    """

    inner: Author
    store: Store
    brake: Brake
    budget: Budget
    job: str
    server: str
    allowed: Callable[[], int] = lambda: 0
    alive: Callable[[], object] = lambda: None
    now: Callable[[], float] = time.time

    @property
    def name(self) -> str:
        return self.inner.name

    async def write(self, ask: Ask) -> Reply:
        """The answer; the earlier one where this job had one to the very same question.

        Raises AuthorFailed, BudgetSpent, Frozen, and what `alive` raises.
        """
        digest = digest_of(ask)
        kept = self.store.answered_call(self.job, digest) if self.job else None
        if kept is not None:
            return Reply(kept.content, kept.model, kept.tokens_in, kept.tokens_out, kept.seconds)
        self.brake.check()
        call = self._begun(ask, digest)
        try:
            reply = await self._unless_frozen(ask)
        except AuthorFailed as error:
            spent = (error.tokens_in, error.tokens_out)
            if error.kind in UNKNOWN:
                spent = (max(call.tokens_in, spent[0]), max(call.tokens_out, spent[1]))
            self._ended(replace(call, state="failed", message=error.reason), *spent)
            raise
        except BaseException as error:
            # What was cut may have been paid for: it counts as the most that it could cost.
            message = f"cut: {type(error).__name__}"
            cut = replace(call, state="failed", message=message)
            self._ended(cut, call.tokens_in, call.tokens_out)
            raise
        answered = replace(call, state="answered", model=reply.model, content=reply.content)
        self._ended(answered, reply.tokens_in, reply.tokens_out)
        return reply

    def _begun(self, ask: Ask, digest: str) -> ModelCall:
        tokens_in = tokens_of(ask.prompt) + tokens_of(json.dumps(dict(ask.answer)))
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
            cost=self._cost(tokens_in, ask.max_tokens),
        )
        question = Question(ask.purpose, call.tokens, call.cost)
        verdict = partial(reached, self.budget, question, allowed=self.allowed())
        begun = self.store.begin_model_call(call, self.now() - DAY_SECONDS, verdict)
        if isinstance(begun, str):
            raise BudgetSpent(begun)
        return begun

    def _ended(self, call: ModelCall, tokens_in: int, tokens_out: int) -> None:
        seconds = self.now() - call.started
        cost = self._cost(tokens_in, tokens_out)
        spent = replace(
            call, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost, seconds=seconds
        )
        self.store.end_model_call(spent, self.now())

    def _cost(self, tokens_in: int, tokens_out: int) -> float:
        """A client's own model costs us nothing."""
        return self.budget.cost(tokens_in, tokens_out) if self.name == "openai" else 0.0

    async def _unless_frozen(self, ask: Ask) -> Reply:
        """The answer, cut at once by a freeze, and within a second where the job is lost."""
        asked = asyncio.ensure_future(self.inner.write(ask))
        try:
            with self.brake.on_engage(partial(_cancel, asked)):
                while not asked.done():
                    await asyncio.wait({asked}, timeout=LOOK_SECONDS)
                    if not asked.done():
                        self.alive()
        finally:
            asked.cancel()
        if asked.cancelled():
            raise Frozen
        return asked.result()


def _cancel(asked: asyncio.Future[Reply]) -> None:
    asked.cancel()


def digest_of(ask: Ask) -> str:
    """sha256 over everything that is asked, in hex."""
    told = json.dumps([ask.purpose, ask.prompt, dict(ask.answer), ask.max_tokens], sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
