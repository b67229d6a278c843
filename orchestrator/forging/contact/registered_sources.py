"""Which registered source a task means that gives no address: decided by words, confirmed by a
person, never taken by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from registry.models import DocumentationSource, Entry, Route
from registry.search.words import STOP_WORDS, VERBS, WEAK_WORDS, split_words, stem_word
from sandbox.wire.policy import parse_origin

MAX_MEANT = 5
MIN_LETTERS = 3
Reason = Literal["named", "fits"]
_COMPUTING = frozenset(
    "calculate compute concatenate convert count decode decrypt divide encode encrypt factor "
    "format hash merge multiply normalize parse reverse round slugify sort split subtract sum "
    "transform translate trim truncate validate".split()
)
"""Verbs of tasks that need no API; only by its name one is meant then."""
_GENERIC = (
    STOP_WORDS
    | WEAK_WORDS
    | _COMPUTING
    | frozenset(" ".join(VERBS.values()).split())
    | frozenset(
        "api apis app auth cloud com core data dev doc docs example gateway graphql http https "
        "internal json key lan latest local localhost main net openapi org prod production public "
        "reference rest schema secret server service spec staging stage swagger system test token "
        "web www xml yaml yml".split()
    )
)
"""Words of addresses and titles that name no API."""


@dataclass(frozen=True)
class MeantSource:
    """A registered source that a task may mean: its words name it, or what is known of it fits."""

    url: str
    reason: Reason
    words: tuple[str, ...] = ()


def find_meant_sources(
    task: str,
    sources: Iterable[DocumentationSource],
    entries: Sequence[Entry],
    route: Route,
) -> tuple[MeantSource, ...]:
    """Return the registered sources that a task may mean, those that it names before those whose
    description fits, at most `MAX_MEANT`. `entries` are the registered servers, `route` says how
    sure it is that one of their tools fits the task.
    """
    said = split_words(task)
    computing = next((word for word in said if word not in STOP_WORDS), "") in _COMPUTING
    # A person confirms it, so words alone may come to this; to `reuse` they may not.
    is_likely = bool(route.matches) and route.probability >= route.bands.reuse
    likely = route.matches[0].entry if is_likely and not route.vetoes else ""
    named, fits = [], []
    for source in sources:
        made = [entry for entry in entries if _is_made_from(entry, source)]
        words = _find_names(said, source, made)
        if words:
            named.append(MeantSource(source.url, "named", words))
        elif not computing and any(entry.name == likely for entry in made):
            fits.append(MeantSource(source.url, "fits"))
    return tuple(named or fits)[:MAX_MEANT]


def _find_names(
    said: Sequence[str], source: DocumentationSource, made: Iterable[Entry]
) -> tuple[str, ...]:
    """The words of a task that name a source: of its address, its secret's or its servers' name."""
    host, path = urlsplit(source.url).hostname or "", urlsplit(source.url).path
    # The last label of a name says only who registers such names.
    labels = host.split(".")[:-1] if "." in host else [host]
    texts = [" ".join(labels), path, source.secret, *(entry.name for entry in made)]
    stems = {stem_word(word): word for word in said}
    found = {
        stems[stem_word(word)]: None
        for word in split_words(" ".join(texts))
        if len(word) >= MIN_LETTERS
        and word.isalpha()
        and word not in _GENERIC
        and stem_word(word) in stems
    }
    return tuple(found)


def _is_made_from(entry: Entry, source: DocumentationSource) -> bool:
    origin = parse_origin(source.url)
    return origin is not None and origin in map(parse_origin, (entry.source, entry.base_url))
