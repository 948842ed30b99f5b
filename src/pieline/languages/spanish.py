"""What the reading of answers needs to know of Spanish; PIEs are not matched in it."""

from pieline.languages.language import AnswerWords, texts, words

ANSWERS = AnswerWords(
    # "frase hecha" is told by its last word.
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
    besides=words(
        """
        hay había es son está están en esta este estas estos el la los las lo un una unos unas de
        del y o que se he ha han aquí alguna algún contiene contienen incluye presente presentes
        encuentra encuentran encuentro encontrado encontrada encontrados encontradas encontró
        encontraron detectado detectada detectados detectadas detectaron detectó identificó
        identificado identificada
        identificados identificadas identificaron usa usan usado usada existe existen dada dado
        proporcionada proporcionado palabras frases más segura
        """
    ),
    contrast=words("pero aunque excepto salvo solo sólo mientras"),
    others=words("otro otra otros otras demás"),
    counts=texts("número de/numero de/total"),
    revises=texts("corrección/espera/perdón/en realidad/pensándolo bien"),
)
