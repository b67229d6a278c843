"""Bandit's rules, run in this process (https://bandit.readthedocs.io)."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator

# Importing bandit makes its dependency stevedore warn, and replaces the interpreter's format of
# warnings for the whole process; both stay behind this line.
_format = warnings.formatwarning
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from bandit.core.config import BanditConfig  # type: ignore[import-untyped]
    from bandit.core.manager import BanditManager  # type: ignore[import-untyped]
warnings.formatwarning = _format

FILE = "./server.py"
SKIPPED = frozenset({"B101"})
"""B101 (assert) is about optimised byte code, which the sandbox does not run."""


def bandit_findings(code: str) -> Iterator[tuple[int, str, str]]:
    """Line, test id and message of everything that bandit finds. `# nosec` is not heeded."""
    manager = BanditManager(
        BanditConfig(), "file", ignore_nosec=True, profile={"exclude": sorted(SKIPPED)}
    )
    manager._parse_file(FILE, io.BytesIO(code.encode()), [FILE])
    for _, reason in manager.skipped:
        yield 0, "unread", str(reason)
    for issue in manager.results:
        yield issue.lineno, issue.test_id, issue.text
