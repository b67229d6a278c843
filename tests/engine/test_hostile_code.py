"""The same hostile code on both engines: none of it gets out. docs/security.md has the walls."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from sandbox.errors import CallTimedOut, SessionBroken
from sandbox.session.interface import Limits
from tests.engine.conftest import Engine
from tests.engine.samples import RUN, body, broker, bundle

SERVER = bundle(RUN, "run")
SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
HOST_FILE = "HOST_FILE"
ATTACKS = {
    "connects to an address": "import socket; socket.create_connection(('1.1.1.1', 53), 1)",
    "connects to the host": "import socket; socket.create_connection(('172.17.0.1', 22), 1)",
    "asks for a name": "import socket; socket.getaddrinfo('example.com', 80)",
    "opens a local socket": "import socket; socket.socket(socket.AF_UNIX)",
    "opens a socket of the virtual machine": "import socket; socket.socket(socket.AF_VSOCK)",
    "opens a raw socket": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "starts a program": "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
    "forks": "import os\nif not os.fork(): os._exit(0)",
    "becomes another program": "import os; os.execv('/bin/sh', ['sh'])",
    "reads a file of the host": f"open('{HOST_FILE}').read()",
    "writes where others read": "open('/etc/passwd', 'a').write('x')",
    "writes over the runtime": (
        "import toolwright\nwith open(toolwright.__file__, 'a') as file: file.write('x')"
    ),
    "leaves a program": (
        "import os\nopen('/tmp/x', 'w').write('#!/bin/sh')\nos.chmod('/tmp/x', 0o777)\n"
        "os.execv('/tmp/x', ['x'])"
    ),
    "fills the disk": "with open('/tmp/full', 'wb') as f: f.write(bytes(64 << 20))",
    "fills the disk with names": "for n in range(9999): open(f'/tmp/{n}', 'w')",
    "fills the shared memory": "with open('/dev/shm/full', 'wb') as f: f.write(bytes(64 << 20))",
    "mounts": (
        "import ctypes\nif ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None): raise OSError"
    ),
    "traces a process": ("import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0): raise OSError"),
    "makes a namespace": ("import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError"),
    "gains privileges": "import os; os.setuid(0)",
    "kills a process": "import os; os.kill(os.getpid(), 9)",
    "starts threads without end": (
        "import threading\n"
        "for n in range(500): threading.Thread(target=threading.Event().wait, daemon=True).start()"
    ),
    "takes all memory": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "nests without end": "x = 1\nfor n in range(10**6): x = [x]\nrepr(x)",
    "recurses without end": "def f(): f()\nf()",
    "computes without end": "while True: pass",
    "matches without end": "import re; re.match('(a*)*b', 'a' * 60)",
    "exits": "import os; os._exit(0)",
    "aborts": "import os; os.abort()",
    "asks for an undeclared host": "http.request('GET', 'https://evil.test/items/a')",
    "asks for an undeclared method": "http.request('DELETE', '/items/a')",
    "asks for another path": "http.request('GET', '/items/../secrets')",
    "answers with what is no message": (
        "import toolwright.wire; toolwright.wire._written = lambda value: 'x'"
    ),
    "answers in the name of another call": (
        "import toolwright.wire\n"
        'toolwright.wire._written = lambda _: \'{"jsonrpc":"2.0","id":"999","result":{}}\''
    ),
    "answers with too much": "got = 'x' * (50 << 20)",
}
"""Each does what it is named for and returns, or is stopped. Those that only change the runtime are
stopped when they return."""
SECONDS = 1.0
LIMITS = Limits(memory_mb=64)


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_code_is_stopped_and_the_next_session_is_as_good_as_new(
    name: str, engine: Engine, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    code = ATTACKS[name].replace(HOST_FILE, str(secret))
    before = set(tmp_path.iterdir())

    async def run() -> None:
        async with engine(limits=LIMITS) as runner:
            async with runner.open(SERVER, broker(SERVER, body(b"{}"))) as session:
                try:
                    outcome = await session.call("run", {"code": code}, SECONDS)
                except (CallTimedOut, SessionBroken):
                    pass
                else:
                    assert not outcome.ok, outcome.structured
                    assert all(exchange.response is None for exchange in outcome.exchanges)
            async with runner.open(SERVER, broker(SERVER, body(b"{}"))) as session:
                assert (await session.call("run", {"code": "got = 1"})).structured == {"got": 1}

    asyncio.run(run())
    assert secret.read_text() == "of the host"
    assert set(tmp_path.iterdir()) == before


def test_the_documentation_names_every_attack_and_its_walls() -> None:
    rest = SECURITY.read_text().partition("## The same attacks on both engines")[2]
    text = re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0]
    _, *rows = re.findall(r"^\| ([a-z][^|]+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    named = {attack.strip() for attacks, _, _ in rows for attack in attacks.split(";")}
    assert named == set(ATTACKS)
    assert all(docker.strip() and wasm.strip() for _, docker, wasm in rows)
