"""An inverted index in memory: for every stem, which documents have it and how strongly.

Documents have numbers ("slots") in the order in which they were added; those of a server are
discarded and added anew when it changes. With numpy a search of 100,000 tools adds up arrays,
without it a search adds up what the rarest words come to and looks the common ones up for the tools
found so far (Moffat and Zobel 1996, "continue", https://doi.org/10.1145/237496.237497).
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, chain, compress, count, repeat
from operator import add, mul
from typing import Any

from registry.search.documents import (
    ACCESSES,
    KEYS,
    POSTING,
    SIZES,
    WORTHS,
    FoundTool,
    ServerDocuments,
    hash_stem,
)
from registry.search.words import MOST_REMEMBERED

MOST_ADDED = 30_000
"""Without numpy, how many postings of a search are added up before others are looked up."""
PASSED = 8
"""Without numpy documents are looked up among those of a word where that has so many times as many;
else all those of the word are gone through.
"""
COMMON, COMMON_SHARE = 200, 100
"""A stem that only stands for a task's word counts where at most so many tools have it, or one in
so many: what many tools have tells few apart, and costs most.
"""
BULK = 200
"""From how many documents on numpy sorts them all at once."""
KEPT_SHARE, LEAST_KEPT, OF_WORD = 24, 200_000, 60
"""So many postings of the words of tasks are kept for each document, and so many besides; a word
takes as much memory as so many.
"""
DEAD_SHARE = 8
SHARES = (0.8, 0.6, 0.4, 0.2, 0.0)
"""Of the best evidence: the best tools are looked for among those above one of them."""
MOST_ENDS = 0xFFFF
"""The last two bytes of a key."""
_DTYPE = [("key", "i8"), ("worth", "f4"), ("slot", "i4")]
"""POSTING to numpy."""
AT_ONCE = 1 << 18
"""Of how many postings the last bytes are counted at once: numpy makes eight bytes of each."""


Stems = tuple[tuple[str, float], ...]
"""Stems, and how far each counts for a word of a task that it may stand for."""


@dataclass(frozen=True)
class WeighedTerm:
    """A word of a task: its weight, and the stems that may stand for it."""

    weight: float
    stems: Stems


@dataclass(frozen=True)
class QuickSums:
    """What the words of a task come to, by slot, as arrays of numpy: `evidence` is the sum of
    weight and worth, `covered` the weight of the words that a document has.
    """

    evidence: Any
    covered: Any

    def list_evidence(self, slots: Sequence[int]) -> list[float]:
        return list(self.evidence[slots].tolist()) if slots else []

    def list_covered(self, slots: Sequence[int]) -> list[float]:
        return list(self.covered[slots].tolist()) if slots else []


@dataclass(frozen=True)
class SlowSums:
    """The same without numpy. `words` are those of the task with their weights: what is covered is
    only asked for of few documents.
    """

    evidence: Mapping[int, float]
    words: Sequence[tuple[float, _WordPostings]]

    def list_evidence(self, slots: Sequence[int]) -> list[float]:
        return [self.evidence.get(slot, 0.0) for slot in slots]

    def list_covered(self, slots: Sequence[int]) -> list[float]:
        covered = {slot: 0.0 for slot in slots if slot in self.evidence}
        for weight, word in self.words:
            for slot, place in word.find_places(covered):
                covered[slot] += weight * word.shares[place]
        return [covered.get(slot, 0.0) for slot in slots]


Sums = QuickSums | SlowSums


class Postings:
    """The documents of one index. Not for several threads at once."""

    def __init__(self, quick: bool | None = None) -> None:
        """`quick` is whether numpy adds up; None: where it is installed."""
        installed = find_spec("numpy") is not None if quick is None else quick
        self._numpy: Any = import_module("numpy") if installed else None
        self._reset()

    def _reset(self) -> None:
        self._texts = _StemTable(self._numpy)
        self._examples = _StemTable(self._numpy)
        self._alive = bytearray()
        self._dead = 0
        self._servers: list[ServerDocuments] = []
        self._starts: list[int] = []
        self._of_entry: dict[str, list[int]] = defaultdict(list)
        self._ids = array(KEYS)
        self._tools: list[str] = []
        self._words: list[str] = []
        self._found: dict[int, FoundTool] = {}
        self._slot_of: dict[int, int] = {}
        self._mapped = 0

    def __len__(self) -> int:
        """How many documents may be found."""
        return len(self._alive) - self._dead

    def extend(self, servers: Sequence[ServerDocuments]) -> None:
        """Add documents; no document of their servers may be there."""
        if not servers:
            return
        start = len(self._alive)
        counts = [len(each.access) for each in servers]
        for number, each in enumerate(servers, len(self._servers)):
            self._of_entry[each.entry].append(number)
        self._servers += servers
        self._starts += list(accumulate(counts[:-1], initial=start))
        self._alive += b"\x01" * sum(counts)
        self._ids.frombytes(b"".join([each.ids for each in servers]))
        self._tools += "\n".join([each.tools for each in servers]).split("\n")
        self._words += "\n".join([each.words for each in servers]).split("\n")
        self._texts.extend(start, [(each.sizes, each.postings) for each in servers])
        examples = [(each.example_sizes, each.example_postings) for each in servers]
        self._examples.extend(start, examples)

    def discard(self, entry: str) -> None:
        """Take a server's documents out."""
        for number in self._of_entry.pop(entry, ()):
            start, count = self._starts[number], len(self._servers[number].access)
            self._alive[start : start + count] = bytes(count)
            self._dead += count
        if self._dead * DEAD_SHARE > len(self._alive):
            left = sorted(number for numbers in self._of_entry.values() for number in numbers)
            servers = [self._servers[number] for number in left]
            self._reset()
            self.extend(servers)

    def get_tool(self, slot: int) -> FoundTool:
        found = self._found.get(slot)
        if found is None:
            server, place = self._find_server(slot)
            access = ACCESSES[server.access[place]]
            found = FoundTool(
                self._ids[slot], server.entry, self._tools[slot], access, self._words[slot]
            )
            self._found[slot] = found
        return found

    def cut_postings(self, slot: int) -> bytes:
        """The postings of a tool's texts."""
        server, place = self._find_server(slot)
        return server.cut_postings(place)

    def _find_server(self, slot: int) -> tuple[ServerDocuments, int]:
        """The server of a document, and the document's place in it."""
        number = bisect_right(self._starts, slot) - 1
        return self._servers[number], slot - self._starts[number]

    def is_alive(self, slot: int) -> bool:
        return bool(self._alive[slot])

    def find_slot(self, id: int) -> int | None:
        """The slot of the document of that id; None where there is none to be found."""
        if self._mapped < len(self._ids):
            self._slot_of |= zip(self._ids[self._mapped :], count(self._mapped))
            self._mapped = len(self._ids)
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
            return table.add_up_slowly(terms, weak, len(self._alive))
        covers = table is self._texts
        return table.add_up_quickly(terms, weak, len(self._alive), covers)

    def select_best(self, sums: Sums, most: int) -> list[int]:
        """The slots of at most `most` documents with the greatest evidence above 0, of equals the
        first ones.
        """
        if not self._alive or most < 1:
            return []
        if isinstance(sums, SlowSums):
            return self._select_slowly(sums.evidence, most)
        numpy = self._numpy
        evidence = sums.evidence
        if self._dead:
            evidence = evidence * numpy.frombuffer(self._alive, numpy.uint8)
        # Cheaper than a partition, which is slow where most are equal, as most are 0 here.
        top = float(evidence.max())
        for share in SHARES:
            above = evidence > share * top
            if numpy.count_nonzero(above) >= most:
                break
        (best,) = above.nonzero()
        slots: list[int] = best[(-evidence[best]).argsort(kind="stable")][:most].tolist()
        return slots

    def _select_slowly(self, evidence: Mapping[int, float], most: int) -> list[int]:
        found = evidence.items()
        if self._dead:
            found = {slot: own for slot, own in found if self._alive[slot]}.items()
        top = max((own for _, own in found), default=0.0)
        for share in SHARES:
            least = share * top
            best = [(own, -slot) for slot, own in found if own > least]
            if len(best) >= most:
                break
        return [-slot for _, slot in heapq.nlargest(most, best)]


