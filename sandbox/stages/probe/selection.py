"""Which operations the live probe may ask: pure policy over what a description says.

Names only take away. An operation has to be a GET that reads by its class first; then a word in its
path, id, summary or tags can forbid it, and nothing said there allows what the class forbids.
Extensions (`x-…`) are not looked at.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import chain, pairwise
from urllib.parse import unquote

from sandbox.bundle.apispec import Operation
from sandbox.bundle.model import ToolDefinition
from sandbox.bundle.verbs import ACTS, find_base_verb, split_words

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_FORBIDDEN = frozenset(
    # What ends, changes or sets off something.
    "ack acks callback cancel consume debug dequeue drop execute invoke kick kill logoff pop pprof "
    "proxy receive reboot redirect remove reserve reset resend restart revoke signin signoff "
    "signout signup subscribe terminate trigger unlock unlink verify websocket wipe ws "
    # What is a secret, or is had for one.
    "auth authenticate authorize authorization cert certs cookie cookies credential credentials "
    "csrf jwt login mfa oauth oidc otp passwd pwd saml sso totp vault "
    # Everything at once, or without an end.
    "archive archives dump dumps sse stream streaming watch "
    # Money, and the rights of others.
    "admin administration administrator admins billing card cards charge charges checkout "
    "impersonate invoice invoices pay payment payments payout payouts purchase purchases refund "
    "refunds subscription subscriptions sudo superuser transfer transfers".split()
)
"""Words that forbid an operation where they stand in its path, id or tags."""
_STEPS = frozenset("claim lease lock poll pull run send start stop tail".split())
"""Words that forbid it in a path, and in an id that does not begin with a verb that reads."""
_READS = frozenset("describe fetch find get list query read retrieve search show view".split())
_MARKS = (
    "acknowledg apikey backup cancel clearall coredump delete destroy download erase execute "
    "export flush heapdump logout password poweroff privatekey purge reboot regenerat restart "
    "revok rotate secret shutdown signout terminate threaddump trigger truncat uninstall "
    "unsubscribe wipe"
).split()
"""Parts of words that forbid it wherever they stand, `deleteall` and `passwordreset` among them."""
_SECRET_ENDS = ("key", "keys", "token", "tokens")
_NO_KEYS = frozenset("donkey donkeys hockey jockey jockeys monkey monkeys turkey whiskey".split())
_SAID = frozenset(
    "cancel clear delete destroy disable drop erase execute kill logout purge reboot remove reset "
    "restart revoke send shutdown start stop subscribe terminate trigger truncate unsubscribe "
    "wipe".split()
)
"""Acts that forbid it wherever a summary names them."""
_ALSO_NOUNS = frozenset(
    "block book boot change clone close copy edit follow force import invite leave mark merge "
    "notify open order patch pause pin post release request save schedule set sign star sync "
    "trash update upgrade upload vote".split()
)
"""Acts that name a thing as often: they forbid at the end of a path and at the start of an id."""
_SECRET_PARAMETER = frozenset(
    "apikey code cookie credential hash jwt nonce otp passwd password pin secret session sig "
    "signature ticket token".split()
)


def find_objection(tool: ToolDefinition, operation: Operation) -> str:
    """Return why the probe must not ask an operation; "" where it may."""
    if operation.method.upper() != "GET" or operation.document:
        return "it is no GET"
    if tool.access != "read" or operation.access != "read" or tool.destructive:
        return "it does not read, by its class"
    if operation.body is not None:
        return "it takes a body"
    asked = [parameter for parameter in operation.parameters if parameter.required]
    if any(parameter.location != "path" for parameter in asked):
        return "it requires an argument that no answer gives"
    if any(_SECRET_PARAMETER.intersection(_collect_words(each.name)) for each in asked):
        return "it is asked by something secret"
    return find_forbidden_word(operation)


def find_forbidden_word(operation: Operation) -> str:
    """Return why an operation's words forbid it; "" where none does."""
    path = _normalize_text(unquote(operation.path))
    named = [operation.id if not operation.id.startswith(f"{operation.method} /") else ""]
    if not all(text.isascii() for text in (_PLACEHOLDER.sub("", path), *named)):
        return "its name is in letters that are not judged"
    segments = [_PLACEHOLDER.sub(" ", part) for part in path.split("/") if part]
    base = unquote(operation.server).partition("://")[2].partition("/")[2].split("/")
    word = next(filter(None, map(find_danger, (*base, *segments, *named, *operation.tags))), "")
    if word:
        return f"its name says {word}"
    return _find_act(segments, named[0], _normalize_text(operation.summary))


def find_danger(text: str) -> str:
    """Return the first word of a name that forbids an operation; "" where none does."""
    text = _normalize_text(text)
    found = (word for word in split_words(text) if _is_forbidden(word) or _is_secret(word))
    joined = (word for word in _collect_words(text) if _is_forbidden(word))
    # Some write in capitals in the middle of a word: `dElEtE`.
    marked = (mark for mark in _MARKS if mark in text.lower())
    return next(chain(found, joined, marked), "")


def _is_forbidden(word: str) -> bool:
    return word in _FORBIDDEN or any(mark in word for mark in _MARKS)


def _is_secret(word: str) -> bool:
    return word.endswith(_SECRET_ENDS) and word not in _NO_KEYS


def _find_act(segments: list[str], identity: str, summary: str) -> str:
    """Return why the acts that are named forbid it. What is an act and a thing alike (`order`) does
    so only where it is all that the last part of a path says, or where an id begins with it.
    """
    acts = (ACTS | _STEPS) - _ALSO_NOUNS
    for at, segment in enumerate(segments):
        words = split_words(segment)
        is_last = at == len(segments) - 1
        found = next(
            (w for w in words if w in acts or (is_last and words == [w] and w in ACTS)), ""
        )
        if found:
            return f"its path says {found}"
    words = split_words(identity)
    others = acts - _STEPS if words[:1] and words[0] in _READS else acts
    if words[:1] and (words[0] in ACTS or words[-1] in others):
        return "its id names an act"
    said = split_words(summary)
    if (said[1:] and find_base_verb(said[:1]) in acts) or any(
        find_base_verb([word]) in _SAID for word in said
    ):
        return "its summary names an act"
    return ""


def _collect_words(text: str) -> dict[str, None]:
    """The words of a name, and each two that follow each other as one (`logOut`, `api-key`)."""
    words = split_words(text)
    return dict.fromkeys([*words, *(first + second for first, second in pairwise(words))])


def _normalize_text(text: str) -> str:
    return unicodedata.normalize("NFKC", text)
