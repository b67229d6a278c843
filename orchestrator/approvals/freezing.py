"""The freeze as signed, whatever the freeze's row says: lifting takes a signature."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import structlog

from orchestrator.approvals.signed_policy import SignedPolicy
from registry.errors import RegistryError
from registry.models import Freeze
from registry.secrets.signing import verify_signature

UNSIGNED = "the freeze before was lifted without the PIN"
LIFTING = "`toolwright unfreeze`"

log = structlog.get_logger()


@dataclass
class FreezeWatch:
    """Judges the freeze's row. A lift counts where the person's key signed it for the newest freeze
    that this process or the audit knows of; in the place of any other one everything is frozen
    again, which the audit tells.
    """

    policy: SignedPolicy
    _epoch: int = field(default=-1, init=False)
    _lifted: Freeze | None = field(default=None, init=False)

    def judge_freeze(self, found: Freeze) -> Freeze:
        """The state that counts, given the row. Costs nothing while the row stays what it is."""
        if self._lifted == found:
            return found
        if not found.frozen and not self.is_lifted(found):
            found = self._freeze_again(found)
        self._epoch = max(self._epoch, found.epoch)
        self._lifted = None if found.frozen else found
        return found

    def is_lifted(self, found: Freeze) -> bool:
        """Whether a row that says so is that of an installation which is not frozen."""
        known = self._find_newest_epoch()
        if not known and not found.epoch:
            return True
        signed = verify_signature(self.policy.find_key(), found.to_signed_body(), found.lift)
        return found.epoch >= known and signed

    def _find_newest_epoch(self) -> int:
        if self._epoch < 0:
            self._epoch = self.policy.trail.read().epoch
        return self._epoch

    def _freeze_again(self, found: Freeze) -> Freeze:
        """Frozen, with the row put right where the disk lets us."""
        log.error(f"{UNSIGNED}; it counts until {LIFTING}", epoch=found.epoch, by=found.by)
        now, epoch = time.time(), max(found.epoch, self._epoch)
        try:
            epoch = self.policy.store.processes.restore_freeze(found, UNSIGNED, now)
        except RegistryError as error:
            log.error("the freeze cannot be stored, to be tried again", reason=str(error))
        return Freeze(epoch, True, now, "toolwright", UNSIGNED)
