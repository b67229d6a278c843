"""An engine for tests: the real runtime as a plain child process, no cage around it.

For bundles that the tests wrote themselves.
"""

from __future__ import annotations

from sandbox.engines.process import ProcessRunner as LocalRunner

__all__ = ["LocalRunner"]
