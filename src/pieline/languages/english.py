"""English data for matching PIEs and reading answers."""

from pieline.languages.language import AnswerWords, Language, parse_forms, texts, words

# Normalization removes apostrophes: "someone's" becomes "someones".
_LIGHT = words(
    """
    a an the this that these those
    i me my mine you your yours he him his she her hers it its we us our ours they them their
    theirs myself yourself himself herself itself ourselves yourselves themselves
    one ones oneself someone someones somebody somebodys something somethings
    im youre hes shes were theyre isnt arent wasnt werent thats theres
    be am is are was been being will would shall should can could may might must
    """
)
LANGUAGE = Language(
    name="english",
    label="English",
    code="en",
    light_words=_LIGHT,
    stop_words=_LIGHT
    | words(
        """
        have has had having do does did done doing dont doesnt didnt havent hasnt hadnt cant
        cannot couldnt wont wouldnt shouldnt ive youve weve theyve id youd hed wed theyd youll
        theyll lets whats whos
        about above across after against along among around as at before behind below
        between beyond by during for from in inside into of on onto outside over
        past since than through till to together toward towards under until upon with within
        without
        and but if nor or so then there here when where which while who whom whose what why how
        because though although not no too very just
        """
    ),
    # Normalization makes "she'll" look like "shell", so these contractions count as particles.
    particles=words("away back down off out up hell ill shell well"),
    quantifiers=words(
        """
        all another any both each either enough every few less many more most much neither none
        other others several some such
        again almost also already ever even instead only still yet
        """
    ),
    light_verbs=words("become come feel get give go have keep look make put remain seem stay take"),
    supporting=words(
        """
        absolutely bit completely just little lot much only quite rather really right simply so too
        totally very
        as like
        """
    ),
    bound_words=words(
        """
        amok bated behest dint dudgeon figment haywire kibosh kilter loggerheads offing petard
        riddance shrift smithereens tenterhooks throes umbrage
        """
    ),
    irregular=parse_forms(
        """
        bear/bore/born bend/bent bite/bit break/broke develop/developed drink/drunk feel/felt
        go/gone leave/left ring/rung rise/rose shake/shook shoot/shot smell/smelt spell/spelt
        swear/swore think/thought win/won wind/wound
        fantasy/fantasies leaf/leaves life/lives sky/skies
        """
    ),
    endings=(
        (r"(?<!e)(?:ing|ed)", "e"),
        # Avoid "cared" -> "car": "car" would double its single consonant after a single vowel.
        (r"([^aeiou]{2}|[aeiou]{2}[^aeiou]|er|[wxy])(?:ing|ed)", r"\1"),
        (r"([^aeiou])\1(?:ing|ed)", r"\1"),
        (r"(s|x|z|ch|sh)es", r"\1"),
        (r"(?<!s)s", ""),
    ),
)
ANSWERS = AnswerWords(
    idioms=words("idiom idioms"),
    expressions=words("expression expressions phrase phrases saying sayings proverb proverbs"),
    figurative=words(
        "idiomatic idiomatically figurative figuratively metaphor metaphors metaphorical"
        " metaphorically nonliteral nonliterally"
    ),
    literal=words("literal literally nonidiomatic nonfigurative"),
    uses=words("use uses usage usages language way speech"),
    meanings=words("meaning meanings sense senses"),
    rejected=words(
        "rejected excluded discarded dismissed ruled concrete compositional lit wrong incorrect"
    ),
    candidates=words("candidate candidates potential potentially possible possibly pie pies"),
    answers=words(
        "answer answers result results output response json choice chosen selected selection final"
        " best correct corrected revised"
    ),
    sentences=words("sentence text context input"),
    negations=words(
        """
        no not none nothing without never cannot cant couldnt doesnt dont didnt isnt arent wasnt
        werent hasnt havent rather instead
        """
    ),
    nothing=texts(
        "none/null/nil/nothing/n a/na/not applicable/none found/none detected/none identified"
        "/none present/not found/not present/not identified/not detected/there isnt one"
        "/there is none/no pie/no pies/empty/0"
    ),
    yes=words("yes true"),
    no=words("no false"),
    fillers=words(
        """
        there theres is are was were be been being it its this that these those here the a an any
        of in within from to as with by or and than i im we you can could do does did has have
        contain contains contained include includes present found find identify identified detect
        detected extracted see appear appears exist exists used using given provided following
        above list names named meant such clear obvious actual real words word so therefore thus
        most certain english german italian spanish marked tagged labeled labelled recognized
        recognised highlighted spotted flagged annotated
        """
    ),
    contrast=words(
        "but however although though yet except besides apart only unless while whereas still"
    ),
    others=words("other others another further additional more else apart besides aside"),
    counts=texts("count/total/number of/num"),
    revises=texts(
        "correction/wait/hold on/hmm/oops/sorry/i apologize/my mistake/my apologies"
        "/on second thought/on reflection/upon reflection/on closer inspection/scratch that/my bad"
        "/let me correct/let me revise/i stand corrected/i take it back/i take that back"
    ),
    clarifies=texts("actually/edit/update"),
    errors=texts("wrong/incorrect/mistaken/made a mistake/made an error"),
    corrects=words("correct corrected right revised should instead better"),
    general=words(
        """
        can could may might would usual usually normal normally often frequently sometimes common
        commonly typical typically general generally known familiar popular otherwise elsewhere
        """
    ),
    actual=words("real actual physical physically concrete genuine"),
    here=words("here case"),
)
