"""The result tables and figures: the papers' printed numbers from hand-made decisions."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from jam_experiments.test_drift import GPT_4O
from support import ROOT

from pieline.reporting.models import ModelDescription
from pieline.studies.idiolink.figures.modes import save_figure, use_style
from pieline.studies.jam.figures.results import (
    billions,
    confused_runs,
    draw_accuracy_vs_drift,
    draw_confused_models,
    draw_confusion,
    prompted,
    write_figure_numbers,
)
from pieline.studies.jam.metrics.drift import (
    Judgement,
    confusion_as_printed,
    confusion_of_correct,
    confusion_of_variants,
    drift,
)
from pieline.studies.jam.metrics.runs import JamMetrics, JudgedOriginal
from pieline.studies.jam.metrics.tokens import TaggingScores
from pieline.studies.jam.tables.results import write_results_table
from pieline.studies.jam.tables.runs import write_pairs, write_runs

NO_TAGS = TaggingScores(
    sentences=1, span_precision=0, span_recall=0, span_f1=0,
    token_precision=0, token_recall=0, token_f1=0, macro_f1=0,
)  # fmt: skip
MODELS = [
    ModelDescription(name="gpt-4o-mini", kind="llm", label="GPT-4o mini",
                     published_as="GPT-4o mini", parameters=">200B*"),
    ModelDescription(name="gpt-4o", kind="llm", label="GPT-4o", published_as="GPT-4o",
                     parameters="8B*"),
    ModelDescription(name="o3-mini", kind="llm", label="o3-mini", published_as="o3-mini",
                     reasoning=True),
    ModelDescription(name="bert", kind="encoder", label="BERT", published_as="BERT"),
]  # fmt: skip


def metrics(
    judgements: list[Judgement],
    *,
    model: str = "gpt-4o",
    setting: str = "zero_shot",
    seed: int = 42,
    language: str = "english",
    released: bool = True,
) -> JamMetrics:
    literal = [case for case in judgements if not case.is_figurative]
    idiomatic = [case for case in judgements if case.is_figurative]
    values: dict[str, Any] = {
        "language": language, "model": model, "setting": setting, "seed": seed,
        "scoring": "paper", "dataset_is_released": released,
        "accuracy": sum(case.correct for case in judgements) / len(judgements),
        "accuracy_interval": None, "overall": drift(judgements), "literal": drift(literal),
        "idiomatic": drift(idiomatic), "confusion": confusion_as_printed(judgements),
        "confusion_of_correct": confusion_of_correct(judgements),
        "confusion_of_variants": confusion_of_variants(judgements),
        "tagging_of_originals": NO_TAGS, "tagging_of_variants": NO_TAGS,
        "outcomes": {"ok": 4 * len(judgements)}, "computed_from": {},
        "judged": [
            JudgedOriginal(
                id=case.original_id, is_figurative=case.is_figurative, correct=case.correct,
                variants={f"{case.original_id}-v{n}": r for n, r in enumerate(case.variants, 1)},
            )
            for case in judgements
        ],
    }  # fmt: skip
    return JamMetrics.model_validate(values)


def right_originals(number: int, *, originals: int = 178, flips: int = 0) -> list[Judgement]:
    """So many right originals; the first `flips` of them have one wrong variant."""
    return [
        Judgement(f"o{index}", index >= 20, index < number, (index >= flips, True, True))
        for index in range(originals)
    ]


SEEDS = [
    metrics(right_originals(number), model="gpt-4o-mini", seed=seed)
    for seed, number in ((42, 154), (43, 158), (44, 159))
]


def write(table: str, found: list[JamMetrics], folder: Path) -> tuple[str, list[dict[str, str]]]:
    number = {"drift": 3, "usage": 5, "confusion": 6}[table]
    write_results_table(
        table,
        found,
        MODELS,
        published=ROOT / f"published/jam_table{number}.csv",
        template=ROOT / f"templates/jam_{table}.tex.jinja",
        tex=folder / "table.tex",
        csv=folder / "table.csv",
    )
    with (folder / "table.csv").open() as stream:
        return (folder / "table.tex").read_text(), list(csv.DictReader(stream))


def cell(
    rows: list[dict[str, str]],
    model: str,
    metric: str,
    language: str = "english",
    setting: str = "zero_shot",
) -> dict[str, str]:
    (row,) = [
        row
        for row in rows
        if (row["model"], row["metric"], row["language"], row["setting"])
        == (model, metric, language, setting)
    ]
    return row


def test_drift_table_has_the_printed_numbers(tmp_path: Path) -> None:
    text, rows = write("drift", [metrics(GPT_4O), *SEEDS], tmp_path)
    assert re.search(r"GPT-4o\s+& 483.00\s+& 6.42", text)
    assert re.search(r"GPT-4o mini\s+& 471.00\$\\pm\$7.94", text)
    success, share = cell(rows, "gpt-4o", "success"), cell(rows, "gpt-4o", "negative_drift")
    assert (success["ours"], success["printed"], success["reproduced"]) == ("483.00", "483", "yes")
    assert (share["ours"], share["printed"], share["reproduced"]) == ("6.42", "6.42", "yes")
    several = cell(rows, "gpt-4o-mini", "success_std")
    assert (several["ours"], several["printed"], several["seeds"]) == ("7.94", "7.94", "42 43 44")
    assert "sample data" not in text


def test_what_was_not_run_is_unknown_with_its_reason(tmp_path: Path) -> None:
    text, rows = write("drift", [metrics(GPT_4O)], tmp_path)
    for model, language, setting in (
        ("o3-mini", "german", "zero_shot"),
        ("gpt-4o", "german", "zero_shot"),
        ("gpt-4o", "english", "few_shot_sc_cotbest"),
        ("bert", "english", "fine_tuned"),
    ):
        row = cell(rows, model, "success", language, setting)
        assert (row["ours"], row["comparable"]) == ("", "no")
        assert row["reason"].startswith("not run")
        assert row["printed"]
    assert "Not run in this configuration: BERT, GPT-4o mini, o3-mini." in text
    assert "German" not in text.split(r"\caption")[0]


def test_unknown_drift_is_a_dash_and_not_zero(tmp_path: Path) -> None:
    none_right = [metrics(right_originals(0))]
    text, rows = write("usage", none_right, tmp_path)
    assert re.search(r"GPT-4o\s+& 0.00\s+& 0.00\s+& --\s+& 0.00\s+& --", text)
    row = cell(rows, "gpt-4o", "negative_drift_literal")
    assert (row["ours"], row["comparable"]) == ("", "no")
    assert "nothing could drift" in row["reason"]


def test_confusion_sums_to_all_originals(tmp_path: Path) -> None:
    text, _ = write("confusion", [metrics(GPT_4O)], tmp_path)
    found = re.search(r"GPT-4o\s+& ([\d.]+)\s+& ([\d.]+)\s+& ([\d.]+)", text)
    assert found
    assert [float(number) for number in found.groups()] == [14, 151, 13]
    assert sum(float(number) for number in found.groups()) == 178


def test_encoders_count_variants(tmp_path: Path) -> None:
    encoder = metrics(right_originals(119, flips=42), model="bert", setting="fine_tuned", seed=5)
    text, rows = write("confusion", [encoder], tmp_path)
    # Of S_M = 357 variants 42 flipped: as Table 6's 42.40 and 314.60 of five seeds.
    assert re.search(r"Encoders & BERT\s+& 42.00\s+& 315.00\s+& 0.00", text)
    assert cell(rows, "bert", "mixed", setting="fine_tuned")["reproduced"] == "yes"


def test_reasoning_models_have_their_own_group(tmp_path: Path) -> None:
    text, _ = write("drift", [metrics(GPT_4O), metrics(GPT_4O, model="o3-mini")], tmp_path)
    assert text.index("Zero-shot") < text.index("Reasoning LLMs") < text.index("o3-mini")


def test_sample_data_is_never_comparable(tmp_path: Path) -> None:
    text, rows = write("drift", [metrics(GPT_4O, released=False)], tmp_path)
    assert "not comparable with the paper" in text
    assert {row["comparable"] for row in rows} == {"no"}
    assert {row["reproduced"] for row in rows} == {""}


def test_several_seeds_may_differ_by_two_printed_deviations(tmp_path: Path) -> None:
    near = [metrics(right_originals(162), model="gpt-4o-mini", seed=seed) for seed in (42, 43, 44)]
    _, rows = write("drift", near, tmp_path)
    assert cell(rows, "gpt-4o-mini", "success")["reproduced"] == "yes"  # 486 for 471 ± 7.94
    far = [metrics(right_originals(163), model="gpt-4o-mini", seed=seed) for seed in (42, 43, 44)]
    _, rows = write("drift", far, tmp_path)
    assert cell(rows, "gpt-4o-mini", "success")["reproduced"] == "no"  # 489


def test_pairs_and_runs(tmp_path: Path) -> None:
    one = metrics(right_originals(178, flips=9))
    other = metrics(right_originals(178, flips=19), model="o3-mini")
    write_runs([one, other], tmp_path / "runs.csv")
    write_pairs(
        [one, other],
        models=MODELS,
        template=ROOT / "templates/jam_pairs.tex.jinja",
        tex=tmp_path / "pairs.tex",
        csv=tmp_path / "pairs.csv",
    )
    with (tmp_path / "pairs.csv").open() as stream:
        rows = {row["metric"]: row["ours"] for row in csv.DictReader(stream)}
    assert (rows["only_first_right"], rows["only_second_right"]) == ("10.0000", "0.0000")
    assert rows["p_value"] == f"{2 / 2**10:.4f}"
    assert (
        "GPT-4o, Zero-shot & o3-mini, Zero-shot & 10 & 0 & 0.0020"
        in (tmp_path / "pairs.tex").read_text()
    )
    runs = (tmp_path / "runs.csv").read_text()
    assert "zero_shot,gpt-4o,english,42,flipped_overall,,,9.00" in runs


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (">200B*", 200), ("8B*", 8), ("150-250B*", 200), ("17B active 109B overall", 109),
        ("135M", 0.135), ("22.7M", 0.0227), (None, None), ("unknown", None),
    ],
)  # fmt: skip
def test_sizes_of_table_7(text: str | None, size: float | None) -> None:
    assert billions(text) == (size if size is None else pytest.approx(size))


def test_a_variant_confuses_a_run_if_most_seeds_are_confused() -> None:
    seeds = [
        metrics(right_originals(178, flips=flips), model="gpt-4o-mini", seed=seed)
        for seed, flips in ((42, 1), (43, 2), (44, 5))
    ]
    single = metrics(right_originals(178, flips=1))
    encoder = metrics(right_originals(178, flips=99), model="bert", setting="fine_tuned")
    counts = confused_runs(prompted([*seeds, single, encoder]), "english")
    confused = {name: count for name, count in counts.items() if count}
    assert confused == {("o0", 1): 2, ("o1", 1): 1}
    assert len(counts) == 534


def test_numbers_of_the_text(tmp_path: Path) -> None:
    found = [metrics(GPT_4O), metrics(right_originals(161), model="gpt-4o-mini")]
    write_figure_numbers(
        found,
        text_numbers=ROOT / "published/text_numbers.csv",
        template=ROOT / "templates/jam_text.tex.jinja",
        tex=tmp_path / "text.tex",
        csv=tmp_path / "text.csv",
    )
    with (tmp_path / "text.csv").open() as stream:
        rows = {row["id"]: row for row in csv.DictReader(stream)}
    median = rows["jam.median_drift_english"]
    assert (median["ours"], median["comparable"]) == ("3.21", "no")  # of 6.42 and 0
    assert "2 of the paper's 16 runs" in median["reason"]
    assert rows["jam.median_drift_german"]["ours"] == ""
    assert rows["jam.confusing_variants_english"]["ours"] == "31.00"


def test_figures_repeat_to_the_byte(tmp_path: Path) -> None:
    use_style(ROOT / "templates/pieline.mplstyle")
    found = [metrics(GPT_4O), *SEEDS, metrics(GPT_4O, model="o3-mini", language="german")]
    for name in ("first", "second"):
        figures = {
            "accuracy": draw_accuracy_vs_drift(found, MODELS),
            "confused": draw_confused_models(found),
            "mixed": draw_confusion(found, MODELS),
        }
        for kind, figure in figures.items():
            save_figure(
                figure, pdf=tmp_path / f"{name}-{kind}.pdf", png=tmp_path / f"{name}-{kind}.png"
            )
    for kind in ("accuracy", "confused", "mixed"):
        for suffix in ("pdf", "png"):
            first = (tmp_path / f"first-{kind}.{suffix}").read_bytes()
            assert first == (tmp_path / f"second-{kind}.{suffix}").read_bytes()
