"""Rights that people took away since a backup was made, kept away in the restored home.

What loosens counts only where nobody took it back since (docs/architecture.md). The home that is
replaced knows what was taken back; a restored audit alone would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.approvals.signed_policy import choose_stricter_state
from registry.approvals.approvals import SENDING, SPENT
from registry.approvals.grants import REVOKED as GRANT_REVOKED
from registry.approvals.rules import REVOKED as RULE_REVOKED
from registry.approvals.rules import USED as RULE_USED
from registry.audit.trail import AuditFacts
from registry.backup.settling import BY, UNKNOWN, RestoredState
from registry.database.audit_chain import SUBJECT
from registry.database.canonical import clean_text
from registry.errors import ApprovalDamaged
from registry.models import EntryState, Grant, GrantKind
from registry.servers.classifications import Classification, Level, is_looser
from registry.store import Store

APPROVED = "approval.approved"
"""The audit row of a person's approval."""
MAX_USES = 10_000
"""Uses of one rule that are told one by one; a rule that was used more often is revoked."""


@dataclass(frozen=True)
class TakenBack:
    """Differences in which the present home is the stricter one. `grants` are those of the backup
    that the present home has not, or has otherwise; `revoked` the newest revoked serial of every
    grant, `classified` the newest serial and the level to keep of operations. `approvals` are the
    requests that a person approved since, each with the audit row that says how it ended.
    """

    grants: tuple[tuple[str, GrantKind], ...] = ()
    revoked: Mapping[tuple[str, str], int] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    uses: Mapping[str, int] = field(default_factory=dict)
    classified: Mapping[tuple[str, str], tuple[int, Level]] = field(default_factory=dict)
    states: Mapping[str, EntryState] = field(default_factory=dict)
    approvals: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0

    def describe(self) -> Iterator[str]:
        """What stays taken away, in words."""
        yield from (f"the grant {origin} ({kind})" for origin, kind in self.grants)
        yield from (f"the source {url}" for url in self.sources)
        yield from (f"the rule {rule}" for rule in self.rules)
        for (server, operation), (_, level) in self.classified.items():
            yield f"{server} {operation} stays classified as {level}"
        yield from (f"{server} stays {state}" for server, state in self.states.items())


def find_taken_back(
    present: Store, now_known: AuditFacts, backup: Store, then_known: AuditFacts, now: float
) -> TakenBack:
    """Compare the present home with the backup. Both audits were read by an `AuditTrail`."""
    servers = {entry.name: entry.state for entry in backup.servers.find()}
    grants = _find_grants(present, backup)
    sources = {source.url: source for source in present.grants.find_sources()}
    return TakenBack(
        grants=grants,
        revoked={
            of: serial
            for of, serial in now_known.revoked_grants.items()
            if serial > then_known.revoked_grants.get(of, 0)
        },
        sources=tuple(
            source.url
            for source in backup.grants.find_sources()
            if sources.get(source.url) != source
        ),
        rules=tuple(sorted(now_known.revoked_rules - then_known.revoked_rules)),
        uses={
            rule: times - then_known.rule_uses[rule]
            for rule, times in now_known.rule_uses.items()
            if times > then_known.rule_uses[rule]
        },
        classified={
            (server, operation): (serial, level)
            for (server, operation), (serial, level) in now_known.classified.items()
            if server in servers
            and serial > then_known.classified.get((server, operation), (0,))[0]
        },
        states={
            server: now_known.states[server]
            for server, state in servers.items()
            if choose_stricter_state(state, now_known.states.get(server, state)) != state
        },
        approvals=dict(_find_approved_since(present, backup, now)),
        epoch=now_known.epoch,
    )


def _find_grants(present: Store, backup: Store) -> tuple[tuple[str, GrantKind], ...]:
    """Those of the backup that the present home has not, or has with another text."""
    known = {_identify(grant) for grant in present.grants.find_grants() if _is_live(grant)}
    found = (grant for grant in backup.grants.find_grants() if _is_live(grant))
    return tuple((grant.origin, grant.kind) for grant in found if _identify(grant) not in known)


