"""Fuzz one target: `python -m tests.fuzz.run TARGET [libFuzzer options and corpus directories]`.

`scripts/fuzz` calls this; atheris comes with it.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["dns", "forge", "sandbox", "tests.fuzz.targets"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    atheris.Setup([f"fuzz {name}", *options], TARGETS[name])
    atheris.Fuzz()
