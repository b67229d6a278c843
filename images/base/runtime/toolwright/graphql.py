"""`graphql.request`: one operation of a GraphQL API (https://graphql.github.io/graphql-over-http)."""

from __future__ import annotations

from . import http
from .errors import Upstream
from .values import Unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .answers import Answer

MAX_SHOWN = 10


class GraphqlError(Upstream):
    """The API answered with errors; `answer` is all that it said, what data there was included."""

    def __init__(self, answer: Answer, errors: list[Any]) -> None:
        self.answer = answer
        told = "; ".join(_told(error) for error in errors[:MAX_SHOWN])
        body = answer.printable()
        self.blocks = [{"type": "text", "text": body}] if body else []
        super().__init__(f"the API answered with errors: {told}")


def request(template: str, document: str, variables: Mapping[str, Any] | None = None) -> Answer:
    """Send a document with its variables; those that are UNSET are left out.

    Raises GraphqlError where the answer has errors, and as `http.request`.
    """
    given = {
        name: value for name, value in (variables or {}).items() if not isinstance(value, Unset)
    }
    answer = http.request(
        "POST", template, json={"query": document, **({"variables": given} if given else {})}
    )
    said = answer.body if isinstance(answer.body, dict) else {}
    errors = said.get("errors")
    if errors:
        raise GraphqlError(answer, errors if isinstance(errors, list) else [errors])
    return answer


def _told(error: Any) -> str:
    """An error's message, and the place in the answer that it is about."""
    if not isinstance(error, dict):
        return str(error)[:500]
    path = error.get("path")
    where = f" (at {'.'.join(map(str, path))[:200]})" if isinstance(path, list) and path else ""
    return f"{str(error.get('message', 'no message'))[:500]}{where}"
