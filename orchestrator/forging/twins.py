"""Twins: a server that would do what a registered one does already, under another name. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from registry.models import Entry
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.model import Bundle, compute_operation_digest


def find_twin(entries: Iterable[Entry], bundle: Bundle) -> Entry | None:
    """The registered server of another name that most of whose operations, requests and all, are
    those of a compiled bundle too; None where none shares one.
    """
    own = {compute_operation_digest(tool) for tool in bundle.tools if tool.requests}
    best: tuple[int, Entry] | None = None
    for entry in entries:
        if entry.name == bundle.name or entry.created_by == AUTHOR:
            continue
        shared = sum(tool.operation_digest in own for tool in entry.tools)
        if shared and (best is None or shared > best[0]):
            best = (shared, entry)
    return best[1] if best else None
