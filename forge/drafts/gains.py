"""The permissions that a bundle has and its parent has not, and the names of its descendants."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import is_permission_request


def format_reference(bundle: Bundle) -> str:
    """Format the reference by which descendants name a bundle: `name@version:digest`."""
    return f"{bundle.name}@{bundle.version}:{bundle.compute_digest()}"


def list_gains(bundle: Bundle, parent: Bundle | None) -> tuple[str, ...]:
    """List in words what a bundle may do and its parent may not: permissions, requests,
    credentials, and writes that became reads or less destructive. Without a parent, all that it
    may do.
    """
    return tuple(_iterate_gains(bundle, parent))


def _iterate_gains(bundle: Bundle, parent: Bundle | None) -> Iterator[str]:
    yield from sorted({*bundle.permissions} - {*(parent.permissions if parent else ())})
    before = parent.tools if parent else ()
    asked = {request for tool in before for request in tool.requests}
    written = {r for tool in before if tool.access == "write" for r in tool.requests}
    erasing = {r for tool in before if tool.destructive for r in tool.requests}
    for tool in bundle.tools:
        for request in tool.requests:
            if is_permission_request(request):
                continue  # Its permission says as much.
            if request not in asked:
                yield f"{request.method} {request.url[:200]}"
            elif tool.access == "read" and request in written:
                yield f"{tool.name} as a tool that only reads"
            elif not tool.destructive and request in erasing:
                yield f"{tool.name} as a tool that destroys nothing"
    known = parent.credentials if parent else ()
    yield from (f"the credential {c.name}" for c in bundle.credentials if c not in known)
