"""Code that never met the static gate, in the cage of a forged server, and the cage from outside.

One container runs all of it; what each piece came to is judged one by one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.broker.broker import Broker
from sandbox.bundle.credential import Credential
from sandbox.credentials.source import CredentialSource
from sandbox.engines.docker.engine import Client, ContainerLabels, DockerRunner, list_containers
from sandbox.session.interface import Session
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import build_read_policy
from tests.engine.samples import RUN, bundle

pytestmark = pytest.mark.docker

SECRET = "canary-0815-qwertzuiop"
INSTANCE = "attacks"
SYSCALL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *(ctypes.c_void_p(a) for a in arguments))
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise PermissionError(number)
"""
"""Whatever else a call comes to, it came to the kernel."""
DENIED = {
    "abstract unix socket": "import socket; socket.socket(socket.AF_UNIX).bind(chr(0) + 'x')",
    "pair of datagram sockets": "import socket; socket.socketpair(type=socket.SOCK_DGRAM)",
    "pair of packet sockets": "import socket; socket.socketpair(type=socket.SOCK_SEQPACKET)",
    "pair of another family": "import socket; socket.socketpair(30, socket.SOCK_STREAM)",
    "a socket of a pair, bound": ("import socket; socket.socketpair()[0].bind(chr(0) + 'x')"),
    "a socket of a pair, connected": (
        "import socket; socket.socketpair()[0].connect('/var/run/docker.sock')"
    ),
    "a socket of a pair, sending elsewhere": (
        "import socket; socket.socketpair()[0].sendto(b'x', '/var/run/docker.sock')"
    ),
    "a socket of a pair, handing on a file": (
        "import array, socket\n"
        "files = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))\n"
        "socket.socketpair()[0].sendmsg([b'x'], [files])"
    ),
    "a socket of a pair, listening": "import socket; socket.socketpair()[0].listen()",
    "netlink socket": "import socket; socket.socket(16, socket.SOCK_RAW)",
    "crypto socket": "import socket; socket.socket(38, socket.SOCK_SEQPACKET)",
    "bluetooth socket": "import socket; socket.socket(31, socket.SOCK_RAW)",
    "udp": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "ipv6": "import socket; socket.socket(socket.AF_INET6)",
    "name service": "import socket; socket.gethostbyname('metadata.google.internal')",
    "multiprocessing": "import multiprocessing as m; m.Process(target=int).start()",
    "spawn": "import os; os.posix_spawn('/usr/bin/python3', ['x'], {})",
    "shell": "import os\nif os.system('true'): raise OSError",
    "pseudo terminal": "import pty; pty.spawn(['/bin/sh'])",
    "write of a kernel setting": "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')",
    "magic key": "open('/proc/sysrq-trigger', 'w').write('b')",
    "score of the killer": (
        "with open('/proc/self/oom_score_adj', 'w') as file: file.write('-1000')"
    ),
    "control group": "open('/sys/fs/cgroup/memory.max', 'w').write('max')",
    "kernel memory": "assert open('/proc/kcore', 'rb').read(1)",
    "kernel log": "open('/dev/kmsg').read(1)",
    "disk": "import os; next(n for n in os.listdir('/dev') if n.startswith(('sd', 'vd', 'nvme')))",
    "memory device": "open('/dev/mem', 'rb')",
    "network tunnel": "open('/dev/net/tun')",
    "fuse": "open('/dev/fuse')",
    "socket of the engine": "import os; os.stat('/var/run/docker.sock')",
    "secrets of an orchestrator": "import os; os.listdir('/run/secrets')",
    "device node": "import os, stat; os.mknod('/tmp/disk', 0o666 | stat.S_IFBLK, os.makedev(8, 0))",
    "change of root": "import os; os.chroot('/tmp')",
    "another user": "import os; os.setresuid(0, 0, 0)",
    "owner of a file": "import os; open('/tmp/o', 'w'); os.chown('/tmp/o', 0, 0)",
    "set-id program": (
        "import os, stat; open('/tmp/s', 'w'); os.chmod('/tmp/s', 0o4755)\n"
        "assert not os.statvfs('/tmp').f_flag & os.ST_NOSUID"
    ),
    "native code of its own": (
        "import ctypes, os, shutil\n"
        "own = [os.path.join(place, name) for place, _, names in os.walk('/usr') "
        "for name in names if '.so' in name and not os.path.islink(os.path.join(place, name))]\n"
        "shutil.copy(own[0], '/tmp/own.so')\n"
        "ctypes.CDLL('/tmp/own.so')"
    ),
    "higher limits": ("import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (10**6, 10**6))"),
    "host name": "import socket; socket.sethostname('x')",
    "clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "priority": "import os; os.nice(-10)",
}
"""Each raises."""
SYSTEM_CALLS = {
    "mount": "call(165, 0, 0, 0, 0, 0)",
    "new mount interface": "call(430, 0, 0)",
    "namespace": "call(272, 0x10000000)",
    "entering a namespace": "import os; call(308, os.open('/proc/1/ns/net', 0), 0)",
    "tracing": "call(101, 0, 0, 0, 0)",
    "memory of another process": "call(310, 1, 0, 0, 0, 0, 0)",
    "io_uring": "call(425, 1, 0)",
    "programs in the kernel": "call(321, 0, 0, 0)",
    "keys": "call(250, 0, 0, 0, 0, 0)",
    "page faults": "call(323, 0)",
    "performance events": "call(298, 0, 0, 0, 0, 0)",
    "file in memory": "call(319, 0, 0)",
    "file by its handle": "call(304, 0, 0, 0)",
    "modules of the kernel": "call(175, 0, 0, 0)",
    "another kernel": "call(246, 0, 0, 0, 0)",
    "restart": "call(169, 0, 0, 0, 0)",
    "descriptor of another process": "call(438, 0, 0, 0)",
    "shared memory": "call(29, 0, 4096, 0o1666)",
    "message queue": "call(240, 0, 0o102, 0, 0)",
}
"""Each raises as well. The numbers are x86-64's."""
if os.uname().machine == "x86_64":
    DENIED |= SYSTEM_CALLS
