"""A document in another notation than OpenAPI, as the OpenAPI document that it amounts to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from forge.document import Document, Problem
from forge.errors import NoUsableOperation
from forge.recorded.curl import is_curl, read_curl
from forge.recorded.described import described
from forge.recorded.har import is_har, read_har
from forge.recorded.postman import is_postman, read_postman
from forge.recorded.request import Recording

_NOTATIONS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Recording]], ...] = (
    (is_postman, read_postman),
    (is_har, read_har),
    (is_curl, read_curl),
)


@dataclass(frozen=True)
class Translation:
    """`document` has the same bytes and name, and an OpenAPI root; `places` leads from that root's
    pointers back to the original's.
    """

    document: Document
    dialect: str = ""
    places: Mapping[str, str] = field(default_factory=dict, repr=False)

    def located(self, problem: Problem) -> Problem:
        """A problem at its place in the original."""
        for pointer, place in self.places.items():
            if problem.pointer.startswith(pointer):
                return replace(problem, pointer=place)
        return problem


def translated(document: Document) -> Translation:
    """The document as it is where it is OpenAPI. Raises NoUsableOperation where nothing in it is a
    request.
    """
    for is_notation, read in _NOTATIONS:
        if is_notation(document.root):
            return _translation(document, read(document.root))
    return Translation(document)


def _translation(document: Document, recording: Recording) -> Translation:
    made = described(recording)
    left_out = tuple(
        Problem(document.name, where, why) for where, why in (*recording.left_out, *made.left_out)
    )
    if not recording.requests:
        causes = "; ".join(map(str, left_out[:3])) or "there is none"
        reason = f"no request in it can be used ({causes})"
        raise NoUsableOperation(document.name, reason, left_out)
    opened = replace(document, root=made.root, problems=(*document.problems, *left_out))
    return Translation(opened, recording.dialect, made.places)


def notation_of(root: Any) -> str | None:
    """`postman 2.1`, `har 1.2` or `curl` where a parsed document is such a recording."""
    for is_notation, read in _NOTATIONS:
        if is_notation(root):
            return read(root).dialect
    return None