def _identify(grant: Grant) -> tuple[object, ...]:
    return grant.origin, grant.kind, grant.serial, grant.detail


def _is_live(grant: Grant) -> bool:
    return grant.serial > grant.revoked


def _find_approved_since(present: Store, backup: Store, now: float) -> Iterator[tuple[str, str]]:
    """The approvals of which a copy of the row could still be believed, with how each ended. One
    that the backup knows as spent is not, nor is one that nobody approved.
    """
    for id in present.approvals.find_ids(limit=1_000_000):
        if _is_spent(backup, id):
            continue
        try:
            approval = present.approvals.get(id)
        except ApprovalDamaged:
            yield id, UNKNOWN
            continue
        undecided = approval.state in ("pending", "expired", "rejected")
        if undecided and not present.audit.has_note(APPROVED, id):
            continue
        if approval.expires > now:
            ended = f"approval.{approval.state}"
            yield id, ended if ended in SPENT and ended != SENDING else UNKNOWN


def _is_spent(store: Store, id: str) -> bool:
    """Whether the audit has that an approval is never carried out again."""
    return any(store.audit.has_note(kind, id) for kind in SPENT)


def keep_taken_back(
    store: Store, state: RestoredState, taken: TakenBack, now: float
) -> tuple[str, ...]:
    """Write into the restored home, whose approvals are settled, what the present one knew. The
    approvals that it had to be told of.
    """
    for origin, kind in taken.grants:
        store.grants.remove_grant(origin, kind, BY, now)
    _revoke_serials(store, state, taken.revoked, now)
    for url in taken.sources:
        store.grants.remove_source(url, now)
    _keep_rules(store, state, taken, now)
    _keep_classifications(store, taken.classified, now)
    for server, stricter in taken.states.items():
        store.servers.set_state(server, stricter, now, BY, "it was before the restore")
    # They may have been carried out since; no copy of their rows is carried out again.
    gone = {id: end for id, end in taken.approvals.items() if not _is_spent(store, id)}
    for end in sorted(set(gone.values())):
        state.note_all(end, ((id, {}) for id in gone if gone[id] == end), now)
    return tuple(gone)


def _revoke_serials(
    store: Store, state: RestoredState, revoked: Mapping[tuple[str, str], int], now: float
) -> None:
    for grant in store.grants.find_grants():
        if grant.serial <= revoked.get((clean_text(grant.origin, SUBJECT), grant.kind), 0):
            store.grants.remove_grant(grant.origin, grant.kind, BY, now)
    notes = (
        (origin, {"kind": kind, "serial": serial}) for (origin, kind), serial in revoked.items()
    )
    state.note_all(GRANT_REVOKED, notes, now)


def _keep_rules(store: Store, state: RestoredState, taken: TakenBack, now: float) -> None:
    often = {rule for rule, times in taken.uses.items() if times > MAX_USES}
    ended = {*taken.rules, *often}
    known = ended & {rule.id for rule in store.rules.find()}
    for rule in known:
        store.rules.revoke(rule, BY, now)
    state.note_all(RULE_REVOKED, ((rule, {}) for rule in ended - known), now)
    counted = {rule: times for rule, times in taken.uses.items() if rule not in often}
    uses: Iterator[tuple[str, Mapping[str, Any]]] = (
        (rule, {}) for rule, times in counted.items() for _ in range(times)
    )
    state.note_all(RULE_USED, uses, now)


def _keep_classifications(
    store: Store, classified: Mapping[tuple[str, str], tuple[int, Level]], now: float
) -> None:
    """Nobody signs these: what is stricter needs no signature, and what is looser counts for
    nothing without one. Their serials end those that were signed before.
    """
    for (server, operation), (serial, level) in classified.items():
        before = store.classifications.find(server).get(operation)
        kept = before.level if before is not None and is_looser(level, before.level) else level
        fresh = Classification(server, operation, kept, (), now, BY)
        while store.classifications.get_next_serial(server, operation) <= serial + 1:
            store.classifications.store_classification(replace(fresh, signature=""))
