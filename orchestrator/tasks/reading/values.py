"""Values in a task's words: numbers with units, dates, addresses, codes, quotations, names.

What has two readings (`03/04/2026`, `1,5`, `next Friday`) is found too, as a value of the kind
`vague`, which goes into no argument.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

from forge.addresses import find_locations
from orchestrator.tasks.reading.units import (
    CURRENCIES,
    CURRENCY_WORDS,
    SIGNS,
    UNITS,
    WORDLIKE,
    Unit,
)
from orchestrator.tasks.routing import words as w
from orchestrator.tasks.routing.european import begins_request
from registry.search.words import STOP_WORDS
from sandbox import exactjson

ValueKind = Literal[
    "quoted",
    "url",
    "email",
    "uuid",
    "datetime",
    "date",
    "time",
    "ip",
    "domain",
    "path",
    "coordinates",
    "number",
    "currency",
    "code",
    "name",
    "json",
    "letter",
    "period",
    "range",
    "vague",
]
MAX_VALUES = 100
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join((*_MONTHS, *(name[:3] for name in _MONTHS if name != "may"), "sept"))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`|]{1,2000}", re.IGNORECASE)
_QUOTED = re.compile(
    r"\"(?P<a>[^\"\n]{1,2000})\"|“(?P<b>[^”\n]{1,2000})”|`(?P<c>[^`\n]{1,2000})`"
    r"|(?<![\w'])'(?P<d>[^'\n]{1,2000})'(?!\w)|«(?P<e>[^»\n]{1,2000})»|„(?P<f>[^“”\n]{1,2000})[“”]"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}\b")
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{1,2})?/(?:[\w.@+-]{1,100}/){0,20}[\w.@+-]{0,99}[\w@+-](?![\w/])"
)
_DATETIME = re.compile(
    r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?(?![\w:])"
)
_DATE = re.compile(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?![\w-])")
_DAY_FIRST = re.compile(rf"\b{_DAY}\.?\s+(?:of\s+)?(?P<month>{_MONTH})\.?,?\s+(?P<year>\d{{4}})\b",
                        re.IGNORECASE)  # fmt: skip
_MONTH_FIRST = re.compile(
    rf"\b(?P<month>{_MONTH})\.?\s+{_DAY},?\s+(?P<year>\d{{4}})\b", re.IGNORECASE
)
_SLASHED = re.compile(r"(?<![\w/.])(\d{1,2})([/.])(\d{1,2})\2(\d{4})(?![\w/])")
_DAY_AND_MONTH = re.compile(
    rf"\b{_DAY}\.?\s+(?:of\s+)?(?P<month>{_MONTH})\b(?!\.?,?\s+\d)", re.IGNORECASE
)
_MONTH_AND_DAY = re.compile(
    rf"\b(?P<month>{_MONTH})\.?\s+{_DAY}\b(?!,?\s+\d{{4}}|[:.,/-]\d)", re.IGNORECASE
)
_MONTH_SAID = re.compile(
    rf"(?<=\bin )(?P<month>{_MONTH})\b(?:\s+(?P<year>[12]\d{{3}})\b)?(?!\.?\s+\d)", re.IGNORECASE
)
_NEAR_DAY = re.compile(r"\b(?:the\s+day\s+after\s+tomorrow|today|tomorrow|yesterday)\b", re.I)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY = "|".join(_WEEKDAYS)
_WEEKDAY_SAID = re.compile(
    rf"(?<!next )(?<!last )(?<!past )(?<!coming )(?<!every )(?<!each )\b(?:this\s+)?"
    rf"(?P<weekday>{_WEEKDAY})\b(?!\s+(?:{_WEEKDAY}|morning|afternoon|evening|night|(?-i:[A-Z])))",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:since|ago|was|were|did|had)\b|\b(?!(?:scheduled|planned|expected|booked|reserved|fred|ted)"
    r"\b)[a-z]{2,20}ed\s+(?:on|after|before|between|during|from|in)\b"
)
"""Words by which a task is about what is over."""
_PERIOD = re.compile(
    r"\b(?P<which>this|next|last|past|coming)\s+(?P<unit>week|month)\b", re.IGNORECASE
)
_VAGUE_DATE = re.compile(
    rf"\b(?:(?:next|last|this|past|coming)\s+(?:few\s+)?(?:days?|weeks?|weekend|months?|years?|"
    rf"quarter|morning|afternoon|evening|night|hours?|{_WEEKDAY})|tonight|{_WEEKDAY}s?|weekend|"
    rf"(?:{_DAY})?\s*(?:of\s+)?(?:{_MONTH})(?:\s+\d{{1,2}}(?:st|nd|rd|th)?\b|\s+\d{{4}})?|"
    r"\d{1,2}(?:st|nd|rd|th)|noon|midnight|"
    r"(?:\d{1,3}|two|three|a\s+few)\s+(?:minutes?|hours?|days?|weeks?|months?|years?)\s+ago)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?<![\w:])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d))?(?:\s?(?P<half>[ap]m))?(?![\w:])"
    r"|(?<![\w:.])(?P<hour>1[0-2]|[1-9])\s?(?P<part>[ap]m)\b",
    re.IGNORECASE,
)
_IP = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7})"
                 r"(?:/\d{1,3})?(?![\w:]|\.\d)", re.IGNORECASE)  # fmt: skip
_COORDINATES = re.compile(
    r"(?<![\w.,-])(?P<lat>[+-]?\d{1,2}\.\d{1,10})(?:\s*+°)?(?:\s*+(?P<ns>[NS]))?"
    r"(?:\s*+[,/]\s*+|[^\S ]*+ \s*+)"
    r"(?P<lon>[+-]?\d{1,3}\.\d{1,10})(?:\s*+°)?(?:\s*+(?P<ew>[EW]))?(?!\w|\.\d)"
)
_DOMAIN = re.compile(
    r"(?<![\w@./-])(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}\.?(?![\w@/-])"
)
_PORT = re.compile(r"(?<=\0:)\d{2,5}\b")
_LETTER = re.compile(r"(?<=[\w,] )(?!I\b)[A-Z](?![\w'.])")
_COMMA_NUMBER = re.compile(
    r"(?<![\w.,])[+-]?\d{1,30},\d{1,2}(?![\d,]|\.\d)|(?<![\w.,])\d{1,30},\d{4,30}\b"
)
_RANGE = re.compile(
    r"(?<![\w.,-])\d{1,18}(?:\.\d{1,9})?\s?[-\u2013]\s?\d{1,18}(?:\.\d{1,9})?(?![\w-])"
)
_UNIT = r"(?:°\s?[CcFf]|%|[A-Za-z]{1,12}(?:/[a-z]{1,2})?)"
_NUMBER = re.compile(
    r"(?<![\w.,:/])(?<!\w-)(?P<sign>[€£$]\s?)?(?P<number>[+-]?(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,30})(?:\.\d{1,15})?)"
    rf"(?:(?P<tight>{_UNIT})(?![\w-])|\s(?P<loose>{_UNIT})(?![\w-])|(?P<euro>\s?[€£$])|(?![\w/-]|:\S|[.,]\d))"
)
_CODE = re.compile(
    r"(?<![\w-])(?:#\d{1,18}|(?=[A-Za-z0-9_-]{0,39}\d)(?=[A-Za-z0-9_-]{0,39}[A-Za-z])"
    r"[A-Za-z0-9]{1,20}(?:[-_][A-Za-z0-9]{1,20}){0,5}|v?\d{1,6}(?:\.\d{1,6}){2,3})(?![\w-])"
)
_CURRENCY = re.compile(r"\b[A-Za-z]{3}\b")
_NAME = re.compile(
    r"(?<![\w@./'-])[^\W\d_a-z][\w'\u2019-]{0,40}(?:\s+(?:(?:de|la|le|van|von|der|of|the|upon|am|del|di)\s+)?"
    r"[^\W\d_a-z][\w'\u2019-]{0,40}){0,4}"
)
_OWNER = re.compile(r"['\u2019]s\Z")
_OWNED = re.compile(r" [a-z]")
_PLACED = re.compile(r"\b(?:in|at|near|around)\s+\Z", re.IGNORECASE)
"""Words before a name whose last letters are its own: `in St John's today`."""
_JSON = re.compile(r"[\[{][^\n]{2,2000}[\]}]")
_SPELLED = dict(zip("two three four five six seven eight nine ten twelve".split(),
                    (2, 3, 4, 5, 6, 7, 8, 9, 10, 12), strict=True))  # fmt: skip
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b", re.IGNORECASE)
_NO_NAMES = (
    w.READING_VERBS | (w.WRITING_VERBS - {"new"}) | w.POLITE | w.MAKING | w.PRONOUNS | w.AUXILIARIES
    | STOP_WORDS | w.ADVISING | frozenset(
        "api apis id ids dns url urls http https json xml csv html mcp ok utc gmt am pm ip ips "
        "rest "
        "what's who's where's all any every each records zones".split()
    )
)  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A value that a task says: `text` stands at `start` to `end` of the task, `value` is it as
    JSON. A `number` may have a unit; a `time` is `HH:MM:SS`; `coordinates` are a pair, and a
    `period` is its first and its last day. A `range` (`5-10`) and a `letter` are a value only
    behind the name of what takes a text: `phone 555-10`, `rack B`. `is_guessed`: the year or the
    zone of a time was not said, and is the likelier one.
    """

    kind: ValueKind
    text: str
    value: Any
    start: int
    end: int
    unit: Unit | None = None
    currency: str = ""
    is_guessed: bool = False


