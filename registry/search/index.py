"""Search of tools: words, and with the extra `semantic` sentence vectors, find candidates;
`registry.search.ranking` scores their words, and both together order them.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, repeat
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.engine import Database
from registry.database.rows import AnyConnection, fetch_rows
from registry.models import (
    CALLABLE,
    Bands,
    Entry,
    EntryState,
    Judgement,
    RegisteredTool,
    Route,
    ToolMatch,
)
from registry.search import examples
from registry.search.background import load_background
from registry.search.calibration import (
    MatchEvidence,
    Ranked,
    collect_evidence,
    estimate_probability,
    find_vetoes,
    measure_margin,
)
from registry.search.documents import (
    FoundTool,
    SearchDocument,
    ServerDocuments,
    is_alike,
    list_new_stems,
    pack_stems,
    unpack_stems,
)
from registry.search.encoder import is_installed, load_encoder
from registry.search.postings import Postings, WeighedTerm
from registry.search.ranking import (
    ANSWER,
    CONTEXT,
    DESCRIPTION,
    NAME,
    PARAMETERS,
    SAME,
    Scorer,
    count_terms,
    weigh_terms,
)
from registry.search.vectors import BATCH, Likeness, VectorIndex, digest_tool
from registry.search.words import (
    STOP_WORDS,
    SearchQuery,
    find_intent,
    parse_query,
    split_words,
    stem_word,
    write_english,
)

MAX_TERMS = 40
"""How many of a task's words, the rarest, are used."""
MAX_RANKED = 100
"""How many tools are ranked: those whose words come to most."""
RESTING: tuple[EntryState, ...] = ("quarantined", "archived")
"""States of servers that are not called and that somebody may put back in use."""
MAX_NEAREST = 20
"""How many more are ranked for their meaning."""
MIN_YARD, MIN_COSINE = 0.15, 0.3
"""The least that a best score counts for: where nothing fits, the least bad is not made good."""
EXAMPLES = 0.15
"""Weight of what a tool's examples have of a task, beside what its texts have."""
NEAR, MAX_NEAR = 0.15, 8
"""How far behind the first, as a share of its score, a tool may be that use puts first, and how
many such tools there are at most.
"""
TWIN, TWINS = 0.8, 2
"""Factor on the score of a tool for each of its twins before it, and how many twins stand side by
side without it: two servers of one API are a choice, five fill the list with one tool.
"""
MAX_TWINS = 30
"""How many of the best tools are looked at for twins."""
MAX_COMPARED = 1_000
"""How many characters of a task are encoded."""
MAX_TEXT = 4_000
MAX_PARAMETERS = 100
MAX_DEPTH = 3
"""How deep in a body the names of fields are read."""


_NO_TEXTS: tuple[Any, ...] = ("",) * 5


@dataclass(frozen=True)
class Weighed:
    """The candidates of a task, best first, and the evidence for the first; None without one."""

    ranked: tuple[Ranked, ...]
    evidence: MatchEvidence | None
    by_meaning: bool
    judge: Callable[[Sequence[Ranked]], MatchEvidence] = field(compare=False, repr=False)
    """The evidence for the first of the same tools in another order."""
    words: Sequence[str] = ()
    """Those of the task."""


