"""`http.request`: a tool's only way to its API."""

from __future__ import annotations

from .bodies import binary_body, form_body, json_body, multipart_body, text_body
from .calls import current_call
from .errors import HttpError
from .pages import follow, tell_limit
from .requests import build
from .values import UNSET, Unset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .answers import Answer
    from .bodies import Body
    from .pages import Pages

DEFAULT_ACCEPT = "application/json, */*;q=0.5"
_BODIES = {
    "json": json_body,
    "form": form_body,
    "multipart": multipart_body,
    "text": text_body,
    "binary": binary_body,
}


def request(
    method: str,
    template: str,
    *,
    path: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    header: Mapping[str, Any] | None = None,
    cookie: Mapping[str, Any] | None = None,
    json: Any = UNSET,
    form: Any = UNSET,
    multipart: Any = UNSET,
    text: Any = UNSET,
    binary: Any = UNSET,
    content_type: str | None = None,
    accept: str = DEFAULT_ACCEPT,
    pages: Pages | None = None,
    max_items: int | Unset = UNSET,
) -> Answer:
    """Send a request and return the 2xx answer. Where `max_items` is given, `pages` are followed
    for so many items (`toolwright.pages`), and the User-Agent tells the API so.

    Raises HttpError for any other status, MalformedAnswer where declared JSON does not parse,
    RequestFailed where no answer was had, ArgumentInvalid where a value cannot be sent.
    """
    call, body = current_call(), None
    if not (json is form is multipart is text is binary is UNSET):
        given = {"json": json, "form": form, "multipart": multipart, "text": text, "binary": binary}
        body = _body(given, content_type)
    headers = {"accept": accept, **(header or {})}

    def ask(asked: Mapping[str, Any], text: str) -> tuple[Answer, str]:
        wire = build(
            call.base_url,
            method,
            template,
            path=path or {},
            query={} if text else asked,
            header=headers,
            cookie=cookie or {},
            body=body,
        )
        if text:
            wire.url = f"{wire.url.partition('?')[0]}?{text}"
        answer = call.send(wire)
        if not 200 <= answer.status < 300:
            raise HttpError(answer)
        return answer.checked(), wire.url

    if pages is None or isinstance(max_items, Unset):
        return ask(query or {}, "")[0]
    headers = {**tell_limit(max_items), **headers}
    return follow(pages, ask, query or {}, max_items)


def _body(given: Mapping[str, Any], content_type: str | None) -> Body | None:
    bodies = {name: value for name, value in given.items() if not isinstance(value, Unset)}
    if len(bodies) > 1:
        raise TypeError(f"a request has one body, not {' and '.join(bodies)}")
    return next((_BODIES[name](value, content_type) for name, value in bodies.items()), None)
