"""Spanish data for matching PIEs and reading answers."""

from pieline.languages.language import AnswerWords, Language, parse_forms, texts, words

_LIGHT = words(
    """
    el la los las lo un una unos unas
    este esta esto estos estas ese esa eso esos esas aquel aquella aquello aquellos aquellas
    yo tú él ella ello nosotros nosotras vosotros vosotras usted ustedes ellos ellas me te se le
    les nos os mí ti sí
    mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra vuestros vuestras mío
    mía míos mías tuyo tuya tuyos tuyas suyo suya suyos suyas propio propia propios propias ajeno
    alguien algo
    ser siendo sido soy eres es somos sois son era eras éramos eran fui fue fuimos fueron seré será
    serán sería serían sea seas sean fuera fueran fuese
    estar estando estado estoy estás está estamos estáis están estaba estabas estaban estuvo
    estuvieron estará estarán estaría esté estén
    poder puedo puedes puede podemos pueden podía podían podrá podría pudo pueda
    deber debo debes debe debemos deben debía debería
    ir irse irme irte yendo yéndose voy vas va vamos van iba ibas iban
    querer quiero quieres quiere queremos quieren quería querría quiso quiera
    """
)
_PRONOUNS = "(?:me|te|se|nos|os)?(?:me|te|se|nos|os|l[oae]s?)"
LANGUAGE = Language(
    name="spanish",
    label="Spanish",
    code="es",
    light_words=_LIGHT,
    stop_words=_LIGHT
    | words(
        """
        haber habiendo habido he has ha hemos habéis han había habías habíamos habían hubo hubieron
        habré habrá habrán habría haya hayas hayan hubiera hubieran hay
        a al ante bajo con contra de del delante desde durante en entre
        hacia hasta para por según sin sobre tras
        y e o u ni pero sino que quien quienes cual cuyo cuando donde como porque aunque mientras si
        no nunca jamás nada tampoco ya muy tan tanto más menos también así aún todavía
        """
    ),
    particles=words("dentro detrás encima"),
    quantifiers=words(
        """
        todo toda todos todas cada ambos ambas otro otra otros otras alguno alguna algunos algunas
        algún ninguno ninguna ningún cualquier cualquiera demás mucho mucha muchos muchas poco poca
        pocos pocas bastante bastantes demasiado demasiada demasiados demasiadas tanta tantos
        tantas varios varias ciertos ciertas
        apenas casi incluso sólo solo solamente
        ahora antes después entonces siempre luego pronto hoy ayer mañana
        """
    ),
    light_verbs=words("andar dar dejar hacer llevar poner quedar seguir tener tomar traer venir"),
    bound_words=words(
        """
        antemano bruces cuclillas hurtadillas periquete rajatabla regañadientes reojo santiamén
        sopetón soslayo tientas vilo volandas
        """
    ),
    irregular=parse_forms(
        """
        a/al de/del y/e caer/caída/caído/caídos colgar/cuelga/cuelgas/cuelgue contar/cuenta/cuento
        dar/dame/dado/dada/darle/darles dormir/dormido hacer/hecho/hechos/hazme ir/ido/irse
        jugar/juego llegar/llego meter/metas poner/puesto/puesta/puestos/puestas/pon/ponte
        romper/roto/rota/rotos/rotas saber/sé salir/sale soltar/suelta/suelto/suelte
        torcer/tuerce/tuerza venir/vino ver/visto/vista/vistos/vistas vestir/viste
        bueno/buen grande/gran malo/mal primero/primer santo/san tercero/tercer
        """
    ),
    # Participles, which the dictionary may list as nouns; infinitives and regular gerunds before
    # pronouns; third person present.
    endings=(
        (r"ad[oa]s?", "ar"),
        (r"id[oa]s?", "er"),
        (r"id[oa]s?", "ir"),
        (rf"[aá]r{_PRONOUNS}", "ar"),
        (rf"[eé]r{_PRONOUNS}", "er"),
        (rf"[ií]r{_PRONOUNS}", "ir"),
        (rf"ándo{_PRONOUNS}", "ar"),
        (rf"iéndo{_PRONOUNS}", "er"),
        (rf"iéndo{_PRONOUNS}", "ir"),
        (r"an?", "ar"),
    ),
)
ANSWERS = AnswerWords(
    # "frase hecha" is identified by its last word.
    idioms=words("modismo modismos idiotismo idiotismos hecha hechas"),
    expressions=words(
        "expresión expresiones expresion locución locuciones locucion dicho dichos refrán refranes"
    ),
    figurative=words(
        """
        idiomático idiomática idiomáticos idiomáticas idiomatico idiomatica idiomaticas figurado
        figurada figurados figuradas figurativo figurativa figurativos figurativas metáfora
        metáforas metafórico metafórica
        """
    ),
    literal=words("literal literales literalmente"),
    uses=words("uso lenguaje"),
    meanings=words("significado significados sentido"),
    rejected=words("rechazado rechazados rechazadas descartado descartados excluidas propio recto"),
    candidates=words("candidato candidata candidatos candidatas posible posibles potenciales"),
    answers=words("respuesta resultado resultados elección elegido elegida seleccionada final"),
    sentences=words("oración oracion frase texto contexto"),
    negations=words("no sin"),
    concord=words("ningún ninguno ninguna nada"),
    nothing=texts(
        "ninguno/ninguna/nada/ningún/no aplica/no hay/no hay ninguno/no hay ninguna/no existe"
        "/ninguno encontrado/ninguna encontrada/no encontrado/no encontrada"
        "/no detectado/vacío/vacía"
    ),
    yes=words("sí si verdadero"),
    no=words("no falso"),
    fillers=words(
        """
        hay había es son está están en esta este estas estos el la los las lo un una unos unas de
        del y o que se he ha han aquí alguna algún contiene contienen incluye presente presentes
        encuentra encuentran encuentro encontrado encontrada encontrados encontradas encontró
        encontraron detectado detectada detectados detectadas detectaron detectó identificó
        identificado identificada
        identificados identificadas identificaron usa usan usado usada existe existen dada dado
        proporcionada proporcionado palabras frases más segura marcado marcados marcadas
        señalado señalados señaladas reconocidos reconocidas resaltados tiene
        """
    ),
    contrast=words("pero aunque excepto salvo solo sólo mientras"),
    others=words("otro otra otros otras demás más aparte"),
    counts=texts("número de/numero de/cantidad de/total"),
    revises=texts(
        "corrección/espera/ups/perdón/perdona/disculpa/disculpe/lo siento"
        "/pensándolo bien/me corrijo/me equivoqué/rectifico/rectificación/un momento"
    ),
    clarifies=texts("en realidad/mejor dicho"),
    errors=texts("incorrecto/incorrecta/equivocado/equivocada/equivoqué/cometí un error"),
    corrects=words("correcto correcta debe debería deberían cambio"),
    general=words(
        """
        puede podría sería significaría suele suelen normalmente frecuentemente menudo comúnmente
        común generalmente veces conocido conocida otro otros
        """
    ),
    actual=words("real reales verdad verdadero verdadera realmente físico físicamente"),
    here=words("aquí caso"),
)
