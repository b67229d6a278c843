"""The control plane's process: publishing its address, and protecting its memory."""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import asdict
from pathlib import Path

from orchestrator.processes.control_client import ControlAddress
from registry.database.files import write_atomically

PR_SET_DUMPABLE = 4


def write_address(path: Path, address: ControlAddress) -> None:
    """Write the address for other processes of the home, with mode 0600."""
    write_atomically(path, json.dumps(asdict(address)).encode(), 0o600)


def disable_dumping() -> bool:
    """Let nobody but root read, trace or dump this process's memory; False where not possible.

    PR_SET_DUMPABLE of `man 2 prctl`, on Linux only.
    """
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
