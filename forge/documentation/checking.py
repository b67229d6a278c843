"""Claims against the text that they are about: what has no evidence is left out, and told."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit

from forge.document import Problem
from forge.openapi.servers import absolute
from forge.prosedocs.claims import AnswerClaim, Claims, FieldClaim, OperationClaim
from forge.prosedocs.evidence import Evidence, opened, plain
from forge.prosedocs.page import METHODS, Page
from forge.recorded.request import PLACEHOLDER, Credential
from forge.sources import is_loopback
from sandbox.addresses import is_public
from sandbox.pace import MAX_PER, MAX_REQUESTS, SLOWEST
from sandbox.policy import origin_of

MAX_CHECKED = 500
"""Operations of all answers together."""
MAX_PROBLEMS = 300
MAX_SCHEMES = 4
_PATH = re.compile(r"/[A-Za-z0-9_{}.~$&'()+,;=:@%/-]{0,400}\Z")
_NAME = re.compile(r"[A-Za-z_$@][A-Za-z0-9_.$@\[\]-]{0,99}\Z")
_UNITS = (
    (1, ("second", "seconds", "sec", "s", "rps")),
    (60, ("minute", "minutes", "min", "rpm")),
    (3600, ("hour", "hours", "hr", "h")),
    (86400, ("day", "days", "daily")),
)
_SAID = {"bearer": "bearer", "basic": "basic", "oauth2": "oauth"}


@dataclass(frozen=True)
class Answered:
    """One answer of a model, and the part of the documentation that it is about, as its page and
    a JSON pointer such as `/part/2`.
    """

    location: str
    pointer: str
    claims: Claims


@dataclass(frozen=True)
class Checked:
    """What of the claims the text bears out. `rate` is (requests, seconds), or None."""

    operations: tuple[tuple[OperationClaim, str, str], ...]
    base_url: str = ""
    credentials: tuple[Credential, ...] = ()
    rate: tuple[int, float] | None = None
    problems: tuple[Problem, ...] = ()


def checked(answers: Sequence[Answered], pages: Sequence[Page]) -> Checked:
    """Every claim that is quoted, stands in the text and concerns the API itself."""
    evidence = Evidence.of(page.text for page in pages)
    check = _Check(evidence, pages[0].location)
    for answered in answers:
        check.base(answered)
    for answered in answers:
        check.credential(answered)
        check.limit(answered)
        check.operations(answered)
    made = tuple(check.made.values())
    return Checked(
        made, check.base_url, tuple(check.credentials), check.rate, tuple(check.problems)
    )


@dataclass
class _Check:
    evidence: Evidence
    location: str
    base_url: str = ""
    rate: tuple[int, float] | None = None
    credentials: list[Credential] = field(default_factory=list)
    made: dict[tuple[str, str], tuple[OperationClaim, str, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    count: int = 0

    def base(self, answered: Answered) -> None:
        claims, place = answered.claims, f"{answered.pointer}/base_url"
        if not claims.base_url:
            return
        why = self._base_wrong(claims)
        url = "" if why else absolute(claims.base_url, self.location)
        if why or not url:
            self._tell(answered, place, f"{why or 'it is no base URL'}; it is left out")
        elif not self.base_url:
            self.base_url = url
        elif url != self.base_url:
            reason = f"it says {url} is the base URL, and earlier {self.base_url}; that one counts"
            self._tell(answered, place, reason)

    def _base_wrong(self, claims: Claims) -> str:
        """Why a claimed base URL does not count; "" where it does."""
        url = claims.base_url.rstrip("/")
        if not self.evidence.quotes(claims.base_quote):
            return "the base URL has no quotation from the text"
        if plain(url) not in plain(claims.base_quote) and not self.evidence.beside(
            claims.base_quote, url
        ):
            return f"{url!r} does not stand in the text"
        return self._elsewhere(urljoin(self.location, url))

    def _elsewhere(self, url: str) -> str:
        """Why requests may not go there: a page does not lead its readers into private networks."""
        own, there = origin_of(self.location), origin_of(url)
        if there is None:
            return "" if own is None and url.startswith("/") else f"{url!r} is no http(s) URL"
        if own is not None and own.host != there.host:
            if is_loopback(urlsplit(url)) or _is_private(there.host):
                return f"{there} is a private address, which the page is not on"
        return ""

    def credential(self, answered: Answered) -> None:
        claims, place = answered.claims, f"{answered.pointer}/auth"
        kind, name = claims.auth_kind, claims.auth_name
        if kind in ("", "none"):
            return
        why = self._credential_wrong(claims)
        if why:
            self._tell(answered, place, f"{why}; the credential is left out")
            return
        made = Credential("apiKey", kind, name)  # type: ignore[arg-type]
        if kind in _SAID:
            made = Credential(kind, token_url=self._token_url(claims))  # type: ignore[arg-type]
        elif name.lower() == "authorization" and self.evidence.beside(claims.auth_quote, "Bearer"):
            made = Credential("bearer")
        if made not in self.credentials and len(self.credentials) < MAX_SCHEMES:
            self.credentials.append(made)

    def _credential_wrong(self, claims: Claims) -> str:
        kind, name, quote = claims.auth_kind, claims.auth_name, claims.auth_quote
        if not self.evidence.quotes(quote):
            return f"the {kind} credential has no quotation from the text"
        if kind in _SAID:
            words = (_SAID[kind], _SAID[kind].capitalize(), "OAuth2", "OAuth", "OAuth 2.0")
            near = words[:2] if kind != "oauth2" else words
            if not any(self.evidence.beside(quote, word) for word in near):
                return f"nothing in the text beside its quotation says {kind}"
            return ""
        if not _NAME.match(name):
            return f"{name!r} is no name of a {kind}"
        return "" if self.evidence.beside(quote, name) else f"{name!r} does not stand there"

    def _token_url(self, claims: Claims) -> str:
        url = claims.token_url
        if claims.auth_kind != "oauth2" or not url or not self.evidence.says(url):
            return ""
        whole = urljoin(self.base_url or self.location, url)
        return "" if self._elsewhere(whole) else whole

    def limit(self, answered: Answered) -> None:
        claims, place = answered.claims, f"{answered.pointer}/limits"
        if not claims.requests or not claims.per_seconds:
            return
        quote = claims.limit_quote
        shown = plain(quote).replace(",", "")
        if not self.evidence.quotes(quote) or not re.search(rf"\b{claims.requests}\b", shown):
            self._tell(answered, place, "the limit has no quotation with its number; left out")
        elif not _says_unit(shown, claims.per_seconds):
            self._tell(answered, place, "its quotation names no such time; it is left out")
        else:
            rate = pace_of(claims.requests, claims.per_seconds)
            if rate is None:
                told = f"{claims.requests} in {claims.per_seconds:g} s is no pace to be kept to"
                self._tell(answered, place, f"{told}; it is left out")
            elif self.rate is None or rate[0] / rate[1] < self.rate[0] / self.rate[1]:
                self.rate = rate

    def operations(self, answered: Answered) -> None:
        for number, claim in enumerate(answered.claims.operations):
            place = f"{answered.pointer}/operations/{number}"
            if self.count == MAX_CHECKED:
                reason = f"it and what follows is left out: {MAX_CHECKED} operations were looked at"
                self._tell(answered, place, reason)
                return
            self.count += 1
            self._operation(answered, place, claim)
        if answered.claims.more:
            reason = f"{answered.claims.more} operations more than an answer may have are left out"
            self._tell(answered, f"{answered.pointer}/operations", reason)

    def _operation(self, answered: Answered, place: str, claim: OperationClaim) -> None:
        shown = f"{claim.method} {claim.path}"[:200]
        path = self._path(claim.path)
        why = path[1:] if path.startswith("!") else self._operation_wrong(claim, path)
        if why:
            self._tell(answered, place, f"{shown}: {why}; it is left out")
            return
        kept = tuple(
            field
            for field in claim.fields
            if not self._told_wrong(answered, place, shown, self._field_wrong(field))
        )
        answers = tuple(
            self._example(answer)
            for answer in claim.answers
            if not self._told_wrong(answered, place, shown, self._answer_wrong(answer))
        )
        made = replace(claim, path=self._relative(path), fields=kept, answers=answers)
        key = made.method, PLACEHOLDER.sub("{}", made.path)
        if key not in self.made:
            self.made[key] = made, answered.location, place
        else:
            first, location, at = self.made[key]
            merged, conflicts = _merged(first, made)
            self.made[key] = merged, location, at
            for conflict in conflicts:
                self._tell(answered, place, f"{shown}: {conflict}; what was said first counts")

    def _path(self, claimed: str) -> str:
        """A claimed path with `{name}` for what varies; where it is none, "!" and why."""
        path = opened(claimed.partition("#")[0].partition("?")[0])
        origin = origin_of(path)
        if origin is not None:
            own = origin_of(self.base_url or self.location)
            if not self.base_url and own is None:
                return "!it is absolute and the documentation names no base URL"
            if own != origin:
                return f"!it is on another host than {own}"
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        if not _PATH.match(path) or "//" in path or "/.." in path or "/./" in path:
            return "!it is no path"
        return path

    def _operation_wrong(self, claim: OperationClaim, path: str) -> str:
        if claim.method not in METHODS:
            return "it is no method of HTTP"
        if not self.evidence.quotes(claim.quote):
            return "it has no quotation from the text"
        own = origin_of(self.base_url or self.location)
        prefixes = (self.base_url, urlsplit(self.base_url).path, str(own or ""))
        methods = self.evidence.methods(path, prefixes)
        if not methods:
            return "its path does not stand in the text"
        if not self.evidence.beside(claim.quote, path) and path not in opened(plain(claim.quote)):
            return "its quotation does not stand beside its path"
        if claim.method not in methods:
            return f"the text gives that path {', '.join(sorted(methods))} only"
        return ""

    def _field_wrong(self, claim: FieldClaim) -> str:
        if not _NAME.match(claim.name):
            return f"{claim.name!r} is no name of a parameter"
        if claim.location not in ("path", "query", "header", "body"):
            return f"{claim.name} is in no part of a request"
        if not self.evidence.quotes(claim.quote, 3):
            return f"{claim.name} has no quotation from the text"
        if not self.evidence.beside(claim.quote, claim.name):
            return f"the name {claim.name} does not stand beside its quotation"
        return ""

    def _answer_wrong(self, claim: AnswerClaim) -> str:
        if not 100 <= claim.status <= 599:
            return f"{claim.status} is no status"
        if not self.evidence.quotes(claim.quote, 3):
            return f"the status {claim.status} has no quotation from the text"
        if claim.status != 200 and not self.evidence.beside(claim.quote, str(claim.status)):
            return f"the status {claim.status} does not stand beside its quotation"
        return ""

    def _example(self, claim: AnswerClaim) -> AnswerClaim:
        """The answer, its example only where the text has it letter for letter and it is JSON."""
        try:
            json.loads(claim.example or "null")
        except (ValueError, RecursionError):
            return replace(claim, example="")
        return claim if self.evidence.quotes(claim.example, 2) else replace(claim, example="")

    def _relative(self, path: str) -> str:
        """The path below the base URL: documentation often writes the base's own path before it."""
        base = urlsplit(self.base_url).path.rstrip("/")
        inside = bool(base) and path.startswith(f"{base}/")
        return path[len(base) :] if inside else path

    def _told_wrong(self, answered: Answered, place: str, shown: str, why: str) -> bool:
        if why:
            self._tell(answered, place, f"{shown}: {why}; that is left out")
        return bool(why)

    def _tell(self, answered: Answered, pointer: str, reason: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(answered.location, pointer, reason[:1000]))


