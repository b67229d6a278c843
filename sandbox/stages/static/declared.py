"""Rules on what code uses that its bundle does not declare: permissions, and plain secrets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.bundle.model import Bundle
from sandbox.bundle.source import ParsedSource, get_called_name
from sandbox.plain_secrets import find_secrets_in_code
from sandbox.wire.policy import list_granted_hosts, parse_origin

COMPILER = "compiler"
Found = Iterator[tuple[int, str]]
"""Line and detail of each place that breaks a rule."""
_KINDS = {
    "files": ("fs",),
    "environment": ("env",),
    "servers": ("call",),
    "network": ("dns", "tls", "tcp"),
}
"""The runtime's modules that reach out of the sandbox: each needs one of these permissions."""
_ASKING = {"network.dns": "dns", "network.tls_peer": "tls", "network.tcp": "tcp"}
_DECLARED = {
    "fs": "fs:/path:ro",
    "env": "env:NAME",
    "call": "call:SERVER.TOOL",
    "dns": "dns:ZONE",
    "tls": "tls:HOST:PORT",
    "tcp": "tcp:HOST:PORT",
}


def undeclared_use(source: ParsedSource, bundle: Bundle) -> Found:
    """Something of this machine or the network is used that the bundle does not declare."""
    kinds = {permission.partition(":")[0] for permission in bundle.permissions}
    for line, module in _find_imports(source):
        wanted = _KINDS[module]
        if not kinds & {*wanted}:
            told = " or ".join(f"{kind}:…" for kind in wanted)
            yield (
                line,
                f"toolwright.{module} without a permission {told}; {_format_advice(wanted[0])}",
            )
    hosts = list_granted_hosts(bundle)
    for node in source.find_nodes(ast.Call):
        called = get_called_name(node).removeprefix("toolwright.")
        text = next((str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant)), "")
        if called in _ASKING and _ASKING[called] not in kinds:
            kind = _ASKING[called]
            yield node.lineno, f"{called} without a permission {kind}:…; {_format_advice(kind)}"
        elif called == "servers.call" and f"call:{text}" not in bundle.permissions and text:
            yield node.lineno, f"{f'call:{text}'[:120]}; {_format_advice('call')}"
        elif called == "environment.get" and f"env:{text}" not in bundle.permissions and text:
            yield node.lineno, f"{f'env:{text}'[:120]}; {_format_advice('env')}"
        elif called == "http.request":
            yield from ((node.lineno, url) for url in _find_undeclared_urls(node, hosts))


def plain_secret(source: ParsedSource, bundle: Bundle) -> Found:
    """A secret stands in the code; keep it in the vault, for a credential or "env:NAME"."""
    # The compiler's constants are an API's own, examples among them.
    if bundle.provenance.author != COMPILER:
        yield from ((each.line, each.kind) for each in find_secrets_in_code(bundle.source_code))


def _format_advice(kind: str) -> str:
    """The sentence that says what the tool's author can do."""
    return f'declare it in the tool: "permissions": ["{_DECLARED[kind]}"], which a person grants'


def _find_imports(source: ParsedSource) -> Iterator[tuple[int, str]]:
    for node in source.find_nodes(ast.Import, ast.ImportFrom):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        for module in _KINDS:
            if f"toolwright.{module}" in names:
                yield getattr(node, "lineno", 0), module


def _find_undeclared_urls(node: ast.Call, hosts: frozenset[str]) -> Iterator[str]:
    """The absolute URLs that a request is written with whose host was not declared."""
    for each in node.args:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and "://" in each.value:
            origin = parse_origin(each.value.replace("{", "").replace("}", ""))
            if origin is None or not {origin.host, f"{origin.host}:{origin.port}"} & hosts:
                yield each.value[:120]
