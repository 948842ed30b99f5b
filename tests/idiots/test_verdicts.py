"""The manual second level of evaluation: human verdicts replace those of the matching function."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from idiots_cases import answer, predictions_of, score, sentences

from pieline.core.conditions import RunIdentity
from pieline.core.errors import UserError
from pieline.core.yamls import read_yaml
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import IdiotsSentence
from pieline.studies.idiots.verdicts import (
    ReviewCase,
    human_verdicts,
    names_pie,
    read_cases,
    review_cases,
    save_cases,
)

RUN = RunIdentity("a-model", "zero_shot", 0)
SUITE = sentences(3, 3)
PREDICTIONS = predictions_of(
    SUITE, true_positives=2, right_idiom=1, true_negatives=1, pie_in_distractor=1
)


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "cases.jsonl", tmp_path / "cases.csv"
    save_cases(review_cases(SUITE, PREDICTIONS, RUN), jsonl=paths[0], table=paths[1])
    return paths


def edit(path: Path, change: Callable[[list[dict[str, str]]], object]) -> None:
    """Change the rows of an exported file, as external tools would."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines() if line]
        change(rows)
        # Editors may leave a blank line at the end.
        lines = [json.dumps(row) + "\n" for row in rows]
        path.write_text("".join([*lines, "\n"]), encoding="utf-8")
        return
    rows = list(csv.DictReader(text.splitlines()))
    change(rows)
    columns = list(rows[0])
    # Spreadsheets may write a byte order mark, CRLF, and reordered columns.
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, columns[::-1], lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)


def test_only_answers_that_detect_an_idiom_are_judged(cases: tuple[Path, Path]) -> None:
    exported = read_cases(cases[0])
    assert exported == read_cases(cases[1])
    assert [(case.gold, case.verdict) for case in exported] == [
        ("idiomatic", ""),
        ("idiomatic", ""),
        ("distractor", ""),
        ("distractor", ""),
    ]
    assert human_verdicts(exported, PREDICTIONS, RUN) == {}


@pytest.mark.parametrize("kind", [0, 1])
def test_a_person_does_not_see_the_automatic_verdict(cases: tuple[Path, Path], kind: int) -> None:
    def check(rows: list[dict[str, str]]) -> None:
        assert set(rows[0]) == {
            *("model", "setting", "seed", "sentence_id", "sentence", "gold_idiom", "gold"),
            *("idiom", "meaning", "explanation", "verdict", "error_type", "answer_key"),
        }
        assert {(row["verdict"], row["error_type"]) for row in rows} == {("", "")}
        # Earlier versions wrote it; their files are still read.
        for row in rows:
            row.update(automatic_verdict="yes", verdict="no")

    edit(cases[kind], check)
    assert [case.verdict for case in read_cases(cases[kind])] == ["no"] * 4


@pytest.mark.parametrize("kind", [0, 1])
def test_round_trip(cases: tuple[Path, Path], kind: int) -> None:
    before = score(SUITE, PREDICTIONS)
    assert before.verdicts == {"human": 0, "automatic": 4}
    assert before.true_positive_consistency.count == 1
    assert before.distractor_pie_ratio.count == 1

    def judge(rows: list[dict[str, str]]) -> None:
        rows[1]["verdict"] = " Yes"
        rows[2]["verdict"] = "no"
        rows[3]["verdict"] = "no"

    edit(cases[kind], judge)
    verdicts = human_verdicts(read_cases(cases[kind]), PREDICTIONS, RUN)
    after = score(SUITE, PREDICTIONS, verdicts=verdicts)
    assert after.verdicts == {"human": 3, "automatic": 1}
    assert after.true_positive_consistency.count == 2
    assert after.distractor_pie_ratio.count == 0
    assert after.accuracy == before.accuracy
    # The matching function gives no, yes, no: (1/3 - 5/9) / (1 - 5/9).
    assert before.kappa is None
    assert after.kappa == pytest.approx(-0.5)
    assert after.errors == {
        "false_negatives": 1,
        "wrong_idiom": 0,
        "false_positives_on_pie": 0,
        "false_positives_elsewhere": 2,
    }


