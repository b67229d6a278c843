"""The arrow from a document to a bundle: read, design, write. No model, no network, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from forge.design import ServerSpec, design
from forge.document import Document, Problem, escape
from forge.errors import NameInvalid, NoOperationChosen
from forge.graphql.reader import is_graphql, read_graphql
from forge.openapi import read
from forge.recorded.translation import translated
from forge.render import render
from forge.selection import fitting, only, tagged, with_credentials
from sandbox.apispec import APISpec, SecurityScheme
from sandbox.bundle import NAME, Bundle, Provenance


@dataclass(frozen=True)
class Compilation:
    """A bundle, its base image not yet named, and what of its document it lacks."""

    bundle: Bundle
    problems: tuple[Problem, ...]


def compile_document(
    document: Document,
    *,
    name: str | None = None,
    base_url: str | None = None,
    version: int = 1,
    chosen: Collection[str] = (),
    tags: Collection[str] = (),
    task: str = "",
    auth: Collection[SecurityScheme] = (),
) -> Compilation:
    """Compile every usable operation of an API description, or those that `chosen` patterns match,
    that have one of the `tags` and that fit a `task` in words best (`forge.selection`).

    `name` is by default made from the title; `base_url` replaces the document's servers whole;
    `auth` are credentials that the document forgot. Raises NotAnApiDescription, NoUsableOperation,
    NoOperationChosen or NameInvalid.
    """
    if name is not None and not NAME.match(name):
        raise NameInvalid(name)
    translation = translated(document)
    read_as = read_graphql if is_graphql(document.root) else read
    reading = read_as(translation.document, base_url)
    known = replace(reading.spec, dialect=translation.dialect or reading.spec.dialect)
    spec = fitting(tagged(only(known, chosen), tags), task)
    if not spec.operations:
        raise NoOperationChosen(document.name, ", ".join(filter(None, (*chosen, *tags, task))))
    spec = with_credentials(spec, auth)
    server = design(spec, name)
    bundle = Bundle(
        name=server.name,
        version=version,
        title=server.title,
        description=server.description,
        base_url=server.base_url,
        source_code=render(server),
        tools=tuple(tool.definition for tool in server.tools),
        provenance=Provenance(source=spec.source, source_digest=document.digest),
        permissions=server.permissions,
        credentials=server.credentials,
        spec=spec,
    )
    problems = (*reading.problems, *_trimmed(server, spec))
    return Compilation(bundle, tuple(map(translation.located, problems)))


def _trimmed(server: ServerSpec, spec: APISpec) -> Iterator[Problem]:
    for tool in server.tools:
        for which in tool.trimmed:
            reason = (
                f"the {which} schema of {tool.definition.name} is too large; its inner parts take "
                "any value"
            )
            operation = tool.operation
            pointer = f"/paths/{escape(operation.path)}/{operation.method.lower()}"
            yield Problem(spec.source, pointer, reason)
