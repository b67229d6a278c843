"""What a process logs comes to its standard error, and ends nothing where that is gone."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr

import structlog

from orchestrator.processes.logs import configure_logs


def test_the_log_goes_to_the_standard_error_that_there_is() -> None:
    before, earlier, present = structlog.get_config(), io.StringIO(), io.StringIO()
    try:
        with redirect_stderr(earlier):
            configure_logs()
            structlog.get_logger().info("first")
        earlier.close()
        with redirect_stderr(present):
            structlog.get_logger().info("second")
    finally:
        structlog.configure(**before)
    assert "second" in present.getvalue()
    assert "first" not in present.getvalue()


def test_of_an_error_no_value_is_logged() -> None:
    """Among the values that its code was at may be secrets."""
    before, said = structlog.get_config(), io.StringIO()

    def send(headers: Sequence[tuple[str, str]]) -> None:
        raise ValueError(f"{len(headers)} headers")

    try:
        with redirect_stderr(said):
            configure_logs()
            try:
                send([("Authorization", "".join(["Bearer ", "s3", "cret"]))])
            except ValueError as error:
                structlog.get_logger().error("failed", exc_info=error)
    finally:
        structlog.configure(**before)
    assert "ValueError: 1 headers" in said.getvalue()
    assert "in send" in said.getvalue()
    assert "s3cret" not in said.getvalue()


def test_a_process_whose_log_nobody_reads_goes_on() -> None:
    code = (
        "import structlog; from orchestrator.processes.logs import configure_logs\n"
        "input(); configure_logs(); log = structlog.get_logger()\n"
        "for _ in range(3): log.error('nobody hears it')\n"
        "print('done')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        process.stderr.close()
        said = process.communicate(b"\n")[0]
    assert said == b"done\n"
