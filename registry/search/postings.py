"""An inverted index in memory: for every stem, which documents have it and how strongly.

Documents have numbers ("slots") in the order in which they were added; those of a server are
discarded and added anew when it changes. With numpy a search of 100,000 tools adds up arrays,
without it a search adds up what the rarest words come to and looks the common ones up for the tools
found so far (Moffat and Zobel 1996, "continue", https://doi.org/10.1145/237496.237497).
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from registry.search.words import MOST_REMEMBERED
from sandbox.bundle.apispec import Access

SATURATION = 2.0
"""The weighted frequency at which a word reaches half of its largest worth (k1 of BM25)."""
MAX_REPEATS = 3
"""How often a word counts in one field at most: more of the same says nothing new."""
MOST_ADDED = 30_000
"""Without numpy, how many postings of a search are added up before others are looked up."""
COMMON, COMMON_SHARE = 200, 100
"""A stem that only stands for a task's word counts where at most so many tools have it, or one in
so many: what many tools have tells few apart, and costs most.
"""
BULK = 2_000
"""From how many documents on numpy sorts them all at once."""
DENSE = 50
"""Where a word's postings are more than one in so many documents, whole arrays are added."""
DEAD_SHARE = 8
ALIKE = 0.5
"""The part of their stems that documents that are alike have in common."""
SHARES = (0.8, 0.6, 0.4, 0.2, 0.0)
"""Of the best evidence: the best tools are looked for among those above one of them."""
_INTEGERS, _FLOATS = "q", "f"


@dataclass(frozen=True)
class WeightedField:
    """A field of a document: its weight, how much longer texts than usual count less (b of BM25F),
    and the usual number of words.
    """

    weight: float
    length: float
    usual: int


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """A tool as it is found. `words` are those of its name, joined by spaces.

    `stems` are the hashes of its texts' stems, eight bytes each, and `worths` how strongly each
    counts, from 0 to 1, four bytes each, in the same order; `example_stems` those of its examples.
    """

    id: int
    entry: str
    tool: str
    access: Access
    words: str
    stems: bytes
    worths: bytes
    example_stems: bytes = b""


@dataclass(frozen=True)
class WeighedTerm:
    """A word of a task: its weight, and how far each stem that may stand for it counts."""

    weight: float
    stems: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Sums:
    """What the words of a task come to, by slot: `evidence` is the sum of weight and worth,
    `covered` the weight of the words that a document has.
    """

    evidence: Any
    covered: Any

    def list_evidence(self, slots: Sequence[int]) -> list[float]:
        return _list_sums(self.evidence, slots)

    def list_covered(self, slots: Sequence[int]) -> list[float]:
        return _list_sums(self.covered, slots)


