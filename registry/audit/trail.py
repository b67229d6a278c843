"""The audit on everything that loosens, verified once as it is read and then remembered.

The tables are written by whoever can open the database. What they say of a version's digest, a
server's state, a classification, a revocation or a freeze counts only as far as the audit has it.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.approvals.grants import REVOKED as GRANT_REVOKED
from registry.approvals.rules import REVOKED as RULE_REVOKED
from registry.approvals.rules import USED as RULE_USED
from registry.audit.search import AuditTable
from registry.database.audit_chain import ARCHIVED, GENESIS, ChainHead, hash_row
from registry.errors import RegistryError
from registry.models import AuditRow, EntryState
from registry.processes import FROZE
from registry.servers.classifications import CLASSIFIED, Level
from registry.servers.entries import PUBLISHED, STATE

PAGE = 2_000
"""Rows that are read at once."""


@dataclass
class AuditFacts:
    """What the audit says: the digest under which each version was published ("" for one that has
    several), the newest version of each server, the digests of the operations that its first
    version read by a method made for writing, its state; the newest classification of each
    operation, as (serial, level); the newest revoked serial of each grant; the rules that were
    revoked, and how often each was used; the newest freeze.
    """

    published: dict[tuple[str, int], str] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    states: dict[str, EntryState] = field(default_factory=dict)
    classified: dict[tuple[str, str], tuple[int, Level]] = field(default_factory=dict)
    revoked_grants: dict[tuple[str, str], int] = field(default_factory=dict)
    revoked_rules: set[str] = field(default_factory=set)
    rule_uses: Counter[str] = field(default_factory=Counter)
    epoch: int = 0
    _moved: dict[str, float] = field(default_factory=dict)

    def fold(self, row: AuditRow) -> None:
        """Take in a row. Those of other kinds say nothing here."""
        folding = _FOLDING.get(row.kind)
        if folding is not None:
            folding(self, row, json.loads(row.payload))

    def _fold_publication(self, row: AuditRow, said: Mapping[str, Any]) -> None:
        version = int(said["version"])
        of, digest = (row.subject, version), str(said["digest"])
        # A version is published once; one that has two digests has none.
        self.published[of] = digest if self.published.get(of, digest) == digest else ""
        self.newest[row.subject] = max(version, self.newest.get(row.subject, version))
        if version == 1:
            reads = frozenset(map(str, said.get("reads", ())))
            self.reads[row.subject] = reads & self.reads.get(row.subject, reads)
        self._fold_state(row, said)

    def _fold_state(self, row: AuditRow, said: Mapping[str, Any]) -> None:
        """The later row counts; one that the archive has appended again is as old as it says."""
        moved = said.get("moved_from")
        if moved is None:
            self._moved.pop(row.subject, None)
        elif row.subject in self.states and moved < self._moved.get(row.subject, float("inf")):
            return
        else:
            self._moved[row.subject] = float(moved)
        self.states[row.subject] = said["state"]

    def _fold_classification(self, row: AuditRow, said: Mapping[str, Any]) -> None:
        known = self.classified.get((row.subject, said["operation"]), (0, ""))
        if int(said["serial"]) > known[0]:
            self.classified[row.subject, said["operation"]] = int(said["serial"]), said["level"]

    def _fold_revoked_grant(self, row: AuditRow, said: Mapping[str, Any]) -> None:
        of = row.subject, str(said["kind"])
        serial = int(said.get("serial", 0))
        self.revoked_grants[of] = max(serial, self.revoked_grants.get(of, 0))

    def _fold_revoked_rule(self, row: AuditRow, _said: Mapping[str, Any]) -> None:
        self.revoked_rules.add(row.subject)

    def _fold_rule_use(self, row: AuditRow, _said: Mapping[str, Any]) -> None:
        self.rule_uses[row.subject] += 1

    def _fold_freeze(self, row: AuditRow, _said: Mapping[str, Any]) -> None:
        self.epoch = max(self.epoch, int(row.subject))


_FOLDING: Mapping[str, Callable[[AuditFacts, AuditRow, Mapping[str, Any]], None]] = {
    PUBLISHED: AuditFacts._fold_publication,
    STATE: AuditFacts._fold_state,
    CLASSIFIED: AuditFacts._fold_classification,
    GRANT_REVOKED: AuditFacts._fold_revoked_grant,
    RULE_REVOKED: AuditFacts._fold_revoked_rule,
    RULE_USED: AuditFacts._fold_rule_use,
    FROZE: AuditFacts._fold_freeze,
}


class AuditTrail:
    """The audit as one process reads it: all of it once, and then what is new.

    Each row is checked against its hash, the row before it and the signed heads. What was read is
    kept in memory, where no edit of the database reaches it. Threads may share it.
    """

    def __init__(self, audit: AuditTable, signed: Callable[[], Iterable[ChainHead]]) -> None:
        """`signed` returns the heads that were signed since its last call."""
        self._audit, self._signed = audit, signed
        self._lock = threading.Lock()
        self._version = -1
        self._damage = ""
        self._forget()

    def _forget(self) -> None:
        self._read_up_to = -1
        self._facts = AuditFacts()
        self._problem = ""
        self._last: dict[str, tuple[int, str]] = {}
        self._archived: dict[str, tuple[int, str]] = {}

    def read(self) -> AuditFacts:
        """What the audit says at present; costs microseconds where nothing was written."""
        with self._lock:
            version = self._audit.read_data_version()
            if version != self._version:
                begins, signed = self._version < 0, self._read_heads()
                self._read_new_rows(begins, dict(signed))
                if begins and self._problem and self._audit.read_data_version() != version:
                    # Rows may have been archived between two pages.
                    self._forget()
                    self._read_new_rows(begins, dict(signed))
                self._version = version
            return self._facts

    def _read_heads(self) -> dict[tuple[str, int], str]:
        """What was signed since the last time. It is read before the rows, which are older then."""
        try:
            return {(head.chain, head.sequence): head.hash for head in self._signed()}
        except (RegistryError, OSError) as error:
            self._damage = self._damage or str(error)
            return {}

    def find_problem(self) -> str:
        """The first thing that is wrong with the audit; "" for nothing. It stays what it is until
        the process ends.
        """
        self.read()
        return self._damage or self._problem

    def _read_new_rows(self, begins: bool, signed: dict[tuple[str, int], str]) -> None:
        starts: dict[str, tuple[int, str]] = {}
        rows = self._audit.read_page(self._read_up_to, PAGE)
        while rows:
            for row in rows:
                self._check_row(row, begins, starts, signed)
                self._take_in(row)
            self._read_up_to = rows[-1].id
            rows = self._audit.read_page(self._read_up_to, PAGE)
        self._check_ends(begins, starts, signed)

    def _check_row(
        self,
        row: AuditRow,
        begins: bool,
        starts: dict[str, tuple[int, str]],
        signed: dict[tuple[str, int], str],
    ) -> None:
        before = self._last.get(row.chain)
        if before is None and begins and row.sequence > 1:
            # What came before was moved into an archive, which a later row has to say.
            before = starts[row.chain] = (row.sequence - 1, row.previous)
        if row.hash != hash_row(row):
            self._note_problem(row.chain, row.sequence, "the row was edited")
        elif (row.sequence - 1, row.previous) != (before or (0, GENESIS)):
            self._note_problem(row.chain, row.sequence, "the row does not follow the one before it")
        elif signed.pop((row.chain, row.sequence), row.hash) != row.hash:
            self._note_problem(row.chain, row.sequence, "the row is not the one that was signed")
        self._last[row.chain] = row.sequence, row.hash

    def _take_in(self, row: AuditRow) -> None:
        try:
            self._facts.fold(row)
            if row.kind == ARCHIVED:
                for chain, (sequence, digest) in json.loads(row.payload)["through"].items():
                    self._archived[chain] = int(sequence), str(digest)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._note_problem(row.chain, row.sequence, f"the row cannot be read: {error}")

    def _check_ends(
        self,
        begins: bool,
        starts: Mapping[str, tuple[int, str]],
        signed: Mapping[tuple[str, int], str],
    ) -> None:
        for chain, before in starts.items():
            if self._archived.get(chain) != before:
                self._note_problem(chain, before[0], "the row is missing")
        for chain, sequence in sorted(signed):
            known = self._archived if begins else self._last
            if sequence > known.get(chain, (0, ""))[0]:
                self._note_problem(chain, sequence, "the row was signed and is missing")

    def _note_problem(self, chain: str, sequence: int, reason: str) -> None:
        self._problem = self._problem or f"chain {chain}, row {sequence}: {reason}"
