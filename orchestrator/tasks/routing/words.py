"""English words and phrases that tell a request from a question, an opinion or a remark."""

from __future__ import annotations

from registry.search.words import VERBS
from sandbox.bundle.verbs import ACTS, COMMANDS, DESTROYING


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


READING_VERBS = _split(
    "analyse analyze browse calculate check compare compute convert count describe detect determine "
    "diff display download enumerate estimate examine extract fetch filter find get give grep "
    "identify inspect list locate lookup measure name parse ping preview print query rank read "
    "report resolve retrieve return scan search see show sort sum summarise summarize tell total "
    "trace track translate validate verify view watch"
)
"""Verbs that ask for data."""
WRITING_VERBS = (
    ACTS
    | DESTROYING
    | (COMMANDS - {"method", "op", "cmd"})
    | _split(" ".join(VERBS[key] for key in ("create", "update", "delete")))
    | _split(
        "alert bring call download email forward hold issue mail message notify order park publish "
        "raise remind reserve share ship store subscribe text turn tweet withdraw write"
    )
) - READING_VERBS
"""Verbs that change something, or may."""
PHRASAL = _split("up for at into out through over")
"""Particles that follow a reading verb: look up, search for, check out."""

MAKING = _split(
    "assemble author build code craft create design develop forge generate implement make "
    "prepare produce program prototype scaffold write"
)
FORGING = _split("build code develop forge implement program prototype scaffold write")
"""Verbs behind which `server` can only be one that is written, not one that is rented."""
ARTICLES = _split("a an another new one some the my our your its their his her this that these those")
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
OPINION_AUXILIARIES = _split("should would shall may might must shouldn't wouldn't mustn't couldn't")
NEGATIONS = _split(
    "no not never don't dont doesn't didn't isn't aren't wasn't weren't can't cannot couldn't "
    "shouldn't wouldn't won't mustn't haven't hasn't hadn't neither nor nobody nothing none without "
    "avoid refrain ain't stop"
)
SUBORDINATORS = _split(
    "that which who whom whose where when whether if what why how while because since as than "
    "until before after unless though although"
)
FINITE = AUXILIARIES - _split("do have may will") | _split(
    "am says said told asked asks wants wanted thinks thought knows knew means meant seems seemed "
    "went came took made gave got saw left broke fell ran won lost sent felt became began kept "
    "sailed feels looks goes comes hates loves needs keeps remains belongs i'm we're you're they're "
    "it's he's she's there's that's i've we've you've they've i'll we'll you'll they'll i'd we'd"
)
PRONOUNS = _split(
    "i we you he she they it there someone somebody everyone everybody nobody anyone anybody "
    "nothing everything something i'm we're you're they're it's he's she's there's that's i've we've "
    "you've they've i'll we'll you'll they'll it'll he'll she'll i'd we'd you'd they'd he'd she'd"
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
    "balance blessings closure comfort courage destiny dignity dreams faith forgiveness happiness "
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
IDIOMS = _split_lines(
    """
    a can of worms
    all hands on deck
    any port in a storm
    at the end of the day
    balls in your court
    batten down
    beat around the bush
    beat the clock
    bite the bullet
    break a leg
    break the bank
    break the ice
    bring home the bacon
    broken record
    burn bridges
    burn our bridges
    burn the midnight oil
    burn your bridges
    bury the hatchet
    buy time
    by the book
    call it a day
    call it a night
    call it quits
    call the shots
    cast a wide net
    catch my drift
    check it out
    check out of life
    check you out
    check your ego
    check your privilege
    check yourself
    clear the air
    clear the decks
    clear your head
    clear your mind
    close call
    close ranks
    close that chapter
    close the book on
    close the chapter
    close that door
    compare apples
    cook the books
    count me in
    count me out
    count on me
    count sheep
    count the ways
    count your blessings
    count your chickens
    cross that bridge
    cut corners
    cut it out
    cut me some slack
    cut our losses
    cut to the chase
    delete that from your
    delete it from your mind
    draw a blank
    draw a line under
    draw the line
    drop anchor
    drop dead
    drop it
    drop the act
    drop the ball
    drop the mic
    drop the subject
    fall off the wagon
    find a way
    find closure
    find common ground
    find fault
    find it hard
    find my feet
    find my way
    find out the hard way
    find our way
    find your feet
    find your way
    find yourself
    fix your heart
    get a grip
    get a life
    get a room
    get a move on
    get cracking
    get going
    get it together
    get lost
    get on board
    get out of here
    get out of my
    get over it
    get real
    get rid of the attitude
    get the ball rolling
    get the hint
    get the message
    get the picture
    get the point
    get the show on the road
    get to the point
    get well
    get your act together
    get your ducks
    get your head
    give it a rest
    give me a break
    give me a hand
    give me a minute
    give me a moment
    give me a second
    give me strength
    give peace a chance
    give them a wide berth
    give him a wide berth
    give her a wide berth
    give it a wide berth
    give up
    give us a break
    go down with the ship
    go with the flow
    hang in there
    harbour a grudge
    harbor a grudge
    harbour doubts
    harbor doubts
    harbour resentment
    harbor resentment
    hit the books
    hit the brakes
    hit the ground running
    hit the nail
    hit the road
    hit the sack
    hold the fort
    hold the line
    hold your breath
    hold your horses
    in a perfect storm
    in the same boat
    jump ship
    jump the gun
    jump the shark
    keep an eye on
    keep calm
    keep it up
    keep the faith
    keep your chin up
    keep your powder dry
    kick the bucket
    kick the can
    let bygones
    let it be
    let it go
    let me think
    let off steam
    let that sink in
    let the cat out
    let the chips
    light at the end
    look alive
    look at it this way
    look at the bright side
    look before you leap
    look me in the eye
    look on the bright side
    look out
    look sharp
    look who's talking
    loose lips
    make a scene
    make a wish
    make amends
    make ends meet
    make hay
    make it so
    make it work
    make love
    make my day
    make peace
    make up my mind
    make up your mind
    make waves
    mark my words
    measure twice
    mind your own
    miss the boat
    missed the boat
    move heaven and earth
    move mountains
    move on with
    move the goalposts
    move the needle
    name names
    name your poison
    off the record
    on thin ice
    open a can of
    open doors
    open old wounds
    open pandora
    open that door
    open the floodgates
    open your eyes
    open your heart
    open your mind
    paint the town
    pass the buck
    pass the torch
    pay attention
    pay lip service
    pay the piper
    pay the price
    pay your dues
    pay your respects
    perfect storm
    pick your battles
    pick your poison
    plain sailing
    play it by ear
    play the long game
    play your cards
    port in a storm
    pull a rabbit
    pull strings
    pull the plug
    pull the rug
    pull the strings
    pull yourself together
    pull your weight
    push the envelope
    push my buttons
    push your luck
    put a pin in
    put a sock in
    put it to bed
    put out fires
    put that to bed
    rain check
    rain on my parade
    rain or shine
    raise the bar
    raise the roof
    raise your game
    read between the lines
    read em and weep
    read my lips
    read my mind
    read the fine print
    read the room
    read the tea leaves
    reset the clock on
    ride out the storm
    ride the wave
    ring a bell
    rock the boat
    roll the dice
    roll with the punches
    run a tight ship
    run aground
    run circles
    run for the hills
    run for your life
    run out of steam
    run rings
    run the gauntlet
    run with it
    safe harbour
    safe harbor
    save face
    save the day
    save your breath
    save your skin
    save yourself
    search high and low
    search me
    search my soul
    search our souls
    search your heart
    search your soul
    see eye to eye
    see fit
    see if i care
    see red
    see the light
    see you
    see ya
    seize the day
    send a message to the world
    send good vibes
    send in the clowns
    send shivers
    send thoughts and prayers
    set sail
    set the bar
    set the record straight
    set the stage
    set the table
    set the tone
    set the world on fire
    settle the score
    shake a leg
    ship has sailed
    ship it
    shoot the breeze
    shoot the messenger
    show me the money
    show me the ropes
    show must go on
    show some
    show them who
    show your true colors
    show your true colours
    show who's boss
    show up
    sink or swim
    sleep on it
    smell the roses
    smooth sailing
    speak of the devil
    spill the beans
    spill the tea
    start from scratch with
    start over
    start with a clean slate
    stay the course
    steady the ship
    steal the show
    steer clear
    stem the tide
    stick to your guns
    stop the bleeding
    stop the madness
    stop the presses
    stop the world
    sugar the pill
    take a back seat
    take a bow
    take a breather
    take a deep breath
    take a hike
    take a rain check
    take a seat
    take a step back
    take a walk
    take care
    take it easy
    take it or leave it
    take it with a grain
    take one for the team
    take the bull
    take the cake
    take the helm
    take the high road
    take the plunge
    take the reins
    take your time
    talk of the devil
    tell a story
    tell it like it is
    tell it to the
    tell me about it
    tell me another
    tell me lies
    tell tales
    tell that to
    the boat has sailed
    the chips fall
    throw caution
    throw in the towel
    throw me a bone
    throw shade
    tie the knot
    tie up loose ends
    tighten your belt
    time flies
    tip of the iceberg
    toe the line
    touch base
    touch wood
    trim the fat
    trim the sails
    turn a blind eye
    turn a corner
    turn back the clock
    turn heads
    turn over a new leaf
    turn the corner
    turn the other cheek
    turn the page
    turn the tables
    turn the tide
    under the weather
    walk the line
    walk the plank
    walk the talk
    watch it
    watch out
    watch paint dry
    watch this space
    watch your back
    watch your mouth
    watch your step
    watch your tone
    wave goodbye
    weather any
    weather the storm
    wide berth
    wipe that smile
    wipe the floor
    wipe the slate
    you name it
    zone out
    """
)
"""Phrases that are seldom meant as they stand."""
