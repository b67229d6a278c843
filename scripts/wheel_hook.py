"""Hatchling's hook: a wheel brings the WASM component, built of its own sources.

It takes 10 s of CPU where the wheel is built, in place of each user's first use, and one version
has one component: what is recorded on one machine can be replayed on another. An editable
installation has none; there the component is built on first use.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ComponentHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the component and its digest to the files of a wheel."""

    PLUGIN_NAME = "custom"
    _scratch: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        # Its own sources, of the tree that the wheel is built of.
        sys.path.insert(0, self.root)
        building = importlib.import_module("sandbox.engines.wasm.building")
        self._scratch = tempfile.TemporaryDirectory(prefix="toolwright-wheel-")
        place = Path(self._scratch.name)
        (place / "build").mkdir()
        wasm: bytes = building.build_wasm(place / "build")
        for name, content in {
            building.SHIPPED: wasm,
            building.SHIPPED_DIGEST: f"{hashlib.sha256(wasm).hexdigest()}\n".encode(),
        }.items():
            (place / name).write_bytes(content)
            build_data["force_include"][str(place / name)] = f"images/wasm/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()
