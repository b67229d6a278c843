"""Keeping other processes of the same user out of this one's memory."""

from __future__ import annotations

import ctypes
import sys

PR_SET_DUMPABLE = 4


def be_undumpable() -> bool:
    """Let nobody but root read this process's memory, trace it or have it dumped; whether it holds.

    `man 2 prctl`. Only Linux has it.
    """
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
