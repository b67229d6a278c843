"""Everything fatal that the orchestrator reports. Each message says what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Every command loads this file; what these load takes longer than the rest of `--help`.
    from forge.prosedocs.page import Page
    from forge.sources import Source


class OrchestratorError(Exception):
    """The base of all errors of this folder."""


class HomeUnusable(OrchestratorError):
    def __init__(self, home: str, reason: str) -> None:
        super().__init__(
            f"the directory {home} cannot be used ({reason}). Free space or mend its permissions, "
            "or set TOOLWRIGHT_HOME to another directory."
        )


class DiskUnusable(OrchestratorError):
    """A file of ours could not be written or read."""

    def __init__(self, error: OSError) -> None:
        where = f" ({error.filename})" if error.filename else ""
        super().__init__(
            f"{error.strerror or error}{where}. Free space on that disk or mend its permissions, "
            "then try again; nothing was changed."
        )


class UnknownEngine(OrchestratorError):
    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no engine {name!r}. Choose one of {', '.join(known)}.")


class UnknownTool(OrchestratorError):
    def __init__(self, tool: str) -> None:
        super().__init__(
            f"there is no tool {tool!r}. Names are `server.tool`; `find` lists what there is."
        )


class Ambiguous(OrchestratorError):
    """The beginning of an id is that of several."""

    def __init__(self, prefix: str, ids: list[str]) -> None:
        super().__init__(f"{prefix!r} is the beginning of {', '.join(ids)}. Give more of it.")


class WrongPin(OrchestratorError):
    """A person's step was tried without the right PIN."""


class ForgeFailed(OrchestratorError):
    """A forge job ended without a server. The message says at which step and why."""


class Declined(ForgeFailed):
    """Whoever was to write a server says that it is not to be written."""

    def __init__(self, who: str, reason: str) -> None:
        super().__init__(
            f"{who} declined: {reason}\nNothing was registered. `forge` again, with the task put "
            "otherwise or by another author, starts anew."
        )


class AddFailed(OrchestratorError):
    """A third-party server was not registered. The message says why."""


class ProseFound(ForgeFailed):
    """There is documentation for people and no machine-readable description. `pages` are its first
    ones at `place`.
    """

    def __init__(self, place: Source, pages: tuple[Page, ...]) -> None:
        self.place, self.pages = place, pages
        super().__init__(
            f"no machine-readable API description was found at {place.location}, and the "
            "documentation for people there was not read. `forge` with it as the source reads it."
        )


class SourceMissing(ForgeFailed):
    """There is no API description to compile, because no API was named."""

    def __init__(self) -> None:
        super().__init__(
            "the task names no API. Give a source: the path or URL of an OpenAPI document, "
            "or the host that serves the API. `forge` without one asks you for the code."
        )


class DraftWanted(OrchestratorError):
    """A forge job cannot go on before somebody hands in code. `told` is what that takes, as JSON
    values; `needs` is what a person could allow instead (`registry.records.Job.needs`).
    """

    def __init__(
        self, told: Mapping[str, Any], message: str, needs: Mapping[str, str] | None = None
    ) -> None:
        self.told, self.needs = told, dict(needs or {})
        super().__init__(message)


class Unasked(OrchestratorError):
    """No model wrote the next draft: none may be asked, or none answered. `needs` is what a person
    could allow so that one is (`registry.records.Job.needs`).
    """

    def __init__(self, reason: str, needs: Mapping[str, str] | None = None) -> None:
        self.needs = dict(needs or {})
        super().__init__(reason)


class CallsAmiss(ForgeFailed):
    """A server's tools cannot call what they declare to. Another server's files may mend it too."""


class ForgeWaits(OrchestratorError):
    """A forge job cannot go on before a person did something.

    `need` is `host`, `credential` or `package`, `what` the origin, URL or names it is about, `how`
    the command.
    """

    def __init__(self, need: str, what: str, how: str) -> None:
        self.need, self.what, self.how = need, what, how
        what_for = f", to requests to {what}" if need == "host" else ""
        super().__init__(f"a person has to say yes first{what_for}: {how}")


class ControlUnreachable(OrchestratorError):
    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the control plane does not answer ({reason}). Start it with `toolwright control`."
        )


class ConfigNotUnderstood(OrchestratorError):
    """A client's configuration is not what its format says. `reason` says where."""

    def __init__(self, reason: str, path: str = "its configuration") -> None:
        self.reason = reason
        super().__init__(
            f"{path} is not understood ({reason}). Mend it, or use --print and add the server by "
            "hand; nothing was changed."
        )


class SettingInvalid(OrchestratorError):
    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"{name}={value[:40]!r} is no number from 0 to 999999999. Mend or unset it."
        )


class NoRemedy(OrchestratorError):
    """No change that needs no author mends a server. The message says why."""


class RepairFailed(OrchestratorError):
    """A repair changed nothing: the server is as it was."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(f"{server} was not repaired: {reason}. `toolwright show {server}`")


class GainsUndecided(OrchestratorError):
    """A new version may do more than the one before, which no repair decides."""

    def __init__(self, server: str, source: str, gains: tuple[str, ...]) -> None:
        self.how = f"toolwright forge --source {source} --name {server}"
        super().__init__(
            f"{server} would be able to do more than now: {'; '.join(gains[:8])[:1000]}. If that "
            f"is right, forge it yourself: `{self.how}`."
        )
