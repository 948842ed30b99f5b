"""Italian data for matching PIEs and reading answers."""

from pieline.languages.language import AnswerWords, Language, parse_forms, texts, words

# Elided words are listed without their apostrophe: "l" for "l'".
_LIGHT = words(
    """
    il lo la i gli le l un uno una
    questo questa questi queste quest quello quella quelli quelle quel quell quei quegli
    io tu lui lei noi voi loro mi ti si ci vi ne li me te se sé ce ve glielo gliela glieli gliele
    gliene m t s c v n
    mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra
    vostri vostre proprio propria propri proprie altrui
    qualcuno qualcuna qualcosa
    essere essendo sono sei è siamo siete ero eri era eravamo erano fu furono sarò sarai sarà
    saranno sarebbe sarebbero sia siano fosse fossero stato stata stati state
    stare stando sto stai sta stiamo stanno stavo stava stavano stette starà stia
    potere posso puoi può possiamo possono poteva potevano potrà potrebbe
    dovere devo devi deve dobbiamo devono doveva dovevano dovrà dovrebbe
    volere voglio vuoi vuole vogliamo vogliono voleva volevano vorrei vorrebbe
    """
)
_CLITICS = "(?:[mtscv]e|glie)?(?:[mtscv]i|l[oaie]|gli|ne)"
LANGUAGE = Language(
    name="italian",
    label="Italian",
    code="it",
    light_words=_LIGHT,
    stop_words=_LIGHT
    | words(
        """
        avere avendo avuto ho hai ha abbiamo avete hanno avevo aveva avevano ebbe ebbero avrò avrà
        avranno avrebbe abbia abbiano avesse avessero
        a ad al allo alla ai agli alle all di del dello della dei degli delle dell d da dal dallo
        dalla dai dagli dalle dall in nel nello nella nei negli nelle nell con col coi sul sullo
        sulla sui sugli sulle sull per tra fra
        contro davanti dopo durante fino oltre prima presso senza verso
        e ed o ma né anche che chi cui come quando dove perché mentre però poi quindi
        non mai più già ancora molto troppo così tanto
        """
    ),
    particles=words("dentro dietro fuori giù sopra sotto su via"),
    quantifiers=words(
        """
        tutto tutta tutti tutte ogni ognuno ognuna ciascuno ciascuna entrambi entrambe ambedue
        altro altra altri altre alcuno alcuna alcuni alcune certi certe parecchio parecchia
        parecchi parecchie poco poca pochi poche molta molti molte tanta tanti tante troppa troppi
        troppe vari varie diversi diverse qualche qualsiasi qualunque nessun nessuno nessuna
        abbastanza appena circa quasi solo soltanto invece addirittura perfino persino
        adesso ora allora sempre spesso subito ormai oggi ieri domani
        """
    ),
    light_verbs=words(
        "andare dare fare lasciare mettere portare prendere restare rimanere tenere venire"
    ),
    bound_words=words(
        """
        bizzeffe carlona casaccio catinelle chetichella crepapelle iosa repentaglio
        solluchero soqquadro squarciagola tentoni vanvera visibilio zonzo
        """
    ),
    irregular=parse_forms(
        """
        a/ad/al/allo/alla/ai/agli/alle/all di/d/del/dello/della/dei/degli/delle/dell
        da/dal/dallo/dalla/dai/dagli/dalle/dall in/nel/nello/nella/nei/negli/nelle/nell
        su/sul/sullo/sulla/sui/sugli/sulle/sull con/col/coi e/ed
        andare/vai aprire/aperto/aperta/aperti/aperte chiudere/chiuse/chiusa/chiusi chiedere/chiese
        correre/corse/corsa cuocere/cotto/cotta/cotti dare/dai/dammi dire/dimmi
        fare/fammi/fatti/faccia mettere/messe/messa mordere/morso
        muovere/mosse/mossa nascondere/nascoste perdere/perse/persi/persa/perso piangere/pianse
        porre/posto/posta/poste prendere/prese/presa/presi rendere/resa/rese rompere/rotta/rotti
        scoprire/scoperto/scoperta/scoperte stringere/stretto/stretta/strette uscire/esca/usci
        bello/bel/bei/begli/bell buono/buon grande/gran santo/san/sant
        """
    ),
    # Participles, which the dictionary may list as nouns; infinitives without their final vowel,
    # alone or before pronouns; regular gerunds before pronouns; third person present.
    endings=(
        (r"at[oaie]", "are"),
        (r"ut[oaie]", "ere"),
        (r"it[oaie]", "ire"),
        # Require two letters before the vowel: "per" in "persi" is not an infinitive.
        (rf"((?<=..)[aei]r|\b[df][ai]r)(?:{_CLITICS})?", r"\1e"),
        (rf"ando{_CLITICS}", "are"),
        (rf"endo{_CLITICS}", "ere"),
        (r"a(?:no)?", "are"),
    ),
    elides=True,
)
ANSWERS = AnswerWords(
    # "modo di dire" is identified by its last word.
    idioms=words("idiotismo idiotismi idiomatismo idiomatismi idiomi dire"),
    expressions=words(
        "espressione lespressione espressioni locuzione locuzioni proverbio proverbi"
    ),
    figurative=words(
        """
        idiomatico idiomatica idiomatici idiomatiche figurato figurata figurati figurate
        figurativo figurativa figurativi figurative metafora metafore metaforico metaforica
        """
    ),
    literal=words("letterale letterali letteralmente"),
    uses=words("uso linguaggio modo modi"),
    meanings=words("significato significati senso"),
    rejected=words(
        "rifiutato rifiutati rifiutate scartato scartati scartate escluse esclusi proprio"
    ),
    candidates=words("candidato candidata candidati candidate possibile possibili potenziali"),
    answers=words("risposta risultato risultati scelta scelto finale"),
    sentences=words("frase testo contesto"),
    negations=words("non senza anziché"),
    concord=words("nessun nessuno nessuna niente nulla"),
    nothing=texts(
        "nessuno/nessuna/niente/nulla/non applicabile/non presente/nessuno trovato/nessuna trovata"
        "/non trovato/non trovata/non rilevato/vuoto/vuota"
    ),
    yes=words("sì si vero"),
    no=words("no falso"),
    fillers=words(
        """
        ci cè vi sono è era in nel nella questo questa questi il lo la i gli le un uno una di del
        della dei degli delle e o che si qui alcun alcuna alcuno contiene contengono presente
        presenti trovo trovato trovata trovati trovate rilevato rilevata rilevati rilevate
        individuato individuata identificato identificata identificati identificate usato usata
        usati usate ho ha data dato fornita fornito quindi parole modo modi più certa
        marcato marcati marcate segnalato segnalati segnalate segnato evidenziato evidenziati
        evidenziate riconosciuti riconosciute
        """
    ),
    contrast=words("ma però tuttavia sebbene eccetto tranne solo mentre"),
    others=words("altri altre altro altra ulteriori"),
    counts=texts("numero di/numero"),
    revises=texts(
        "correzione/aspetta/ops/scusa/scusate/mi scuso/ripensandoci/mi correggo"
        "/rettifico/ho sbagliato/errata corrige/pardon/chiedo scusa/un momento"
    ),
    clarifies=texts("in realtà/anzi"),
    errors=texts("sbagliato/sbagliata/errato/errata/commesso un errore"),
    corrects=words("corretto corretta giusto giusta dovrebbe invece"),
    general=words(
        """
        può potrebbe sarebbe significherebbe solito solitamente normalmente spesso comunemente
        comune generalmente talvolta noto nota conosciuto conosciuta altrimenti altrove
        """
    ),
    actual=words("vero vera veri vere reale reali realmente davvero fisico fisicamente"),
    here=words("qui caso"),
)
