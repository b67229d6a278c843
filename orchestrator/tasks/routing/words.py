"""English words and phrases that tell a request from a question, an opinion or a remark."""

from __future__ import annotations

from registry.search.words import VERBS
from sandbox.bundle.verbs import ACTS, COMMANDS, DESTROYING


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


READING_VERBS = _split(
    "analyse analyze browse calculate check compare compute convert count describe detect "
    "determine diff display download enumerate estimate examine extract fetch filter find get "
    "give grep "
    "identify inspect list locate lookup measure name parse ping preview print query rank read "
    "look report resolve retrieve return scan search see show sort sum summarise summarize tell "
    "total "
    "trace track translate validate verify view watch"
)
"""Verbs that ask for data."""
WRITING_VERBS = (
    ACTS
    | DESTROYING
    | (COMMANDS - {"method", "op", "cmd"})
    | _split(" ".join(VERBS[key] for key in ("create", "update", "delete")))
    | _split(
        "alert bring call hire lease rent download email forward hold issue mail message notify "
        "order park publish "
        "raise remind reserve share ship store subscribe text turn tweet withdraw write"
    )
) - READING_VERBS
"""Verbs that change something, or may."""
NOUNLIKE = _split(
    "detect fetch give identify measure name print rank report return review scan see sort sum "
    "total track view watch"
)
"""Verbs that are as often something else: they order something only where it is named plainly."""
DETERMINERS = _split(
    "the all every each any my our both these those last first latest current me us"
)
JOKING = _split("joke jokes joking kidding lol haha sarcasm satire")
PAST = _split(
    "lost went came took made gave got saw left broke fell ran won sent felt became began kept "
    "bought "
    "wrote said told asked thought knew did had was were yesterday"
)
"""First words of what is over: `lost my booking`, `yesterday I …`."""
PRAISE = _split(
    "thanks thank great nice good awesome bravo congrats congratulations sorry wow damn"
)
PHRASAL = _split("up for at into out through over")
"""Particles that follow a reading verb: look up, search for, check out."""

MAKING = _split(
    "assemble author build code craft create design develop forge generate implement make "
    "prepare produce program prototype scaffold write"
)
FORGING = _split("build code develop forge implement program prototype scaffold write")
"""Verbs behind which `server` can only be one that is written, not one that is rented."""
ARTICLES = _split(
    "a an another new one some the my our your its their his her this that these those"
)
TOOL_NOUNS = _split("tool tools connector integration wrapper mcp toolset adapter plugin")
CLAUSES = _split(
    "that which to for from of out around who able capable wrapping using so with on in by over "
    "about against"
)

POLITE = _split(
    "also alright and finally first good greetings hello hey hi howdy just kindly next now ok okay "
    "please pls plz quick quickly simply so then toolwright well yo"
)
POLITE_PHRASES = _split_lines(
    """
    as soon as possible
    be so kind as to
    be sure to
    do me a favour and
    do me a favor and
    feel free to
    for me
    go ahead and
    go and
    good afternoon
    good evening
    good morning
    help me out and
    help me to
    help me
    if possible
    if you can
    if you could
    if you would
    if you please
    i would be grateful if you could
    i would appreciate it if you could
    make sure to
    thank you
    thanks
    when you can
    when you have a moment
    would you mind
    """
)
THANKS = _split("thanks thank you cheers please ta much very a lot in advance many so again")

WISHES = _split_lines(
    """
    i would like you to
    i would like to
    i'd like you to
    i'd like to
    i want you to
    i want to
    i need you to
    i need to
    i wish to
    i would love to
    i'd love to
    i have to
    we would like to
    we'd like to
    we want to
    we need to
    we need you to
    we want you to
    i am trying to
    i'm trying to
    i am looking to
    """
)
"""What stands before the verb of a wish."""
WISHED_THINGS = _split_lines(
    """
    i would like
    i'd like
    i want
    i need
    we would like
    we'd like
    we want
    we need
    i am looking for
    i'm looking for
    we are looking for
    we're looking for
    """
)
KNOWING = _split("see know find get have view check list show look read hear learn receive obtain")
"""Verbs of a wish to be told something."""

