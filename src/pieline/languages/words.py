"""Function words and inflected forms: what the matching of PIEs needs to know of a language.

Light-weight on purpose: no tagger and no dictionary, so that a match never depends on a model.
"""

import re
from functools import cache
from typing import Literal

Language = Literal["english", "german"]
LANGUAGES: tuple[Language, ...] = ("english", "german")

# Apostrophes are gone when these lists are asked: "someone's" is "someones".
_LIGHT = {
    "english": """
        a an the this that these those
        i me my mine you your yours he him his she her hers it its we us our ours they them their
        theirs myself yourself himself herself itself ourselves yourselves themselves
        one ones oneself someone someones somebody somebodys something somethings
        im youre hes shes were theyre isnt arent wasnt werent thats theres
        be am is are was been being will would shall should can could may might must
    """,
    "german": """
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
    """,
}
_OTHER_STOP = {
    "english": """
        have has had having do does did done doing dont doesnt didnt havent hasnt hadnt cant
        cannot couldnt wont wouldnt shouldnt ive youve weve theyve id youd hed wed theyd ill youll
        well hell shell theyll lets whats whos
        about above across after against along among around as at away back before behind below
        between beyond by down during for from in inside into of off on onto out outside over
        past since than through till to together toward towards under until up upon with within
        without
        and but if nor or so then there here when where which while who whom whose what why how
        because though although not no too very just
    """,
    "german": """
        habe hast hat haben habt hatte hatten hätte hätten gehabt tun tut tat getan
        ab als am an ans auf aufs aus außer bei beim bis da dahin dann daran darauf daraus darin
        dass davon dazu durch durchs ein entlang fort für fürs gegen her hin hinter hinterm im in
        ins los mit nach neben ohne seit so über übers um ums unter unterm vom von vor vorm
        weg wegen zu zum zur zwischen
        aber auch auf denn doch noch nur oder ob schon sehr und weil wenn wie wo was wer nicht
        nie kein keine keinen keinem keiner
    """,
}
LIGHT_WORDS: dict[Language, frozenset[str]] = {
    language: frozenset(_LIGHT[language].casefold().split()) for language in LANGUAGES
}
"""Articles, pronouns, forms of be and modal verbs: what people vary freely when they name a PIE."""

STOP_WORDS: dict[Language, frozenset[str]] = {
    language: LIGHT_WORDS[language] | frozenset(_OTHER_STOP[language].casefold().split())
    for language in LANGUAGES
}
"""All function words: light words, prepositions, particles, conjunctions, have and do, negation."""

# A base form and, after each "/", a form of it that no ending explains.
_IRREGULAR = {
    "english": """
        bear/bore/borne/born beat/beaten become/became begin/began/begun bend/bent
        bite/bit/bitten bleed/bled blow/blew/blown break/broke/broken bring/brought
        build/built burn/burnt buy/bought catch/caught choose/chose/chosen come/came creep/crept
        cut/cutting deal/dealt dig/dug do/does/did/done/doing draw/drew/drawn dream/dreamt
        drink/drank/drunk drive/drove/driven eat/ate/eaten fall/fell/fallen feed/fed feel/felt
        fight/fought find/found fly/flew/flown forget/forgot/forgotten get/got/gotten
        give/gave/given go/goes/going/went/gone grow/grew/grown hang/hung have/has/had
        hear/heard hide/hid/hidden hold/held keep/kept know/knew/known lay/laid lead/led
        lean/leant leap/leapt learn/learnt leave/left lend/lent lie/lay/lain/lying lose/lost
        make/made mean/meant meet/met pay/paid ride/rode/ridden ring/rang/rung
        rise/rose/risen run/ran say/said see/saw/seen seek/sought sell/sold send/sent
        shake/shook/shaken shine/shone shoot/shot show/shown sing/sang/sung sink/sank/sunk
        sit/sat sleep/slept slide/slid smell/smelt speak/spoke/spoken spell/spelt
        spend/spent spill/spilt spin/spun spit/spat spoil/spoilt spring/sprang/sprung
        stand/stood steal/stole/stolen stick/stuck sting/stung strike/struck/stricken
        swear/swore/sworn sweep/swept swim/swam/swum swing/swung take/took/taken
        teach/taught tear/tore/torn tell/told think/thought throw/threw/thrown die/dying
        tie/tying wake/woke/woken wear/wore/worn weave/wove/woven win/won wind/wound
        wring/wrung write/wrote/written foot/feet goose/geese knife/knives leaf/leaves
        life/lives man/men mouse/mice tooth/teeth wolf/wolves
    """,
    "german": """
        beißen/biss/gebissen bieten/bot/geboten binden/band/gebunden bleiben/blieb/geblieben
        braten/brät/briet brechen/bricht/brach/gebrochen brennen/brannte/gebrannt
        bringen/brachte/gebracht denken/dachte/gedacht dringen/drang/gedrungen
        essen/isst/aß/gegessen fahren/fährt/fuhr/gefahren fallen/fällt/fiel/gefallen
        fangen/fängt/fing/gefangen finden/fand/gefunden fliegen/flog/geflogen
        fließen/floss/geflossen fressen/frisst/fraß/gefressen geben/gibt/gab/gegeben
        gehen/ging/gegangen geraten/gerät/geriet gießen/goss/gegossen
        graben/gräbt/grub/gegraben greifen/griff/gegriffen halten/hält/hielt/gehalten
        hängen/hing/gehangen hauen/hieb/gehauen heben/hob/gehoben heißen/hieß/geheißen
        helfen/hilft/half/geholfen kennen/kannte/gekannt klingen/klang/geklungen
        kommen/kam/gekommen kriechen/kroch/gekrochen laden/lädt/lud/geladen
        lassen/lässt/ließ/gelassen laufen/läuft/lief/gelaufen leiden/litt/gelitten
        lesen/liest/las/gelesen liegen/lag/gelegen lügen/log/gelogen
        messen/misst/maß/gemessen nehmen/nimmt/nahm/genommen pfeifen/pfiff/gepfiffen
        raten/rät/riet reiben/rieb/gerieben reißen/riss/gerissen reiten/ritt/geritten
        rennen/rannte/gerannt riechen/roch/gerochen rufen/rief/gerufen
        saufen/säuft/soff/gesoffen scheinen/schien/geschienen schieben/schob/geschoben
        schießen/schoss/geschossen schlafen/schläft/schlief
        schlagen/schlägt/schlug/geschlagen schließen/schloss/geschlossen
        schmeißen/schmiss/geschmissen schneiden/schnitt/geschnitten
        schreiben/schrieb/geschrieben schreien/schrie/geschrien
        schwimmen/schwamm/geschwommen sehen/sieht/sah/gesehen singen/sang/gesungen
        sinken/sank/gesunken sitzen/saß/gesessen spinnen/spann/gesponnen
        sprechen/spricht/sprach/gesprochen springen/sprang/gesprungen
        stechen/sticht/stach/gestochen stehen/stand/gestanden
        stehlen/stiehlt/stahl/gestohlen steigen/stieg/gestiegen
        sterben/stirbt/starb/gestorben stoßen/stößt/stieß/gestoßen
        streichen/strich/gestrichen tragen/trägt/trug/getragen treffen/trifft/traf/getroffen
        treiben/trieb/getrieben treten/tritt/trat/getreten trinken/trank/getrunken
        verlieren/verlor/verloren wachsen/wächst/wuchs waschen/wäscht/wusch/gewaschen
        werfen/wirft/warf/geworfen wiegen/wog/gewogen wissen/weiß/wusste/gewusst
        ziehen/zog/gezogen zwingen/zwang/gezwungen
    """,
}
_PREFIXES = "ab an auf aus bei durch ein fest fort her hin los mit nach um vor weg zu zusammen"
_PREFIXES += " herein heraus herum hinein hinaus über unter ver be ent er zer"
_SEPARABLE = re.compile(rf"^({'|'.join(sorted(_PREFIXES.split(), key=len, reverse=True))})(?=.)")
_SHORTEST_STEM = 3


