"""Answers of an endpoint's chat completions, whole or as a stream of events. All is untrusted.

https://platform.openai.com/docs/api-reference/chat/object and .../chat/streaming.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

EVENT_STREAM = "text/event-stream"
DONE = b"[DONE]"
"""The data of a stream's last event."""


class BodyTooLong(Exception):
    """A response body, an event of it or its text is longer than `most` bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(most)


@dataclass(frozen=True)
class MessageUsage:
    """Tokens as the endpoint reports them, of any type: asked, answered, taken from its cache of
    prompts, and spent on reasoning.
    """

    tokens_in: Any = None
    tokens_out: Any = None
    cached: Any = None
    reasoning: Any = None


@dataclass(frozen=True)
class ChatMessage:
    """A model's message: its text, or the arguments of the tool that it called. `ended` is whether
    it came to its end; `error` is what a stream said that broke off.
    """

    text: str = ""
    called: str = ""
    refusal: str = ""
    finish: str = ""
    model: str = ""
    usage: MessageUsage = field(default_factory=MessageUsage)
    ended: bool = True
    error: str = ""

    @property
    def answer(self) -> str:
        return self.called or self.text


def parse_completion(body: bytes) -> ChatMessage:
    """The message in a whole body; an empty one where there is none."""
    told = parse_object(body)
    choice = _get_first(told.get("choices"))
    message = _as_object(choice.get("message"))
    return ChatMessage(
        text=join_text(message.get("content")),
        called=_join_arguments(message.get("tool_calls")),
        refusal=join_text(message.get("refusal")),
        finish=_as_text(choice.get("finish_reason")),
        model=_as_text(told.get("model")),
        usage=parse_usage(told.get("usage")),
    )


async def read_stream(chunks: AsyncIterator[bytes], most: int) -> ChatMessage:
    """The message that a stream's events add up to. Raises BodyTooLong for an event of more than
    `most` bytes, or a text of more letters.
    """
    parts = _StreamParts()
    # What is left early is closed at once, not when it is collected.
    async with aclosing(_split_lines(chunks, most)) as lines:
        async for line in lines:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == DONE:
                parts.ended = True
                break
            parts.add_event(parse_object(data))
            if parts.error:
                break
            if parts.size > most:
                raise BodyTooLong(most)
    return parts.build_message()


@dataclass
class _StreamParts:
    texts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    finish: str = ""
    model: str = ""
    usage: MessageUsage = field(default_factory=MessageUsage)
    ended: bool = False
    error: str = ""
    size: int = 0

    def add_event(self, event: Mapping[str, Any]) -> None:
        if "error" in event:
            error = event["error"]
            self.error = _as_text(_as_object(error).get("message")) or _as_text(error) or "an error"
        self.model = self.model or _as_text(event.get("model"))
        if isinstance(event.get("usage"), dict):
            self.usage = parse_usage(event["usage"])
        choice = _get_first(event.get("choices"))
        self.finish = _as_text(choice.get("finish_reason")) or self.finish
        delta = _as_object(choice.get("delta"))
        for kept, more in (
            (self.texts, join_text(delta.get("content"))),
            (self.calls, _join_arguments(delta.get("tool_calls"))),
            (self.refusals, join_text(delta.get("refusal"))),
        ):
            if more:
                kept.append(more)
                self.size += len(more)

    def build_message(self) -> ChatMessage:
        return ChatMessage(
            text="".join(self.texts),
            called="".join(self.calls),
            refusal="".join(self.refusals),
            finish=self.finish,
            model=self.model,
            usage=self.usage,
            # Some endpoints end a stream without saying that it is done.
            ended=self.ended or bool(self.finish),
            error=self.error,
        )


async def _split_lines(chunks: AsyncIterator[bytes], most: int) -> AsyncGenerator[bytes]:
    """Lines, each ended by LF or CR LF. Raises BodyTooLong for one of more than `most` bytes."""
    # Only what is new is searched: a line may come in as many pieces as it has bytes.
    line = bytearray()
    async for chunk in chunks:
        head, *ends = chunk.split(b"\n")
        line += head
        for end in ends:
            yield bytes(line).rstrip(b"\r")
            line = bytearray(end)
        if len(line) > most:
            raise BodyTooLong(most)
    if line:
        yield bytes(line)


def parse_usage(told: Any) -> MessageUsage:
    usage = _as_object(told)
    return MessageUsage(
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        _as_object(usage.get("prompt_tokens_details")).get("cached_tokens"),
        _as_object(usage.get("completion_tokens_details")).get("reasoning_tokens"),
    )


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object; anything else gives an empty object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def join_text(content: Any) -> str:
    """A message's text; some endpoints give it in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _join_arguments(calls: Any) -> str:
    """The arguments of the first tool call, or the next piece of them."""
    first = _get_first(calls)
    if first.get("index") not in (None, 0):
        return ""
    return _as_text(_as_object(first.get("function")).get("arguments"))


def _get_first(items: Any) -> dict[str, Any]:
    return _as_object(items[0]) if isinstance(items, list) and items else {}


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
