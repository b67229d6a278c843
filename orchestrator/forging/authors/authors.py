"""The authors of one process: who could be asked for a job, and asking them."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forge.author import Author, Endpoint
from orchestrator.authorship import Able, Choice, Wanted, choose
from orchestrator.brokers import SOURCES
from orchestrator.budget import DAY_SECONDS, Question, reached
from orchestrator.consents import Consents
from orchestrator.errors import OrchestratorError
from orchestrator.metering import Metered
from orchestrator.modelsettings import OPENAI, ModelSettings
from orchestrator.needs import Needs, budgets, host_needs
from orchestrator.samplers import Samplers
from registry.records import Job
from registry.store import Store
from registry.vault import Vault
from sandbox.brake import Brake
from sandbox.policy import origin_of

KEY = "OPENAI_API_KEY"
"""The vault's name of the endpoint's key, where the environment has none."""


@dataclass
class Authors:
    """Close it after use."""

    settings: ModelSettings
    store: Store
    vault: Vault
    consents: Consents
    brake: Brake
    now: Callable[[], float]
    samplers: Samplers = field(default_factory=Samplers)
    _opened: dict[Endpoint, Any] = field(default_factory=dict)

    def choice(self, wanted: Wanted, job: str, began: str) -> Choice:
        """Who writes for a job, given the author of its last draft, or "". Raises VaultDamaged,
        KeyUnusable.
        """
        return choose(wanted, self._able(job), job, began)

    async def asked(
        self, choice: Choice, job: Job, server: str, alive: Callable[[], object]
    ) -> Author:
        """The model that was chosen, within its budget. Raises AuthorFailed."""
        sampler = self.samplers.author(job.id) if choice.writer == "sampling" else None
        inner = sampler or await self._endpoint_author()
        return self._metered(inner, job.id, server, alive)

    async def endpoint(self, job: str = "", server: str = "") -> Author | None:
        """The configured endpoint for questions of a job (its id) about a server; None where none
        is configured, or a person has to allow it first.
        """
        if not self.configured() or self._lacks():
            return None
        return self._metered(await self._endpoint_author(), job, server, lambda: None)

    async def reader(
        self, wanted: Wanted, job: Job, server: str, alive: Callable[[], object]
    ) -> Author | None:
        """Who reads a job's task for a second time: of those that its order lets be asked the
        endpoint, else the client's own model, asked anew; None where neither can be.
        """
        if wanted in ("", "openai") and self.configured() and not self._lacks():
            author = await self._endpoint_author(self.settings.reader)
            return self._metered(author, job.id, server, alive)
        sampler = self.samplers.author(job.id) if wanted in ("", "sampling") else None
        return self._metered(sampler, job.id, server, alive) if sampler else None

    def configured(self) -> str:
        """The endpoint in words: its model and host; "" where none is configured."""
        if not self.settings.wanted or not (self._key() or self.settings.base_url):
            return ""
        origin = origin_of(self.settings.url)
        host = f"{origin.host}:{origin.port}" if origin else self.settings.url[:100]
        return f"{self.settings.model or 'the only model'} at {host}"

    def can_go_on(self, job: Job) -> bool:
        """Whether this process could ask whoever writes a parked job, or nobody has to be asked."""
        drafts = self.store.drafts(job.id)
        by_hand = bool(drafts) and drafts[-1].author == "client"
        return by_hand or self.samplers.author(job.id) is not None or bool(self.configured())

    async def close(self) -> None:
        for author in self._opened.values():
            await author.close()

    def _able(self, job: str) -> Able:
        configured = self.configured()
        own = self.store.spent_by_job(job)
        since = self.store.spent_since(self.now() - DAY_SECONDS)
        question, given = Question("code", 0, 0.0), budgets(self.consents, job)
        # A job that has begun goes on: only a new one is held against the day's forges here.
        spent = "" if own.forges else reached(self.settings.budget, question, own, since, given)
        return Able(
            endpoint=configured,
            lacks=self._lacks() if configured else {},
            sampling=self.samplers.author(job) is not None,
            spent=spent,
            budgets=given,
        )

    def _key(self) -> str:
        secret = None if self.settings.key else self.vault.get(SOURCES, KEY)
        return self.settings.key or (secret.reveal() if secret else "")

    def _lacks(self) -> Needs:
        """A key of the vault goes only where a person let it: to OpenAI, or a host they named."""
        origin = origin_of(self.settings.url)
        if origin is None:
            raise OrchestratorError(f"OPENAI_BASE_URL {self.settings.url[:100]!r} is no URL.")
        if self.settings.key or self.settings.url == OPENAI or not self._key():
            return {}
        host = f"{origin.host}:{origin.port}"
        return {} if host in self.consents.hosts() else host_needs(host)

    async def _endpoint_author(self, model: str = "") -> Author:
        asked = model or self.settings.model
        place = Endpoint(self.settings.url, asked, self._key(), self.settings.seconds)
        if place not in self._opened:
            # The openai package costs half a second: only who asks pays for it.
            module = await asyncio.to_thread(importlib.import_module, "forge.authors.endpoint")
            self._opened.setdefault(place, module.OpenAIAuthor(place))
        author: Author = self._opened[place]
        return author

    def _metered(
        self, inner: Author, job: str, server: str, alive: Callable[[], object]
    ) -> Metered:
        return Metered(
            inner,
            self.store,
            self.brake,
            self.settings.budget,
            job,
            server,
            partial(budgets, self.consents, job),
            alive,
            self.now,
        )
