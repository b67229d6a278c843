"""Asynchronous component calls of wasmtime's C API, which wasmtime-py does not wrap.

See `async.h`, `component/func.h` and `component/linker.h` of wasmtime. A call is a future; polling
it runs the instance, on its own stack in the polling thread, until the call is over, an epoch ends
or a host function has to wait. A waiting call holds no thread.
"""

from __future__ import annotations

import ctypes
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

    `asked` gets the argument and returns a key; `answer` gets the key and returns the result, or
    None while there is none. Both run while a call is polled. It has to outlive the instances.
    """

    def __init__(self, asked: Callable[[str], int], answer: Callable[[int], str | None]) -> None:
        self._asked, self._answer = asked, answer
        self._results: dict[int, Any] = {}
        self._function, self._continuation = (
            AsyncFunction(self._begin_call),
            _Continuation(self._resume_call),
        )

    def add_to_linker(self, instance: LinkerInstance, name: str) -> None:
        content = name.encode()
        error = _add(instance.ptr(), content, len(content), self._function, None, None)
        if error:
            raise WasmtimeError._from_ptr(error)

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
        key = self._asked(_read_string(arguments[0]))
        self._results[key] = results
        continuation[0].callback = self._continuation
        continuation[0].env = key

    def _resume_call(self, key: int) -> bool:
        answer = self._answer(key)
        if answer is None:
            return False
        _write_string(self._results.pop(key)[0], answer)
        return True


class ComponentCall:
    """A call of a function without result that runs for the instance's whole life."""

    def __init__(self, context: Any, function: Any) -> None:
        self._function, self._error = function, _Error()
        self._future = _call(byref(function._func), context, None, 0, None, 0, byref(self._error))

    def poll(self) -> bool:
        """Resume the call and return whether it is over. In one thread at a time."""
        over: bool = _poll(self._future)
        return over

    def raise_trap(self) -> None:
        """Raises WasmtimeError if a trap ended the call."""
        if self._error:
            raise WasmtimeError._from_ptr(self._error)

    def close(self) -> None:
        """End the call wherever it is. Idempotent; the instance cannot be used afterwards."""
        if self._future:
            _delete(self._future)
            self._future = None


def _read_string(place: Any) -> str:
    content = place.of.string
    return ctypes.string_at(content.data, content.size).decode()


def _write_string(place: Any, text: str) -> None:
    content = text.encode()
    place.kind = ffi.WASMTIME_COMPONENT_STRING
    _new_bytes(byref(place.of.string), len(content), content)
