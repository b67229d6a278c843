"""One Toolwright home under test: its commands, and whether everything in it still agrees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from click.testing import CliRunner, Result

from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.cli.commands.doctor import run_checks
from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings, load_settings
from registry.models import Approval, build_entry
from registry.servers.files import install_bundle
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.engines.docker.engine import connect_engine, list_containers
from tests.granted import PIN, allow, person

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


@dataclass(frozen=True)
class Installation:
    """A home that is set up, its servers on that engine. `environment` is added to what its
    processes get.
    """

    home: Path
    engine: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, home: Path, engine: str, **environment: str) -> Installation:
        here = cls(home, engine, {"TOOLWRIGHT_ENGINE": engine, **environment})
        person(here.settings.pin)
        here.pin_file.write_text(PIN)
        here.store().close()
        return here

    @property
    def settings(self) -> Settings:
        return load_settings(home=self.home, engine=self.engine)

    @property
    def pin_file(self) -> Path:
        return self.home / "pin.txt"

    def store(self) -> Store:
        return Store.open(self.settings.database_url)

    def approve(self, identity: str) -> Approval:
        """What a person who knows the PIN decides."""
        decision = Decision(identity, True, PIN, by="test")
        with self.store() as store:
            decided = decide_with_pin(self.settings, store, decision, time.time())
            assert not decided.refused
            return store.approvals.get(identity)

    def run(self, *words: str) -> Result:
        """A command, run in this process. An exception that is not reported fails the test."""
        given = {"TOOLWRIGHT_HOME": str(self.home), **self.environment}
        return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """A command as a process of its own."""
        environment = {
            **os.environ,
            "TOOLWRIGHT_HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            **self.environment,
        }
        command = [sys.executable, "-m", "orchestrator", *words]
        return subprocess.Popen(command, env=environment, **options)

    def allow(self, url: str) -> None:
        """What a person's `source allow` does."""
        with self.store() as store:
            allow(self.settings, store, url)

    def put(self, bundle: Bundle) -> None:
        """Register a bundle without proving it, as no command would."""
        with self.store() as store:
            install_bundle(
                self.home, store.servers, bundle, build_entry(bundle, time.time()), now=time.time()
            )

    def listed(self) -> list[dict[str, Any]]:
        """What `toolwright list --json` prints."""
        result = self.run("list", "--json")
        assert result.exit_code == 0
        return list(json.loads(result.stdout))

    def troubles(self) -> list[str]:
        """What `toolwright doctor` finds that is not well, and every container there is."""
        with self.store() as store:
            checks = run_checks(self.settings, store)
        found = [f"{check.name}: {check.found}" for check in checks if check.verdict != "ok"]
        return found + [f"container {identity}" for identity in self.containers()]

    def containers(self, process: str = "") -> list[str]:
        """The ids of this installation's containers, in any state; WASM has none."""
        if self.engine == "wasm":
            return []
        labels = {"instance": self.settings.instance} | ({"process": process} if process else {})
        client = connect_engine()
        try:
            return [container["Id"] for container in list_containers(client, **labels)]
        finally:
            client.close()


def until(found: Callable[[], T | None], seconds: float = 120.0) -> T:
    """What `found` finds first that is not empty; the test fails where that takes too long."""
    end = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < end, f"nothing within {seconds:g} s"
        time.sleep(0.02)
    return value