REASONS = (
    *("PermissionError", "FileNotFoundError", "OSError", "BlockingIOError", "gaierror"),
    *("AssertionError", "StopIteration", "ValueError: not allowed to raise maximum limit"),
)
"""What walls raise; anything else is a mistake of the attack."""
TOLD = {
    "environment": "import os; got = dict(os.environ)",
    "interfaces": "import os; got = sorted(os.listdir('/sys/class/net'))",
    "files": (
        "import os; got = [os.path.join(place, name) for place, _, names in os.walk('/') "
        "if not place.startswith(('/proc', '/sys', '/usr')) for name in names][:2000]"
    ),
    "status": "got = open('/proc/self/status').read()",
    "processes": "import os; got = [n for n in os.listdir('/proc') if n.isdigit()]",
    "mounts": "got = open('/proc/self/mounts').read()",
    "own memory": (
        "import gc; got = [str(o)[:200] for o in gc.get_objects() if 'canary' in str(o)[:9999]]"
    ),
    "asks": "got = http.request('GET', '/items/a').body",
}
PLAIN = bundle(RUN, "run")
SERVER = replace(PLAIN, tools=tuple(replace(t, security=(("key",),)) for t in PLAIN.tools))


class Api:
    """Hears what the broker sends, and while it is heard looks for the secret on the machine."""

    def __init__(self) -> None:
        self.heard: list[WireRequest] = []
        self.exposed: list[str] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.heard.append(request)
        self.exposed += exposing(SECRET)
        echo = json.dumps({"you": dict(request.headers)}).encode()
        return WireResponse(200, (("content-type", "application/json"),), echo)


