"""Memory of a long-lived process: what was freed goes back to the machine.

glibc keeps what threads free, in up to eight arenas a core, so that a process that worked on large
answers in threads stays as large as it ever was (mallopt(3), M_ARENA_MAX; malloc_trim(3)). With
another C library nothing is done.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

M_ARENA_MAX = -8
ARENAS = 2


def limit_arenas() -> bool:
    """Let threads share two arenas, for the rest of the process; whether that was possible."""
    library = _load_library()
    return library is not None and bool(library.mallopt(M_ARENA_MAX, ARENAS))


def return_freed_memory() -> bool:
    """Give freed memory back to the machine; whether that was possible. Milliseconds, without the
    interpreter's lock.
    """
    library = _load_library()
    if library is None:
        return False
    library.malloc_trim(0)
    return True


@cache
def _load_library() -> Any:
    """The C library, where it is glibc; else None."""
    library = ctypes.CDLL(None)
    known = all(hasattr(library, name) for name in ("gnu_get_libc_version", "malloc_trim"))
    return library if known else None
