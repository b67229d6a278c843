"""Resolution of `$ref` in the main document and in files beside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from forge.errors import DocumentError
from forge.readers.document import (
    MAX_BYTES,
    Document,
    DocumentProblem,
    escape_token,
    parse_value,
    read_file,
)

MAX_FILES = 4000
MAX_TOTAL_BYTES = 2 * MAX_BYTES
MAX_HOPS = 64
_KINDS = (
    (("definitions",), ("components", "schemas")),
    (("parameters",), ("components", "parameters")),
    (("responses",), ("components", "responses")),
)
"""Where parts of a kind are in Swagger 2.0 and in OpenAPI 3."""
_SECTIONS = {"": _KINDS[0]} | {"/".join(place): kind for kind in _KINDS for place in kind}
_NAMING = (("$id", ""), ("$self", ""), ("$anchor", "#"), ("$dynamicAnchor", "#"))
"""What names a place, and how a reference to that begins; `$self` is 3.2's."""
_SUFFIXES = frozenset({".yaml", ".yml", ".json", ""})


Place = tuple[Any, ...]
"""Where a value stands: its parent's place and its key in that; empty for the whole file."""


class Node(NamedTuple):
    """A value of a document and where it stands: the file, and the place in it.

    Hardly a place is ever written, so its pointer is made when it is asked for.
    """

    value: Any
    file: str
    place: Place = ()

    @property
    def pointer(self) -> str:
        """The JSON pointer to the place (RFC 6901)."""
        return "".join("/" + escape_token(key) for key in self.keys)

    @property
    def keys(self) -> list[Any]:
        """The keys on the way to the place."""
        keys, place = [], self.place
        while place:
            place, key = place
            keys.append(key)
        return keys[::-1]

    def get_child(self, key: str | int) -> Node:
        """Return the value under a key. Raises KeyError or IndexError."""
        value, file, place = self
        return _make_node((value[key], file, (place, key)))

    def get(self, key: str) -> Node:
        """Return the value under a key of a mapping; a node of None where there is none."""
        value, file, place = self
        value = value.get(key) if isinstance(value, dict) else None
        return _make_node((value, file, (place, key)))

    def read(self, key: str) -> Any:
        """Return the plain value under a key of a mapping; None where there is none."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def list_items(self) -> list[tuple[str, Node]]:
        """Return the members of a mapping, without extensions (`x-…`); none where it is none."""
        value, file, place = self
        if not isinstance(value, dict):
            return []
        return [
            (key, _make_node((item, file, (place, key))))
            for key, item in value.items()
            if not key.startswith("x-")
        ]

    def list_elements(self) -> list[Node]:
        """Return the elements of a list; none where it is no list."""
        value, file, place = self
        if not isinstance(value, list):
            return []
        return [_make_node((item, file, (place, key))) for key, item in enumerate(value)]

    def to_problem(self, reason: str) -> DocumentProblem:
        """Return a problem at this place."""
        return DocumentProblem(self.file, self.pointer, reason)


_make_node = partial(tuple.__new__, Node)
"""Makes a node of its three parts; hundreds of thousands are made of a large description."""


class UnresolvedReference(Exception):
    """A reference cannot be resolved. Caught where the reference stands."""

    def __init__(self, problem: DocumentProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class References:
    """Resolves references. Other files are read when first needed and kept.

    Files are named by their path relative to the main file, or by their URL.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._roots: dict[str, Any] = {document.url or document.name: document.root}
        self._failed: dict[str, str] = {}
        self._anchors: dict[str, dict[str, Node]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._found: dict[tuple[str, str], Node] = {}
        self._nesting = 0
        self._bytes = len(document.content)
        self.root = Node(document.root, document.url or document.name)
        self.problems: list[DocumentProblem] = []

    def resolve_node(self, node: Node) -> Node:
        """Return the node, or the one at the end of its chain of references. Raises
        UnresolvedReference.
        """
        if not isinstance(node.value, dict) or "$ref" not in node.value:
            return node
        origin, hops = node, 0
        while isinstance(node.value, dict) and isinstance(node.value.get("$ref"), str):
            node, hops = self.resolve_reference(node, node.value["$ref"]), hops + 1
            if hops > MAX_HOPS:
                raise UnresolvedReference(origin.to_problem("the reference leads back to itself"))
        return node

    def resolve_reference(self, node: Node, reference: str) -> Node:
        """Return the node that a reference at `node` names. Raises UnresolvedReference."""
        place = (node.file, reference)
        if place not in self._found:
            self._found[place] = self._find_target(node, reference)
        return self._found[place]

    def _find_target(self, node: Node, reference: str) -> Node:
        location, fragment = _split_reference(reference.strip())
        shown = reference[:200]
        try:
            if not location:
                return self._resolve_pointer(node.file, fragment)
            by_id = self._collect_anchors(node.file).get(location) if ":" in location else None
            if by_id is not None:
                return self._walk_pointer(by_id, fragment)
            return self._resolve_pointer(self._open_file(node.file, location), fragment)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            meant = self._find_misplaced(reference)
            if meant is not None:
                return meant
            told = error.args[0] if isinstance(error, _FileNotRead) else "there is nothing there"
            raise UnresolvedReference(
                node.to_problem(f"cannot follow $ref {shown!r}: {told}")
            ) from error

    def _resolve_pointer(self, file: str, fragment: str) -> Node:
        return self._walk_pointer(Node(self._roots[file], file), fragment)

    def _walk_pointer(self, node: Node, fragment: str) -> Node:
        if fragment and not fragment.startswith("/"):
            return self._collect_anchors(node.file)["#" + fragment]
        for token in fragment.split("/")[1:]:
            # Hardly a token has an escape.
            key = token
            if "%" in token or "~" in token:
                key = unquote(token).replace("~1", "/").replace("~0", "~")
            if isinstance(node.value, dict) and key not in node.value and "$ref" in node.value:
                node = self._follow_nested(node)
            node = node.get_child(int(key) if isinstance(node.value, list) else key)
        return node

    def _follow_nested(self, node: Node) -> Node:
        if self._nesting >= MAX_HOPS:
            raise UnresolvedReference(node.to_problem("the reference leads back to itself"))
        self._nesting += 1
        try:
            return self.resolve_node(node)
        finally:
            self._nesting -= 1

    def _find_misplaced(self, reference: str) -> Node | None:
        """Return the part of the document that a reference means which names it by its name alone,
        as Swagger 1.2 did, without `#` or `/`, or where another version has such parts.
        """
        section, _, name = reference.lstrip("#/").rpartition("/")
        name = unquote(name).replace("~1", "/").replace("~0", "~")
        for place in _SECTIONS.get(section, ()):
            node = self.root
            for key in place:
                node = node.get(key)
            if isinstance(node.value, dict) and name in node.value:
                return node.get_child(name)
        return None

    def _collect_anchors(self, file: str) -> dict[str, Node]:
        """Return the nodes of a file by `$id` and, with a leading #, by `$anchor` (JSON Schema
        2020-12 core, section 8.2).
        """
        if file not in self._anchors:
            found: dict[str, Node] = {}
            waiting = [Node(self._roots[file], file)]
            while waiting:
                node = waiting.pop()
                if isinstance(node.value, dict):
                    for key, prefix in _NAMING:
                        if isinstance(node.value.get(key), str):
                            found.setdefault(prefix + node.value[key], node)
                pairs = node.value.items() if isinstance(node.value, dict) else ()
                waiting += [node.get_child(key) for key, v in pairs if isinstance(v, dict | list)]
                waiting += [n for n in node.list_elements() if isinstance(n.value, dict | list)]
            self._anchors[file] = found
        return self._anchors[file]

    def _open_file(self, from_file: str, location: str) -> str:
        place = (from_file.rpartition("/")[0], location)
        file = self._names.get(place) or self._name_file(from_file, location)
        self._names[place] = file
        if file in self._failed:
            raise _FileNotRead(self._failed[file])
        if file not in self._roots:
            try:
                content = self._read_bytes(file)
                self._roots[file], problems = parse_value(content, file)
            except (_FileNotRead, DocumentError, OSError) as error:
                reason = error.reason if isinstance(error, DocumentError) else str(error)
                self._failed[file] = reason
                raise _FileNotRead(reason) from error
            self.problems += problems
        return file

    def _name_file(self, from_file: str, location: str) -> str:
        if self._document.url:
            return urljoin(from_file, location)
        if urlsplit(location).scheme not in ("", "file") or location.startswith("//"):
            raise _FileNotRead("it is on the network, and only files beside the document are read")
        main, root = self._document.path, self._document.directory
        if main is None or root is None:
            raise _FileNotRead("the document was given alone, without the files beside it")
        base = main.parent / from_file
        path = (base.parent / unquote(location.removeprefix("file://"))).resolve()
        if not path.is_relative_to(root):
            raise _FileNotRead(f"it lies outside the directory {root.name!r}")
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or path.suffix.lower() not in _SUFFIXES:
            raise _FileNotRead("only .json, .yaml and .yml files that are not hidden are read")
        return self.root.file if path == main else _to_relative_path(path, main.parent)

    def _read_bytes(self, file: str) -> bytes:
        if len(self._roots) >= MAX_FILES or self._bytes > MAX_TOTAL_BYTES:
            raise _FileNotRead("the document has too many other files")
        document = self._document
        if document.url:
            if _parse_origin(file) != _parse_origin(document.url):
                raise _FileNotRead("it is of another origin than the document")
            if document.fetch is None:
                raise _FileNotRead("the document was given alone, without a way to fetch others")
            content = document.fetch(file)
        else:
            assert document.path is not None
            content = read_file(document.path.parent / file, file)
        self._bytes += len(content)
        return content


def _split_reference(reference: str) -> tuple[str, str]:
    """The URL and the fragment of a reference."""
    # Most are a fragment alone, for which splitting a URL takes ten times as long.
    if reference.startswith("#") and reference.isprintable():
        return "", reference[1:]
    location, fragment = urldefrag(reference)
    return location, fragment


class _FileNotRead(ValueError):
    pass


def _parse_origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _to_relative_path(path: Path, start: Path) -> str:
    up = 0
    while not path.is_relative_to(start):
        start, up = start.parent, up + 1
    return "../" * up + path.relative_to(start).as_posix()
