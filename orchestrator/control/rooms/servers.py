"""Servers as cards, and of one server what it is, its proofs and its last calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forge.text import inflect
from orchestrator.called_tools import CalledTools
from orchestrator.control.rooms.calls import CallLine, list_calls
from orchestrator.control.rooms.place import build_address
from orchestrator.control.texts import ShownText, cut_text
from registry.models import ServerSummary
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.report import StageReport

HISTORY = 10
MAX_ROWS = 200
MAX_OPERATION = 60
MARKS = {"passed": "✓", "failed": "✗", "skipped": "-", "inconclusive": "?"}


@dataclass(frozen=True)
class ServerCard:
    """A server in the list. `state` is "" for the usual one."""

    name: str
    address: str
    level: str
    state: str
    title: ShownText
    facts: str
    refuses: ShownText


@dataclass(frozen=True)
class ServerAbout:
    """What a server is and what it was made of. `state` is "" for the usual one; `is_foreign`,
    whether somebody else wrote it: a person says then what it connects to.
    """

    name: str
    title: ShownText
    level: str
    state: str
    description: ShownText
    base_url: ShownText
    source: ShownText
    created_by: ShownText
    permissions: tuple[ShownText, ...]
    is_foreign: bool


@dataclass(frozen=True)
class ProofStage:
    name: ShownText
    verdict: str
    took: str
    note: ShownText


@dataclass(frozen=True)
class ProofCell:
    """What came of the cases of one operation in one stage; "" where it has none."""

    verdict: str = ""
    mark: str = ""
    passed: str = ""


@dataclass(frozen=True)
class ProofMatrix:
    """The stages of a proof, and operations by those stages that have cases."""

    stages: tuple[ProofStage, ...]
    columns: tuple[ShownText, ...]
    rows: tuple[tuple[ShownText, tuple[ProofCell, ...]], ...]


def view_servers(store: Store) -> tuple[ServerCard, ...]:
    return tuple(map(_show_card, store.servers.find_summaries()))


def _show_card(server: ServerSummary) -> ServerCard:
    standing = server.standing
    ratio = f", {standing.ratio:.0%} of the last {standing.window} right" if standing.window else ""
    counts = f"{_count(server.tools, 'tool')}, {_count(standing.total, 'call')}{ratio}"
    return ServerCard(
        server.name,
        build_address("servers", server.name),
        standing.level,
        name_state(server.state),
        cut_text(server.title),
        f"version {server.version}, {counts}",
        cut_text(", ".join(server.refusing)),
    )


def name_state(state: str) -> str:
    return "" if state == "active" else state


def _count(number: int, noun: str) -> str:
    return f"{number} {inflect(number, noun)}"


def view_about(store: Store, name: str) -> ServerAbout:
    """Raises RowNotFound."""
    entry = store.servers.get(name)
    return ServerAbout(
        entry.name,
        cut_text(entry.title),
        store.standings.get(name).level,
        name_state(entry.state),
        cut_text(entry.description),
        cut_text(entry.base_url),
        cut_text(entry.source),
        cut_text(entry.created_by),
        tuple(map(cut_text, entry.permissions)),
        entry.created_by == AUTHOR,
    )


def view_proofs(store: Store, name: str) -> ProofMatrix:
    """The proof of the current version. Raises RowNotFound."""
    entry = store.servers.get(name)
    return build_matrix(store.servers.get_reports(name, entry.version))


def view_history(store: Store, name: str, called: CalledTools) -> tuple[CallLine, ...]:
    """The server's last calls."""
    return list_calls(store.calls.find(name, HISTORY), called)


def build_matrix(reports: Iterable[StageReport]) -> ProofMatrix:
    """Operations by stages: a mark, and how many cases passed of how many."""
    told = tuple(reports)
    stages = tuple(
        ProofStage(
            cut_text(report.stage),
            report.verdict,
            f"{report.elapsed_ms:.0f} ms",
            cut_text(report.note),
        )
        for report in told
    )
    cases = [report for report in told if report.cases]
    operations = sorted({case.operation for report in cases for case in report.cases})[:MAX_ROWS]
    return ProofMatrix(
        stages,
        tuple(cut_text(report.stage) for report in cases),
        tuple(
            (
                cut_text(operation or "all", MAX_OPERATION),
                tuple(_build_cell(report, operation) for report in cases),
            )
            for operation in operations
        ),
    )


def _build_cell(report: StageReport, operation: str) -> ProofCell:
    verdicts = [case.verdict for case in report.cases if case.operation == operation]
    if not verdicts:
        return ProofCell()
    worst = next((each for each in ("failed", "inconclusive") if each in verdicts), "")
    verdict = worst or ("passed" if "passed" in verdicts else "skipped")
    skipped = verdicts.count("skipped") if verdict == "passed" else 0
    counted = f"{verdicts.count('passed')}/{len(verdicts)}"
    return ProofCell(
        verdict, MARKS[verdict], f"{counted}, {skipped} skipped" if skipped else counted
    )
