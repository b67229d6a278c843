"""Memory of a long-lived process: what was freed goes back to the machine.

glibc keeps what threads free, in up to eight arenas a core, so that a process that worked on large
answers in threads stays as large as it ever was (mallopt(3), M_ARENA_MAX; malloc_trim(3)). Where
the C library is another one (musl, macOS, Windows) nothing is done; where another allocator was
preloaded it has no effect.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

M_ARENA_MAX = -8
ARENAS = 2


def limit_arenas() -> bool:
    """Let threads share two arenas, for the rest of the process; whether glibc was told. Arenas
    that threads have already stay theirs, so this is called before there are threads.
    """
    library = _load_library()
    return library is not None and bool(library.mallopt(M_ARENA_MAX, ARENAS))


def return_freed_memory() -> bool:
    """Give freed memory back to the machine; whether glibc was told.

    It takes milliseconds, and tens of them where there is much to give. Other threads run
    meanwhile, but whoever allocates from the same arena waits.
    """
    library = _load_library()
    if library is None:
        return False
    library.malloc_trim(0)
    return True


@cache
def _load_library() -> Any:
    """The C library, where it is glibc; else None."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    known = all(hasattr(library, name) for name in ("gnu_get_libc_version", "malloc_trim"))
    return library if known else None
