"""Test BIO tags and the matching of PIEs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import MIRROR, needs_mirror

from pieline.core.yamls import read_yaml
from pieline.languages.matching import contains_pie, matches_pie
from pieline.languages.pointing import points_at_pie
from pieline.languages.registry import get_language, language_names
from pieline.languages.spelling import normalize
from pieline.studies.jam.bio import TAGS, Span, span_text, spans_of, tags_of

WORDS = st.text(alphabet="abcdefgäöüßé", min_size=2, max_size=8)
TEXTS = st.text(max_size=60)
LANGUAGE = st.sampled_from(language_names())
PHRASES = st.lists(
    st.sampled_from(
        [
            "spill",
            "the",
            "beans",
            "broke",
            "ice",
            "hot",
            "water",
            "in",
            "on",
            "a",
            "ball",
            "take",
            "took",
        ]
    )
    | WORDS,
    max_size=6,
).map(" ".join)


@st.composite
def valid_tags(draw: st.DrawFn) -> list[str]:
    """Draw a valid sequence of BIO tags."""
    tags: list[str] = []
    for choice in draw(st.lists(st.integers(0, 2), max_size=20)):
        tag = TAGS[choice]
        tags.append("B-IDIOM" if tag == "I-IDIOM" and (not tags or tags[-1] == "O") else tag)
    return tags


@given(valid_tags())
def test_spans_round_trip(tags):
    assert tags_of(spans_of(tags), len(tags)) == tags


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=6))
def test_tags_round_trip(gaps):
    spans, place = [], 0
    for gap, length in gaps:
        spans.append(Span(place + gap - 1, place + gap - 1 + length))
        place = spans[-1].end
    assert spans_of(tags_of(spans, place + 1)) == spans


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (["O", "I-IDIOM"], "without B-IDIOM at token 2"),
        (["I-IDIOM"], "without B-IDIOM at token 1"),
        (["O", "B-MWE"], "unknown tag 'B-MWE' at token 2"),
    ],
)
def test_invalid_tags_are_errors(tags, problem):
    with pytest.raises(ValueError, match=problem):
        spans_of(tags)


def test_span_text_is_bare():
    assert span_text(["He ", "kept ", "mum", "."], Span(1, 3)) == "kept mum"


@given(TEXTS)
def test_normalization_is_idempotent(text):
    assert normalize(normalize(text)) == normalize(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Achilles' heel", "achilles ' heel"),
        ("Achilles’ heel", "Achilles ' heel"),
        ("it's not rocket science", "it 's not rocket science"),
        ("don’t hold your breath", "do n't hold your breath"),
        ("cat's pyjamas", "cat 's pyjamas"),
        ("five-finger discount", "five - finger discount"),
        ("„mir nichts, dir nichts“", "mir  nichts ,  dir  nichts"),
        ("Spaß beiseite", "SPASS  BEISEITE"),
        ("spill the bea\u00adns", "spill the beans"),
        ("ﬁne kettle of ﬁsh", "fine kettle of fish"),
    ],
)
def test_spelling_details_do_not_count(one, other):
    assert normalize(one) == normalize(other) != ""
    assert matches_pie(one, other, language="english")
    assert matches_pie(other, one, language="english")


NAMED: list[tuple[str, str, str]] = [
    ("broke the ice", "break the ice", "english"),
    ("has finally broken the ice", "broke the ice", "english"),
    ("pulling my leg", "pull someone's leg", "english"),
    ("gave him a piece of her mind", "give someone a piece of one's mind", "english"),
    ("The beans were spilled", "spill the beans", "english"),
    ("hot water", "in hot water", "english"),
    ("lemon", "a lemon", "english"),
    ("cat out of the bag", "let the cat out of the bag", "english"),
    ("'kicked the bucket'", "kick the bucket", "english"),
    ("get over it", "get over", "english"),
    ("sitting on the fence", "sit on the fence", "english"),
    ("nahm ihn auf den Arm", "auf den Arm nehmen", "german"),
    ("nach hinten losgeht", "nach  hinten  losgegangen", "german"),
    ("Wie dem auch sei", "wie  dem  auch  sei", "german"),
    ("ab und zu", "ab und zu", "german"),
    ("in die Hose ging", "in die Hose gehen", "german"),
    ("einen Bären aufgebunden", "einen Bären aufbinden", "german"),
    ("kalte Füße", "kalter Fuß", "german"),
    ("den Geist aufgeben", "gab den Geist auf", "german"),
]
NOT_NAMED: list[tuple[str, str, str]] = [
    ("the ice", "break the ice", "english"),
    ("the beans", "spill the beans", "english"),
    ("ball", "on the ball", "english"),
    ("ball", "balls up", "english"),
    ("get", "get over", "english"),
    ("break the ace", "break the ice", "english"),
    ("kick the ball", "kick the bucket", "english"),
    ("bite into bullets left by the mark", "bite the bullet", "english"),
    ("up in the air", "leave up in the air", "english"),
    ("she said that he had broken the ice at the party last night", "break the ice", "english"),
    ("einfach", "einfach so", "german"),
    ("auf", "auf den Arm nehmen", "german"),
    ("Ohr", "offenes  Ohr", "german"),
    ("Hand", "Hand in Hand", "german"),
    ("Holzweg", "auf dem Weg", "german"),
    ("und zu", "ab und zu", "german"),
]


@pytest.mark.parametrize(("prediction", "pie", "language"), NAMED)
def test_names_the_pie(prediction, pie, language):
    assert matches_pie(prediction, pie, language=language)


@pytest.mark.parametrize(("prediction", "pie", "language"), NOT_NAMED)
def test_does_not_name_the_pie(prediction, pie, language):
    assert not matches_pie(prediction, pie, language=language)


CASES = read_yaml(Path(__file__).with_name("matching_cases.yaml"))


@pytest.mark.parametrize(
    ("language", "pie", "text", "matches"),
    [
        (language, case["pie"], text, matches)
        for languages in CASES.values()
        for language, cases in languages.items()
        for case in cases
        for kind, matches in {
            "names": True,
            "mistaken": True,
            "not": False,
            "missed": False,
        }.items()
        for text in case.get(kind, [])
    ],
)
def test_a_listed_case(language, pie, text, matches):
    assert matches_pie(text, pie, language=language) == matches


@pytest.mark.parametrize(("part", "right"), [("tuned", 0.97), ("held_back", 0.97)])
def test_few_listed_cases_are_wrong(part, right):
    cases = [case for cases in CASES[part].values() for case in cases]
    agreed = sum(len(case.get(kind, [])) for case in cases for kind in ("names", "not"))
    other = sum(len(case.get(kind, [])) for case in cases for kind in ("missed", "mistaken"))
    assert agreed >= right * (agreed + other)


@given(PHRASES, PHRASES, LANGUAGE)
def test_matching_is_symmetric_unless_one_contains_the_other(one, other, language):
    holding = contains_pie(one, other, language=language) or contains_pie(
        other, one, language=language
    )
    if not holding:
        assert matches_pie(one, other, language=language) == matches_pie(
            other, one, language=language
        )


@given(PHRASES, LANGUAGE)
def test_equal_texts_match_both_ways(phrase, language):
    shouted = f"“{phrase.upper()}!”"
    expected = normalize(phrase) != ""
    assert matches_pie(phrase, shouted, language=language) == expected
    assert matches_pie(shouted, phrase, language=language) == expected


@given(st.text(alphabet=" .,'’\"-–\t\n\u00ad", max_size=8), PHRASES, LANGUAGE)
def test_an_empty_answer_never_matches(answer, pie, language):
    assert not matches_pie(answer, pie, language=language)
    assert not matches_pie(pie, answer, language=language)


@given(st.data(), LANGUAGE)
def test_an_answer_of_stop_words_never_matches(data, language):
    stop = sorted(get_language(language).stop_words)
    answer = " ".join(data.draw(st.lists(st.sampled_from(stop), min_size=1, max_size=5)))
    pie = " ".join([answer, data.draw(WORDS.filter(lambda word: word not in stop))])
    assert not matches_pie(answer, pie, language=language)
    other = " ".join(data.draw(st.lists(st.sampled_from(stop), min_size=1, max_size=5)))
    # The only exception is an identical PIE that consists of stop words.
    assert matches_pie(answer, other, language=language) == (normalize(answer) == normalize(other))


@pytest.mark.parametrize(
    ("answer", "pie", "sentence"),
    [
        ("cold water", "pour cold water over proud plans", "They drank cold water."),
        ("jumped out of", "out of the blue", "He jumped out of the boat."),
    ],
)
def test_quotation_needs_most_content_words(answer, pie, sentence):
    assert not points_at_pie(answer, pie, sentence=sentence, language="english")


@needs_mirror
@pytest.mark.parametrize("language", ["english", "german"])
def test_verbatim_answers_name_every_released_pie(language):
    rows = json.loads((MIRROR / f"id10m-jam/{language}.json").read_text(encoding="utf-8"))
    for row in rows:
        (pie,) = row["PIE"]
        assert contains_pie(row["sentence"], pie, language=language)
        named = [matches_pie(text, pie, language=language) for text in row["true_idioms"]]
        assert any(named) or not named
        for span in spans_of(row["tags"]):
            assert matches_pie(span_text(row["tokens"], span), pie, language=language)