def scan_values(task: str, now: datetime | None = None) -> tuple[Value, ...]:
    """The values in a task, in its order, at most 100. Days such as `tomorrow`, `Friday` or `1
    March` are dates only with `now`, in its time zone.
    """
    found: list[Value] = []
    text = task
    for scan in _build_scans(now):
        fresh = [value for value in scan(text) if value.text]
        for value in fresh:
            text = text[: value.start] + "\0" * (value.end - value.start) + text[value.end :]
        found += fresh
    found.sort(key=lambda value: value.start)
    return tuple(found[:MAX_VALUES])


def _build_scans(now: datetime | None) -> tuple[Callable[[str], Iterable[Value]], ...]:
    return (
        _scan_json,
        _scan_quoted,
        _scan_urls,
        lambda text: _scan(text, "email", _EMAIL),
        lambda text: _scan(text, "uuid", _UUID),
        lambda text: _scan_datetimes(text, now),
        lambda text: _scan_dates(text, now),
        lambda text: _scan_near_dates(text, now),
        _scan_ips,
        lambda text: _scan(text, "path", _PATH),
        _scan_coordinates,
        _scan_times,
        _scan_domains,
        lambda text: _scan(text, "vague", _COMMA_NUMBER),
        _scan_vague_dates,
        lambda text: _scan(text, "vague", _PORT),
        lambda text: _scan(text, "range", _RANGE),
        _scan_numbers,
        lambda text: _scan(text, "code", _CODE),
        _scan_spelled_numbers,
        _scan_currencies,
        _scan_names,
        lambda text: _scan(text, "letter", _LETTER),
    )


