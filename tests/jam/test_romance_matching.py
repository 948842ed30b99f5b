"""Test matching of inflected PIEs in Italian and Spanish."""

import pytest

from pieline.languages.matching import contains_pie, matches_pie

NAMED = {
    "italian": """
        vuotare il sacco: ha vuotato il sacco | vuoterà il sacco | vuotarono finalmente il sacco
        rompere il ghiaccio: ruppe il ghiaccio | rompendo il ghiaccio | il ghiaccio è stato rotto
        prendere in giro: lo prendono in giro | prendersi in giro | presa in giro | ci prese in giro
        tenere d'occhio: teneva d’occhio | tienilo d'occhio | tenerla d' occhio
        avere il pollice verde: il pollice verde | ha il pollice verde
        perdere la testa: ha perso la testa | perdesti la testa | perderci la testa
        cavarsela: se l'è cavata | me la cavo
        farla franca: l'hanno fatta franca | la farai franca | farla sempre franca
        tirare le cuoia: tirò le cuoia | ha tirato le cuoia
        alzare il gomito: alzava spesso il gomito | alzando il gomito
        dare una mano: gli ha dato una mano | dammi una mano | dandole una mano | darci una mano
        avere le mani bucate: hai le mani bucate
        mettere il dito nella piaga: metteva il dito sulla piaga | messo il dito nella piaga
        tener duro: tenere duro | tennero duro | teniamo duro
        essere al verde: siamo al verde | ero al verde
        a capo di: a capo del | a capo della
        gettare la spugna: gettarono la spugna | non gettarla, la spugna
        stringere il cuore: gli strinse il cuore | mi si è stretto il cuore
        avere la coda di paglia: ha una coda di paglia | la coda di paglia
        un occhio della testa: l'occhio della testa | un occhio della testa
        prendersela comoda: se la prende comoda | prendendosela comoda
        bere come una spugna: beve come una spugna | beveva come una spugna
        chiudere un occhio: chiuse un occhio | chiudono un occhio
        mani in pasta: le mani in pasta | la mano in pasta
        bell'e pronto: bello e pronto
        piantare in asso: mi ha piantata in asso | piantandolo in asso
    """,
    "spanish": """
        tomar el pelo: me están tomando el pelo | tomándome el pelo | le tomaron el pelo
        meter la pata: metió la pata | he metido la pata | no metas la pata
        tirar la toalla: tiró la toalla | tirando la toalla | había tirado la toalla
        romper el hielo: rompió el hielo | romper un poco el hielo | el hielo estaba roto
        dar gato por liebre: nos dieron gato por liebre | dándole gato por liebre
        ser pan comido: es pan comido | fue pan comido | era pan comido
        costar un ojo de la cara: cuesta un ojo de la cara | me costó un ojo de la cara
        poner los cuernos: le puso los cuernos | ponerle los cuernos | poniéndole los cuernos
        estar hasta las narices: estoy hasta las narices | estábamos hasta las narices
        no pegar ojo: no pegué ojo | no ha pegado ojo
        irse por las ramas: se va por las ramas | me fui por las ramas | yéndose por las ramas
        tener la sartén por el mango: tiene la sartén por el mango | tenía la sartén por el mango
        quedarse sin blanca: se quedó sin blanca | quedarme sin blanca
        echar leña al fuego: echando leña al fuego | no eches más leña al fuego
        estar en las nubes: en las nubes | siempre estás en las nubes
        colgar los guantes: cuelga los guantes | ha colgado los guantes | colgaron los guantes
        cortar el bacalao: corta el bacalao | los que cortan el bacalao
        tirar la casa por la ventana: tiramos la casa por la ventana
        jugársela: se la jugó
        al pie de la letra: al mismísimo pie de la letra
        ponerse las pilas: ponte las pilas | se pusieron las pilas | poniéndose las pilas
        hacer buenas migas: hicieron muy buenas migas | haciendo buenas migas
        lágrimas de cocodrilo: sus lágrimas de cocodrilo | lágrima de cocodrilo
        soltar la lengua: suelta la lengua | soltándole la lengua
        mala leche: de mala leche | una mala leche
        dormir a pierna suelta: durmiendo a pierna suelta | duermo a pierna suelta
        abrir la caja de Pandora: abrió la caja de Pandora | abierta la caja de Pandora
        sacar las castañas del fuego: le saca siempre las castañas del fuego
    """,
}
NOT_NAMED = {
    "italian": """
        rompere il ghiaccio: il ghiaccio | ruppe il bicchiere | il tè con il ghiaccio
        vuotare il sacco: un sacco di patate | vuotò la vasca | sacco
        prendere in giro: prese il treno | un giro in bicicletta | in
        tenere d'occhio: l'occhio destro | tiene d'estate
        perdere la testa: la testa | ha perso le chiavi | mal di testa
        dare una mano: la mano | lavarsi le mani | diede una festa
        avere la coda di paglia: la coda del gatto | un cappello di paglia
        al verde: al | il verde del prato
        chiudere un occhio: chiuse la porta | aprì gli occhi
        cavallo di battaglia: cavallo | la battaglia
        acqua in bocca: l'acqua del rubinetto | in bocca al lupo
    """,
    "spanish": """
        romper el hielo: el hielo | rompió el vaso | té con hielo
        tomar el pelo: tomó el autobús | el pelo | se cortó el pelo
        meter la pata: la pata de la mesa | metió el coche en el garaje
        tirar la toalla: una toalla mojada | tiró la pelota | la
        dar gato por liebre: el gato | dio de comer al gato
        estar en las nubes: en el avión | en
        echar leña al fuego: leña | apagó el fuego | echar sal al agua
        ponerse las pilas: puso la mesa | cambió las pilas
        oveja negra: la oveja blanca | una camisa negra
        ser pan comido: compró pan | ha comido
        mala leche: un vaso de leche | mala suerte
    """,
}


def pairs(entries):
    """Return (language, PIE, text) triples."""
    return [
        (language, pie.strip(), text.strip())
        for language, lines in entries.items()
        for line in lines.strip().splitlines()
        for pie, texts in [line.split(":")]
        for text in texts.split("|")
    ]


def test_there_are_enough_pairs_of_each_language():
    for entries, wanted in ((NAMED, 40), (NOT_NAMED, 15)):
        languages = [language for language, *_ in pairs(entries)]
        assert min(map(languages.count, entries)) >= wanted


@pytest.mark.parametrize(("language", "pie", "text"), pairs(NAMED))
def test_an_inflected_pie_is_named(language, pie, text):
    assert matches_pie(text, pie, language=language)


@pytest.mark.parametrize(("language", "pie", "text"), pairs(NOT_NAMED))
def test_another_expression_is_not_the_pie(language, pie, text):
    assert not matches_pie(text, pie, language=language)
    assert not contains_pie(text, pie, language=language)
