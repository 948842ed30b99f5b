"""German data for matching PIEs and reading answers."""

from pieline.languages.language import AnswerWords, Language, parse_forms, texts, words

_LIGHT = words(
    """
    der die das den dem des ein eine einen einem einer eines
    dieser diese dieses diesen diesem
    ich mich mir du dich dir er ihn ihm sie ihr ihnen es wir uns euch sich man
    mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines
    sein seine seinen seinem seiner seines ihre ihren ihrem ihrer ihres
    unser unsere unseren unserem unserer euer eure euren eurem eurer
    jemand jemanden jemandem jemandes jmd jmdn jmdm jds etwas etw
    bin bist ist sind seid war warst waren wart wäre wären gewesen sei seien
    wird werden wurde wurden worden würde würden kann können konnte könnte
    muss müssen musste soll sollen sollte darf dürfen mag möchte will wollen wollte
    """
)
LANGUAGE = Language(
    name="german",
    label="German",
    code="de",
    light_words=_LIGHT,
    stop_words=_LIGHT
    | words(
        """
        habe hast hat haben habt hatte hatten hätte hätten gehabt tun tut tat getan
        als am an ans aufs aus außer bei beim bis da dahin dann daran darauf daraus darin
        dass dazu durch durchs ein entlang für fürs gegen hinter hinterm im in
        ins mit nach neben ohne seit so über übers um ums unter unterm vom von vor vorm
        wegen zu zum zur zwischen
        aber auch denn doch noch nur oder ob schon sehr und weil wenn wie wo was wer nicht
        nie kein keine keinen keinem keiner
        """
    ),
    particles=words("ab auf davon fort her hin los weg"),
    quantifiers=words(
        """
        all alle allem allen aller alles andere anderen anderem anderer anderes beide beiden
        einige einigen einiger etliche jede jedem jeden jeder jedes manche manchen mancher mehr
        mehrere meisten solche solchen solcher viel viele vielen vieler wenig wenige wenigen
        bereits etwa fast ganz immer jetzt mal sogar sonst stets wieder
        """
    ),
    light_verbs=words(
        """
        bleiben bringen geben gehen geraten halten kommen lassen legen liegen machen nehmen setzen
        stehen stellen
        """
    ),
    bound_words=words(
        """
        bockshorn fersengeld fettnäpfchen fittiche gängelband garaus geratewohl handumdrehen hehl
        hochtouren holzweg hungertuch kandare kerbholz kriegsfuss laufpass menschengedenken
        nimmerleinstag schlafittchen schlepptau stegreif tapet zünglein
        """
    ),
    irregular=parse_forms(
        """
        beißen/gebissen bieten/geboten brechen/brach denken/gedacht dringen/gedrungen
        essen/gegessen fahren/gefahren fallen/fällt/gefallen fangen/gefangen
        hauen/hieb/hieben/hiebst kriechen/gekrochen rennen/gerannt spinnen/spann
        stehen/stand/standst/gestanden verlieren/verloren wiegen/wog/wogen/gewogen
        """
    ),
    prefixes=words(
        """
        ab an auf aus bei durch ein fest fort her hin los mit nach um vor weg zu zusammen
        herbei hervor voran vorbei zurück
        herein heraus herum hinein hinaus über unter ver be ent er zer ge
        """
    ),
    respelled=("ss", "ß"),
)
ANSWERS = AnswerWords(
    idioms=words(
        """
        idiom idiome idiomen idioms redewendung redewendungen redensart redensarten sprichwort
        sprichwörter phraseologismus phraseologismen
        """
    ),
    expressions=words("ausdruck ausdrücke ausdruecke ausdrücken wendung wendungen phrase phrasen"),
    figurative=words(
        """
        idiomatisch idiomatische idiomatischen idiomatischer idiomatisches figurativ figurative
        figurativen figurativer bildlich bildliche bildlichen bildlicher übertragen übertragene
        übertragenen übertragener metapher metaphern metaphorisch
        """
    ),
    literal=words(
        """
        wörtlich wörtliche wörtlichen wörtlicher woertlich buchstäblich buchstäbliche
        buchstäblichen
        """
    ),
    uses=words("gebrauch verwendung"),
    meanings=words("bedeutung bedeutungen sinn sinne"),
    rejected=words("abgelehnt abgelehnte ausgeschlossen ausgeschlossene konkret eigentlich falsch"),
    candidates=words("kandidat kandidaten mögliche möglichen potenzielle potentielle"),
    answers=words("antwort ergebnis ergebnisse ausgabe auswahl ausgewählt gewählt endgültige"),
    sentences=words("satz satzes text kontext eingabe"),
    negations=words("kein keine keinen keinem keiner keines nicht nichts nie ohne statt"),
    nothing=texts(
        "kein/keine/keiner/keines/keins/nichts/entfällt/nicht vorhanden/nicht zutreffend"
        "/keine gefunden/keine vorhanden/nichts gefunden/nicht gefunden/nicht erkannt/k a"
        "/leer/leere"
    ),
    yes=words("ja wahr"),
    no=words("nein falsch"),
    fillers=words(
        """
        es gibt ist sind war waren wird werden wurde wurden sein in im dem den der die das diesem
        dieser dieses diese dies ein eine einen einem einer hier enthält enthalten enthaltene
        beinhaltet kommt kommen vor vorhanden gefunden gefundene finde finden erkannt erkannte
        erkennbar erkenne identifiziert verwendet benutzt gebraucht gemeint ich kann konnte habe
        sehe um handelt sich als von zu und oder gegebenen vorliegenden obigen worte wörter also
        daher somit sicherste deutschen englischen markiert markierte gekennzeichnet
        gekennzeichnete hervorgehoben hervorgehobene hat gibts
        """
    ),
    contrast=words("aber jedoch doch allerdings obwohl außer nur sondern während sonst zwar"),
    others=words("andere anderen anderer weitere weiteren weiterer sonstige sonstigen"),
    counts=texts("anzahl/zahl der"),
    revises=texts(
        "korrektur/moment/halt/hoppla/entschuldigung/verzeihung/doch nicht"
        "/bei näherem hinsehen/bei näherer betrachtung/ich korrigiere/ich nehme das zurück/sorry"
    ),
    clarifies=texts("eigentlich"),
    errors=texts("falsch/inkorrekt/geirrt/fehler gemacht"),
    corrects=words("richtig richtige korrekt korrekte korrigierte sollte müsste stattdessen"),
    general=words(
        """
        kann können könnte könnten würde würden wäre normalerweise oft häufig üblicherweise
        meist meistens manchmal gewöhnlich typischerweise allgemein bekannt bekannte bekannter
        bekanntes bekannten gängig gängige gängiger übliche sonst
        """
    ),
    actual=words("echt echte echten echter echtes tatsächlich tatsächliche real reale wirklich"),
    here=words("hier fall"),
)
