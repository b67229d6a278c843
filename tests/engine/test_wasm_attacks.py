"""What code in the WASM engine can reach of the machine: nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from sandbox.engines.wasm.component import LoadedComponent, list_modules
from sandbox.errors import CallTimedOut, LoadFailed
from sandbox.session.interface import Limits, Outcome
from sandbox.session.recording import CallInputs
from tests.engine.samples import FETCH, RUN, Api, Gate, body, broker, bundle

Wasm = Callable[..., Any]
AT = CallInputs(1_700_000_000_123_456_789, "ab" * 32)
PROBES = bundle(RUN, "run")
BUILTIN = """
import _imp, importlib.machinery as m
f = lambda name: _imp.create_builtin(m.ModuleSpec(name, None))
"""


def ran(wasm: Wasm, *codes: str, limits: Limits | None = None) -> list[Outcome]:
    """The outcomes of code, all in one session."""

    async def run() -> list[Outcome]:
        async with wasm(limits=limits, make_inputs=lambda: AT) as runner:
            async with runner.open(PROBES, broker(PROBES, body(b"{}"))) as session:
                return [await session.call("run", {"code": code}) for code in codes]

    return asyncio.run(run())


def got(wasm: Wasm, code: str) -> Any:
    (outcome,) = ran(wasm, code)
    assert outcome.ok, outcome.failure
    return outcome.structured["got"]


def test_the_component_imports_nothing_but_what_stands_in_its_world(
    component: LoadedComponent,
) -> None:
    names = component.component.type.imports(component.engine)
    own = {name for name in names if not name.startswith("wasi:")}
    assert own == {"exchange", "log", "next-line"}


def test_there_is_no_environment_no_argument_and_no_directory(wasm: Wasm) -> None:
    assert os.environ
    assert got(wasm, "import os, sys; got = [dict(os.environ), sys.argv, sys.path]") == [{}, [], []]


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd')",
        "open('/tmp/left', 'w')",
        "import os; os.listdir('/')",
        "import os; os.listdir('.')",
        "import os; os.stat('/proc/self')",
        "import os; os.mkdir('/made')",
        "import os; os.open('../../../etc/passwd', os.O_RDONLY)",
        "import os; [os.fstat(n) for n in range(3, 64)]",
        "import io; io.FileIO('/etc/passwd')",
        "import zoneinfo; zoneinfo.ZoneInfo('../../../etc/passwd')",
    ],
)
def test_there_is_no_file_system(wasm: Wasm, code: str) -> None:
    (outcome,) = ran(wasm, code)
    assert outcome.failure is not None
    assert outcome.failure.kind == "bug"


@pytest.mark.parametrize(
    "code",
    [
        "import socket",
        "import subprocess",
        "import ctypes",
        "import mmap",
        "import multiprocessing",
        "import os; os.popen('id')",
        "import os; os.fork()",
        "import os; os.execv('/bin/id', ['id'])",
        "import threading; threading.Thread(target=print).start()",
        BUILTIN + "f('_socket').socket()",
        BUILTIN + "f('_socket').getaddrinfo('example.com', 80)",
        BUILTIN + "f('_socket').gethostbyname('localhost')",
        BUILTIN + "f('_sqlite3').connect('/tmp/left')",
        "import os; os.read(0, 1)",
        "import os; os.write(1, b'{}')",
        "input()",
        "import time; time.sleep(0)",
    ],
)
def test_there_are_no_sockets_processes_threads_or_native_code(wasm: Wasm, code: str) -> None:
    (outcome,) = ran(wasm, code)
    assert outcome.failure is not None
    assert outcome.failure.kind == "bug"


def test_every_clock_shows_the_recorded_time(wasm: Wasm) -> None:
    code = """
