"""A bundle in a directory, served by itself without a home: for whoever works on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.asker import Asker, Result
from orchestrator.delivery import delivered
from orchestrator.errors import OrchestratorError
from orchestrator.flat import Card, serve_flat
from orchestrator.listing import flat
from orchestrator.sessions import ReadSessions
from sandbox.broker import Broker
from sandbox.bundle import Bundle, Credential
from sandbox.credentials import CredentialSource
from sandbox.errors import SandboxError
from sandbox.exchange import Upstream
from sandbox.livehttp import LiveHttp
from sandbox.policy import (
    Origin,
    Policy,
    origin_of,
    read_policy,
    token_origins,
    tool_policy,
)
from sandbox.progress import Hearer, unheard
from sandbox.recording import Tape
from sandbox.runner import Outcome, Runner, Session
from sandbox.sender import Paced
from sandbox.throttle import Throttle

RESPONSE_BYTES = 32 * 1024 * 1024
MAX_CREDENTIALS_BYTES = 1 << 20


@dataclass(frozen=True)
class Grants:
    """What the person who started the server allows it, for as long as it runs."""

    private: bool = False
    writes: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict)


async def serve_directory(bundle: Bundle, runner: Runner, grants: Grants) -> None:
    """Serve the bundle on stdin and stdout until end of file."""
    listed = [flat(tool, bundle.base_url) for tool in bundle.tools]
    card = Card(bundle.name, str(bundle.version), bundle.title, _instructions(bundle, grants))
    async with _opened(bundle, runner, grants) as directory:
        await serve_flat(card, listed, directory.answer)


@asynccontextmanager
async def _opened(bundle: Bundle, runner: Runner, grants: Grants) -> AsyncIterator[Directory]:
    wanted = _origins(bundle) | token_origins(bundle.credentials)
    private = wanted if grants.private else frozenset()
    async with LiveHttp(private, response_bytes=RESPONSE_BYTES) as upstream:
        directory = Directory(bundle, runner, grants, upstream)
        try:
            yield directory
        finally:
            await directory.close()


class Directory:
    """Calls the tools of one bundle: reads at once, writes one after the other where allowed.

    Reads and writes have a session each. The policy of the writing one is, while a call runs, that
    call's tool alone, and otherwise empty.
    """

    def __init__(self, bundle: Bundle, runner: Runner, grants: Grants, upstream: Upstream) -> None:
        self._bundle, self._grants, self._upstream = bundle, grants, upstream
        self._credentials = credential_source(bundle.credentials, grants.secrets)
        self._throttle = Throttle()
        self._reads = ReadSessions(runner, lambda _: self._broker(read_policy(bundle)), 0.0)
        self._writes = ReadSessions(runner, self._writing, 0.0)
        self._broker_of_writes = self._broker(Policy(()))
        self._one_write = asyncio.Lock()

    async def answer(self, tool: str, arguments: Mapping[str, Any], asker: Asker) -> Result:
        """The result of a call for a client, which hears of its progress."""
        return await self.call(tool, arguments, asker.heard)

    async def call(
        self, tool: str, arguments: Mapping[str, Any], heard: Hearer = unheard
    ) -> Result:
        """The tool's own result; what was not carried out is an error result that says why."""
        try:
            if self._bundle.tool(tool).access == "read":
                return _result(await self._called(self._reads, tool, arguments, heard))
            if not self._grants.writes:
                return _refusal(f"{tool} writes, and writes were not allowed. {_ALLOW_WRITES}")
            async with self._one_write:
                return _result(await self._written(tool, arguments, heard))
        except SandboxError as error:
            return _refusal(f"{tool}: {error}")

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()

    async def _written(self, tool: str, arguments: Mapping[str, Any], heard: Hearer) -> Outcome:
        await self._writes.lend(self._bundle)
        broker = self._broker_of_writes
        broker.policy = tool_policy(self._bundle, tool)
        try:
            return await self._called(self._writes, tool, arguments, heard)
        finally:
            broker.policy = Policy(())
            self._writes.give_back(self._bundle)

    async def _called(
        self, sessions: ReadSessions, tool: str, arguments: Mapping[str, Any], heard: Hearer
    ) -> Outcome:
        session: Session = await sessions.lend(self._bundle)
        try:
            return await session.call(tool, arguments, tape=Tape(heard=heard))
        except SandboxError:
            await sessions.drop(self._bundle.name, session)
            raise
        finally:
            sessions.give_back(self._bundle)

    def _writing(self, _: Bundle) -> Broker:
        self._broker_of_writes = self._broker(Policy(()))
        return self._broker_of_writes

    def _broker(self, policy: Policy) -> Broker:
        return Broker(
            policy,
            self._upstream,
            credentials=self._credentials,
            throttle=self._throttle,
            paced=Paced(self._bundle.name, self._bundle.paces),
        )


def credential_source(
    declared: tuple[Credential, ...], secrets: Mapping[str, str]
) -> CredentialSource:
    """The secrets by credential name. What an API replaces is held for as long as this runs."""
    held = dict(secrets)
    by_name = {credential.name: credential for credential in declared}
    return CredentialSource(by_name, held.get, keep=held.__setitem__)


def read_secrets(path: Path, declared: tuple[Credential, ...]) -> dict[str, str]:
    """The secrets of a JSON file: credential name -> {"token": …}, {"user": …, "pass": …}, or the
    fields that its kind takes (`toolwright secret set --help`), or the whole secret as a string.

    Raises OrchestratorError. Names that the bundle does not declare are passed over.
    """
    try:
        with path.open("rb") as file:
            given = json.loads(file.read(MAX_CREDENTIALS_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise OrchestratorError(f"{path} cannot be read as JSON: {error}.") from error
    secrets = {}
    for credential in declared:
        entry = given.get(credential.name) if isinstance(given, dict) else None
        secret = _secret(entry, credential.kind) if isinstance(entry, dict) else entry
        if secret and isinstance(secret, str):
            secrets[credential.name] = secret
    return secrets


def _secret(entry: Mapping[str, Any], kind: str) -> str | None:
    if kind in ("basic", "digest") and "user" in entry:
        return f"{entry['user']}:{entry.get('pass', '')}"
    if kind in _OBJECTS and (kind == "template" or not entry.keys() & {"token"}):
        return json.dumps(entry)
    token = entry.get("token")
    return token if isinstance(token, str) else None


_OBJECTS = frozenset({"oauth2", "openIdConnect", "aws-sigv4", "template"})
"""Kinds whose secret may be a JSON object."""


def _origins(bundle: Bundle) -> frozenset[Origin]:
    urls = {request.url.partition("{")[0] for tool in bundle.tools for request in tool.requests}
    return frozenset(origin for origin in map(origin_of, urls) if origin)


def _result(outcome: Outcome) -> Result:
    return delivered(outcome.result, outcome.failure)


def _refusal(reason: str) -> Result:
    return {"isError": True, "content": [{"type": "text", "text": reason}]}


_ALLOW_WRITES = (
    "Start `toolwright run` with --allow-writes while you develop, or register the server with "
    "`toolwright forge` and approve each write."
)


def _instructions(bundle: Bundle, grants: Grants) -> str:
    told = bundle.description or bundle.title
    return told if grants.writes else f"{told} Writes are refused."
