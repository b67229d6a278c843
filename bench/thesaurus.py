"""Makes the thesaurus of `registry.search.thesaurus` from the words that the model knows.

    python -m bench.thesaurus [--data DIRECTORY] [--out FILE]

Encodes every whole English word of the model's vocabulary, and those that the public pools of
DIRECTORY (see `bench.search`) use at least twice, takes away what all words have in common (the
mean and the first three directions, Mu and Viswanath 2018, https://arxiv.org/abs/1702.01417), and
keeps of each stem the nearest ones. Needs the extra `semantic`; takes about two minutes.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import registry.search
from bench.search import DATA, pool_tools
from registry.search.encoder import list_words, load_encoder
from registry.search.thesaurus import LEAST, TABLE
from registry.search.words import STOP_WORDS, WEAK_WORDS, split_words, stem_word

KEPT = 16
"""Stems that are kept of each."""
COMMON = 3
BLOCK = 512
SHORTEST, LONGEST = 3, 20
OUT = Path(registry.search.__path__[0], "minilm", TABLE)


def list_pool_words(data: Path) -> Iterator[str]:
    """The words that at least two tools or tasks of the pools have."""
    often: Counter[str] = Counter()
    for pool in sorted(path.name for path in (data / "data").iterdir()):
        for row in pool_tools(data, pool).values():
            taken = " ".join(f"{name} {told}" for name, told in row["params"])
            often.update(set(split_words(f"{row['name']} {row['desc']} {taken}")))
        queries = data / "data" / pool / "queries.jsonl"
        for line in queries.read_text().splitlines() if queries.exists() else ():
            often.update(set(split_words(json.loads(line)["q"])))
    return (word for word, count in often.items() if count > 1)


def encode_stems(words: Sequence[str]) -> tuple[list[str], Any]:
    """The stems of the words, and of each the mean vector of its words."""
    encoder = load_encoder()
    if encoder is None:
        raise SystemExit("Install the extra `semantic`.")
    vectors = defaultdict(list)
    for word in words:
        vectors[stem_word(word)].append(encoder.encode(word))
    stems = sorted(vectors)
    return stems, np.stack([np.mean(vectors[stem], axis=0) for stem in stems])


def find_neighbours(vectors: Any) -> Iterator[list[tuple[int, float]]]:
    """For each row the nearest others, best first, with their cosines."""
    centred = vectors - vectors.mean(0)
    _, _, directions = np.linalg.svd(centred[::4], full_matrices=False)
    centred -= (centred @ directions[:COMMON].T) @ directions[:COMMON]
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    for start in range(0, len(centred), BLOCK):
        cosines = centred[start : start + BLOCK] @ centred.T
        for number, row in enumerate(cosines, start):
            row[number] = -1
            best = np.argpartition(-row, KEPT)[:KEPT]
            best = best[np.argsort(-row[best])]
            yield [(int(each), float(row[each])) for each in best]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    known = {*list_words(), *list_pool_words(args.data)} - STOP_WORDS - WEAK_WORDS
    plain = (word for word in known if word.isascii() and word.isalpha())
    words = sorted(word for word in plain if SHORTEST <= len(word) <= LONGEST)
    stems, vectors = encode_stems(words)
    lines = []
    for stem, near in zip(stems, find_neighbours(vectors), strict=True):
        told = [f"{stems[each]}:{round(100 * c)}" for each, c in near if round(100 * c) >= LEAST]
        if told:
            lines.append(" ".join([stem, *told]))
    args.out.write_bytes(gzip.compress("\n".join(lines).encode("ascii"), 9, mtime=0))
    print(f"{len(lines)} stems, {sum(line.count(':') for line in lines)} pairs")


if __name__ == "__main__":
    main()
