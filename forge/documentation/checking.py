"""Checks of a model's claims against the documentation; claims without evidence are dropped and
reported.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from forge.documentation.claims import AnswerClaim, ApiClaims, FieldClaim, OperationClaim
from forge.documentation.evidence import Evidence, normalize_placeholders, normalize_text
from forge.readers.document import DocumentProblem
from forge.readers.openapi.servers import normalize_url
from forge.readers.page import METHODS, Page
from forge.readers.recorded.request import PLACEHOLDER, RecordedCredential
from forge.sources import is_loopback
from sandbox.broker.addresses import is_public
from sandbox.bundle.ratelimit import MAX_PER, MAX_REQUESTS, SLOWEST
from sandbox.wire.policy import join_url, parse_origin

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
class LocatedClaims:
    """The claims of one model answer, and the part of the documentation that it was about, as its
    page and a JSON pointer such as `/part/2`.
    """

    location: str
    pointer: str
    claims: ApiClaims


@dataclass(frozen=True)
class CheckedClaims:
    """The claims that the text supports. `operations` are (claim, page, pointer); `rate` is
    (requests, seconds), or None.
    """

    operations: tuple[tuple[OperationClaim, str, str], ...]
    base_url: str = ""
    credentials: tuple[RecordedCredential, ...] = ()
    rate: tuple[int, float] | None = None
    problems: tuple[DocumentProblem, ...] = ()


def check_claims(answers: Sequence[LocatedClaims], pages: Sequence[Page]) -> CheckedClaims:
    """Return the claims that are quoted, stand in the text and concern the API itself."""
    evidence = Evidence.from_texts(page.text for page in pages)
    check = _ClaimChecker(evidence, pages[0].location)
    for answered in answers:
        check.check_base_url(answered)
    for answered in answers:
        check.check_credential(answered)
        check.check_limit(answered)
        check.check_operations(answered)
    made = tuple(check.made.values())
    return CheckedClaims(
        made, check.base_url, tuple(check.credentials), check.rate, tuple(check.problems)
    )


@dataclass
class _ClaimChecker:
    """Checks the answers one after the other and collects what holds; for differing claims the
    first counts.
    """

    evidence: Evidence
    location: str
    base_url: str = ""
    rate: tuple[int, float] | None = None
    credentials: list[RecordedCredential] = field(default_factory=list)
    made: dict[tuple[str, str], tuple[OperationClaim, str, str]] = field(default_factory=dict)
    problems: list[DocumentProblem] = field(default_factory=list)
    count: int = 0

    def check_base_url(self, answered: LocatedClaims) -> None:
        claims, place = answered.claims, f"{answered.pointer}/base_url"
        if not claims.base_url:
            return
        why = self._find_base_problem(claims)
        url = "" if why else normalize_url(claims.base_url, self.location)
        if why or not url:
            self._report_problem(answered, place, f"{why or 'it is no base URL'}; it is left out")
        elif not self.base_url:
            self.base_url = url
        elif url != self.base_url:
            reason = f"it says {url} is the base URL, and earlier {self.base_url}; that one counts"
            self._report_problem(answered, place, reason)

    def _find_base_problem(self, claims: ApiClaims) -> str:
        """Return why a claimed base URL does not count; "" where it does."""
        url = claims.base_url.rstrip("/")
        if not self.evidence.has_quote(claims.base_quote):
            return "the base URL has no quotation from the text"
        if normalize_text(url) not in normalize_text(
            claims.base_quote
        ) and not self.evidence.has_word_beside(claims.base_quote, url):
            return f"{url!r} does not stand in the text"
        return self._find_origin_problem(join_url(self.location, url))

    def _find_origin_problem(self, url: str) -> str:
        """Return why requests may not go to a URL: a page must not lead into private networks."""
        own, there = parse_origin(self.location), parse_origin(url)
        if there is None:
            return "" if own is None and url.startswith("/") else f"{url!r} is no http(s) URL"
        if own is not None and own.host != there.host:
            if is_loopback(urlsplit(url)) or _is_private(there.host):
                return f"{there} is a private address, which the page is not on"
        return ""

    def check_credential(self, answered: LocatedClaims) -> None:
        claims, place = answered.claims, f"{answered.pointer}/auth"
        kind, name = claims.auth_kind, claims.auth_name
        if kind in ("", "none"):
            return
        why = self._find_credential_problem(claims)
        if why:
            self._report_problem(answered, place, f"{why}; the credential is left out")
            return
        made = RecordedCredential("apiKey", kind, name)  # type: ignore[arg-type]
        if kind in _SAID:
            made = RecordedCredential(kind, token_url=self._resolve_token_url(claims))  # type: ignore[arg-type]
        elif name.lower() == "authorization" and self.evidence.has_word_beside(
            claims.auth_quote, "Bearer"
        ):
            made = RecordedCredential("bearer")
        if made not in self.credentials and len(self.credentials) < MAX_SCHEMES:
            self.credentials.append(made)

    def _find_credential_problem(self, claims: ApiClaims) -> str:
        kind, name, quote = claims.auth_kind, claims.auth_name, claims.auth_quote
        if not self.evidence.has_quote(quote):
            return f"the {kind} credential has no quotation from the text"
        if kind in _SAID:
            words = (_SAID[kind], _SAID[kind].capitalize(), "OAuth2", "OAuth", "OAuth 2.0")
            near = words[:2] if kind != "oauth2" else words
            if not any(self.evidence.has_word_beside(quote, word) for word in near):
                return f"nothing in the text beside its quotation says {kind}"
            return ""
        if not _NAME.match(name):
            return f"{name!r} is no name of a {kind}"
        return (
            "" if self.evidence.has_word_beside(quote, name) else f"{name!r} does not stand there"
        )

    def _resolve_token_url(self, claims: ApiClaims) -> str:
        url = claims.token_url
        if claims.auth_kind != "oauth2" or not url or not self.evidence.has_word(url):
            return ""
        whole = join_url(self.base_url or self.location, url)
        return "" if self._find_origin_problem(whole) else whole

    def check_limit(self, answered: LocatedClaims) -> None:
        claims, place = answered.claims, f"{answered.pointer}/limits"
        if not claims.requests or not claims.per_seconds:
            return
        quote = claims.limit_quote
        shown = normalize_text(quote).replace(",", "")
        if not self.evidence.has_quote(quote) or not re.search(rf"\b{claims.requests}\b", shown):
            self._report_problem(
                answered, place, "the limit has no quotation with its number; left out"
            )
        elif not _names_unit(shown, claims.per_seconds):
            self._report_problem(
                answered, place, "its quotation names no such time; it is left out"
            )
        else:
            rate = convert_to_pace(claims.requests, claims.per_seconds)
            if rate is None:
                told = f"{claims.requests} in {claims.per_seconds:g} s is no pace to be kept to"
                self._report_problem(answered, place, f"{told}; it is left out")
            elif self.rate is None or rate[0] / rate[1] < self.rate[0] / self.rate[1]:
                self.rate = rate

    def check_operations(self, answered: LocatedClaims) -> None:
        for number, claim in enumerate(answered.claims.operations):
            place = f"{answered.pointer}/operations/{number}"
            if self.count == MAX_CHECKED:
                reason = f"it and what follows is left out: {MAX_CHECKED} operations were looked at"
                self._report_problem(answered, place, reason)
                return
            self.count += 1
            self._check_operation(answered, place, claim)
        if answered.claims.more:
            reason = f"{answered.claims.more} operations more than an answer may have are left out"
            self._report_problem(answered, f"{answered.pointer}/operations", reason)

    def _check_operation(self, answered: LocatedClaims, place: str, claim: OperationClaim) -> None:
        shown = f"{claim.method} {claim.path}"[:200]
        path = self._resolve_path(claim.path)
        why = path[1:] if path.startswith("!") else self._find_operation_problem(claim, path)
        if why:
            self._report_problem(answered, place, f"{shown}: {why}; it is left out")
            return
        kept = tuple(
            field
            for field in claim.fields
            if not self._report_if_wrong(answered, place, shown, self._find_field_problem(field))
        )
        answers = tuple(
            self._check_example(answer)
            for answer in claim.answers
            if not self._report_if_wrong(answered, place, shown, self._find_answer_problem(answer))
        )
        made = replace(claim, path=self._to_relative_path(path), fields=kept, answers=answers)
        key = made.method, PLACEHOLDER.sub("{}", made.path)
        if key not in self.made:
            self.made[key] = made, answered.location, place
        else:
            first, location, at = self.made[key]
            merged, conflicts = _merge_claims(first, made)
            self.made[key] = merged, location, at
            for conflict in conflicts:
                self._report_problem(
                    answered, place, f"{shown}: {conflict}; what was said first counts"
                )

    def _resolve_path(self, claimed: str) -> str:
        """Return a claimed path with `{name}` for its variables; for an invalid one, "!" and the
        reason.
        """
        path = normalize_placeholders(claimed.partition("#")[0].partition("?")[0])
        origin = parse_origin(path)
        if origin is not None:
            own = parse_origin(self.base_url or self.location)
            if not self.base_url and own is None:
                return "!it is absolute and the documentation names no base URL"
            if own != origin:
                return f"!it is on another host than {own}"
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        if not _PATH.match(path) or "//" in path or "/.." in path or "/./" in path:
            return "!it is no path"
        return path

    def _find_operation_problem(self, claim: OperationClaim, path: str) -> str:
        if claim.method not in METHODS:
            return "it is no method of HTTP"
        if not self.evidence.has_quote(claim.quote):
            return "it has no quotation from the text"
        own = parse_origin(self.base_url or self.location)
        prefixes = (self.base_url, urlsplit(self.base_url).path, str(own or ""))
        methods = self.evidence.find_methods(path, prefixes)
        if not methods:
            return "its path does not stand in the text"
        if not self.evidence.has_word_beside(
            claim.quote, path
        ) and path not in normalize_placeholders(normalize_text(claim.quote)):
            return "its quotation does not stand beside its path"
        if claim.method not in methods:
            return f"the text gives that path {', '.join(sorted(methods))} only"
        return ""

    def _find_field_problem(self, claim: FieldClaim) -> str:
        if not _NAME.match(claim.name):
            return f"{claim.name!r} is no name of a parameter"
        if claim.location not in ("path", "query", "header", "body"):
            return f"{claim.name} is in no part of a request"
        if not self.evidence.has_quote(claim.quote, 3):
            return f"{claim.name} has no quotation from the text"
        if not self.evidence.has_word_beside(claim.quote, claim.name):
            return f"the name {claim.name} does not stand beside its quotation"
        return ""

    def _find_answer_problem(self, claim: AnswerClaim) -> str:
        if not 100 <= claim.status <= 599:
            return f"{claim.status} is no status"
        if not self.evidence.has_quote(claim.quote, 3):
            return f"the status {claim.status} has no quotation from the text"
        if claim.status != 200 and not self.evidence.has_word_beside(
            claim.quote, str(claim.status)
        ):
            return f"the status {claim.status} does not stand beside its quotation"
        return ""

    def _check_example(self, claim: AnswerClaim) -> AnswerClaim:
        """Return the answer; its example is kept only where it is JSON and the text has it
        literally.
        """
        try:
            json.loads(claim.example or "null")
        except (ValueError, RecursionError):
            return replace(claim, example="")
        return claim if self.evidence.has_quote(claim.example, 2) else replace(claim, example="")

    def _to_relative_path(self, path: str) -> str:
        """Return the path below the base URL; documentation often repeats the base's own path."""
        base = urlsplit(self.base_url).path.rstrip("/")
        inside = bool(base) and path.startswith(f"{base}/")
        return path[len(base) :] if inside else path

    def _report_if_wrong(self, answered: LocatedClaims, place: str, shown: str, why: str) -> bool:
        if why:
            self._report_problem(answered, place, f"{shown}: {why}; that is left out")
        return bool(why)

    def _report_problem(self, answered: LocatedClaims, pointer: str, reason: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(DocumentProblem(answered.location, pointer, reason[:1000]))


def _merge_claims(first: OperationClaim, more: OperationClaim) -> tuple[OperationClaim, list[str]]:
    """Merge two claims of one operation, and list where they differ."""
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
    """Whether a host is an address that is not public, or has no public domain name."""
    try:
        return not is_public(str(ipaddress.ip_address(host.strip("[]"))))
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa"))


def convert_to_pace(requests: int, per: float) -> tuple[int, float] | None:
    """Convert a documented limit to (requests, seconds) in the bounds of
    `sandbox.bundle.ratelimit.Pace`; None where the rate is too slow to wait for, or so fast that it
    is no limit.
    """
    if requests / per < SLOWEST or requests / per > MAX_REQUESTS / 0.1:
        return None
    if requests <= MAX_REQUESTS and 0.1 <= per <= MAX_PER:
        return requests, per
    # The same rate in fewer requests; 0.1 s is the shortest period that a Pace takes.
    for made in range(1, MAX_REQUESTS + 1):
        if made * per / requests >= 0.1:
            return made, round(made * per / requests, 6)
    return None


def _names_unit(text: str, seconds: float) -> bool:
    words = set(re.findall(r"[a-z]+", text.lower()))
    return any(seconds % unit == 0 and words & {*names} for unit, names in _UNITS)


def format_problems(problems: Iterable[DocumentProblem], most: int = 5) -> str:
    """Format the first problems on one line."""
    return "; ".join(str(problem) for problem in list(problems)[:most])
