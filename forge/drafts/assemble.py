"""Assembly of bundles from drafts, new ones or versions and variants of a parent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from forge.drafts.draft import Draft
from forge.drafts.gains import format_reference
from forge.naming import name_server, to_snake_case
from forge.text import sanitize_line
from sandbox.bundle.apispec import APISpec
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition

MAX_WORDS = 4
MAX_NAMING = 2000
_TOOL = re.compile(r"`([A-Za-z][A-Za-z0-9_]{1,39})\(")
DESCRIBED = 300
"""So many characters of its task are a server's description."""
_FILLERS = frozenset(
    "a an and also any all as at be by can for from i in into is it me my of on or our please "
    "some that the their them this to us want we with you your need make tool server write".split()
)


@dataclass(frozen=True)
class Purpose:
    """The origin of a draft: the task, the server's name, the brief's sha256, the author, and the
    model where one was asked.
    """

    task: str
    name: str
    prompt_digest: str
    author: str = "client"
    model: str = ""


def build_bundle(
    draft: Draft, purpose: Purpose, parent: Bundle | None = None, api: Bundle | None = None
) -> Bundle:
    """Build the bundle of a draft, as version 1. One with a parent keeps the parent's API,
    credentials and source, as far as its tools need them; without one, those of `api`, which was
    compiled from what the draft itself says of its API.
    """
    title = purpose.name.replace("_", " ").capitalize()
    about = sanitize_line(purpose.task, DESCRIBED)
    made = Provenance(
        source=about,
        source_digest=hashlib.sha256(purpose.task.encode("utf-8", "replace")).hexdigest(),
        author=purpose.author,
        model=purpose.model,
        prompt_digest=purpose.prompt_digest,
    )
    if parent is None:
        spec = _select_called_operations(api.spec, draft.tools) if api else None
        base = api if api is not None and spec is not None else None
        return Bundle(
            purpose.name,
            1,
            title,
            base.base_url if base else "",
            draft.source_code,
            draft.tools,
            made,
            permissions=tuple(sorted({*draft.permissions, *(base.permissions if base else ())})),
            credentials=base.credentials if base else (),
            spec=spec,
            description=about,
            paces=base.paces if base else (),
        )
    origin = parent.provenance
    same = purpose.name == parent.name
    spec = _select_called_operations(parent.spec, draft.tools)
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
            parent=format_reference(parent),
        ),
    )


def _select_called_operations(
    spec: APISpec | None, tools: Collection[ToolDefinition]
) -> APISpec | None:
    """Return the API without the operations that no tool calls; None where that leaves none."""
    called = {tool.operation for tool in tools}
    asked = {(request.method, request.url) for tool in tools for request in tool.requests}
    operations = spec.operations if spec else ()
    kept = tuple(o for o in operations if o.id in called or (o.method.upper(), o.url) in asked)
    return replace(spec, operations=kept) if spec and kept else None


def choose_name(task: str, parent: str, taken: Collection[str]) -> str:
    """Choose a free name for a server: the parent's, that of the first tool that the task names as
    `tool(…)`, or the first words of the task; with a number where it is taken.
    """
    tool = _TOOL.search(task[:MAX_NAMING])
    words = [
        word
        for word in to_snake_case(task[:200]).split("_")
        if word not in _FILLERS and len(word) > 1
    ]
    named = " ".join(words[:MAX_WORDS]) or "computation"
    wanted = parent or (to_snake_case(tool[1])[:40].rstrip("_") if tool else name_server(named))
    name, number = wanted, 1
    while name in taken:
        number += 1
        # A name has at most 40 characters, the underscore included.
        name = f"{wanted[: 39 - len(str(number))]}_{number}"
    return name
