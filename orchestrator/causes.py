"""Why a stored call failed, by the definition of the version that it was called under."""

from __future__ import annotations

from orchestrator.shelf import Shelf
from orchestrator.versions import version_of
from registry.cause import Cause, cause_of
from registry.errors import Unknown
from registry.records import Invocation
from registry.store import Store
from sandbox.errors import BundleInvalid


def told_cause(store: Store, shelf: Shelf, call: Invocation) -> Cause | None:
    """The cause of a call's failure; by what is stored of it alone where its version is gone."""
    try:
        bundle = shelf.bundle(version_of(store, call.entry, call.version))
        return cause_of(call, bundle.tool(call.tool))
    except (Unknown, BundleInvalid, KeyError):
        return cause_of(call)
