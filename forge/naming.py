"""Tool, server and argument names: valid, unique, and the same each time a document is compiled."""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from sandbox.bundle.apispec import Operation, Parameter

# As `sandbox.bundle.model.NAME`, which bundles and tools are held to.
MAX_NAME = 40
MAX_ARGUMENT = 64
STYLES = tuple(
    "csv deep exploded file json_lines json_sequence json_text label matrix part pipes raw ssv tsv "
    "unescaped whole xml_text".split()
)
PAGES = tuple("by_cursor by_id by_link by_offset by_page by_url".split())
API = frozenset(
    {"Answer", "Any", "UNSET", "Unset", "graphql", "http", "isinstance", "tool", *PAGES, *STYLES}
)
"""What `server.py` uses, and so nothing else in it may be called."""
TYPES = frozenset({"bool", "dict", "float", "int", "list", "str"})
"""What its annotations say, and so no tool may be called."""
_RESERVED = API | TYPES
_AMBIGUOUS = frozenset({"I", "O", "l"})
"""Letters that linters do not want as names: they look like digits."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))")
_OTHER = re.compile(r"[^a-z0-9]+")
_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_SPELLED = re.compile(r"\bopen[ -]?api\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:https?://)?(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+|localhost)(?::\d+)?(?:/\S*)?", re.IGNORECASE
)
_VERSION = re.compile(
    r"\b(?:openapi|swagger|oas|version|ver|release)[ .:-]{0,3}v?\d+(?:\.\d+){0,3}\b"
    r"|\bv\d+(?:\.\d+){0,3}\w{0,8}\b|\b\d+\.\d+(?:\.\d+){0,2}\b",
    re.IGNORECASE,
)
_LEADING_NOISE = frozenset("the a an official openapi swagger welcome to".split())
_TRAILING_NOISE = frozenset(
    "api apis definition definitions doc docs documentation openapi rest restful reference schema "
    "spec specification specifications swagger of for the and version".split()
)
_GENERIC_TITLE = (
    _LEADING_NOISE
    | _TRAILING_NOISE
    | frozenset(
        "app application backend default demo django doc express fast fastapi fastify flasgger "
        "flask gateway go hello hono litestar my nest ninja node project server service "
        "snippets test title untitled web world your".split()
    )
)
"""Words of titles that frameworks give where nobody wrote one."""
_BESIDES = frozenset("docs health healthz livez metrics openapi ping readyz schema status".split())
"""Resources that any API has beside its own."""
_HOST_NOISE = frozenset(
    "api apis app backend beta co com data dev development docs edge gateway internal local "
    "localhost net org prod production public rest sandbox server service staging svc test v1 v2 "
    "v3 web www".split()
)
_CONTROLLER = re.compile(r"(?<=[A-Za-z0-9])Controller(?=[._][A-Za-z])")
"""Of the class whose method an operation is, as NestJS and LoopBack call it: every tool would have
the word, and nobody asks for it.
"""
_METHOD_TWICE = re.compile(r"\A(get|put|post|patch|delete)_(?=\1_)")
"""Of a function whose name begins with its method, to which sanic-ext and quart-schema add it."""
_GLUED_METHOD = re.compile(r"\A(get|put|post|patch|delete)(?=[a-z]{3})")
"""Of an id that has its method before a noun without a gap, as Eve's `getpeople`."""
_PREFIX_SEGMENT = re.compile(r"api|rest|v\d+(\.\d+)*", re.IGNORECASE)


@lru_cache(4096)
def to_snake_case(text: str) -> str:
    """Return the text as lower-case ASCII words joined by underscores; "" where none is left."""
    plain = _to_ascii(text)
    return _OTHER.sub("_", _CAMEL.sub("_", plain).lower()).strip("_")


