"""The way out through the host: `toolwright/request`."""

from __future__ import annotations

import binascii

from .answers import Answer
from .errors import BROKER_KINDS, RequestFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .calls import Call
    from .requests import WireRequest

MAX_MESSAGE = 2000


class BrokerTransport:
    """Sends by `exchange`, which takes the params of a `toolwright/request` and gives the host's
    answering message. The host has checked the arguments.
    """

    checks_arguments = True

    def __init__(
        self, base_url: str, exchange: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> None:
        self.base_url, self._exchange = base_url, exchange

    def send(self, request: WireRequest, call: Call) -> Answer:
        params = {
            "kind": "http",
            "call": call.identity,
            "method": request.method,
            "url": request.url,
            "headers": [list(header) for header in request.headers],
            **_body(request.body),
        }
        return self._answered(params)

    def ask(self, kind: str, wanted: Mapping[str, Any], body: bytes, call: Call) -> Answer:
        return self._answered({"kind": kind, "call": call.identity, **wanted, **_body(body)})

    def _answered(self, params: dict[str, Any]) -> Answer:
        message = self._exchange(params)
        if "error" in message:
            raise _failure(message["error"])
        return _answer(message.get("result"))


def _body(body: bytes) -> dict[str, str]:
    if not body:
        return {}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": binascii.b2a_base64(body, newline=False).decode()}


def _answer(result: Any) -> Answer:
    try:
        headers = [(str(name), str(value)) for name, value in result.get("headers", ())]
        if "body_base64" in result:
            data = binascii.a2b_base64(result["body_base64"])
        else:
            data = (result.get("body") or "").encode()
        return Answer(int(result["status"]), headers, data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RequestFailed("unreachable", "the host's answer is not one") from error


def _failure(error: Any) -> RequestFailed:
    error = error if isinstance(error, dict) else {}
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    kind, wait = data.get("kind"), data.get("retry_after")
    return RequestFailed(
        kind if isinstance(kind, str) and kind in BROKER_KINDS else "refused",
        str(error.get("message") or "the host gave no reason")[:MAX_MESSAGE],
        float(wait) if isinstance(wait, int | float) and not isinstance(wait, bool) else None,
    )