def _scan(text: str, kind: ValueKind, pattern: re.Pattern[str]) -> Iterable[Value]:
    for found in pattern.finditer(text):
        said = found.group()
        clean = said.strip()
        start = found.start() + said.index(clean) if clean else found.start()
        yield Value(kind, clean, clean.lstrip("#") if kind == "code" else clean, start,
                    start + len(clean))  # fmt: skip


def _scan_json(text: str) -> Iterable[Value]:
    """An object or list that is written out."""
    found = _JSON.search(text)
    if found is None:
        return
    try:
        value = exactjson.loads(found.group().encode())
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict | list):
        yield Value("json", found.group(), value, *found.span())


def _scan_quoted(text: str) -> Iterable[Value]:
    for found in _QUOTED.finditer(text):
        inner = next(group for group in found.groups() if group is not None)
        yield Value("quoted", found.group(), inner, *found.span())


def _scan_urls(text: str) -> Iterable[Value]:
    for found in _URL.finditer(text):
        url = found.group().rstrip(".,;:!?)]}*")
        yield Value("url", url, url, found.start(), found.start() + len(url))


def _scan_datetimes(text: str, now: datetime | None) -> Iterable[Value]:
    for found in _DATETIME.finditer(text):
        said = found.group()
        try:
            parsed = datetime.fromisoformat(said)
        except ValueError:
            yield Value("vague", said, said, *found.span())
            continue
        # RFC 3339 needs an offset. What a person writes without one is likely their own time; with
        # its `T` it was copied from somewhere.
        is_guessed = parsed.tzinfo is None and now is not None and " " in said
        if is_guessed and now is not None:
            parsed = parsed.replace(tzinfo=now.tzinfo)
        kind: ValueKind = "vague" if parsed.tzinfo is None else "datetime"
        told = parsed.isoformat() if is_guessed else said.replace(" ", "T")
        yield Value(kind, said, told, *found.span(), is_guessed=is_guessed)


