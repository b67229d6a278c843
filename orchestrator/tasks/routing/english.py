"""The kind of one English sentence, by its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from orchestrator.tasks.routing import words as w
from orchestrator.tasks.routing.kinds import TaskIntent
from orchestrator.tasks.routing.sentences import QUOTED, Sentence
from sandbox.bundle.apispec import Access

WH_WORDS = frozenset("what which who whom whose when where".split())
_MEASURES = frozenset(
    "many much long far old high low deep wide big large fast tall often heavy hot cold late early "
    "full busy expensive strong".split()
)
_INTRANSITIVE: Mapping[str, tuple[str, ...]] = {
    "list": ("to", "toward", "towards", "like"),
    "count": ("to", "on", "for", "down", "up"),
    "get": (
        "over",
        "off",
        "out",
        "up",
        "on",
        "down",
        "back",
        "away",
        "along",
        "by",
        "into",
        "ready",
        "to",
        "rich",
    ),
    "check": ("in", "out"),
    "show": ("up", "off"),
    "read": ("on", "up"),
    "look": ("after", "back", "away", "down", "forward", "ahead", "here"),
    "watch": ("over", "out", "for"),
}
"""Verbs that ask for no data before these words."""
_ASSISTANT = frozenset("you you've you're you'll you'd".split())
_GIVING = frozenset("tell show give get find fetch read print bring".split())
"""Verbs of which somebody is given the answer: `show me …`."""
_EMPTY = frozenset(", how up on going else new now then next again more so here there".split())
_OPINIONS = frozenset(
    "advice alternatives chances clues comments concerns hints ideas news objections opinions "
    "options plans questions reasons recommendations suggestions thoughts tips volunteers wishes "
    "you your".split()
)
"""What is asked for by `any …?` of who is asked."""
_PLEASE = frozenset({"please", "pls", "plz"})
_SPAN = 8
"""Words in which a question's verb, or the thing that is to be made, has to come."""


def classify_sentence(said: Sentence) -> TaskIntent:
    """The kind of a sentence."""
    if said.get_word(0) in ("thanks", "thank") and "for" in said.words[:4]:
        return TaskIntent("remark", "exclamation")
    if said.has_phrase(w.REPORTING):
        return TaskIntent("remark", "quotation")
    said = strip_politeness(said)
    if not said.words:
        return TaskIntent("remark", "nothing said", False)
    return (
        _classify_figures(said)
        or _classify_creation(said)
        or _classify_question(said)
        or _classify_wish(said)
        or _classify_suggestion(said)
        or _classify_order(said)
        or _classify_statement(said)
    )


def strip_politeness(said: Sentence) -> Sentence:
    """The sentence without greetings and polite words before what it says."""
    for _ in range(6):
        shorter = said.drop_phrase(w.POLITE_PHRASES)
        if shorter is None and said.get_word(0) in w.POLITE:
            shorter = said.drop(1)
        if shorter is None:
            return said
        said = shorter
    return said


def _classify_figures(said: Sentence) -> TaskIntent | None:
    """Sentences that ask for nothing, by a word or phrase."""
    first, second = said.get_word(0), said.get_word(1)
    if first == "weather" and second in (w.ARTICLES | w.DEICTIC):
        return TaskIntent("remark", "idiom")
    if "weather" in said.words[1:] and _is_weather_a_verb(said):
        return TaskIntent("remark", "idiom")
    if all(word in (QUOTED, ",") for word in said.words):
        return TaskIntent("remark", "quotation")
    past = first in w.PAST and not said.is_question and first not in ("was", "were", "did", "had")
    told = first.endswith("ed") and first not in ("feed", "need", "embed", "seed", "speed")
    if past or (told and not _are_things(said.words[1:])):
        return TaskIntent("remark", "statement")
    if first in w.PRAISE and (second == "for" or said.get_word(2) in ("for", "finding", "listing")):
        return TaskIntent("remark", "exclamation")
    if first in w.LABELS or said.drop_phrase(w.LABEL_PHRASES) is not None:
        return TaskIntent("remark", "label")
    if first in w.HYPOTHESES or said.drop_phrase(w.HYPOTHETICAL_PHRASES) is not None:
        advice = said.is_question or said.words[:2] == ("what", "if")
        return TaskIntent("advice" if advice else "remark", "hypothesis")
    if first == "if":
        return _classify_condition(said)
    stopped = first == "stop" and second.endswith("ing")
    if (first in w.NEGATIONS and first != "stop") or stopped or said.words[:2] == ("do", "not"):
        return TaskIntent("remark", "negation")
    return None


