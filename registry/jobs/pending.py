"""Value that the row of a forge job keeps until the job has ended, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from registry.models import DraftRow


@dataclass(frozen=True)
class DraftLine:
    """A draft in a list."""

    number: int
    verdict: str
    why: str
    author: str
    model: str


@dataclass(frozen=True)
class SimilarTool:
    """A registered tool, as `server.tool`, that may do a job's task already."""

    tool: str
    description: str


@dataclass(frozen=True)
class PendingForge:
    """What is decided once for a forge job (`name`, `parent`, `near`, None until it is), what was
    read for it (`derived`), and what somebody is told who has to hand in a draft, or a document.
    """

    waits_for: Literal["", "draft", "document"] = ""
    name: str = ""
    parent: str = ""
    near: tuple[SimilarTool, ...] | None = None
    brief: str = ""
    diagnosis: str = ""
    drafts: tuple[DraftLine, ...] = ()
    pages: tuple[str, ...] = ()
    derived: Mapping[str, Any] | None = None


def draft_line(row: DraftRow) -> DraftLine:
    why = str(row.content.get("why", ""))
    return DraftLine(row.number, row.verdict, why, row.author, row.model)


def pending_json(pending: PendingForge) -> dict[str, Any]:
    """The value as a job's result; what is empty is left out while the job waits for nobody."""
    kept = {name: value for name, value in asdict(pending).items() if value is not None}
    if pending.waits_for:
        return kept
    # That nothing is near is decided too, and not to be looked for again.
    return {name: value for name, value in kept.items() if value or name == "near"}


def read_pending(result: Any) -> PendingForge | None:
    """The inverse of `pending_json`; None where a job keeps nothing."""
    if not isinstance(result, Mapping):
        return None
    near = result.get("near")
    return PendingForge(
        waits_for=result.get("waits_for", ""),
        name=result.get("name", ""),
        parent=result.get("parent", ""),
        near=None if near is None else tuple(SimilarTool(**each) for each in near),
        brief=result.get("brief", ""),
        diagnosis=result.get("diagnosis", ""),
        drafts=tuple(DraftLine(**each) for each in result.get("drafts", ())),
        pages=tuple(result.get("pages", ())),
        derived=result.get("derived"),
    )
