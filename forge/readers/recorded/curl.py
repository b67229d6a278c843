"""Reader of curl commands (https://curl.se/docs/manpage.html), alone or within a text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from forge.readers.recorded.address import generalize_paths, split_url
from forge.readers.recorded.request import (
    Pair,
    RecordedBody,
    RecordedCredential,
    RecordedField,
    RecordedRequest,
    RequestRecording,
    find_credentials,
)

KEY = "curl"
"""The only key of the root that stands for a text with command lines."""
MAX_COMMANDS = 2_000
MAX_COMMAND = 64 * 1024
_START = re.compile(r"^[ \t>]{0,12}(?:\$[ \t]{1,4}|`)?(curl(?:\.exe)?[ \t].*)$", re.MULTILINE)
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_FIELD = re.compile(r"[^\s=&]{1,200}=")
"""The beginning of a form's field; a name has no spaces."""
_END = frozenset({";", "|", "||", "&&", "&", ")", "`"})

_TAKES_VALUE = frozenset(
    "-X --request -H --header -d --data --data-raw --data-ascii --data-binary --data-urlencode "
    "--json -F --form --form-string -u --user --url -b --cookie -T --upload-file --oauth2-bearer "
    "-A --user-agent -e --referer -o --output -m --max-time --connect-timeout -c --cookie-jar -w "
    "--write-out --retry --retry-delay -x --proxy -E --cert --key --cacert -K --config -D "
    "--dump-header --limit-rate -r --range --resolve --interface --ciphers --aws-sigv4 -z".split()
)
_METHODS = {"-I": "HEAD", "--head": "HEAD"}


def has_curl_command(text: str) -> bool:
    """Whether a text contains a curl command."""
    return _START.search(text) is not None


def starts_with_curl(text: str) -> bool:
    """Whether the first line that is neither blank nor a comment is a curl command."""
    for line in text.split("\n", 200)[:200]:
        if line.strip() and not line.lstrip().startswith("#"):
            return _START.match(line) is not None
    return False


def is_curl(root: Any) -> bool:
    """Whether a parsed document is a text with curl commands, `{"curl": text}`."""
    return isinstance(root, dict) and root.keys() == {KEY} and isinstance(root[KEY], str)


def read_curl(root: Any) -> RequestRecording:
    """Read the requests of a text's curl commands. `$ID`, `{id}`, `<id>` and `:id` in a path become
    parameters, and so do segments that look like identifiers. Credentials become schemes, without
    values.
    """
    requests: list[RecordedRequest] = []
    left_out: list[tuple[str, str]] = []
    for number, (line, command) in enumerate(_find_commands(root[KEY])):
        where = f"/curl/{number}"
        if number == MAX_COMMANDS:
            left_out.append((where, f"only the first {MAX_COMMANDS} commands are read"))
            break
        made = _parse_request(command, where)
        if isinstance(made, str):
            left_out.append((where, f"line {line}: {made}; it is left out"))
        else:
            requests.append(made)
    origins = {request.origin for request in requests if request.origin}
    title = min(origins).partition("://")[2] if origins else "API"
    return RequestRecording(title, KEY, _generalize_requests(requests), left_out=tuple(left_out))


def _generalize_requests(requests: list[RecordedRequest]) -> tuple[RecordedRequest, ...]:
    paths = generalize_paths(request.path for request in requests)
    return tuple(replace(request, path=paths[request.path]) for request in requests)


