"""Allowlists of modules and names that forged code may use; everything else is refused."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType

BUILTINS = frozenset(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter "
    "float format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map "
    "max min next object oct ord pow print range repr reversed round set slice sorted str sum "
    "tuple type zip Ellipsis False None NotImplemented True".split()
)
"""The allowed built-ins besides exceptions; `print` and `type` have rules of their own."""

_NO_ERRORS = frozenset({"BaseException", "GeneratorExit", "KeyboardInterrupt", "SystemExit"})

DYNAMIC = frozenset(
    {
        name
        for name, value in vars(builtins).items()
        if name not in BUILTINS
        and not name.startswith("_")
        and (name in _NO_ERRORS or not (isinstance(value, type) and issubclass(value, Exception)))
    }
    | {"__import__", "copyright", "credits", "exit", "help", "license", "quit", "unichr"}
)
"""All other built-ins of this and other Python versions, which are refused."""

MODULES = frozenset(
    {
        "__future__",
        "asyncio",
        "base64",
        "binascii",
        "collections",
        "collections.abc",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fractions",
        "hashlib",
        "hmac",
        "html",
        "io",
        "itertools",
        "json",
        "math",
        "re",
        "sqlite3",
        "statistics",
        "textwrap",
        "toolwright",
        "toolwright.content",
        "toolwright.environment",
        "toolwright.files",
        "toolwright.graphql",
        "toolwright.network",
        "toolwright.pages",
        "toolwright.servers",
        "toolwright.styles",
        "typing",
        "unicodedata",
        "urllib.parse",
        "uuid",
        "zlib",
        "zoneinfo",
    }
)
RUNTIME: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "toolwright": "UNSET Answer HttpError MalformedAnswer Refused ToolError Unset Upstream "
        "content environment files graphql http network pages progress servers styles tool",
        "toolwright.content": "Content audio document image mixed text",
        "toolwright.environment": "get",
        "toolwright.files": "entries read read_text write",
        "toolwright.graphql": "GraphqlError request",
        "toolwright.http": "request",
        "toolwright.network": "dns tcp tls_peer",
        "toolwright.pages": "Pages by_cursor by_id by_link by_offset by_page by_url",
        "toolwright.servers": "CallFailed call",
        "toolwright.styles": "Part Styled csv deep exploded file json_lines json_sequence "
        "json_text label matrix part pipes raw ssv tsv unescaped whole xml_text",
    }.items()
}
"""The runtime's API (docs/runtime-protocol.md, section 4), which is not importable here."""
_ONLY: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        # Nothing that opens sockets, starts processes or hands out the event loop.
        "asyncio": "ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION Barrier BoundedSemaphore "
        "BrokenBarrierError CancelledError Condition Event InvalidStateError LifoQueue Lock "
        "PriorityQueue Queue QueueEmpty QueueFull QueueShutDown Semaphore TaskGroup TimeoutError "
        "as_completed create_task gather iscoroutine iscoroutinefunction run shield sleep timeout "
        "wait wait_for",
        # `make_dataclass` and `Field` make classes of text.
        "dataclasses": "FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field "
        "fields is_dataclass replace",
        "enum": "CONFORM CONTINUOUS EJECT Enum EnumCheck Flag FlagBoundary IntEnum IntFlag KEEP "
        "NAMED_FLAGS ReprEnum STRICT StrEnum UNIQUE auto unique",
        # A database in memory (`sandbox.stages.static.reach.outside_database`).
        "sqlite3": "Cursor DataError DatabaseError Error IntegrityError InterfaceError "
        "InternalError NotSupportedError OperationalError ProgrammingError Row Warning "
        "complete_statement connect sqlite_version sqlite_version_info",
    }.items()
}
_WITHOUT: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        # They open files, ask the operating system, change classes, or run text as code; the
        # others are not the module's own.
        "hashlib": "file_digest",
        "io": "FileIO IncrementalNewlineDecoder OpenWrapper open open_code text_encoding",
        "typing": "ForwardRef ParamSpecArgs ParamSpecKwargs clear_overloads evaluate_forward_ref "
        "get_annotations get_args get_origin get_overloads get_protocol_members get_type_hints "
        "no_type_check no_type_check_decorator reveal_type",
        "uuid": "Enum bytes_ getnode int_ main uuid1 uuid6",
        "zoneinfo": "TZPATH reset_tzpath",
    }.items()
}
"""Public names that servers may not use."""


@cache
def list_public_names(module: str) -> frozenset[str]:
    """The names of an allowed module that servers may use; empty for any other module.

    Modules among its attributes are left out: `re.enum.sys` would lead to every module.
    """
    if module in RUNTIME:
        return RUNTIME[module]
    if module not in MODULES:
        return frozenset()
    if module in _ONLY:
        return _ONLY[module]
    loaded = import_module(module)
    names = getattr(loaded, "__all__", None) or dir(loaded)
    shown = {name for name in names if not name.startswith("_")}
    modules = {name for name in shown if isinstance(getattr(loaded, name, None), ModuleType)}
    return frozenset(shown - modules - _WITHOUT.get(module, frozenset()))


def is_module(name: str) -> bool:
    """Whether a dotted name is an allowed module, of which each used name is checked."""
    return name in MODULES or name in RUNTIME
