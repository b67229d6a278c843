"""Verbs in an operation's id and summary, which tell whether it acts or creates."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
ACTS = frozenset(
    "abort accept ack acknowledge activate add allocate append apply approve archive assign attach "
    "authorize backup ban bind block book boot buy cancel change charge claim clear clone "
    "close complete confirm connect copy create deactivate decline decrement delete demote "
    "deny deploy destroy detach disable disconnect dismiss drop edit eject emit enable "
    "enqueue erase exec execute expire fail finish flush follow force freeze generate grant "
    "halt import increment ingest init initialize insert install invalidate invite invoke "
    "join kick kill launch leave lock login logout mark merge migrate modify move mute notify "
    "open order patch pause pay pin post prepend promote provision publish purge push put reboot "
    "rebuild recover redeploy refresh refund regenerate register reindex reject release "
    "reload remove rename renew replace reply reprocess request resend reset resize restart "
    "restore resume retry revert revoke rollback rotate run save schedule send set shutdown "
    "sign signin signout signup snooze spawn star start stop submit subscribe suspend swap "
    "sync terminate toggle transfer trash trigger truncate unarchive unassign unban unblock "
    "undelete undo unfollow unfreeze uninstall unlink unlock unmute unpause unpin unpublish "
    "unregister unsubscribe update upgrade upload upsert vote wipe withdraw write".split()
)
COMMANDS = frozenset({"action", "act", "cmd", "command", "do", "method", "op"})
"""Query parameters whose value says what is done."""
DESTROYING = frozenset("clear delete destroy erase purge remove reset wipe".split())
"""Query parameters that destroy, whatever their value."""
_CREATES = frozenset("add create insert new post register upload".split())


def split_words(text: str) -> list[str]:
    """The words of an identifier or a sentence, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def is_creation(method: str, operation_id: str, summary: str) -> bool:
    """Whether a write only adds something new, so that nothing that was there can be lost."""
    if method != "POST":
        return False
    named, told = split_words(operation_id), find_base_verb(split_words(summary)[:1])
    return bool(_CREATES & {*named[:1], *named[-1:]}) or told in _CREATES


def find_base_verb(first: list[str]) -> str:
    """The first word of a summary in its base form: `Deletes` and `deleting` are `delete`."""
    return _strip_ending(first[0]) if first else ""


@lru_cache(4096)
def _strip_ending(word: str) -> str:
    for ending, instead in (
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("s", ""),
        ("ing", "e"),
        ("ing", ""),
    ):
        base = word.removesuffix(ending) + instead
        if word.endswith(ending) and base in ACTS:
            return base
    return word
