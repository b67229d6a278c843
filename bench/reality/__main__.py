"""Real servers, forged from their own address and driven as users do, beside FastMCP.

./scripts/reality [--only NAME] [--json FILE] [--engine docker|wasm|auto]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from bench.reality.servers import SERVERS
from bench.reality.trial import Trial, try_server
from tests.functional.home import new_home

COMMAND_SECONDS = 900.0
"""What a command may take on a busy machine: only against hanging."""


def main() -> None:
    options = _parse_options()
    chosen = [s for s in SERVERS if not options.only or s.name in options.only]
    trials = []
    with tempfile.TemporaryDirectory(prefix="reality-") as place:
        directory = Path(place)
        with new_home(directory, options.engine) as made:
            home = replace(made, seconds=COMMAND_SECONDS)
            for server in chosen:
                trial = try_server(home, server, directory / server.name, not options.alone)
                trials.append(trial)
                print(_render_trial(trial), flush=True)
    print(_render_table(trials))
    if options.json:
        options.json.write_text(json.dumps([_describe(trial) for trial in trials], indent=1))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reality", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this server; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every verdict there")
    parser.add_argument("--engine", default="auto", choices=("docker", "wasm", "auto"))
    parser.add_argument("--alone", action="store_true", help="without FastMCP")
    return parser.parse_args()


def _render_trial(trial: Trial) -> str:
    """One server: its commands, and each scenario that is wrong."""
    lines = [f"\n## {trial.server.name}: {trial.server.kind}"]
    if trial.unavailable:
        return "\n".join([*lines, f"not here: {trial.unavailable}"])
    lines += [f"  toolwright {command}" for command in trial.commands]
    lines.append(f"  forged in {trial.seconds:.1f} s")
    for who, verdicts in (("ours", trial.ours), ("FastMCP", trial.peer)):
        wrong = {verdict.wrong for verdict in verdicts}
        if len(wrong) == 1 and len(verdicts) > 1 and "" not in wrong:
            lines.append(f"  {who}: all: {' '.join(wrong.pop().split())}")
            continue
        lines += [
            f"  {who}: {v.scenario}: {' '.join(v.wrong.split())}" for v in verdicts if v.wrong
        ]
    return "\n".join(lines)


def _render_table(trials: list[Trial]) -> str:
    """A row for each server, as docs/benchmarks.md shows them."""
    columns = "server", "kind", "commands", "forged, s", "Toolwright", "FastMCP"
    rows = ["", _render_row(*columns), "|---" * len(columns) + "|"]
    total, right, peers = 0, 0, 0
    for trial in trials:
        name, kind = trial.server.name, trial.server.kind
        if trial.unavailable:
            rows.append(_render_row(name, kind, "not here", "", "", ""))
            continue
        count, commands = len(trial.server.scenarios), str(len(trial.commands))
        good = sum(not verdict.wrong for verdict in trial.ours)
        theirs = sum(not verdict.wrong for verdict in trial.peer)
        total, right, peers = total + count, right + good, peers + theirs
        beside = str(theirs) if trial.peer else "-"
        made = f"{trial.seconds:.1f}"
        rows.append(_render_row(name, kind, commands, made, f"{good} of {count}", beside))
    rows.append(_render_row("**all**", "", "", "", f"**{right} of {total}**", str(peers)))
    return "\n".join(rows)


def _render_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _describe(trial: Trial) -> dict[str, object]:
    return {
        "server": trial.server.name,
        "kind": trial.server.kind,
        "commands": trial.commands,
        "seconds": trial.seconds,
        "unavailable": trial.unavailable,
        "ours": [asdict(verdict) for verdict in trial.ours],
        "fastmcp": [asdict(verdict) for verdict in trial.peer],
    }


if __name__ == "__main__":
    main()