def test_a_person_classifies_wrong_idioms(cases: tuple[Path, Path]) -> None:
    def sort(rows: list[dict[str, str]]) -> None:
        rows[1].update(verdict="no", error_type="Phrasal verb")

    assert score(SUITE, PREDICTIONS).error_types == {}
    edit(cases[1], sort)
    verdicts = human_verdicts(read_cases(cases[1]), PREDICTIONS, RUN)
    types = score(SUITE, PREDICTIONS, verdicts=verdicts).error_types
    assert {name: count for name, count in types.items() if count} == {"phrasal_verb": 1}
    edit(cases[1], lambda rows: rows[2].update(verdict="no", error_type="other"))
    with pytest.raises(UserError, match=r":4 .*: error_type requires an idiomatic sentence"):
        read_cases(cases[1])


@pytest.mark.parametrize("kind", [0, 1])
def test_errors_report_file_and_line(cases: tuple[Path, Path], kind: int) -> None:
    path = cases[kind]
    line = 3 + kind  # the CSV has a header
    edit(path, lambda rows: rows[2].update(verdict="perhaps"))
    with pytest.raises(UserError) as caught:
        read_cases(path)
    assert str(caught.value).startswith(f"{path}:{line}")
    assert ": verdict: Input should be '', 'yes' or 'no'" in str(caught.value)
    edit(path, lambda rows: rows[2].update(verdict="yes"))
    edit(path, lambda rows: rows.append(rows[0]))
    with pytest.raises(UserError, match=rf":{5 + kind} .*: idi000-sen01-id occurs twice"):
        read_cases(path)


def test_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("sentence_id;verdict\na;yes\n", encoding="utf-8")
    with pytest.raises(UserError, match="no column '"):
        read_cases(path)


def test_a_verdict_on_another_answer_is_rejected(cases: tuple[Path, Path]) -> None:
    exported = [case.model_copy(update={"verdict": "yes"}) for case in read_cases(cases[0])]
    other: list[ReviewCase] = [exported[0].model_copy(update={"answer_key": "another answer"})]
    with pytest.raises(UserError, match="is about a different answer"):
        human_verdicts(other, PREDICTIONS, RUN)
    unknown = [exported[0].model_copy(update={"sentence_id": "idi999-sen01-id"})]
    with pytest.raises(UserError, match="idi999-sen01-id is about a different answer"):
        human_verdicts(unknown, PREDICTIONS, RUN)
    # The same file may contain verdicts on other runs.
    assert (
        human_verdicts(other + unknown, PREDICTIONS, RunIdentity("a-model", "zero_shot", 1)) == {}
    )


@pytest.mark.parametrize(("part", "size"), [("tuned", 198), ("held_back", 46)])
def test_the_automatic_verdict_matches_a_persons(part: str, size: int) -> None:
    counts = {True: 0, False: 0}
    for number, case in enumerate(read_yaml(Path(__file__).with_name("verdict_cases.yaml"))[part]):
        suite = IdiotsSentence(
            id=f"idi{number:03}",
            pie_id=f"idi{number:03}",
            pie=case["pie"],
            sentence=case["sentence"],
            translation="",
            is_idiomatic=not case.get("distractor"),
        )
        for verdict, answers in ((True, case["names"]), (False, case["not"])):
            for item in answers:
                idiom, meaning = item if isinstance(item, list) else (item, "")
                fields = {"hasIdiom": True, "idiom": idiom, "meaning": meaning}
                prediction = read_prediction(suite.id, answer(suite.id, json.dumps(fields)))
                assert prediction.has_idiom, item
                assert names_pie(suite, prediction) is verdict, (case["pie"], item)
                counts[verdict] += 1
    assert sum(counts.values()) == size
    assert min(counts.values()) > 0.4 * size


def test_an_answer_without_an_idiom_does_not_name_one() -> None:
    text = json.dumps({"hasIdiom": False, "idiom": "spill the beans"})
    assert not names_pie(SUITE[0], read_prediction(SUITE[0].id, answer("q", text)))