AUXILIARIES = _split(
    "is are was were am do does did has have had will would shall should can could may might must "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't won't wouldn't shan't "
    "shouldn't can't couldn't mustn't what's who's where's when's how's which's"
)
OPINION_AUXILIARIES = _split(
    "should would shall may might must shouldn't wouldn't mustn't couldn't"
)
NEGATIONS = _split(
    "no not never don't dont doesn't didn't isn't aren't wasn't weren't can't cannot couldn't "
    "shouldn't wouldn't won't mustn't haven't hasn't hadn't neither nor nobody nothing none "
    "without avoid refrain ain't stop"
)
SUBORDINATORS = _split(
    "that which who whom whose where when whether if what why how while because since as than "
    "until before after unless though although"
)
FINITE = AUXILIARIES - _split("do have may will") | _split(
    "am says said told asked asks wants wanted thinks thought knows knew means meant seems seemed "
    "went came took made gave got saw left broke fell ran won lost sent felt became began kept "
    "sailed feels looks goes comes hates loves needs keeps remains belongs i'm we're you're "
    "they're it's he's she's there's that's i've we've you've they've i'll we'll you'll they'll "
    "i'd we'd"
)
PRONOUNS = _split(
    "i we you he she they it there someone somebody everyone everybody nobody anyone anybody "
    "nothing everything something i'm we're you're they're it's he's she's there's that's i've "
    "we've you've they've i'll we'll you'll they'll it'll he'll she'll i'd we'd you'd they'd "
    "he'd she'd"
)
DEICTIC = _split("it this that them these those him her everything something nothing anything one")
"""Objects that name nothing by themselves."""
HYPOTHESES = _split(
    "suppose supposing imagine assume assuming pretend hypothetically theoretically unless whether "
    "lest were had wish perhaps maybe possibly presumably provided"
)
HYPOTHETICAL_PHRASES = _split_lines(
    """
    in theory
    in a hypothetical
    let's say
    let us say
    lets say
    say we
    say i
    say you
    as if
    what if
    in case
    """
)
LABELS = _split(
    "todo note notes fyi reminder eg e.g e.g. example quote psa fwiw imo imho btw tbh tldr subject "
    "re fw fwd ps p.s"
)
LABEL_PHRASES = _split_lines(
    """
    for example
    for instance
    note to self
    by the way
    in my opinion
    to be honest
    as they say
    as the saying goes
    """
)
REPORTING = _split_lines(
    """
    as the saying goes
    he said
    he says
    people say
    said he
    said she
    said the
    she said
    she says
    so they say
    they say
    """
)
"""What tells that somebody else said it."""
OBJECTS = _split("me us him them you")
SUBJECTS = _split(
    "i we you he she they you'll you're you've i'll i'm i've we'll we're they'll they're"
)
ADVISING = _split(
    "advise advice argue brainstorm consider debate discuss elaborate explain guess help justify "
    "opine ponder propose recommend remember suggest teach think understand walk"
)
"""Verbs that ask for words about something and not for its data."""
ADVICE_PHRASES = _split_lines(
    """
    a good idea
    a bad idea
    a way to
    any way to
    best approach
    best practice
    best practices
    best way
    better to
    better way
    good way
    how best
    how come
    how do i
    how do we
    how do you
    how does one
    how to
    is it okay to
    is it ok
    is it possible
    is it safe
    is it wise
    it make sense
    make sense to
    makes sense to
    most efficient way
    pros and cons
    recommended way
    right way
    the difference between
    the point of
    the purpose of
    what happens if
    what happens when
    what would happen
    what will happen
    what do you
    what should
    which should
    who should
    when should
    where should
    worth it
    any point
    any use
    any good
    any chance
    worth the
    your advice
    your opinion
    your recommendation
    your thoughts
    your view
    step by step
    the steps to
    instructions for
    instructions to
    """
)
RETRACTIONS = _split_lines(
    """
    actually don't
    actually no
    changed my mind
    disregard that
    don't bother
    forget about it
    forget it
    forget that
    jk
    just joking
    just kidding
    kidding aside
    never mind
    nevermind
    no wait
    not really
    on second thought
    on second thoughts
    only joking
    only kidding
    or rather not
    scratch that
    wait no
    """
)
DEFERRALS = _split("later someday eventually afterwards soon sometime")
ABSTRACT = _split(
    "meaning world needle regrets excuses life odds worth stars blame career future past "
    "childhood anger "
    "blessings closure comfort courage destiny dignity dreams faith forgiveness happiness "
    "heart hope joy karma love luck mercy mind patience peace respect sanity soul strength "
    "truth wisdom wits way courageously attitude backbone feelings friends happiness limits"
)
"""Objects that no interface has."""
ABILITY_VERBS = _split(
    "access do handle help integrate manage speak support talk understand use work be connect deal "
    "cope remember learn think feel live believe imagine"
)
ASKING_FOR = _split("you")
DEFINITE = _split(
    "the my our your its their his her this all every each me us any what which who when where "
    "how if whether please current latest last today's"
)
"""Words that make a request of `can you VERB …?`: what is asked about is a definite thing."""
