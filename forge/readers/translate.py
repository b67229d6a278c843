"""Translation of recorded requests (Postman, HAR, curl) to OpenAPI documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forge.errors import NoUsableOperation
from forge.readers.document import Document, DocumentProblem
from forge.readers.recorded.curl import is_curl, read_curl
from forge.readers.recorded.har import is_har, read_har
from forge.readers.recorded.postman import is_postman, read_postman
from forge.readers.recorded.request import RequestRecording
from forge.readers.recorded.to_openapi import infer_document

_NOTATIONS: tuple[tuple[Callable[[Any], bool], Callable[[Any], RequestRecording]], ...] = (
    (is_postman, read_postman),
    (is_har, read_har),
    (is_curl, read_curl),
)


@dataclass(frozen=True)
class Translation:
    """A translated document: `document` has the original's bytes and name, and an OpenAPI root;
    `places` maps pointers of that root to pointers of the original.
    """

    document: Document
    dialect: str = ""
    places: Mapping[str, str] = field(default_factory=dict, repr=False)

    def locate_problem(self, problem: DocumentProblem) -> DocumentProblem:
        """Return a problem at its place in the original."""
        for pointer, place in self.places.items():
            if problem.pointer.startswith(pointer):
                return replace(problem, pointer=place)
        return problem


def translate_document(document: Document) -> Translation:
    """Translate a document; one in another notation (OpenAPI, GraphQL) is returned as it is. Raises
    NoUsableOperation where no request in it can be used.
    """
    for is_notation, read in _NOTATIONS:
        if is_notation(document.root):
            return _build_translation(document, read(document.root))
    return Translation(document)


def _build_translation(document: Document, recording: RequestRecording) -> Translation:
    made = infer_document(recording)
    left_out = tuple(
        DocumentProblem(document.name, where, why)
        for where, why in (*recording.left_out, *made.left_out)
    )
    if not recording.requests:
        causes = "; ".join(map(str, left_out[:3])) or "there is none"
        reason = f"no request in it can be used ({causes})"
        raise NoUsableOperation(document.name, reason, left_out)
    opened = replace(
        document, served=False, root=made.root, problems=(*document.problems, *left_out)
    )
    return Translation(opened, recording.dialect, made.places)


def detect_notation(root: Any) -> str | None:
    """Return `postman 2.1`, `har 1.2` or `curl` for a parsed document that is such a recording,
    else None.
    """
    for is_notation, read in _NOTATIONS:
        if is_notation(root):
            return read(root).dialect
    return None
