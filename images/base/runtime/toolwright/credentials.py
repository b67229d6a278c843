"""Credentials from the environment, for a server that runs without Toolwright."""

from __future__ import annotations

import binascii
import re

from .errors import RequestFailed
from .requests import WireRequest
from .values import percent_encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

KINDS = ("apiKey", "bearer", "basic")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class EnvironmentCredentials:
    """The credentials of one server. `declared` is the manifest's `credentials`."""

    def __init__(
        self, server: str, declared: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
    ) -> None:
        self._server, self._environment = server, environment
        self._declared = {str(item["name"]): item for item in declared}

    def add(self, request: WireRequest, security: Sequence[Sequence[str]]) -> WireRequest:
        """The request with the first alternative of credentials that the environment holds.

        Raises RequestFailed (`refused`), saying what to set, where one is needed and none is there.
        """
        for alternative in security:
            if alternative and all(self._secret(name) for name in alternative):
                return self._with(request, alternative)
        if not security or any(not alternative for alternative in security):
            return request
        raise RequestFailed("refused", self._advice(security))

    def _with(self, request: WireRequest, names: Sequence[str]) -> WireRequest:
        for name in names:
            secret = self._secret(name)
            if _CONTROL.search(secret):
                variable = variable_name(self._server, name)
                raise RequestFailed("refused", f"{variable} holds a control character")
            request = _added(request, self._declared[name], secret)
        return request

    def _secret(self, name: str) -> str:
        """The secret of a credential that can be used here, or nothing."""
        usable = self._declared.get(name, {}).get("kind") in KINDS
        return (
            self._environment.get(variable_name(self._server, name), "").strip() if usable else ""
        )

    def _advice(self, security: Sequence[Sequence[str]]) -> str:
        ways = []
        for alternative in security:
            kinds = {name: self._declared.get(name, {}).get("kind") for name in alternative}
            foreign = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in KINDS]
            wanted = [variable_name(self._server, name) for name in alternative]
            ways.append(
                f"{', '.join(foreign)} works only under Toolwright"
                if foreign
                else f"set {' and '.join(wanted)} in the environment"
            )
        return "the API wants a credential: " + ", or ".join(ways)


def variable_name(server: str, scheme: str) -> str:
    """`<SERVER>_<SCHEME>` in upper case, anything but letters and digits as `_`."""
    return re.sub(r"[^A-Z0-9]", "_", f"{server}_{scheme}".upper())


def _added(request: WireRequest, declared: Mapping[str, Any], secret: str) -> WireRequest:
    name, place = str(declared.get("parameter") or "Authorization"), declared.get("location")
    url, headers = request.url, list(request.headers)
    if declared["kind"] == "bearer":
        headers.append(("authorization", f"Bearer {secret}"))
    elif declared["kind"] == "basic":
        encoded = binascii.b2a_base64(secret.encode(), newline=False).decode()
        headers.append(("authorization", f"Basic {encoded}"))
    elif place == "query":
        url += f"{'&' if '?' in url else '?'}{percent_encode(name)}={percent_encode(secret)}"
    elif place == "cookie":
        own = [value for key, value in headers if key == "cookie"]
        headers = [header for header in headers if header[0] != "cookie"]
        headers.append(("cookie", "; ".join([*own, f"{name}={secret}"])))
    else:
        headers = [header for header in headers if header[0] != name.lower()]
        headers.append((name.lower(), secret))
    return WireRequest(request.method, url, headers, request.body)
