"""Merging of a component's modules: it does what it did."""

from __future__ import annotations

import pytest
from wasmtime import Config, Engine, Store, wat2wasm
from wasmtime.component import Component, Linker

from sandbox.engines.wasm.encoding import UnexpectedComponent
from sandbox.engines.wasm.merging import merge_modules

BASE = """
(core module $base
  (memory (export "memory") 1)
  (table (export "table") 8 funcref)
  (global (export "stack") (mut i32) (i32.const 5000))
  (global (export "first") i32 (i32.const 3)))
(core instance $base (instantiate $base))
"""
LIBRARY = """
(core module $library
  (import "env" "memory" (memory 1))
  (import "env" "table" (table 8 funcref))
  (import "env" "stack" (global $stack (mut i32)))
  (import "env" "first" (global $first i32))
  (import "host" "drop" (func $drop (param i32)))
  (type $binary (func (param i32 i32) (result i32)))
  (global $next i32 (i32.add (global.get $first) (i32.const 1)))
  (elem (global.get $first) func $subtract $multiply)
  (func $subtract (type $binary) (i32.sub (local.get 0) (local.get 1)))
  (func $multiply (type $binary) (i32.mul (local.get 0) (local.get 1)))
  (func (export "choose") (param $which i32) (result i32)
    (global.set $stack (i32.sub (global.get $stack) (i32.const 16)))
    (block $last (block $middle (block $zero
      (br_table $zero $middle $last (local.get $which)))
      (return (i32.const 70000)))
      (return (global.get $stack)))
    (i64.store offset=8 (global.get $stack) (i64.const -3))
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 4))
    (i32.add (i32.load (i32.const 0)) (i32.load offset=8 (global.get $stack))))
  (func (export "next") (result i32) (global.get $next)))
"""
USER = """
(core module $user
  (import "library" "choose" (func $choose (param i32) (result i32)))
  (import "library" "next" (func $next (result i32)))
  (import "env" "table" (table 8 funcref))
  (type $unused (func (param f64)))
  (type $binary (func (param i32 i32) (result i32)))
  (func (export "compute") (param $which i32) (param $value i32) (result i32)
    (local $kept f32)
    (local.set $kept (f32.const 1.5))
    (if (result i32) (i32.lt_u (local.get $which) (i32.const 3))
      (then (call $choose (local.get $which)))
      (else
        (local.get $value) (i32.const 7)
        (block (param i32 i32) (result i32)
          (i32.sub (local.get $which) (i32.const 3))
          (i32.add (global.get $offset) (call $next))
          (i32.add) (i32.const 1) (i32.sub)
          (call_indirect (type $binary))))))
  (global $offset i32 (i32.const 0)))
"""
WHOLE = f"""(component
  (type $thing' (resource (rep i32)))
  (core func $drop (canon resource.drop $thing'))
  {BASE} {LIBRARY}
  (core instance $library (instantiate $library
    (with "env" (instance
      (export "memory" (memory $base "memory")) (export "table" (table $base "table"))
      (export "stack" (global $base "stack")) (export "first" (global $base "first"))))
    (with "host" (instance (export "drop" (func $drop))))))
  {USER}
  (core instance $user (instantiate $user
    (with "library" (instance $library)) (with "env" (instance $base))))
  (func (export "compute") (param "which" u32) (param "value" u32) (result u32)
    (canon lift (core func $user "compute"))))"""


def compute_all(wasm: bytes) -> list[int]:
    engine = Engine(Config())
    component = Component(engine, wasm)
    results = []
    for which in range(5):
        store = Store(engine)
        instance = Linker(engine).instantiate(store, component)
        function = instance.get_func(store, "compute")
        assert function is not None
        results.append(function(store, which, 100))
        function.post_return(store)
    return results


def count_modules(wasm: bytes) -> int:
    return wasm.count(b"\0asm\x01\0\0\0")


def test_a_merged_component_does_what_it_did() -> None:
    wasm = bytes(wat2wasm(WHOLE))
    merged = merge_modules(wasm)
    assert (count_modules(wasm), count_modules(merged)) == (3, 1)
    assert compute_all(merged) == compute_all(wasm)
    assert compute_all(merged)[3:] == [93, 700]


@pytest.mark.parametrize(
    "module",
    [
        '(memory (export "memory") 1) (data (i32.const 0) "a")',
        '(memory (export "memory") 1)',
        '(table 1 funcref) (memory (export "memory") 1) (memory 1)',
        '(table 1 funcref) (memory (export "memory") 1) (func (export "run")) (start 0)',
        '(table 1 funcref) (memory (export "memory") 1)'
        " (func (drop (table.grow (ref.null func) (i32.const 1))))",
        '(table 1 funcref) (memory (export "memory") 1) (func (drop (v128.const i64x2 0 0)))',
        '(table 1 funcref) (memory (export "memory") 1) (func $f) (func (drop (ref.func $f)))'
        " (elem declare func $f)",
        '(table 1 funcref) (memory (export "memory") 1) (global i64 (i64.const 1))',
    ],
)
def test_a_component_that_cannot_be_merged_is_refused(module: str) -> None:
    whole = f"""(component (core module $m {module} (func (export "f")))
        (core instance $m (instantiate $m))
        (func (export "f") (canon lift (core func $m "f"))))"""
    with pytest.raises(UnexpectedComponent):
        merge_modules(bytes(wat2wasm(whole)))


def test_a_component_without_a_module_is_refused() -> None:
    with pytest.raises(UnexpectedComponent):
        merge_modules(bytes(wat2wasm("(component)")))