def _is_weather_a_verb(said: Sentence) -> bool:
    at = said.words.index("weather", 1)
    before, after = said.words[at - 1], said.get_word(at + 1)
    leads = ("to", "let's", "lets", "us", "will", "can", "could", "must", "should", "we", "i")
    return before in leads and after in (w.ARTICLES | w.DEICTIC)


def _classify_condition(said: Sentence) -> TaskIntent:
    """`if …, list …` is an order that depends on something; any other `if …` is none."""
    if said.is_question:
        return TaskIntent("advice", "hypothesis")
    if "," in said.words:
        then = classify_sentence(said.drop(said.words.index(",") + 1))
        if then.kind == "command":
            return replace(then, reason="condition", certain=False)
    return TaskIntent("remark", "hypothesis")


def _classify_creation(said: Sentence) -> TaskIntent | None:
    """An order to make a tool, a polite question or a wish for one."""
    said, certain = _strip_request(said)
    verb = said.get_word(0)
    if verb in w.MAKING or said.words[:2] in (("set", "up"), ("put", "together")):
        start = 2 if verb in ("set", "put") else 1
        return _find_made_tool(said, start, verb, certain)
    wished = said.drop_phrase(w.WISHED_THINGS)
    if wished is not None and wished.get_word(0) in w.ARTICLES:
        if _find_tool_noun(wished, 0, "") is not None:
            return TaskIntent("creation", "wished tool", False, "write")
    return None


def _strip_request(said: Sentence) -> tuple[Sentence, bool]:
    """The verb phrase of a request that is a wish or a polite question."""
    if said.get_word(0) in ("can", "could", "will", "would") and said.get_word(1) == "you":
        return strip_politeness(said.drop(2)), True
    return said.drop_phrase(w.WISHES) or said, True


def _find_made_tool(said: Sentence, start: int, verb: str, certain: bool) -> TaskIntent | None:
    at = _find_tool_noun(said, start, verb)
    if at is None and said.has_phrase(("mcp server", "mcp tool", "mcp servers")):
        at = said.words.index("mcp")
    if at is None:
        return None
    negated = any(word in w.NEGATIONS for word in said.words[:at])
    return None if negated else TaskIntent("creation", "making", certain, "write")


def _find_tool_noun(said: Sentence, start: int, verb: str) -> int | None:
    """Where the thing that is to be made is named as a tool.

    `server` is one only behind a verb that writes code, or where a clause says what it does: a
    server can be a machine that some interface rents.
    """
    words = said.words[start : start + _SPAN]
    if words and words[0] in ("me", "us", "myself"):
        words = words[1:]
    if not words or words[0] not in (w.ARTICLES | w.TOOL_NOUNS | {"server", "servers"}):
        return None
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else ""
        ends = after in w.CLAUSES or after in ("", ",") or after in ("server", "called", "named")
        if word in w.TOOL_NOUNS and ends:
            return start + at
        if word == "server" and at and words[at - 1] == "mcp":
            return start + at
        if word == "server" and (after in ("that", "which") or (verb in w.FORGING and ends)):
            return start + at
        if word in w.CLAUSES and at:
            return None
    return None


def _classify_question(said: Sentence) -> TaskIntent | None:
    first, second = said.get_word(0), said.get_word(1)
    opens = first in WH_WORDS or first in ("how", "why") or first in w.AUXILIARIES
    if said.has_phrase(w.ADVICE_PHRASES) and (opens or said.is_question):
        return TaskIntent("advice", "how or why")
    if first == "why" or (first == "how" and second not in _MEASURES):
        return _classify_how(said)
    if first in ("whose", "whom") or first in WH_WORDS or first == "how":
        return _classify_wh_question(said)
    if "'s" in first and first.partition("'")[0] in WH_WORDS:
        return _classify_wh_question(_split_contraction(said))
    if first in ("can", "could", "will", "would") and second == "you":
        return _classify_polite_question(said)
    if first in w.AUXILIARIES:
        return _classify_closed_question(said)
    if said.is_question:
        return _classify_marked_question(said)
    return None


def _split_contraction(said: Sentence) -> Sentence:
    first = said.words[0].partition("'")[0]
    return replace(said, words=(first, "is", *said.words[1:]))


