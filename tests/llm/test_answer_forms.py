"""Test the formats in which models name idioms, in four languages."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pieline.core.yamls import read_yaml
from pieline.languages.denial import denies_idioms, find_views, is_none_answer, is_retracted
from pieline.languages.spelling import normalize
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.parsing import Parsed
from pieline.studies.idiots.predictions import read_prediction

NAMES: list[tuple[str, list[str]]] = [
    ('Thinking...\n["x y"]?\n...done thinking.\n\n["a b"]', ["a b"]),
    # Lists of strings.
    ('["pissed off"]', ["pissed off"]),
    ('["hook, line and sinker", "lose face"]', ["hook, line and sinker", "lose face"]),
    ("['pissed off']", ["pissed off"]),
    ("['don\\'t give up']", ["don't give up"]),
    ('["don\'t give up"]', ["don't give up"]),
    ('["pissed off",]', ["pissed off"]),
    ("[“pissed off”]", ["pissed off"]),
    ('["pissed off", null, ""]', ["pissed off"]),
    ("[pissed off, lose face]", ["pissed off", "lose face"]),
    ('"pissed off"', ["pissed off"]),
    # One object.
    ('{"idioms": ["pissed off"]}', ["pissed off"]),
    ('{"idioms": [pissed off]}', ["pissed off"]),
    ('{"idiom": "pissed off"}', ["pissed off"]),
    ('{"idiom": ["pissed off"]}', ["pissed off"]),
    ('{"idiom": {"text": "pissed off", "start": 8}}', ["pissed off"]),
    ('{"detected_idioms": ["pissed off"]}', ["pissed off"]),
    ('{"idiomsFound": ["pissed off"]}', ["pissed off"]),
    ('{"Idiomatic Expressions": ["pissed off"]}', ["pissed off"]),
    ('{"expressions": ["pissed off"]}', ["pissed off"]),
    ('{"phrase": "pissed off"}', ["pissed off"]),
    ('{"result": {"idioms": ["pissed off"]}}', ["pissed off"]),
    ('{"idiom_1": "piss off", "idiom_2": "lose face"}', ["piss off", "lose face"]),
    ('{"idiom": "piss off", "expression": "pissed off"}', ["piss off"]),
    ('{"sentence": "He literally ran.", "idioms": ["piss off"]}', ["piss off"]),
    ("{'idioms': ['pissed off'], 'sure': True}", ["pissed off"]),
    ('{"idiom": "piss off", "literal": false, "meaning": "go"}', ["piss off"]),
    ('{"idiom": "piss off", "usage": "figurative"}', ["piss off"]),
    ('{"idiom": "piss off", "literal_meaning": "x", "figurative_meaning": "y"}', ["piss off"]),
    ('{"idiom": "piss off", "why": "This is not meant literally but as an idiom."}', ["piss off"]),
    ('{"has_idiom": true, "idiom": "pissed off"}', ["pissed off"]),
    ('{"idiom": "pissed off", "": 1}', ["pissed off"]),  # a key without words
    ('{"idiom": "pissed off", "_": 0}', ["pissed off"]),
    # Objects in a list.
    ('{"idioms": [{"idiom": "pissed off", "explanation": "left angry"}]}', ["pissed off"]),
    ('{"idioms": [{"text": "pissed off", "start": 8, "end": 18}]}', ["pissed off"]),
    ('[{"idiom": "piss off"}, {"phrase": "lose face"}]', ["piss off", "lose face"]),
    ('[{"idiom": "in hot water", "is_idiom": false}, {"idiom": "lose face"}]', ["lose face"]),
    ('[{"phrase": "in hot water", "type": "literal"}, {"phrase": "a b"}]', ["a b"]),
    # Candidates with a choice.
    ('{"candidates": ["piss off", "a b"], "choice": "piss off"}', ["piss off"]),
    ('{"candidates": [{"idiom": "a b", "use": "literal"}], "idiom": "piss off"}', ["piss off"]),
    ('{"idioms": ["piss off", "a b"], "selected_idiom": "piss off"}', ["piss off"]),
    ('{"candidates": ["a b"]}\n{"idiom": "a b"}', ["a b"]),
    # The form of the examples.
    ("idioms: [piss off, lose face]", ["piss off", "lose face"]),
    ("Idioms: ['don't give up', o'clock]", ["don't give up", "o'clock"]),
    ('idioms: ["hook, line and sinker"]', ["hook, line and sinker"]),
    ("**idioms:** [pissed off]", ["pissed off"]),
    ("idioms:\n[pissed off]", ["pissed off"]),
    ("AI: idioms: [pissed off]", ["pissed off"]),
    ("candidates:\n- a b: used figuratively\nidioms: [a b]", ["a b"]),
    ("candidates:\n- in hot water: literal\n- a b: not literal\nidioms: [a b]", ["a b"]),
    ("candidates: none\nidioms: [a b]", ["a b"]),
    ('idioms: [a b]\ncandidates: ["a b", "c d"]', ["a b"]),
    ("idioms: [a b]\ncandidates: none", ["a b"]),
    ("idioms:\n- piss off\n- in hot water: used literally", ["piss off"]),
    ("idioms: piss off, lose face.", ["piss off", "lose face"]),
    ("Idiom: piss off (to go away)", ["piss off"]),
    ("Final answer: [pissed off]", ["pissed off"]),
    # Among other words.
    ('```json\n["pissed off"]\n```', ["pissed off"]),
    ('Sure! Here it is:\n```json\n{"idioms": ["a b"]}\n```\nHope this helps.', ["a b"]),
    ("```python\n{'idiom': 'pissed off', 'sure': None}\n```", ["pissed off"]),
    ('As [1] and {2} say: {"idioms": ["a b"]} [3]', ["a b"]),
    ('<think>["in hot water"]</think>["a b"]', ["a b"]),
    ('maybe ["in hot water"]</think>["a b"]', ["a b"]),
    ('[]\nWait, it is figurative. Final answer: ["a b"]', ["a b"]),
    ('idioms: [x y]\nFinal:\n{"idioms": ["a b"]}', ["a b"]),
    ('["a b"]\n["A b"]', ["A b"]),
    ('["a b"]\nThere are no other idioms in this sentence.', ["a b"]),
    ('{"idiom": "a b", "note": "There are no other idioms."}', ["a b"]),
    ('I weighed what is literal.\n["a b"]', ["a b"]),
    # German, Italian, Spanish.
    ('{"Redewendungen": ["die Nase voll haben"]}', ["die Nase voll haben"]),
    ('{"Redewendung": "ins Schwarze treffen", "Bedeutung": "x"}', ["ins Schwarze treffen"]),
    ('{"idiomatische_ausdrücke": ["ins Schwarze treffen"]}', ["ins Schwarze treffen"]),
    ('{"Ausdruck": "im Regen stehen", "Verwendung": "übertragen"}', ["im Regen stehen"]),
    ('{"Kandidaten": ["a b"], "Auswahl": "a b"}', ["a b"]),
    ("Redewendungen: [auf der Leitung stehen]", ["auf der Leitung stehen"]),
    ('{"espressioni_idiomatiche": ["rompere il ghiaccio"]}', ["rompere il ghiaccio"]),
    ('{"modo_di_dire": "rompere il ghiaccio"}', ["rompere il ghiaccio"]),
    ('{"espressione": "rompere il ghiaccio", "uso": "figurato"}', ["rompere il ghiaccio"]),
    ('{"expresiones idiomáticas": ["romper el hielo"]}', ["romper el hielo"]),
    ('{"modismo": "romper el hielo"}', ["romper el hielo"]),
    ("modismos: [romper el hielo]", ["romper el hielo"]),
    ('["non dire gatto se non ce l\'hai nel sacco"]', ["non dire gatto se non ce l'hai nel sacco"]),
    ('{"modismo": "a b", "nota": "No hay otros modismos."}', ["a b"]),
    ('{"Redewendung": "a b", "Notiz": "Es gibt keine weiteren Redewendungen."}', ["a b"]),
    # Empty lists of phrases that are not idioms.
    ('Idioms: ["a b"]\nLiteral expressions: []', ["a b"]),
    ("idioms: [a b]\nliteral: []", ["a b"]),
    ("idioms: [a b]\nrejected: []", ["a b"]),
    ('**Figurative:** ["a b"]\n**Literal:** []', ["a b"]),
    ('1. Candidates: ["a b", "c d"]\n2. Idioms: ["a b"]\n3. Non-idioms: []', ["a b"]),
    ('Idioms: ["a b"]\nLiteral uses: {}', ["a b"]),
    ('Modismos: ["a b"]\nUso literal: []', ["a b"]),
    ('Modi di dire: ["a b"]\nLetterali: []', ["a b"]),
    ('["a b"]\nOther idioms: none', ["a b"]),
    # A literal meaning does not make the usage literal.
    ('{"idiom": "a b", "explanation": "Literal meaning: to kick a pail."}', ["a b"]),
    ('{"idioms": [{"idiom": "a b", "note": "Literal meaning: a pail. Intended: c"}]}', ["a b"]),
    ("Idioms:\n- a b (literal meaning: hit a pail)", ["a b"]),
    ('{"idiom": "a b", "has_literal_meaning": true}', ["a b"]),
    ('{"idiom": "a b", "literal_possible": true}', ["a b"]),
    ('{"idiom": "a b", "meaning": "die (literally: hit a pail)"}', ["a b"]),
    ('{"Redewendung": "a b", "Bedeutung": "sterben (wörtlich: c)"}', ["a b"]),
    ('{"idiom": "a b", "meaning": "rejected"}', ["a b"]),
    # An object in place of a list, and one list under another key.
    ('{"idioms": {"1": "a b", "2": "c d"}}', ["a b", "c d"]),
    ('{"idioms": {"0": {"idiom": "a b"}}}', ["a b"]),
    ('{"idioms": {"a b": {"meaning": "to c"}, "c d": {"is_idiom": false}}}', ["a b"]),
    ('{"idioms": {"a b": true, "c d": false}}', ["a b"]),
    ('{"spans": ["a b"]}', ["a b"]),
    # JSON in a JSON string.
    ('"[\\"break the ice\\"]"', ["break the ice"]),
    ('```json\n"{\\"idioms\\": [\\"a b\\"]}"\n```', ["a b"]),
    ('"```json\\n{\\"idioms\\": [\\"a b\\"]}\\n```"', ["a b"]),
    ('Here it is: "{\\"idioms\\": [\\"a b\\"]}"', ["a b"]),
    ('{\\"idioms\\": [\\"a b\\"]}', ["a b"]),
    ('{"answer": "{\\"idioms\\": [\\"a b\\"]}"}', ["a b"]),
    ('["{\\"idiom\\": \\"a b\\"}"]', ["a b"]),
    # Comments and repairs that keep the words.
    ('["a b", /* nothing else */]', ["a b"]),
    ('["a b" "c d"]', ["a b", "c d"]),
    ('["the \\"real McCoy\\""]', ['the "real McCoy"']),
    # Numbers that are positions, and a list in a text.
    ('{"idiom": "a b", "start": 0, "idiom_number": 0, "sure": 1.0, "is_idiom": 1}', ["a b"]),
    ('{"idioms": "[\\"a b\\"]"}', ["a b"]),
    ('["in no way", "set in concrete"]', ["in no way", "set in concrete"]),
]
NONE = [
    '"{\\"idioms\\": []}"', '"[]"', 'Answer: "[]"', '{"idioms": {"in hot water": false}}',
    '{"spans": []}',
    "[]", "{}", "null", "None", "No", "No.", "none", "N/A", "-", "—", "No idiom", '"none"',
    '[""]', '["-"]', "[null]", '["No idiom"]', '["none"]', '["N/A"]', "[none]",
    '{"idiom": null}', "{'idiom': None}", '{"idiom": None}', '{"idiom": ""}', '{"idiom": "-"}',
    '{"idiom": "N/A"}', '{"idioms": []}', '{"idioms": [null]}', '{"idioms": "none"}',
    '{"idioms": {}}', '{"detected_idioms": []}', '{"idiomatic_expressions": []}',
    '{"idioms": ["There are no idioms in this sentence."]}',
    # Rejected phrases.
    '{"idiom": null, "candidates": [{"idiom": "in hot water", "explanation": "literal"}]}',
    '{"candidates": [{"idiom": "in hot water"}], "idiom": null}',
    '{"candidates": ["in hot water"], "choice": "none"}',
    '{"candidates": []}', '{"candidates": ["in hot water"]}\n{"idioms": []}',
    '{"potential_idioms": ["in hot water"], "idioms": []}',
    '{"idiom": null, "expression": "in hot water"}',
    '{"idioms": ["in hot water"], "final_answer": null}',
    '{"is_idiom": false, "phrase": "in hot water"}',
    '{"idiom": "in hot water", "figurative": false}',
    '{"idiom": "in hot water", "idiomatic": "no"}',
    '{"idiom": "in hot water", "literal": true}',
    '{"idiom": "in hot water", "status": "not an idiom"}',
    '{"idiom": "in hot water", "explanation": "Used literally here: the soup is hot."}',
    '{"idioms": [{"expression": "in hot water", "usage": "literal"}]}',
    '["in hot water (not an idiom)"]', '{"has_idiom": false}',
    '{"hasIdiom": false, "idiom": "in hot water"}',
    '{"message": "There are no idioms in this sentence."}', '{"answer": "none"}',
    '["in hot water"] Wait, that is literal. Final answer: []',
    '{"idioms": ["in hot water"]} On reflection: {"idioms": []}',
    '<think>["in hot water"]</think>[]', '[]\nThe phrase "in hot water" is not an idiom here.',
    '{"idiom": "in hot water", "is_idiomatic": 0}', '{"idiom": "in hot water", "figurative": 0}',
    '{"idiom": "in hot water", "literal": 1}', '{"idiom": "in hot water", "idiomatic": "0"}',
    '{"idiom": "in hot water", "idiomatic": "n/a"}', '{"idiom": "a b", "idiomatic": "none"}',
    '{"idiom": "in hot water", "idiomatic": "never"}', '{"idiom": "a b", "usage": "lit."}',
    '{"idiom": "in hot water", "idiomatic_usage": "none"}', '{"idiom": "a b", "uso": "recto"}',
    '{"idiom": "in hot water", "figurative_meaning": null}',
    '{"idiom": "in hot water", "figurative_meaning": "none"}',
    '[{"phrase": "a b", "idiomatic_meaning": null, "literal_meaning": "hit a pail"}]',
    '{"idioms": ["in hot water"], "corrected_idioms": []}',
    '{"idioms": ["in hot water"], "usage": "concrete"}', '{"idiom": "a b", "uso": "propio"}',
    '{"idioms": ["in hot water"], "usage": "compositional"}', '{"idiom": "a b", "uso": "proprio"}',
    '{"idioms": ["a b"], "Gebrauch": "konkret"}', '{"idioms": ["a b"], "Gebrauch": "eigentlich"}',
    "Idioms found: 0", "idioms: 0", "Idiom: not present", '["No PIE"]', '["nessuna espressione"]',
    '["non trovato"]', '["no encontrado"]', '["nicht gefunden"]', '{"idiom": "There isn\'t one"}',
    '{"idiom": "k.A."}', '["vacío"]', '["vuoto"]', '["leer"]', '{"idioms": "[]"}',
    '{"modismo": "No se detectó ningún modismo"}',
    "There are no possible idioms: []", "Here are the potential idioms: []",
    # The form of the examples.
    "idioms: []", "idioms: [ ]", "idioms: none", "idioms: [none]", "Idiom: N/A",
    "candidates: none\nidioms: []", "candidates:\n- in hot water: literal\nidioms: []",
    "candidates: none", "Idiom: None. The phrase is used literally.", "Final answer: None",
    # Sentences.
    "There are no idioms in this sentence.", "No idioms detected.", "I see no idioms here [1].",
    "The sentence does not contain any idiomatic expressions.",
    "I could not find any idioms in the given sentence.",
    "There are **no idioms** in this sentence.",
    'There is no idiom in the sentence "He fell in hot water."',
    "No idioms were found. All words are used literally.",
    "There are no idioms, proverbs, or figurative expressions in this sentence.",
    # German, Italian, Spanish.
    "Keine Redewendung", "keine", "nichts", '["Keine Redewendung"]', '{"Redewendung": "keine"}',
    '{"Redewendungen": []}', '{"ist_idiom": false, "ausdruck": "im Regen stehen"}',
    '{"Ausdruck": "im Regen stehen", "Gebrauch": "wörtlich"}', "Redewendung: keine",
    '{"Kandidaten": ["im Regen stehen"], "Redewendung": null}',
    "In diesem Satz gibt es keine Redewendungen.", "Der Satz enthält kein Idiom.",
    "Es wurde keine idiomatische Wendung gefunden.",
    "Keine Redewendung gefunden, der Ausdruck ist wörtlich gemeint.",
    "Nessuna espressione idiomatica", "nessuno", '{"espressioni_idiomatiche": []}',
    '{"modo_di_dire": null}', '{"espressione": "rompere il ghiaccio", "uso": "letterale"}',
    "Non ci sono espressioni idiomatiche in questa frase.",
    "Non c'è nessun modo di dire.", "La frase non contiene alcuna espressione idiomatica.",
    "Ninguno", '{"modismo": null}', '{"expresiones_idiomáticas": []}', "Modismo: ninguno",
    '{"expresión": "romper el hielo", "uso": "literal"}',
    "No hay ninguna expresión idiomática en esta oración.", "La oración no contiene modismos.",
    "No se encontraron modismos.",
]  # fmt: skip
UNREADABLE = [
    # Words or quotes that a repair would skip or join.
    '{"idioms": - break the ice}', '{"idioms": - "break the ice"\n  - "kick the bucket"}',
    '{"idioms": ["a b" and "c d"]}', '["a b" | "c d"]', '["a b"; "c d"]', '["a b" // literal\n]',
    "['a b' # literal\n]", 'idioms: ["a b" and "c d"]', '["a b" // "c d"\n]',
    '{"idioms": ["a b"] but "c d"}',
    '["[\\"a b\\"]"]', '"\\"[\\\\\\"a\\\\\\"]\\""',
    '{"idioms": ["a b" (figurative)]}',
    # Prose that names or may name an idiom.
    "pissed off", "The idiom is pissed off.", 'The idiom is "pissed off".',
    'A sentence with an idiom: "He was pissed off."', "Final answer: pissed off",
    "There are no idioms other than pissed off.", "There are no idioms but one.",
    'There are no idioms, except "pissed off".', "There are no idioms. However: pissed off.",
    'This has no idiom, since "in hot water" is used literally.',
    "No, there is an idiom in this sentence.", "There is no doubt that this is an idiom.",
    "It is not true that there are no idioms here.", "Are there no idioms in this sentence?",
    "There are no literal expressions here.", "The sentence does not only contain an idiom.",
    "Nein, der Satz enthält eine Redewendung.", "Sí, hay un modismo.", "Sì, c'è un modo di dire.",
    "Es ist nicht so, dass es keine Redewendung gibt.", "La frase no tiene sentido.",
    # Formats without idioms.
    "[1]", "As [1] says.", "true", "42", "...", "[[]]", '[["a b"]]', '["a b", {"idiom": "c"}]',
    '{"idioms": 3}', '{"idioms": {"a b": "to c"}}', '{"meaning": "to go"}', '{"note": null}',
    '{"literal_expressions": ["in hot water"]}', '{"Sprache": "Deutsch"}', '[{"text": "He ran."}]',
    'Literal expressions: ["in hot water"]', 'Here are the candidates:\n["in hot water"]',
    '{"candidates": ["in hot water"]}', "candidates:\n- in hot water: figurative", '{"answer": 2}',
    '{"answer": "The idiom is pissed off."}', '"He was pissed off."', "idioms:",
    "idioms: [[a], [b]]",
    # Contradictions.
    '{"has_idiom": true}', '{"has_idiom": true, "idiom": null}', '{"idiom": "yes"}',
    '["none", "pissed off"]', '{"idiom": "a b", "idiom": null}', '["in hot water (literal)"]',
    '{"idioms": ["a b"], "final_answer": "c d"}', '{"idiom": "a b", "idioms": ["c d"]}',
    '{"idiom": "in hot water", "explanation": "It names literal hot water."}',
    '{"idiom": "in hot water", "valid": false}',
    '{"idioms": ["in hot water"], "literal_expressions": ["in hot water"]}',
    '["a b"]\n[]', '["a b"]\n[]\n[]', 'No idioms other than: ["a b"]',
    '["a b"] or ["c d"]', '```json\n["a b"]\n```\n```json\n[]\n```',
    '["in hot water"]\nHowever, it is used literally here.', '["a b"] There are no idioms here.',
    '[]\nWait, "pissed off" is an idiom here.', '{"idioms": ["a b"]} {"verdict": "who knows"}',
    'Literal: []', 'Rejected: ["a b"]', 'Excluded phrases: ["a b"]', 'Rejected idioms: ["a b"]',
    'Idioms: ["a b"]\nOther idioms: []', 'Idioms: ["a b"]\nAdditional idioms: []',
    'Idioms: ["a b"]\nProverbs: []', 'Idioms: ["a b"]\nProverbs: none',
    'Idioms: ["a b"]\nNotes: []', 'Idioms: ["a b"]\nUncertain: []',
    'Redewendungen: ["a b"]\nNicht idiomatisch: []',
    '["a b"]\nNone.', '["a b"]\nNo.', '["a b"]\nFalse', '["a b"]\nMy answer: none',
    '["a b"]\nFinal verdict: none', '["a b"]\nTherefore, nothing.', '["a b"]\nWait, no such thing.',
    '["a b"]\nCorrection: the list should be empty.', '["a b"]\nOn second thought, remove it.',
    'For example: ["a b"]\nMy answer: none', 'The list ["a b"] would be wrong here.',
    '{"idioms": ["a b"], "idiom_count": 0}', '{"idioms": ["a b"], "number_of_idioms": 0}',
    '{"idioms": ["a b"], "count": 0}', '{"idioms": ["a b"], "verdict": "rejected"}',
    '{"idioms": ["a b"], "rejected": ["a b"]}', '{"idiom": "a b", "idiom_meaning": null}',
    '{"idiom": "a b is not used as an idiom here"}', "idioms: a b? No.",
    '["in hot water (literally: soup)"]', "Not possible.",
    # Truncated.
    "[", '["pissed off"', '["pissed off", "lo', '{"idiom": "in hot water"', "idioms: [a b, c",
    '{"idiom": null, "candidates": [{"idiom": "in hot water"}, {"idi', 'idioms: ["a b',
    '["a b"] Wait, I take it back: [', '["a b"] Wait: {', '["a b"] Wait: {"idi', '"none',
    '["a b"] Final answer: {"idioms": [',
]  # fmt: skip


def read(text: str) -> Parsed[list[str]]:
    return parse_idioms(Answer(key="k", text=text, finish_reason="stop"))


@pytest.mark.parametrize(("text", "idioms"), NAMES)
def test_answers_that_name_idioms(text: str, idioms: list[str]) -> None:
    parsed = read(text)
    assert (parsed.value, bool(parsed.rule)) == (idioms, True), parsed.reason


@pytest.mark.parametrize("text", NONE)
def test_answers_that_deny_idioms(text: str) -> None:
    parsed = read(text)
    assert (parsed.value, bool(parsed.rule)) == ([], True), parsed.reason


@pytest.mark.parametrize("text", UNREADABLE)
def test_ambiguous_answers_are_unparseable(text: str) -> None:
    parsed = read(text)
    assert (str(parsed.outcome), parsed.value, parsed.rule) == ("unparseable", None, "")
    assert parsed.reason


@pytest.mark.parametrize(
    ("text", "outcome", "rule"),
    [
        ('["a b"]', "ok", "list of texts"),
        ("['a b']", "repaired", "list of texts"),
        ("[a b]", "repaired", "list without quotes"),
        ("[]", "ok", "empty list"),
        ("{}", "ok", "empty object"),
        ("null", "ok", "null"),
        ('[{"idiom": "a b"}]', "ok", "list of objects"),
        ('{"Detected idioms": ["a b"]}', "ok", 'object with "Detected idioms"'),
        ('{"candidates": ["a b"], "idiom": null}', "ok", 'object with "idiom"'),
        ('{"is_idiom": false}', "ok", "object that says no"),
        ('{"candidates": []}', "ok", "no candidates"),
        ("candidates: []", "ok", "no candidates"),
        ("idioms: [a b]", "ok", "labeled list"),
        ('idioms: ["a b"]', "ok", "labeled list of texts"),
        ("idioms: a b", "repaired", "labeled text"),
        ('"a b"', "ok", "text"),
        ("There are no idioms here.", "ok", "says that there is none"),
        ("---", "ok", "says that there is none"),
        (
            "```json\n```",
            "unparseable",
            "",
        ),
        (
            "<answer></answer>",
            "unparseable",
            "",
        ),
        ("there are no idioms here", "ok", "says that there is none"),
    ],
)
def test_parsed_answers_have_a_rule(text: str, outcome: str, rule: str) -> None:
    parsed = read(text)
    assert (str(parsed.outcome), parsed.rule) == (outcome, rule)


CASES: dict[str, list[dict[str, Any]]] = read_yaml(Path(__file__).with_name("answer_cases.yaml"))


@pytest.mark.parametrize(
    "case", [case for name in CASES if name != "detection" for case in CASES[name]]
)
def test_answers_of_current_models(case: dict[str, Any]) -> None:
    parsed = read(case["answer"])
    expected = None if case["idioms"] == "unreadable" else case["idioms"]
    assert parsed.value == expected, parsed.rule or parsed.reason


@pytest.mark.parametrize("case", CASES["detection"])
def test_detection_answers_of_current_models(case: dict[str, Any]) -> None:
    answer = Answer(key="k", text=case["answer"], finish_reason="stop")
    prediction = read_prediction("idi001-sen01-id", answer)
    expected = None if case["has_idiom"] == "unreadable" else case["has_idiom"]
    assert prediction.has_idiom is expected, prediction.rule or prediction.reason
    assert (prediction.idiom or "") == case.get("idiom", "")


EXPLANATIONS = [
    (text, named == "named", effect == "retracted")
    for effect, texts in read_yaml(Path(__file__).with_name("explanation_cases.yaml")).items()
    for named in texts
    for text in texts[named]
]


@pytest.mark.parametrize(("after", "is_named", "is_retracted"), EXPLANATIONS)
@pytest.mark.parametrize("space", [" ", "\n\n"])
def test_explanations_do_not_retract_the_answer(
    after: str, is_named: bool, is_retracted: bool, space: str
) -> None:
    idioms = ["spill the beans"] if is_named else []
    value = read(f"{json.dumps({'idioms': idioms})}{space}{after}").value
    if is_retracted:
        assert value != idioms
    else:
        assert value == idioms
    fields = {"hasIdiom": is_named, "idiom": "".join(idioms), "meaning": "", "explanation": ""}
    answer = Answer(key="k", text=f"{json.dumps(fields)}{space}{after}", finish_reason="stop")
    has_idiom = read_prediction("idi001-sen01-id", answer).has_idiom
    assert has_idiom is (None if is_retracted else is_named)


def test_strings_instead_of_a_name() -> None:
    for text in ("", " - ", "None.", "No idiom", "n/a", "Keine Redewendung.", "nessuna", "ninguno"):
        assert is_none_answer(text), text
    for text in ("no can do", "nothing to it", "second to none", "kein Blatt vor den Mund nehmen"):
        assert not is_none_answer(text), text


def test_views_that_texts_express() -> None:
    assert find_views("used figuratively, not literally") == {"affirms"}
    assert find_views("non-literal or metaphorical") == {"affirms"}
    assert find_views("non-idiomatic") == {"denies"}
    assert find_views("It is literal rather than figurative.") == {"denies"}
    assert find_views("Nicht wörtlich, sondern übertragen.") == {"affirms"}
    assert find_views("the soup is literally hot") == {"doubts"}
    assert find_views("left in anger") == set()
    assert not denies_idioms("The sentence is short.")


NAME = st.from_regex(r"[bcdfgh]{2,8}( [bcdfgh]{2,8}){0,2}", fullmatch=True)
IDIOMS = st.lists(NAME, max_size=3)
PROSE = st.text(alphabet=st.characters(exclude_characters="[]{}<>`\"'“”:=")).filter(
    lambda text: not (find_views(text) or is_retracted(text, ["x"]) or is_retracted(text, []))
)


def forms(idioms: list[str]) -> list[Any]:
    """Return idioms in each supported JSON format."""
    return [
        idioms,
        {"idioms": idioms},
        {"detected_idioms": idioms, "candidates": [*idioms, "in hot water"]},
        {"idioms": [{"idiom": name, "explanation": "left angry"} for name in idioms]},
        [{"idiom": name, "figurative": True} for name in idioms]
        + [{"idiom": "in hot water", "figurative": False}],
    ]


@given(IDIOMS, st.integers(0, 4), PROSE, PROSE)
def test_prose_around_a_fence_is_ignored(
    idioms: list[str], form: int, before: str, after: str
) -> None:
    value = json.dumps(forms(idioms)[form])
    assert read(f"{before}\n```json\n{value}\n```\n{after}").value == read(value).value == idioms


@given(IDIOMS, st.integers(0, 4))
def test_truncated_json_names_nothing(idioms: list[str], form: int) -> None:
    text = json.dumps(forms(idioms)[form])
    for end in range(1, len(text)):
        assert read(text[:end]).value is None, text[:end]


@given(IDIOMS, st.integers(0, 4), st.sampled_from([str, json.dumps]))
def test_python_and_json_are_equivalent(idioms: list[str], form: int, write: Any) -> None:
    assert read(write(forms(idioms)[form])).value == idioms


@given(NAME, st.sampled_from([{"is_idiom": False}, {"usage": "literal"}, {"literal": True}]))
def test_rejected_phrases_are_never_named(name: str, rejection: dict[str, Any]) -> None:
    for value in ({"idiom": name} | rejection, rejection | {"phrase": name}):
        for text in (value, [value], {"idioms": [value]}, {"result": value}):
            assert read(json.dumps(text)).value == []


@given(IDIOMS, IDIOMS)
def test_the_last_answer_counts(first: list[str], last: list[str]) -> None:
    assert read(f"{json.dumps(first)}\nFinal answer: {json.dumps(last)}").value == last


KEYS = st.sampled_from(["", "_", "idiom", "idioms", "is_idiom", "usage", "count"]) | st.text()
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, "", "-", "_", "no", "pissed off"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(KEYS, VALUES, max_size=3))
def test_any_object_is_parsed_or_has_a_reason(value: dict[str, Any]) -> None:
    parsed = read(json.dumps(value))
    assert (parsed.value is None) == bool(parsed.reason) == (not parsed.rule)


@given(st.text(alphabet='[]{}":,- idomsn\n`<think>/null'))
def test_any_text_is_parsed_or_has_a_reason(text: str) -> None:
    parsed = read(text)
    assert (parsed.value is None) == bool(parsed.reason) == (not parsed.rule)


@pytest.mark.parametrize("mark", "'’‘‛`´′ʹʻʼʽˈ＇｀❛❜‵΄")
def test_marks_like_an_apostrophe_are_apostrophes(mark: str) -> None:
    assert normalize(f"pull someone{mark}s leg") == "pull someones leg"
    assert normalize(f"do n{mark}t") == "dont"
