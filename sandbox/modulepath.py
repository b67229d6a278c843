"""The places of modules, for a Python that this one starts."""

from __future__ import annotations

import os
import sys

RUN_MODULE = (sys.executable, "-P", "-m")
"""The beginning of a command that runs one of our modules. Without -P what lies in the working
directory would be imported in the place of ours.
"""


def join_module_path() -> str:
    """`sys.path` as a value of PYTHONPATH that means the same in every working directory."""
    return os.pathsep.join(place or os.getcwd() for place in sys.path)
