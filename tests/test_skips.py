"""What is skipped where there is no Docker: what is about Docker itself, and it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABOUT_DOCKER = ("tests/sandbox", "tests/crash", "tests/engine/test_both_engines.py")
REPORT = """
<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"><skipped message="no Docker"/></testcase>
<testcase name="c"><skipped message="no browser"/></testcase>
<testcase name="d"><skipped message="no Docker"/></testcase>
</testsuite></testsuites>
"""


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_without_docker_all_that_needs_it_is_skipped_and_for_one_reason(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    words = ("-m", "pytest", "-q", "-m", "docker", "-p", "no:cacheprovider", *ABOUT_DOCKER)
    done = python(*words, f"--junit-xml={report}", DOCKER_HOST="unix:///nonexistent")
    assert done.returncode == 0, done.stdout
    told = python("scripts/skipped.py", str(report)).stdout.splitlines()
    count = int(told[0].partition(" ")[0])
    assert count > 50
    assert told == [
        f"{count} of {count} tests were skipped",
        f"  {count}: about Docker itself, and no Docker engine answers",
    ]


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--none",), 1)])
def test_skipped_tests_are_counted_by_reason(
    options: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    done = python("scripts/skipped.py", str(report), *options)
    assert done.returncode == status
    assert done.stdout.splitlines() == [
        "3 of 4 tests were skipped",
        "  2: no Docker",
        "  1: no browser",
    ]
