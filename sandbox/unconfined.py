"""Third-party servers without a cage, where a person chose that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.leashed import leashed
from sandbox.mcp_session import McpSession
from sandbox.outfit import LIMITS, Outfitter
from sandbox.redaction import Redaction
from sandbox.runner import Limits, Session


class UnconfinedRunner:
    """Opens sessions with servers that a person chose to run without a cage: a `Runner` for those.

    They are plain processes of ours: what they declare is not enforced. They are killed with the
    brake, at the session's end, and when this process dies. `inherited` is all they get of our
    environment.
    """

    def __init__(
        self,
        outfit: Outfitter,
        *,
        inherited: Mapping[str, str],
        brake: Brake | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._outfit, self._inherited = outfit, dict(inherited)
        self._brake = brake or Brake()
        self._limits = limits or LIMITS

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the server. Raises SessionBroken, DefinitionsChanged, PermissionMissing,
        Frozen.
        """
        self._brake.check()
        launch = bundle.launch
        assert launch is not None
        outfit = self._outfit(bundle)
        environment = {**self._inherited, **launch.environment, **outfit.environment}
        async with leashed(launch.command, environment) as process:
            secrets = Redaction(outfit.environment.values())
            session = McpSession(bundle, broker, limits or self._limits, process, secrets)
            process.bind(session)
            async with session.running(self._brake):
                yield session
