"""Where the registry's tables differ from what the audit and people's signatures say."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.approvals.freezing import LIFTING, UNSIGNED, FreezeWatch
from orchestrator.approvals.signed_policy import (
    UNSURE,
    SignedPolicy,
    choose_stricter_state,
    find_version_problem,
)
from registry.approvals.rules import ApprovalRule
from registry.audit.trail import AuditFacts
from registry.models import Entry
from registry.secrets.signing import verify_signature
from registry.servers.classifications import Classification
from registry.store import Store


def find_differences(policy: SignedPolicy) -> tuple[str, ...]:
    """Each row that somebody wrote past Toolwright, in words. None of them loosens anything."""
    found = _collect_differences(policy)
    # What was written between two looks differs only once.
    again = _collect_differences(policy) if found else ()
    return tuple(each for each in found if each in again)


def _collect_differences(policy: SignedPolicy) -> tuple[str, ...]:
    facts, store = policy.trail.read(), policy.store
    try:
        keys = policy.authority.list_known_keys()
    except UNSURE:
        keys = ()
    entries = store.servers.find()
    found = [
        *_find_version_differences(store, facts, entries),
        *_find_classification_differences(store, facts, keys, entries),
        *(
            f"the rule {rule.id}: {reason}"
            for rule in store.rules.find()
            if (reason := _find_rule_problem(rule, facts, keys))
        ),
    ]
    freeze = store.processes.get_freeze()
    if freeze.reason == UNSIGNED or not (freeze.frozen or FreezeWatch(policy).is_lifted(freeze)):
        found.append(f"the freeze was lifted without the PIN; it counts until {LIFTING}")
    return tuple(found)


def _find_version_differences(
    store: Store, facts: AuditFacts, entries: tuple[Entry, ...]
) -> Iterator[str]:
    known = {
        (v.name, v.version): v for entry in entries for v in store.servers.find_versions(entry.name)
    }
    for (name, number), version in known.items():
        problem = find_version_problem(facts, version)
        if problem:
            yield f"{name} version {number}: {problem}"
    for name, number in facts.published:
        if (name, number) not in known:
            yield f"{name} version {number}: it was published and is not in the registry"
    for entry in entries:
        newest = facts.newest.get(entry.name, entry.version)
        if newest != entry.version:
            yield f"{entry.name}: version {entry.version} is current; {newest} was published last"
        audited = facts.states.get(entry.name, entry.state)
        if choose_stricter_state(entry.state, audited) != entry.state:
            yield f"{entry.name}: it is {entry.state}, and the audit says {audited}"


def _find_classification_differences(
    store: Store, facts: AuditFacts, keys: tuple[str, ...], entries: tuple[Entry, ...]
) -> Iterator[str]:
    stored = {
        (entry.name, operation): said
        for entry in entries
        for operation, said in store.classifications.find(entry.name).items()
    }
    for (server, operation), said in stored.items():
        if facts.classified.get((server, operation)) != (said.serial, said.level):
            reason = "it is not the newest one that the audit has"
        elif said.signature and not _is_signed(said, keys):
            reason = "its signature does not fit"
        else:
            continue
        yield f"the classification of {server} {operation} as {said.level}: {reason}"
    for server, operation in facts.classified:
        if (server, operation) not in stored:
            yield f"the classification of {server} {operation} was taken away or cannot be read"


def _find_rule_problem(rule: ApprovalRule, facts: AuditFacts, keys: tuple[str, ...]) -> str:
    if not _is_signed(rule, keys):
        return "nobody signed it"
    return "it was revoked" if rule.revoked is None and rule.id in facts.revoked_rules else ""


def _is_signed(said: Classification | ApprovalRule, keys: tuple[str, ...]) -> bool:
    body = said.to_signed_body()
    return not keys or any(verify_signature(key, body, said.signature) for key in keys)
