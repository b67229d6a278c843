"""The needs of a waiting job: a value for each thing that somebody has to give it.

Policy reads the fields. Sentences are made of them by `orchestrator.approvals.needs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class BudgetLine:
    """A line of the budget for models, and what the next question could bring the sum to."""

    of: Literal["job", "day", "month"]
    unit: Literal["tokens", "money", "forges"]
    wanted: float
    most: float


@dataclass(frozen=True)
class HostNeed:
    """A `host:port` that no person has named; `instead` says what else may be meant, and how."""

    kind: ClassVar[str] = "host"
    host: str
    instead: str = ""


@dataclass(frozen=True)
class FileNeed:
    """A file of this machine that no person has named, by its absolute path."""

    kind: ClassVar[str] = "file"
    path: str


@dataclass(frozen=True)
class CredentialNeed:
    """A credential that an API's documentation asks for; `question` says where it goes. `had`
    stands for those that were there when it asked, "" for none.
    """

    kind: ClassVar[str] = "credential"
    url: str
    question: str
    had: str = ""


@dataclass(frozen=True)
class PackageNeed:
    """Packages that no person allowed: their normal names, and each as it was asked for."""

    kind: ClassVar[str] = "package"
    names: tuple[str, ...]
    specs: tuple[str, ...]


@dataclass(frozen=True)
class BudgetNeed:
    """Another budget for models; `had` counts those that the job was given before."""

    kind: ClassVar[str] = "budget"
    line: BudgetLine
    had: int


@dataclass(frozen=True)
class PermissionNeed:
    """Permissions, such as `fs:/data:ro`, that nobody granted a server to be."""

    kind: ClassVar[str] = "permission"
    server: str
    permissions: tuple[str, ...]


@dataclass(frozen=True)
class TestsNeed:
    """Other tests than a job had before: the names of those that changed, the sha256 of the whole
    suite, and lines of code that went (`-`) and came (`+`).
    """

    __test__: ClassVar[bool] = False
    kind: ClassVar[str] = "tests"
    names: tuple[str, ...]
    suite: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EngineNeed:
    """An engine, or what it starts from; `reason` is what was said of it."""

    kind: ClassVar[str] = "engine"
    missing: Literal["docker", "base_image", "component"]
    reason: str


@dataclass(frozen=True)
class UnfreezeNeed:
    """The end of a freeze."""

    kind: ClassVar[str] = "unfreeze"


@dataclass(frozen=True)
class SuccessionNeed:
    """A next version of a registered server that is made from something else, or may do more.
    `version` is the registered one, `changes` say what would be another, and `digest` covers both
    versions whole and everything that is said.
    """

    kind: ClassVar[str] = "succession"
    server: str
    version: int
    changes: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class SourceNeed:
    """A registered source that a task may mean without giving an address. `words` of the task name
    it; without any, what is known of the source fits. `task` is the task's sha256.
    """

    kind: ClassVar[str] = "source"
    url: str
    words: tuple[str, ...]
    task: str


@dataclass(frozen=True)
class AnswerNeed:
    """An answer to a question of a task run. `question` names it and what it is about, so that an
    answer to one is none to another; `text` is a sentence, `schema` what an answer has to be.
    """

    kind: ClassVar[str] = "answer"
    question: str
    text: str
    schema: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class DecisionNeed:
    """A decision on a write that waits for a person: the id of its approval."""

    kind: ClassVar[str] = "decision"
    approval: str


ServiceDoubt = Literal["other_host", "plain_http", "local", "no_server", "page"]
"""Why a person has to choose a service by its number: its server's name is not its provider's, is
reached without TLS, is none of the public network, is not known, or it is a page of a search.
"""


@dataclass(frozen=True)
class OfferedService:
    """A public API that a task may mean, as strangers wrote of it. `location` is the source that it
    becomes, `provider` whose it is said to be, `host` the `host:port` of its server, `origin` where
    its description was published, `updated` the newest date that it gives of itself. `hosts` are
    those that are allowed with it, at public addresses alone.
    """

    location: str
    title: str
    provider: str
    host: str
    origin: str = ""
    updated: str = ""
    operations: int = 0
    scheme: str = ""
    hosts: tuple[str, ...] = ()
    doubts: tuple[ServiceDoubt, ...] = ()


@dataclass(frozen=True)
class ServiceNeed:
    """A choice among the public APIs that a task may mean, best first. `task` is the task's sha256.
    Without a choice the first is meant, where it is in no doubt.
    """

    kind: ClassVar[str] = "service"
    task: str
    services: tuple[OfferedService, ...]


SingleNeed = (
    HostNeed
    | FileNeed
    | PackageNeed
    | BudgetNeed
    | PermissionNeed
    | TestsNeed
    | SuccessionNeed
    | SourceNeed
    | ServiceNeed
)


@dataclass(frozen=True)
class OrderNeed:
    """All that a person has to allow for one order, as one question: at least two needs."""

    kind: ClassVar[str] = "order"
    parts: tuple[SingleNeed, ...]


AllowedNeed = SingleNeed | OrderNeed
"""The needs that a person allows for the job itself."""
Need = AllowedNeed | CredentialNeed | EngineNeed | UnfreezeNeed | AnswerNeed | DecisionNeed
_KINDS: Mapping[str, Callable[..., Need]] = {
    made.kind: made
    for made in (
        HostNeed,
        FileNeed,
        CredentialNeed,
        PackageNeed,
        BudgetNeed,
        PermissionNeed,
        TestsNeed,
        SuccessionNeed,
        SourceNeed,
        ServiceNeed,
        OrderNeed,
        EngineNeed,
        UnfreezeNeed,
        AnswerNeed,
        DecisionNeed,
    )
}


def need_json(need: Need | None) -> dict[str, Any]:
    """A need as it is stored; {} for none."""
    if isinstance(need, OrderNeed):
        return {"kind": need.kind, "parts": [need_json(part) for part in need.parts]}
    return {"kind": need.kind, **asdict(need)} if need else {}


def list_parts(need: AllowedNeed) -> tuple[SingleNeed, ...]:
    """The single needs that a need is made of."""
    return need.parts if isinstance(need, OrderNeed) else (need,)


def join_needs(needs: Iterable[SingleNeed]) -> AllowedNeed | None:
    """The needs as one; None for none."""
    parts = tuple(dict.fromkeys(needs))
    return parts[0] if len(parts) == 1 else OrderNeed(parts) if parts else None


def need_from_json(data: Mapping[str, Any]) -> Need | None:
    """The inverse of `need_json`. Raises KeyError or TypeError on anything else."""
    if not data:
        return None
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name != "kind"
    }
    if data["kind"] == OrderNeed.kind:
        fields["parts"] = tuple(map(need_from_json, fields["parts"]))
    if data["kind"] == BudgetNeed.kind:
        fields["line"] = BudgetLine(**fields["line"])
    if data["kind"] == ServiceNeed.kind:
        fields["services"] = tuple(map(_read_service, fields["services"]))
    return _KINDS[data["kind"]](**fields)


def _read_service(data: Mapping[str, Any]) -> OfferedService:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    return OfferedService(**fields)
