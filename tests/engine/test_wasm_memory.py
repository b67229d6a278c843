"""What memories of instances begin with, and that nothing gets from one to another."""

from __future__ import annotations

import asyncio
import ctypes
import tempfile
from collections.abc import Callable, Iterator
from mmap import PAGESIZE
from typing import Any

import pytest
from wasmtime import Config, Engine, Instance, Module, Store, Trap, wat2wasm

from sandbox.engines.wasm import memory as memory_module
from sandbox.engines.wasm.component import LoadedComponent
from sandbox.engines.wasm.encoding import UnexpectedComponent
from sandbox.engines.wasm.memory import (
    MAPS_MEMORIES,
    ComponentMemory,
    LinearMemory,
    MemoryCreator,
    MemoryImage,
)
from sandbox.engines.wasm.splitting import WASM_PAGE, split_memory
from sandbox.session.interface import Limits, Outcome
from tests.engine.samples import body, broker, bundle

pytestmark = pytest.mark.skipif(not MAPS_MEMORIES, reason="wasmtime makes the memories here")
Wasm = Callable[..., Any]
RESERVED, GUARD = 64 * WASM_PAGE, WASM_PAGE
LOADED = """
import sys
from toolwright import tool

SEEN = ["loaded"]
print("loading", file=sys.stderr)

@tool
def run(code):
    SEEN.append(code)
    scope = {"seen": SEEN}
    exec(code, scope)
    return {"got": scope.get("got", SEEN)}
"""


@pytest.fixture
def image() -> Iterator[MemoryImage]:
    """An image of one page, which begins with "component"."""
    with tempfile.TemporaryFile() as file:
        file.write(b"component".ljust(WASM_PAGE, b"\0"))
        file.flush()
        yield MemoryImage(ComponentMemory(file.fileno(), 0, WASM_PAGE), WASM_PAGE)


def write(memory: LinearMemory, place: int, content: bytes) -> None:
    ctypes.memmove(memory.get_address(place, len(content)), content, len(content))


def test_what_is_written_to_a_memory_is_in_no_other_of_the_same_image(image: MemoryImage) -> None:
    one, other = (LinearMemory(image, RESERVED, GUARD) for _ in range(2))
    write(one, 0, b"COMPONENT")
    later = LinearMemory(image, RESERVED, GUARD)
    assert one.read().startswith(b"COMPONENT\0")
    assert other.read() == later.read() == b"component".ljust(WASM_PAGE, b"\0")
    for memory in (one, other, later):
        memory.free()


def test_an_image_has_every_change_also_where_the_memory_has_grown(image: MemoryImage) -> None:
    memory = LinearMemory(image, RESERVED, GUARD)
    write(memory, 5000, b"changed")
    memory.grow(3 * WASM_PAGE)
    write(memory, 3 * WASM_PAGE - 4, b"last")
    taken = memory.take_image()
    write(memory, 5000, b"later  ")
    again = LinearMemory(taken, RESERVED, GUARD)
    assert again.size == 3 * WASM_PAGE
    content = again.read()
    assert (content[:9], content[5000:5007], content[-4:]) == (b"component", b"changed", b"last")
    memory.free()
    again.free()


