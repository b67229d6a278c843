"""Makes the table of usual words of `registry.search.background`.

    python -m bench.background [--data DIRECTORY] [--out FILE]

Counts in the public pools of DIRECTORY (see `bench.search`) which part of the tools and which part
of the tasks have a stem. Each pool counts as much as another; both parts are added up.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import registry.search
from bench.search import DATA, pool_tools
from registry.search.background import LEAST, TABLE
from registry.search.words import STOP_WORDS, split_words, stem_word

POOLS = ("bfcl", "bfcl_live", "metatool", "seal", "stb", "w2c")
OUT = Path(registry.search.__path__[0], TABLE)


def measure_background(data: Path, pools: Sequence[str]) -> Mapping[str, float]:
    """The shares of the stems that are usual in these pools."""
    tools = [measure_shares(list_tools(data, pool)) for pool in pools]
    tasks = [shares for pool in pools if (shares := measure_shares(list_tasks(data, pool)))]
    found: dict[str, float] = defaultdict(float)
    for group in (tools, tasks):
        for shares in group:
            for stem, share in shares.items():
                found[stem] += share / len(group)
    return {stem: share for stem, share in found.items() if share >= LEAST / 1000}


def measure_shares(texts: Iterable[str]) -> Mapping[str, float]:
    """The part of the texts that have each stem."""
    often: Counter[str] = Counter()
    said = [{stem_word(w) for w in split_words(text) if w not in STOP_WORDS} for text in texts]
    for stems in said:
        often.update(stems)
    return {stem: count / len(said) for stem, count in often.items()}


def list_tools(data: Path, pool: str) -> Iterable[str]:
    for row in pool_tools(data, pool).values():
        taken = " ".join(f"{name} {told}" for name, told in row["params"])
        yield f"{row['name']} {row['desc']} {taken}"


def list_tasks(data: Path, pool: str) -> Iterable[str]:
    asked = data / "data" / pool / "queries.jsonl"
    for line in asked.read_text().splitlines() if asked.exists() else ():
        yield json.loads(line)["q"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    shares = measure_background(args.data, POOLS)
    told = {stem: round(1000 * share) for stem, share in shares.items() if stem.isascii()}
    lines = [f"{stem} {share}" for stem, share in sorted(told.items())]
    args.out.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} stems")


if __name__ == "__main__":
    main()
