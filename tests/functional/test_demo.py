"""`toolwright demo` tells the whole story and checks it against the API's own log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.functional.home import ROOT


def test_in_an_empty_home_everything_that_the_demo_claims_holds(
    engine_name: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "demo", "--engine", engine_name],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything held." in done.stdout
    assert "NOT" not in done.stdout
    assert "Traceback" not in done.stderr
