"""The tables of scores with which a run ends."""

from typing import Any

from frame_cases import our_number

from pieline.reporting.numbers import Number
from pieline.results.run_results import RunResults, ShownStudy
from pieline.results.scores import describe_scores

RUN = RunResults(
    studies=(
        ShownStudy(name="jam", paper="ID10M-JAM", main_tables=("jam_drift",)),
        ShownStudy(
            name="idiolink",
            paper="IdioLink",
            main_tables=("zero_shot", "tuned"),
            main_measures=("r_precision", "ndcg_at_10"),
            reference_models=("sbert", "bm25"),
        ),
    ),
    others={"mine": "Mine"},
    labels={"mine": "Mine", "sbert": "SBERT", "bm25": "BM25", "bge": "BGE", "e5": "E5"},
    data="released",
)


def score(model: str, ours: float | None, table: str = "zero_shot", **fields: Any) -> Number:
    """Return the R-Precision of a model in sentence mode."""
    keys = {"query_mode": "sentence", "measure": "r_precision", "what": "", "unit": "%"}
    keys |= dict.fromkeys(("setting", "language", "scope", "against", "seed", "train_mode"), "")
    texts = {"tables": (table,), "decimals": 2, "low": None, "high": None, "printed": None}
    verdict = "not run" if ours is None else "not comparable"
    return our_number(ours, **{"verdict": verdict, "model": model} | keys | texts | fields)


NUMBERS = [
    score("bge", None, printed=60.0, better="high"),
    score("e5", None, printed=55.0),
    score("bge", None, measure="ndcg_at_10", printed=71.0),
    score("bm25", 31.0, low=29.04, high=33.0, printed=31.5, verdict="reproduced"),
    score("bm25", 40.0, measure="ndcg_at_10"),
    score("sbert", 38.0, low=36.0, high=40.0, printed=38.0, verdict="reproduced"),
    score("mine", 41.0, low=39.0, high=43.0),
    score("mine", 52.0, measure="ndcg_at_10"),
    score("mine", 43.0, query_mode="instruction_span"),
    score("mine", 3.0, "pairs", measure="r_precision_difference", against="sbert", low=1, high=5),
    score("mine", 9.0, "pairs", measure="r_precision_difference", against="bm25"),
    score("mine", 7.0, measure="answers_unreadable"),
    score("mine", 8.0, "by_usage", scope="literal"),
]


def test_a_run_ends_with_its_models_beside_the_reference_rows() -> None:
    assert describe_scores(RUN, NUMBERS, 160).splitlines() == [
        "IdioLink                 R-Precision, %  95%           to SBERT  95%         printed"
        "  ours - printed  nDCG@10, %  printed",
        "sentence mode",
        "  Mine                            41.00  [39.0, 43.0]     +3.00  [1.0, 5.0]"
        "                                52.00",
        "  SBERT                           38.00  [36.0, 40.0]                          38.00"
        "            0.00",
        "  BM25                            31.00  [29.0, 33.0]                          31.50"
        "           -0.50       40.00",
        "  best printed: BGE                                                            60.00"
        "                                71.00",
        "instruction + span mode",
        "  Mine                            43.00",
    ]


def test_on_a_narrow_terminal_each_measure_has_a_table() -> None:
    lines = describe_scores(RUN, NUMBERS, 90).splitlines()
    assert max(map(len, lines)) <= 102
    assert [line.split()[1] for line in lines if line.startswith("IdioLink")] == [
        "R-Precision,",
        "nDCG@10,",
    ]


def test_a_fine_tuned_model_is_beside_the_best_printed_fine_tuned_one() -> None:
    tuned = [
        score("sbert", 50.0, "tuned", train_mode="span", loss="paper"),
        score("e5", None, "tuned", train_mode="span", printed=61.0),
    ]
    lines = describe_scores(RUN, tuned, 120).splitlines()
    assert [line.split("  ")[1] for line in lines[2:]] == [
        "SBERT fine-tuned on spans (paper loss)",
        "best printed: E5 fine-tuned on spans",
    ]


def test_a_mean_over_one_seed_has_the_interval_of_this_seed() -> None:
    mean = score("mine", 41.0, seeds="7")
    seed = score("mine", 41.0, "runs", seed="7", low=39.0, high=43.0)
    assert "41.00  [39.0, 43.0]" in describe_scores(RUN, [mean, seed], 120)


def test_scores_on_the_sample_are_not_beside_printed_ones() -> None:
    sample = RUN.model_copy(update={"data": "sample"})
    assert "printed" not in describe_scores(sample, NUMBERS, 120)
    assert describe_scores(sample, NUMBERS[:3], 120) == ""