def _find_commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, command), with continuation lines: those after a backslash, and those
    inside an open quotation.
    """
    at = 0
    while found := _START.search(text, at):
        line = text.count("\n", 0, found.start(1)) + 1
        end = _find_end(text, found.start(1))
        yield line, text[found.start(1) : end]
        at = max(end, found.end())


def _find_end(text: str, start: int) -> int:
    quote, at = "", start
    last = min(len(text), start + MAX_COMMAND)
    while at < last:
        letter = text[at]
        if letter == "\\" and quote != "'":
            at += 3 if text[at + 1 : at + 3] == "\r\n" else 2
            continue
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "\n":
            return at
        at += 1
    return last


@dataclass
class _Options:
    """The options of one command."""

    method: str = ""
    urls: list[str] = field(default_factory=list)
    headers: list[Pair] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    fields: list[RecordedField] = field(default_factory=list)
    media_type: str = ""
    file: bool = False
    as_query: bool = False
    credential: RecordedCredential | None = None

    def apply_option(self, name: str, value: str) -> None:
        if name in ("-X", "--request"):
            self.method = value.upper()
        elif name in ("-H", "--header"):
            header, _, content = value.partition(":")
            self.headers.append((header.strip(), content.strip()))
        elif name == "--url":
            self.urls.append(value)
        elif name in ("-u", "--user"):
            self.credential = self.credential or RecordedCredential("basic")
        elif name == "--oauth2-bearer":
            self.credential = RecordedCredential("bearer")
        elif name in ("-b", "--cookie") and "=" in value:
            cookie = value.partition("=")[0].strip()
            self.credential = self.credential or RecordedCredential("apiKey", "cookie", cookie)
        elif name in ("-F", "--form", "--form-string"):
            key, _, content = value.partition("=")
            self.fields.append(RecordedField(key, content, content[:1] in ("@", "<")))
        elif name in ("-T", "--upload-file"):
            self.method, self.file = self.method or "PUT", True
        else:
            self._apply_data(name, value)

    def _apply_data(self, name: str, value: str) -> None:
        if name == "--json":
            self.media_type = "application/json"
            self.headers.append(("Accept", "application/json"))
        if name.startswith(("-d", "--data", "--json")):
            if value.startswith("@") and name != "--data-raw":
                self.file = True
            else:
                self.data.append(_encode_content(value) if name == "--data-urlencode" else value)


def _encode_content(value: str) -> str:
    """A value of --data-urlencode as curl sends it: what follows the first `=` is encoded whole."""
    name, equals, content = value.partition("=")
    return f"{name}={quote_plus(content)}" if equals and name else quote_plus(content or name)


def _split_pairs(data: list[str]) -> tuple[Pair, ...]:
    """The fields of a form. An `&` with no `name=` behind it belongs to the value before."""
    pieces: list[str] = []
    for value in data:
        for at, piece in enumerate(value.split("&")):
            if at and pieces and not _FIELD.match(piece):
                pieces[-1] = f"{pieces[-1]}%26{piece}"
            else:
                pieces.append(piece)
    return tuple(pair for piece in pieces for pair in parse_qsl(piece, keep_blank_values=True))


def _parse_request(command: str, where: str) -> RecordedRequest | str:
    """Parse the request of a command; a string says why it cannot be used."""
    try:
        words = _split_words(command)
    except ValueError as error:
        return f"the command cannot be read ({error})"
    options = _parse_options(words)
    if isinstance(options, str):
        return options
    if not options.urls:
        return "the command names no URL"
    address = split_url(options.urls[0])
    if isinstance(address, str):
        return address
    origin, path, query = address
    headers = tuple(options.headers)
    body = _build_body(options)
    if options.as_query:
        query, body = (*query, *_split_pairs(options.data)), None
    found = find_credentials(headers, query)
    credential = options.credential or next(iter(found), None)
    return RecordedRequest(
        method=options.method or ("POST" if body else "GET"),
        origin=origin,
        path=path,
        where=where,
        query=query,
        headers=headers,
        body=body,
        credential=credential,
        others=tuple(each for each in found if each != credential),
    )


def _split_words(command: str) -> list[str]:
    """Split a command as a POSIX shell does, up to the first operator."""
    joined = re.sub(r"[\\^`]\r?\n", " ", command)
    plain = _QUOTED.sub(_replace_ansi_quotes, joined)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";|&)`")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if word in _END:
            break
        words.append(word)
    return words[1:]


def _replace_ansi_quotes(found: re.Match[str]) -> str:
    """Requote `$'…'` in a way that `shlex` reads; other quotations are unchanged."""
    return found[0] if found[1] is None else shlex.quote(_unescape_text(found[1]))


def _unescape_text(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, found[0])

    return _ESCAPE.sub(letter, text)


def _parse_options(words: list[str]) -> _Options | str:
    options = _Options()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            options.urls.append(word)
            continue
        name, value = _split_option(word)
        if name in ("-G", "--get"):
            options.as_query = True
        elif name in _METHODS:
            options.method = _METHODS[name]
        elif name in _TAKES_VALUE:
            if value is None:
                if not rest:
                    return f"{name} has no value"
                value = rest.pop()
            options.apply_option(name, value)
        elif value:
            # Of several short options in one word, only the last can take a value.
            rest.append(f"-{value}")
    return options


def _split_option(word: str) -> tuple[str, str | None]:
    """Split a word to an option's name and, where it contains one, the value."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return (name, value) if equals and name in _TAKES_VALUE else (word, None)
    return word[:2], word[2:] or None


def _build_body(options: _Options) -> RecordedBody | None:
    declared = next((v for n, v in options.headers if n.lower() == "content-type"), "")
    declared = declared.partition(";")[0].strip().lower() or options.media_type
    if options.fields:
        return RecordedBody("multipart/form-data", fields=tuple(options.fields))
    if not options.data:
        return RecordedBody(declared or "application/octet-stream") if options.file else None
    text = "&".join(options.data)
    looks_json = text.lstrip()[:1] in ("{", "[")
    if declared and declared != "application/x-www-form-urlencoded":
        return RecordedBody(declared, text)
    if looks_json and not declared:
        return RecordedBody("application/json", text)
    pairs = _split_pairs(options.data)
    return RecordedBody(
        "application/x-www-form-urlencoded", fields=tuple(RecordedField(k, v) for k, v in pairs)
    )
