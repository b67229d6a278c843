"""Signed rules for flows: values that one server answers may go into another's calls unshown.

A rule is a grant of the permission `flow:SOURCE` to the server that is called. What both servers
were when a person signed it stands in its detail: where either speaks to another API since, or the
called one may reach more, the rule counts for nothing and the values are shown again.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.approvals.granting import add_grant
from orchestrator.approvals.grants import Grants
from registry.database.canonical import hash_text, to_canonical_json
from registry.errors import RowNotFound
from registry.models import Entry
from registry.secrets.signing import Signer
from registry.servers.entries import ServerTable
from sandbox.wire.policy import parse_origin

FLOW = "flow:"


@dataclass(frozen=True)
class FlowRules:
    """Which flows a person allowed for good."""

    grants: Grants
    servers: ServerTable

    def is_allowed(self, source: str, target: str) -> bool:
        """Whether values of the source's answers may go into calls of the target unshown."""
        signed = self.grants.find_permissions(target).get(f"{FLOW}{source}")
        if not signed:
            return False
        try:
            ends = self.servers.get(source), self.servers.get(target)
        except RowNotFound:
            return False
        return signed == hash_ends(*ends)


def allow_flow(grants: Grants, source: Entry, target: Entry, by: str, signer: Signer) -> None:
    """Store a signed rule for the flow from one server to another, as both are. Raises GrantStale,
    OrchestratorError.
    """
    origin = f"{target.name} {FLOW}{source.name}"
    ends = hash_ends(source, target)
    add_grant(grants.store.grants, origin, "permission", by, signer, ends)


def hash_ends(source: Entry, target: Entry) -> str:
    """What a rule is bound to: the APIs of both servers, and what the target may reach."""
    reach = sorted(target.permissions)
    return hash_text(to_canonical_json([_find_api(source), _find_api(target), reach]))


def _find_api(entry: Entry) -> str:
    """The origin of a server's API; of one without, the version itself."""
    origin = parse_origin(entry.base_url) if entry.base_url else None
    return str(origin) if origin else entry.digest
