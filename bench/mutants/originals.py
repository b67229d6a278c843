"""The bundles that are broken: compiled from descriptions, each cut to a few varied operations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from forge.compiler.compile import compile_document, remove_operations
from forge.errors import ForgeError
from forge.readers.document import load_document
from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.model import Bundle

BASE_URL = "https://api.example.test/v1"


def originals(directory: Path, count: int, operations: int) -> Iterator[tuple[str, Bundle]]:
    """Up to `count` compiled bundles by name, spread over the folders of a directory.

    Each folder has an `index.json` that names its main document; a document may also lie there by
    itself. What does not compile is left out.
    """
    places = sorted(directory.iterdir())
    step = max(1, len(places) // max(1, count))
    ordered = [place for start in range(step) for place in places[start::step]]
    left = count
    for place in ordered:
        bundle = compiled(place)
        if bundle is not None and left:
            left -= 1
            yield place.stem, cut(bundle, operations)


def compiled(place: Path) -> Bundle | None:
    """The bundle of a document, or of the folder that it is the main document of."""
    index = place / "index.json"
    main = place / json.loads(index.read_text())["main"] if index.exists() else place
    try:
        return compile_document(load_document(main), base_url=BASE_URL).bundle
    except ForgeError:
        return None


def cut(bundle: Bundle, operations: int) -> Bundle:
    """The bundle with so many operations: those that show most of what an API can have."""
    assert bundle.spec is not None
    kept = {operation.id for operation in _varied(bundle.spec, operations)}
    left_out = {o.id for o in bundle.spec.operations} - kept
    return remove_operations(bundle, left_out) or bundle


def _varied(spec: APISpec, count: int) -> list[Operation]:
    """Greedily, each time the operation with the most features that no other one has yet."""
    left, seen = list(spec.operations), set[str]()
    chosen: list[Operation] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda operation: len(_features(operation) - seen))
        left.remove(best)
        chosen.append(best)
        seen |= _features(best)
    return chosen


def _features(operation: Operation) -> set[str]:
    found = {operation.method}
    for parameter in operation.parameters:
        kind = parameter.schema.get("type", "") if isinstance(parameter.schema, dict) else ""
        found.add(f"{parameter.location} {parameter.style} {parameter.explode} {kind}")
        found.add(f"{parameter.location} {parameter.required} {parameter.media_type}")
    if operation.body is not None:
        found |= {f"body {operation.body.required} {m.type}" for m in operation.body.content}
    for response in operation.responses:
        found |= {f"{response.status} {media.type}" for media in response.content} or {
            f"{response.status} bare"
        }
    return found
