"""The account of what a search tried, in a few words: every answer is a stranger's text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from urllib.parse import urlsplit

from forge.discovery.leads import decode_text, is_page
from forge.readers.page import parse_page
from forge.sources import FetchResponse
from forge.text import sanitize_line, sanitize_prose
from sandbox.wire.exchange import find_header

MAX_WORDS = 80
MAX_MEDIA = 60
MAX_PLACES = 6
MAX_GROUPS = 5
_HEAD = 16_384


@dataclass(frozen=True)
class Attempt:
    """One request of a search, and its outcome in a few words. `answer` is what came: its media
    type and first words, cleaned.
    """

    url: str
    outcome: str
    answer: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}, {self.answer}" if self.answer else self.outcome


def cut_answer(answer: FetchResponse) -> FetchResponse:
    """Return the response with as much of its body as `describe_answer` looks at."""
    return replace(answer, body=answer.body[:_HEAD])


def describe_answer(answer: FetchResponse) -> str:
    """Return the media type and the first words of a response; "" where it has neither."""
    media = sanitize_line(find_header(answer.headers, "content-type") or "", MAX_MEDIA)
    words = _find_first_words(answer)
    # No sign of ours can be closed by what is quoted.
    quoted = f'"{words}"'.replace("`", "'") if words else ""
    return ", ".join(filter(None, (media.replace("`", "'"), quoted)))


def describe_withheld_schema(url: str, answer: FetchResponse) -> str:
    """Return what a person can do where a GraphQL endpoint answers a query for its schema with
    errors, as where introspection is turned off; "" for any other answer.
    """
    said = _find_graphql_error(answer.body[:_HEAD])
    if not said:
        return ""
    place = render_urls([url])
    told = sanitize_prose(said, MAX_WORDS).replace("`", "'")
    return (
        f'the GraphQL endpoint {place} does not tell its schema: "{told}". Where you have the '
        f"schema as a file: `toolwright forge schema.graphql --base-url {quote(place)}`"
    )


def _find_graphql_error(body: bytes) -> str:
    """The first error's message of a GraphQL answer; "" for what is none."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    errors = said.get("errors") if isinstance(said, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, str) else ""


def render_attempts(attempts: Sequence[Attempt]) -> str:
    """Return what was tried beside the first place, places of one outcome together."""
    groups: dict[str, list[str]] = {}
    for attempt in attempts[1:]:
        groups.setdefault(attempt.outcome, []).append(shorten_url(attempt.url))
    shown = [f"{outcome} at {_render_places(urls)}" for outcome, urls in groups.items()]
    more = [f"and {len(shown) - MAX_GROUPS} more"] if len(shown) > MAX_GROUPS else []
    return "; ".join((*shown[:MAX_GROUPS], *more))


def render_urls(urls: Iterable[str]) -> str:
    """Return URLs that a stranger named, cleaned, the first of them."""
    return ", ".join(sanitize_line(url, 300).replace("`", "'") for url in list(urls)[:MAX_PLACES])


def _find_first_words(answer: FetchResponse) -> str:
    head = answer.body[:_HEAD]
    if is_page(answer):
        page = parse_page(answer.final_url, head)
        return sanitize_prose(page.title or page.text, MAX_WORDS) if page else ""
    text = decode_text(head)
    binary = "\x00" in text[:1000] or text[:1000].count("\ufffd") > 50
    return "" if binary else sanitize_prose(text, MAX_WORDS)


def _render_places(urls: Sequence[str]) -> str:
    more = f" and {len(urls) - MAX_PLACES} more" if len(urls) > MAX_PLACES else ""
    return ", ".join(urls[:MAX_PLACES]) + more


def shorten_url(url: str) -> str:
    """Return the path of a URL that a stranger may have chosen, cleaned and cut."""
    parts = urlsplit(url)
    return sanitize_line(parts.path or "/", 100).replace("`", "'")
