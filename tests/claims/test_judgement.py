"""Claims judged on the printed numbers, and a check that every formula can hold and fail."""

import csv
import json
import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
from claims_cases import Ledger
from frame_cases import PUBLISHED, numbers_of_run, our_number, table_of
from scipy.stats import spearmanr
from support import ROOT

from pieline.core.errors import UserError
from pieline.reporting.numbers import Number
from pieline.reporting.published import Place
from pieline.results.claims.claim import Claim, load_claims
from pieline.results.claims.judgement import (
    judge_claims,
    judge_on_ours,
    judge_on_printed,
    write_claims,
)
from pieline.results.claims.tables import PrintedNumbers, select

CONTRADICTIONS = {
    # Contradictions that were known before the claims were collected.
    "idiolink-instruction-gain-r-precision",
    "idiolink-instruction-gain-ndcg",
    "jam-successes-add-up",
    "jam-drift-follows-from-usages",
    "jam-confusion-counts-only-successes",
    "jam-deepseek-drift-in-the-text",
    # Detected by the claims: a number that does not follow from other printed numbers.
    "jam-confusion-agrees-with-drift",
    "jam-english-median-accuracy",
    "jam-english-median-drift",
    "idiots-precision-follows-from-counts",
    "idiots-trap-ratio-follows-from-counts",
    "idiolink-macro-f1-is-possible",
    "idiolink-flagged-share",
    "idiolink-missed-share-of-the-invalid",
    "idiolink-missed-are-mostly-ambiguous",
    "idiolink-drama-ndcg-in-the-text",
    "idiolink-instructor-xl-r-precision-in-the-text",
    # Detected by the claims: a statement that the tables do not fully support.
    "jam-german-is-harder-nearly-everywhere",
    "jam-sophisticated-prompt-lowers-drift-on-average",
    "jam-reasoning-models-are-more-accurate-english",
    "jam-larger-models-have-fewer-all-confused-gpt4o",
    "jam-reasoning-models-have-fewer-all-confused-english",
    "idiolink-one-model-without-instruction-gain",
    "idiolink-instructions-in-training-always-hurt",
    "idiolink-spans-always-beat-bm25",
    "idiolink-tuning-on-span-beats-zero-shot-r-precision",
    "idiolink-span-training-helps-one-model-instructed-r-precision",
    "idiolink-span-training-helps-one-model-instructed-ndcg",
    "idiolink-size-does-not-rank-sentence-r-precision",
    "idiolink-size-does-not-rank-sentence-ndcg",
    "idiolink-size-does-not-rank-instruction-sentence-r-precision",
    "idiolink-size-does-not-rank-instruction-sentence-ndcg",
    "idiolink-size-does-not-rank-instruction-span-ndcg",
}


def claim_of(ledger: Ledger, name: str) -> Claim:
    (claim,) = (each for each in ledger.claims if each.id == name)
    return claim


def test_the_printed_numbers_contradict_exactly_these_claims(ledger: Ledger) -> None:
    judged = judge_claims(ledger.claims, ledger.catalogue, ledger.printed, [])
    verdicts = {claim.id: claim.printed.verdict for claim in judged}
    assert set(verdicts.values()) == {"holds", "fails"}
    assert {name for name, verdict in verdicts.items() if verdict == "fails"} == CONTRADICTIONS


def test_rows_that_a_table_does_not_show_are_missing_with_the_reason(ledger: Ledger) -> None:
    claim = claim_of(ledger, "idiots-vicuna-is-most-accurate")
    numbers = numbers_of_run(absent={"idiots_detection": "not in this configuration"})
    (judged,) = judge_claims([claim], ledger.catalogue, ledger.printed, numbers)
    assert judged.ours.verdict == "not run"
    assert judged.ours.reason.startswith("3 of 3 numbers missing: not in this configuration (3: ")
    assert judged.our_files == ["idiots_detection"]


def test_each_contradiction_is_explained(ledger: Ledger) -> None:
    remarks = {claim.id: claim.remark for claim in ledger.claims}
    assert [name for name in CONTRADICTIONS if not remarks[name]] == []


