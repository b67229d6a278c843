"""Command lines of curl (https://curl.se/docs/manpage.html), alone or within a document's text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from forge.recorded.address import generalised, split
from forge.recorded.request import Body, Credential, FormField, Pair, RecordedRequest, Recording
from forge.recorded.secrets import credential_of

KEY = "curl"
"""The only key of the root that stands for a text with command lines."""
MAX_COMMANDS = 2_000
MAX_COMMAND = 64 * 1024
_START = re.compile(r"^[ \t>]{0,12}(?:\$[ \t]{1,4}|`)?(curl(?:\.exe)?[ \t].*)$", re.MULTILINE)
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_END = frozenset({";", "|", "||", "&&", "&", ")", "`"})

_TAKES_VALUE = frozenset(
    "-X --request -H --header -d --data --data-raw --data-ascii --data-binary --data-urlencode "
    "--json -F --form --form-string -u --user --url -b --cookie -T --upload-file --oauth2-bearer "
    "-A --user-agent -e --referer -o --output -m --max-time --connect-timeout -c --cookie-jar -w "
    "--write-out --retry --retry-delay -x --proxy -E --cert --key --cacert -K --config -D "
    "--dump-header --limit-rate -r --range --resolve --interface --ciphers --aws-sigv4 -z".split()
)
_METHODS = {"-I": "HEAD", "--head": "HEAD"}


def holds_curl(text: str) -> bool:
    """Whether a text has a curl command line anywhere."""
    return _START.search(text) is not None


def starts_with_curl(text: str) -> bool:
    """Whether a text's first line that says anything is a curl command line."""
    for line in text.split("\n", 200)[:200]:
        if line.strip() and not line.lstrip().startswith("#"):
            return _START.match(line) is not None
    return False


def is_curl(root: Any) -> bool:
    return isinstance(root, dict) and root.keys() == {KEY} and isinstance(root[KEY], str)


def read_curl(root: Any) -> Recording:
    """The requests that a text's curl commands make. `$ID`, `{id}`, `<id>` and `:id` in a path are
    parameters, and so is what looks like an identifier. Credentials become schemes, without values.
    """
    requests: list[RecordedRequest] = []
    left_out: list[tuple[str, str]] = []
    for number, (line, command) in enumerate(_commands(root[KEY])):
        where = f"/curl/{number}"
        if number == MAX_COMMANDS:
            left_out.append((where, f"only the first {MAX_COMMANDS} commands are read"))
            break
        made = _request(command, where)
        if isinstance(made, str):
            left_out.append((where, f"line {line}: {made}; it is left out"))
        else:
            requests.append(made)
    origins = {request.origin for request in requests if request.origin}
    title = min(origins).partition("://")[2] if origins else "API"
    return Recording(title, KEY, _open(requests), left_out=tuple(left_out))


def _open(requests: list[RecordedRequest]) -> tuple[RecordedRequest, ...]:
    paths = generalised(request.path for request in requests)
    return tuple(replace(request, path=paths[request.path]) for request in requests)


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """(line number, command) of each, with its continued lines: those after a backslash, and those
    inside a quote that is still open.
    """
    at = 0
    while found := _START.search(text, at):
        line = text.count("\n", 0, found.start(1)) + 1
        end = _end_of(text, found.start(1))
        yield line, text[found.start(1) : end]
        at = max(end, found.end())