def _classify_how(said: Sentence) -> TaskIntent:
    """`how is the weather` asks for data; every other how and why for an explanation."""
    second, third = said.get_word(1), said.get_word(2)
    if second in ("is", "are", "was", "were") and third == "the" and len(said.words) > 3:
        return TaskIntent("command", "question", False, "read")
    return TaskIntent("advice", "how or why")


def _classify_wh_question(said: Sentence) -> TaskIntent:
    words = said.words
    first, second, third = words[0], said.get_word(1), said.get_word(2)
    start = 2 if first == "how" else 1
    heads = words[1 : start + 5]
    if second in ("a", "an") and first == "what":
        return TaskIntent("remark", "exclamation")
    if any(word in w.OPINION_AUXILIARIES for word in heads):
        return TaskIntent("advice", "opinion")
    if {"you", "your", "yourself"} & {*heads}:
        return TaskIntent("advice", "about the assistant")
    if second in ("can", "could") or (second in ("do", "did") and third in ("i", "we", "one")):
        return TaskIntent("advice", "how or why")
    if {"tool", "tools"} & {*heads}:
        return TaskIntent("advice", "about the assistant")
    if first == "what" and second in ("is", "are") and _is_definition(said):
        return TaskIntent("advice", "definition")
    does = "does" in words and words[-1] == "do"
    if first == "what" and ("mean" in words or "stand" in words or does):
        return TaskIntent("advice", "definition")
    if first == "which" and second in ("is", "was", "means", "reminds", "makes", "made", "brings"):
        if third == "why" or not said.is_question:
            return TaskIntent("remark", "statement")
    counted = first == "how" and second in ("many", "much") and third not in _EMPTY | {""}
    if counted and not ((w.FINITE | w.SUBJECTS) & {*words[2:]}):
        # `how many open orders` leaves out "are there".
        return TaskIntent("command", "question", False, "read")
    clause = first != "how" and second in w.SUBJECTS and not said.is_question
    if clause or not _asks_with_verb(said, start):
        return TaskIntent("remark", "statement")
    asked = TaskIntent("command", "question", True, "read")
    if first == "who" and second not in w.AUXILIARIES and not said.is_question:
        return replace(asked, reason="unlike an order", certain=False)
    if not _says_what_about(said):
        return replace(asked, reason="deictic", certain=False)
    if said.is_exclaimed:
        return replace(asked, reason="exclamation", certain=False)
    if QUOTED in words and len(words) < 5:
        return replace(asked, reason="quotation", certain=False)
    if {third, said.get_word(start + 1)} & {"i", "we"} and "have" not in words[3:]:
        return replace(asked, reason="deictic", certain=False)
    if (second == "will" and third == "be") or {"too", "become"} & {*words}:
        return replace(asked, reason="figurative", certain=False)
    if {"best", "better", "worst", "wrong", "matter", "think"} & {*words}:
        return replace(asked, reason="unlike an order", certain=False)
    return _doubt(asked, said)


def _asks_with_verb(said: Sentence, start: int) -> bool:
    """Whether a question word begins a question, and no clause (`when it rains`)."""
    first, second = said.words[0], said.get_word(1)
    if first in ("when", "where"):
        return second in w.AUXILIARIES
    if first == "who":
        owns = second.endswith("s") and second not in ("cares", "knows", "dares")
        # `who opened ticket 12` is about just that one.
        exact = _is_exact(said.words[2:])
        return second in w.AUXILIARIES or said.is_question or owns or exact
    if first == "what" and second not in w.AUXILIARIES and not said.is_question:
        return any(word in w.AUXILIARIES for word in said.words[start : start + 5])
    if first == "how" or first == "which":
        asks = any(word in w.AUXILIARIES for word in said.words[start : start + _SPAN])
        return asks or said.is_question
    return True


def _is_definition(said: Sentence) -> bool:
    """`what is a berth`, `what is DNS`, `what are cookies`."""
    rest = said.words[2:]
    if not rest:
        return True
    if rest[0] in ("a", "an"):
        return "of" not in rest and "for" not in rest and "in" not in rest
    plain = rest[0] not in (w.ARTICLES | {"today's", "tomorrow's", "yesterday's"})
    return plain and len(rest) <= 2 and not any(c.isdigit() for word in rest for c in word)


