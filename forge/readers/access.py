"""Classification of operations as reads or writes, by their method and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from sandbox.bundle.apispec import Access
from sandbox.bundle.verbs import ACTS, COMMANDS, DESTROYING, find_base_verb, split_words

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
# These name a thing at least as often as an act, so alone at the end of a path they say nothing.
_ALSO_NOUNS = frozenset(
    "archive backup ban block book boot change charge claim clone close copy edit exec follow "
    "force import invite leave lock mark merge notify open order patch pause pay pin post "
    "release request run save schedule set sign star sync transfer trash trigger update "
    "upgrade upload vote".split()
)
_ONLY_ACTS = ACTS - _ALSO_NOUNS
_READS = frozenset(
    "all browse check count describe download exists export fetch find get has head index "
    "inspect is list load lookup query read retrieve return returns search see select show "
    "view".split()
)
_SWITCHES = frozenset("mute off power set switch turn toggle".split())
"""Query parameters that set a thing where nothing says that the operation reads."""


_PLAIN_SWITCHES = _ONLY_ACTS - frozenset(
    "accept complete connect create expire fail finish freeze generate grant install load "
    "order publish refresh reload renew start stop".split()
)
"""Verbs that make a request act where they are a parameter; the rest name what is looked for."""
_ALL_SWITCHES = _SWITCHES | _PLAIN_SWITCHES
_JOINING = frozenset({"and", "or", "then"})
_MANNERS = frozenset("async batch bulk force hard mass soft".split())
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_STARTED = frozenset({"201", "202"})
"""Successes of what made or started something."""
_GROUPED = re.compile(r"(?:[A-Z][A-Za-z0-9]*_|(?:[A-Za-z][\w-]*\.)+)([A-Za-z][A-Za-z0-9]*)\Z")
_METHOD_ENDING = re.compile(
    r"(?<=[A-Za-z0-9])(?:(?i:[_.-]?using[_.-]?(?:get|head))|[_.-]?(?:GET|HEAD))(?:_[0-9]+)?\Z"
)
"""The method that a framework writes at the end of an id: springfox `deleteUserUsingGET_1`."""


def classify_access(
    method: str,
    path: str,
    operation_id: str,
    summary: str,
    query: Iterable[tuple[str, str]] = (),
    successes: Iterable[str] = (),
    believed: bool = True,
) -> Access:
    """Return `read` only for a safe method (RFC 9110 section 9.2.1) where nothing indicates a
    write.

    `query` are the query parameters, with a value where that is fixed; `successes` are the
    documented statuses of success. Where a description is not `believed`, what it says of an
    operation makes it no read.
    """
    if method not in _READ_METHODS:
        return "write"
    bare = _strip_method(operation_id, method, path)
    named, grouped, said = split_words(bare), _split_method(bare), split_words(summary)
    is_named_read = believed and bool(_READS & {*grouped[:1]})
    told = believed and (is_named_read or _says_read(named, said))
    answers = set(successes)
    if is_named_read:
        named = grouped
    elif believed and named[:1] and named[0] in _ALSO_NOUNS and _READS & {*said[:1]}:
        # `orderTypes` whose summary is "Get the order types".
        named = named[1:]
    if _ONLY_ACTS & {*grouped[:1]} or _has_acting_name(path, named, said):
        return "write"
    if not told and (_names_an_act(path) or (answers and answers <= _STARTED)):
        return "write"
    if not believed and any(word in COMMANDS for word in _PLACEHOLDER.findall(path.lower())):
        return "write"
    return "write" if any(_is_acting_parameter(*pair, told) for pair in query) else "read"


def _strip_method(operation_id: str, method: str, path: str) -> str:
    """An operation's id without the method that a framework adds to it, which would read as a verb.

    FastAPI adds the path too: `reset_all_api_reset_get` is `reset_all` at `/api/reset`.
    """
    if not operation_id.endswith(f"_{method.lower()}"):
        return _METHOD_ENDING.sub("", operation_id)
    added = f"{re.sub(r'[^A-Za-z0-9_]', '_', path)}_{method.lower()}"
    if operation_id.endswith(added) and len(operation_id) > len(added):
        return operation_id.removesuffix(added)
    return _METHOD_ENDING.sub("", operation_id)


def _split_method(operation_id: str) -> list[str]:
    """The words of the method in an id that begins with a group: `Orders_List`,
    `OrderApi_GetById`, `drive.changes.getStartPageToken`; none for any other id.
    """
    method = _GROUPED.match(operation_id)
    return split_words(method[1]) if method else []


def _says_read(named: list[str], said: list[str]) -> bool:
    return bool(_READS & {*named[:1], *named[-1:], *said[:1], find_base_verb(said[:1])})


@lru_cache(4096)
def _is_acting_parameter(name: str, value: str, told: bool) -> bool:
    """Whether a query parameter makes a request act: `?action=delete`, `/lamp?turn=`, `?muted=`,
    `?delete=1`. The parameters of a description have few names.
    """
    said = split_words(name)
    if len(said) != 1:
        return False
    (word,) = said
    if word in COMMANDS:
        return bool(ACTS & {*split_words(value)}) if value else not told
    if word in DESTROYING:
        return True
    acts = word in _ALL_SWITCHES or _find_verb(word) in _ONLY_ACTS
    return acts and not told and not value


def _find_verb(word: str) -> str:
    """Return the verb of a past participle (`muted` is of `mute`, `enabled` of `enable`), "" for
    others.
    """
    for ending, instead in (("ed", "e"), ("ed", ""), ("d", "")):
        base = word.removesuffix(ending) + instead
        if word.endswith(ending) and base in ACTS:
            return base
    return ""


def _has_acting_name(path: str, named: list[str], said: list[str]) -> bool:
    """Whether an operation is named after an act, in the words of its id, summary or path."""
    if named and named[-1] not in _READS and named[0] in ACTS:
        return True
    if named and named[0] not in _READS and named[-1] in _ONLY_ACTS:
        return True
    if _joins_an_act(named) or _joins_an_act([*said[:2], find_base_verb(said[2:3])]):
        return True
    while len(said) > 1 and (said[0].endswith("ly") or said[0] in _MANNERS):
        said = said[1:]
    if find_base_verb(said[:1]) in _ONLY_ACTS:
        return True
    last = split_words(path.rstrip("/").rpartition("/")[2])
    return len(last) == 1 and last[0] in _ONLY_ACTS


def _joins_an_act(words: Sequence[str]) -> bool:
    """Whether an act follows a first one: `getAndDelete`, `Gets or creates a user`."""
    if _JOINING.isdisjoint(words):
        return False
    return any(joint in _JOINING and word in _ONLY_ACTS for joint, word in pairwise(words))


def _names_an_act(path: str) -> bool:
    """Whether the last fixed part of a path is an act: `/items/delete/{id}`, `/send-reminder`,
    `/chat.postMessage`.
    """
    fixed = [part for part in path.split("/") if part and "{" not in part]
    if not fixed:
        return False
    method = fixed[-1].rpartition(".")
    named = split_words(method[2])
    if not named or named[-1] in _READS:
        return False
    is_call = bool(method[1]) and len(named) > 1
    return named[0] in (ACTS if is_call else _ONLY_ACTS)
