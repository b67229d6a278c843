"""The entry point of an image: the runtime, whatever the environment and directory say.

`python3 -I -S -B serve.py` reads no PYTHON variable, no user or working directory; neither is
`python3 -m toolwright` with the runtime's directory on PYTHONPATH any different.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")
# The packages of a server that has any lie here, behind all that Python and the runtime have.
sys.path.append("/opt/server")

from toolwright.__main__ import run  # type: ignore[import-not-found]

run()
