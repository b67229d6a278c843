"""Explanation of a call that its API denied for want of a credential: what was missing, what was
not sent, what was refused, and the command that mends each.

Decided by codes and typed fields alone. What the API says in prose is quoted, and decides nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from sandbox.bundle.credential import UNUSABLE, Credential
from sandbox.bundle.model import Bundle
from sandbox.credentials.challenge import WantedCredential, find_wanted
from sandbox.credentials.oauth_secret import TOKEN_KINDS
from sandbox.credentials.source import CredentialSource
from sandbox.credentials.uses import render_origin
from sandbox.session.interface import Outcome
from sandbox.wire.exchange import Exchange, WireResponse
from sandbox.wire.policy import Origin, build_tool_policy, parse_origin

Verdict = Literal["missing", "not_sent", "refused"]
META = "toolwright/error"
DENIED = (401, 403)
_ANY = (
    "header:X-API-Key",
    "header:Authorization:token",
    "bearer",
    "basic",
)
"""The places that are tried first where nobody says where a credential goes."""
_NAMES = {"bearer": "token", "basic": "login", "digest": "login"}
_LETTERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Denial:
    """A call that was denied. `status` is the API's, None where nothing was sent; `credentials` are
    the names that the verdict is about, `wants` what the API says it wants; `commands` are what a
    person types, any one of them, likeliest first. `prefix` is the word that the API wants before a
    key in `Authorization` and that was not sent, such as Token or Bearer.
    """

    verdict: Verdict
    status: int | None
    origin: str
    credentials: tuple[str, ...]
    commands: tuple[str, ...]
    wants: tuple[WantedCredential, ...] = ()
    declared: bool = True
    prefix: str = ""

    def to_json(self) -> dict[str, Any]:
        """What clients get: every text, in lists."""
        told = asdict(self)
        return {**told, "wants": [asdict(each) for each in self.wants], "words": self.render()}

    def render(self) -> str:
        """The verdict in words, and what to type."""
        commands = " or ".join(f"`{command}`" for command in self.commands)
        told = f"{_render_verdict(self)}{_render_wants(self)}{_render_prefix(self)}"
        return f"{told} A person types {commands}."


def explain_denial(
    bundle: Bundle, tool: str, outcome: Outcome, source: CredentialSource
) -> Denial | None:
    """Why the API denied a call, or why nothing was sent to it for want of a credential; None where
    that is not what became of it.
    """
    exchange = outcome.exchanges[-1] if outcome.exchanges else None
    if outcome.failure is None or exchange is None or bundle.launch is not None:
        return None
    status = exchange.response.status if exchange.response else None
    if status not in DENIED and exchange.refusal != "credential":
        return None
    origin = parse_origin(exchange.request.url)
    if origin is None:
        return None
    rule = build_tool_policy(bundle, tool).find_rule(exchange.request)
    security = rule.security if rule else bundle.get_tool(tool).security
    opened = source.open_exchange(origin)
    if exchange.response is None:
        return _explain_unsent(bundle, security, opened, origin)
    return _explain_answer(bundle, security, opened, origin, exchange)


def add_denial(outcome: Outcome, denial: Denial) -> Outcome:
    """The outcome with what to do about it, for people and for programs."""
    assert outcome.failure is not None
    words, result = denial.render(), dict(outcome.result)
    meta = dict(result.get("_meta") or {})
    meta[META] = {**(meta.get(META) or {}), "credential": denial.to_json()}
    content = [*result.get("content", ()), {"type": "text", "text": words}]
    failure = replace(outcome.failure, message=f"{outcome.failure.message}\n\n{words}")
    return replace(outcome, result={**result, "content": content, "_meta": meta}, failure=failure)


def _explain_unsent(
    bundle: Bundle,
    security: tuple[tuple[str, ...], ...],
    source: CredentialSource,
    origin: Origin,
) -> Denial | None:
    """A request that the broker did not send."""
    chosen = source.choose_credentials(security)
    if chosen is None:
        names = _list_unset(bundle, security, source)
        if not names:
            return None
        commands = tuple(_list_setting(bundle, names))
        return Denial("missing", None, render_origin(origin), names, commands)
    blocked = tuple(
        name
        for name in source.find_blocked(chosen)
        if name in source.declared and not source.lent(name)
    )
    commands = tuple(f"toolwright secret bind {_quote(bundle, name)}" for name in blocked)
    if not blocked:
        return None
    return Denial("not_sent", None, render_origin(origin), blocked, commands)


def _explain_answer(
    bundle: Bundle,
    security: tuple[tuple[str, ...], ...],
    source: CredentialSource,
    origin: Origin,
    exchange: Exchange,
) -> Denial:
    """A request that was sent and denied."""
    assert exchange.response is not None
    status, wants = exchange.response.status, find_wanted(exchange.response)
    sent = source.choose_credentials(security) or ()
    where = render_origin(origin)
    if sent:
        other = [each for each in wants if not each.quote and not _fits(bundle, sent, each)]
        again = tuple(_list_replacing(bundle, sent, source))
        added = tuple(_list_declaring(bundle, other)) if other and other == [*wants] else ()
        is_bare = _has_bare_key(bundle, source, sent)
        prefix = _find_prefix(exchange.response, wants) if is_bare else ""
        return Denial("refused", status, where, sent, (*again, *added), wants, prefix=prefix)
    unset = _list_unset(bundle, security, source)
    if unset:
        # That an answer mentions the header of what is to be set says nothing more.
        told = tuple(each for each in wants if not (each.quote and _fits(bundle, unset, each)))
        return Denial("missing", status, where, unset, tuple(_list_setting(bundle, unset)), told)
    ready = source.find_ready(source.declared)
    if ready:
        # Set, and let go there, but its operation does not ask for it.
        places = [(name, place) for name in ready if (place := _find_place(bundle, name))]
        commands = tuple(
            f"toolwright secret bind {_quote(bundle, name)} --auth {place}"
            for name, place in places
        )
        commands = commands or tuple(_list_declaring(bundle, wants))
        return Denial("not_sent", status, where, ready, commands, wants)
    return Denial(
        "missing", status, where, (), tuple(_list_declaring(bundle, wants)), wants, declared=False
    )


def _list_unset(
    bundle: Bundle, security: tuple[tuple[str, ...], ...], source: CredentialSource
) -> tuple[str, ...]:
    """The credentials that an operation takes and that are not set."""
    kinds = {credential.name: credential.kind for credential in bundle.credentials}
    asked = dict.fromkeys(name for names in security for name in names)
    set_already = {*source.find_ready(asked), *source.find_blocked(asked)}
    return tuple(
        name
        for name in asked
        if name not in set_already and kinds.get(name, "other") not in UNUSABLE
    )


def _list_setting(bundle: Bundle, names: tuple[str, ...]) -> Iterator[str]:
    kinds = {credential.name: credential.kind for credential in bundle.credentials}
    if any(kinds.get(name) in TOKEN_KINDS for name in names):
        yield f"toolwright login {bundle.name}"
    for name in names:
        yield f"toolwright secret set {_quote(bundle, name)}"


def _list_replacing(
    bundle: Bundle, names: tuple[str, ...], source: CredentialSource
) -> Iterator[str]:
    """How another secret takes the place of one that was refused."""
    kinds = {credential.name: credential.kind for credential in bundle.credentials}
    if any(kinds.get(name) in TOKEN_KINDS for name in names):
        yield f"toolwright login {bundle.name}"
    for name in names:
        lent = next((lent for lent in source.lent(name) if lent.origin == source.origin), None)
        is_shared = lent is not None and lent.read() == source.secret(name)
        shared = shlex.quote(lent.name) if lent else ""
        yield f"toolwright secret set {shared if is_shared else _quote(bundle, name)}"


def _list_declaring(bundle: Bundle, wants: Sequence[WantedCredential]) -> Iterator[str]:
    """How a credential is added that the description does not know."""
    places = [each.place for each in wants] or _ANY
    taken = {credential.name for credential in bundle.credentials}
    for place in places[:4]:
        name = _name_secret(place, taken)
        yield f"toolwright secret set {_quote(bundle, name)} --auth {place}"


def _name_secret(place: str, taken: set[str]) -> str:
    """A name for a secret that goes to a place, which no credential has."""
    parts = place.split(":")
    told = _NAMES.get(place) or (parts[2] if len(parts) > 2 else parts[-1])
    name = _LETTERS.sub("_", told.lower().removeprefix("x-")).strip("_") or "token"
    return name if name not in taken else f"{name}_2"


def _find_place(bundle: Bundle, name: str) -> str:
    """The place of a declared credential as behind `--auth`; "" for one that has more to it."""
    credential = _get_credential(bundle, name)
    if credential is None or credential.kind not in ("apiKey", "bearer", "basic", "digest"):
        return ""
    if credential.kind != "apiKey":
        return credential.kind
    return shlex.quote(f"{credential.location}:{credential.parameter}")


def _fits(bundle: Bundle, names: tuple[str, ...], wanted: WantedCredential) -> bool:
    """Whether one of these credentials is of the kind that is wanted."""
    for name in names:
        credential = _get_credential(bundle, name)
        if credential is None:
            continue
        kind = "bearer" if credential.kind in TOKEN_KINDS else credential.kind
        if kind == wanted.place or kind in ("template", "aws-sigv4"):
            return True
        if kind == "apiKey":
            header = wanted.place.removeprefix("header:").partition(":")[0]
            header = "Authorization" if wanted.place in _NAMES else header
            if credential.parameter.lower() == header.lower():
                return True
    return False


def _has_bare_key(bundle: Bundle, source: CredentialSource, sent: tuple[str, ...]) -> bool:
    """Whether a key was sent as `Authorization` by itself, which RFC 9110 section 11.4 wants a
    scheme before. Documents declare such headers as API keys, where the secret is the whole value.
    """
    declared = filter(None, (_get_credential(bundle, name) for name in sent))
    return any(
        (each.kind, each.location, each.parameter.lower()) == ("apiKey", "header", "authorization")
        and len((source.secret(each.name) or "").split()) == 1
        for each in declared
    )


def _find_prefix(answer: WireResponse, wants: Sequence[WantedCredential]) -> str:
    """The scheme that the header of a refusal names first, as the API spells it; "" for none."""
    scheme = next((each.scheme for each in wants if each.scheme), "")
    words = (
        word
        for name, value in answer.headers
        if name.lower() == "www-authenticate"
        for word in value.replace(",", " ").split()
    )
    return next((word for word in words if word.lower() == scheme), scheme)


def _get_credential(bundle: Bundle, name: str) -> Credential | None:
    return next((each for each in bundle.credentials if each.name == name), None)


def _quote(bundle: Bundle, name: str) -> str:
    """The secret's name as it is typed: it is the description's word, and may be anything."""
    return shlex.quote(f"{bundle.name}.{name}")


def _render_verdict(denial: Denial) -> str:
    names = ", ".join(denial.credentials)
    answered = f"the API answered {denial.status}" if denial.status else "nothing was sent"
    match denial.verdict:
        case "refused" if denial.status == 403:
            return f"The credential {names} was sent, and does not allow this ({answered})."
        case "refused":
            return f"The credential {names} was sent and refused ({answered})."
        case "not_sent" if denial.status is None:
            where = denial.origin
            return f"The credential {names} is set, and nobody let it go to {where}: {answered}."
        case "not_sent":
            return (
                f"The credential {names} is set and was not sent: the description has it for other "
                f"operations ({answered})."
            )
        case _ if not denial.declared:
            return (
                f"No credential was sent ({answered}): the description declares none for this "
                "operation."
            )
        case _:
            return f"No credential was sent ({answered}): {names} is not set."


def _render_prefix(denial: Denial) -> str:
    if not denial.prefix:
        return ""
    return (
        f" Its value went out without the word {denial.prefix} before it: "
        f"`{denial.prefix} VALUE` is the value to set."
    )


def _render_wants(denial: Denial) -> str:
    """What the API says, between quotation marks where the words are its own."""
    told = []
    for each in denial.wants[:3]:
        if each.quote:
            told.append(
                f' Its answer says "{each.quote}", which may mean that it wants {each.place}.'
            )
            continue
        realm = f' for "{each.realm}"' if each.realm else ""
        error = f", error {each.error}" if each.error else ""
        scope = f', scope "{each.scope}"' if each.scope else ""
        told.append(f" It asks for {each.scheme}{realm}{error}{scope}.")
    return "".join(told)
