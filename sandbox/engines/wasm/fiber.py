"""Asynchronous component calls of wasmtime's C API, which wasmtime-py does not wrap.

See `async.h`, `component/func.h` and `component/linker.h` of wasmtime. A call is a future; polling
it runs the instance, on its own stack in the polling thread, until the call is over, an epoch ends
or a host function has to wait. A waiting call holds no thread.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import POINTER, byref
from typing import Any

from wasmtime import Config, Store, WasmtimeError
from wasmtime import _ffi as ffi
from wasmtime.component import Component, Instance, Linker, LinkerInstance

_Error = POINTER(ffi.wasmtime_error_t)
_Values = POINTER(ffi.wasmtime_component_val_t)
_Context = POINTER(ffi.wasmtime_context_t)
_Continuation = ffi.wasmtime_func_async_continuation_callback_t
AsyncFunction = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    _Values,
    ctypes.c_size_t,
    _Values,
    ctypes.c_size_t,
    ctypes.c_void_p,
    POINTER(ffi.wasmtime_async_continuation_t),
)


def _declare_function(name: str, result: Any, *arguments: Any) -> Any:
    prototype = ctypes.CFUNCTYPE(result, *arguments)
    return prototype((name, ffi.dll))


_call = _declare_function(
    "wasmtime_component_func_call_async",
    ctypes.c_void_p,
    POINTER(ffi.wasmtime_component_func_t),
    _Context,
    _Values,
    ctypes.c_size_t,
    _Values,
    ctypes.c_size_t,
    POINTER(_Error),
)
_instantiate = _declare_function(
    "wasmtime_component_linker_instantiate_async",
    ctypes.c_void_p,
    POINTER(ffi.wasmtime_component_linker_t),
    _Context,
    POINTER(ffi.wasmtime_component_t),
    POINTER(ffi.wasmtime_component_instance_t),
    POINTER(_Error),
)
_add = _declare_function(
    "wasmtime_component_linker_instance_add_func_async",
    _Error,
    POINTER(ffi.wasmtime_component_linker_instance_t),
    ctypes.c_char_p,
    ctypes.c_size_t,
    AsyncFunction,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_poll = _declare_function("wasmtime_call_future_poll", ctypes.c_bool, ctypes.c_void_p)
_delete = _declare_function("wasmtime_call_future_delete", None, ctypes.c_void_p)
_new_bytes = _declare_function(
    "wasm_byte_vec_new", None, POINTER(ffi.wasm_byte_vec_t), ctypes.c_size_t, ctypes.c_char_p
)
# The header promises an error, which the function does not return.
_yield_at_epochs = _declare_function(
    "wasmtime_context_epoch_deadline_async_yield_and_update", None, _Context, ctypes.c_uint64
)


def set_stack_size(config: Config, size: int) -> None:
    """Set the stack size of a call in bytes, for the component and the host's functions."""
    ffi.wasmtime_config_async_stack_size_set(config.ptr(), size)


def disable_concurrency(config: Config) -> None:
    """Disable support for concurrent component tasks, which costs a tenth of a call's time."""
    ffi.wasmtime_config_concurrency_support_set(config.ptr(), False)


def instantiate_component(linker: Linker, store: Store, component: Component) -> Instance:
    """Create an instance whose calls yield when an epoch ends. Raises WasmtimeError."""
    raw, error = ffi.wasmtime_component_instance_t(), _Error()
    store.set_epoch_deadline(1)
    _yield_at_epochs(store._context(), 1)
    future = _instantiate(linker.ptr(), store._context(), component.ptr(), byref(raw), byref(error))
    while not _poll(future):
        pass
    _delete(future)
    if error:
        raise WasmtimeError._from_ptr(error)
    return Instance._from_raw(raw)