@dataclass(frozen=True, slots=True)
class _WordPostings:
    """The documents that have a word or what may stand for it: `worths` is the greatest product of
    a stem's worth there and its credit, `shares` how far they have the word. Arrays of numpy;
    without it of Python, where the documents are in rising order.
    """

    slots: Any
    worths: Any
    shares: Any

    def find_places(self, wanted: Collection[int]) -> Iterator[tuple[int, int]]:
        """Those of the wanted documents that have the word, and their places here. Without
        numpy.
        """
        slots = self.slots
        if len(slots) < PASSED * len(wanted):
            places: Iterable[int] = compress(count(), map(wanted.__contains__, slots))
            return ((slots[place], place) for place in places)
        last = len(slots) - 1
        looked_up = ((slot, min(bisect_left(slots, slot), last)) for slot in wanted)
        return ((slot, place) for slot, place in looked_up if slots[place] == slot)


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


_EMPTY = _PostingList(array("i"), array(WORTHS))


class _StemTable:
    """The postings of one kind of texts. Those of many documents at once are ordered by the last
    two bytes of their keys alone: most stems are never asked for, and a stem's own arrays are
    picked when it is.
    """

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy
        self._dtype: Any = None if numpy is None else numpy.dtype(_DTYPE)
        self._loaded: Any = None
        self._bounds = array(KEYS)
        self._added: dict[int, _PostingList] = {}
        self._lists: dict[int, _PostingList] = {}
        self._missing: set[int] = set()
        self._words: dict[tuple[int, float], tuple[Stems, _WordPostings | None]] = {}
        """By the identity of its stems, which it keeps."""
        self._kept = 0
        """What these words count."""
        self._best: Any = None
        """A zero for each document, between two words."""
        self._last: Any = None
        """A number for each document, of no meaning between two words."""
        self._documents = 0

    def is_empty(self) -> bool:
        return not self._bounds and not self._added and not self._lists

    def extend(self, start: int, columns: Sequence[tuple[bytes, bytes]]) -> None:
        """Add documents by their numbers of postings and their postings."""
        sizes = b"".join([sizes for sizes, _ in columns])
        postings = bytearray().join([postings for _, postings in columns])
        documents = len(sizes) // array(SIZES).itemsize
        self._documents = start + documents
        self._missing.clear()
        self._words.clear()
        self._kept = 0
        if self._numpy is not None and documents >= BULK and self.is_empty():
            self._load_all(start, sizes, postings)
        else:
            self._add(start, sizes, postings)

    def _add(self, start: int, sizes: bytes, postings: bytearray) -> None:
        slots = chain.from_iterable(map(repeat, count(start), array(SIZES, sizes)))
        for (key, worth, _), slot in zip(POSTING.iter_unpack(postings), slots, strict=True):
            found = self._lists.get(key) or self._added.get(key)
            if found is None:
                found = self._added[key] = _PostingList(array("i"), array(WORTHS))
            found.slots.append(slot)
            found.worths.append(worth)

    def _load_all(self, start: int, sizes: bytes, postings: bytearray) -> None:
        numpy = self._numpy
        found = numpy.frombuffer(postings, self._dtype)
        counts = numpy.frombuffer(sizes, numpy.int32)
        documents = numpy.arange(start, start + len(counts), dtype=numpy.int32)
        found["slot"] = numpy.repeat(documents, counts)
        # Numbers of two bytes are sorted by counting them, in a third of the time of whole keys.
        ends = found["key"].astype(numpy.uint16)
        order = numpy.argsort(ends, kind="stable")
        # As complex numbers, which are as long, they are moved four times as fast.
        self._loaded = found.view(numpy.complex128).take(order).view(self._dtype)
        counted = sum(
            numpy.bincount(ends[at : at + AT_ONCE], minlength=MOST_ENDS + 1)
            for at in range(0, len(ends), AT_ONCE)
        )
        if len(ends):
            self._bounds = array(KEYS, [0])
            self._bounds.frombytes(numpy.cumsum(counted).astype(numpy.int64).tobytes())

    def get_slots(self, stem: str) -> array[int]:
        return self._find_list(hash_stem(stem)).slots

    def _find_list(self, key: int) -> _PostingList:
        found = self._lists.get(key)
        if found is None:
            found = _EMPTY if key in self._missing else self._make_list(key)
        return found

    def _make_list(self, key: int) -> _PostingList:
        found, added = self._cut_list(key), self._added.pop(key, None)
        if found is None and added is None:
            if len(self._missing) >= MOST_REMEMBERED:
                self._missing.clear()
            self._missing.add(key)
            return _EMPTY
        if found is not None and added is not None:
            found.slots.extend(added.slots)
            found.worths.extend(added.worths)
        made = self._lists[key] = found or added or _EMPTY
        return made

    def _cut_list(self, key: int) -> _PostingList | None:
        """The postings of a stem among those that were loaded at once."""
        end = key & MOST_ENDS
        begin, end = self._bounds[end : end + 2] or (0, 0)
        if begin == end:
            return None
        near = self._loaded[begin:end]
        is_own = near["key"] == key
        number = self._numpy.count_nonzero(is_own)
        if not number:
            return None
        own = near if number == len(near) else near[is_own]
        slots, worths = own["slot"].tobytes(), own["worth"].tobytes()
        return _PostingList(array("i", slots), array(WORTHS, worths))

    def get_worth(self, stem: str, slot: int) -> float:
        return self._find_list(hash_stem(stem)).get_worth(slot)

    def add_up_quickly(
        self, terms: Sequence[WeighedTerm], weak: float, size: int, covers: bool
    ) -> QuickSums:
        """`covers` is whether what is covered is wanted too."""
        numpy = self._numpy
        evidence, covered = numpy.zeros(size, "f4"), numpy.zeros(size if covers else 0, "f4")
        for term in terms:
            word = self._join_word(term.stems, weak, size)
            if word is not None:
                weight = numpy.float32(term.weight)
                numpy.add.at(evidence, word.slots, weight * word.worths)
                if covers:
                    numpy.add.at(covered, word.slots, weight * word.shares)
        return QuickSums(evidence, covered)

    def _join_word(self, stems: Stems, weak: float, size: int) -> _WordPostings | None:
        """The postings of a word of a task; None where it does not occur. Those of the words that
        were asked for last are kept: many tasks have the same verbs.
        """
        # By identity: stems take as long to hash as their postings to add.
        key = id(stems), weak
        kept = self._words.pop(key, None)
        if kept is None:
            merge = self._merge_slowly if self._numpy is None else self._merge_quickly
            kept = stems, merge(stems, weak, size)
            self._kept += _count_kept(kept[1])
        self._words[key] = kept  # The last one to go.
        while self._kept > LEAST_KEPT + KEPT_SHARE * size and len(self._words) > 1:
            _, word = self._words.pop(next(iter(self._words)))
            self._kept -= _count_kept(word)
        return kept[1]

    def _merge_quickly(self, stems: Stems, weak: float, size: int) -> _WordPostings | None:
        # Of a word's synonyms the best counts, once; it comes last here.
        found = sorted(self._select_stems(stems, weak), key=_get_credit)
        if not found:
            return None
        numpy = self._numpy
        slots, worths = self._join_lists([each for each, _ in found])
        credits = [credit for _, credit in found]
        wholes = [1.0 if credit >= weak else credit for credit in credits]
        sizes = [len(each.slots) for each, _ in found]
        factors, shares = numpy.array((credits, wholes), "f4").repeat(sizes, axis=1)
        worths = worths * factors
        if len(found) == 1:
            # A copy, as a row of an array keeps the whole of it.
            return _WordPostings(slots, worths, shares.copy())
        if self._best is None or len(self._best) != size:
            self._best, self._last = numpy.zeros(size, "f4"), numpy.zeros(size, "i4")
        # Of places written several times the last number stays, which tells whose stem is the best.
        numbers = numpy.arange(len(slots), dtype="i4")
        self._last[slots] = numbers
        own = self._last[slots] == numbers
        numpy.maximum.at(self._best, slots, worths)
        places = slots[own]
        word = _WordPostings(places, self._best[places], shares[own])
        self._best[places] = 0.0
        return word

    def _join_lists(self, lists: Sequence[_PostingList]) -> tuple[Any, Any]:
        """The slots and worths of several stems as two arrays, one stem after the other."""
        numpy = self._numpy
        slots = numpy.frombuffer(b"".join([each.slots for each in lists]), numpy.int32)
        # As numpy takes indices: else it makes them of the others each time.
        return slots.astype(numpy.intp), numpy.frombuffer(
            b"".join([each.worths for each in lists]), numpy.float32
        )

    def _merge_slowly(self, stems: Stems, weak: float, _: int) -> _WordPostings | None:
        best: dict[int, float] = {}
        share: dict[int, float] = {}
        for found, credit in sorted(self._select_stems(stems, weak), key=_get_credit):
            own = dict(zip(found.slots, map(mul, found.worths, repeat(credit)), strict=True))
            for slot in best.keys() & own.keys():
                own[slot] = max(own[slot], best[slot])
            best |= own
            share |= dict.fromkeys(found.slots, 1.0 if credit >= weak else credit)
        if not best:
            return None
        slots = sorted(best)
        worths, shares = (map(each.__getitem__, slots) for each in (best, share))
        return _WordPostings(array("i", slots), array("d", worths), array("d", shares))

    def add_up_slowly(self, terms: Sequence[WeighedTerm], weak: float, size: int) -> SlowSums:
        evidence: dict[int, float] = {}
        words = []
        added = 0
        for term in sorted(terms, key=self._count_postings):
            word = self._join_word(term.stems, weak, size)
            if word is None:
                continue
            words.append((term.weight, word))
            number = self._count_postings(term)
            slots, worths = word.slots, word.worths
            if evidence and added + number > MOST_ADDED:
                is_found = list(map(evidence.__contains__, slots))
                slots, worths = list(compress(slots, is_found)), compress(worths, is_found)
            else:
                added += number
            # Each step runs in C: a loop takes several times as long.
            own = map(mul, worths, repeat(term.weight))
            so_far = map(evidence.get, slots, repeat(0.0))
            evidence.update(zip(slots, map(add, so_far, own), strict=True))
        return SlowSums(evidence, words)

    def _select_stems(
        self, stems: Iterable[tuple[str, float]], weak: float
    ) -> Iterator[tuple[_PostingList, float]]:
        most = max(COMMON, self._documents // COMMON_SHARE)
        for stem, credit in stems:
            found = self._find_list(hash_stem(stem))
            count = len(found.slots)
            if count and (credit >= weak or count <= most):
                yield found, credit

    def _count_postings(self, term: WeighedTerm) -> int:
        return sum(len(self.get_slots(stem)) for stem, _ in term.stems)


def _get_credit(pair: tuple[_PostingList, float]) -> float:
    return pair[1]


def _count_kept(word: _WordPostings | None) -> int:
    """What it counts to keep a word; one that does not occur is kept too."""
    return OF_WORD if word is None else OF_WORD + len(word.slots)


def _view(numpy: Any, slots: array[int]) -> Any:
    return numpy.frombuffer(slots, numpy.int32)