def _to_ascii(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def name_tools(operations: Sequence[Operation]) -> dict[str, str]:
    """Name the tool of each operation, by operation id.

    A name comes from the operation's own id, else from method and path. Where two operations want
    the same name neither gets it as it is, so that the order of a document does not matter.
    """
    names: dict[str, str] = {}
    left = list(operations)
    for candidate in (_name_from_id, _name_from_path, _name_with_digest):
        wanted = {operation.id: candidate(operation) for operation in left}
        counts = Counter(wanted.values())
        taken = set(names.values())
        for key, name in wanted.items():
            if name and counts[name] == 1 and name not in taken:
                names[key] = name
        left = [operation for operation in left if operation.id not in names]
    for operation in left:
        names[operation.id] = _find_free_name(
            _name_with_digest(operation), set(names.values()), MAX_NAME
        )
    return names


def name_server(title: str, base_url: str = "", resources: Iterable[str] = ()) -> str:
    """Derive a server's name from the API's title, without versions and words that any title has.

    Where nothing is left, or the title is an address, the name comes from the host of the base URL,
    else from the `resources`, the first parts of its paths, of which it has one alone or one most.
    """
    address = _ADDRESS.fullmatch(title.strip()) is not None
    name = "" if address else _strip_noise(title)
    name = name or _name_from_host(base_url) or _find_main_resource(resources)
    if address and not name:
        name = _name_from_host(f"http://{title.strip().rpartition('//')[2]}")
    name = name if name[:1].isalpha() else f"api_{name}".rstrip("_")
    return _fit_name(f"{name}_api" if _is_reserved(name) else name, title, "")


def _strip_noise(title: str) -> str:
    """The words of a title that say which API it is; "" where there are none."""
    plain = _VERSION.sub(" ", _SPELLED.sub("openapi", title))
    words = [word for word in to_snake_case(plain).split("_") if word]
    while words and words[0] in _LEADING_NOISE:
        words = words[1:]
    while words and words[-1] in _TRAILING_NOISE:
        words = words[:-1]
    return "" if set(words) <= _GENERIC_TITLE else "_".join(words)


def _name_from_host(base_url: str) -> str:
    """The part of a host's name that tells it from others; "" for an IP address or this machine."""
    host = (urlsplit(base_url).hostname or "").lower()
    if not host or host.replace(".", "").isdigit() or ":" in host:
        return ""
    labels = host.split(".")
    own = labels[:-1] if len(labels) > 1 else labels
    telling = [label for label in own if label not in _HOST_NOISE and not label.isdigit()]
    return to_snake_case(telling[0]) if telling else ""


def _find_main_resource(resources: Iterable[str]) -> str:
    """The resource that more than half of the operations are about."""
    named = filter(None, map(to_snake_case, resources))
    counts = Counter(name for name in named if name not in _BESIDES)
    if not counts:
        return ""
    name, often = counts.most_common(1)[0]
    return name if 2 * often > counts.total() else ""


def name_arguments(parameters: Iterable[Parameter]) -> list[str]:
    """Name the argument of each parameter: a Python identifier, the document's own name where it is
    one.

    Parameters of one name in several locations are distinguished by the location.
    """
    names: list[str] = []
    for parameter in parameters:
        name = _to_identifier(parameter.name)
        if name in names:
            name = f"{name}_{parameter.location}"
        names.append(_find_free_name(name, names, MAX_ARGUMENT) if name in names else name)
    return names


def name_body_argument(taken: Collection[str]) -> str:
    """Name the argument that is the request's body."""
    return "body" if "body" not in taken else _find_free_name("request_body", taken, MAX_ARGUMENT)


def name_pager_argument(taken: Collection[str]) -> str:
    """Name the argument that limits how many items are collected over the pages."""
    return _find_free_name("max_items", taken, MAX_ARGUMENT)


def _name_from_id(operation: Operation) -> str:
    if operation.id.startswith(f"{operation.method} /"):
        return ""
    name = _METHOD_TWICE.sub("", to_snake_case(_CONTROLLER.sub("", operation.id)))
    glued = _GLUED_METHOD.match(name)
    if glued and glued[1] == operation.method.lower():
        # `postage` and `getaway` are words of their own where the path has them.
        if name.partition("_")[0] not in to_snake_case(operation.path).split("_"):
            name = f"{glued[1]}_{name[glued.end() :]}"
    if name.endswith(to_snake_case(operation.method)):
        # FastAPI writes function, path and method into the id; the function says it all.
        generated = to_snake_case(f"{operation.path} {operation.method}")
        name = name.removesuffix(f"_{generated}")
    return _fit_name(name, operation.id, operation.method)


def find_resource(operation: Operation) -> str:
    """Return the first part of a path that is no prefix, such as `pets` of `/api/v1/pets/{id}`; ""
    where that is a placeholder.
    """
    first = next(iter(_list_segments(operation)), "")
    return "" if "{" in first or _PREFIX_SEGMENT.fullmatch(first) else first


def _list_segments(operation: Operation) -> list[str]:
    segments = [part for part in operation.path.split("/") if part]
    while len(segments) > 1 and _PREFIX_SEGMENT.fullmatch(segments[0]):
        segments = segments[1:]
    return segments


def _name_from_path(operation: Operation) -> str:
    segments = _list_segments(operation)
    # OData writes a key behind its collection: `/Authors({ID})/books`.
    fixed = [part.partition("{")[0] for part in segments]
    name = to_snake_case(" ".join([operation.method.lower(), *fixed]))
    if segments and "{" in segments[-1]:
        name += "_by_" + to_snake_case(segments[-1].partition("{")[2])
    return _fit_name(name.strip("_"), f"{operation.method} {operation.path}", operation.method)


def _name_with_digest(operation: Operation) -> str:
    base = _name_from_id(operation) or _name_from_path(operation)
    mark = _hash_text(f"{operation.method} {operation.path} {operation.id}")
    # 7: an underscore and six hexadecimal digits.
    return f"{_take_leading_words(base, MAX_NAME - 7)}_{mark}"


def _fit_name(name: str, original: str, method: str) -> str:
    if name and not name[0].isalpha():
        name = f"{method.lower() or 'x'}_{name}"
    if _is_reserved(name):
        name = f"{method.lower() or 'x'}_{name}"
    if len(name) > MAX_NAME:
        name = f"{_take_leading_words(name, MAX_NAME - 7)}_{_hash_text(original)}"
    return name


def _is_reserved(name: str) -> bool:
    return keyword.iskeyword(name) or name in _RESERVED


def _take_leading_words(name: str, limit: int) -> str:
    """Return the leading words of a name that fit into the limit."""
    if len(name) <= limit:
        return name
    cut = name[: limit + 1].rfind("_")
    return name[: cut if cut > limit // 2 else limit].rstrip("_")


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


@lru_cache(4096)
def _to_identifier(name: str) -> str:
    plain = _to_ascii(name)
    made = _NOT_IDENTIFIER.sub("_", plain)
    if made != name:
        made = made.strip("_").lower() if "-" in name else made.strip("_")
    if name.strip("*") == "":
        # What a framework calls the rest of a path (Elysia, Fastify).
        made = "path"
    if not made or made[0].isdigit():
        made = f"p_{made}".rstrip("_")
    if made.startswith("__"):
        made = f"p{made}"
    made = made[:MAX_ARGUMENT]
    return f"{made}_" if keyword.iskeyword(made) or made in API | _AMBIGUOUS else made


def _find_free_name(name: str, taken: Collection[str], limit: int) -> str:
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name[: limit - len(str(number)) - 1]}_{number}"
    return candidate
