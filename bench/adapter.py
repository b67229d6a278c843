"""Fits the matrix by which a task's vector is turned (`registry.search.vectors.turn_vector`).

    python -m bench.adapter [--data DIRECTORY] [--cache DIRECTORY] [--leave POOL] [--out FILE]

On all tasks of the public pools (see `bench.search`; their licences are MIT and Apache-2.0): a
softmax over the pool's tools of the cosines with the turned task, temperature .05 (InfoNCE,
https://arxiv.org/abs/1807.03748), starting at the identity and pulled towards it. `--leave` leaves
a pool out, for judging the fit on it; `--out` is the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import registry.search
from bench.pools import Pool, encode_tasks
from bench.search import DATA, questions
from registry.search.encoder import DIMENSIONS, load_encoder
from registry.search.vectors import ADAPTER

POOLS = ("bfcl", "bfcl_live", "metatool", "seal", "stb")
TEMPERATURE = 0.05
BATCH, STEPS = 192, 100
MOST_TOOLS = 1_500
"""Of a larger pool the right tools and a thousand others are compared."""
DRAWN = 1_000
SHARE = 0.5
"""Of the way from the identity to the fit; all of it is worse on pools that were left out."""
STEP, PULL = 0.002, 0.02 / DIMENSIONS
OUT = Path(registry.search.__path__[0], "minilm", ADAPTER)


def fit(pools: Sequence[tuple[Any, Any, Any]], seed: int = 7) -> Any:
    """The matrix for tasks and tools: vectors of tasks, vectors of tools, and which fit (bool)."""
    draw = np.random.default_rng(seed)
    matrix = np.eye(DIMENSIONS, dtype=np.float32)
    first, second = np.zeros_like(matrix), np.zeros_like(matrix)
    for step in range(1, STEPS + 1):
        tasks, tools, fits = pools[step % len(pools)]
        chosen = draw.permutation(len(tasks))[:BATCH]
        tasks, fits = tasks[chosen], fits[chosen]
        if len(tools) > MOST_TOOLS:
            drawn = fits.any(0)
            drawn[draw.permutation(len(tools))[:DRAWN]] = True
            tools, fits = tools[drawn], fits[:, drawn]
        slope = compute_slope(matrix, tasks, tools, fits) + PULL * (matrix - np.eye(DIMENSIONS))
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        rate = STEP * np.sqrt(1 - 0.99**step) / (1 - 0.9**step)
        matrix = (matrix - rate * first / (np.sqrt(second) + 1e-8)).astype(np.float32)
    return np.eye(DIMENSIONS, dtype=np.float32) * (1 - SHARE) + SHARE * matrix


def compute_slope(matrix: Any, tasks: Any, tools: Any, fits: Any) -> Any:
    """The gradient of the mean loss by the matrix."""
    turned = tasks @ matrix.T
    lengths = np.linalg.norm(turned, axis=1, keepdims=True)
    turned /= lengths
    told = turned @ tools.T / TEMPERATURE
    told = np.exp(told - told.max(1, keepdims=True))
    likely = told / told.sum(1, keepdims=True)
    right = np.where(fits, told, 0)
    right /= right.sum(1, keepdims=True)
    by_turned = (likely - right) @ tools / TEMPERATURE / len(tasks)
    along = (by_turned * turned).sum(1, keepdims=True)
    return ((by_turned - along * turned) / lengths).T @ tasks


def load_pools(
    data: Path,
    names: Sequence[str],
    cache: Path | None,
    is_kept: Callable[[str], bool] = lambda task: True,
) -> Iterator[tuple[Any, Any, Any]]:
    """What `fit` takes of each pool; of its tasks those that are kept."""
    encoder = load_encoder()
    assert encoder is not None
    asked = questions(data, 0, ("full", "none_full"))
    for name in names:
        group = [each for each in asked if each.pool == name and is_kept(each.q)]
        ids, tools = Pool(data, name, encoder, cache).get_vectors()
        vectors = encode_tasks(encoder, [each.q for each in group], cache)
        fits = np.stack([np.isin(ids, each.gold or list(each.without)) for each in group])
        yield np.stack([vectors[each.q] for each in group]), tools, fits


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--pools", nargs="*", default=POOLS)
    parser.add_argument("--leave", default="")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    names = [name for name in args.pools if name != args.leave]
    matrix = fit(list(load_pools(args.data, names, args.cache)))
    args.out.write_bytes(matrix.astype("<f2").tobytes())
    print(f"fitted on {', '.join(names)}: {args.out}")


if __name__ == "__main__":
    main()
