"""The search's documents: the names of tools, and the hashes of the stems of their texts.

Those of a server are stored together, column by column, so that loading 100,000 tools reads a few
thousand rows and joins their columns, and looks at no tool by itself.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby, repeat
from struct import Struct
from typing import Any, NamedTuple, Self

from registry.search.words import MOST_REMEMBERED
from sandbox.bundle.apispec import Access

SATURATION = 2.0
"""The weighted frequency at which a word reaches half of its largest worth (k1 of BM25)."""
MAX_REPEATS = 3
"""How often a word counts in one field at most: more of the same says nothing new."""
ALIKE = 0.5
"""The part of their stems that documents that are alike have in common."""
KEYS, WORTHS, SIZES = "q", "f", "i"
"""Type codes of arrays: of hashes and ids, of worths, and of numbers of stems."""
POSTING = Struct("=qfi")
"""A stem as it is stored: its hash, its worth, and room for the number of its document, so that
what was joined can be sorted as it is.
"""
LETTERS: Mapping[Access, str] = {"read": "r", "write": "w"}
ACCESSES: Mapping[str, Access] = {letter: access for access, letter in LETTERS.items()}
_LETTERS = "".join(ACCESSES)


@dataclass(frozen=True)
class WeightedField:
    """A field of a document: its weight, how much longer texts than usual count less (b of BM25F),
    and the usual number of words.
    """

    weight: float
    length: float
    usual: int


class FoundTool(NamedTuple):
    """A tool as it is found. `words` are those of its name, joined by spaces."""

    id: int
    entry: str
    tool: str
    access: Access
    words: str


class SearchDocument(NamedTuple):
    """A tool with its texts, the first fields as `FoundTool` has them.

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


class ServerDocuments(NamedTuple):
    """The documents of one server, a column of each field: `tools` and `words` have a line for each
    document and `access` a letter. `postings` are the stems of all their texts as POSTING has them,
    `sizes` how many each document has; `example_postings` and `example_sizes` the same of their
    examples.
    """

    entry: str
    ids: bytes
    tools: str
    access: str
    words: str
    sizes: bytes
    postings: bytes
    example_sizes: bytes
    example_postings: bytes

    @classmethod
    def pack(cls, documents: Sequence[SearchDocument]) -> Self:
        """The documents of one server, of which there is one at least."""
        return cls(
            entry=documents[0].entry,
            ids=array(KEYS, (each.id for each in documents)).tobytes(),
            tools="\n".join(each.tool for each in documents),
            access="".join(LETTERS[each.access] for each in documents),
            words="\n".join(each.words for each in documents),
            sizes=_count_stems(each.stems for each in documents),
            postings=b"".join(_pack_postings(each.stems, each.worths) for each in documents),
            example_sizes=_count_stems(each.example_stems for each in documents),
            example_postings=b"".join(
                _pack_postings(each.example_stems, b"") for each in documents
            ),
        )

    @classmethod
    def read(cls, row: Sequence[Any]) -> Self | None:
        """The documents that a row of the database has; None for a damaged one."""
        try:
            found = cls(*row)
            return found if found._is_whole() else None
        except (TypeError, ValueError, AttributeError):
            return None

    def unpack(self) -> list[SearchDocument]:
        columns = zip(
            array(KEYS, self.ids),
            self.tools.split("\n"),
            self.access,
            self.words.split("\n"),
            strict=True,
        )
        found = []
        for place, (id, tool, letter, words) in enumerate(columns):
            stems, worths = _split_postings(self.cut_postings(place))
            examples, _ = _split_postings(_cut(self.example_sizes, self.example_postings, place))
            access = ACCESSES[letter]
            document = SearchDocument(id, self.entry, tool, access, words, stems, worths, examples)
            found.append(document)
        return found

    def cut_postings(self, place: int) -> bytes:
        """The postings of one document's texts."""
        return _cut(self.sizes, self.postings, place)

    def _is_whole(self) -> bool:
        count = len(self.access)
        lines = self.tools.count("\n"), self.words.count("\n")
        sizes, examples = array(SIZES, self.sizes), array(SIZES, self.example_sizes)
        return (
            lines == (count - 1, count - 1)
            and len(sizes) == len(examples) == count > 0
            and not self.access.strip(_LETTERS)
            and min(sizes) >= 0 <= min(examples)
            and len(self.ids) == 8 * count
            and len(self.postings) == POSTING.size * sum(sizes)
            and len(self.example_postings) == POSTING.size * sum(examples)
        )


def pack_documents(documents: Iterable[SearchDocument]) -> list[ServerDocuments]:
    """The documents in the same order, those of a server that follow each other together."""
    groups = groupby(documents, key=lambda each: each.entry)
    return [ServerDocuments.pack(list(group)) for _, group in groups]


def _count_stems(packed: Iterable[bytes]) -> bytes:
    return array(SIZES, (len(stems) // 8 for stems in packed)).tobytes()


def _pack_postings(stems: bytes, worths: bytes) -> bytes:
    pairs = zip(array(KEYS, stems), array(WORTHS, worths) or repeat(1.0), strict=False)
    return b"".join(POSTING.pack(key, worth, 0) for key, worth in pairs)


def _split_postings(packed: bytes) -> tuple[bytes, bytes]:
    """The stems and their worths."""
    found = list(POSTING.iter_unpack(packed))
    stems, worths = (array(code, (each[at] for each in found)) for at, code in enumerate("qf"))
    return stems.tobytes(), worths.tobytes()


def _cut(sizes: bytes, postings: bytes, place: int) -> bytes:
    """The postings of one document."""
    numbers = array(SIZES, sizes)
    start = sum(numbers[:place])
    return postings[POSTING.size * start : POSTING.size * (start + numbers[place])]


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
    keys = array(KEYS, map(hash_stem, often))
    worths = array(WORTHS, (each / (each + SATURATION) for each in often.values()))
    return keys.tobytes(), worths.tobytes()


def list_new_stems(stems: Iterable[str], known: bytes) -> bytes:
    """The hashes of those stems that are not among the `known` ones, eight bytes each."""
    had = set(array(KEYS, known))
    return array(KEYS, (key for key in map(hash_stem, stems) if key not in had)).tobytes()


def unpack_stems(postings: bytes) -> frozenset[int]:
    """The hashes of the stems of these postings."""
    return frozenset(array(KEYS, postings)[::2])


def is_alike(stems: frozenset[int], others: frozenset[int]) -> bool:
    """Whether two documents have half of their stems in common (Jaccard)."""
    common = len(stems & others)
    return common >= ALIKE * (len(stems) + len(others) - common)
