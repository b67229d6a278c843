"""A call's exchanges with the API: each request in a line with its end, and both whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.control.texts import ShownText, cut_text, show_value
from orchestrator.control.values import LongText, ShownData, open_answer, show_data

MAX_HEADERS = 40
MAX_URL = 400


@dataclass(frozen=True)
class ShownMessage:
    """A request or an answer. `body` is None where there is none, or where it is no text;
    `cut_at` is how many bytes are kept where it was longer, else 0.
    """

    headers: ShownText
    body: ShownData | None
    is_binary: bool
    cut_at: int


@dataclass(frozen=True)
class ShownExchange:
    """`status` is "" where no answer arrived; `reason` then says why."""

    line: ShownText
    status: str
    succeeded: bool
    reason: ShownText
    took: str
    request: ShownMessage
    response: ShownMessage | None


def show_exchanges(exchanges: Iterable[Mapping[str, Any]]) -> tuple[ShownExchange, ...]:
    """Exchanges as `orchestrator.gateway.exchange_json.encode_exchange` keeps them."""
    return tuple(map(_show_exchange, exchanges))


def _show_exchange(exchange: Mapping[str, Any]) -> ShownExchange:
    request, response = (_get_object(exchange.get(name)) for name in ("request", "response"))
    status = response.get("status")
    answered = isinstance(status, int)
    reason = "" if answered else str(exchange.get("reason") or exchange.get("refusal") or "")
    return ShownExchange(
        cut_text(f"{request.get('method', '')} {request.get('url', '')}", MAX_URL),
        str(status) if answered else "",
        isinstance(status, int) and status < 400,
        cut_text(reason),
        _describe_time(exchange),
        _show_message(request),
        _show_message(response) if response else None,
    )


def _describe_time(exchange: Mapping[str, Any]) -> str:
    took, attempts = exchange.get("elapsed_ms"), exchange.get("attempts")
    facts = [f"{took:.0f} ms"] if isinstance(took, int | float) else []
    if isinstance(attempts, int) and attempts > 1:
        facts.append(f"{attempts} attempts")
    return ", ".join(facts)


def _get_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _show_message(message: Mapping[str, Any]) -> ShownMessage:
    headers = message.get("headers")
    lines = [
        f"{pair[0]}: {pair[1]}"
        for pair in (headers if isinstance(headers, list) else [])[:MAX_HEADERS]
        if isinstance(pair, list) and len(pair) == 2
    ]
    body, is_binary, cut = _show_body(message), "body_base64" in message, message.get("cut_at")
    kept = cut if isinstance(cut, int) and (is_binary or body is not None) else 0
    return ShownMessage(show_value("\n".join(lines)), body, is_binary, kept)


def _show_body(message: Mapping[str, Any]) -> ShownData | None:
    body = message.get("body")
    if "body_base64" in message or not isinstance(body, str) or not body:
        return None
    value, _ = open_answer(body)
    return LongText(show_value(value)) if isinstance(value, str) else show_data(value)
