"""Exceptions of the orchestrator. Each message says what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from registry.errors import RegistryError
from registry.needs import (
    AllowedNeed,
    AnswerNeed,
    BudgetLine,
    CredentialNeed,
    DecisionNeed,
    Need,
    SourceNeed,
    SuccessionNeed,
)
from sandbox.errors import SandboxError

if TYPE_CHECKING:
    # Every command loads this file; what these load takes longer than the rest of `--help`.
    from forge.readers.document import DocumentProblem
    from forge.readers.page import Page
    from forge.sources import ApiSource
    from registry.jobs.pending import PendingForge


class OrchestratorError(Exception):
    """The base of all errors of this folder."""


TOLD_ERRORS = (OrchestratorError, RegistryError, SandboxError)
"""What a client is told in words, as the result of its call."""


class HomeUnusable(OrchestratorError):
    def __init__(self, home: str, reason: str) -> None:
        super().__init__(
            f"the directory {home} cannot be used ({reason}). Free space or mend its permissions, "
            "or set TOOLWRIGHT_HOME to another directory."
        )


class HomeForeign(OrchestratorError):
    """A directory that was to be removed is no home of ours."""

    def __init__(self, home: str) -> None:
        super().__init__(
            f"{home} is no home of Toolwright, so it is not removed. TOOLWRIGHT_HOME=DIRECTORY "
            "names another."
        )


class HomeInUse(OrchestratorError):
    """Processes still use a home that was to be removed."""

    def __init__(self, processes: list[str]) -> None:
        super().__init__(
            f"this home is in use by {', '.join(processes[:5])}. End the clients that started "
            "them, then try again; nothing was removed but the control plane was stopped."
        )


class UnknownEngine(OrchestratorError):
    def __init__(self, name: str, known: tuple[str, ...], where: str = "") -> None:
        said = f" ({where} names it)" if where else ""
        super().__init__(
            f"there is no engine {name[:40]!r}{said}. Choose one of {', '.join(known)}."
        )


class UnknownTool(OrchestratorError):
    def __init__(self, tool: str) -> None:
        super().__init__(
            f"there is no tool {tool!r}. Names are `server.tool`; `find` lists what there is."
        )


class AmbiguousId(OrchestratorError):
    """A prefix of an id matches several ids."""

    def __init__(self, prefix: str, ids: list[str]) -> None:
        super().__init__(f"{prefix!r} is the beginning of {', '.join(ids)}. Give more of it.")


class ShortId(OrchestratorError):
    """A prefix of an id is so short that it may be a slip. `whole` is what to type instead."""

    def __init__(self, prefix: str, least: int, whole: str) -> None:
        super().__init__(
            f"{prefix!r} may be a slip: give at least {least} characters of an id. "
            f"Was this meant? `{whole}`"
        )


class NothingNamed(OrchestratorError):
    """Nothing stored has that name or id. `near` are names that may have been meant, `listing` is
    the command that shows all.
    """

    def __init__(self, kind: str, name: str, near: list[str], listing: str) -> None:
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"there is no {kind} {name!r}.{meant} `{listing}` shows all.")


class WrongPin(OrchestratorError):
    """A step that only a person may take was tried without the right PIN."""


class PinNotGiven(OrchestratorError):
    """The PIN is wanted, and there is no terminal to ask for it at."""

    def __init__(self) -> None:
        super().__init__(
            "the PIN is wanted, and there is no terminal to ask at. Nothing was changed. "
            "`--pin-file FILE` reads it from a file's first line, `--pin-file -` from standard "
            "input."
        )


class DecisionsInDoubt(OrchestratorError):
    """The key of people's decisions, or the audit of them, is not sound; nothing was sent."""

    def __init__(self, obstacle: str) -> None:
        super().__init__(f"{obstacle} Nothing was sent, and the approval still stands.")


class RestoreRefused(OrchestratorError):
    """A backup is not restored as things are. Nothing was replaced."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}. Nothing was replaced.")


class ForgeFailed(OrchestratorError):
    """A forge job ended without a server. The message says at which step and why."""


class SecretHandedIn(OrchestratorError):
    """A file that somebody handed in holds a secret in plain text."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}, {reason}.")


