"""Judging redirects: which answers send a request on, and whether it may go there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from sandbox.broker.sender import build_refused_exchange
from sandbox.wire.canonical import find_request_problem
from sandbox.wire.exchange import Caps, Exchange, WireRequest
from sandbox.wire.policy import SAFE_METHODS, Policy, RequestRule, join_url, parse_origin

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses whose Location a safe request follows (RFC 9110 section 15.4)."""


_SEPARATORS = re.compile(r"[-_.]")
_LOGIN = frozenset(
    "login signin logon authenticate authorize authorization oauth oauth2 openidconnect oidc saml "
    "saml2 sso userlogin loginform accountlogin wplogin dologin".split()
)
"""Segments of paths that lead to a log-in, without separators and file name suffix."""


@dataclass(frozen=True)
class Redirect:
    """The request as it goes on, and the rule of the policy that allows it."""

    request: WireRequest
    rule: RequestRule


def judge_redirect(
    exchange: Exchange, policy: Policy, caps: Caps, hops: int
) -> Redirect | Exchange:
    """The redirect that may be followed, the exchange itself where it is none, else its refusal.

    `hops` counts the redirects followed before. Only a safe request is redirected, and only to a
    target that the policy declares: a redirect grants nothing. A slash more or less at the end of a
    declared path is the same target.
    """
    request, response, attempts = exchange.request, exchange.response, exchange.attempts
    target = response.get_header("location") if response else None
    if response is None or response.status not in REDIRECTS or not target:
        return exchange
    if hops >= caps.redirects:
        reason = f"redirected more than {hops} times"
        return build_refused_exchange(request, "refused", reason, attempts)
    moved = replace(request, url=join_url(request.url, target))
    sound = not find_request_problem(moved, caps)
    rule = policy.find_rule(moved) if sound else None
    if sound and rule is None and _differs_by_slash(request.url, moved.url):
        rule = policy.find_rule(request)
    if request.method not in SAFE_METHODS or rule is None or rule.refuses_act(moved.url):
        where = str(parse_origin(moved.url) or "an address without an origin")
        if _leads_to_login(request.url, moved.url):
            reason = (
                f"the API wants a log-in: it answered {response.status} and a log-in page at "
                f"{where}. Give the server a credential with `toolwright secret set`; where the "
                "description declares none, forge it with --auth"
            )
            return build_refused_exchange(request, "credential", reason, attempts)
        reason = f"redirected ({response.status}) to an undeclared target at {where}"
        return build_refused_exchange(request, "redirect", reason, attempts)
    return Redirect(moved, rule)


def _leads_to_login(asked: str, target: str) -> bool:
    """Whether a redirect leads to a page of its own for logging in, by the words of its path. An
    API whose own route has such a word (`/session/7`) is redirected for other reasons.
    """
    return bool(_list_login_words(target)) and not _list_login_words(asked)


def _list_login_words(url: str) -> list[str]:
    path = urlsplit(url).path.lower() if parse_origin(url) else ""
    names = [part.rpartition(".")[0] or part for part in path.split("/")]
    return [name for name in names if _SEPARATORS.sub("", name) in _LOGIN]


def _differs_by_slash(url: str, moved: str) -> bool:
    """Whether two URLs are the same but for one slash at the end of the path: frameworks redirect
    to the form that they route (Django's APPEND_SLASH, Starlette's redirect_slashes, Tornado's
    removeslash), whichever of them the description wrote.
    """
    asked, target = urlsplit(url), urlsplit(moved)
    same = parse_origin(url) == parse_origin(moved) and asked.query == target.query
    return same and target.path in (f"{asked.path}/", asked.path.removesuffix("/"))