class Postings:
    """The documents of one index. Not for several threads at once."""

    def __init__(self, quick: bool | None = None) -> None:
        """`quick` is whether numpy adds up; None: where it is installed."""
        installed = find_spec("numpy") is not None if quick is None else quick
        self._numpy: Any = import_module("numpy") if installed else None
        self._reset()

    def _reset(self) -> None:
        self.documents: list[SearchDocument] = []
        self._texts = _StemTable(self._numpy)
        self._examples = _StemTable(self._numpy)
        self._alive = bytearray()
        self._dead = 0
        self._of_entry: dict[str, list[int]] = defaultdict(list)
        self._slot_of: dict[int, int] = {}

    def __len__(self) -> int:
        """How many documents may be found."""
        return len(self.documents) - self._dead

    def extend(self, documents: Sequence[SearchDocument]) -> None:
        """Add documents; no document of their servers may be there."""
        start = len(self.documents)
        self.documents += documents
        self._alive += b"\x01" * len(documents)
        for slot, document in enumerate(documents, start):
            self._of_entry[document.entry].append(slot)
            self._slot_of[document.id] = slot
        self._texts.extend(start, [(each.stems, each.worths) for each in documents])
        self._examples.extend(start, [(each.example_stems, b"") for each in documents])

    def discard(self, entry: str) -> None:
        """Take a server's documents out."""
        for slot in self._of_entry.pop(entry, ()):
            self._alive[slot] = 0
            self._dead += 1
        if self._dead * DEAD_SHARE > len(self.documents):
            left = [each for slot, each in enumerate(self.documents) if self._alive[slot]]
            self._reset()
            self.extend(left)

    def is_alive(self, slot: int) -> bool:
        return bool(self._alive[slot])

    def find_slot(self, id: int) -> int | None:
        """The slot of the document of that id; None where there is none to be found."""
        slot = self._slot_of.get(id)
        return slot if slot is not None and self._alive[slot] else None

    def count_documents(self, stem: str) -> int:
        """In how many documents a stem occurs."""
        slots = self._texts.get_slots(stem)
        if not self._dead:
            return len(slots)
        if self._numpy is not None:
            alive = self._numpy.frombuffer(self._alive, self._numpy.uint8)
            return int(alive[_view(self._numpy, slots)].sum())
        return sum(map(self._alive.__getitem__, slots))

    def has_stem(self, stem: str) -> bool:
        """Whether a document that may be found has a stem."""
        return bool(self.count_documents(stem) if self._dead else self._texts.get_slots(stem))

    def get_worth(self, stem: str, slot: int) -> float:
        """How strongly a stem counts in a document, 0 where it does not occur."""
        return self._texts.get_worth(stem, slot)

    def add_up(self, terms: Sequence[WeighedTerm], weak: float) -> Sums:
        """The sums of a task's words. Stems that count less than `weak` cover in part."""
        return self._add_up(self._texts, terms, weak)

    def add_up_examples(self, terms: Sequence[WeighedTerm]) -> Sums:
        """The evidence of the documents' examples."""
        return self._add_up(self._examples, terms, 0.0)

    def has_examples(self) -> bool:
        return not self._examples.is_empty()

    def _add_up(self, table: _StemTable, terms: Sequence[WeighedTerm], weak: float) -> Sums:
        if self._numpy is None:
            return table.add_up_slowly(terms, weak)
        covers = table is self._texts
        return table.add_up_quickly(terms, weak, len(self.documents), covers)

    def select_best(self, sums: Sums, most: int) -> list[int]:
        """The slots of at most `most` documents with the greatest evidence above 0."""
        if self._numpy is None:
            alive = ((s, slot) for slot, s in sums.evidence.items() if self._alive[slot] and s > 0)
            return [slot for _, slot in heapq.nlargest(most, alive)]
        if not self._alive or most < 1:
            return []
        numpy = self._numpy
        evidence = sums.evidence
        if self._dead:
            evidence = evidence * numpy.frombuffer(self._alive, numpy.uint8)
        # Cheaper than a partition, which is slow where most are equal, as most are 0 here.
        top = float(evidence.max())
        for share in SHARES:
            best = numpy.flatnonzero(evidence > share * top)
            if len(best) >= most:
                break
        return [int(slot) for slot in best[numpy.argsort(-evidence[best], kind="stable")][:most]]


@dataclass(frozen=True, slots=True)
class _PostingList:
    """The documents that have a stem, in rising order, and how strongly it counts in each."""

    slots: array[int]
    worths: array[float]

    def get_worth(self, slot: int) -> float:
        """0 where the document does not have the stem."""
        place = bisect_left(self.slots, slot)
        has = place < len(self.slots) and self.slots[place] == slot
        return self.worths[place] if has else 0.0

    def list_worths(self, only: list[int] | None) -> Iterable[tuple[int, float]]:
        """Slots and worths, of those in `only` where it is not None."""
        if only is None:
            return zip(self.slots, self.worths, strict=True)
        looked_up = ((slot, self.get_worth(slot)) for slot in only)
        return [(slot, worth) for slot, worth in looked_up if worth]


_EMPTY = _PostingList(array("i"), array(_FLOATS))


