"""`graphql.request`: one operation of a GraphQL API (https://graphql.github.io/graphql-over-http)."""

from __future__ import annotations

from . import http
from .errors import Upstream
from .pages import follow, tell_limit
from .values import UNSET, Unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .answers import Answer
    from .pages import Pages

MAX_SHOWN = 10


class GraphqlError(Upstream):
    """The API answered with errors; `answer` is all that it said, what data there was included."""

    def __init__(self, answer: Answer, errors: list[Any]) -> None:
        self.answer = answer
        told = "; ".join(_told(error) for error in errors[:MAX_SHOWN])
        body = answer.printable()
        self.blocks = [{"type": "text", "text": body}] if body else []
        super().__init__(f"the API answered with errors: {told}")


def request(
    template: str,
    document: str,
    variables: Mapping[str, Any] | None = None,
    *,
    pages: Pages | None = None,
    max_items: int | Unset = UNSET,
) -> Answer:
    """Send a document with its variables; those that are UNSET are left out. Where `max_items` is
    given, `pages` are followed for so many items by a variable, as `http.request` does.

    Raises GraphqlError where the answer has errors, and as `http.request`.
    """
    given = {
        name: value for name, value in (variables or {}).items() if not isinstance(value, Unset)
    }
    if pages is None or isinstance(max_items, Unset):
        return _send(template, document, given, {})
    header = tell_limit(max_items)

    def ask(asked: Mapping[str, Any], text: str) -> tuple[Answer, str]:
        return _send(template, document, asked, header), repr(asked)

    return follow(pages, ask, given, max_items, takes_urls=False)


def _send(
    template: str, document: str, given: Mapping[str, Any], header: Mapping[str, str]
) -> Answer:
    asked = {"query": document, **({"variables": given} if given else {})}
    answer = http.request("POST", template, header=header, json=asked)
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