def _merged(first: OperationClaim, more: OperationClaim) -> tuple[OperationClaim, list[str]]:
    """Two claims of one operation as one, and where they differ."""
    fields = {(claim.location, claim.name): claim for claim in first.fields}
    conflicts = []
    for claim in more.fields:
        known = fields.setdefault((claim.location, claim.name), claim)
        if (known.type, known.required) != (claim.type, claim.required):
            conflicts.append(f"{claim.name} is said to be different things")
    answers = {(claim.status, claim.example): claim for claim in (*more.answers, *first.answers)}
    made = replace(
        first,
        fields=tuple(fields.values()),
        answers=tuple(answers.values()),
        summary=first.summary or more.summary,
        media_type=first.media_type or more.media_type,
        has_body=first.has_body or more.has_body,
    )
    return made, conflicts


def _is_private(host: str) -> bool:
    """Whether a host is written as an address that is not public, or under no public name."""
    try:
        return not is_public(str(ipaddress.ip_address(host.strip("[]"))))
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa"))


def pace_of(requests: int, per: float) -> tuple[int, float] | None:
    """A documented limit as a `sandbox.pace.Pace` of the same rate; None where it is too slow to be
    waited for, or so fast that it is no limit.
    """
    if requests / per < SLOWEST or requests / per > MAX_REQUESTS / 0.1:
        return None
    if requests <= MAX_REQUESTS and 0.1 <= per <= MAX_PER:
        return requests, per
    for made in range(1, MAX_REQUESTS + 1):
        if made * per / requests >= 0.1:
            return made, round(made * per / requests, 6)
    return None


def _says_unit(text: str, seconds: float) -> bool:
    words = set(re.findall(r"[a-z]+", text.lower()))
    return any(seconds % unit == 0 and words & {*names} for unit, names in _UNITS)


def told(problems: Iterable[Problem], most: int = 5) -> str:
    """The first problems in a line."""
    return "; ".join(str(problem) for problem in list(problems)[:most])
