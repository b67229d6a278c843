"""Serving a bundle from its directory, without a home, while it is developed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.flat import serve_flat
from orchestrator.frontends.flat_greeting import ServerInfo
from orchestrator.frontends.protocol import Peer, Result, clean_result, flatten_tool
from orchestrator.gateway.arguments import adapt_arguments, tell_note
from orchestrator.gateway.denial import add_denial, explain_denial
from orchestrator.gateway.sessions import ReadSessions
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.broker.sender import ServerPaces
from sandbox.broker.throttle import Throttle
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.credentials.source import CredentialSource
from sandbox.errors import SandboxError
from sandbox.schemas.accepted import build_listed_schema
from sandbox.session.interface import Outcome, Runner
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Upstream
from sandbox.wire.notifications import Hearer, ignore_progress
from sandbox.wire.policy import (
    Origin,
    Policy,
    build_read_policy,
    build_tool_policy,
    list_token_origins,
    parse_origin,
)

RESPONSE_BYTES = 32 * 1024 * 1024
MAX_CREDENTIALS_BYTES = 1 << 20


@dataclass(frozen=True)
class DirectoryGrants:
    """What the person who started the server allows it, for as long as it runs."""

    private: bool = False
    writes: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict)


async def serve_directory(bundle: Bundle, runner: Runner, grants: DirectoryGrants) -> None:
    """Serve the bundle on stdin and stdout until end of file."""
    listed = [
        flatten_tool(tool, bundle.base_url, build_listed_schema(bundle, tool))
        for tool in bundle.tools
    ]
    card = ServerInfo(
        bundle.name, str(bundle.version), bundle.title, _render_instructions(bundle, grants)
    )
    async with _open_directory(bundle, runner, grants) as directory:
        await serve_flat(card, listed, directory.answer_call)


@asynccontextmanager
async def _open_directory(
    bundle: Bundle, runner: Runner, grants: DirectoryGrants
) -> AsyncIterator[BundleDirectory]:
    wanted = _find_origins(bundle) | list_token_origins(bundle.credentials)
    private = wanted if grants.private else frozenset()
    async with LiveHttp(private, response_bytes=RESPONSE_BYTES) as upstream:
        directory = BundleDirectory(bundle, runner, grants, upstream)
        try:
            yield directory
        finally:
            await directory.close()


class BundleDirectory:
    """Calls the tools of one bundle: reads at once, writes one after the other where allowed.

    Reads and writes have a session each. The policy of the writing one is, while a call runs, that
    call's tool alone, and otherwise empty.
    """

    def __init__(
        self, bundle: Bundle, runner: Runner, grants: DirectoryGrants, upstream: Upstream
    ) -> None:
        self._bundle, self._grants, self._upstream = bundle, grants, upstream
        self._credentials = build_credential_source(bundle.credentials, grants.secrets)
        self._throttle = Throttle()
        self._reads = ReadSessions(
            runner, lambda _: self._build_broker(build_read_policy(bundle)), 0.0
        )
        self._writes = ReadSessions(runner, self._open_write_broker, 0.0)
        self._broker_of_writes = self._build_broker(Policy(()))
        self._one_write = asyncio.Lock()

    async def answer_call(self, tool: str, arguments: Mapping[str, Any], asker: Peer) -> Result:
        """The result of a call for a client, which hears of its progress."""
        return await self.call_tool(tool, arguments, asker.heard)

    async def call_tool(
        self, tool: str, arguments: Mapping[str, Any], heard: Hearer = ignore_progress
    ) -> Result:
        """The tool's own result; what was not carried out is an error result that says why."""
        definition = self._bundle.get_tool(tool)
        read = adapt_arguments(self._bundle, definition, arguments)
        try:
            if definition.access == "read" and not read.asks:
                outcome = await self._call_in_session(self._reads, tool, read.arguments, heard)
            elif not self._grants.writes:
                asks = definition.access == "read"
                what = f"may not read here ({read.asks})" if asks else "writes"
                return _build_refusal(
                    f"{tool} {what}, and writes were not allowed. {_ALLOW_WRITES}"
                )
            else:
                async with self._one_write:
                    outcome = await self._call_write(tool, read.arguments, heard)
            denial = explain_denial(self._bundle, tool, outcome, self._credentials)
            outcome = add_denial(outcome, denial) if denial else outcome
            return _build_result(tell_note(outcome, read.note) if read.note else outcome)
        except SandboxError as error:
            return _build_refusal(f"{tool}: {error}")

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()

    async def _call_write(self, tool: str, arguments: Mapping[str, Any], heard: Hearer) -> Outcome:
        lent = await self._writes.lend_session(self._bundle)
        broker = self._broker_of_writes
        broker.policy = build_tool_policy(self._bundle, tool)
        try:
            return await self._call_in_session(self._writes, tool, arguments, heard)
        finally:
            broker.policy = Policy(())
            lent.give_back()

    async def _call_in_session(
        self, sessions: ReadSessions, tool: str, arguments: Mapping[str, Any], heard: Hearer
    ) -> Outcome:
        lent = await sessions.lend_session(self._bundle)
        try:
            return await lent.session.call(tool, arguments, tape=CallLog(heard=heard))
        except SandboxError:
            await sessions.drop_sessions(self._bundle.name, lent.session)
            raise
        finally:
            lent.give_back()

    def _open_write_broker(self, _: Bundle) -> Broker:
        self._broker_of_writes = self._build_broker(Policy(()))
        return self._broker_of_writes

    def _build_broker(self, policy: Policy) -> Broker:
        return Broker(
            policy,
            self._upstream,
            credentials=self._credentials,
            throttle=self._throttle,
            paced=ServerPaces(self._bundle.name, self._bundle.paces),
        )


def build_credential_source(
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
        secret = _parse_secret(entry, credential.kind) if isinstance(entry, dict) else entry
        if secret and isinstance(secret, str):
            secrets[credential.name] = secret
    return secrets


def _parse_secret(entry: Mapping[str, Any], kind: str) -> str | None:
    if kind in ("basic", "digest") and "user" in entry:
        return f"{entry['user']}:{entry.get('pass', '')}"
    if kind in _OBJECTS and (kind == "template" or not entry.keys() & {"token"}):
        return json.dumps(entry)
    token = entry.get("token")
    return token if isinstance(token, str) else None


_OBJECTS = frozenset({"oauth2", "openIdConnect", "aws-sigv4", "template"})
"""Kinds whose secret may be a JSON object."""


def _find_origins(bundle: Bundle) -> frozenset[Origin]:
    urls = {request.url.partition("{")[0] for tool in bundle.tools for request in tool.requests}
    return frozenset(origin for origin in map(parse_origin, urls) if origin)


def _build_result(outcome: Outcome) -> Result:
    return clean_result(outcome.delivered, outcome.failure)


def _build_refusal(reason: str) -> Result:
    return {"isError": True, "content": [{"type": "text", "text": reason}]}


_ALLOW_WRITES = (
    "Start `toolwright run` with --allow-writes while you develop, or register the server with "
    "`toolwright forge` and approve each write."
)


def _render_instructions(bundle: Bundle, grants: DirectoryGrants) -> str:
    told = bundle.description or bundle.title
    return told if grants.writes else f"{told} Writes are refused."
