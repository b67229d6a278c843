"""Addresses of HTTP servers in a text: URLs, and hosts that are written without a scheme.

A request leaves this machine because of what is found here, so a word is an address only where it
can hardly be anything else: file names, versions, times, e-mail addresses, attributes of code and
templates are none.
"""

from __future__ import annotations

import ipaddress
import re

from sandbox.wire.policy import parse_origin

MAX_NAMED = 8
MAX_TEXT = 20_000
_URL = re.compile(r"https?://[^\s<>\"'`\\|]{1,2000}", re.IGNORECASE)
_TRAILING = ".,;:!?)]}*"
# What holds names that are no addresses of HTTP servers: templates, mail, URLs of other schemes,
# and the parts of a name behind an index or a call.
_NO_ADDRESS = re.compile(
    r"\$\{[^{}\n]{0,200}\}?|\$\([^()\n]{0,200}\)|\{\{[^{}\n]{0,200}\}\}|\{%[^{}\n]{0,200}%\}"
    r"|%\([^()\n]{0,80}\)[sd]|<[A-Za-z_][\w .-]{0,60}>|[\w.+%-]{1,64}@[\w.-]{1,253}"
    r"|\b[a-z][a-z0-9+-]{1,20}:(?://|\\\\)\S{1,2000}|\b(?:urn|mailto|sip|tel|data|doi):\S{1,500}",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"[{}$]|%7B|<", re.IGNORECASE)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WORD = re.compile(
    rf"(?<![\w./@$#%\\~+=-])(?P<name>(?:{_LABEL})(?:\.{_LABEL}){{0,8}}\.?)(?P<port>:\d{{2,5}})?"
    r"(?P<path>/[^\s<>\"'`\\|,;(){}\[\]]{0,500})?(?![\w@:\[(\\$-]|\.\w)"
)
_BEFORE = re.compile(r"([A-Za-z.]{1,20})[\s\"'`(]{1,4}\Z")
_VERSIONS = frozenset("v ver version versions release rev build tag firmware netmask mask".split())
# Behind these a name is what a request is about.
_SUBJECTS = frozenset(
    "zone zones domain domains record records subdomain subdomains cname mx ns txt ptr spf dkim "
    "package module class attribute property field variable column table key".split()
)
# A name of one label and a port is an address only behind one of these.
_LOCATING = frozenset(
    "at on from of to via against using ask call query host server api by with through behind "
    "source contact reach is".split()
)
_COUNTED = frozenset(
    "arg case chapter code col column error exit field id index issue item key level line lines "
    "max min number page part port pr rank ratio room row score section size step ticket time "
    "value verse version width".split()
)
# Country codes in use (ISO 3166-1, and ac, eu, su, uk), without those that are a file's ending or
# an attribute's usual name; these two follow.
_COUNTRIES = frozenset(
    "ac ad ae af ag ai al ao aq ar at au aw ax az ba bb bd bf bg bh bi bj bm bn bo br bs bt bw bz "
    "ca cc cd cf cg ch ci ck cl cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu "
    "fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu "
    "ie il im io iq ir je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv "
    "ly ma mc me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx mz na nc ne nf ng ni nl np nr nu "
    "nz om pa pe pf pg ph pk pm pn pr pt pw qa re ro ru rw sa sb sc sd se sg si sj sk sl sm sn sr "
    "ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn tr tt tv tw tz ua ug uk uy uz va vc ve vg "
    "vi vn vu wf ws ye yt za zm zw".split()
)
_GENERIC = frozenset(
    "com org net edu gov mil int pro dev app cloud xyz online site tech store shop blog live news "
    "world today network systems services software solutions digital group team ninja ceo google "
    "fun space website earth wiki codes tools expert academy agency bank biz games chat social "
    "weather energy finance health travel museum aero coop jobs mobi asia africa berlin london "
    "paris nyc amsterdam wien moscow tokyo build domains hosting works guru rocks plus "
    # RFC 2606, RFC 6762, RFC 8375 and what networks use inside.
    "local localhost internal intranet lan corp arpa test example invalid onion svc".split()
)
# Endings that a name in code or of a file has at least as often as a host has: a port, a path or a
# first label that hosts have decides.
_AMBIGUOUS = frozenset(
    "id is to my no in it be by so us as am cm page date info name link run host data zone date md "
    "py rs sh pl ps zip mov vip top ink design email phone media video audio photo center stream "
    "download support events review reviews report reports market space work works".split()
) - {"space", "works"}
_FILES = frozenset(
    "avi bak bash bat bin bmp bz2 c cc cfg class conf cpp crt cs css csv db dll doc docx dump env "
    "exe gif go gz h hpp html ico ini ipynb jar java jpeg jpg js json jsonl jsx key kt lock log "
    "lua m4a md mjs mov mp3 mp4 odt parquet pdf pem php pl png ppt pptx ps1 py rar rb rs rst "
    "scss sh so sql sqlite svg swift tar tex tf tgz toml ts tsv tsx ttf txt vue wasm wav webp woff "
    "xls xlsx xml xsd yaml yml zip zsh".split()
)
_HOST_LABELS = frozenset(
    "api apis app auth cdn data dev docs download gateway graphql mail rest staging status web www "
    "ws".split()
)
# First labels that begin a name in code, in a log or in reversed notation.
_CODE_LABELS = frozenset(
    "app args body cls com console config ctx data dev doc document edu event io java javax json "
    "labels math metadata module net node np obj org os params pd process props req request res "
    "resp response result row self settings spec state std string sys this user util utils values "
    "window".split()
)
_REVERSED = frozenset("com edu io java javax net org".split())
_REGISTRIES = frozenset("ac co com edu example gov net org test".split())