@pytest.mark.parametrize("mode", ["sentence", "span", "instruction_sentence", "instruction_span"])
@pytest.mark.parametrize("metric", ["r_precision", "ndcg"])
def test_size_and_score_by_rank_are_judged_as_scipy_does(
    ledger: Ledger, mode: str, metric: str
) -> None:
    table = pd.read_csv(PUBLISHED / "idiolink_table2.csv").query("query_mode == @mode")
    sizes = table["parameters"].str.replace("M", "e6").str.replace("B", "e9").astype(float)
    column = {"r_precision": "r_precision_pct", "ndcg": "ndcg_at_10_pct"}[metric]
    test = spearmanr(sizes, table[column])
    assert len(table) == 24
    name = f"idiolink-size-does-not-rank-{mode}-{metric}".replace("_", "-")
    claim = claim_of(ledger, name)
    finding = judge_on_printed(claim, ledger.catalogue, ledger.printed)
    assert finding.found == f"{f'{test.statistic:.4f}'.rstrip('0')} against 0.404"
    significant = test.pvalue < 0.05 and test.statistic > 0
    assert finding.verdict == ("fails" if significant else "holds")


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("idiolink-instruction-gain-r-precision", "10.5271 against 11.21"),
        ("idiolink-instruction-gain-ndcg", "14.1879 against 14.83"),
        ("idiolink-span-gain-r-precision", "12.1312 against 12.13"),
        ("idiolink-span-gain-ndcg", "13.4917 against 13.49"),
        ("idiolink-combined-gain-r-precision", "21.99 against 21.99"),
        ("idiolink-combined-gain-ndcg", "22.7146 against 22.71"),
        ("idiolink-instructor-xl-r-precision-in-the-text", "59.1 against 29.1"),
        (
            "idiolink-span-training-helps-one-model-instructed-r-precision",
            "2 of 5 rows: BAAI/bge-m3, Qwen/Qwen3-Embedding-0.6B",
        ),
        ("idiolink-instructions-at-inference-hurt-ndcg", "2.45 against 0"),
        ("jam-english-median-accuracy", "90.0749 against 90.97"),
        ("jam-english-median-accuracy-sophisticated", "90.6367 against 90.63"),
        ("jam-german-median-accuracy-sophisticated", "91.9708 against 91.97"),
        ("jam-english-median-drift-sophisticated", "6.19 against 6.19"),
        ("jam-german-median-drift-sophisticated", "7.75 against 7.75"),
        ("jam-deepseek-drift-in-the-text", "3.9 against 3.85"),
        ("jam-successes-add-up", "fails in 1 of 36 rows: fine_tuned / mBERT / english"),
        ("jam-confusion-counts-only-successes", "fails in 32 of 32 rows"),
    ],
)
def test_known_results(ledger: Ledger, name: str, summary: str) -> None:
    claim = claim_of(ledger, name)
    assert summary in judge_on_printed(claim, ledger.catalogue, ledger.printed).found


Ours = dict[Place, Number]


def claim_ids() -> list[str]:
    return [claim.id for claim in load_claims(PUBLISHED / "claims.yaml")]


RESTATING = {
    "jam-api-calls",
    "jam-api-cost",
    "idiolink-api-calls",
    "idiolink-api-cost",
    "idiolink-models",
    "idiolink-annotators",
    "idiolink-hours",
}
"""Claims that no measured number affects."""


def as_ours(printed: PrintedNumbers, verdict: str = "reproduced", reason: str = "") -> Ours:
    """Return a run that has every printed number."""
    return {
        place: our_number(value, verdict, reason=reason, printed_at=(place,))
        for table, rows in printed.items()
        for row, numbers in rows.items()
        for column, value in numbers.items()
        for place in [Place(table, row, column)]
    }


def test_a_run_that_reproduces_everything_gets_the_same_verdicts(ledger: Ledger) -> None:
    ours = as_ours(ledger.printed).values()
    judged = judge_claims(ledger.claims, ledger.catalogue, ledger.printed, ours)
    assert {claim.id for claim in judged if claim.restates} == RESTATING
    assert all(
        claim.ours.verdict == claim.printed.verdict for claim in judged if not claim.restates
    )


