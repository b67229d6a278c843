"""The frequency at which this process looks for cycles of objects that nobody uses.

Loading modules and compiling descriptions make hundreds of thousands of objects that all stay.
Looking at them again and again takes up to a fourth of the time of a command.
"""

from __future__ import annotations

import gc

NEW_OBJECTS = 20_000


def collect_rarely() -> None:
    """Look for cycles after so many new objects, for the rest of the process."""
    gc.set_threshold(NEW_OBJECTS, 10, 10)


def skip_last_collection() -> None:
    """Let the interpreter end without looking for cycles once more, which frees what the machine
    takes back anyway and takes 0.2 to 0.5 s. Called last: what is there stays.
    """
    gc.freeze()