class SearchIndex(Repository):
    def __init__(self, database: Database, process: str = "") -> None:
        super().__init__(database, process)
        self._vectors = VectorIndex(database)
        self._lock = threading.Lock()
        self._seen = 0
        self._resting: dict[EntryState, Postings | None] = {}
        self._seen_resting = -1
        self.bands = Bands()

    @cached_property
    def _postings(self) -> Postings:
        # Made under the lock, by the first search: numpy takes a tenth of a second to load, and
        # most commands search nothing.
        return Postings()

    def load_tables(self) -> None:
        """Load what the first search takes besides the index: numpy, and the tables of words."""
        with self._lock:
            weigh_task("show all of them", self._postings, None)

    def find_tools(self, task: str, k: int = 10) -> tuple[ToolMatch, ...]:
        """The matches of `route`."""
        return self.route(task, k).matches

    def route(self, task: str, k: int = 10) -> Route:
        """The `k` tools that fit a task best, best first; equals in order of their names.

        Only servers that may be called are searched. Any text is a valid task; without vectors, one
        without a word that occurs in the index finds nothing. A match's score is between 0 and 1,
        where 1 is a tool that matches every word of the task as well as possible.
        """
        likeness = self._compare_meaning(task)
        with self._lock:
            self._refresh()
            weighed = weigh_task(task, self._postings, likeness, max(k, MAX_RANKED))
            by_meaning = weighed.by_meaning
            if weighed.evidence is None or not k:
                return Route((), 0.0, (), by_meaning)
            ranked = self._lift_used(task, weighed.ranked)
            with self._database.look() as connection:
                matches = _load_matches(connection, ranked[:k])
            vetoes = find_vetoes(task, weighed.words, self._postings, ranked[0], matches[0])
        # What was learned may put another first, and never makes anything surer.
        both = [weighed.evidence]
        if ranked[0] is not weighed.ranked[0]:
            both.append(weighed.judge(ranked))
        probability = min(estimate_probability(each, by_meaning) for each in both)
        margin = min(map(measure_margin, both))
        return Route(matches, probability, vetoes, by_meaning, self.bands, margin)

    def find_quarantined(self, task: str, k: int = 5) -> tuple[ToolMatch, ...]:
        """The tools of quarantined servers that fit a task by their words, best first: they are
        shown, and nothing is called.
        """
        with self._lock:
            postings = self._read_resting("quarantined")
            if postings is None:
                return ()
            ranked = weigh_task(task, postings, None, k).ranked[:k]
            with self._database.look() as connection:
                found = _load_matches(connection, ranked)
        return tuple(replace(match, state="quarantined") for match in found)

    def find_resting(self, task: str) -> tuple[ToolMatch, ...]:
        """The best tool of the quarantined servers and that of the archived ones, by their words,
        where a tool of a server in use would be thought to fit as surely.
        """
        found = []
        with self._lock:
            for state in RESTING:
                postings = self._read_resting(state)
                weighed = weigh_task(task, postings, None) if postings is not None else None
                if weighed is None or weighed.evidence is None:
                    continue
                if estimate_probability(weighed.evidence, False) >= self.bands.forge:
                    with self._database.look() as connection:
                        matches = _load_matches(connection, weighed.ranked[:1])
                    found += [replace(match, state=state) for match in matches]
        return tuple(found)

    def judge(
        self, words: str, entry: str, tool: str, without: Collection[tuple[str, str]] = ()
    ) -> Judgement:
        """How sure it is that one tool is what the words mean, as if the tools `without` (server
        and name) were not there. What was learned from use says nothing of it.
        """
        weighed = self.explain(words, without)
        chosen = [
            each for each in weighed.ranked if (each.tool.entry, each.tool.tool) == (entry, tool)
        ]
        if not chosen:
            return Judgement(0.0, 0.0, ())
        others = [each for each in weighed.ranked if each is not chosen[0]]
        evidence = weighed.judge([*chosen, *others])
        with self._lock:
            with self._database.look() as connection:
                (match,) = _load_matches(connection, chosen)
            vetoes = find_vetoes(words, weighed.words, self._postings, chosen[0], match)
        probability = estimate_probability(evidence, weighed.by_meaning)
        return Judgement(probability, measure_margin(evidence), vetoes)

    def explain(self, task: str, without: Collection[tuple[str, str]] = ()) -> Weighed:
        """What `route` decides by, as if the tools `without` (server and name) were not there."""
        likeness = self._compare_meaning(task)
        with self._lock:
            self._refresh()
            most = MAX_RANKED + len(without)
            return weigh_task(task, self._postings, likeness, most, without)

    def reject(self, task: str, entry: str, tool: str, now: float) -> None:
        """Count it against a tool that somebody said it is not what a task means."""
        with self._database.write() as connection:
            examples.count_refusal(connection, entry, tool, task, now)

    def describe_by_examples(self, entry: str, tool: str, tasks: Sequence[str], now: float) -> None:
        """Keep tasks that a model wrote for a tool, by which it is found from then on. They go
        with the server's next version.
        """
        with self._database.write() as connection:
            examples.add_examples(connection, entry, tool, tasks, now)
            servers = tables.search_servers
            row = connection.execute(select(*_COLUMNS).where(servers.c.entry == entry)).first()
            server = ServerDocuments.read(row) if row else None
            if server is not None:
                packed = ServerDocuments.pack(
                    [_describe_anew(each, tool, tasks) for each in server.unpack()]
                )
                change = update(servers).where(servers.c.entry == entry)
                connection.execute(change.values(packed._asdict()))
            mark_changed(connection, entry)

    def forget_use(self, entry: str = "") -> int:
        """Remove what was learned from tasks, of one server where it is named; how many rows."""
        with self._database.write() as connection:
            return examples.forget_examples(connection, entry)

    def fill_vectors(self, most: int = BATCH) -> int:
        """Encode up to `most` tools that have no vector yet; how many were. 0 without the extra.

        Raises EncoderUnusable.
        """
        if not is_installed() or not self._vectors.is_lacking():
            return 0
        encoder = load_encoder()
        return self._vectors.fill(encoder, most) if encoder else 0

    def clear_vectors(self) -> None:
        """Remove all vectors: tools are found by their words only."""
        self._vectors.clear()

    def _refresh(self) -> None:
        """Read what has changed since the last search."""
        if self._find_newest() == self._seen:
            return
        with self._database.read() as connection:
            newest = _get_newest(connection)
            changed = connection.execute(_CHANGED, {"seen": self._seen}).scalars().all()
            servers = _load_servers(connection, self._seen, CALLABLE)
        for entry in changed:
            self._postings.discard(entry)
        self._postings.extend(servers)
        self._seen = newest

    def _read_resting(self, state: EntryState) -> Postings | None:
        """The tools of the servers in a state out of use; None where there are none."""
        if self._find_newest() != self._seen_resting:
            self._resting.clear()
        if state not in self._resting:
            with self._database.read() as connection:
                self._seen_resting = _get_newest(connection)
                servers = _load_servers(connection, 0, (state,))
            self._resting[state] = Postings() if servers else None
            if (made := self._resting[state]) is not None:
                made.extend(servers)
        return self._resting[state]

    def _find_newest(self) -> int:
        with self._database.look() as connection:
            return _get_newest(connection)

    def _lift_used(self, task: str, ranked: Sequence[Ranked]) -> tuple[Ranked, ...]:
        """The same, where tools near the first are ordered by what such tasks meant before too."""
        least = ranked[0].fused * (1 - NEAR)
        near = [each for each in ranked[:MAX_TWINS] if each.fused >= least > 0]
        near = sorted(near, key=lambda each: -each.fused)[:MAX_NEAR]
        tools = {(each.tool.entry, each.tool.tool) for each in near}
        with self._database.look() as connection:
            past = examples.find_past_tasks(connection, sorted({entry for entry, _ in tools}))
        used = examples.measure_use(task, past, tools)
        if not used:
            return tuple(ranked)

        def place(each: Ranked) -> float:
            learned = used.get((each.tool.entry, each.tool.tool), 0)
            return -each.fused / ranked[0].fused - NEAR * learned

        return (*sorted(near, key=place), *(each for each in ranked if each not in near))

    def _compare_meaning(self, task: str) -> Likeness | None:
        if not task.strip() or not is_installed() or self._vectors.is_empty():
            return None
        encoder = load_encoder()
        if encoder is None:
            return None
        return self._vectors.compare(
            encoder.encode_task(write_english(task)[:MAX_COMPARED]), MAX_NEAREST
        )