def replacements(claim: Claim, ledger: Ledger) -> Iterator[Ours]:
    """Yield runs whose numbers differ from the printed ones.

    First, all numbers of the claim are the same constant. Then each of them is a constant, random,
    or equal to another number's printed values, which also satisfies equations with several
    unknowns.
    """
    selected = {
        name: select(number, ledger.catalogue, ledger.printed)
        for name, number in claim.numbers.items()
    }
    dice = random.Random(1)
    sources = [*selected, "random", 0.0, 1.0, 2.0, 3.0, 9.0, 100.0]
    drawn = ({name: dice.choice(sources) for name in selected} for _ in range(1000))
    for chosen in (dict.fromkeys(selected, 0.0), dict.fromkeys(selected, 1.0), *drawn):
        ours: Ours = {}
        for name, number in claim.numbers.items():
            source = chosen[name]
            for label, (row, _) in selected[name].items():
                if isinstance(source, float):
                    value = source
                elif source == "random":
                    value = dice.uniform(0.1, 100)
                else:
                    values = selected[source]
                    _, value = values.get(label) or next(iter(values.values()))
                ours[Place(number.table, row, number.column)] = our_number(value)
        yield ours


@pytest.mark.parametrize("name", claim_ids())
def test_our_numbers_can_change_every_verdict_unless_the_claim_restates_the_print(
    ledger: Ledger, name: str
) -> None:
    claim = claim_of(ledger, name)
    verdicts = set()
    for ours in chain([as_ours(ledger.printed)], replacements(claim, ledger)):
        verdicts.add(judge_on_ours(claim, ledger.catalogue, ledger.printed, ours).verdict)
        if verdicts != {"holds"} and verdicts != {"fails"}:
            break
    assert verdicts == ({"restates the print"} if name in RESTATING else {"holds", "fails"})


def test_a_stated_number_is_not_replaced_by_ours(ledger: Ledger) -> None:
    """A stated number is not a measurement: the stated 3,570 texts are not our documents."""
    terms = [
        (claim.id, name)
        for claim in ledger.claims
        if not claim.restates
        for name, number in claim.numbers.items()
        if number.table == "text_numbers"
        and not number.measured
        and not name.startswith("stated")
        and claim.formula.split()[-2:] not in ([relation, name] for relation in ("==", "<=", ">"))
    ]
    assert terms == []


@pytest.mark.parametrize("losses", [("paper", "released"), ("released", "paper")])
def test_claims_on_table_5_prefer_the_released_loss(
    ledger: Ledger, losses: tuple[str, str]
) -> None:
    scores = {"paper": 35.97, "released": 43.01}
    keys = {"train_mode": "sentence", "model": "sbert", "composition": "full"}
    keys |= {"measure": "r_precision"}
    rows = [
        keys | {"loss": loss, "query_mode": mode, "ours": scores[loss]}
        for loss in losses
        for mode in ("sentence", "span")
        if (loss, mode) != ("released", "span")
    ]
    names = {"sbert": "sentence-transformers/all-MiniLM-L6-v2"}
    numbers = numbers_of_run(table_of("idiolink_finetuned", *rows), names=names)
    of_model = [each for each in numbers if each.model == "sbert" and each.ours is not None]
    assert sorted((each.query_mode, each.loss, each.counts) for each in of_model) == [
        ("sentence", "paper", False),
        ("sentence", "released", True),
        ("span", "paper", True),
    ]
    claim = Claim.model_validate(
        {
            **{"id": "x", "paper": "idiolink", "section": "5", "says": "Something."},
            "formula": "trained > 0",
            "numbers": {
                "trained": {
                    "table": "idiolink_table5",
                    "column": "r_precision_pct",
                    "where": {
                        "train_mode": "sentence",
                        "model": names["sbert"],
                        "query_mode": "sentence",
                    },
                }
            },
        }
    )
    (judged,) = judge_claims([claim], ledger.catalogue, ledger.printed, numbers)
    assert judged.ours.found == "43.01 against 0"
    assert judged.our_files == ["idiolink_finetuned"]


