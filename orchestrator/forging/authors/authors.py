"""The authors of a process: choosing and opening the endpoint or the client's model for a job."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forge.authors.fallback import FallbackAuthor
from forge.authors.interface import Author, Endpoint
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import count_budgets
from orchestrator.errors import OrchestratorError
from orchestrator.forging.authors.budget import DAY_SECONDS, CostEstimate, find_reached_limit
from orchestrator.forging.authors.choice import AuthorChoice, AuthorOptions, Wanted, choose_author
from orchestrator.forging.authors.metering import MeteredAuthor
from orchestrator.gateway.brokers import SOURCES
from orchestrator.settings import OPENAI, EndpointRole, EndpointSettings, ModelSettings
from registry.jobs.drafts import DRAFTING
from registry.models import Job
from registry.needs import HostNeed
from registry.secrets.vault import Vault
from registry.store import Store
from sandbox.killswitch import KillSwitch
from sandbox.wire.policy import parse_origin

MAX_JOBS = 1000


@dataclass
class SamplingAuthors:
    """The authors of jobs whose clients can sample, while this process lives."""

    _authors: dict[str, Author] = field(default_factory=dict)

    def attach_author(self, job: str, author: Author) -> None:
        """Let the client that asked for a job be asked for its code."""
        while len(self._authors) >= MAX_JOBS:
            del self._authors[next(iter(self._authors))]
        self._authors[job] = author

    def find_author(self, job: str) -> Author | None:
        return self._authors.get(job)


@dataclass
class Authors:
    """Close it after use."""

    settings: ModelSettings
    store: Store
    vault: Vault
    consents: Grants
    kill_switch: KillSwitch
    now: Callable[[], float]
    samplers: SamplingAuthors = field(default_factory=SamplingAuthors)
    _opened: dict[Endpoint, Any] = field(default_factory=dict)

    def choose_for_job(self, wanted: Wanted, job: str, began: str) -> AuthorChoice:
        """Who writes for a job, given the author of its last draft, or "". Raises VaultDamaged,
        KeyUnusable.
        """
        return choose_author(wanted, self._find_options(job), job, began)

    async def open_author(
        self,
        choice: AuthorChoice,
        job: Job,
        server: str,
        alive: Callable[[], object],
        role: EndpointRole = "author",
    ) -> Author:
        """The model that was chosen, within its budget; of the endpoint the one for that role.
        Raises AuthorFailed.
        """
        sampler = self.samplers.find_author(job.id) if choice.writer == "sampling" else None
        if sampler is not None:
            return self._meter_author(sampler, job.id, server, alive)
        return await self._open_role(role, job.id, server, alive)

    async def open_endpoint(self, job: str = "", server: str = "") -> Author | None:
        """The configured endpoint for questions of a job (its id) about a server; None where none
        is configured, or a person has to allow it first.
        """
        if not self.describe_endpoint() or self._find_needs():
            return None
        return await self._open_role("author", job, server, lambda: None)

    async def open_reader(
        self, wanted: Wanted, job: Job, server: str, alive: Callable[[], object]
    ) -> Author | None:
        """Who reads a job's task for a second time: of those that its order lets be asked the
        endpoint, else the client's own model, asked anew; None where neither can be.
        """
        if wanted in ("", "openai") and self.describe_endpoint() and not self._find_needs():
            return await self._open_role("reader", job.id, server, alive)
        sampler = self.samplers.find_author(job.id) if wanted in ("", "sampling") else None
        return self._meter_author(sampler, job.id, server, alive) if sampler else None

    def describe_endpoint(self) -> str:
        """The endpoint in words: its model and host; "" where none is configured."""
        if not self.settings.wanted or not (self._find_key() or self.settings.base_url):
            return ""
        origin = parse_origin(self.settings.url)
        host = f"{origin.host}:{origin.port}" if origin else self.settings.url[:100]
        return f"{self.settings.model or 'the only model'} at {host}"

    def can_resume(self, job: Job) -> bool:
        """Whether this process could ask whoever writes a parked job, or nobody has to be asked."""
        drafts = self.store.drafts.find(job.id)
        by_hand = bool(drafts) and drafts[-1].author == "client"
        return (
            by_hand
            or job.stage != DRAFTING
            or self.samplers.find_author(job.id) is not None
            or bool(self.describe_endpoint())
        )

    async def close(self) -> None:
        for author in self._opened.values():
            await author.close()

    def _find_options(self, job: str) -> AuthorOptions:
        configured = self.describe_endpoint()
        own = self.store.model_usage.sum_for_job(job)
        since = self.store.model_usage.sum_recent(self.now(), DAY_SECONDS)
        question, given = CostEstimate("code", 0, 0.0), count_budgets(self.consents, job)
        # A job that has begun goes on: only a new one is held against the day's forges here.
        spent = (
            None
            if own.forges
            else find_reached_limit(self.settings.budget, question, own, since, given)
        )
        return AuthorOptions(
            endpoint=configured,
            lacks=self._find_needs() if configured else None,
            sampling=self.samplers.find_author(job) is not None,
            spent=spent,
            budgets=given,
        )

    def _find_key(self, endpoint: EndpointSettings | None = None) -> str:
        endpoint = endpoint or self.settings.main
        secret = None if endpoint.key else self.vault.get(SOURCES, endpoint.key_name)
        return endpoint.key or (secret.reveal() if secret else "")

    def _find_needs(self) -> HostNeed | None:
        return self._find_need(self.settings.main)

    def _find_need(self, endpoint: EndpointSettings) -> HostNeed | None:
        """A key of the vault goes only where a person let it: to OpenAI, or a host they named."""
        origin = parse_origin(endpoint.url)
        if origin is None:
            name = endpoint.key_name.removesuffix("API_KEY") + "BASE_URL"
            raise OrchestratorError(f"{name} {endpoint.url[:100]!r} is no URL.")
        if endpoint.key or endpoint.url == OPENAI or not self._find_key(endpoint):
            return None
        host = f"{origin.host}:{origin.port}"
        return None if host in self.consents.find_hosts() else HostNeed(host)

    async def _open_role(
        self, role: EndpointRole, job: str, server: str, alive: Callable[[], object]
    ) -> Author:
        """The endpoints of a role that may be asked, each metered by its own model's price."""
        own = self.settings.list_endpoints(role)
        main = self.settings.main
        first = own[0] if self._find_need(own[0]) is None else main
        others = (each for each in own[1:] if self._find_need(each) is None)
        asked = dict.fromkeys((first, *others))
        authors = [
            self._meter_author(
                await self._open_endpoint_author(endpoint), job, server, alive, endpoint.model
            )
            for endpoint in asked
        ]
        return FallbackAuthor(tuple(authors)) if len(authors) > 1 else authors[0]

    async def _open_endpoint_author(self, endpoint: EndpointSettings) -> Author:
        place = Endpoint(
            endpoint.url,
            endpoint.model,
            self._find_key(endpoint),
            self.settings.seconds,
            effort=self.settings.effort,
        )
        if place not in self._opened:
            # The openai package costs half a second: only who asks pays for it.
            module = await asyncio.to_thread(importlib.import_module, "forge.authors.endpoint")
            self._opened.setdefault(place, module.OpenAIAuthor(place))
        author: Author = self._opened[place]
        return author

    def _meter_author(
        self, inner: Author, job: str, server: str, alive: Callable[[], object], model: str = ""
    ) -> MeteredAuthor:
        return MeteredAuthor(
            inner,
            self.store.model_usage,
            self.kill_switch,
            self.settings.budget,
            job,
            server,
            partial(count_budgets, self.consents, job),
            alive,
            self.now,
            model or self.settings.model,
        )