class _StemTable:
    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy
        self._lists: dict[int, _PostingList] = {}
        self._loaded: tuple[Any, Any] = ((), ())
        self._places: dict[int, tuple[int, int]] = {}
        self._documents = 0

    def is_empty(self) -> bool:
        return not self._lists and not self._places

    def extend(self, start: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._documents = start + len(rows)
        if self._numpy is not None and len(rows) >= BULK and self.is_empty():
            self._load_all(rows)
            return
        for slot, (stems, worths) in enumerate(rows, start):
            keys = array(_INTEGERS, stems)
            values = array(_FLOATS, worths) if worths else (1.0,) * len(keys)
            for key, worth in zip(keys, values, strict=True):
                found = self._find_list(key)
                if found is _EMPTY:
                    found = self._lists[key] = _PostingList(array("i"), array(_FLOATS))
                found.slots.append(slot)
                found.worths.append(worth)

    def _load_all(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Sort what the rows have by stem. A stem's own arrays are made when it is first asked for:
        most never are.
        """
        numpy = self._numpy
        keys = numpy.frombuffer(b"".join(stems for stems, _ in rows), numpy.int64)
        told = b"".join(worths for _, worths in rows)
        worths = numpy.frombuffer(told, numpy.float32) if told else numpy.ones(len(keys), "f4")
        sizes = numpy.fromiter((len(stems) // 8 for stems, _ in rows), numpy.int64, len(rows))
        slots = numpy.repeat(numpy.arange(len(rows), dtype=numpy.int32), sizes)
        if not len(keys):
            return
        order, starts = group_keys(numpy, keys)
        self._loaded = slots[order], worths[order]
        ends = [*starts[1:].tolist(), len(keys)]
        spans = zip(starts.tolist(), ends, strict=True)
        self._places = dict(zip(keys[order[starts]].tolist(), spans, strict=True))

    def get_slots(self, stem: str) -> array[int]:
        return self._find_list(hash_stem(stem)).slots

    def _find_list(self, key: int) -> _PostingList:
        found = self._lists.get(key)
        if found is not None:
            return found
        if key not in self._places:
            return _EMPTY
        begin, end = self._places.pop(key)
        slots, worths = (each[begin:end].tobytes() for each in self._loaded)
        found = self._lists[key] = _PostingList(array("i", slots), array(_FLOATS, worths))
        return found

    def get_worth(self, stem: str, slot: int) -> float:
        return self._find_list(hash_stem(stem)).get_worth(slot)

    def add_up_quickly(
        self, terms: Sequence[WeighedTerm], weak: float, size: int, covers: bool
    ) -> Sums:
        """`covers` is whether what is covered is wanted too."""
        numpy = self._numpy
        evidence, best = numpy.zeros(size, "f4"), numpy.zeros(size, "f4")
        covered, cover = (numpy.zeros(size if covers else 0, "f4") for _ in range(2))
        for term in terms:
            # Of each of a task's words the best of its synonyms counts, once; it comes last here.
            stems = sorted(self._select_stems(term, weak), key=_get_credit)
            if not stems:
                continue
            slots, worths = self._join_lists([found for found, _ in stems])
            sizes = [len(found.slots) for found, _ in stems]
            worths = worths * _repeat(numpy, [term.weight * credit for _, credit in stems], sizes)
            wholes = [term.weight * (1.0 if credit >= weak else credit) for _, credit in stems]
            if len(stems) == 1:
                evidence[slots] += worths
                if covers:
                    covered[slots] += wholes[0]
                continue
            numpy.maximum.at(best, slots, worths)
            if covers:
                cover[slots] = _repeat(numpy, wholes, sizes)
            if len(slots) * DENSE > size:
                evidence += best
                best.fill(0.0)
                if covers:
                    covered += cover
                    cover.fill(0.0)
                continue
            # Where a slot comes twice, both add the same to what was there before.
            evidence[slots] += best[slots]
            best[slots] = 0.0
            if covers:
                covered[slots] += cover[slots]
                cover[slots] = 0.0
        return Sums(evidence, covered)

    def _join_lists(self, lists: Sequence[_PostingList]) -> tuple[Any, Any]:
        """The slots and worths of several stems as two arrays, one stem after the other."""
        numpy = self._numpy
        slots = numpy.frombuffer(b"".join([each.slots for each in lists]), numpy.int32)
        return slots, numpy.frombuffer(b"".join([each.worths for each in lists]), numpy.float32)

    def add_up_slowly(self, terms: Sequence[WeighedTerm], weak: float) -> Sums:
        evidence: dict[int, float] = defaultdict(float)
        covered: dict[int, float] = defaultdict(float)
        added = 0
        for term in sorted(terms, key=self._count_postings):
            best: dict[int, float] = {}
            cover: dict[int, float] = {}
            count = self._count_postings(term)
            only = sorted(evidence) if evidence and added + count > MOST_ADDED else None
            added += 0 if only else count
            for found, credit in self._select_stems(term, weak):
                whole = term.weight * (1.0 if credit >= weak else credit)
                for slot, worth in found.list_worths(only):
                    best[slot] = max(best.get(slot, 0.0), term.weight * credit * worth)
                    cover[slot] = max(cover.get(slot, 0.0), whole)
            for slot, worth in best.items():
                evidence[slot] += worth
                covered[slot] += cover[slot]
        return Sums(dict(evidence), dict(covered))

    def _select_stems(self, term: WeighedTerm, weak: float) -> Iterator[tuple[_PostingList, float]]:
        most = max(COMMON, self._documents // COMMON_SHARE)
        for stem, credit in term.stems:
            found = self._find_list(hash_stem(stem))
            count = len(found.slots)
            if count and (credit >= weak or count <= most):
                yield found, credit

    def _count_postings(self, term: WeighedTerm) -> int:
        return sum(len(self.get_slots(stem)) for stem, _ in term.stems)


@lru_cache(MOST_REMEMBERED)
def hash_stem(stem: str) -> int:
    """Eight bytes that stand for a stem; nobody finds another word with the same ones."""
    digest = blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def pack_stems(fields: Mapping[WeightedField, Sequence[str]]) -> tuple[bytes, bytes]:
    """The stems of a document and their worths, as `SearchDocument` has them."""
    often: dict[str, float] = defaultdict(float)
    for field, stems in fields.items():
        one = field.weight / (1 - field.length + field.length * len(stems) / field.usual)
        for stem, count in Counter(stems).items():
            often[stem] += one * min(count, MAX_REPEATS)
    keys = array(_INTEGERS, map(hash_stem, often))
    worths = array(_FLOATS, (each / (each + SATURATION) for each in often.values()))
    return keys.tobytes(), worths.tobytes()


def list_new_stems(stems: Iterable[str], known: bytes) -> bytes:
    """The hashes of those stems that are not among the `known` ones, eight bytes each."""
    had = set(array(_INTEGERS, known))
    return array(_INTEGERS, (key for key in map(hash_stem, stems) if key not in had)).tobytes()


def unpack_stems(stems: bytes) -> frozenset[int]:
    """The hashes of a document's stems."""
    return frozenset(array(_INTEGERS, stems))


def is_alike(stems: frozenset[int], others: frozenset[int]) -> bool:
    """Whether two documents have half of their stems in common (Jaccard)."""
    common = len(stems & others)
    return common >= ALIKE * (len(stems) + len(others) - common)


def group_keys(numpy: Any, keys: Any) -> tuple[Any, Any]:
    """An order that brings equal keys together and else keeps them, and where each group starts.

    Two sorts by 16 bits, which numpy does by counting, take a third of the time of one by 64.
    """
    parts = keys.view(numpy.uint16).reshape(-1, 4)
    order = numpy.argsort(numpy.ascontiguousarray(parts[:, 0]), kind="stable").astype(numpy.int32)
    order = order[numpy.argsort(parts[:, 1][order], kind="stable")]
    starts = _find_starts(numpy, keys[order])
    # Two keys with the same 32 bits lie in pieces between each other.
    if len(numpy.unique(keys[order[starts]])) < len(starts):
        order = numpy.argsort(keys, kind="stable")
        starts = _find_starts(numpy, keys[order])
    return order, starts


def _find_starts(numpy: Any, keys: Any) -> Any:
    changes = keys[1:] != keys[:-1]
    return numpy.concatenate(([0], numpy.flatnonzero(changes) + 1))


def _get_credit(pair: tuple[_PostingList, float]) -> float:
    return pair[1]


def _repeat(numpy: Any, values: Sequence[float], counts: Sequence[int]) -> Any:
    return numpy.repeat(numpy.array(values, "f4"), counts)


def _view(numpy: Any, slots: array[int]) -> Any:
    return numpy.frombuffer(slots, numpy.int32)


def _list_sums(sums: Any, slots: Sequence[int]) -> list[float]:
    if isinstance(sums, dict):
        return [sums.get(slot, 0.0) for slot in slots]
    return list(sums[slots].tolist()) if slots else []
