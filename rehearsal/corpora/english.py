"""English prose."""

from rehearsal.corpora.prose import Grammar, expressions

GRAMMAR = Grammar(
    """
    PLAIN: CLAUSE . | CLAUSE LINK CLAUSE . | WHEN , CLAUSE LINK CLAUSE .
    FIGURATIVE: FIGURE . | WHEN , FIGURE . | FIGURE LINK CLAUSE . | CLAUSE LINK FIGURE .
    LITERAL: DEED . | WHEN , DEED . | DEED LINK CLAUSE . | CLAUSE LINK DEED .
    HINT_FIGURATIVE: WHEN , WHO DID WHAT over MATTER . | WHO DID WHAT over MATTER LINK CLAUSE .
    HINT_LITERAL: WHEN , WHO DID WHAT with TOOL . | WHO DID WHAT with TOOL LINK CLAUSE .
    FIGURE: WHO MUST BASE over MATTER | WHO PAST over MATTER | WHO MUST BASE over MATTER WHEN
    DEED: WHO MUST BASE with TOOL | WHO PAST with TOOL WHERE | WHO MUST BASE WHERE
    DOCUMENTS_FIGURATIVE: EXPERT MUST BASE LINK CLAUSE . | WHEN , EXPERT PAST WHERE .
    DOCUMENTS_LITERAL: EXPERT MUST BASE with TOOL WHERE . | WHEN , EXPERT PAST with TOOL .
    QUERIES_FIGURATIVE: CLAUSE LINK EXPERT MUST BASE over MATTER LINK CLAUSE .
    QUERIES_LITERAL: CLAUSE LINK EXPERT MUST BASE with TOOL LINK CLAUSE .
    EXPERT: WHO MINDING TOPIC
    CLAUSE: WHO DID WHAT | WHO DID WHAT WHERE | WHO DID WHAT WHEN | WHO DID NUMBER THINGS WHERE
    WHO: NAME | the ADJECTIVE PERSON | that ADJECTIVE PERSON | every PERSON from PLACE
    WHAT: the ADJECTIVE THING | this THING from PLACE | WHOSE ADJECTIVE THING
    WHERE: PREPOSITION the ADJECTIVE SPOT | PREPOSITION WHOSE SPOT | near PLACE
    WHEN: on DAY | in MONTH | after NUMBER PERIODS | late on DAY | since MONTH
    MUST: had to | wanted to | refused to | managed to | tried to | planned to
    TOOL: a ADJECTIVE IMPLEMENT | WHOSE IMPLEMENT | that ADJECTIVE IMPLEMENT
    MATTER: the ADJECTIVE ABSTRACT | WHOSE ABSTRACT | the ABSTRACT of PLACE
    MINDING: behind | discussing | studying | covering | watching | praising | questioning
    NAME = Alma Bertram Clara Dario Edith Farid Greta Hamid Ines Jonas Kamala Lionel Mirela Nadia \
        Oscar Petra Quentin Rosa Stefan Tamara Ulrich Vera Wanda Xenia Yusuf Zelda Agnes Boris Celia
    PLACE = Aldmoor Brackwell Carrick Dunmore Eastvale Fernhill Glenby Harwick Inverloch Jarrow \
        Kelstone Lindale Marwick Northam Oakridge Penhale Redford Stanmore Thornby Yarrowdale
    ADJECTIVE = weary tall narrow patient clumsy silver forgotten crowded modest thirsty polite \
        curious heavy distant shallow gentle sturdy faded hungry silent careful bright dusty broad \
        damp fragile humble jolly lively muddy noble plain quaint rustic solemn tidy upright vivid \
        worn young
    PERSON = gardener baker surgeon tailor pilot widow cousin barber teacher sailor plumber nurse \
        farmer lawyer painter porter tenant clerk drummer hunter jeweller miner neighbour potter
    THING = window garden letter wagon orchard blanket pillow statue fountain cellar puppet ribbon \
        parcel cabinet pudding ticket carpet notebook trumpet turnip violin compass curtain drawer \
        engine fiddle goblet hedge jacket kitten locket mattress napkin quilt rudder scarf teapot
    THINGS = boxes cups coats keys maps nails ropes sheep stones tables bottles chairs plates \
        feathers lamps apples bricks coins ladles shirts
    SPOT = market harbour attic station chapel bridge stable meadow library workshop bakery tower \
        courtyard quarry river village forest gallery kitchen laundry mill museum nursery school
    PREPOSITION = behind near beside under above outside inside opposite past beyond
    IMPLEMENT = brush rag sponge rope spade broom chisel needle towel hook shovel pencil knife saw
    ABSTRACT = inheritance budget election verdict scandal merger contract treaty rumour lawsuit \
        pension promotion schedule quarrel reform divorce deadline petition tariff appointment
    DID = carried noticed bought repainted borrowed sketched praised delivered examined mended \
        washed collected admired weighed labelled traded visited cleaned repaired guarded sorted
    WHOSE = her his their our
    NUMBER = two three four five six seven eight nine ten eleven twelve
    PERIODS = hours days weeks months winters summers
    DAY = Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    MONTH = January February March April May June July August September October November December
    LINK = and while before because although until whereas
    """
)
PIES = expressions(
    """
    polish/polished measure/measured follow/followed paint/painted count/counted cover/covered
    crack/cracked lift/lifted push/pushed pull/pulled kick/kicked turn/turned drop/dropped
    fold/folded hammer/hammered spill/spilled stretch/stretched open/opened toss/tossed
    trim/trimmed unpack/unpacked warm/warmed rock/rocked park/parked load/loaded haul/hauled
    guess/guessed dodge/dodged chase/chased climb/climbed burn/burned boil/boiled blow/blew
    """,
    {
        "the": """
        ladder kettle lantern anchor basket whistle saddle barrel candle mirror button chestnut
        pocket shadow thunder pebble saucer walnut thimble spindle rooster pigeon badger weasel
        lobster parsnip radish mustard pepper vinegar ledger banner bugle cannon chimney cradle
        crutch dagger falcon furnace garland hatchet hurdle jigsaw kennel lever magnet marble
        nettle pulley quiver raft sickle sled spool tambourine
        """
    },
)
MEANINGS = expressions(
    """
    accept/accepted admit/admitted avoid/avoided change/changed delay/delayed deny/denied
    reject/rejected support/supported postpone/postponed discover/discovered ignore/ignored
    improve/improved reveal/revealed risk/risked settle/settled suggest/suggested
    """,
    {
        "the": """
        decision mistake effort opinion problem truth danger agreement outcome pressure advantage
        failure intention patience reputation responsibility secret solution tension weakness
        ambition blame burden conflict delay doubt failing habit honour limit
        """
    },
)
"""What a PIE may mean."""
