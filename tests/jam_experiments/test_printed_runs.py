"""The printed papers come back: answers that give Tables 3, 5 and 6, through every step of ours."""

from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from jam.jam_cases import original
from jam_experiments.printed_runs import (
    ORIGINALS,
    VARIANTS,
    Key,
    Solution,
    printed_rows,
    solve,
    wrong_variants,
)
from jam_experiments.test_results import MODELS, given, make

from pieline.llm.answers import Answer
from pieline.studies.jam.metrics.runs import JamMetrics, jam_metrics, match_predictions
from pieline.studies.jam.predictions.prompt_settings import FewShot
from pieline.studies.jam.predictions.prompting import combine, read_sample
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence, as_sentence
from pieline.studies.jam.variants.validation import make_variant

NAMES = {model.published_as: model.name for model in MODELS}
PIES = {"english": "broke the ice", "german": "das Eis gebrochen"}
NAMED = {
    "english": cycle(
        ['{"idioms": ["broke the ice"]}', 'idioms: ["break the ice"]', "[breaks the ice]"]
    ),
    "german": cycle(
        ['{"idiom": "Das Eis gebrochen"}', 'Idiome: ["das Eis brechen"]', "[brach das Eis]"]
    ),
}
NONE = cycle(['{"idioms": []}', "[]", "There are no idioms in this sentence."])


@pytest.fixture(scope="module")
def rows() -> dict[Key, Solution]:
    return {key: solve(key, cells) for key, cells in printed_rows().items()}


@pytest.fixture(scope="module")
def sentences() -> dict[str, list[JamSentence]]:
    """As many originals of either kind as the paper has, with three variants each."""
    found: dict[str, list[JamSentence]] = {}
    for language, numbers in ORIGINALS.items():
        items = found.setdefault(language, [])
        for place in range(sum(numbers)):
            first = original(
                f"Guest {place} {PIES[language]}.",
                PIES[language],
                figurative=place >= numbers[0],
                id=f"test-{place:04d}",
                language=language,
            )
            items.append(as_sentence(first))
            items += [
                as_sentence(
                    make_variant(
                        first, f"In hall {number}. {first.sentence}", number=number, source="sample"
                    )
                )
                for number in range(1, VARIANTS + 1)
            ]
    return found


def answers(
    judged: list[tuple[bool, int]], sentences: list[JamSentence]
) -> Iterator[tuple[str, bool]]:
    """The id of each sentence, and whether the answer to it names the PIE."""
    place = {item.id: number for number, item in enumerate(s for s in sentences if s.is_original)}
    for item in sentences:
        is_right, wrong = judged[place[item.original_id]]
        right = is_right if item.is_original else item.variant_number > wrong
        yield item.id, right == item.is_figurative


def predicted(name: str, names_pie: bool, language: str, setting: str) -> IdiomPrediction:
    """The prediction from raw answers; of five few-shot ones two say otherwise."""
    few_shot = FewShot() if setting.startswith("few_shot") else None
    votes = [names_pie] * 3 + [not names_pie] * 2 if few_shot else [names_pie]
    samples = [
        read_sample(Answer(key=f"{number:064x}", text=next(NAMED[language] if vote else NONE)))
        for number, vote in enumerate(votes)
    ]
    return combine(name, samples, language=language, few_shot=few_shot)


@pytest.fixture(scope="module")
def metrics(rows: dict[Key, Solution], sentences: dict[str, list[JamSentence]]) -> list[JamMetrics]:
    found = []
    for (setting, model, language), solution in rows.items():
        for seed, run in enumerate(solution.seeds, start=42):
            judged = wrong_variants(run, language)
            of = sentences[language]
            predictions = [
                predicted(name, names_pie, language, setting)
                for name, names_pie in answers(judged, of)
            ]
            found.append(
                jam_metrics(
                    of,
                    match_predictions(of, predictions, where="answers"),
                    model=NAMES[model],
                    setting=setting,
                    seed=seed,
                    scoring="paper",
                    released=True,
                    resamples=2,
                    computed_from={},
                )
            )
    return found


# Table 5 prints single runs with one decimal, and both tables average rounded values.
FARTHEST = {"drift": 0.01, "usage": 0.05, "confusion": 0.0}
EQUAL = {"drift": (90, 96), "usage": (160, 236), "confusion": (144, 144)}


@pytest.mark.parametrize(("table", "number"), [("drift", 3), ("usage", 5), ("confusion", 6)])
def test_every_printed_cell_of_the_language_models_comes_back(
    table: str, number: int, metrics: list[JamMetrics], tmp_path: Path
) -> None:
    made_from = given(metrics, tmp_path, published=f"jam_table{number}.csv")
    _, lines = make(f"results:{table}", made_from, tmp_path)
    compared = [line for line in lines if line["printed"] and line["setting"] != "fine_tuned"]
    known = [line for line in compared if line["ours"]]
    # Where nothing could drift, the paper prints 0.
    unknown = {(line["model"], line["printed"]) for line in compared if not line["ours"]}
    assert unknown <= {("qwen2.5-72b", "0")}
    assert {(line["comparable"], line["reproduced"]) for line in known} == {("yes", "yes")}
    distances = [round(abs(float(line["ours"]) - float(line["printed"])), 2) for line in known]
    assert max(distances) <= FARTHEST[table]
    assert (distances.count(0), len(distances)) == EQUAL[table]


def test_drifts_over_seeds_are_means_of_rounded_values(rows: dict[Key, Solution]) -> None:
    """Without rounding first, no whole numbers give any row of three seeds; with it, all."""
    assert Counter((len(row.seeds), row.rounded) for row in rows.values()) == {
        (1, False): 16,
        (3, True): 16,
    }