def _scan_dates(text: str, now: datetime | None) -> Iterable[Value]:
    for found in _DATE.finditer(text):
        yield _build_date(found, *map(int, found.group().split("-")))
    for pattern in (_DAY_FIRST, _MONTH_FIRST):
        for found in pattern.finditer(text):
            yield _build_date(
                found, int(found["year"]), _find_month(found["month"]), int(found["day"])
            )
    for found in _SLASHED.finditer(text):
        one, other, year = int(found[1]), int(found[3]), int(found[4])
        if one <= 12 < other:
            yield _build_date(found, year, one, other)
        elif other <= 12 < one or one == other:
            yield _build_date(found, year, other, one)
        else:
            yield Value("vague", found.group(), found.group(), *found.span())
    for found in _NEAR_DAY.finditer(text):
        said = found.group().lower()
        days = 2 if said.startswith("the") else {"today": 0, "tomorrow": 1, "yesterday": -1}[said]
        if now is None:
            yield Value("vague", found.group(), said, *found.span())
        else:
            day = (now + timedelta(days=days)).date()
            yield Value("date", found.group(), day.isoformat(), *found.span())


def _find_month(said: str) -> int:
    return next(n for n, name in enumerate(_MONTHS, 1) if name[:3] == said.lower()[:3])


def _scan_near_dates(text: str, now: datetime | None) -> Iterable[Value]:
    """Days and weeks of which nothing but their distance to `now` says which they are."""
    if now is None:
        return
    is_past = _OVER.search(text) is not None
    for pattern in (_DAY_AND_MONTH, _MONTH_AND_DAY):
        for found in pattern.finditer(text):
            yield _build_near_date(found, now.date(), is_past)
    for found in _WEEKDAY_SAID.finditer(text):
        if not is_past:
            # Today's own name may mean the same day of the next week.
            ahead = (_WEEKDAYS.index(found["weekday"].lower()) - now.weekday()) % 7
            told = (now.date() + timedelta(days=ahead or 7)).isoformat()
            yield Value("date", found.group(), told, *found.span(), is_guessed=not ahead)
    for found in _PERIOD.finditer(text):
        yield _build_period(found, now.date())
    for found in _MONTH_SAID.finditer(text):
        yield _build_month(found, now.date(), is_past)


def _build_near_date(found: re.Match[str], today: date, is_past: bool) -> Value:
    """A day without its year: of this year, unless that does not fit whether it is over; then of
    the year in which it is nearer.
    """
    month, day = _find_month(found["month"]), int(found["day"])
    same = _build_date(found, today.year, month, day)
    if same.kind != "date":
        return same
    said = date.fromisoformat(same.value)
    if said <= today if is_past else said >= today:
        return same
    years = [today.year - 1] if is_past else [today.year, today.year + 1]
    near = [each for year in years if (each := _build_date(found, year, month, day)).kind == "date"]
    if not near:
        return replace(same, kind="vague", value=same.text)
    nearest = min(near, key=lambda each: abs(date.fromisoformat(each.value) - today))
    return replace(nearest, is_guessed=True)


def _build_period(found: re.Match[str], today: date) -> Value:
    step = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}[found["which"].lower()]
    if found["unit"].lower() == "week":
        first = today + timedelta(days=7 * step - today.weekday())
        last = first + timedelta(days=6)
    else:
        first = _add_months(today.replace(day=1), step)
        last = _add_months(first, 1) - timedelta(days=1)
    return Value("period", found.group(), (first.isoformat(), last.isoformat()), *found.span())


def _build_month(found: re.Match[str], today: date, is_past: bool) -> Value:
    """A whole month; without its year the last one that began, where it is over, else the next one
    that has not ended.
    """
    month = _find_month(found["month"])
    fits = month <= today.month if is_past else month >= today.month
    nearest = today.year if fits else today.year + (-1 if is_past else 1)
    first = date(int(found["year"] or nearest), month, 1)
    last = _add_months(first, 1) - timedelta(days=1)
    return Value("period", found.group(), (first.isoformat(), last.isoformat()), *found.span())


def _add_months(first: date, months: int) -> date:
    """The first of the month that many months later."""
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    return date(year, month + 1, 1)


def _build_date(found: re.Match[str], year: int, month: int, day: int) -> Value:
    try:
        told = date(year, month, day).isoformat()
    except ValueError:
        return Value("vague", found.group(), found.group(), *found.span())
    return Value("date", found.group(), told, *found.span())


def _scan_ips(text: str) -> Iterable[Value]:
    for found in _IP.finditer(text):
        try:
            ipaddress.ip_interface(found.group())
        except ValueError:
            continue
        yield Value("ip", found.group(), found.group(), *found.span())


def _scan_coordinates(text: str) -> Iterable[Value]:
    for found in _COORDINATES.finditer(text):
        latitude, longitude = float(found["lat"]), float(found["lon"])
        latitude = -abs(latitude) if found["ns"] == "S" else latitude
        longitude = -abs(longitude) if found["ew"] == "W" else longitude
        if abs(latitude) <= 90 and abs(longitude) <= 180:
            yield Value("coordinates", found.group(), (latitude, longitude), *found.span())