def weigh_task(
    task: str,
    postings: Postings,
    likeness: Likeness | None,
    most: int = MAX_RANKED,
    without: Collection[tuple[str, str]] = (),
    background: Mapping[str, float] | None = None,
) -> Weighed:
    """The tools that a task may mean, best first, and what is seen of the first. Pure.

    `background` is how usual words are; None: as the table of this package has it.
    """
    query = parse_query(task)
    usual = load_background() if background is None else background
    registry = count_terms(postings, query, usual)
    query = replace(query, terms=registry.select_rarest(query.terms, MAX_TERMS))
    # Vectors find what means the same, and better than words that mean nearly that.
    terms = weigh_terms(query, registry, related=likeness is None)
    ranked = _rank(query, terms, postings, likeness, most)
    if without:
        ranked = [each for each in ranked if (each.tool.entry, each.tool.tool) not in without]
    spread = (likeness.mean, likeness.deviation) if likeness else None

    def judge(ranked: Sequence[Ranked]) -> MatchEvidence:
        return collect_evidence(query, terms, registry, postings, ranked, spread)

    evidence = judge(ranked) if ranked else None
    return Weighed(tuple(ranked), evidence, likeness is not None, judge, query.words)


def _rank(
    query: SearchQuery,
    terms: Sequence[WeighedTerm],
    postings: Postings,
    likeness: Likeness | None,
    most: int,
) -> list[Ranked]:
    """Best first: the sum of both scores, each by its best one. A tool without a vector counts as
    one that is as near as the usual.
    """
    sums = postings.add_up(terms, SAME)
    slots = dict.fromkeys(postings.select_best(sums, most))
    of_examples = postings.add_up_examples(terms) if postings.has_examples() else None
    if of_examples:
        slots |= dict.fromkeys(postings.select_best(of_examples, MAX_NEAREST))
    for id in likeness.nearest if likeness else ():
        slot = postings.find_slot(id)
        if slot is not None:
            slots.setdefault(slot)
    known = [any(postings.has_stem(stem) for stem, _ in term.stems) for term in terms]
    places, tools = list(slots), list(map(postings.get_tool, slots))
    found = Scorer(query, terms, known).score_tools(
        tools, sums.list_evidence(places), sums.list_covered(places)
    )
    yards = [max(yard, 0.0) for yard in found]
    orders = yards
    if of_examples:
        share = EXAMPLES / (sum(term.weight for term in terms) or 1.0)
        told = of_examples.list_evidence(places)
        orders = [yard + share * own for yard, own in zip(yards, told, strict=True)]
    ranked = _fuse(places, tools, yards, orders, likeness)
    ranked.sort(key=lambda each: (-each.fused, each.tool.entry, each.tool.tool))
    return [*_set_twins_back(ranked[:MAX_TWINS], postings), *ranked[MAX_TWINS:]]