@pytest.mark.parametrize("refused", [False, True])
def test_an_image_has_thousands_of_changes_also_where_the_kernel_writes_none(
    image: MemoryImage, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    if refused:
        monkeypatch.setattr(memory_module._libc, "process_vm_writev", lambda *_: -1)
    reserved, places = 200 * WASM_PAGE, range(0, 200 * WASM_PAGE, 2 * PAGESIZE)
    memory = LinearMemory(image, reserved, GUARD)
    memory.grow(reserved)
    for place in places:
        write(memory, place, str(place).encode())
    taken = memory.take_image()
    again = LinearMemory(taken, reserved, GUARD)
    assert len(taken.changes) == len(places) > 1024
    assert again.read() == memory.read()
    memory.free()
    again.free()


def test_what_is_written_and_written_back_is_no_change(image: MemoryImage) -> None:
    memory = LinearMemory(image, RESERVED, GUARD)
    memory.grow(2 * WASM_PAGE)
    write(memory, 0, b"component")
    write(memory, 2 * WASM_PAGE - 1, b"\0")
    assert len(memory.list_changes()) == 2
    assert memory.take_image().changes == ()
    memory.free()


def test_an_image_with_the_places_of_writes_has_nothing_that_was_written(
    image: MemoryImage,
) -> None:
    memory = LinearMemory(image, RESERVED, GUARD)
    write(memory, 0, b"changed")
    changed = memory.take_image()
    memory.free()
    memory = LinearMemory(changed, RESERVED, GUARD)
    memory.grow(2 * WASM_PAGE)
    for place in (1, PAGESIZE, WASM_PAGE + 1):
        write(memory, place, b"secret")
    wider = memory.include_writes(changed)
    again, before = (LinearMemory(one, RESERVED, GUARD) for one in (wider, changed))
    assert [place for place, _ in wider.changes] == [0, PAGESIZE]
    assert again.read() == before.read()
    for each in (memory, again, before):
        each.free()


def test_a_memory_grows_to_what_is_reserved_and_not_beyond(image: MemoryImage) -> None:
    memory = LinearMemory(image, RESERVED, GUARD)
    memory.grow(RESERVED)
    for size in (RESERVED + WASM_PAGE, WASM_PAGE):
        with pytest.raises(OSError, match="reserved"):
            memory.grow(size)
    with pytest.raises(ValueError, match="no 1 bytes"):
        memory.get_address(RESERVED, 1)
    memory.free()
    with pytest.raises(OSError, match="reserved"):
        LinearMemory(image, WASM_PAGE // 2, GUARD)


def test_what_lies_beyond_a_memory_cannot_be_reached(image: MemoryImage) -> None:
    """Code that wasmtime made for our memories, which counts on what lies behind them."""
    memories, config = MemoryCreator(), Config()
    memories.add_to_config(config)
    store = Store(Engine(config))
    module = Module(
        store.engine,
        """(module (memory 1)
        (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
        (func (export "far") (param i32) (result i32)
            (i32.load offset=0xffffffff (local.get 0)))
        (func (export "store") (param i32) (i32.store (local.get 0) (i32.const 7)))
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))""",
    )
    memories.begin_with(image)
    made: Any = Instance(store, module, []).exports(store)
    assert made["load"](store, 0) == int.from_bytes(b"comp", "little")
    beyond = (WASM_PAGE - 3, WASM_PAGE, 2**20, 2**31 - 4, -(2**31), -WASM_PAGE, -4, -1)
    for place in beyond:
        for function in (made["load"], made["store"], made["far"]):
            with pytest.raises(Trap, match="out of bounds"):
                function(store, place)
    assert made["grow"](store, 1) == 1
    assert made["load"](store, WASM_PAGE) == 0
    for place in beyond[2:]:
        with pytest.raises(Trap, match="out of bounds"):
            made["load"](store, place)
    assert made["grow"](store, 65536) == -1


def test_code_takes_an_image_that_is_larger_than_the_memory_it_declares() -> None:
    memories, config = MemoryCreator(), Config()
    memories.add_to_config(config)
    store = Store(Engine(config))
    module = Module(
        store.engine,
        """(module (memory 1)
        (func (export "size") (result i32) (memory.size))
        (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))""",
    )
    with tempfile.TemporaryFile() as file:
        file.write(bytes(WASM_PAGE) + b"next".ljust(WASM_PAGE, b"\0"))
        file.flush()
        grown = ComponentMemory(file.fileno(), 0, 2 * WASM_PAGE)
        memories.begin_with(MemoryImage(grown, 2 * WASM_PAGE))
        made: Any = Instance(store, module, []).exports(store)
        assert made["size"](store) == 2
        assert made["load"](store, WASM_PAGE) == int.from_bytes(b"next", "little")
        with pytest.raises(Trap, match="out of bounds"):
            made["load"](store, 2 * WASM_PAGE)


def component_of(*modules: str) -> bytes:
    return bytes(wat2wasm(f"(component {' '.join(f'(core module {m})' for m in modules)})"))


def test_a_component_is_split_into_its_code_and_what_its_memory_begins_with() -> None:
    wasm = component_of(
        "(func)", '(memory 2) (data (i32.const 70000) "ab") (data (i32.const 0) "c")'
    )
    code, content = split_memory(wasm)
    assert len(content) == 2 * WASM_PAGE
    assert (content[:2], content[70000:70003]) == (b"c\0", b"ab\0")
    assert sum(content) == sum(b"abc")
    assert code == component_of("(func)", "(memory 2)")


@pytest.mark.parametrize(
    "modules",
    [
        ("(func)",),
        ("(memory 1)", "(memory 1)"),
        ('(memory 1) (data "passive")',),
        ('(memory 1) (data (i32.const 65535) "ab")',),
        ('(memory 1) (data (i32.const -1) "a")',),
        ('(import "a" "b" (memory 1)) (data (i32.const 0) "a")',),
    ],
)
def test_a_component_whose_memory_cannot_be_told_is_refused(modules: tuple[str, ...]) -> None:
    with pytest.raises(UnexpectedComponent):
        split_memory(component_of(*modules))


def run_codes(wasm: Wasm, source: str, *codes: str, **options: Any) -> tuple[list[Outcome], bytes]:
    """Pure calls in one session, all at once, and what was printed in it."""
    server = bundle(source, "run", pure=True)

    async def run() -> tuple[list[Outcome], bytes]:
        async with wasm(**options) as runner:
            async with runner.open(server, broker(server, body(b"{}"))) as session:
                calls = [session.call("run", {"code": code}) for code in codes]
                return list(await asyncio.gather(*calls)), bytes(session.stderr)

    return asyncio.run(run())


def test_every_pure_call_begins_where_loading_ended(wasm: Wasm) -> None:
    codes = [f"x = {number}" for number in range(12)]
    outcomes, printed = run_codes(wasm, LOADED, *codes)
    assert [o.structured["got"] for o in outcomes] == [["loaded", code] for code in codes]
    assert printed == b"loading\n"


def test_a_call_that_is_cut_leaves_the_next_ones_as_they_would_be(wasm: Wasm) -> None:
    codes = ("import os; seen.append(1); os.abort()", "seen.append(2)", "x = [0] * 10**9")
    outcomes, _ = run_codes(wasm, LOADED, *codes, *codes)
    for aborted, fine, large in (outcomes[:3], outcomes[3:]):
        assert aborted.failure is not None
        assert "unreachable" in aborted.failure.message
        assert fine.structured["got"] == ["loaded", codes[1], 2]
        assert large.failure is not None
        assert "MemoryError" in large.failure.message


def test_memory_that_loading_took_counts_towards_the_limit(wasm: Wasm) -> None:
    code = "x = []\nwhile True: x.append(bytearray(1 << 20)); print(len(x))"

    def count_megabytes(source: str) -> int:
        limits = Limits(memory_mb=32, stderr_bytes=4096)
        (outcome,), printed = run_codes(wasm, source, code, limits=limits)
        assert outcome.failure is not None
        assert "MemoryError" in outcome.failure.message
        return int(printed.split()[-2])

    less = count_megabytes("BLOB = bytearray(20 << 20)\n" + LOADED)
    assert 15 < count_megabytes(LOADED) - less < 25


@pytest.mark.parametrize(
    "wait",
    [
        # A new instance asks for its first line like this; the one that was loaded never did.
        "if answer == '':\n        while True: pass",
        "if answer == '':\n        raise ValueError('no')",
    ],
)
def test_code_that_keeps_an_instance_from_starting_is_cut(wasm: Wasm, wait: str) -> None:
    source = f"""
import wit_world
NEXT_LINE = wit_world.next_line

def wait(answer):
    {wait}
    return NEXT_LINE(answer)

wit_world.next_line = wait
"""
    outcomes, _ = run_codes(wasm, source + LOADED, "x = 1", "x = 2")
    for outcome in outcomes:
        assert outcome.failure is not None
        assert outcome.failure.kind == "bug"


def test_code_that_does_not_come_to_rest_is_told(wasm: Wasm) -> None:
    source = """
import wit_world
NEXT_LINE = wit_world.next_line
wit_world.next_line = lambda answer: NEXT_LINE(answer) or wit_world.exchange("{}")
"""
    (outcome,), _ = run_codes(wasm, source + LOADED, "x = 1")
    assert outcome.failure is not None
    assert "come to rest" in outcome.failure.message


def test_the_memories_of_a_session_are_freed_with_it(
    wasm: Wasm, component: LoadedComponent
) -> None:
    assert component.memories is not None
    before = component.memories.count_live()
    run_codes(wasm, LOADED, *(f"x = {number}" for number in range(6)))
    assert component.memories.count_live() == before