def _scan_times(text: str) -> Iterable[Value]:
    for found in _TIME.finditer(text):
        hour, half = (
            int(found["h"] or found["hour"]),
            (found["half"] or found["part"] or "").lower(),
        )
        if half and not 1 <= hour <= 12:
            yield Value("vague", found.group(), found.group(), *found.span())
            continue
        hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
        told = f"{hour:02}:{found['m'] or '00'}:{found['s'] or '00'}"
        yield Value("time", found.group(), told, *found.span())


def _scan_domains(text: str) -> Iterable[Value]:
    """Names of two labels or more that are no abbreviations (`e.g`) and no file's name."""
    hosts = {*find_locations(text)}
    for found in _DOMAIN.finditer(text):
        said = found.group()
        # A dot before a space or at the end is the sentence's, unless the zone is written with it.
        name = said.removesuffix(".")
        labels = name.split(".")
        if any(len(label) < 2 for label in labels[-2:]) and name not in hosts:
            continue
        if all(label.isdecimal() for label in labels[:-1]):
            continue
        yield Value("domain", name, name, found.start(), found.start() + len(name))


def _scan_vague_dates(text: str) -> Iterable[Value]:
    """Times that are not exact; `may` and `march` in small letters are verbs."""
    for value in _scan(text, "vague", _VAGUE_DATE):
        if value.text not in ("may", "march", "mar", "dec", "sep"):
            yield value


def _scan_numbers(text: str) -> Iterable[Value]:
    for found in _NUMBER.finditer(text):
        number = _parse_number(found["number"])
        if number is None:
            # A number is not written with a zero in front, an identifier may be.
            yield Value("code", found["number"], found["number"], *found.span("number"))
            continue
        end = found.end("number")
        word = found["tight"] or found["loose"] or ""
        unit = UNITS.get(word.replace(" ", "").lower())
        currency = _find_currency(found["sign"], found["euro"], word)
        behind = found["euro"] or (currency and not found["sign"])
        if unit is not None or behind:
            end = found.end()
        elif found["tight"]:
            continue
        start = found.start() if found["sign"] else found.start("number")
        yield Value("number", text[start:end], number, start, end, unit, currency)


def _parse_number(said: str) -> int | float | None:
    plain = said.replace(",", "")
    digits = plain.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] != ".":
        return None
    return float(plain) if "." in plain else int(plain)


def _find_currency(sign: str | None, behind: str | None, word: str) -> str:
    mark = (sign or behind or "").strip()
    if mark:
        return SIGNS.get(mark, "?")
    if word in CURRENCIES or (word.upper() in CURRENCIES and word.lower() not in WORDLIKE):
        return word.upper()
    return CURRENCY_WORDS.get(word.lower(), "")


def _scan_spelled_numbers(text: str) -> Iterable[Value]:
    for found in _SPELLED_NUMBER.finditer(text):
        yield Value("number", found.group(), _SPELLED[found.group().lower()], *found.span())


def _scan_currencies(text: str) -> Iterable[Value]:
    for found in _CURRENCY.finditer(text):
        said = found.group()
        known = said in CURRENCIES or (said.upper() in CURRENCIES and said not in WORDLIKE)
        if known and (said.isupper() or said.islower()):
            yield Value("currency", said, said.upper(), *found.span())
    lowered = text.lower()
    for word, code in CURRENCY_WORDS.items():
        for found in re.finditer(rf"\b{word}\b", lowered):
            yield Value("currency", text[found.start() : found.end()], code, *found.span())


def _scan_names(text: str) -> Iterable[Value]:
    """Capitalised words, without those at the beginning that are ordinary words."""
    for found in _NAME.finditer(text):
        start, end = found.span()
        said = found.group()
        if not text[:start].strip(" \t\n¿¡") and begins_request(said.split()[0]):
            _, _, rest = said.partition(" ")
            start, said = end - len(rest), rest
        while said and said.split()[0].lower().strip("'\u2019") in _NO_NAMES:
            shorter = said.split(None, 1)
            rest = shorter[1] if len(shorter) > 1 else ""
            start, said = end - len(rest), rest
        while said and (said.split()[-1].lower() in _NO_NAMES or said.split()[-1] == "and"):
            said = said.rsplit(None, 1)[0] if len(said.split()) > 1 else ""
        if _OWNER.search(said) and _OWNED.match(text, end) and not _PLACED.search(text[:start]):
            said = said[:-2]
        # A lone letter is a degree's, a grade's, or the first word of nothing.
        if len(said) > 1 and not said[0].islower():
            yield Value("name", said, said, start, start + len(said))