@pytest.mark.parametrize(
    ("name", "place", "ours", "verdict", "statement", "reason"),
    [
        (
            "idiolink-bm25-span-lowers-ndcg",
            Place("idiolink_bm25", ("span",), "ndcg_at_10_pct"),
            our_number(99.0),
            *("fails", "99 against 59.07", ""),
        ),
        (
            "idiolink-span-gain-ndcg",
            Place("idiolink_table2", ("GritLM/GritLM-7B", "span"), "ndcg_at_10_pct"),
            our_number(None, "not run", reason="no GPU"),
            *("not run", ""),
            "1 of 48 numbers missing: no GPU (1: GritLM/GritLM-7B / span)",
        ),
        # A division by zero.
        (
            "jam-adversarial-context-confuses-more",
            Place("text_numbers", ("jam.neutral_confused",), "value"),
            our_number(0.0),
            *("fails", "undefined: ", ""),
        ),
    ],
)
def test_our_numbers_replace_the_printed_ones(
    ledger: Ledger,
    name: str,
    place: Place,
    ours: Number,
    verdict: str,
    statement: str,
    reason: str,
) -> None:
    numbers = as_ours(ledger.printed) | {place: ours}
    claim = claim_of(ledger, name)
    finding = judge_on_ours(claim, ledger.catalogue, ledger.printed, numbers)
    assert (finding.verdict, finding.reason) == (verdict, reason)
    assert finding.found.startswith(statement)


def test_missing_numbers_are_summarized_by_reason(ledger: Ledger) -> None:
    claim = claim_of(ledger, "idiolink-span-gain-ndcg")
    numbers = as_ours(ledger.printed)
    spans = [
        place.row
        for place in numbers
        if (place.file, place.column) == ("idiolink_table2", "ndcg_at_10_pct")
        and place.row[1] == "span"
    ]
    for row, reason in zip(spans, "zzaammm", strict=False):
        place = Place("idiolink_table2", row, "ndcg_at_10_pct")
        numbers[place] = our_number(None, "not run", reason=reason)
    reason = judge_on_ours(claim, ledger.catalogue, ledger.printed, numbers).reason
    names = [" / ".join(row) for row in spans]
    assert reason == (
        f"7 of 48 numbers missing: m (3: {names[4]}, {names[5]} and 1 more);"
        f" a (2: {names[2]}, {names[3]}); z (2: {names[0]}, {names[1]})"
    )


def test_results_on_sample_data_are_reported_as_not_comparable(ledger: Ledger) -> None:
    claim = claim_of(ledger, "idiolink-bm25-span-lowers-ndcg")
    ours = as_ours(ledger.printed, "not comparable", "sample data")
    finding = judge_on_ours(claim, ledger.catalogue, ledger.printed, ours)
    assert finding.verdict == "not comparable"
    assert finding.found == "holds: 49.87 against 59.07"
    assert finding.reason == "sample data"


def test_a_number_missing_in_the_run(ledger: Ledger) -> None:
    claim = claim_of(ledger, "idiots-consistency-order")
    finding = judge_on_ours(claim, ledger.catalogue, ledger.printed, {})
    assert finding.verdict == "not run"
    assert "this run has no such number" in finding.reason


def test_a_run_with_another_setting_is_ignored(ledger: Ledger) -> None:
    row = {"model": "vicuna-7b", "setting": "zero_shot_schema", "measure": "recall", "ours": 1.0}
    table, names = table_of("idiots_detection", row), {"vicuna-7b": "Vicuna-7b"}
    (number,) = (each for each in numbers_of_run(table, names=names) if each.ours)
    assert (number.printed, number.printed_at, number.counts) == (None, (), False)


# Files -------------------------------------------------------------------------------------------


