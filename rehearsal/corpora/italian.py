"""Italian prose."""

from rehearsal.corpora.prose import Grammar, expressions

GRAMMAR = Grammar(
    """
    PLAIN: CLAUSE . | CLAUSE LINK CLAUSE . | WHEN CLAUSE LINK CLAUSE .
    FIGURATIVE: FIGURE . | CLAUSE LINK FIGURE . | WHEN FIGURE . | FIGURE LINK CLAUSE .
    LITERAL: DEED . | CLAUSE LINK DEED . | WHEN DEED . | DEED LINK CLAUSE .
    HINT_FIGURATIVE: WHEN WHO DID WHAT per MATTER . | WHO DID WHAT per MATTER LINK CLAUSE .
    HINT_LITERAL: WHEN WHO DID WHAT con TOOL . | WHO DID WHAT con TOOL LINK CLAUSE .
    FIGURE: WHO MUST BASE per MATTER | WHO MUST BASE WHEN per MATTER
    DEED: WHO MUST BASE con TOOL | WHO MUST BASE WHERE | WHO MUST BASE con TOOL WHERE
    CLAUSE: WHO DID WHAT | WHO DID WHAT WHERE | WHO DID WHAT WHEN | WHO DID NUMBER THINGS WHERE
    WHO: NAME | il HIS MAN | la HERS WOMAN | NAME di PLACE
    WHAT: il THING_HIS HIS | la THING_HERS HERS | la THING_HERS di NAME | il THING_HIS di NAME
    WHERE: nel SPOT_HIS | nella SPOT_HERS | vicino a PLACE | dietro la SPOT_HERS
    WHEN: di DAY | in MONTH | dopo NUMBER PERIODS | prima di DAY
    TOOL: un IMPLEMENT HIS | il IMPLEMENT di NAME
    MATTER: la MATTER_HERS HERS | il MATTER_HIS di PLACE
    NAME = Aldo Beatrice Carlo Daria Enzo Fiorella Gino Ilaria Lucio Marisa Nino Paola Rocco \
        Silvia Tullio Vanna Walter Zeno
    PLACE = Borgoverde Castelrosso Fontebella Montepiano Pietraia Roccascura Valdargento Torrenova
    HIS = vecchio piccolo stanco gentile silenzioso pesante curioso robusto modesto sereno
    HERS = vecchia piccola stanca gentile silenziosa pesante curiosa robusta modesta serena
    MAN = vicino panettiere maestro giardiniere sarto marinaio contadino pittore mercante
    WOMAN = vicina dottoressa maestra cuoca vedova sorella pittrice contadina
    THING_HIS = vestito tappeto violino cappello quaderno biglietto divano cassetto mantello
    THING_HERS = lettera coperta finestra bottiglia bicicletta valigia tazza fontana sedia
    THINGS = mele monete sedie camicie bottiglie tegole pecore chiavi
    SPOT_HIS = mercato giardino cortile museo villaggio bosco mulino
    SPOT_HERS = cucina stazione bottega chiesa soffitta biblioteca piazza
    IMPLEMENT = pennello martello coltello secchio rastrello panno
    MATTER_HERS = vendita riforma votazione promozione scadenza tassa
    MATTER_HIS = contratto processo divorzio bilancio verdetto litigio
    DID = comprava riparava dipingeva portava vendeva cercava ammirava puliva consegnava ordinava
    MUST = doveva voleva poteva sapeva
    NUMBER = due tre quattro cinque sei sette otto nove dieci undici dodici
    PERIODS = ore giorni settimane mesi anni
    DAY = lunedì martedì mercoledì giovedì venerdì sabato domenica
    MONTH = gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre
    LINK = e ma mentre perché quando
    """
)
PIES = expressions(
    """
    lucidare misurare contare tirare girare piegare rovesciare aprire lanciare scaldare caricare
    spingere sollevare inseguire bruciare bollire spazzolare dondolare
    """,
    {
        "il": "gallo tasso bottone tuono ravanello barile falco remo",
        "la": "lanterna scala candela noce piuma ombra culla campana",
    },
)
