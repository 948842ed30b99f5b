"""The rehearsal's answers and tags reproduce the printed numbers through the real pipeline."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from jam_experiments.test_results import make
from run_script import run_script
from small_runs import GRID, ask_all, book_of, jam_sentences
from support import MIRROR, ROOT, needs_mirror

from pieline.core.conditions import Conditions
from pieline.core.files import write_json
from pieline.core.records import load_jsonl
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.verdicts import names_pie
from pieline.studies.jam.bio import span_text
from pieline.studies.jam.metrics.humans import human_metrics, read_labels
from pieline.studies.jam.metrics.identification import is_correct
from pieline.studies.jam.metrics.runs import JamMetrics, jam_metrics, match_predictions
from pieline.studies.jam.predictions.prompting import Identification
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.raw.released import read_released_originals
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.settings import JamFineTuning, JamSettings
from pieline.studies.jam.variants.generation import NeutralVariants, confusing_variants
from rehearsal.answers.idiots import printed_counts
from rehearsal.answers.jam import PrintedJam, printed_jam
from rehearsal.answers.people import printed_labels, save_labels
from rehearsal.answers.printed_runs import (
    FINE_TUNED,
    Key,
    printed_runs,
)
from rehearsal.answers.tags import printed_tags
from rehearsal.answers.texts import pie_span
from rehearsal.formats import Asked

PUBLISHED = ROOT / "published"
ORIGINALS = {"english": (20, 158), "german": (8, 129)}
"""Numbers of literal and idiomatic originals in the paper (section 5)."""
MODELS = load_registry(ROOT / "models.yaml")
NAMES = {entry.published_as: name for name, entry in reversed(MODELS.items())}


# At the papers' size -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed() -> PrintedJam:
    return printed_jam(PUBLISHED)


@pytest.fixture(scope="module")
def sentences() -> dict[str, list[JamSentence]]:
    return {language: jam_sentences(language, *numbers) for language, numbers in ORIGINALS.items()}


def predicted(
    sentences: Sequence[JamSentence], printed: PrintedJam, key: Key, seed: int
) -> list[IdiomPrediction]:
    """Return the predictions of a run: an encoder's tags or a language model's idioms."""
    if key[0] == FINE_TUNED:
        return printed_tags(sentences, PUBLISHED, model=key[1], seed=seed)
    right = printed.right(sentences, key, seed)
    return [
        IdiomPrediction(
            id=item.id,
            outcome="ok",
            idioms=item.pies if right[item.id] == item.is_figurative else (),
        )
        for item in sentences
    ]


@pytest.fixture(scope="module")
def metrics(sentences: dict[str, list[JamSentence]], printed: PrintedJam) -> list[JamMetrics]:
    records = []
    for key, runs in printed_runs().items():
        setting, model, language = key
        settings = JamFineTuning() if setting == FINE_TUNED else JamSettings()
        for seed in settings.seeds[: len(runs)]:
            predictions = predicted(sentences[language], printed, key, seed)
            records.append(
                jam_metrics(
                    sentences[language],
                    match_predictions(sentences[language], predictions, where="answers"),
                    model=NAMES[model],
                    setting=setting,
                    seed=seed,
                    scoring="paper",
                    released=True,
                    resamples=2,
                    conditions=Conditions(),
                    computed_from={},
                )
            )
    return records


@pytest.fixture(scope="module")
def inputs(metrics: list[JamMetrics], tmp_path_factory: pytest.TempPathFactory) -> DisplayInputs:
    folder = tmp_path_factory.mktemp("metrics")
    paths = []
    for item in metrics:
        path = folder / item.language / item.model / item.setting / f"seed-{item.seed}.json"
        write_json(path, item.model_dump())
        paths.append(str(path))
    models = Project(MODELS, LLMSettings()).describe_models(GRID["jam"]["models"])
    return DisplayInputs(
        metrics=tuple(paths),
        files={"text_numbers": str(PUBLISHED / "text_numbers.csv")},
        models=models,
        options={"figure3": JamSettings().figure3.model_dump()},
    )


# Our numbers differ where the paper averages rounded values or prints one decimal.
EQUAL = {"drift": (99, 112), "usage": (186, 276), "confusion": (168, 168)}
FARTHEST = {"drift": 0.02, "usage": 0.05, "confusion": 0.0}


@pytest.mark.parametrize(("table", "number"), [("drift", 3), ("usage", 5), ("confusion", 6)])
def test_every_printed_cell_is_reproduced(
    table: str, number: int, inputs: DisplayInputs, tmp_path: Path
) -> None:
    made_from = inputs.with_files(published=str(PUBLISHED / f"jam_table{number}.csv"))
    _, lines = make(f"results:{table}_table", made_from, tmp_path)
    compared = [line for line in lines if line["printed"]]
    known = [line for line in compared if line["ours"]]
    # If no original can drift, the paper prints 0.
    unknown = {(line["model"], line["printed"]) for line in compared if not line["ours"]}
    assert unknown <= {("qwen2.5-72b", "0")}
    assert {line["comparable"] for line in known} == {"yes"}
    missed = [line for line in known if line["reproduced"] == "no"]
    # The successes without the literal ones are 248.4.
    odd = [("mbert", "english", "success_idiomatic", "248.40", "284.4")] if number == 5 else []
    assert [
        tuple(line[name] for name in ("model", "language", "metric", "ours", "printed"))
        for line in missed
    ] == odd
    distances = [
        round(abs(float(line["ours"]) - float(line["printed"])), 2)
        for line in known
        if line not in missed
    ]
    assert max(distances) <= FARTHEST[table]
    assert (distances.count(0), len(known)) == EQUAL[table]


def test_the_sums_of_figure_3_are_reproduced(inputs: DisplayInputs, tmp_path: Path) -> None:
    made_from = inputs.with_files(
        published=str(PUBLISHED / "jam_table3.csv"),
        text_numbers=str(PUBLISHED / "text_numbers.csv"),
    )
    _, lines = make("text:text", made_from, tmp_path)
    bars = [line for line in lines if "confusing_variants" in line["id"]]
    assert [(line["ours"], line["printed"]) for line in bars] == [("118", "118"), ("149", "149")]


def test_the_ablated_run_misjudges_the_58_variants_that_are_rewritten(
    inputs: DisplayInputs,
) -> None:
    (path,) = [name for name in inputs.metrics if "english/gpt-4o-mini/zero_shot/seed-42" in name]
    assert len(confusing_variants(path)) == 58


def test_two_people_label_the_variants_as_printed(
    sentences: dict[str, list[JamSentence]], tmp_path: Path
) -> None:
    save_labels(tmp_path / "labels.csv", printed_labels(sentences["english"], PUBLISHED))
    scores = human_metrics(
        read_labels(tmp_path / "labels.csv"),
        sentences["english"],
        where="labels",
        released=True,
        computed_from={},
    )
    shares = (scores.first.accuracy, scores.second.accuracy, scores.agreement)
    assert [round(100 * share, 1) for share in shares] == [90.4, 87.1, 81.5]
    assert (scores.variants, scores.simulated) == (178, False)
    for person in (scores.first, scores.second):
        assert person.accuracy_literal < person.accuracy_figurative


# Over the wire, on a tenth of the sentences ------------------------------------------------------


def is_made(task: Task) -> bool:
    return all(Path(path).exists() for path in task.inputs.values())


def test_every_run_of_the_grid_is_parsed_as_planned(folder: Path, printed: PrintedJam) -> None:
    book, planned = book_of(folder)
    rules: Counter[str] = Counter()
    dissenting = 0
    for task in planned.tasks:
        if not isinstance(task, Identification) or not is_made(task):
            continue
        ask_all(book, task)
        predictions = {
            item.id: item for item in load_jsonl(task.outputs["predictions"], IdiomPrediction)
        }
        asked = load_jsonl(task.inputs["sentences"], JamSentence)
        published_as = planned.models[task.model].published_as or ""
        key = (task.setting, published_as, asked[0].language)
        assert {item.id: is_correct(predictions[item.id].idioms, item) for item in asked} == (
            printed.right(asked, key, task.seed)
        )
        samples = [item.samples for item in predictions.values()]
        rules.update(sample.rule for each in samples for sample in each)
        dissenting += sum(len({bool(sample.idioms) for sample in each}) > 1 for each in samples)
    assert len(rules) >= 7
    assert dissenting > 100


def test_neutral_variants_are_answered_after_their_inputs_are_made(
    folder: Path, printed: PrintedJam
) -> None:
    book, planned = book_of(folder)
    (writing,) = (task for task in planned.tasks if isinstance(task, NeutralVariants))
    last = [task for task in planned.tasks if writing.outputs["variants"] in task.inputs.values()]
    (run,) = (
        task
        for task in planned.tasks
        if isinstance(task, Identification)
        and (task.model, task.setting, task.seed) == ("gpt-4o-mini", "zero_shot", 42)
        and is_made(task)
        and "english" in task.inputs["sentences"]
    )
    ask_all(book, run)
    asked = load_jsonl(run.inputs["sentences"], JamSentence)
    scored = jam_metrics(
        asked,
        match_predictions(
            asked, load_jsonl(run.outputs["predictions"], IdiomPrediction), where="answers"
        ),
        model="gpt-4o-mini",
        setting="zero_shot",
        seed=42,
        scoring="paper",
        released=True,
        resamples=2,
        computed_from={},
    )
    write_json(writing.inputs["metrics"], scored.model_dump())
    ask_all(book, writing)
    report = json.loads(Path(writing.outputs["report"]).read_text(encoding="utf-8"))
    assert report["flags"] == {}
    assert report["variants"] == len(confusing_variants(writing.inputs["metrics"])) > 3
    (neutral,) = last
    ask_all(book, neutral)
    written = load_jsonl(neutral.inputs["sentences"], JamSentence)
    predictions = {
        item.id: item for item in load_jsonl(neutral.outputs["predictions"], IdiomPrediction)
    }
    wrong = sum(not is_correct(predictions[item.id].idioms, item) for item in written)
    assert wrong == round(len(written) * 25 / 58)


def test_answers_to_idiots_have_the_printed_proportions(folder: Path) -> None:
    book, planned = book_of(folder)
    counts = printed_counts(PUBLISHED)
    suite = load_jsonl("results/datasets/idiots/sentences.jsonl", IdiotsSentence)
    for model in GRID["idiots"]["models"]:
        (task,) = (task for task in planned.tasks if task.model == model)
        ask_all(book, task)
        predictions = {
            item.id: item for item in load_jsonl(task.outputs["predictions"], DetectionPrediction)
        }
        of = counts[planned.models[model].published_as or ""]
        idiomatic = [item for item in suite if item.is_idiomatic]
        others = [item for item in suite if not item.is_idiomatic]
        for group, total, wanted in (
            (idiomatic, of.idiomatic, (of.true_positives, of.right_idiom)),
            (others, of.distractors, (of.distractors - of.true_negatives, of.pie_in_distractor)),
        ):
            positives = sum(bool(predictions[item.id].has_idiom) for item in group)
            named = sum(names_pie(item, predictions[item.id]) for item in group)
            assert positives == pytest.approx(wanted[0] * len(group) / total, abs=1)
            assert named == pytest.approx(wanted[1] * len(group) / total, abs=1)


def test_unprinted_runs_are_answered_correctly_in_the_enforced_form(folder: Path) -> None:
    models = ["gpt-4o"]
    grid = GRID | {"studies": ["jam"], "jam": {**GRID["jam"], "models": models, "neutral": None,
                   "attention": None, "seeds_by_model": {}, "settings": ["zero_shot_schema"],
                   "seeds": [7]}}  # fmt: skip
    book, planned = book_of(folder, grid)
    for task in planned.tasks:
        ask_all(book, task)
        predictions = {
            item.id: item for item in load_jsonl(task.outputs["predictions"], IdiomPrediction)
        }
        asked = load_jsonl(task.inputs["sentences"], JamSentence)
        assert all(is_correct(predictions[item.id].idioms, item) for item in asked)
        assert {sample.rule for item in predictions.values() for sample in item.samples} == {
            'object with "idioms"'
        }
    assert len(planned.tasks) == 2


def test_an_unknown_question_is_rejected(folder: Path) -> None:
    book, _ = book_of(folder)
    turns = (("system", "You are a poet."), ("user", "Sentence: It rains."))
    for model in ("gpt-4o-2024-08-06", "gpt-9"):
        with pytest.raises(KeyError, match=rf"unknown question to {model} \(seed 42\): 'Sentence"):
            book.text(Asked(model, turns, 42))


def test_the_script_gives_the_librarys_tags(folder: Path) -> None:
    path, output = folder / "results/datasets/jam/english.jsonl", folder / "tags.jsonl"
    run_script(
        "rehearse_tags",
        input={"printed": [PUBLISHED / "tables.yaml"], "sentences": path},
        output=[output],
        params={"printed_as": "BERT"},
        wildcards={"seed": 42},
    )
    predictions = load_jsonl(output, IdiomPrediction)
    sentences = load_jsonl(path, JamSentence)
    assert predictions == printed_tags(sentences, PUBLISHED, model="BERT", seed=42)
    assert any(item.idioms for item in predictions)


@needs_mirror
@pytest.mark.parametrize("language", ["english", "german"])
def test_tags_can_mark_the_pie_of_every_released_original(language: str) -> None:
    for number, row in enumerate(
        read_released_originals(MIRROR / "id10m-jam" / f"{language}.json"), start=1
    ):
        item = JamSentence(
            language=language,
            sentence="".join(row.tokens),
            tokens=row.tokens,
            tags=row.tags,
            pies=row.PIE,
            true_idioms=row.true_idioms,
            is_figurative=row.is_figurative,
            id=f"test-{number:04d}",
            original_id=f"test-{number:04d}",
            variant_number=0,
        )
        span = pie_span(item)
        assert span
        assert is_correct([span_text(item.tokens, span)], item) == item.is_figurative
