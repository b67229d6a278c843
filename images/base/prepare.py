"""Run once while the image is built: byte code for all modules, and a bundle of root certificates.

Start-up must not compile, and a read-only container could not keep what it compiled.
"""

import compileall
import glob
import os
import re
import sys
import sysconfig
from py_compile import PycInvalidationMode

RUNTIME = "/opt/toolwright"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
SOURCES = "/usr/share/ca-certificates/mozilla/*.crt"
# Not part of what a server's code may import.
LEFT_OUT = re.compile(
    r"/(test|idlelib|lib2to3|tkinter|turtledemo|ensurepip|pydoc_data|site-packages)/"
)


def compile_modules() -> bool:
    """Compile the standard library and the runtime. Files that do not compile are Python's own."""
    mode = PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(
        sysconfig.get_path("stdlib"), quiet=2, rx=LEFT_OUT, invalidation_mode=mode, force=True
    )
    return bool(compileall.compile_dir(RUNTIME, quiet=1, invalidation_mode=mode, force=True))


def gather_certificates() -> None:
    """Make the file that OpenSSL reads, where the packages' own scripts did not run."""
    if os.path.exists(CERTIFICATES):
        return
    os.makedirs(os.path.dirname(CERTIFICATES), exist_ok=True)
    with open(CERTIFICATES, "wb") as bundle:
        for name in sorted(glob.glob(SOURCES)):
            with open(name, "rb") as file:
                bundle.write(file.read().rstrip() + b"\n")


gather_certificates()
sys.exit(0 if compile_modules() else 1)
