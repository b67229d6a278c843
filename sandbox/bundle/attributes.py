"""The attributes that values have in the small language of forged code, and those that no code
reaches because they lead to frames, code, classes or the interpreter.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from sandbox.bundle.modules import BUILTINS, MODULES, RUNTIME, list_public_names

PUBLIC_PRIVATE = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_replace"})
"""Documented methods and attributes of named tuples, public in spite of their names."""

READABLE_DUNDERS = frozenset({"__doc__", "__name__", "__qualname__"})
"""Special attributes that are plain text wherever they are."""

RESERVED = frozenset(
    # Frames, code and traces of generators, coroutines and exceptions.
    "ag_await ag_code ag_frame ag_running ag_suspended co_code co_consts co_names cr_await cr_code "
    "cr_frame cr_origin cr_running cr_suspended f_back f_builtins f_code f_generator f_globals "
    "f_lasti f_lineno f_locals f_trace f_trace_lines f_trace_opcodes func_code func_defaults "
    "func_globals gi_code gi_frame gi_running gi_suspended gi_yieldfrom im_class im_func im_self "
    "tb_frame tb_lasti tb_lineno tb_next with_traceback "
    # Classes, modules, how they are loaded, and what runs text.
    "bltns breakpoint create_module ctypes eval exec exec_module find_loader find_module find_spec "
    "get_code get_loader globals importlib load_module locals modules mro builtins subprocess sys "
    # Text that is evaluated (typing.ForwardRef, TypeVar), and generic aliases made anew.
    "copy_with evaluate_bound evaluate_constraints evaluate_default evaluate_forward_ref "
    "evaluate_value "
    # The event loop, and the frames of tasks.
    "add_reader add_signal_handler add_writer connect_accepted_socket connect_read_pipe "
    "connect_write_pipe create_connection create_datagram_endpoint create_server "
    "create_unix_connection create_unix_server get_coro get_loop get_stack print_stack "
    "run_in_executor set_default_executor set_task_factory sock_accept sock_connect "
    "subprocess_exec subprocess_shell "
    # Native code, files and callbacks of a database.
    "blobopen enable_load_extension load_extension set_authorizer "
    "set_progress_handler set_trace_callback".split()
)
"""Public names that no code reaches, also where its own classes define them."""

_HIDDEN = {
    # Values of types that no module names, and what objects get when they are made.
    "dataclasses": "default default_factory metadata name type",
    "csv": "delimiter dialect doublequote escapechar fieldnames line_num lineterminator quotechar "
    "quoting reader restkey restval skipinitialspace strict writer writerow writerows",
    "difflib": "a autojunk b bjunk bpopular fullbcount isjunk size",
    "hashlib": "block_size copy digest digest_size hexdigest name update",
    "hmac": "block_size digest_size",
    "json": "allow_nan check_circular colno doc ensure_ascii indent item_separator key_separator "
    "lineno msg object_hook object_pairs_hook parse_constant parse_float parse_int parse_string "
    "pos skipkeys sort_keys strict",
    "re": "colno lineno msg pattern pos",
    "asyncio": "add_done_callback cancel cancelled cancelling done exception get_name "
    "expired remove_done_callback reschedule result set_name uncancel when",
    "sqlite3": "close commit cursor execute executemany executescript in_transaction "
    "isolation_level rollback row_factory sqlite_errorcode sqlite_errorname text_factory "
    "total_changes",
    "textwrap": "break_long_words break_on_hyphens drop_whitespace expand_tabs "
    "fix_sentence_endings initial_indent max_lines placeholder replace_whitespace "
    "subsequent_indent tabsize width",
    "unicodedata": "bidirectional category combining decimal digit lookup name normalize numeric",
    "zlib": "compress copy decompress eof flush unconsumed_tail unused_data",
}
_RUNTIME = frozenset(
    "answer blocks body charset content_type data details explode failure filename first headers "
    "is_file items method more next pages parameter reason reserved retry_after status structured "
    "style text tool url value where".split()
)
"""What the runtime's values have (images/base/runtime/toolwright)."""


def list_attributes(modules: Iterable[str]) -> frozenset[str]:
    """The public attributes of built-in values, of the runtime's, and of these allowed modules and
    the values that they make.
    """
    found = _list_builtin_attributes() | _RUNTIME
    for module in modules:
        found |= _list_module_attributes(module)
    return found - RESERVED


@cache
def _list_module_attributes(module: str) -> frozenset[str]:
    names = list_public_names(module)
    parts = frozenset(module.split("."))
    if module in RUNTIME or module not in MODULES:
        return names | parts
    loaded = import_module(module)
    shown = (getattr(loaded, name, None) for name in names)
    found = {name for value in shown for name in _iterate_names(value)}
    return frozenset(found | names | parts | {*_HIDDEN.get(module, "").split()})


@cache
def _list_builtin_attributes() -> frozenset[str]:
    exceptions = [v for v in vars(builtins).values() if isinstance(v, type)]
    values = [getattr(builtins, name) for name in BUILTINS if hasattr(builtins, name)]
    others = [(_ for _ in ()), {}.keys(), {}.items(), [].append, _list_builtin_attributes]
    kinds = [kind for kind in exceptions if issubclass(kind, Exception)]
    return frozenset(name for value in (*values, *kinds, *others) for name in _iterate_names(value))


def _iterate_names(value: object) -> Iterator[str]:
    """The public attributes of instances of a class, or of a value."""
    if isinstance(value, ModuleType):
        return
    for kind in (value if isinstance(value, type) else type(value)).__mro__:
        yield from (name for name in vars(kind) if not name.startswith("_"))


def list_private_names(modules: Iterable[str]) -> frozenset[str]:
    """Names with one leading underscore that classes of these allowed modules have: no class of
    forged code makes them its own, since its methods can be called with other values.
    """
    found = frozenset({"_convert_", "_create_", "_eval_type", "_evaluate", "_generate_next_value_"})
    for module in modules:
        found |= _list_module_privates(module)
    return found


@cache
def _list_module_privates(module: str) -> frozenset[str]:
    if module in RUNTIME or module not in MODULES:
        return frozenset()
    values = vars(import_module(module)).values()
    kinds = {kind for v in values if isinstance(v, type) for kind in (*v.__mro__, type(v))}
    names = {name for kind in kinds for name in vars(kind)}
    private = {name for name in names if name.startswith("_") and not name.startswith("__")}
    return frozenset(private - PUBLIC_PRIVATE)
