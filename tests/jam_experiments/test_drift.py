"""Test negative drift by reconstructing the paper's printed numbers."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jam.jam_cases import original
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from sklearn.metrics import f1_score, precision_score, recall_score
from support import MIRROR, needs_mirror

from pieline.core.uncertainty import Interval, ratio_interval, spread
from pieline.studies.jam.bio import TAGS, Tag
from pieline.studies.jam.metrics.drift import (
    JudgedOriginal,
    accuracy,
    accuracy_interval,
    compare_drifts,
    confusion_as_printed,
    confusion_of_correct,
    confusion_of_variants,
    drift,
    drift_interval,
)
from pieline.studies.jam.metrics.identification import Scoring, is_correct, tags_of_idioms
from pieline.studies.jam.metrics.scores import by_strict_majority
from pieline.studies.jam.metrics.tokens import span_scores, tagging_scores
from pieline.studies.jam.originals import apply_decisions, derive_decisions, read_released_originals
from pieline.studies.jam.predictions.records import IdiomPrediction, IdiomSample
from pieline.studies.jam.raw.id10m import read_id10m

SCORINGS: tuple[Scoring, ...] = ("paper", "released")


def judged(
    name: str, figurative: bool, correct: bool, variants: Sequence[bool] = ()
) -> JudgedOriginal:
    """Return a judged original with its variants."""
    by_id = {f"{name}-v{number}": right for number, right in enumerate(variants, 1)}
    return JudgedOriginal(id=name, is_figurative=figurative, correct=correct, variants=by_id)


def decisions(
    *, right: int, flips: list[int], wrong: list[int], figurative: bool = True
) -> list[JudgedOriginal]:
    """Return originals with three variants, `right` of them judged correctly.

    `flips` and `wrong` are the numbers of wrong variants of right and wrong originals.
    """
    numbers = flips + [0] * (right - len(flips))
    rows = [(True, number) for number in numbers] + [(False, number) for number in wrong]
    return [
        judged(f"o{index}", figurative, correct, (False,) * number + (True,) * (3 - number))
        for index, (correct, number) in enumerate(rows)
    ]


# English, GPT-4o, zero-shot (Tables 3 and 6): S 483.00, ND 6.42, AC 14, NC 151, MX 13.
GPT_4O = decisions(right=161, flips=[3] * 9 + [1] * 4, wrong=[3] * 5 + [2] * 9 + [0] * 3)


def test_only_variants_of_a_right_original_flip() -> None:
    assert judged("a", True, True, [False, True]).flipped == {"a-v1": True, "a-v2": False}
    assert judged("b", True, False, [False]).flipped == {"b-v1": False}


def test_the_interval_of_an_accuracy_is_over_originals() -> None:
    def bounds(*right: bool) -> Interval | None:
        cases = [judged(str(number), True, value) for number, value in enumerate(right)]
        return accuracy_interval(cases, resamples=200, seed=1)

    assert bounds(True, True, True) == Interval(low=1, high=1)
    # Half of all resamples of two contain the same original twice, so both bounds occur.
    assert bounds(True, False) == Interval(low=0, high=1)
    assert bounds(True) is None


def test_gpt_4o_english_has_the_printed_numbers() -> None:
    total = drift(GPT_4O)
    assert (total.originals, total.variants) == (178, 534)
    assert (total.success, total.flipped) == (483, 31)
    assert total.negative_drift is not None
    assert f"{total.success:.2f} {100 * total.negative_drift:.2f}" == "483.00 6.42"
    assert f"{100 * (accuracy(GPT_4O) or 0):.2f}" == "90.45"


def test_confusion_classes_sum_to_all_originals() -> None:
    printed = confusion_as_printed(GPT_4O)
    assert (printed.all_confused, printed.none_confused, printed.mixed) == (14, 151, 13)
    assert sum(printed.model_dump().values()) == 178
    of_correct = confusion_of_correct(GPT_4O)
    assert (of_correct.all_confused, of_correct.none_confused, of_correct.mixed) == (9, 148, 4)
    assert sum(of_correct.model_dump().values()) == 161
    of_variants = confusion_of_variants(GPT_4O)
    assert (of_variants.all_confused, of_variants.none_confused, of_variants.mixed) == (31, 452, 0)


def test_literal_and_idiomatic_parts_add_up() -> None:
    # GPT-4o, English (Table 5): S_L 45 with ND_L 57.8 and S_I 438 with ND_I 1.1.
    literal = decisions(right=15, flips=[3] * 8 + [2], wrong=[3] * 5, figurative=False)
    idiomatic = decisions(right=146, flips=[3, 2], wrong=[3] * 12)
    parts = drift(literal), drift(idiomatic)
    assert [part.success for part in parts] == [45, 438]
    assert [f"{100 * (part.negative_drift or 0):.1f}" for part in parts] == ["57.8", "1.1"]
    both = drift([*literal, *idiomatic])
    assert (both.success, both.flipped) == (483, sum(part.flipped for part in parts))
    assert f"{100 * (both.negative_drift or 0):.2f}" == "6.42"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([462, 474, 477], "471.00±7.94"),
        ([451, 453, 452], "452.00±1.00"),
        ([252, 258, 261], "257.00±4.58"),
        ([489, 489, 498], "492.00±5.20"),
    ],
)
def test_spread_over_seeds(values: list[float], text: str) -> None:
    result = spread(values)
    assert f"{result.mean:.2f}±{result.deviation:.2f}" == text


def test_drift_is_unknown_where_nothing_was_right() -> None:
    # Table 5 prints 0.00 for Qwen2.5-72B, German, literal, which has no successes.
    none_right = decisions(right=0, flips=[], wrong=[3] * 8, figurative=False)
    assert drift(none_right).negative_drift is None
    assert drift_interval(none_right, resamples=100, seed=0) is None


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ([["Go Dutch"], ["go dutch"], ["GO DUTCH"], [], []], ("go dutch",)),
        # Spellings are compared word for word.
        ([["go dutch"], ["go dutch"], ["went dutch"], [], []], ()),
        # Unreadable answers count, so two of five are no majority, and neither are two of four.
        ([["go dutch"], ["go dutch"], None, None, None], ()),
        ([["go dutch"], ["go dutch"], [], []], ()),
        ([["b", "a"], ["a", "b"], ["a", "b"], [], []], ("a", "b")),
        # An idiom counts as often as it is named, and space around it does not matter.
        ([["go dutch", "Go dutch"], [], []], ("go dutch",)),
        ([["a b", "a b", "a b"], [], [], [], []], ("a b",)),
        ([["a b", "a b"], [], [], [], []], ()),
        ([[" a b"], ["a b"], ["a b "], [], []], ("a b",)),
        ([["go dutch"]], ("go dutch",)),
    ],
)
def test_strict_majority_of_all_answers(
    answers: list[list[str] | None], named: tuple[str, ...]
) -> None:
    samples = tuple(
        IdiomSample(
            key=str(number),
            outcome="unparseable" if idioms is None else "ok",
            idioms=None if idioms is None else tuple(idioms),
        )
        for number, idioms in enumerate(answers)
    )
    prediction = IdiomPrediction(id="a", outcome="ok", idioms=("other",), samples=samples)
    assert by_strict_majority(prediction).idioms == named
    unknown = prediction.model_copy(update={"samples": ()})
    assert by_strict_majority(unknown) == unknown


def test_interval_holds_the_value_and_repeats() -> None:
    first = drift_interval(GPT_4O, resamples=2000, seed=0)
    assert first == drift_interval(GPT_4O, resamples=2000, seed=0)
    assert first != drift_interval(GPT_4O, resamples=2000, seed=1)
    assert first is not None
    assert first.low < 31 / 483 < first.high


def test_interval_draws_originals_with_their_variants() -> None:
    # All flips belong to nine originals, so resampling single variants gives a narrower interval.
    by_original = drift_interval(GPT_4O, resamples=4000, seed=0)
    variants = [flip for case in GPT_4O if case.correct for flip in case.flipped.values()]
    single = ratio_interval(variants, [1] * len(variants), resamples=4000, seed=0)
    assert by_original is not None
    assert single is not None
    assert by_original.high - by_original.low > 1.3 * (single.high - single.low)


def test_interval_of_a_share_is_near_the_normal_one() -> None:
    interval = ratio_interval([1] * 40 + [0] * 60, [1] * 100, resamples=20000, seed=3)
    assert interval is not None
    assert interval.low == pytest.approx(0.4 - 1.96 * 0.049, abs=0.015)
    assert interval.high == pytest.approx(0.4 + 1.96 * 0.049, abs=0.015)


def test_a_paired_test_by_hand() -> None:
    # Four originals drift only in the first run. Of 2^10 sign patterns of ten originals, one in
    # eight is as extreme (all four equal, 2 of 16), and these ties count as half.
    first = decisions(right=10, flips=[3] * 4, wrong=[])
    second = decisions(right=10, flips=[], wrong=[])
    runs = {
        "a": [first],
        "b": [second],
        "none right": [decisions(right=0, flips=[], wrong=[0] * 10)],
    }
    tests = compare_drifts(runs, permutations=2000, seed=0)
    assert list(tests) == [("a", "b")]
    test = tests["a", "b"]
    assert (test.difference, test.p_value, test.p_holm) == (pytest.approx(0.4), 1 / 16, 1 / 16)
    # Drift is a ratio, so half as many successes and flips give equal drift.
    half = decisions(right=5, flips=[3] * 2, wrong=[0] * 5)
    (alike,) = compare_drifts({"a": [first], "half": [half]}, permutations=2000, seed=0).values()
    assert alike.difference == pytest.approx(0)
    assert alike.p_value > 0.9
    with pytest.raises(ValueError, match="different originals"):
        compare_drifts({"a": [first], "b": [second[1:]]}, permutations=9, seed=0)


def test_more_seeds_increase_power() -> None:
    first = [decisions(right=10, flips=[1] * 4, wrong=[]) for _ in range(3)]
    second = [decisions(right=10, flips=[1] * count, wrong=[]) for count in (3, 2, 1)]
    (test,) = compare_drifts({"a": first, "b": second}, permutations=2000, seed=0).values()
    assert test.difference == pytest.approx((12 - 6) / 90)
    (single,) = compare_drifts(
        {"a": first[:1], "b": second[:1]}, permutations=2000, seed=0
    ).values()
    assert test.p_value < single.p_value


@pytest.mark.parametrize(
    ("idioms", "figurative", "paper", "released"),
    [
        (["go dutch"], True, True, True),
        (["Go  Dutch!"], True, True, False),
        (["going dutch"], True, True, False),
        ([], True, False, False),
        (["a"], True, False, False),
        (["go"], True, False, True),
        ([""], True, False, True),
        (None, True, False, False),
        ([], False, True, True),
        (["go dutch"], False, False, False),
        (["over the moon"], False, True, False),
        (["over the moon", "go dutch"], False, False, False),
        (None, False, False, True),
    ],
)
def test_right_or_wrong(
    idioms: list[str] | None, figurative: bool, paper: bool, released: bool
) -> None:
    sentence = original("They go dutch.", "go dutch", figurative=figurative)
    verdicts = [is_correct(idioms, sentence, scoring=scoring) for scoring in SCORINGS]
    assert verdicts == [paper, released]


@pytest.mark.parametrize(
    ("idiom", "pie", "right"),
    [
        ("", "break the ice", True),
        (" A ", "a lemon", True),
        ("They broke the ice!", "broke the ice", True),
        ("Achilles' heel", "achilles ' heel", False),
    ],
)
def test_released_scoring_takes_any_part(idiom: str, pie: str, right: bool) -> None:
    sentence = original(f"He said {pie}.", pie)
    for idioms in ([idiom], ["over the moon", idiom]):
        assert is_correct(idioms, sentence, scoring="released") == right


def test_released_scoring_compares_what_the_released_analysis_did() -> None:
    sentence = original("Das hat er zur Genüge.", "zur Genüge", language="german")
    spaced = sentence.model_copy(update={"pies": ("zur  Genüge",)})
    assert [is_correct(["zur Genüge"], spaced, scoring=name) for name in SCORINGS] == [True, True]
    assert not is_correct(["zur  Genüge"], spaced, scoring="released")


@needs_mirror
@pytest.mark.parametrize(("language", "number"), [("english", 178), ("german", 137)])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_gold_answers_are_right_about_every_real_original(
    language: str, number: int, scoring: Scoring
) -> None:
    raw = read_id10m(MIRROR / f"id10m/test_{language}.tsv", split="test")
    place = MIRROR / f"id10m-jam/{language}.json"
    decisions = derive_decisions(raw, read_released_originals(place), where=place)
    originals = apply_decisions(raw, decisions, language=language, where=place)
    right = [is_correct(item.true_idioms, item, scoring=scoring) for item in originals]
    assert (len(right), sum(right)) == (number, number)


TOKENS = ["It", "'s ", "his ", "achilles ", "' ", "heel", ", ", "a ", "real ", "heel", "."]


@pytest.mark.parametrize(
    ("idioms", "marked"),
    [
        (["Achilles' heel"], [3, 4, 5]),
        (["it's his"], [0, 1, 2]),
        (["heel"], [5]),
        (["hee"], []),
        (["real heel.", "heel"], [8, 9, 5]),
        (["his achilles", "achilles ' heel"], [2, 3]),
        (["", "?!"], []),
        (["his real heel"], []),
    ],
)
def test_named_idioms_are_found_in_whole_tokens(idioms: list[str], marked: list[int]) -> None:
    tags = tags_of_idioms(TOKENS, idioms)
    assert [number for number, tag in enumerate(tags) if tag != "O"] == sorted(marked)


SENTENCES = st.lists(st.lists(st.tuples(*[st.sampled_from(TAGS)] * 2), min_size=1), min_size=1)


@given(SENTENCES)
def test_span_scores_match_seqeval(sentences: list[list[tuple[Tag, Tag]]]) -> None:
    """Also on tags that are not valid BIO, such as an I after an O."""
    gold, predicted = ([[pair[of] for pair in each] for each in sentences] for of in (0, 1))
    expected = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    scores = span_scores(gold, predicted)
    assert (scores.precision, scores.recall, scores.f1) == expected[:3]


@given(SENTENCES)
def test_token_scores_match_scikit_learn(sentences: list[list[tuple[Tag, Tag]]]) -> None:
    gold, predicted = ([[pair[of] for pair in each] for each in sentences] for of in (0, 1))
    scores = tagging_scores(gold, predicted)
    tags = [[tag for tags in each for tag in tags] for each in (gold, predicted)]
    inside = [[tag != "O" for tag in each] for each in tags]
    assert scores.token_precision == precision_score(*inside, zero_division=0)
    assert scores.token_recall == recall_score(*inside, zero_division=0)
    assert scores.token_f1 == f1_score(*inside, zero_division=0)
    assert scores.macro_f1 == f1_score(*tags, labels=TAGS, average="macro", zero_division=0)