class ForgeDeclined(ForgeFailed):
    """The author of a server, a model or a client, declined to write it."""

    def __init__(self, who: str, reason: str) -> None:
        super().__init__(
            f"{who} declined: {reason}\nNothing was registered. To try again, run `forge` with the "
            "task in other words or with another author."
        )


class AddFailed(OrchestratorError):
    """A third-party server was not registered. The message says why."""


class ProseFound(ForgeFailed):
    """There is documentation for people, but no machine-readable description. `pages` are the first
    pages found at `place`, `problems` what is to be known of how they were found.
    """

    def __init__(
        self, place: ApiSource, pages: tuple[Page, ...], problems: tuple[DocumentProblem, ...] = ()
    ) -> None:
        self.place, self.pages, self.problems = place, pages, problems
        super().__init__(
            f"no machine-readable API description was found at {place.location}, and the "
            "documentation for people there was not read. To have it read, run `forge` with it as "
            "the source."
        )


class SourceMissing(ForgeFailed):
    """There is no API description to compile, because no API was named."""

    def __init__(self) -> None:
        super().__init__(
            "the task names no API. Give a source: the path or URL of an OpenAPI document, "
            "or the host that serves the API. `forge` without one asks you for the code."
        )


class DraftWanted(OrchestratorError):
    """A forge job cannot go on before somebody hands in code. `pending` is what that takes, and
    `needs` what a person could allow instead.
    """

    def __init__(self, pending: PendingForge, message: str, needs: Need | None = None) -> None:
        self.pending, self.needs = pending, needs
        super().__init__(message)


class EngineWanted(OrchestratorError):
    """A forge job cannot go on before there is an engine. `missing` is what lacks."""

    def __init__(self, missing: SandboxError) -> None:
        self.missing = missing
        super().__init__(str(missing))


class ModelNotAsked(OrchestratorError):
    """No model wrote the next draft: none may be asked, or none answered. `needs` is what a person
    could allow so that one is.
    """

    def __init__(self, reason: str, needs: Need | None = None) -> None:
        self.needs = needs
        super().__init__(reason)


class CallsInvalid(ForgeFailed):
    """A server's tools declare calls that cannot be made. An edit of either server may fix that."""


class ForgeWaits(OrchestratorError):
    """A forge job cannot go on before a person gave it what it needs."""

    def __init__(self, need: AllowedNeed | CredentialNeed, message: str) -> None:
        self.need = need
        super().__init__(message)


class RunWaits(OrchestratorError):
    """A task run cannot go on before its question is answered, or a write is decided. `result` is
    what it has come to so far, as its job keeps it.
    """

    def __init__(
        self, need: AnswerNeed | DecisionNeed, message: str, result: Mapping[str, Any] | None = None
    ) -> None:
        self.need, self.result = need, result
        super().__init__(message)


class SuccessionUndecided(OrchestratorError):
    """A next version of a registered server waits for a person: `need` says what it changes."""

    def __init__(self, need: SuccessionNeed) -> None:
        self.need = need
        super().__init__(
            f"{need.server} is registered, and its next version would do other things: "
            f"{'; '.join(need.changes[:8])[:1000]}. Give another name, or let a person allow it."
        )


class SourceUnconfirmed(OrchestratorError):
    """A task without an address may mean a registered source: `need` says which, and why."""

    def __init__(self, need: SourceNeed) -> None:
        self.need = need
        super().__init__(
            f"the task names no API; the registered source {need.url} may be meant. Run "
            "`forge` with it as the source, or with the source `none`."
        )


class BudgetSpent(OrchestratorError):
    """A model may not be asked before a person allows more: `line` would be crossed."""

    def __init__(self, line: BudgetLine, told: str) -> None:
        self.line = line
        super().__init__(f"the budget for models is spent: {told}. A person can allow more.")


class ControlUnreachable(OrchestratorError):
    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the control plane does not answer ({reason}). Start it with `toolwright control`."
        )


