"""Names by which servers let a request name another method than its own.

Servers read a name differently: PHP makes `_method` of `.method` and `[method`, Rack divides a
query at `;` as well, gateways make one of `-` and `_`. A name is therefore reduced to what the
loosest of them could read in it, and what is left is compared.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

from sandbox.bundle.verbs import ACTS, COMMANDS, DESTROYING, split_words

MAX_DECODINGS, MAX_NAME, MAX_PAIRS = 4, 4096, 100_000
_MARKED = frozenset({"method", "httpmethod"})
"""They override the method only behind a mark, as in `_method`; without, APIs mean other things."""
_UNMARKED = frozenset(
    "xhttpmethod xhttpmethodoverride xmethodoverride httpmethodoverride methodoverride "
    "xtunneledmethod".split()
)
_UNSAFE = frozenset({"post", "put", "patch", "delete", "merge"})
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_BEFORE_INDEX = re.compile(r"[^a-z0-9]*[^\[\x00-\x1f\x7f]*")
"""A name without what PHP takes for an index, or what comes behind a NUL."""
_WIDE_ESCAPE = re.compile(r"%u([0-9A-Fa-f]{4})")
"""An escape that only IIS knows, for one UTF-16 unit."""
_REFUSED_HEADERS = re.compile(
    r"(?:host|connection|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|via|forwarded"
    r"|content-length|content-encoding|accept-encoding|authorization|keep-alive"
    r"|x-http-method|(?:.*-)?method-?override|x-tunneled-method"
    r"|x-original-.*|x-rewrite-.*|x-override-.*|x-http-.*override"
    r"|x-host|x-forwarded(?:-.*)?|x-real-ip|x-client-ip|true-client-ip)\Z"
)


@lru_cache(maxsize=1024)
def is_refused_header(name: str) -> bool:
    """Whether a header is not a caller's to set: it frames the message, or names another method,
    path, host, client or coding of the body.
    """
    # Gateways make one name of `-` and `_`, and some of all that is no letter or digit.
    plain = _NOT_LETTERS.sub("-", name.lower()).strip("-")
    other_spelling = plain == "content-type" and name.lower() != plain
    return other_spelling or _REFUSED_HEADERS.match(plain) is not None


def is_override(name: str) -> bool:
    """Whether some server could take a parameter of this name for the request's method. Of a name
    beyond all measure the beginning counts.
    """
    decoded = _decode_fully(name[:MAX_NAME])
    if decoded is None:
        return True
    if len(name) > MAX_NAME and not _NOT_LETTERS.sub("", decoded.lower()):
        return True
    folded = _fold(decoded)
    if "ethod" not in _spell(decoded):
        return False
    before = _BEFORE_INDEX.match(folded)
    words = {_NOT_LETTERS.sub("", part) for part in (folded, before[0] if before else "")}
    marked = _NOT_LETTERS.match(folded) is not None
    return bool(words & _UNMARKED) or (marked and bool(words & _MARKED))


def has_override(pairs: str) -> bool:
    """Whether a query, or a body of that form, has a parameter that `is_override`, or so many that
    looking would take long.
    """
    if _is_plain(pairs):
        return False
    if pairs.count("&") + pairs.count(";") > MAX_PAIRS:
        return True
    names = [pair.partition("=")[0] for pair in _split_pairs(pairs)]
    return any(not _is_plain(name) and is_override(name) for name in names)


def names_other_method(query: str, safe: bool) -> bool:
    """Whether a query has a parameter that `is_override`; of a `safe` request also `method=DELETE`
    or alike, by which some APIs make a GET write.
    """
    if _is_plain(query):
        return False
    for pair in _split_pairs(query):
        name, _, value = pair.partition("=")
        if _is_plain(name):
            continue
        if is_override(name) or (safe and _reduce(name) in _MARKED and _reduce(value) in _UNSAFE):
            return True
    return False


def names_act(query: str) -> bool:
    """Whether a query says that a request acts: `action=delete`, `delete=1`."""
    for pair in _split_pairs(query) if query else ():
        name, _, value = pair.partition("=")
        word = _reduce(name)
        if word in DESTROYING:
            return True
        said = unicodedata.normalize("NFKC", _decode_fully(value) or "")
        if word in COMMANDS and ACTS & {*split_words(said)}:
            return True
    return False


def _split_pairs(pairs: str) -> list[str]:
    """The pairs of a query, as servers divide it: at `&`, or at `;` as well."""
    found = pairs.split("&")
    return [*found, *pairs.replace("&", ";").split(";")] if ";" in pairs else found


def _is_plain(text: str) -> bool:
    """Whether a text has the word in no spelling, as most."""
    return text.isascii() and "%" not in text and "ethod" not in text.lower()


def _reduce(text: str) -> str:
    return _NOT_LETTERS.sub("", _fold(_decode_fully(text) or ""))


def _decode_fully(text: str) -> str | None:
    """The text without percent-encoding, however often it was encoded; None beyond a limit."""
    for _ in range(MAX_DECODINGS + 1):
        if "%" not in text:
            return text
        if "%u" in text:
            text = _WIDE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
        decoded = unquote(text)
        if decoded == text:
            return text
        text = decoded
    return None


def _spell(text: str) -> str:
    """The letters of a text, where some of them could be written in another way."""
    return text.lower() if text.isascii() else _NOT_LETTERS.sub("", _fold(text))


def _fold(text: str) -> str:
    """The text in lower case, fullwidth letters and other variants as the plain ones."""
    if text.isascii():
        return text.lower()
    # Java compares without case by upper case, where the dotless i is an I.
    return unicodedata.normalize("NFKD", text).lower().replace("\u0131", "i")
