"""Tables of what became of the mutants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.mutants.trial import Fate, Trial

FATES: tuple[Fate, ...] = ("equivalent", "indistinct", "static", "mock", "survived")


def rate(trials: Sequence[Trial]) -> float:
    """The share (0..1) of mutants that differ from their original which a stage rejected."""
    different = [t for t in trials if t.fate in ("static", "mock", "survived")]
    return sum(t.fate != "survived" for t in different) / len(different) if different else 1.0


def table(trials: Sequence[Trial], head: str, key: Callable[[Trial], str]) -> str:
    """A row for every key in Markdown, with the number of mutants of each fate."""
    lines = [
        f"| {head} | mutants | " + " | ".join(FATES) + " |",
        "|---" * (len(FATES) + 2) + "|",
    ]
    for name in (*dict.fromkeys(map(key, trials)), "all"):
        own = [trial for trial in trials if name in (key(trial), "all")]
        counts = [sum(trial.fate == fate for trial in own) for fate in FATES]
        cells = [str(count or "") for count in counts]
        lines.append(f"| {name} | {len(own)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