class ControlRunning(OrchestratorError):
    """A home has one control plane, and it has one."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(
            f"the control plane of this home runs at {url} (process {pid}); a home has one. "
            "`toolwright control --open` opens its page, `toolwright control --stop` stops it."
        )


class ListenRefused(OrchestratorError):
    """An address cannot be listened on. `reason` says why, or who has the port; `elsewhere` that
    the address is not one of this machine.
    """

    def __init__(self, host: str, port: int, reason: str, *, elsewhere: bool = False) -> None:
        advice = (
            "Choose another port with --port (0 takes a free one), or stop that process."
            if not elsewhere
            else "Leave --host away for 127.0.0.1, or give an address of this machine."
        )
        super().__init__(f"{host}:{port} cannot be listened on: {reason}. {advice}")


class ConfigNotUnderstood(OrchestratorError):
    """A client's configuration cannot be parsed. `reason` says what is wrong and where."""

    def __init__(self, reason: str, path: str = "its configuration") -> None:
        self.reason = reason
        super().__init__(
            f"{path} is not understood ({reason}). Mend it, or use --print and add the server by "
            "hand; nothing was changed."
        )


class LoginFailed(OrchestratorError):
    """A log-in at an API's authorization server did not work; nothing was kept of it."""


class SettingInvalid(OrchestratorError):
    def __init__(self, name: str, value: str, most: float = 999_999_999) -> None:
        super().__init__(
            f"{name}={value[:40]!r} is no number from 0 to {most:.0f}. Mend or unset it."
        )


class BandsUnordered(OrchestratorError):
    def __init__(self, forge: float, confirm: float, adapt: float, act: float) -> None:
        super().__init__(
            "TOOLWRIGHT_ROUTE_FORGE, _CONFIRM, _ADAPT and _ACT have to rise in this order, and are "
            f"{forge:g}, {confirm:g}, {adapt:g} and {act:g}. Mend or unset them."
        )


class ReferenceRefused(OrchestratorError):
    """References stand for no value, or for one that may not go there. `tool` is what was to be
    called with them, "" where a value was only to be shown.
    """

    def __init__(self, tool: str, problems: Iterable[str]) -> None:
        told = "; ".join(problems)[:2000]
        super().__init__(f"{tool} was not called, nothing was sent: {told}" if tool else told)


class PricesInvalid(OrchestratorError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not understood: {reason}. Mend it, or remove it to use the shipped prices."
        )


class NoRemedy(OrchestratorError):
    """No automatic change repairs a server; its code has to be written. The message says why."""


class RepairFailed(OrchestratorError):
    """A repair changed nothing: the server is as it was."""

    def __init__(self, server: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{server} was not repaired: {reason}. See `toolwright show {server}`.")


class GainsUndecided(OrchestratorError):
    """A new version may do more than the one before; only a person can decide that."""

    def __init__(self, server: str, source: str, gains: tuple[str, ...]) -> None:
        self.how = f"toolwright forge --source {source} --name {server}"
        super().__init__(
            f"{server} would be able to do more than now: {'; '.join(gains[:8])[:1000]}. If that "
            f"is right, forge it yourself: `{self.how}`."
        )


class LoginInAddress(OrchestratorError):
    """An address holds a user or password, with which it would be stored."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the address in `{name}` holds a user name or password, and it would be stored with "
            "it. Nothing was stored. Take it out of the address and keep it in the vault "
            "(`toolwright secret set NAME`). Then name it: `--auth basic=@NAME` where the API "
            "asks for it, `toolwright source add URL --header Authorization=@NAME` where its "
            "description does."
        )


class FormInvalid(OrchestratorError):
    """What was typed into fields of a form is no value of theirs: a reason by each field's name."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__("; ".join(f"{name[:80]}: {why}" for name, why in problems.items()))


class SecretInTask(OrchestratorError):
    """A task to do has a secret in its words, with which its run would be stored."""

    def __init__(self, kinds: Iterable[str]) -> None:
        super().__init__(
            f"the task holds a secret ({', '.join(kinds)}), and a task is stored with its run. "
            "Nothing was stored. Keep it in the vault (`toolwright secret set SERVER.NAME`), or "
            "give it as an argument of one call (`toolwright call`, `call_write`)."
        )
