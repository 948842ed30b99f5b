"""Spanish prose."""

from rehearsal.corpora.prose import Grammar, expressions

GRAMMAR = Grammar(
    """
    PLAIN: CLAUSE . | CLAUSE LINK CLAUSE . | WHEN CLAUSE LINK CLAUSE .
    FIGURATIVE: FIGURE . | CLAUSE LINK FIGURE . | WHEN FIGURE . | FIGURE LINK CLAUSE .
    LITERAL: DEED . | CLAUSE LINK DEED . | WHEN DEED . | DEED LINK CLAUSE .
    HINT_FIGURATIVE: WHEN WHO DID WHAT por MATTER . | WHO DID WHAT por MATTER LINK CLAUSE .
    HINT_LITERAL: WHEN WHO DID WHAT con TOOL . | WHO DID WHAT con TOOL LINK CLAUSE .
    FIGURE: WHO MUST BASE por MATTER | WHO MUST BASE WHEN por MATTER
    DEED: WHO MUST BASE con TOOL | WHO MUST BASE WHERE | WHO MUST BASE con TOOL WHERE
    CLAUSE: WHO DID WHAT | WHO DID WHAT WHERE | WHO DID WHAT WHEN | WHO DID NUMBER THINGS WHERE
    WHO: NAME | el MAN HIS | la WOMAN HERS | NAME de PLACE
    WHAT: el THING_HIS HIS | la THING_HERS HERS | la THING_HERS de NAME | el THING_HIS de NAME
    WHERE: en el SPOT_HIS | en la SPOT_HERS | cerca de PLACE | detrás de la SPOT_HERS
    WHEN: el DAY | en MONTH | después de NUMBER PERIODS | antes del DAY
    TOOL: un IMPLEMENT HIS | el IMPLEMENT de NAME
    MATTER: la MATTER_HERS HERS | el MATTER_HIS de PLACE
    NAME = Adela Bruno Carmen Diego Elena Felipe Gloria Hugo Irene Julián Lucía Manuel Nieves \
        Óscar Pilar Ramón Sonia Tomás
    PLACE = Aguaclara Campoviejo Fuentesol Montellano Piedranegra Riohondo Valdeoro Torreblanca
    HIS = viejo pequeño cansado amable silencioso pesado curioso robusto modesto alegre
    HERS = vieja pequeña cansada amable silenciosa pesada curiosa robusta modesta alegre
    MAN = vecino panadero maestro jardinero sastre marinero campesino pintor mercader
    WOMAN = vecina doctora maestra cocinera viuda hermana pintora campesina
    THING_HIS = vestido violín sombrero cuaderno billete sillón cajón abrigo
    THING_HERS = carta manta ventana botella bicicleta maleta taza fuente silla
    THINGS = manzanas monedas sillas camisas botellas tejas ovejas llaves
    SPOT_HIS = mercado jardín patio museo pueblo bosque molino
    SPOT_HERS = cocina estación tienda iglesia biblioteca plaza escuela
    IMPLEMENT = pincel martillo cuchillo cubo rastrillo trapo
    MATTER_HERS = herencia reforma elección promoción deuda boda
    MATTER_HIS = contrato juicio divorcio presupuesto veredicto pleito
    DID = compraba reparaba pintaba llevaba vendía buscaba admiraba limpiaba entregaba ordenaba
    MUST: tenía que | quería | debía | podía
    NUMBER = dos tres cuatro cinco seis siete ocho nueve diez once doce
    PERIODS = horas días semanas meses años
    DAY = lunes martes miércoles jueves viernes sábado domingo
    MONTH = enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    LINK = y pero mientras porque cuando
    """
)
PIES = expressions(
    """
    pulir medir contar tirar girar doblar volcar abrir lanzar calentar cargar empujar levantar
    perseguir quemar hervir cepillar mecer
    """,
    {
        "el": "gallo tejón botón trueno rábano barril halcón remo",
        "la": "linterna escalera vela nuez pluma sombra cuna campana",
    },
)