class AsyncImport:
    """An imported function from string to string that the host answers later.

    `asked` gets the argument, where it is not read because it is longer than `limit` None, and
    returns a key; `answer` gets the key and returns the result, or None while there is none. Both
    run while a call is polled, and must not raise. It has to outlive the instances.
    """

    def __init__(
        self,
        asked: Callable[[str | None], int],
        answer: Callable[[int], str | None],
        limit: Callable[[], int],
    ) -> None:
        self._asked, self._answer, self._limit = asked, answer, limit
        self._results: dict[int, Any] = {}
        self._function, self._continuation = (
            AsyncFunction(self._begin_call),
            _Continuation(self._resume_call),
        )

    def add_to_linker(self, instance: LinkerInstance, name: str) -> None:
        _add_function(instance, name, self._function)

    def forget_call(self, key: int) -> None:
        """Forget the pending result of a call that is over."""
        self._results.pop(key, None)

    def _begin_call(
        self,
        data: Any,
        context: Any,
        kind: Any,
        arguments: Any,
        count: int,
        results: Any,
        result_count: int,
        error: Any,
        continuation: Any,
    ) -> None:
        # The size is looked at first: an argument may be as large as the instance's whole memory.
        fits = arguments[0].of.string.size <= self._limit()
        key = self._asked(_read_string(arguments[0]) if fits else None)
        self._results[key] = results
        continuation[0].callback = self._continuation
        continuation[0].env = key

    def _resume_call(self, key: int) -> bool:
        answer = self._answer(key)
        if answer is None:
            return False
        _write_string(self._results.pop(key)[0], answer)
        return True


class TextSink:
    """An imported function that takes a string and returns nothing.

    `take` gets at most the first `limit` bytes, and returns whether the call may go on; it waits
    for ever where not. Must not raise.
    """

    def __init__(self, take: Callable[[str], bool], limit: int) -> None:
        self._take, self._limit = take, limit
        self._function, self._continuation = (
            AsyncFunction(self._begin_call),
            _Continuation(bool),
        )

    def add_to_linker(self, instance: LinkerInstance, name: str) -> None:
        _add_function(instance, name, self._function)

    def _begin_call(
        self,
        data: Any,
        context: Any,
        kind: Any,
        arguments: Any,
        count: int,
        results: Any,
        result_count: int,
        error: Any,
        continuation: Any,
    ) -> None:
        # Set first: without it wasmtime would call nothing at all.
        continuation[0].callback, continuation[0].env = self._continuation, 0
        continuation[0].env = int(self._take(_read_string(arguments[0], self._limit)))


class ComponentCall:
    """A call of a function without result that runs for the instance's whole life, and the only
    owner of its stack and of its store.

    wasmtime ends the whole process if a stack is deleted while a thread runs on it, or a store
    before its stacks. So the last one out frees both: `close` does at once where nobody polls, and
    else the poll does as it returns. Polls and closings may come from any thread, in any order.
    """

    def __init__(self, store: Store, function: Any, freed: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._polled = self._closed = False
        self._function, self._error, self._freed = function, _Error(), freed
        context = store._context()
        # Taken out of the `Store`, which would free it when Python forgets it.
        self._store = store._consume()
        self._future = _call(byref(function._func), context, None, 0, None, 0, byref(self._error))

    def poll(self) -> bool:
        """Resume the call and return whether it is over. Raises WasmtimeError if it was closed."""
        with self._lock:
            if self._closed or self._polled:
                raise WasmtimeError("the instance was ended")
            self._polled = True
        try:
            over: bool = _poll(self._future)
        finally:
            with self._lock:
                self._polled = False
                closed = self._closed
            if closed:
                self._free()
        return over

    def raise_trap(self) -> None:
        """Raises WasmtimeError if a trap ended the call."""
        if self._error:
            error, self._error = self._error, _Error()
            raise WasmtimeError._from_ptr(error)

    def close(self) -> None:
        """End the call wherever it is, at the latest when the poll under way returns. Idempotent;
        the instance cannot be used afterwards.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._polled:
                return
        self._free()

    def __del__(self) -> None:
        if hasattr(self, "_future"):
            self.close()

    def _free(self) -> None:
        _delete(self._future)
        ffi.wasmtime_store_delete(self._store)
        self._freed()


def _add_function(instance: LinkerInstance, name: str, function: Any) -> None:
    """Raises WasmtimeError."""
    content = name.encode()
    error = _add(instance.ptr(), content, len(content), function, None, None)
    if error:
        raise WasmtimeError._from_ptr(error)


def _read_string(place: Any, limit: int | None = None) -> str:
    content = place.of.string
    size = content.size if limit is None else min(content.size, limit)
    return ctypes.string_at(content.data, size).decode(errors="ignore")


def _write_string(place: Any, text: str) -> None:
    content = text.encode()
    place.kind = ffi.WASMTIME_COMPONENT_STRING
    _new_bytes(byref(place.of.string), len(content), content)