def test_files(ledger: Ledger, tmp_path: Path) -> None:
    ours = as_ours(ledger.printed).values()
    judged = judge_claims(ledger.claims, ledger.catalogue, ledger.printed, ours)
    files = {name: tmp_path / f"claims.{name}" for name in ("json", "csv", "tex")}
    papers = {"jam": "ID10M-JAM", "idiots": "IdioTS", "idiolink": "IdioLink"}
    template = ROOT / "templates/claims.tex.jinja"
    write_claims(judged, papers=papers, **files, template=template)
    with files["csv"].open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == [claim.id for claim in ledger.claims]
    assert {row["on_printed"] for row in rows} == {"holds", "fails"}
    restating = {row["id"] for row in rows if row["on_ours"] == "restates the print"}
    assert restating == RESTATING
    written = json.loads(files["json"].read_text(encoding="utf-8"))
    assert len(written["claims"]) == len(ledger.claims)
    # Claims that restate a printed statement are not counted, and our readings are counted apart.
    readings = {claim.id for claim in ledger.claims if claim.reading == "ours"}
    for counts in written["counts"].values():
        assert set(counts) == {"holds", "fails"}
        assert sum(counts.values()) == len(ledger.claims) - len(RESTATING | readings)
    for counts in written["our_readings"].values():
        assert sum(counts.values()) == len(readings - RESTATING) == 26
    assert {row["id"] for row in rows if row["reading"] == "ours"} == readings
    assert readings >= {claim.id for claim in ledger.claims if claim.formula.startswith("spearman")}
    assert readings >= {claim.id for claim in ledger.claims if "does not say so" in claim.remark}
    tex = files["tex"].read_text(encoding="utf-8")
    assert tex.count(r"\textbf{fails}") == len(CONTRADICTIONS)
    with pytest.raises(UserError, match="unknown paper 'jam'"):
        write_claims(judged, papers={"idiots": "IdioTS"}, **files, template=template)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("a > b", "a"), "claim x: the formula must be one comparison"),
        (("a > b", "a > c"), "claim x: unused number 'b'"),
        (("a > b", "a > b + c"), "claim x: unknown number 'c'"),
        (("a > b", "a > b -"), "claim x: not a formula"),
        (("a > b", "a > b.size"), "claim x: unknown number 'size'"),
        (("{text: q}", "{text: q r}"), "claim x: numbers.b: should be one word"),
        (
            ("{text: q}", "{text: q, where: {}}"),
            "claim x: numbers.b: unknown field 'where'",
        ),
        (
            ("{text: q}", "{text: q, mesured: true}"),
            "claim x: numbers.b: unknown field 'mesured'",
        ),
        (("- id: x", "- id: X y"), "claim X y: id"),
    ],
)
def test_an_invalid_claim_is_a_one_line_error(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    text = (
        "- id: x\n  paper: jam\n  section: '5'\n  says: Something.\n"
        "  numbers:\n    a: {text: p}\n    b: {text: q}\n"
        "  formula: a > b\n"
    )
    path = tmp_path / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    assert len(load_claims(path)) == 1
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(UserError) as raised:
        load_claims(path)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ({"where": {"model": "GPT-5"}}, "jam_table3 has no number in column 'success'"),
        ({"column": "failure"}, "jam_table3 has no number in column 'failure'"),
        ({"table": "jam_table33"}, "unknown table 'jam_table33', known: text_numbers, jam_table1"),
        ({"where": {"modell": "GPT-4o"}}, "jam_table3 has no key 'modell', only setting, model"),
        ({"but_not": {"modell": ["GPT-4o"]}}, "jam_table3 has no key 'modell'"),
        ({"where": {"model": "mBERT"}}, "undefined in row zero_shot / english"),
    ],
)
def test_an_invalid_selection_is_a_one_line_error(
    ledger: Ledger, selection: dict[str, object], problem: str
) -> None:
    right = {"table": "jam_table3", "column": "success", "where": {"model": "GPT-4o"}}
    fields = {"id": "x", "paper": "jam", "section": "5", "says": "Something."}
    numbers = {"a": right, "b": right | selection}
    claim = Claim.model_validate(fields | {"formula": "a >= b", "numbers": numbers})
    with pytest.raises(UserError) as raised:
        judge_claims([claim], ledger.catalogue, ledger.printed, [])
    assert str(raised.value).startswith(f"claim x: {problem}")
    assert "\n" not in str(raised.value)
