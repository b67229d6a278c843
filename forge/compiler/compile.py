"""Compilation of a document to a bundle: read, design, write. No model, no network, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from forge.compiler.bodies import split_uploads
from forge.compiler.design import ServerSpec, build_credential, design_server
from forge.compiler.render import render_server
from forge.compiler.selection import (
    add_credentials,
    select_by_tags,
    select_for_task,
    select_operations,
)
from forge.errors import NameInvalid, NoOperationChosen
from forge.readers.document import Document, DocumentProblem, escape_token
from forge.readers.graphql.reader import is_graphql, read_graphql
from forge.readers.openapi.reader import read_openapi
from forge.readers.translate import translate_document
from sandbox.bundle.apispec import APISpec, SecurityScheme
from sandbox.bundle.model import NAME, Bundle, Provenance, ToolDefinition
from sandbox.wire.policy import parse_template_origin


@dataclass(frozen=True)
class Compilation:
    """A bundle whose base image is not named yet, and the problems of its document."""

    bundle: Bundle
    problems: tuple[DocumentProblem, ...]


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
    """Compile every usable operation of an API description, or those that match a `chosen` pattern,
    have one of the `tags` and fit a `task` in words best (`forge.compiler.selection`).

    `name` is by default derived from the title; `base_url` replaces the document's servers; `auth`
    are credentials that the document does not declare. Raises NotAnApiDescription,
    NoUsableOperation, NoOperationChosen or NameInvalid.
    """
    if name is not None and not NAME.match(name):
        raise NameInvalid(name)
    translation = translate_document(document)
    read_as = read_graphql if is_graphql(document.root) else read_openapi
    reading = read_as(translation.document, base_url)
    read = replace(reading.spec, dialect=translation.dialect or reading.spec.dialect)
    known = split_uploads(read)
    spec = select_for_task(select_by_tags(select_operations(known, chosen), tags), task)
    if not spec.operations:
        raise NoOperationChosen(document.name, ", ".join(filter(None, (*chosen, *tags, task))))
    spec = add_credentials(spec, auth)
    server = design_server(spec, name)
    bundle = Bundle(
        name=server.name,
        version=version,
        title=server.title,
        description=server.description,
        base_url=server.base_url,
        source_code=render_server(server),
        tools=tuple(tool.definition for tool in server.tools),
        provenance=Provenance(source=spec.source, source_digest=document.digest),
        permissions=server.permissions,
        credentials=server.credentials,
        spec=spec,
    )
    problems = (*reading.problems, *_report_trimmed_schemas(server, spec))
    return Compilation(bundle, tuple(map(translation.locate_problem, problems)))


def _report_trimmed_schemas(server: ServerSpec, spec: APISpec) -> Iterator[DocumentProblem]:
    for tool in server.tools:
        for which in tool.trimmed:
            reason = (
                f"the {which} schema of {tool.definition.name} is too large; its inner parts take "
                "any value"
            )
            operation = tool.operation
            pointer = f"/paths/{escape_token(operation.path)}/{operation.method.lower()}"
            yield DocumentProblem(spec.source, pointer, reason)


def remove_operations(bundle: Bundle, left_out: Collection[str]) -> Bundle | None:
    """Return the bundle designed and rendered anew without these operation ids.

    None where no operation would be left, where nothing would change, or for code without a spec.
    """
    if bundle.spec is None:
        return None
    kept = tuple(o for o in bundle.spec.operations if o.id not in left_out)
    if not kept or len(kept) == len(bundle.spec.operations):
        return None
    spec = replace(bundle.spec, operations=kept)
    server = design_server(spec, bundle.name)
    used = {credential.name for credential in server.credentials}
    return replace(
        bundle,
        base_url=server.base_url,
        source_code=render_server(server),
        tools=tuple(tool.definition for tool in server.tools),
        permissions=server.permissions,
        credentials=tuple(c for c in bundle.credentials if c.name in used),
        spec=spec,
    )


def declare_credentials(
    bundle: Bundle, schemes: Collection[SecurityScheme], *, elsewhere: bool = True
) -> Bundle:
    """Return the bundle with credentials that its description forgot, as
    `forge.compiler.selection.add_credentials`. What the compiler wrote is designed and rendered
    anew; other code stays as it is.
    """
    spec = bundle.spec and add_credentials(bundle.spec, schemes, elsewhere=elsewhere)
    names = {scheme.name for scheme in schemes}
    kept = tuple(credential for credential in bundle.credentials if credential.name not in names)
    if spec is None or bundle.provenance.author != "compiler":
        wanted = {operation.id: operation.security for operation in spec.operations} if spec else {}
        group = tuple(dict.fromkeys(scheme.name for scheme in schemes))
        tools = tuple(
            replace(tool, security=wanted.get(tool.operation) or _add_group(tool, group, elsewhere))
            for tool in bundle.tools
        )
        made = (*kept, *map(build_credential, schemes))
        return replace(bundle, tools=tools, credentials=made, spec=spec)
    server = design_server(spec, bundle.name)
    fresh = tuple(credential for credential in server.credentials if credential.name in names)
    return replace(
        bundle,
        source_code=render_server(server),
        tools=tuple(tool.definition for tool in server.tools),
        credentials=(*kept, *fresh),
        spec=spec,
    )


def _add_group(
    tool: ToolDefinition, group: tuple[str, ...], elsewhere: bool
) -> tuple[tuple[str, ...], ...]:
    """The security of a tool that no operation describes."""
    asks_http = any(parse_template_origin(request.url) for request in tool.requests)
    others = tuple(names for names in tool.security if names and names != group)
    if not asks_http or (others and not elsewhere):
        return tool.security
    return (*others, group, *(names for names in tool.security if others and not names))
