"""MCP sampling: a client's own model as an author, where the client declares it. Deprecated after
revision 2025-11-25. https://modelcontextprotocol.io/specification/2025-11-25/client/sampling

MCP sampling, of the protocol revisions up to 2025-11-25; deprecated since, and asked only of who
declares it. https://modelcontextprotocol.io/specification/2025-11-25/client/sampling
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp.types as types
from mcp import MCPError

from forge.authors.interface import ModelReply, ModelRequest
from forge.authors.json_answers import Completion, append_schema, estimate_tokens, request_answer
from forge.errors import AuthorFailed
from forge.text import sanitize_line
from orchestrator.forging.authors.authors import SamplingAuthors

MODERN = "2026-07-28"
GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError, EOFError)


@dataclass(frozen=True)
class SamplingClients:
    """Remembers which client asked for which job, where its model may be asked."""

    samplers: SamplingAuthors
    seconds: float

    def attach_client(self, context: Any, result: Mapping[str, Any]) -> None:
        """Let the client of a request be asked for the code of the job that it began."""
        told = result.get("structuredContent")
        job = told.get("job") if isinstance(told, Mapping) else None
        if isinstance(job, str) and can_sample(context):
            self.samplers.attach_author(job, SamplingAuthor(context.session, self.seconds))


def can_sample(context: Any) -> bool:
    """Whether the client of a request declared sampling, in an era where a server may ask."""
    if context.protocol_version == MODERN:
        return False
    declared = context.session.client_capabilities
    return declared is not None and declared.sampling is not None


@dataclass(frozen=True)
class SamplingAuthor:
    """Asks the model of one connected client; its user may look at every question."""

    session: Any
    seconds: float = 300.0
    name: str = "sampling"

    async def write(self, ask: ModelRequest) -> ModelReply:
        """See `forge.authors.interface.Author`. Raises AuthorFailed."""
        return await request_answer(ask, partial(self._ask_client, ask))

    async def _ask_client(self, ask: ModelRequest, prompt: str) -> Completion:
        text = append_schema(prompt, ask.answer)
        try:
            async with asyncio.timeout(self.seconds):
                result = await self.session.send_request(
                    _build_request(text, ask.max_tokens), types.CreateMessageResult
                )
        except TimeoutError as error:
            reason = f"the client gave none within {self.seconds:g} s"
            raise AuthorFailed("timeout", reason) from error
        except MCPError as error:
            reason = sanitize_line(f"the client said no: {error}", 300)
            raise AuthorFailed("refused", reason) from error
        except GONE as error:
            raise AuthorFailed("unavailable", "the client is gone") from error
        except ValueError as error:
            reason = sanitize_line(f"the client's answer is no message: {error}", 300)
            raise AuthorFailed("malformed", reason) from error
        said = result.content.text if isinstance(result.content, types.TextContent) else ""
        return Completion(
            said, sanitize_line(result.model, 100), estimate_tokens(text), estimate_tokens(said)
        )


def _build_request(text: str, max_tokens: int) -> types.CreateMessageRequest:
    content = types.TextContent(type="text", text=text)
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=content)], max_tokens=max_tokens
        )
    )
