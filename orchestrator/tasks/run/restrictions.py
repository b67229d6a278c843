"""Servers of which words alone, whoever read them, have nothing called."""

from __future__ import annotations

from forge.documentation.to_openapi import DIALECT
from orchestrator.errors import UnknownTool
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.run.state import get_server
from registry.errors import RegistryError
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid


def is_prose(bundle: Bundle) -> bool:
    """Whether a model read the documentation that a server was compiled from."""
    return bundle.spec is not None and bundle.spec.dialect == DIALECT


def is_restricted(parts: TaskParts, tool: str) -> bool:
    """Whether words alone, whoever read them, may not have a tool called: its server is a third
    party's, experimental, or made from documentation for people.
    """
    try:
        member = parts.roster.get_server(get_server(tool))
    except (UnknownTool, BundleInvalid, RegistryError):
        return True
    outside = member.entry.created_by == AUTHOR or member.bundle.launch is not None
    return outside or member.entry.state != "active" or is_prose(member.bundle)