def _says_what_about(said: Sentence) -> bool:
    """Whether a question names a thing, beyond words that point at something."""
    known = w.AUXILIARIES | w.DEICTIC | w.PRONOUNS | WH_WORDS | _EMPTY
    return any(word not in known and word not in _MEASURES for word in said.words)


def _classify_polite_question(said: Sentence) -> TaskIntent:
    """`can you list the zones?` asks for them, `can you list zones?` may ask for an ability."""
    rest = strip_politeness(said.drop(2))
    polite = rest != said.drop(2) or "please" in said.words
    verb = rest.get_word(0)
    if verb in w.ABILITY_VERBS | w.ADVISING:
        return TaskIntent("advice", "ability")
    if verb in ("tell", "show", "give"):
        return _classify_order(rest) or TaskIntent("advice", "ability")
    found = _classify_order(rest)
    if found is None or found.kind != "command":
        return found or TaskIntent("advice", "ability")
    about = rest.words[1:]
    named = any(c.isdigit() for word in about for c in word) or QUOTED in about
    if polite or named or w.DEFINITE & {*about[:_SPAN]} or said.get_word(0) in ("would", "will"):
        return replace(found, reason="polite question")
    if found.access == "read":
        return replace(found, reason="ability", certain=False)
    return TaskIntent("advice", "ability", False, "write")


def _classify_closed_question(said: Sentence) -> TaskIntent | None:
    """Questions that begin with an auxiliary; None where it is an imperative."""
    first, second = said.get_word(0), said.get_word(1)
    if first == "do" and second not in (w.PRONOUNS | w.ARTICLES | {"all", "any", "there"}):
        return TaskIntent("command", "imperative", False, "write")
    if first == "have" and not said.is_question:
        return TaskIntent("remark", "statement")
    if first == "do" and not said.is_question and second not in w.PRONOUNS:
        return TaskIntent("command", "unlike an order", False, None)
    if second.endswith("ing") and len(second) > 5:
        return TaskIntent("advice", "how or why")
    if first in w.OPINION_AUXILIARIES:
        return TaskIntent("advice", "opinion")
    if second in ("you", "your") or first == "am":
        return TaskIntent("advice", "about the assistant")
    if first in ("can", "could"):
        return _classify_permission(said)
    if second in ("i", "we") and said.get_word(2) in ("need", "have", "want", "really", "ever"):
        if not (said.get_word(2) == "have" and said.get_word(3) not in ("to", "")):
            return TaskIntent("advice", "opinion")
    be = first in ("is", "are", "was", "were", "isn't", "aren't")
    if be and second in ("i", "we", "he", "she", "they"):
        return TaskIntent("command", "deictic", False, "read")
    if second in ("i", "anyone", "anybody", "someone", "somebody", "everyone", "everybody"):
        return TaskIntent("command", "deictic", False, "read")
    if second in ("it", "this", "that", "these", "those"):
        sky = {"rain", "snow", "raining", "snowing", "freeze", "storm", "sunny", "cloudy", "windy"}
        asked = TaskIntent("command", "question", bool(sky & {*said.words}), "read")
        return asked if asked.certain else replace(asked, reason="deictic")
    if not said.is_question and first in ("had", "were", "was", "may", "might"):
        return TaskIntent("remark", "hypothesis")
    asked = TaskIntent("command", "question", True, "read")
    if {"good", "bad", "best", "better", "safe", "worth", "wise", "ok", "okay"} & {*said.words}:
        return replace(asked, reason="opinion", certain=False)
    return _doubt(asked, said)


def _classify_permission(said: Sentence) -> TaskIntent:
    """`can I see the zones?` asks for them; `can I cancel?` asks whether one may."""
    subject, verb = said.get_word(1), said.get_word(2)
    if subject in ("i", "we") and verb in ("see", "view", "have", "get"):
        shown = verb in ("see", "view") and said.get_word(3) in w.DEFINITE
        certain = shown or _is_listing(said.drop(3))
        return TaskIntent("command", "polite question", certain, "read")
    return TaskIntent("advice", "opinion")


def _classify_marked_question(said: Sentence) -> TaskIntent:
    """What is a question by its mark alone: `free berths in Bergen?`, `delete the zone?`"""
    if said.get_word(0) in w.PRONOUNS or said.get_word(0) in ("any", "anyone"):
        things = [word for word in said.words[1:] if _ends_in_plural((word,))]
        if said.get_word(0) == "any" and things and not _OPINIONS & {*said.words}:
            return TaskIntent("command", "terse", False, "read")
        return TaskIntent("advice", "opinion", False)
    verb = said.get_word(0)
    access: Access | None = "write" if verb in w.WRITING_VERBS else "read"
    listing = access == "read" and _ends_in_plural(said.words)
    return TaskIntent("command", "listing" if listing else "terse", False, access)


