"""Whether an operation reads or writes, judged by its method and by what its names say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sandbox.apispec import Access

_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACTS = frozenset(
    "abort accept ack acknowledge activate add allocate apply approve archive assign attach "
    "authorize backup ban bind block book boot buy cancel change charge claim clear clone "
    "close complete confirm connect copy create deactivate decline decrement delete demote "
    "deny deploy destroy detach disable disconnect dismiss drop edit eject emit enable "
    "enqueue erase exec execute expire fail finish flush follow force freeze generate grant "
    "halt import increment ingest init initialize insert install invalidate invite invoke "
    "join kick kill launch leave lock login logout mark merge migrate modify move mute notify "
    "open order patch pause pay pin post promote provision publish purge push put reboot "
    "rebuild recover redeploy refresh refund regenerate register reindex reject release "
    "reload remove rename renew replace reply reprocess request resend reset resize restart "
    "restore resume retry revert revoke rollback rotate run save schedule send set shutdown "
    "sign signin signout signup snooze spawn star start stop submit subscribe suspend swap "
    "sync terminate toggle transfer trash trigger truncate unarchive unassign unban unblock "
    "undelete undo unfollow unfreeze uninstall unlink unlock unmute unpause unpin unpublish "
    "unregister unsubscribe update upgrade upload upsert vote wipe withdraw write".split()
)
# These name a thing at least as often as an act, so alone at the end of a path they say nothing.
_ALSO_NOUNS = frozenset(
    "archive backup ban block book boot change charge claim clone close copy edit exec follow "
    "force import invite leave lock mark merge notify open order patch pause pay pin post "
    "release request run save schedule set sign star sync transfer trash trigger update "
    "upgrade upload vote".split()
)
_READS = frozenset(
    "all browse check count describe download exists export fetch find get has head index "
    "inspect is list load lookup query read retrieve return returns search see select show "
    "view".split()
)
_COMMANDS = frozenset({"action", "act", "cmd", "command", "do", "method", "op"})
"""Query parameters whose value says what is done."""
_SWITCHES = frozenset("mute off power set switch turn toggle".split())
"""Query parameters that set a thing where nothing says that the operation reads."""
_CREATES = frozenset("add create insert new post register upload".split())


def words(text: str) -> list[str]:
    """The words of an identifier or a sentence, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def judge(
    method: str,
    path: str,
    operation_id: str,
    summary: str,
    query: Iterable[tuple[str, str]] = (),
) -> Access:
    """`read` only for a method that is safe (RFC 9110, 9.2.1) where nothing says otherwise.

    `query` has the query parameters, with a value where that is fixed.
    """
    if method not in _READ_METHODS:
        return "write"
    if _acts(path, operation_id, summary):
        return "write"
    told = _says_read(operation_id, summary)
    return "write" if any(_steers(*pair, told) for pair in query) else "read"


def _says_read(operation_id: str, summary: str) -> bool:
    named, told = words(operation_id), words(summary)
    return bool(_READS & {*named[:1], *named[-1:], *told[:1], _verb(told[:1])})


def _steers(name: str, value: str, told: bool) -> bool:
    """Whether a query parameter makes a request act: `?action=delete`, `/lamp?turn=`, `?muted=`."""
    said = words(name)
    if said and said[-1] in _COMMANDS and len(said) == 1:
        return bool(_ACTS & {*words(value)}) if value else not told
    acts = [word for word in said if word in _SWITCHES or _participle(word) in _ACTS - _ALSO_NOUNS]
    return len(said) == 1 and bool(acts) and not told and not value


def _participle(word: str) -> str:
    """The verb of a past participle: `muted` is `mute`, `enabled` is `enable`."""
    for ending, instead in (("ed", "e"), ("ed", ""), ("d", "")):
        base = word.removesuffix(ending) + instead
        if word.endswith(ending) and base in _ACTS:
            return base
    return ""


def creates(method: str, operation_id: str, summary: str) -> bool:
    """Whether a write only adds something new, so that nothing that was there can be lost."""
    if method != "POST":
        return False
    named, told = words(operation_id), _verb(words(summary)[:1])
    return bool(_CREATES & {*named[:1], *named[-1:]}) or told in _CREATES


def _acts(path: str, operation_id: str, summary: str) -> bool:
    named = words(operation_id)
    if named and named[-1] not in _READS and named[0] in _ACTS:
        return True
    if named and named[0] not in _READS and named[-1] in _ACTS - _ALSO_NOUNS:
        return True
    if _verb(words(summary)[:1]) in _ACTS - _ALSO_NOUNS:
        return True
    last = words(path.rstrip("/").rpartition("/")[2])
    return len(last) == 1 and last[0] in _ACTS - _ALSO_NOUNS


def _verb(first: list[str]) -> str:
    """The first word of a summary in its base form: `Deletes` and `deleting` are `delete`."""
    word = first[0] if first else ""
    for ending, instead in (
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("s", ""),
        ("ing", "e"),
        ("ing", ""),
    ):
        base = word.removesuffix(ending) + instead
        if word.endswith(ending) and base in _ACTS:
            return base
    return word
