from __future__ import annotations

from tests.orchestrator.conftest import pin_record, plane, settings, store

__all__ = ["pin_record", "plane", "settings", "store"]