def _classify_wish(said: Sentence) -> TaskIntent | None:
    """`I want to see the zones` is a request; other wishes may be about the speaker's life."""
    wished = said.drop_phrase(w.WISHES)
    if wished is not None:
        verb, direct = wished.get_word(0), " you to " in f" {' '.join(said.words[:5])} "
        if wished.has_phrase(("how to", "how i", "how we", "why")) and verb in w.KNOWING:
            return TaskIntent("advice", "how or why")
        if verb in w.KNOWING and wished.get_word(1) not in w.DEICTIC | {""}:
            return _doubt(TaskIntent("command", "wish", verb != "find", "read"), wished)
        if direct:
            found = _classify_order(wished)
            return found and replace(found, reason="wish")
        if verb in w.READING_VERBS | w.WRITING_VERBS:
            access: Access = "read" if verb in w.READING_VERBS else "write"
            return TaskIntent("command", "wish", False, access)
        return TaskIntent("remark", "statement")
    thing = said.drop_phrase(w.WISHED_THINGS)
    if thing is None:
        return None
    if _is_listing(thing):
        return _doubt(TaskIntent("command", "wish", True, "read"), thing)
    return TaskIntent("command", "wish", False, None)


def _is_listing(said: Sentence) -> bool:
    """Whether something written is meant: `an overview of …`, `the list of all …`."""
    articles = ("a", "an", "the")
    words = said.drop(1) if said.get_word(0) in articles else said
    words = words.drop(1) if words.get_word(0) in ("full", "whole", "complete", "quick") else words
    kinds = ("list", "overview", "summary", "details")
    return words.get_word(0) in kinds and words.get_word(1) == "of" and bool(words.get_word(2))


def _classify_suggestion(said: Sentence) -> TaskIntent | None:
    """`let me see …` asks; `let's …` may be meant otherwise."""
    lead = said.words[:2]
    if lead in (("let", "me"), ("let", "us")) and said.get_word(2) in ("see", "know", "have"):
        rest = said.drop(2)
        if rest.has_phrase(("how to", "what you", "if you", "when you", "your")):
            return TaskIntent("advice", "about the assistant")
        about = rest.get_word(1)
        certain = about not in w.DEICTIC | {""} and about in w.DEFINITE and lead[1] == "me"
        return _doubt(TaskIntent("command", "wish", certain, "read"), rest)
    if said.get_word(0) in ("let's", "lets") or lead == ("let", "us"):
        rest = said.drop(2 if lead == ("let", "us") else 1)
        found = _classify_order(rest)
        if found is not None and found.kind == "command":
            return replace(found, reason="suggestion", certain=False)
        return TaskIntent("remark", "suggestion")
    if said.get_word(0) == "let":
        return TaskIntent("remark", "statement")
    return None


