"""A small HTTP API on loopback each of whose paths wants another credential, with its own token
endpoint. It says what is wrong, and echoes what it was sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.world.loopback import Answering, served

USER, PASSWORD = "warden", "p4ss-canary-word"
CLIENT, CLIENT_SECRET = "my-app", "cl13nt-canary"
KEY, REFRESH = "k3y-canary-0", "r3fresh-canary"
CANARIES = (PASSWORD, CLIENT_SECRET, KEY, REFRESH, "t0ken-canary")

DOCUMENT = """
openapi: 3.1.0
info: {title: Gatehouse, version: '1'}
paths:
  /open: {get: {operationId: getOpen, responses: &ok {200: {description: ok}}}}
  /key: {get: {operationId: getKey, security: [{key: []}], responses: *ok}}
  /digest: {get: {operationId: getDigest, security: [{dig: []}], responses: *ok}}
  /token: {get: {operationId: getToken, security: [{flow: []}], responses: *ok}}
  /signed: {get: {operationId: getSigned, security: [{sign: []}], responses: *ok}}
  /cert: {get: {operationId: getCert, security: [{tls: []}], responses: *ok}}
  /busy: {get: {operationId: getBusy, security: [{key: []}], responses: *ok}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    dig: {type: http, scheme: digest}
    sign: {type: apiKey, in: header, name: X-Signature}
    tls: {type: mutualTLS}
    flow: {type: oauth2, flows: {clientCredentials: {tokenUrl: /oauth/token, scopes: {}}}}
"""


@dataclass
class Gatehouse:
    """`asked` are the paths that were asked for, in order."""

    url: str
    asked: list[str] = field(default_factory=list)
    tokens: int = 0
    busy: int = 0


@contextmanager
def gatehouse() -> Iterator[Gatehouse]:
    with served(_Answering, Gatehouse) as house:
        yield house


class _Answering(Answering):
    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.world.asked.append(path)
        refusal, headers = self._refusal(path)
        echo = {"sent": dict(self.headers.items()), "url": self.path}
        status = 429 if headers.get("Retry-After") else 401 if refusal else 200
        self.answer_json(status, {"error": refusal, **echo} if refusal else echo, headers.items())

    def do_POST(self) -> None:
        self.world.asked.append(self.path)
        body = self.body().decode()
        form = {key: values[0] for key, values in parse_qs(body).items()}
        pair = base64.b64encode(f"{CLIENT}:{CLIENT_SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {pair}":
            self.answer_json(401, {"error": "invalid_client"})
            return
        self.world.tokens += 1
        token = {"access_token": f"t0ken-canary-{self.world.tokens}", "token_type": "Bearer"}
        rotated = (
            {"refresh_token": f"{REFRESH}-{self.world.tokens}"} if "refresh_token" in form else {}
        )
        self.answer_json(200, {**token, **rotated, "expires_in": 3600})

    def _refusal(self, path: str) -> tuple[str, dict[str, str]]:
        sent = self.headers.get("Authorization") or ""
        if path == "/digest":
            wants = 'Digest realm="r", qop="auth", algorithm=SHA-256, nonce="n1"'
            return "" if _answers(sent, self.path) else "no", {"WWW-Authenticate": wants}
        if path == "/busy":
            self.world.busy += 1
            return ("slow down", {"Retry-After": "1"}) if self.world.busy == 1 else ("", {})
        if path == "/token":
            return "" if sent == f"Bearer t0ken-canary-{self.world.tokens}" else "no", {}
        if path == "/signed":
            text = f"GET\n{self.path}\n{self.headers.get('X-At')}".encode()
            wanted = hmac.new(KEY.encode(), text, "sha256").hexdigest()
            return "" if self.headers.get("X-Signature") == wanted else "no", {}
        name = "X-Forgotten" if path == "/open" else "X-Key"
        return "" if self.headers.get(name) == KEY else "no", {}


def _answers(sent: str, uri: str) -> bool:
    if not sent.startswith("Digest "):
        return False
    part = {k: v.strip('"') for k, v in (p.split("=", 1) for p in sent[7:].split(", "))}
    first = _hash(f"{USER}:r:{PASSWORD}")
    middle = f"n1:{part['nc']}:{part['cnonce']}:auth"
    return part["response"] == _hash(f"{first}:{middle}:{_hash(f'GET:{uri}')}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
