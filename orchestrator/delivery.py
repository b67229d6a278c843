"""A tool's result as a client gets it from a server that stands by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.cleantext import clean_json
from sandbox.runner import Failure

Result = Mapping[str, Any]


def delivered(result: Result, failure: Failure | None) -> Result:
    """The result of a call whose output schema the client was not given, without anything that its
    reader would not see.

    A successful answer that breaks its schema is delivered with a note and is no error: whoever is
    told that a write failed does it again.
    """
    if failure is not None and failure.kind == "schema":
        result = _flagged(result, failure)
    clean: Result = clean_json(result)
    return clean


def _flagged(result: Result, failure: Failure) -> Result:
    kept = {key: value for key, value in result.items() if key != "isError"}
    if result.get("isError"):
        return kept
    note = f"The answer breaks its schema at {failure.where or '/'}: {failure.message}"
    return {**kept, "content": [{"type": "text", "text": note}, *result["content"]]}