def _classify_order(said: Sentence) -> TaskIntent | None:
    """An imperative: its first word is a verb that is known."""
    verb = said.get_word(0)
    rest = said.words[1:]
    if verb in ("pull", "bring") and rest[:1] == ("up",) and rest[1:2] not in (("a",), ("an",)):
        verb, rest = "show", rest[1:]
    if verb in w.ADVISING:
        return TaskIntent("advice", "how or why")
    if verb not in w.READING_VERBS | w.WRITING_VERBS | w.MAKING:
        return None
    reads = verb in w.READING_VERBS
    if rest and rest[0] in _INTRANSITIVE.get(verb, ()):
        return TaskIntent("remark", "figurative")
    found = TaskIntent("command", "imperative", True, "read" if reads else "write")
    if rest[:1] == ("of",):
        # `email of Ann` is a noun.
        return replace(found, reason="terse", certain=False, access="read")
    if not rest:
        return replace(found, reason="deictic", certain=False)
    if verb in ("tell", "show", "give", "name", "find", "explain", "describe", "look"):
        heads = f" {' '.join(rest[:4])} "
        if any(f" {word} " in heads for word in ("how to", "how i", "how we", "how you", "why")):
            return TaskIntent("advice", "how or why")
        if {"advice", "opinion", "hint", "hints", "tips", "thoughts", "ideas"} & {*rest}:
            return TaskIntent("advice", "opinion")
    if {"yourself", "your", "yours", *_ASSISTANT} & {*rest[:4]}:
        return TaskIntent("advice", "about the assistant")
    if said.has_phrase(("what you think", "you think", "you recommend", "we should", "i should")):
        return TaskIntent("advice", "opinion")
    if verb in ("tell", "ask", "give") and rest[:1] not in (("me",), ("us",)):
        found = replace(found, access="write", certain=verb != "give")
    if verb == "report" and rest[0] in ("that", "a", "an", "my"):
        # `report the sales` asks for them, `report a leak` tells of one.
        found = replace(found, access="write")
    about = rest[1:2] == ("about",) and _is_exact(rest)
    if verb == "tell" and (len(rest) < 2 or rest[1] in ("a", "about", "something", "more")):
        # Of `berth 14` nothing but its data can be told.
        found = found if about else replace(found, reason="unlike an order", certain=False)
    if verb == "name" and rest[0] not in ("the", "all", "every", "each"):
        found = replace(found, reason="unlike an order", certain=False)
    if verb == "see" or (verb in w.NOUNLIKE and not _is_named_plainly(rest)):
        found = replace(found, reason="unlike an order", certain=False)
    if verb in w.NOUNLIKE and rest[0] in ("from", "on", "over", "across"):
        found = replace(found, reason="unlike an order", certain=False)
    if rest[0] in ("me", "us") and verb not in _GIVING:
        found = replace(found, reason="figurative", certain=False)
    if rest[:2] == ("me", "someone") or rest[:2] == ("me", "somebody"):
        found = replace(found, reason="figurative", certain=False)
    if rest[0] in ("and", "or", ",", "but"):
        found = replace(found, reason="unlike an order", certain=False)
    if verb == "look" and rest[0] not in w.PHRASAL:
        found = replace(found, reason="unlike an order", certain=False)
    return _doubt(_include_other_verbs(found, rest), said)


def _is_named_plainly(rest: tuple[str, ...]) -> bool:
    """Whether an object is a definite one, or holds a number, an address or a quotation."""
    return _is_exact(rest) or rest[0] in w.DETERMINERS


def _is_exact(words: tuple[str, ...]) -> bool:
    """Whether words hold a number, an address or a quotation."""
    return any(c.isdigit() or c == "." for word in words for c in word) or QUOTED in words


def _include_other_verbs(found: TaskIntent, rest: tuple[str, ...]) -> TaskIntent:
    """`list the zones and delete them` writes; `show order 15 and order 16` has said before what
    an order is.
    """
    for at, (before, word) in enumerate(pairwise(rest)):
        joined = before in ("and", ",", "or", "then") and word in w.WRITING_VERBS
        if joined and not {word, f"{word}s"} & {*rest[:at]}:
            return replace(found, access="write")
    return found


def _doubt(found: TaskIntent, said: Sentence) -> TaskIntent:
    """A request as less certain where something in it may mean that it is none."""
    words = said.words
    if _is_negated(words):
        return replace(found, reason="negated part", certain=False)
    if "if" in words and "whether" not in words and found.reason == "imperative":
        at = words.index("if")
        known = words[0] in ("check", "tell", "see", "find", "test", "verify", "determine", "show")
        if not known or at > 3:
            return replace(found, reason="condition", certain=False)
    if w.JOKING & {*words} or said.has_phrase(("or else", "if you dare", "or whatever")):
        return replace(found, reason="unlike an order", certain=False)
    if any(one == "when" and other in w.SUBJECTS for one, other in pairwise(words)):
        return replace(found, reason="condition", certain=False)
    if found.reason == "imperative" and {"but", "only", "approval"} & {*words}:
        return replace(found, reason="condition", certain=False)
    if {"unless", "until", "once", "pretend", "hypothetically"} & {*words}:
        return replace(found, reason="condition", certain=False)
    if w.DEFERRALS & {*words}:
        return replace(found, reason="deferred", certain=False)
    if w.ABSTRACT & {*words}:
        return replace(found, reason="figurative", certain=False)
    if found.reason == "imperative" and _is_object_deictic(words):
        return replace(found, reason="deictic", certain=False)
    if found.reason == "imperative" and (_has_main_verb(words) or _has_own_subject(words)):
        return replace(found, reason="unlike an order", certain=False)
    return found