def _end_of(text: str, start: int) -> int:
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
    """What the options of one command say."""

    method: str = ""
    urls: list[str] = field(default_factory=list)
    headers: list[Pair] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    fields: list[FormField] = field(default_factory=list)
    media_type: str = ""
    file: bool = False
    as_query: bool = False
    credential: Credential | None = None

    def take(self, name: str, value: str) -> None:
        if name in ("-X", "--request"):
            self.method = value.upper()
        elif name in ("-H", "--header"):
            header, _, content = value.partition(":")
            self.headers.append((header.strip(), content.strip()))
        elif name == "--url":
            self.urls.append(value)
        elif name in ("-u", "--user"):
            self.credential = self.credential or Credential("basic")
        elif name == "--oauth2-bearer":
            self.credential = Credential("bearer")
        elif name in ("-b", "--cookie") and "=" in value:
            cookie = value.partition("=")[0].strip()
            self.credential = self.credential or Credential("apiKey", "cookie", cookie)
        elif name in ("-F", "--form", "--form-string"):
            key, _, content = value.partition("=")
            self.fields.append(FormField(key, content, content[:1] in ("@", "<")))
        elif name in ("-T", "--upload-file"):
            self.method, self.file = self.method or "PUT", True
        else:
            self._take_data(name, value)

    def _take_data(self, name: str, value: str) -> None:
        if name == "--json":
            self.media_type = "application/json"
            self.headers.append(("Accept", "application/json"))
        if name.startswith(("-d", "--data", "--json")):
            if value.startswith("@") and name != "--data-raw":
                self.file = True
            else:
                self.data.append(value)


def _request(command: str, where: str) -> RecordedRequest | str:
    """The request that a command makes, or why that cannot be told."""
    try:
        words = _words(command)
    except ValueError as error:
        return f"the command cannot be read ({error})"
    options = _parsed(words)
    if isinstance(options, str):
        return options
    if not options.urls:
        return "the command names no URL"
    address = split(options.urls[0])
    if isinstance(address, str):
        return address
    origin, path, query = address
    headers = tuple(options.headers)
    body = _body(options)
    if options.as_query:
        query, body = (*query, *parse_qsl("&".join(options.data), keep_blank_values=True)), None
    return RecordedRequest(
        method=options.method or ("POST" if body else "GET"),
        origin=origin,
        path=path,
        where=where,
        query=query,
        headers=headers,
        body=body,
        credential=options.credential or credential_of(headers, query),
    )


def _words(command: str) -> list[str]:
    """The command's words as a POSIX shell splits them, up to the first operator."""
    joined = re.sub(r"[\\^`]\r?\n", " ", command)
    plain = _QUOTED.sub(_without_ansi, joined)
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";|&)`")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in lexer:
        if word in _END:
            break
        words.append(word)
    return words[1:]


def _without_ansi(found: re.Match[str]) -> str:
    """What stands in `$'…'` as any shell quotes it; other quotes stay."""
    return found[0] if found[1] is None else shlex.quote(_unescaped(found[1]))


def _unescaped(text: str) -> str:
    def letter(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, found[0])

    return _ESCAPE.sub(letter, text)


def _parsed(words: list[str]) -> _Options | str:
    options = _Options()
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            options.urls.append(word)
            continue
        name, value = _option(word)
        if name in ("-G", "--get"):
            options.as_query = True
        elif name in _METHODS:
            options.method = _METHODS[name]
        elif name in _TAKES_VALUE:
            if value is None:
                if not rest:
                    return f"{name} has no value"
                value = rest.pop()
            options.take(name, value)
        elif value:
            # Of several short options in one word, only the last can take a value.
            rest.append(f"-{value}")
    return options


def _option(word: str) -> tuple[str, str | None]:
    """An option's name and, where it stands in the same word, its value."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return (name, value) if equals and name in _TAKES_VALUE else (word, None)
    return word[:2], word[2:] or None


def _body(options: _Options) -> Body | None:
    declared = next((v for n, v in options.headers if n.lower() == "content-type"), "")
    declared = declared.partition(";")[0].strip().lower() or options.media_type
    if options.fields:
        return Body("multipart/form-data", fields=tuple(options.fields))
    if not options.data:
        return Body(declared or "application/octet-stream") if options.file else None
    text = "&".join(options.data)
    looks_json = text.lstrip()[:1] in ("{", "[")
    if declared and declared != "application/x-www-form-urlencoded":
        return Body(declared, text)
    if looks_json and not declared:
        return Body("application/json", text)
    pairs = parse_qsl(text, keep_blank_values=True)
    return Body(
        "application/x-www-form-urlencoded", fields=tuple(FormField(k, v) for k, v in pairs)
    )
