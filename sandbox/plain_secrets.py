"""Secrets that stand in plain text: keys known by their form, and what is assigned to a name that
says so.

A finding says where and of what kind, never what. Examples, digests, public keys and identifiers
are let be: a finding stops somebody's work.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

MAX_SCANNED = 4 * 1024 * 1024
MAX_FOUND = 20
MIN_ASSIGNED = 12
MAX_LITERAL = 4_096
"""The longest value that is taken for a password."""
MIN_ENTROPY = 3.0
MIN_CHANGES = 0.15
"""How often the kind of character changes in a random text, at least, by its length."""


@dataclass(frozen=True)
class PlainSecret:
    """A secret in a text, without its value. `line` counts from 1."""

    line: int
    kind: str


_PREFIXED: tuple[tuple[str, str], ...] = (
    ("an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("a GitHub token", r"\bgh[oprsu]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_\w{22,255}\b"),
    ("a GitLab token", r"\bgl(?:pat|dt|rt|ptt|cbt)-[\w-]{20,64}"),
    ("a Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}|\bxapp-\d-[A-Za-z0-9-]{20,255}"),
    ("a Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]+/[A-Z0-9]+/\w{16,64}"),
    ("an API key of a model", r"\bsk-(?:proj-|svcacct-|ant-[a-z0-9]+-|or-v1-)?[\w-]{20,255}"),
    ("a Google API key", r"\bAIza[\w-]{35}\b"),
    ("a Google OAuth secret", r"\bGOCSPX-[\w-]{20,64}|\bya29\.[\w-]{20,512}"),
    ("a Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}|\bwhsec_[A-Za-z0-9+/=]{24,255}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("a PyPI token", r"\bpypi-AgE[\w-]{40,255}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,64}\b"),
    ("a SendGrid key", r"\bSG\.[\w-]{16,64}\.[\w-]{16,64}"),
    ("a Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("a DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    ("a Shopify token", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    ("a Telegram token", r"\b\d{8,10}:AA[\w-]{33}\b"),
    ("a Databricks token", r"\bdapi[a-f0-9]{32}\b"),
    ("a Notion token", r"\b(?:ntn|secret)_[A-Za-z0-9]{43,50}\b"),
    ("a Linear key", r"\blin_api_[A-Za-z0-9]{32,64}\b"),
    ("an Atlassian token", r"\bATATT3[\w=-]{40,255}"),
    ("a Vault token", r"\bhv[bs]\.[\w-]{24,255}"),
    ("a Mailgun key", r"\bkey-[0-9a-f]{32}\b"),
    ("a Postman key", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
    ("an age key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{40,80}"),
    ("a storage account's key", r"\bAccountKey=[A-Za-z0-9+/]{40,100}={0,2}"),
)
_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in _PREFIXED)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\\[nr]|[\s\"'+,]|[A-Z][\w-]+: [^\n\\]{0,80}){1,40}[A-Za-z0-9+/=]{40}"
)
_JWT = re.compile(r"\beyJ[\w-]{8,4096}+\.(eyJ[\w-]{8,4096}+)\.[\w-]{16,1024}")
_USERINFO = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'?#]{0,64}:([^\s/@\"'?#]{3,128})@([\w.-]{1,253})", re.I
)
_SCHEME = re.compile(r"\b(?:bearer|basic)[ +]{1,4}([\w+/.~-]{16,1024}={0,2})", re.I)
_NAMED = (
    r"passw(?:or)?d|passwd|passphrase|secret|token|api[_.-]?key|access[_.-]?key|auth[_.-]?key|"
    r"private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|credentials?|authorization"
)
_NAME = re.compile(_NAMED, re.I)
_NO_SECRET = re.compile(
    r"cursor|page|next|prev|continu|sync|delta|csrf|xsrf|idempot|request|tokens|tokeni[sz]|public|"
    r"secrets?_name|_id$|hash|digest|url|uri|path|pattern|regex|header",
    re.I,
)
"""Names that say token or key of what is none to keep."""
_LITERAL = re.compile(
    r"(?:=>|[=:,])\s{0,4}[rbfuRBFU]{0,2}([\"'`])"
    rf"([^\"'`\n]{{{MIN_ASSIGNED},{MAX_LITERAL}}})\1"
)
_BEFORE = re.compile(
    r"([\w.-]{1,80})[\"']?\]?\s{0,4}(?::\s{0,4}[\w.]{1,20}\s{0,4}(?:\|\s?None\s?)?)?[:=]?\Z"
)
"""The name that a literal is given to, an annotation between the two included."""
NAME_REACH = 120
_SETTING = re.compile(
    rf"^\s{{0,40}}(?:export\s+)?(\w{{0,40}}(?:{_NAMED})\w{{0,40}})=([^\s\"']{{12,}})", re.I
)
_PLACEHOLDER = re.compile(
    r"example|placeholder|change.?me|dummy|redacted|your[_ -]|my[_-]?(?:secret|token|key|password)|"
    r"x{4,}|\*{3,}|\.{3}|…|<[^>]*>|\$\{|\{\{|\{\w*\}|%\(|insert|replace|fake|sample|foo|"
    r"canary|s3cr[e3]t-|0123456789|1234567890|12345678|abcdefgh|deadbeef|(.)\1{5,}",
    re.I,
)
_WORDY = frozenset(
    "pass password passwd passwort pw pwd secret user username admin root guest test hunter2 "
    "letmein token foo bar baz key changeme example".split()
)
_RESERVED_HOST = re.compile(
    r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$|^(?:127\.|host$)", re.I
)
_PATTERN = re.compile(r"\[[^\]]{2,}\]|\\[bdswBDSW]|\(\?")
"""What texts hold that are regular expressions."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")


