"""The released format, and a one-line error for each possible mistake in it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from idiots_cases import SAMPLE

from pieline.core.errors import UserError
from pieline.studies.idiots.datasets import KINDS, mark_distractors, read_sentences

Rows = list[dict[str, object]]


def sample_rows() -> Rows:
    rows: Rows = json.loads((SAMPLE / "idiots.json").read_text(encoding="utf-8"))
    return rows


def test_the_sample() -> None:
    suite = mark_distractors(
        read_sentences(SAMPLE / "idiots.json"), SAMPLE / "distractor_kinds.csv"
    )
    idiomatic = [sentence for sentence in suite if sentence.is_idiomatic]
    distractors = [sentence for sentence in suite if not sentence.is_idiomatic]
    assert (len(idiomatic), len(distractors)) == (52, 30)
    assert len({sentence.pie_id for sentence in suite}) == 26
    assert {sentence.distractor_kind for sentence in distractors} == KINDS.keys()
    # bool("False") would be true.
    assert not any(sentence.is_idiomatic for sentence in suite if sentence.id.endswith("-di"))


CASES: list[tuple[Callable[[Rows], object], str]] = [
    (lambda rows: rows[2].update(sentence_has_idiom=False), "'True' or 'False' (given: False)"),
    (lambda rows: rows[2].update(sentence_has_idiom="false"), "(given: 'false')"),
    (lambda rows: rows[2].update(sentence_has_idiom="True"), "contradicts the id's suffix"),
    (lambda rows: rows[2].update(sentence_id="idi001-sen03"), "sentence_id: "),
    (lambda rows: rows[2].pop("es"), "es: Field required"),
    (lambda rows: rows[2].update(en=""), "en: "),
    (lambda rows: rows[2].update(de="Hallo"), "de: Extra inputs"),
]


@pytest.mark.parametrize(("change", "problem"), CASES)
def test_an_invalid_record_is_reported(
    change: Callable[[Rows], object], problem: str, tmp_path: Path
) -> None:
    rows = sample_rows()
    change(rows)
    path = tmp_path / "idiots.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_sentences(path)
    assert f"{path}: record 3 (" in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "not a JSON array"),
        ("[]", "not a JSON array"),
        ("[1]", "record 1 (?)"),
        ("[{", "not JSON"),
    ],
)
def test_a_file_in_another_format(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "idiots.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_sentences(path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_released_table(tmp_path: Path) -> None:
    rows = sample_rows()
    rows[0]["en"] = '"Well," she said, "that broke the ice."'
    path = tmp_path / "idioms_sentences.tsv"
    (tmp_path / "idiots.json").write_text(json.dumps(rows), encoding="utf-8")
    expected = read_sentences(tmp_path / "idiots.json")
    head = [*rows[0], "idiom_detection_pattern"]
    lines = [[*map(str, row.values()), "break.*ice"] for row in rows]
    path.write_text("\n".join("\t".join(line) for line in [head, *lines]), encoding="utf-8")
    assert read_sentences(path) == expected
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, "excel-tab").writerows([head, *lines])
    assert read_sentences(path) == expected
    for text, problem in (
        ("", "the file is empty"),
        ("idiom_id\ten\n", "no sentences"),
        ("idiom_id\ten\na\n", ":2: 1 cell instead of 2"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=problem):
            read_sentences(path)


def test_a_repeated_id(tmp_path: Path) -> None:
    rows = sample_rows()
    path = tmp_path / "idiots.json"
    path.write_text(json.dumps([*rows, rows[0]]), encoding="utf-8")
    with pytest.raises(UserError, match="duplicate id 'idi001-sen01-id'"):
        read_sentences(path)


def swap_languages(rows: Rows) -> None:
    for row in rows:
        row["en"], row["es"] = row["es"], row["en"]


def shift(rows: Rows, name: str, by: int) -> None:
    values = [row[name] for row in rows]
    for row, value in zip(rows, values[by:] + values[:by], strict=True):
        row[name] = value


def give_each_id_the_next_idiom(rows: Rows) -> None:
    idioms = {str(row["idiom_id"]): row["idiom"] for row in rows}
    following = dict(zip(idioms, [*[*idioms.values()][1:], idioms["idi001"]], strict=True))
    for row in rows:
        row["idiom"] = following[str(row["idiom_id"])]


IMPLAUSIBLE: dict[str, tuple[Callable[[Rows], object], str]] = {
    "two idioms of one id": (
        lambda rows: rows[1].update(idiom="To spill the beans"),
        r"record 2 \(idi001-.*\): idiom 'To spill the beans' has the id idi001 of 'To break the",
    ),
    "shifted idioms": (lambda rows: shift(rows, "idiom", 1), r"has the id idi00\d of"),
    "shifted ids": (lambda rows: shift(rows, "idiom_id", 1), r"has the id idi00\d of"),
    "idioms of the next id": (
        give_each_id_the_next_idiom,
        r"only 0 of 52 idiomatic sentences contain their idiom",
    ),
    "languages": (swap_languages, r"record 1 \(.*\): en is in Spanish and es in English"),
    "languages of one record": (
        lambda rows: swap_languages(rows[40:41]),
        r"record 41 .*en is in Spa",
    ),
}


@pytest.mark.parametrize("name", IMPLAUSIBLE)
def test_mismatched_columns_are_rejected(name: str, tmp_path: Path) -> None:
    change, problem = IMPLAUSIBLE[name]
    rows = sample_rows()
    change(rows)
    path = tmp_path / "idiots.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(UserError, match=problem):
        read_sentences(path)


def test_an_idiom_can_have_several_spellings(tmp_path: Path) -> None:
    rows = sample_rows()
    rows[1]["idiom"] = "break  the Ice"
    path = tmp_path / "idiots.json"
    path.write_text(json.dumps([row | {"es": ""} for row in rows]), encoding="utf-8")
    assert len(read_sentences(path)) == len(rows)


MARKED = next(
    str(row["sentence_id"]) for row in sample_rows() if row["sentence_has_idiom"] == "False"
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": the file is empty"),
        ("id,kind\n", ":1: no column 'sentence_id'"),
        (
            "sentence_id;kind\na-di;parts\n",
            ":1: no column 'sentence_id'; separate the columns by ',', not ';'",
        ),
        ("\nsentence_id,kind\n", ":1: no column 'sentence_id'; see data/sample/idiots/README.md"),
        ("sentence_id,kind\na-di,whole\n", ":2: unknown kind 'whole'"),
        (f"sentence_id,kind\n{MARKED},parts\n{MARKED},parts\n", f":3: sentence '{MARKED}' occurs"),
        ("sentence_id,kind\na-di\n", ":2: 1 cell instead of 2"),
        (
            f"sentence_id,kind\n{MARKED},parts\na-di,parts\n",
            ":3: sentence 'a-di' is not in the data",
        ),
        (
            "sentence_id,kind\nidi001-sen01-id,parts\n",
            ":2: sentence 'idi001-sen01-id' is idiomatic; list only distractors",
        ),
    ],
)
def test_invalid_kinds(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "kinds.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        mark_distractors(read_sentences(SAMPLE / "idiots.json"), path)
    assert f"{path}{problem}" in str(caught.value)