def _set_twins_back(ranked: Sequence[Ranked], postings: Postings) -> list[Ranked]:
    """The same, where the third tool of one name and nearly the same texts, and those after it,
    leave their places to tools that are nearly as good and other ones. The first stays the first.
    """
    names = Counter(each.tool.words for each in ranked)
    if max(names.values(), default=0) <= TWINS:
        return list(ranked)
    before: dict[str, Counter[bytes]] = defaultdict(Counter)
    unpacked: dict[bytes, frozenset[int]] = {}
    worths = []
    for each in ranked:
        twins = 0
        if names[each.tool.words] > TWINS:
            # Counted by text: most twins have the very same one.
            packed, texts = postings.cut_postings(each.slot), before[each.tool.words]
            if packed not in unpacked:
                unpacked[packed] = unpack_stems(packed)
            own = unpacked[packed]
            twins = sum(n for other, n in texts.items() if is_alike(own, unpacked[other]))
            texts[packed] += 1
        worths.append(each.fused * TWIN ** max(twins - TWINS + 1, 0))
    places = sorted(range(len(ranked)), key=lambda place: -worths[place])
    return [ranked[place] for place in places]


def _fuse(
    slots: Sequence[int],
    tools: Sequence[FoundTool],
    yards: Sequence[float],
    orders: Sequence[float],
    likeness: Likeness | None,
) -> list[Ranked]:
    """`orders` are the scores by words with what the tools' examples add."""
    if likeness is None:
        return list(map(Ranked, slots, tools, yards, repeat(None), orders, orders))
    near = [likeness.nearness.get(tool.id) for tool in tools]
    cosines = [likeness.cosines.get(tool.id) for tool in tools]
    best = max([MIN_YARD, *orders])
    nearest = max([MIN_COSINE, *(each for each in near if each is not None)])
    usual = likeness.usual_nearness
    fused = [
        order / best + (usual if own is None else own) / nearest
        for order, own in zip(orders, near, strict=True)
    ]
    return list(map(Ranked, slots, tools, yards, cosines, orders, fused))