def same_word(one: str, other: str, language: Language) -> bool:
    """Whether two normalised words are equal or inflected forms of one word. Symmetric."""
    return one == other or not base_forms(one, language).isdisjoint(base_forms(other, language))


@cache
def base_forms(word: str, language: Language) -> frozenset[str]:
    """The word itself and the base forms that it may be an inflected form of.

    A guess by endings and a list of irregular verbs: it may hold forms that do not exist.
    """
    found = {word} | _irregular(language).get(word, set())
    endings = _english_bases(word) if language == "english" else _german_bases(word)
    return frozenset(found | {base for base in endings if len(base) >= _SHORTEST_STEM})


def _english_bases(word: str) -> set[str]:
    bases = set()
    if word.endswith(("ies", "ied")):
        bases.add(f"{word[:-3]}y")
    if word.endswith("es"):
        bases.add(word[:-2])
    if word.endswith("s") and not word.endswith("ss"):
        bases.add(word[:-1])
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            bases |= {stem, f"{stem}e"}
            if len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2]:
                bases.add(stem[:-1])
    return bases


def _german_bases(word: str) -> set[str]:
    bases = set()
    for form in {word} | _without_ge(word):
        for ending in ("e", "en", "n", "er", "es", "em", "s", "st", "t", "te", "ten", "et", "ete"):
            if form.endswith(ending):
                bases.add(form.removesuffix(ending))
    # Irregular verbs with a prefix that stays or is split off: "losgegangen", "loszugehen".
    prefix = _SEPARABLE.match(word)
    if prefix:
        rest = word[prefix.end() :]
        verbs = _irregular("german")
        bases |= {prefix[1] + base for form in (rest, f"ge{rest}") for base in verbs.get(form, ())}
        if rest.startswith("zu"):
            bases.add(prefix[1] + rest.removeprefix("zu"))
    return bases


def _without_ge(word: str) -> set[str]:
    """A participle without its ge: "gepackt" and "eingepackt" give "packt" and "einpackt"."""
    if not word.endswith(("t", "en")):
        return set()
    prefix = _SEPARABLE.match(word)
    starts = {0} | ({prefix.end()} if prefix else set())
    return {word[:start] + word[start + 2 :] for start in starts if word.startswith("ge", start)}


@cache
def _irregular(language: Language) -> dict[str, set[str]]:
    """Base forms by form."""
    table: dict[str, set[str]] = {}
    for entry in _IRREGULAR[language].casefold().split():
        base, *forms = entry.split("/")
        # The German stem too, so that "gegangen" and "geht" have one in common.
        bases = {base, base.removesuffix("en")} if language == "german" else {base}
        endings = ("", "st", "e", "en", "et") if language == "german" else ("",)
        for form in (base, *(form + ending for form in forms for ending in endings)):
            table.setdefault(form, set()).update(bases)
    return table