def _is_object_deictic(words: tuple[str, ...]) -> bool:
    """Whether the object is a word that points at something: `delete it`, `show me that`."""
    at = 2 if words[1:2] in (("me",), ("us",)) else 1
    if at < len(words) and words[at] in w.PHRASAL:
        at += 1
    if at >= len(words):
        return True
    pointing = words[at] in w.DEICTIC
    following = words[at + 1] if at + 1 < len(words) else ""
    if following in ("one", "ones"):
        following = words[at + 2] if at + 2 < len(words) else ""
    alone = following in {"", ",", "and", "or", "to", "for", "in", "from", "again", *w.FINITE}
    return pointing and (words[at] in ("it", "them", "him", "her") or alone)


def _has_main_verb(words: tuple[str, ...]) -> bool:
    """Whether a finite verb follows that no clause word introduces: the first word was a noun."""
    introduced = False
    for word in words[1:]:
        introduced = introduced or word in w.SUBORDINATORS
        if word in w.FINITE and not introduced:
            return True
    return False


def _has_own_subject(words: tuple[str, ...]) -> bool:
    """Whether another sentence follows (`list the zones and you will see`), or the first word was a
    noun (`read receipts annoy me`).
    """
    for at, word in enumerate(words[1:], start=1):
        if word in w.SUBORDINATORS:
            return False
        if word in w.SUBJECTS and words[at - 1] not in ("for", "to", "of", "with", "by"):
            return True
    objects = len(words) > 2 and words[-1] in w.OBJECTS
    return objects and words[-2] not in ("for", "to", "of", "with", "by", "from", "near", "around")


def _classify_statement(said: Sentence) -> TaskIntent:
    """What is left: a statement, or a few words that name something."""
    first = said.get_word(0)
    verbs = (
        _has_main_verb(said.words) if _begins_with_things(said) else w.FINITE & {*said.words[1:]}
    )
    if first in w.PRONOUNS or verbs:
        wanted = first in ("i", "we") and said.has_phrase(("wondering if you could",))
        if wanted:
            return TaskIntent("command", "suggestion", False)
        return TaskIntent("remark", "statement")
    if _is_negated(said.words):
        if _begins_with_things(said) and {"not", "without"} & {*said.words}:
            return TaskIntent("command", "negated part", False, "read")
        return TaskIntent("remark", "negation")
    if _asks_for_list(said):
        return TaskIntent("command", "listing", False, "read")
    reads = said.words[-1] in _PLEASE or _begins_with_things(said)
    return TaskIntent("command", "terse", False, "read" if reads else None)


def _begins_with_things(said: Sentence) -> bool:
    """Whether words without a verb begin with things that there are: `the owner of dog 1`, `price
    of item 3`, or several: who wants some to be made says so, and `tickets assigned to Bob` are
    those that there are.
    """
    first = said.get_word(0)
    if first == "the" or (said.get_word(1) == "of" and first not in w.WRITING_VERBS):
        return True
    words = said.drop(1).words if first in ("all", "our", "my") else said.words
    return any(_ends_in_plural((word,)) and word not in w.WRITING_VERBS for word in words[:2])


def _are_things(words: tuple[str, ...]) -> bool:
    """Whether words are one thing in the plural, and what it is of: `orders`, `orders of Ada`."""
    end = next((at for at, word in enumerate(words) if word in _TELLING_WHICH), len(words))
    return 1 <= end <= 2 and _ends_in_plural(words[:end]) and not w.PAST & {*words}


_TELLING_WHICH = frozenset("of for in by from on with".split())


def _asks_for_list(said: Sentence) -> bool:
    """Whether words without a verb say that all of something is wanted: `berth list`, `all berths
    please`, `berths, all of them`.
    """
    polite = said.words[-1] in _PLEASE
    words = said.words[:-1] if polite else said.words
    listed = words[-1:] == ("list",) or said.has_phrase(("all of them", "the full list"))
    return listed or ((polite or words[:1] == ("all",)) and _ends_in_plural(words))


def _ends_in_plural(words: tuple[str, ...]) -> bool:
    """Whether the last word is a plural by its ending: of several things a list can be given."""
    last = words[-1] if words else ""
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def _is_negated(words: tuple[str, ...]) -> bool:
    """Whether a word behind the first negates; `the stop Castle` is a place."""
    return any(
        word in w.NEGATIONS and not (word == "stop" and before in w.ARTICLES)
        for before, word in pairwise(words)
    )
