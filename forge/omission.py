"""A bundle without some of its operations: the compiler's only repair."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from forge.design import design
from forge.render import render
from sandbox.bundle import Bundle


def without_operations(bundle: Bundle, left_out: Collection[str]) -> Bundle | None:
    """The bundle designed and written anew without these operation ids.

    None where nothing would be left, where nothing would change, or for code without a spec.
    """
    if bundle.spec is None:
        return None
    kept = tuple(o for o in bundle.spec.operations if o.id not in left_out)
    if not kept or len(kept) == len(bundle.spec.operations):
        return None
    spec = replace(bundle.spec, operations=kept)
    server = design(spec, bundle.name)
    used = {credential.name for credential in server.credentials}
    return replace(
        bundle,
        base_url=server.base_url,
        source_code=render(server),
        tools=tuple(tool.definition for tool in server.tools),
        permissions=server.permissions,
        credentials=tuple(c for c in bundle.credentials if c.name in used),
        spec=spec,
    )