def index_entry(connection: Connection, entry: Entry) -> None:
    """Index the tools of an entry, in place of the server's earlier ones."""
    documents, servers = tables.documents, tables.search_servers
    for table in (documents, servers):
        connection.execute(delete(table).where(table.c.entry == entry.name))
    if entry.tools:
        rows = [
            {"entry": entry.name, "tool": tool.name, "meaning": digest_tool(tool)}
            for tool in entry.tools
        ]
        connection.execute(insert(documents), rows)
        query = select(documents.c.id).where(documents.c.entry == entry.name)
        ids = connection.execute(query.order_by(documents.c.id)).scalars()
        made = [build_document(id, entry, tool) for id, tool in zip(ids, entry.tools, strict=True)]
        connection.execute(insert(servers), ServerDocuments.pack(made)._asdict())
    mark_changed(connection, entry.name)


def mark_changed(connection: Connection, entry: str) -> None:
    """Have every process read a server's tools anew, before its next search."""
    connection.execute(_CHANGE, {"entry": entry})


def build_document(id: int, entry: Entry, tool: RegisteredTool) -> SearchDocument:
    """What is kept of a tool's texts."""
    listed = tool.definition
    name = split_words(tool.name)
    described = split_words(f"{listed.get('title', '')} {listed['description']}"[:MAX_TEXT])
    server = split_words(f"{entry.name} {entry.title} {tool.group}"[:MAX_TEXT])
    intents = dict.fromkeys(filter(None, map(find_intent, name)))
    stems, worths = pack_stems(
        {
            NAME: _stem_words(name),
            DESCRIPTION: _stem_words(described),
            PARAMETERS: _stem_words(split_words(_collect_parameters(listed["inputSchema"]))),
            CONTEXT: _stem_words([*intents, *server]),
            ANSWER: _stem_words(split_words(_collect_answer(listed.get("outputSchema")))),
        }
    )
    examples_only = _pack_examples(examples.write_examples(tool), stems)
    words = " ".join(name)
    return SearchDocument(
        id, entry.name, tool.name, tool.access, words, stems, worths, examples_only
    )


def _describe_anew(document: SearchDocument, tool: str, tasks: Sequence[str]) -> SearchDocument:
    """The same with these examples, where it is that tool's."""
    if document.tool != tool:
        return document
    return document._replace(example_stems=_pack_examples(tasks, document.stems))


def _pack_examples(tasks: Iterable[str], own: bytes) -> bytes:
    """The stems of a tool's examples that are not in its texts, whose stems are `own`."""
    said = " ".join(task[: examples.MAX_TASK] for task in tasks)
    stems = dict.fromkeys(_stem_words(w for w in split_words(said) if w not in STOP_WORDS))
    return list_new_stems(stems, own)


def _stem_words(said: Iterable[str]) -> list[str]:
    return list(map(stem_word, said))


def _get_newest(connection: AnyConnection) -> int:
    """The last change of what can be found, or of a server's state."""
    ((newest,),) = fetch_rows(connection, _NEWEST, {})
    return int(newest)