import datetime, time
clocks = [time.time_ns, time.monotonic_ns, time.perf_counter_ns]
before = [clock() for clock in clocks]
for n in range(100000): pass
got = [before, [clock() for clock in clocks], str(datetime.datetime.now(datetime.timezone.utc))]
"""
    before, after, now = got(wasm, code)
    assert before == after
    assert before[0] == AT.time_ns
    assert now.startswith("2023-11-14 22:13:20.123456")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; os.abort()", "unreachable"),
        ("import os; os._exit(0)", "exit"),
        ("x = 1\nfor n in range(200000): x = [x]\nrepr(x)", "stack exhausted"),
        ("import wit_world; wit_world.exchange('{')", "params of a request"),
        ("import wit_world; wit_world.exchange('[' * 9000)", "params of a request"),
        ("import wit_world\nwhile True: wit_world.log('x' * 1000)", "printed too often"),
    ],
)
def test_a_trap_is_a_structured_failure_and_the_session_goes_on(
    wasm: Wasm, code: str, told: str
) -> None:
    trapped, after = ran(wasm, code, "got = 1")
    assert trapped.failure is not None
    assert trapped.failure.kind == "bug"
    assert told in trapped.failure.message
    assert after.structured == {"got": 1}


def test_a_request_in_the_name_of_another_call_is_refused(wasm: Wasm) -> None:
    params = (
        '{"kind": "http", "call": "999", "method": "GET", "url": "https://api.test/v1/items/a"}'
    )
    assert "no such call" in got(wasm, f"import wit_world; got = wit_world.exchange('{params}')")


def test_memory_is_capped_and_the_cap_is_the_limits(wasm: Wasm) -> None:
    code = "x = []\nwhile True: x.append(bytearray(1 << 20)); print(len(x))"

    async def run(megabytes: int) -> int:
        limits = Limits(memory_mb=megabytes, stderr_bytes=4096)
        async with wasm(limits=limits) as runner:
            async with runner.open(PROBES, broker(PROBES, body(b"{}"))) as session:
                outcome = await session.call("run", {"code": code})
                assert outcome.failure is not None
                assert "MemoryError" in outcome.failure.message
                return int(bytes(session.stderr).split()[-2])

    small, large = asyncio.run(run(32)), asyncio.run(run(64))
    assert 20 < small < 64 < large < 128


def test_code_that_never_ends_while_it_is_loaded_is_cut(wasm: Wasm) -> None:
    endless = bundle("while True: pass\n", "fetch")

    async def run() -> None:
        async with wasm(limits=Limits(start_seconds=0.2)) as runner:
            with pytest.raises(Exception, match="did not start in time"):
                async with runner.open(endless, broker(endless, body(b"{}"))):
                    raise AssertionError("opened")

    asyncio.run(run())


@pytest.mark.parametrize(
    "code", ["import re; re.match('(a*)*b', 'a' * 60)", "import os\nwhile True: os.urandom(1)"]
)
def test_what_loops_outside_of_python_is_cut_as_well(wasm: Wasm, code: str) -> None:
    async def run() -> None:
        async with wasm() as runner:
            async with runner.open(PROBES, broker(PROBES, body(b"{}"))) as session:
                with pytest.raises(CallTimedOut):
                    await session.call("run", {"code": code}, 0.2)

    asyncio.run(run())


def test_an_instance_of_one_server_never_serves_another(wasm: Wasm) -> None:
    stained = bundle("import json\njson.stain = 1\n" + RUN, "run")

    async def run() -> Any:
        async with wasm(spares=1) as runner:
            for made in (stained, PROBES):
                async with runner.open(made, broker(made, body(b"{}"))) as session:
                    outcome = await session.call(
                        "run", {"code": "import json; got = hasattr(json, 'stain')"}
                    )
                    yield outcome.structured["got"]

    async def collected() -> list[bool]:
        return [value async for value in run()]

    assert asyncio.run(collected()) == [True, False]


def test_what_a_pure_call_leaves_behind_is_gone_at_the_next(wasm: Wasm) -> None:
    leave = "import json, builtins; json.left = builtins.left = 1"
    look = "import json, builtins; got = [hasattr(json, 'left'), hasattr(builtins, 'left')]"
    assert ran(wasm, leave, look)[1].structured == {"got": [False, False]}


def test_a_module_that_is_not_there_is_refused_with_the_way_out(wasm: Wasm) -> None:
    async def run() -> None:
        made = bundle("import requests\n" + FETCH, "fetch")
        async with wasm() as runner:
            async with runner.open(made, broker(made, body(b"{}"))):
                raise AssertionError("opened")

    with pytest.raises(LoadFailed, match=r"line 1: .*requests is not in .*--engine docker"):
        asyncio.run(run())


def test_every_module_of_the_static_stage_can_be_imported(wasm: Wasm) -> None:
    imports = "\n".join(f"import {name}" for name in list_modules() if name != "__future__")
    assert got(wasm, f"from __future__ import annotations\n{imports}\ngot = 1") == 1


def test_time_zones_and_encodings_are_there_without_files(wasm: Wasm) -> None:
    code = """
import datetime, zoneinfo
noon = datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
got = [noon.isoformat(), len(zoneinfo.available_timezones()) > 400,
       b"\\x82\\xa0".decode("shift_jis"), str(datetime.datetime.strptime("2024", "%Y").date())]
"""
    assert got(wasm, code) == ["2024-07-01T12:00:00+02:00", True, "あ", "2024-01-01"]


def test_what_code_prints_is_kept_up_to_a_limit(wasm: Wasm) -> None:
    async def run() -> bytes:
        async with wasm(limits=Limits(stderr_bytes=100)) as runner:
            async with runner.open(PROBES, broker(PROBES, body(b"{}"))) as session:
                await session.call("run", {"code": "for n in range(999): print(n)"})
                return bytes(session.stderr)

    assert asyncio.run(run()).startswith(b"0\n1\n2\n")
    assert len(asyncio.run(run())) == 100


def test_an_upstream_that_fails_in_our_own_code_ends_the_call_only(wasm: Wasm) -> None:
    made = bundle(FETCH, "fetch")

    def broken(request: object) -> Any:
        raise ZeroDivisionError("ours")

    async def run() -> Outcome:
        async with wasm() as runner, runner.open(made, broker(made, Api(broken))) as session:
            outcome: Outcome = await session.call("fetch", {"key": "a"})
            return outcome

    failure = asyncio.run(run()).failure
    assert failure is not None
    assert "ours" in failure.message


def test_nothing_runs_any_more_when_a_session_is_closed(wasm: Wasm) -> None:
    made = bundle(RUN, "run")

    async def run() -> None:
        gate = Gate(9)
        async with wasm() as runner:
            async with runner.open(made, broker(made, gate)) as session:
                codes = ("http.request('GET', '/items/a')", "while True: pass")
                calls = [asyncio.ensure_future(session.call("run", {"code": c})) for c in codes]
                await gate.arrived.wait()
                while not runner.pool.computing:
                    await asyncio.sleep(0)
            assert not runner.pool.computing
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(result, Exception) for result in results)

    asyncio.run(run())