def find_locations(text: str) -> tuple[str, ...]:
    """Return the URLs and hosts in a text, in its order, at most `MAX_NAMED`.

    A URL with a placeholder is cut before the segment that holds it.
    """
    text = text[:MAX_TEXT]
    found: list[tuple[int, str]] = []
    for match in _URL.finditer(text):
        url = _cut_placeholder(match.group()).rstrip(_TRAILING)
        if parse_origin(url) is not None:
            found.append((match.start(), url))
    rest = _NO_ADDRESS.sub(_blank, _URL.sub(_blank, text))
    for match in _WORD.finditer(rest):
        if _begins_sample(match, rest):
            continue
        address = _read_address(match, rest[max(0, match.start() - 24) : match.start()])
        if address:
            found.append((match.start(), address))
    return tuple(dict.fromkeys(location for _, location in sorted(found)))[:MAX_NAMED]


def _begins_sample(match: re.Match[str], text: str) -> bool:
    """Whether a word is a bare IP address that begins a line of its own kind, as lines of logs do.
    The line with which a text begins is who wrote it speaking.
    """
    if match["port"] or match["path"] or not match["name"][0].isdigit():
        return False
    above, _, before = text[: match.start()].rpartition("\n")
    after = text[match.end() : match.end() + 2]
    return bool(above) and not before.strip(" \t>`|") and after[:1] in (" ", "\t") and after != "  "


def _read_address(match: re.Match[str], before: str) -> str:
    """The address that a word is, or "" where it is none."""
    name, port = match.group("name").removesuffix("."), match.group("port") or ""
    path = (match.group("path") or "").rstrip(_TRAILING)
    said = _BEFORE.search(before)
    word = said.group(1).lower().rstrip(".") if said else ""
    if not (_is_ip(name, port, path, word) or _is_name(name, port, path, word)):
        return ""
    address = name + port + (path if len(path) > 1 else "")
    return address if parse_origin(f"http://{address}") else ""


def _is_ip(name: str, port: str, path: str, word: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    network = path[1:].isdecimal()
    named = word in _VERSIONS or word in _SUBJECTS
    return not (network or named or (address.is_unspecified and not port))


def _is_name(name: str, port: str, path: str, word: str) -> bool:
    labels = name.split(".")
    if name.lower() == "localhost":
        return True
    if len(labels) == 1:
        return _is_service(name, port, word)
    last = labels[-1]
    if not any(letter.isalpha() for letter in labels[-2]) or word in _SUBJECTS:
        return False
    if port and last.isalpha() and last.lower() not in _FILES:
        return int(port[1:]) >= 80 and last.islower()
    if last in _AMBIGUOUS or last in _FILES:
        reached = port or len(path) > 1 or labels[0] in _HOST_LABELS - _CODE_LABELS
        return bool(reached) and last in _AMBIGUOUS - _FILES and labels[0] not in _CODE_LABELS
    if labels[0] in _CODE_LABELS and not path and not _is_registered_below(labels):
        return False
    return last in _COUNTRIES or last in _GENERIC


def _is_registered_below(labels: list[str]) -> bool:
    """Whether a name can be no attribute although it begins like one: `data.example.com`."""
    public = labels[-1] in _REGISTRIES or labels[-2] in _REGISTRIES
    return len(labels) > 2 and public and labels[0] not in _REVERSED


def _is_service(name: str, port: str, word: str) -> bool:
    """Whether a name without a dot is a machine's, such as `powerdns:8081`."""
    wide = port and (port in (":80", ":443") or 1024 <= int(port[1:]) <= 65535)
    plain = name[0].isalpha() and len(name) > 1 and name.islower() and name not in _COUNTED
    return bool(wide and plain and word in _LOCATING)


def _cut_placeholder(url: str) -> str:
    held = _PLACEHOLDER.search(url)
    return url if held is None else url[: url.rfind("/", 0, held.start()) + 1]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())
