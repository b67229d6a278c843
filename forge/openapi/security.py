"""Security schemes and which of them an operation asks for."""

from __future__ import annotations

from typing import Any, Literal

from forge.openapi.context import Context
from forge.openapi.references import Node, Unresolved
from forge.prose import visible
from sandbox.apispec import SecurityScheme

Kind = Literal["apiKey", "bearer", "basic", "oauth2", "openIdConnect", "other"]
MAX_ALTERNATIVES = 32


def schemes(context: Context) -> dict[str, SecurityScheme]:
    """The schemes by the name that requirements use for them."""
    root = context.references.root
    listed = (
        root.get("securityDefinitions")
        if context.dialect == "2.0"
        else root.get("components").get("securitySchemes")
    )
    made = {}
    for name, written in listed.items():
        try:
            node = context.references.follow(written)
        except Unresolved as error:
            context.problems.add(error.problem)
            continue
        made[name] = _scheme(context, node, visible(name, 80) or "credential")
    return made


def requirements(
    context: Context, operation: Node, known: dict[str, SecurityScheme]
) -> tuple[tuple[str, ...], ...]:
    """The alternatives of an operation, its own or the document's."""
    node = operation.get("security")
    if node.value is None:
        node = context.references.root.get("security")
    alternatives = []
    for entry in node.elements()[:MAX_ALTERNATIVES]:
        names = list(entry.value) if isinstance(entry.value, dict) else []
        unknown = [name for name in names if name not in known]
        if unknown or not isinstance(entry.value, dict):
            shown = visible(", ".join(unknown), 80)
            reason = f"no security scheme is called {shown!r}; alternatives with it are left out"
            context.problems.add(context.references.root.problem(reason))
        else:
            alternatives.append(tuple(known[name].name for name in names))
    return tuple(dict.fromkeys(alternatives))


def unapplied(context: Context, known: dict[str, SecurityScheme]) -> tuple[tuple[str, ...], ...]:
    """Each scheme of a document that describes some and asks for none anywhere, and anonymous: the
    author forgot to say where they apply, so a credential that is given is sent.
    """
    root = context.references.root
    if not known or root.get("security").value is not None:
        return ()
    for _, path in root.get("paths").items():
        if any(operation.get("security").value is not None for _, operation in path.items()):
            return ()
    usable = [(scheme.name,) for scheme in known.values() if scheme.kind != "other"]
    return (*dict.fromkeys(usable), ()) if usable else ()


def _scheme(context: Context, node: Node, name: str) -> SecurityScheme:
    kind, place, parameter = (node.get(key).value for key in ("type", "in", "name"))
    if kind == "apiKey" and place in ("header", "query", "cookie") and _usable(parameter):
        return SecurityScheme(name, "apiKey", place, parameter)
    if kind == "apiKey":
        reason = "an apiKey needs `in` and `name`; its credential cannot be sent"
        context.problems.add(node.problem(reason))
    made = SecurityScheme(name, _kind(kind, node.get("scheme").value))
    if made.kind == "other" and kind != "apiKey":
        shown = visible(node.get("scheme").value or kind, 40)
        reason = f"{shown!r} cannot be used; operations that want it need another way in"
        context.problems.add(node.problem(reason))
    return made


def _usable(parameter: Any) -> bool:
    return isinstance(parameter, str) and parameter.isprintable() and 0 < len(parameter) <= 200


def _kind(kind: Any, scheme: Any) -> Kind:
    word = str(scheme).strip().lower()
    if kind == "basic" or (kind == "http" and word == "basic"):
        return "basic"
    if kind == "http" and word == "bearer":
        return "bearer"
    if kind == "oauth2":
        return "oauth2"
    return "openIdConnect" if kind == "openIdConnect" else "other"
