"""A draft as a bundle: by itself, or in place of or beside the parent it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from forge.draft import Draft
from forge.naming import server_name, snake
from forge.prose import visible
from sandbox.apispec import APISpec
from sandbox.asked import is_asked
from sandbox.bundle import Bundle, Provenance, ToolDefinition

MAX_WORDS = 4
DESCRIBED = 300
"""So many characters of its task are a server's description."""
_FILLERS = frozenset(
    "a an and also any all as at be by can for from i in into is it me my of on or our please "
    "some that the their them this to us want we with you your need make tool server write".split()
)


@dataclass(frozen=True)
class Purpose:
    """What a draft was asked for: the task, the server's name, and the brief's sha256; and who
    wrote it, with what model where one was asked.
    """

    task: str
    name: str
    prompt_digest: str
    author: str = "client"
    model: str = ""


def reference(bundle: Bundle) -> str:
    """How descendants name a bundle: `name@version:digest`."""
    return f"{bundle.name}@{bundle.version}:{bundle.digest()}"


def bundle_of(draft: Draft, purpose: Purpose, parent: Bundle | None = None) -> Bundle:
    """The bundle of a draft, as version 1. A mutant keeps its parent's API, credentials and source,
    as far as its tools need them.
    """
    title = purpose.name.replace("_", " ").capitalize()
    about = visible(purpose.task, DESCRIBED)
    made = Provenance(
        source=about,
        source_digest=hashlib.sha256(purpose.task.encode("utf-8", "replace")).hexdigest(),
        author=purpose.author,
        model=purpose.model,
        prompt_digest=purpose.prompt_digest,
    )
    if parent is None:
        return Bundle(
            purpose.name,
            1,
            title,
            "",
            draft.source_code,
            draft.tools,
            made,
            permissions=draft.permissions,
            description=about,
        )
    origin = parent.provenance
    same = purpose.name == parent.name
    spec = _needed(parent.spec, draft.tools)
    kept = {p for p in parent.permissions if spec or not p.startswith("network:")}
    return replace(
        parent,
        name=purpose.name,
        version=1,
        title=parent.title if same else title,
        description=parent.description if same else about,
        source_code=draft.source_code,
        tools=draft.tools,
        spec=spec,
        base_url=parent.base_url if spec else "",
        permissions=tuple(sorted({*kept, *draft.permissions})),
        credentials=parent.credentials if spec else (),
        provenance=replace(
            made,
            source=origin.source,
            source_digest=origin.source_digest,
            parent=reference(parent),
        ),
    )


def _needed(spec: APISpec | None, tools: Collection[ToolDefinition]) -> APISpec | None:
    """The API without the operations that no tool calls; None where that leaves none."""
    called = {tool.operation for tool in tools}
    kept = tuple(o for o in spec.operations if o.id in called) if spec else ()
    return replace(spec, operations=kept) if spec and kept else None


def gains(bundle: Bundle, parent: Bundle | None) -> tuple[str, ...]:
    """What a bundle may do that its parent may not: permissions, requests, credentials, and reads
    that were writes, each in words. Without a parent, everything that it may do.
    """
    return tuple(_gains(bundle, parent))


def _gains(bundle: Bundle, parent: Bundle | None) -> Iterator[str]:
    yield from sorted({*bundle.permissions} - {*(parent.permissions if parent else ())})
    before = parent.tools if parent else ()
    asked = {request for tool in before for request in tool.requests}
    written = {r for tool in before if tool.access == "write" for r in tool.requests}
    for tool in bundle.tools:
        for request in tool.requests:
            if is_asked(request):
                continue  # Its permission says as much.
            if request not in asked:
                yield f"{request.method} {request.url[:200]}"
            elif tool.access == "read" and request in written:
                yield f"{tool.name} as a tool that only reads"
    known = parent.credentials if parent else ()
    yield from (f"the credential {c.name}" for c in bundle.credentials if c not in known)


def name_for(task: str, parent: str, taken: Collection[str]) -> str:
    """A free name for a server: the parent's with a number, or the words of the task."""
    words = [
        word for word in snake(task[:200]).split("_") if word not in _FILLERS and len(word) > 1
    ]
    wanted = parent or server_name(" ".join(words[:MAX_WORDS]) or "computation")
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted[: 39 - len(str(number))]}_{number}"
    return name