def exposing(secret: str) -> list[str]:
    """The processes of this machine whose arguments or environment hold a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                content = (process / name).read_bytes()
            except OSError:
                continue
            if secret.encode() in content and process.name != str(os.getpid()):
                found.append(f"{process.name}/{name}")
    return found


class Inside:
    """What the code came to: `failed` by name the exception's, `told` what it got; and `seen`, the
    container as the engine shows it.
    """

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.told: dict[str, Any] = {}
        self.seen: Mapping[str, Any] = {}
        self.api = Api()


@pytest.fixture(scope="module")
def inside(docker_engine: tuple[Client, str]) -> Inside:
    client, image = docker_engine
    made = Inside()
    secrets = CredentialSource(
        {"key": Credential("key", "apiKey", "header", "x-key")}, lambda name: SECRET
    )

    async def run() -> None:
        runner = DockerRunner(client, image, ContainerLabels(INSTANCE, "attacks"))
        broker = Broker(build_read_policy(SERVER), made.api, credentials=secrets)
        async with runner as opened, opened.open(SERVER, broker) as session:
            made.seen = the_container(client)
            for name, code in DENIED.items():
                made.failed[name] = await failure(session, SYSCALL + code)
            for name, code in TOLD.items():
                outcome = await session.call("run", {"code": code})
                made.told[name] = outcome.structured["got"] if outcome.structured else None

    asyncio.run(run())
    return made


async def failure(session: Session, code: str) -> str:
    """What the code raised; "" where it did what it wanted."""
    tried = f"try:\n    exec({code!r}, {{}})\n    got = ''\nexcept BaseException as error:\n" + (
        "    got = type(error).__name__ + ': ' + str(error)[:200]"
    )
    outcome = await session.call("run", {"code": tried})
    assert outcome.structured is not None, outcome.text
    return str(outcome.structured["got"])


def the_container(client: Client) -> Mapping[str, Any]:
    (listed,) = list_containers(client, instance=INSTANCE)
    seen: Mapping[str, Any] = client.api.inspect_container(listed["Id"])
    return seen


@pytest.mark.parametrize("name", DENIED)
def test_what_leads_out_of_the_cage_is_denied(name: str, inside: Inside) -> None:
    failed = inside.failed[name]
    assert failed, f"{name}: it was done"
    assert failed.startswith(REASONS), failed


def test_what_a_server_needs_is_not_denied(inside: Inside) -> None:
    assert inside.told["asks"]["you"]["x-key"] == "[redacted]"
    assert [request.get_header("x-key") for request in inside.api.heard] == [SECRET]


def test_a_secret_in_use_is_in_no_argument_and_no_environment_of_the_machine(
    inside: Inside,
) -> None:
    assert len(inside.api.heard) == 1
    assert inside.api.exposed == []


def test_the_oracle_of_arguments_and_environments_sees() -> None:
    command = ["sh", "-c", "echo; read line"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env={"X": SECRET}, stdin=pipe, stdout=pipe) as child:
        # Its environment is not there before it runs.
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        found = exposing(SECRET)
        child.kill()
    assert found == [f"{child.pid}/environ"]


def test_no_secret_is_in_a_container_as_the_engine_shows_it(inside: Inside) -> None:
    assert SECRET not in json.dumps(inside.seen)
    assert inside.seen["Config"]["Labels"]


def test_no_secret_is_in_the_memory_environment_or_files_of_the_sandbox(inside: Inside) -> None:
    for name in ("environment", "files", "own memory", "asks"):
        assert SECRET not in json.dumps(inside.told[name]), name


def test_the_engine_shows_every_wall(inside: Inside) -> None:
    host = inside.seen["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert inside.seen["NetworkSettings"]["Networks"].keys() <= {"none"}
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["Privileged"] is False
    assert any(option.startswith("no-new-privileges") for option in host["SecurityOpt"])
    assert any(option.startswith("seccomp={") for option in host["SecurityOpt"])
    assert host["IpcMode"] == "none"
    assert host["PidMode"] in ("", "private")
    assert host["LogConfig"]["Type"] == "none"
    assert not inside.seen["Mounts"]
    assert not host["Binds"]
    assert not host["Devices"]
    assert host["Memory"] > 0
    assert host["MemorySwap"] in (0, host["Memory"])
    assert 0 < host["PidsLimit"] <= 256
    assert 0 < host["CpuQuota"] <= host["CpuPeriod"]
    assert inside.seen["Config"]["User"].startswith("65534")
    assert all("noexec" in how and "size=" in how for how in host["Tmpfs"].values())


def test_inside_there_is_one_process_one_interface_and_no_capability(inside: Inside) -> None:
    assert inside.told["processes"] == ["1"]
    assert set(inside.told["interfaces"] or ()) <= {"lo", "tunl0", "sit0", "ip6tnl0"}
    status = dict(
        line.split(":\t", 1) for line in inside.told["status"].splitlines() if ":\t" in line
    )
    assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert set(status["Uid"].split()) == {"65534"}
    root = next(line for line in inside.told["mounts"].splitlines() if line.split()[1] == "/")
    assert root.split()[3].split(",")[0] == "ro"
