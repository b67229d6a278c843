"""Small values that the registry's tests are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from registry.approvals.decisions import build_forgery_check, sign_decision
from registry.models import Approval, CallFailure, Entry, Invocation, Job, RegisteredTool
from registry.secrets.signing import Signer
from registry.store import Store
from registry.trust import Standing
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition
from sandbox.bundle.report import CaseResult, StageReport
from sandbox.wire.exchange import WireRequest, digest_request

BLANK = Standing(
    level="probationary",
    version=1,
    total=0,
    successful=0,
    counted=0,
    window=0,
    ratio=None,
    wilson=0.0,
    score=None,
    ladder_successes=0,
    version_successes=0,
    average_latency_ms=None,
    last_failure=None,
    last_failure_reason="",
)
"""The standing of a server that nobody has called."""
OBJECT = {"type": "object", "properties": {}}


def tool(
    name: str,
    description: str = "",
    access: Any = "read",
    parameters: dict[str, str] | None = None,
) -> RegisteredTool:
    properties = {key: {"description": text} for key, text in (parameters or {}).items()}
    listed = {
        "name": name,
        "description": description or f"{name} it",
        "inputSchema": {"type": "object", "properties": properties},
    }
    return RegisteredTool(name, access, False, json.dumps(listed))


def entry(name: str = "dns", version: int = 1, *tools: RegisteredTool, **changes: Any) -> Entry:
    values: dict[str, Any] = {
        "digest": f"{name}-{version}",
        "title": name.title(),
        "description": f"The {name} API",
        "state": "active",
        "created": 10.0,
        "created_by": "compiler",
        "source": "https://api.example/openapi.json",
        "permissions": ("network:api.example",),
        "base_url": "https://api.example",
        "tools": tools or (tool("list_zones"), tool("create_zone", access="write")),
    }
    return Entry(name, version, **{**values, **changes})


REPORTS = (
    StageReport("static", "passed", 1.5),
    StageReport("mock", "passed", 20.0, (CaseResult("list_zones", "200", "passed", "GET /"),)),
)


def ids() -> Iterator[str]:
    return (f"call{number}" for number in range(10**9))


def invocation(id: str, failed: str | None = None, **changes: Any) -> Invocation:
    values: dict[str, Any] = {
        "entry": "dns",
        "version": 1,
        "tool": "list_zones",
        "access": "read",
        "started": 100.0,
        "latency_ms": 10.0,
        "failure": failed and CallFailure(failed, "it broke"),
    }
    return Invocation(id, **{**values, **changes})


SIGNER = Signer.generate()
"""The key of the person who decides in these tests."""
forgery = build_forgery_check(SIGNER.public)


def approve(store: Store, id: str, by: str = "ann", now: float = 110.0) -> Approval | None:
    """What that person does: look at a request and approve it."""
    shown = store.approvals.get(id)
    signed = sign_decision(shown, True, by, now, SIGNER)
    return store.approvals.decide(id, True, by=by, now=now, signed=signed)


def approval(id: str = "a1", **changes: Any) -> Approval:
    wire = WireRequest("POST", "https://api.example/zones", (("accept", "*/*"),), b"\x00\xff{}")
    values: dict[str, Any] = {
        "entry": "dns",
        "version": 1,
        "tool": "create_zone",
        "arguments": {"name": "example.org", "big": 2**60},
        "wire": wire,
        "wire_digest": digest_request(changes.get("wire", wire)),
        "created": 100.0,
        "expires": 200.0,
    }
    return Approval(id, **{**values, **changes})


def job(id: str = "j1", created: float = 1.0) -> Job:
    return Job(id, "forge", {"task": "list zones"}, created, created)


def bundle(name: str = "dns", version: int = 1, source_code: str = "# code\n") -> Bundle:
    definition = ToolDefinition("list_zones", "List all zones.", OBJECT, OBJECT, "read")
    return Bundle(
        name=name,
        version=version,
        title="DNS",
        base_url="https://api.example",
        source_code=source_code,
        tools=(definition,),
        provenance=Provenance("https://api.example/openapi.json", "0" * 64),
        permissions=("network:api.example",),
    )
