from __future__ import annotations

from tests.orchestrator.conftest import pin_record, plane, settings, store, waiting

__all__ = ["pin_record", "plane", "settings", "store", "waiting"]