def _load_servers(
    connection: Connection, seen: int, states: Sequence[EntryState]
) -> list[ServerDocuments]:
    """The documents of the servers in these states that changed since; a damaged row is left out,
    as if the server had no tools.
    """
    rows = connection.execute(_SERVERS, {"seen": seen, "states": json.dumps(states)}).all()
    found = (ServerDocuments.read(row[1:]) for row in sorted(rows, key=lambda row: row[0]))
    return [server for server in found if server is not None]


def _load_matches(connection: AnyConnection, ranked: Sequence[Ranked]) -> tuple[ToolMatch, ...]:
    ids = json.dumps([each.tool.id for each in ranked])
    # A damaged row may name ids that no tool has: such a tool is shown without texts.
    found = {
        id: (*(each or "" for each in texts), access, bool(evident))
        for id, *texts, access, evident in fetch_rows(connection, _MATCHES, {"ids": ids})
    }
    return tuple(
        ToolMatch(
            each.tool.entry,
            each.tool.tool,
            min(each.order, 1.0),
            *found.get(each.tool.id, _NO_TEXTS),
        )
        for each in ranked
    )


def _collect_parameters(schema: Mapping[str, Any]) -> str:
    """Names and descriptions of a tool's arguments and of the fields of a body among them."""
    found: list[str] = []
    _collect_properties(schema, MAX_DEPTH, found)
    return " ".join(found)[:MAX_TEXT]


def _collect_answer(schema: Any) -> str:
    """Names of the fields of what the API answers: who asks for a phone number means the tool that
    answers with one.
    """
    found: list[str] = []
    body = dict(_list_properties(schema)).get("body")
    _collect_properties(body, MAX_DEPTH, found)
    if isinstance(body, dict):
        _collect_properties(body.get("items"), MAX_DEPTH, found)
    return " ".join(found[::2])[:MAX_TEXT]


def _collect_properties(schema: Any, depth: int, found: list[str]) -> None:
    for name, value in islice(_list_properties(schema), MAX_PARAMETERS):
        if len(found) > MAX_PARAMETERS * MAX_DEPTH:
            return
        found += [name, _get_description(value)]
        if depth > 1:
            _collect_properties(value, depth - 1, found)
            _collect_properties(
                value.get("items") if isinstance(value, dict) else None, depth - 1, found
            )


def _list_properties(schema: Any) -> Iterable[tuple[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.items() if isinstance(properties, dict) else ()


def _get_description(schema: Any) -> str:
    return str(schema.get("description", ""))[:200] if isinstance(schema, dict) else ""


_CHANGE = text("INSERT OR REPLACE INTO search_changes (entry) VALUES (:entry)")
_NEWEST = text("SELECT coalesce(max(id), 0) FROM search_changes")
_CHANGED = text("SELECT entry FROM search_changes WHERE id > :seen")
_COLUMNS = [tables.search_servers.c[name] for name in ServerDocuments._fields]
# The order of the joins is this one: else SQLite may look at each server for each change.
_SERVERS = text(f"""
    SELECT servers.id, {", ".join(f"servers.{name}" for name in ServerDocuments._fields)}
    FROM search_changes AS changes
    CROSS JOIN entries ON entries.name = changes.entry
    CROSS JOIN search_servers AS servers ON servers.entry = changes.entry
    WHERE changes.id > :seen AND entries.state IN (SELECT value FROM json_each(:states))""")
_MATCHES = text("""
    SELECT documents.id, json_extract(tools.listed, '$.description'), versions.title,
           versions.description, json_extract(tools.listed, '$._meta.toolwright.group'),
           tools.listed, tools.access, tools.self_evident
    FROM json_each(:ids) AS chosen
    JOIN search_documents AS documents ON documents.id = chosen.value
    JOIN entries ON entries.name = documents.entry
    JOIN versions ON versions.entry = entries.name AND versions.version = entries.version
    JOIN tools ON tools.entry = entries.name AND tools.version = entries.version
         AND tools.name = documents.tool""")
