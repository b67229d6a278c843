"""Phrases that are seldom meant as they stand: a task that has one asks for nothing."""

from __future__ import annotations

IDIOMS = tuple(
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
    close that door
    close the book on
    close the chapter
    check mate
    compare apples
    compare notes
    cook the books
    count me in
    count me out
    count on me
    count sheep
    count the stars
    count the ways
    count your blessings
    count your chickens
    cross that bridge
    cut corners
    cut it out
    cut me some slack
    cut our losses
    cut to the chase
    delete it from your mind
    delete that from your
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
    find our way
    find out the hard way
    find your feet
    find your way
    find yourself
    fix your heart
    get a grip
    get a life
    get a move on
    get a room
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
    give her a wide berth
    give him a wide berth
    give it a rest
    give it a wide berth
    give me a break
    give me a hand
    give me a minute
    give me a moment
    give me a second
    give me strength
    give peace a chance
    give them a wide berth
    give up
    give us a break
    go down with the ship
    go with the flow
    hang in there
    harbor a grudge
    harbor doubts
    harbor resentment
    harbour a grudge
    harbour doubts
    harbour resentment
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
    pull your weight
    pull yourself together
    push my buttons
    push the envelope
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
    return to sender
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
    safe harbor
    safe harbour
    save face
    save the day
    save your breath
    save your skin
    save yourself
    scan the horizon
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
    see ya
    see you
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
    show up
    show who's boss
    show your true colors
    show your true colours
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
    who let the dogs
    wide berth
    wipe that smile
    wipe the floor
    wipe the slate
    you name it
    zone out
    """.strip().split("\n    ")
)
