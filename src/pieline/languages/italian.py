"""What the reading of answers needs to know of Italian; PIEs are not matched in it."""

from pieline.languages.language import AnswerWords, texts, words

ANSWERS = AnswerWords(
    # "modo di dire" is told by its last word.
    idioms=words("idiotismo idiotismi idiomatismo idiomatismi dire"),
    expressions=words("espressione espressioni locuzione locuzioni proverbio proverbi"),
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
    besides=words(
        """
        ci cè vi sono è era in nel nella questo questa questi il lo la i gli le un uno una di del
        della dei degli delle e o che si qui alcun alcuna alcuno contiene contengono presente
        presenti trovo trovato trovata trovati trovate rilevato rilevata rilevati rilevate
        individuato individuata identificato identificata identificati identificate usato usata
        usati usate ho ha data dato fornita fornito quindi parole modo modi più certa
        """
    ),
    contrast=words("ma però tuttavia sebbene eccetto tranne solo mentre"),
    others=words("altri altre altro altra ulteriori"),
    counts=texts("numero di"),
    revises=texts("correzione/aspetta/scusa/in realtà/ripensandoci"),
)
