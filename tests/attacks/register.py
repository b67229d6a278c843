"""What is tried against the leash: `register.csv`, one attack a row.

One entry per claim and channel; variants of a payload are parameters of its test and count once.
`test` shows that the attack fails, `twin` that its harmless like works: pytest node ids below
`tests/`, where `[name]` is part of a parameter's. The oracle looks from outside: at what a listener
heard, the engine shows, lies on disk, another process sees.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

REGISTER = Path(__file__).with_name("register.csv")
LINES = (
    *(
        "containment",
        "broker",
        "calls",
        "network",
        "session",
        "stop",
        "static gate",
        "permissions",
        "third-party",
    ),
    *("secrets", "approvals", "channels", "freeze", "audit", "replay", "write safety"),
    "control page",
)
"""The claims of the leash, in the order of docs/enforcement.md."""


@dataclass(frozen=True)
class Attack:
    """`channel` is how it comes in."""

    line: str
    name: str
    channel: str
    test: str
    twin: str
    oracle: str

    @property
    def id(self) -> str:
        return f"{self.line}: {self.name} ({self.channel})"


def read_register() -> tuple[Attack, ...]:
    """Every attack, in the file's order. Raises TypeError where a row lacks a field."""
    with REGISTER.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return tuple(Attack(*row) for row in rows)