_CREDENTIAL = re.compile(
    r"(?:\b(?:bearer|basic|apikey|token)[ +]{1,4}"
    r"|\b[\w-]{0,40}(?:api[_-]?key|token|secret|passw(?:or)?d)[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"|(?:^|\s)(?:-u|--user)\s{1,4}[\"']?[^\s:\"']{1,64}:)"
    r"([^\s\"'&;,<>(){}\[\]$]{8,512})",
    re.I,
)


def find_credentials(text: str) -> frozenset[str]:
    """The values that a text gives where a credential stands: in a header, a query, a curl command.
    Whether they are somebody's or an example's, none belongs into code.
    """
    found = (match[1].rstrip(".:") for match in _CREDENTIAL.finditer(text[:MAX_SCANNED]))
    kept = (value for value in found if len(value) >= 8 and any(map(str.isdigit, value)))
    return frozenset(value for value in islice(kept, 200) if not _PLACEHOLDER.search(value))


def find_secrets(text: str) -> tuple[PlainSecret, ...]:
    """The secrets in a text, with their lines."""
    found: dict[PlainSecret, None] = {}
    for start, kind in islice(_iterate_places(text[:MAX_SCANNED]), MAX_FOUND):
        found.setdefault(PlainSecret(text.count("\n", 0, start) + 1, kind))
    return tuple(sorted(found, key=lambda secret: secret.line))


def has_login(text: str) -> bool:
    """Whether a text is or names an address with a user or a password before its host: whatever
    they are, also where the address is none that could be asked.
    """
    plain = text[:MAX_SCANNED].translate(_UNSEEN)
    return bool(_LOGIN.search(plain) or _BARE_LOGIN.match(plain.strip()))


_UNSEEN = {ord(each): None for each in "\t\r\n"}
"""What parsers of URLs leave out (https://url.spec.whatwg.org/#concept-basic-url-parser)."""
_LOGIN = re.compile(
    # A slash in a password would end the host, but for the colon before it that begins no port.
    r"[a-z][a-z0-9+.-]{0,20}:[\\/]{2,}(?:[^\s/?#\\@]{0,1024}@"
    r"|[^\s/?#\\@:]{0,256}:(?!\d{0,5}(?:[/?#\\]|\s|$))[^\s@]{0,1024}@)",
    re.I,
)
_BARE_LOGIN = re.compile(
    r"(?!directory:|mailto:|npm:|pypi:)[^\s/?#\\@:]{1,256}:[^\s/?#\\@]{1,1024}@[\w-]+[.:\w-]*", re.I
)


def find_secrets_in_task(task: str) -> tuple[str, ...]:
    """The kinds of secrets in the words of a task."""
    kinds = {secret.kind for secret in find_secrets(task)}
    kinds |= {"what stands where a credential does"} if find_credentials(task) else set()
    return tuple(sorted(kinds))


def find_secrets_in_code(code: str) -> tuple[PlainSecret, ...]:
    """The secrets in Python code: in its text, and in its literals as they are when it runs
    (escapes, parts that are added to each other).
    """
    found = dict.fromkeys(find_secrets(code))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tuple(found)
    known = {secret.kind for secret in found}
    for line, name, value in _iterate_literals(tree):
        kinds = {kind for _, kind in _iterate_places(value)}
        if name and _is_secret_value(name, value):
            kinds.add(f"what is assigned to {name[:60]}")
        found.update(dict.fromkeys(PlainSecret(line, kind) for kind in kinds - known))
    return tuple(sorted(found, key=lambda secret: secret.line))[:MAX_FOUND]


def find_secrets_in_json(value: object, where: str = "") -> Iterator[tuple[str, PlainSecret]]:
    """The secrets in the texts of a plain JSON value, each with the pointer to it."""
    pending: list[tuple[str, str, object]] = [(where, "", value)]
    while pending:
        place, name, node = pending.pop()
        if isinstance(node, dict):
            for key, item in node.items():
                pending.append((f"{place}/{str(key)[:60]}", str(key), item))
                pending.append((place, "", str(key)))
        elif isinstance(node, list | tuple):
            pending += [(f"{place}/{at}", name, item) for at, item in enumerate(node)]
        elif isinstance(node, str):
            found = {secret.kind: secret for secret in find_secrets(node)}
            if name and _is_secret_value(name, node):
                kind = f"what is assigned to {name[:60]}"
                found.setdefault(kind, PlainSecret(1, kind))
            yield from ((place, secret) for secret in found.values())


def find_secrets_in_words(words: Sequence[str]) -> tuple[str, ...]:
    """The kinds of secrets in a command line: in its words, and after options that say so."""
    found = {kind for word in words for _, kind in _iterate_places(word)}
    for option, value in (*pairwise(words), *(word.split("=", 1) for word in words if "=" in word)):
        if option.startswith("-") and _is_secret_value(option, value):
            found.add(f"what the option {option[:60]} gives")
    return tuple(sorted(found))


def _iterate_places(text: str, decode: bool = True) -> Iterator[tuple[int, str]]:
    """Where in a text a secret begins, and its kind."""
    for kind, pattern in _KINDS:
        for match in pattern.finditer(text):
            if _is_key(match[0]):
                yield match.start(), kind
    for match in _PRIVATE_KEY.finditer(text):
        yield match.start(), "a private key"
    for match in _JWT.finditer(text):
        if not _is_sample_token(match[1]):
            yield match.start(), "a signed token (JWT)"
    for match in _USERINFO.finditer(text):
        if not _is_sample_login(match[1], match[2]):
            yield match.start(), "a URL with a password"
    for match in _SCHEME.finditer(text):
        if not match[1].startswith("eyJ") and _is_random(match[1]):
            yield match.start(), "a credential as it is sent"
    for match in _LITERAL.finditer(text):
        before = _BEFORE.search(text[max(0, match.start() - NAME_REACH) : match.start()])
        if before and _is_secret_value(before[1], match[2]):
            yield match.start(2), f"what is assigned to {before[1][:60]}"
    for line in re.finditer(r"^.*$", text, re.M) if "=" in text else ():
        setting = _SETTING.match(line[0])
        if setting and _is_secret_value(setting[1], setting[2]):
            yield line.start(), f"what is assigned to {setting[1][:60]}"
    if decode:
        yield from _iterate_encoded(text)


def _iterate_encoded(text: str) -> Iterator[tuple[int, str]]:
    """Places of base64 whose content has a secret."""
    for match in _ENCODED.finditer(text):
        letters = match[0].rstrip("=").translate(str.maketrans("-_", "+/"))
        try:
            raw = base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
            inner = raw.decode()
        except (binascii.Error, ValueError):
            continue
        yield from ((match.start(), kind) for _, kind in _iterate_places(inner, decode=False))


def _iterate_literals(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, name and value of the literal texts of code; the name is "" where they get none."""
    named: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            label = getattr(targets[0], "id", "") or getattr(targets[0], "attr", "")
            if node.value is not None:
                named[id(node.value)] = label
        elif isinstance(node, ast.keyword):
            named[id(node.value)] = node.arg or ""
        elif isinstance(node, ast.Dict):
            for key, item in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    named[id(item)] = key.value
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.BinOp):
            value = _join_literal(node)
            if len(value) >= 8:
                yield node.lineno, named.get(id(node), ""), value


def _join_literal(node: ast.expr, depth: int = 0) -> str:
    """The text of a literal, or of literals that are added to each other; "" for anything else."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bytes):
            return node.value.decode("latin-1")
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < 40:
        left, right = _join_literal(node.left, depth + 1), _join_literal(node.right, depth + 1)
        return left + right if left and right else ""
    return ""


def _is_secret_value(name: str, value: str) -> bool:
    """Whether what a name gets is a secret, by both."""
    if not _NAME.search(name) or not MIN_ASSIGNED <= len(value) <= MAX_LITERAL:
        return False
    if _NO_SECRET.search(name) or (_UUID.fullmatch(value) and "token" in name.lower()):
        return False
    return _is_random(value)


def _is_key(text: str) -> bool:
    """Whether what has a key's form is one, not an example of it or a name with dashes."""
    by_chance = _measure_entropy(text[4:]) >= 2.5 and re.search(r"\d", text[4:])
    return bool(by_chance) and not _PLACEHOLDER.search(text)


def _is_random(text: str) -> bool:
    """Whether a text looks made by chance, not by a person who names something."""
    if _PLACEHOLDER.search(text) or _PATTERN.search(text) or re.search(r"\s", text):
        return False
    if _measure_entropy(text) < MIN_ENTROPY:
        return False
    if not re.search(r"\d", text) or not re.search(r"[A-Za-z]", text):
        return False
    runs = _RUN.findall(text)
    return len(runs) / len(text) >= MIN_CHANGES and max(map(len, runs)) <= len(text) * 0.6


def _measure_entropy(text: str) -> float:
    """Bits per character."""
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values()) if text else 0.0


def _is_sample_login(password: str, host: str) -> bool:
    plain = password.lower() in _WORDY or _PLACEHOLDER.search(password)
    return bool(plain or _RESERVED_HOST.search(host) or password.startswith(("$", "{", "<", "%")))


def _is_sample_token(payload: str) -> bool:
    """Whether a JWT's claims say that it is an example, such as that of RFC 7519 or jwt.io."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return False
    if not isinstance(claims, dict):
        return False
    told = json.dumps(claims)[:MAX_LITERAL]
    return bool(re.search(r"1234567890|example|\.test\b|\"joe\"|John Doe|Jane Doe", told, re.I))
