"""What a call exchanged with the API: each request in a line with its end, and both whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.control.markup import escape_text, render_badge, render_empty, render_value
from orchestrator.control.values import open_answer, render_data

MAX_HEADERS = 40
MAX_URL = 400


def render_exchanges(exchanges: Iterable[Mapping[str, Any]]) -> str:
    """Exchanges as `orchestrator.gateway.exchange_json.encode_exchange` keeps them."""
    shown = "".join(_render_exchange(each, number) for number, each in enumerate(exchanges, 1))
    return shown or render_empty("Nothing was exchanged with the API.")


def _render_exchange(exchange: Mapping[str, Any], number: int) -> str:
    request, response = (_get_object(exchange.get(name)) for name in ("request", "response"))
    line = escape_text(f"{request.get('method', '')} {request.get('url', '')}", MAX_URL)
    took = exchange.get("elapsed_ms")
    facts = [f"{took:.0f} ms"] if isinstance(took, int | float) else []
    attempts = exchange.get("attempts")
    if isinstance(attempts, int) and attempts > 1:
        facts.append(f"{attempts} attempts")
    return (
        f'<details class="exchange" id="exchange-{number}"><summary><code>{line}</code> '
        f"{_render_end(exchange, response)} <small>{', '.join(facts)}</small></summary>"
        f"<h4>Request</h4>{_render_message(request)}"
        f"<h4>Response</h4>{_render_message(response) if response else _NONE}</details>"
    )


_NONE = "<p>No answer arrived.</p>"


def _get_object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _render_end(exchange: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    """The status of the answer, or why there is none."""
    status = response.get("status")
    if isinstance(status, int):
        return render_badge(str(status), "ok" if status < 400 else "failed")
    told = str(exchange.get("reason") or exchange.get("refusal") or "")
    return f"{render_badge('no answer', 'failed')} {escape_text(told)}"


def _render_message(message: Mapping[str, Any]) -> str:
    headers = message.get("headers")
    lines = [
        f"{pair[0]}: {pair[1]}"
        for pair in (headers if isinstance(headers, list) else [])[:MAX_HEADERS]
        if isinstance(pair, list) and len(pair) == 2
    ]
    return (render_value("\n".join(lines)) if lines else "") + _render_body(message)


def _render_body(message: Mapping[str, Any]) -> str:
    cut = message.get("cut_at")
    told = f"<p><small>Only its first {cut} bytes are kept.</small></p>" if cut else ""
    if "body_base64" in message:
        return "<p>The body is no text.</p>" + told
    body = message.get("body")
    if not isinstance(body, str) or not body:
        return "<p>Without a body.</p>"
    value, _ = open_answer(body)
    return (render_value(value) if isinstance(value, str) else render_data(value)) + told
