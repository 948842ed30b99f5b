"""External predictions: parsing, validation, and where they are shown."""

import csv
import gzip
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow
import pytest
from own_cases import registry_with, run_report, write
from pyarrow import parquet
from support import ROOT

from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.tables import make_table, write_table
from pieline.results import run_files
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.predictions.rankings import (
    RankedRun,
    check_run,
    read_foreign_run,
    read_run,
    write_run,
)
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.tables.zero_shot import ZERO_SHOT_TABLE
from pieline.studies.idiots import predictions as idiots
from pieline.studies.idiots import runs as idiots_runs
from pieline.studies.idiots.records import IdiotsSentence
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam.metrics.scores import jam_metrics
from pieline.studies.jam.predictions import external as jam
from pieline.studies.jam.records import JamSentence

TOKENS = ("They ", "broke ", "the ", "ice", ".")
SENTENCES = [
    JamSentence(
        id=name,
        original_id="test-0001",
        variant_number=number,
        language="english",
        sentence="".join(TOKENS),
        tokens=TOKENS,
        tags=("O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O"),
        pies=("broke the ice",),
        true_idioms=("broke the ice",),
        is_figurative=True,
    )
    for number, name in enumerate(("test-0001", "test-0001-v1"))
]
TAGS = ["O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O"]
DETECTED = [
    IdiotsSentence(
        id=name, pie_id="i1", pie="Break the ice", sentence=name, translation="", is_idiomatic=True
    )
    for name in ("s1", "s2")
]


def lines(*rows: object) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


IDIOMS = {
    "a.jsonl": lines({"id": "test-0001-v1", "idioms": []},
                     {"id": "test-0001", "idioms": ["broke the ice"], "score": 0.9}),
    "b.csv": "id,idioms\ntest-0001,broke the ice;\ntest-0001-v1,\n",
    "c.tsv": "\ufeffid\ttags\ntest-0001\tO B-IDIOM I-IDIOM I-IDIOM O\ntest-0001-v1\tO O O O O\n",
    "d.jsonl": lines({"id": "test-0001", "tags": TAGS}, {"id": "test-0001-v1", "tags": ["O"] * 5}),
    "e.json": json.dumps([{"id": "test-0001", "idioms": ["broke the ice"]},
                          {"id": "test-0001-v1", "idioms": []}], indent=2),
}  # fmt: skip


@pytest.mark.parametrize("name", IDIOMS)
def test_idioms_and_tags_are_read_in_the_order_of_the_sentences(name: str, tmp_path: Path) -> None:
    predictions = jam.read_predictions(write(tmp_path / name, IDIOMS[name]), SENTENCES)
    assert [item.id for item in predictions] == ["test-0001", "test-0001-v1"]
    assert [item.idioms for item in predictions] == [("broke the ice",), ()]
    assert {item.outcome for item in predictions} == {"ok"}


@pytest.mark.parametrize(
    ("cell", "idioms"),
    [
        ("\"['broke the ice']\"", ("broke the ice",)),
        ("\"['broke the ice', 'the ice']\"", ("broke the ice", "the ice")),
        ('"[""broke the ice"", ""the ice""]"', ("broke the ice", "the ice")),
        ("[]", ()),
    ],
)
def test_a_list_in_a_cell_is_read_as_a_list(
    cell: str, idioms: tuple[str, ...], tmp_path: Path
) -> None:
    text = f"id,idioms\ntest-0001,{cell}\ntest-0001-v1,\n"
    predictions = jam.read_predictions(write(tmp_path / "a.csv", text), SENTENCES)
    assert [item.idioms for item in predictions] == [idioms, ()]
    tags = f'id,tags\ntest-0001,"{TAGS}"\ntest-0001-v1,"{TAGS}"\n'
    predictions = jam.read_predictions(write(tmp_path / "b.csv", tags), SENTENCES)
    assert {item.idioms for item in predictions} == {("broke the ice",)}


@pytest.mark.parametrize(
    "cell",
    [
        "[broke the ice]",
        "[1]",
        "\"('broke the ice',)\"",
        '"{""idioms"": [""broke the ice""]}"',
        '"[[""broke the ice""]]"',
        "\"['broke the ice' 'the ice']\"",
        "['broke the ice'];['the ice']",
    ],
)
def test_a_cell_in_brackets_is_a_list_of_texts_or_rejected(cell: str, tmp_path: Path) -> None:
    text = f"id,idioms\ntest-0001,{cell}\ntest-0001-v1,\n"
    with pytest.raises(UserError, match=r"a\.csv:2: idioms: .*semicolons"):
        jam.read_predictions(write(tmp_path / "a.csv", text), SENTENCES)
    rows = lines(ROW, {"id": "test-0001-v1", "idioms": ["['broke the ice', 'the ice']"]})
    with pytest.raises(UserError, match=r"a\.jsonl:2: idioms: .*semicolons"):
        jam.read_predictions(write(tmp_path / "a.jsonl", rows), SENTENCES)


@pytest.mark.parametrize("name", ["b.csv", "a.jsonl", "c.tsv"])
def test_gzipped_predictions_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.GZ"
    path.write_bytes(gzip.compress(IDIOMS[name].encode()))
    assert [item.idioms for item in jam.read_predictions(path, SENTENCES)] == [
        ("broke the ice",),
        (),
    ]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"\.GZ: not a gzip file: .*; compress the file again"):
        jam.read_predictions(path, SENTENCES)
    with pytest.raises(UserError, match=f"{name}: the file is gzipped; rename it to {name}.gz"):
        jam.read_predictions(path.rename(tmp_path / name), SENTENCES)


def test_predictions_in_parquet_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = [
        {"id": "test-0001-v1", "idioms": None, "score": 0.1},
        {"id": "test-0001", "idioms": ["broke the ice"], "score": 0.2},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    predictions = jam.read_predictions(path, SENTENCES)
    assert [item.idioms for item in predictions] == [("broke the ice",), None]
    detected = [{"id": "s1", "has_idiom": True, "idiom": "x"}, {"id": "s2", "has_idiom": None}]
    parquet.write_table(pyarrow.Table.from_pylist(detected), path)
    read = idiots.read_predictions(path, DETECTED)
    assert [(item.has_idiom, item.idiom) for item in read] == [(True, "x"), (None, None)]
    parquet.write_table(pyarrow.Table.from_pylist([*rows, rows[1]]), path)
    with pytest.raises(UserError, match=r"a\.parquet:3: id 'test-0001' is also in line 2"):
        jam.read_predictions(path, SENTENCES)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(
        UserError, match=r"a\.parquet: not a Parquet file: .*; write the file again"
    ):
        jam.read_predictions(path, SENTENCES)


def test_sentences_in_another_unicode_form_are_equal(tmp_path: Path) -> None:
    german = SENTENCES[0].model_copy(update={"id": "stra\u00dfe-\u00e4", "sentence": "Die Räder."})
    row = {"id": german.id, "idioms": [], "sentence": german.sentence}
    decomposed = {
        name: unicodedata.normalize("NFD", value) if isinstance(value, str) else value
        for name, value in row.items()
    }
    assert decomposed != row
    path = write(tmp_path / "a.jsonl", lines(decomposed))
    assert [item.id for item in jam.read_predictions(path, [german])] == [german.id]
    write(path, lines(decomposed | {"sentence": "Die R\u0430der."}))
    message = r"sentence 'Die R\\u0430der\.' of .* is 'Die R\\xe4der\.' in the dataset"
    with pytest.raises(UserError, match=message):
        jam.read_predictions(path, [german])
    write(path, lines(row | {"id": "str\u0430\u00dfe-\u00e4"}))
    with pytest.raises(UserError, match=r"1 unknown id, such as 'str\\u0430\\xdfe-\\xe4'"):
        jam.read_predictions(path, [german])


def test_wrong_idioms_do_not_show_that_ids_are_wrong(tmp_path: Path) -> None:
    sentences = [
        item.model_copy(update={"id": f"s{number}", "pie": pie, "sentence": f"It is {pie}."})
        for item in DETECTED[:1]
        for number, pie in enumerate(("a piece of cake", "over the moon", "on the ball"))
    ]
    named = ["a red herring", "json", "On the balls"]
    rows = [
        {"id": item.id, "has_idiom": True, "idiom": idiom}
        for item, idiom in zip(sentences, named, strict=True)
    ]
    path = write(tmp_path / "a.jsonl", lines(*rows))
    assert len(idiots.read_predictions(path, sentences)) == 3
    write(path, lines(*rows[:2], rows[2] | {"idiom": "over the moon"}))
    message = (
        r"a\.jsonl:3: 1 of 3 idioms are not in their sentences, such as 'over the moon' in 'It is"
        r" on the ball\.' \(s2\); check the ids"
    )
    with pytest.raises(UserError, match=message):
        idiots.read_predictions(path, sentences)


def test_no_answer_differs_from_no_idiom(tmp_path: Path) -> None:
    rows = lines({"id": "test-0001", "idioms": None}, {"id": "test-0001-v1", "idioms": []})
    predictions = jam.read_predictions(write(tmp_path / "a.jsonl", rows), SENTENCES)
    assert [(item.outcome, item.idioms) for item in predictions] == [("empty", None), ("ok", ())]


ROW = {"id": "test-0001", "idioms": []}
WRONG_IDIOMS = {
    "missing": (
        lines(ROW),
        r"a\.jsonl: no prediction for 1 of 2 sentences, such as 'test-0001-v1'",
    ),
    "unknown": (
        lines(ROW, {"id": "x", "idioms": []}, {"id": "y", "idioms": []}),
        r"a\.jsonl:2: 2 unknown ids, such as 'x'; no prediction for 1 of 2",
    ),
    "twice": (lines(ROW, ROW), r"a\.jsonl:2: id 'test-0001' is also in line 1"),
    "neither": (
        lines({"id": "test-0001"}),
        r"a\.jsonl:1: exactly one of idioms and tags is required",
    ),
    "both": (
        lines(ROW | {"tags": TAGS}),
        r"a\.jsonl:1: exactly one of idioms and tags is required",
    ),
    "no json": ("id,idioms\n", r"a\.jsonl:1: not JSON: "),
    "a damaged array": ('[{"id": "a", "idioms": []}', r"a\.jsonl: not a JSON array: "),
    "an array of texts": ('["a"]', r"a\.jsonl:1: Input should be an object with named fields; the"),
    "another name of a column": (
        '{"sentence_id": "a", "idioms": []}',
        r"id: Field required \(is it 'sentence_id'\?\)",
    ),
    "a key twice": ('{"id": "a", "idioms": [], "idioms": ["b"]}', "a.jsonl:1: not JSON: duplicate"),
    "short": (
        lines({"id": "test-0001", "tags": TAGS[:4]}, {"id": "test-0001-v1", "tags": TAGS}),
        r"a\.jsonl:1: 4 tags for the 5 tokens of test-0001",
    ),
    "odd tags": (
        lines({"id": "test-0001", "tags": TAGS}, {"id": "test-0001-v1", "tags": ["I-IDIOM"] * 5}),
        r"a\.jsonl:2: I-IDIOM without B-IDIOM at token 1",
    ),
    "no cell": ("id,idioms\ntest-0001\n", r"a\.csv:2: 1 cell instead of 2"),
    "one cell more": ("id,idioms\ntest-0001,a,b\n", r"a\.csv:2: 3 cells instead of 2"),
}


@pytest.mark.parametrize("name", WRONG_IDIOMS)
def test_an_invalid_file_is_reported_with_its_line(name: str, tmp_path: Path) -> None:
    text, message = WRONG_IDIOMS[name]
    file = "a.csv" if "cell" in name else "a.jsonl"
    with pytest.raises(UserError, match=message):
        jam.read_predictions(write(tmp_path / file, text), SENTENCES)


@pytest.mark.parametrize("named", [[""], ["  "], ["", ""]])
def test_blank_idioms_are_ignored(named: list[str], tmp_path: Path) -> None:
    rows = lines(*({"id": item.id, "idioms": named} for item in SENTENCES))
    predictions = jam.read_predictions(write(tmp_path / "a.jsonl", rows), SENTENCES)
    assert [item.idioms for item in predictions] == [(), ()]


@pytest.mark.parametrize("word", ["none", "None.", "N/A", "no idiom", "-", "kein Idiom"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_word_for_none_is_rejected(word: str, name: str, tmp_path: Path) -> None:
    text = {
        "a.jsonl": lines(ROW, {"id": "test-0001-v1", "idioms": [word]}),
        "a.csv": f"id,idioms\ntest-0001,\ntest-0001-v1,{word}\n",
    }[name]
    message = r"a\.\w+:[23]: '.*' is not an idiom; .*empty.* null"
    with pytest.raises(UserError, match=message):
        jam.read_predictions(write(tmp_path / name, text), SENTENCES)


OTHERS = ("They ", "spilled ", "the ", "beans", ".")
MANY = [
    item.model_copy(
        update={"id": f"test-{number:04d}", "sentence": "".join(tokens), "tokens": tokens}
    )
    for item in SENTENCES[:1]
    for number, tokens in enumerate([*[TOKENS] * 20, *[OTHERS] * 20])
]


def own_idioms(*swapped: int) -> str:
    """Return predicted idioms of all of `MANY`, with the ids of pairs of sentences swapped."""
    order = [*range(40)]
    for one in swapped:
        order[one], order[one + 20] = order[one + 20], order[one]
    idioms = ("broke the ice", "Spilling the beans")
    return lines(
        *(
            {"id": MANY[place].id, "idioms": [idioms[number // 20]]}
            for number, place in enumerate(order)
        )
    )


def test_more_than_a_few_idioms_of_other_sentences_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert len(jam.read_predictions(write(path, own_idioms()), MANY)) == 40
    assert len(jam.read_predictions(write(path, own_idioms(3)), MANY)) == 40
    message = (
        r"a\.jsonl:21: 4 of 40 idioms are not in their sentences, such as 'Spilling the beans' in"
        r" 'They broke the ice\.' \(test-0000\), 'Spilling the beans' in .* \(test-0007\), .*;"
    )
    with pytest.raises(UserError, match=message):
        jam.read_predictions(write(path, own_idioms(0, 7)), MANY)


def test_detections_are_read_from_tables_and_lines(tmp_path: Path) -> None:
    table = "idiom,id,has_idiom\nbreak the ice,s2,TRUE\n,s1,\n"
    predictions = idiots.read_predictions(write(tmp_path / "a.csv", table), DETECTED)
    assert [(item.id, item.outcome, item.has_idiom, item.idiom) for item in predictions] == [
        ("s1", "empty", None, None),
        ("s2", "ok", True, "break the ice"),
    ]
    rows = lines({"id": "s1", "has_idiom": False}, {"id": "s2", "has_idiom": True, "idiom": "x"})
    again = idiots.read_predictions(write(tmp_path / "a.jsonl", rows), DETECTED)
    assert [item.has_idiom for item in again] == [False, True]
    floats = "id,has_idiom\ns1,0.0\ns2,1.0\n"
    third = idiots.read_predictions(write(tmp_path / "b.csv", floats), DETECTED)
    assert [item.has_idiom for item in third] == [False, True]
    # A verdict applies to one answer only.
    assert len({item.answer_key for item in (*predictions, *again)}) == 4


def test_a_detection_is_required(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.csv:2: has_idiom: Field required"):
        idiots.read_predictions(write(tmp_path / "a.csv", "id,idiom\ns1,x\n"), DETECTED)


def trec(*rows: tuple[str, str, float], ranks: Sequence[int] = (), tag: str = "me-span") -> str:
    ranks = ranks or range(1, len(rows) + 1)
    return "".join(
        f"{query} Q0 {document} {rank} {score} {tag}\n"
        for (query, document, score), rank in zip(rows, ranks, strict=True)
    )


RUN = trec(
    ("q1", "d1", 1.5), ("q1", "d3", 2), ("q1", "d2", 2), ("q2", "d1", 1), ("q2", "d2", 0),
    ranks=[3, 1, 2, 1, 2],
)  # fmt: skip


def read_span_run(path: Path) -> RankedRun:
    """Read a run of two queries over three documents in mode `span`."""
    return read_foreign_run(path, ["q1", "q2"], {"d1", "d2", "d3"}, mode="span", top_k=2)


@pytest.mark.parametrize("name", ["a.run", "a.run.gz", "a.RUN.GZ"])
def test_a_run_is_truncated_in_the_order_of_trec_eval(name: str, tmp_path: Path) -> None:
    path, documents = tmp_path / name, {"d1", "d2", "d3"}
    (gzip.open if name.lower().endswith(".gz") else open)(path, "wt").write(RUN)  # type: ignore[operator]
    run = read_foreign_run(path, ["q2", "q1"], documents, mode="span", top_k=2)
    assert {query: list(ranked) for query, ranked in run.items()} == {
        "q2": ["d1", "d2"],
        "q1": ["d3", "d2"],
    }
    write_run(tmp_path / "kept.run.gz", run, tag="me")
    assert read_run(tmp_path / "kept.run.gz") == run


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("q1 d1 3.0", "3 fields instead of 6"),
        ("q1 d1 1 3.0", "4 fields instead of 6"),
        ("q1 d1 1 3.0 me-span", "5 fields instead of 6"),
        ("q1 Q0 d1 1 nan me-span", "score 'nan' is not a number"),
        ("q1 Q0 d1 1 -inf me-span", "score '-inf' is not a number"),
        ("q1 Q0 d1 1 0,5 me-span", "score '0,5' is not a number"),
        ("q1 Q0 d1 - 0.5 me-span", "rank '-' is not a number"),
        ("0 q1 Q0 d1 1 0.5 me-span", "rank 'd1' is not a number"),
    ],
)
def test_a_line_of_another_format_names_the_six_fields(
    line: str, problem: str, tmp_path: Path
) -> None:
    message = (
        rf"a\.run:1: not a line of a TREC run: {problem}; .*`query Q0 document rank score tag`"
    )
    with pytest.raises(UserError, match=message):
        read_span_run(write(tmp_path / "a.run", line + "\n"))


def test_runs_of_other_tools_are_read(tmp_path: Path) -> None:
    beir = trec(("q1", "e\u0301", 1.5), ("q1", "d2", 2.5), ranks=[0, 0], tag="my bm25 span")
    path = write(tmp_path / "a.run", "\ufeff" + beir.replace(" ", "\t") + "\n \n")
    run = read_foreign_run(path, ["q1"], {"\u00e9", "d2"}, mode="span", top_k=2)
    assert {query: [*ranked] for query, ranked in run.items()} == {"q1": ["d2", "\u00e9"]}


def test_a_run_in_another_encoding_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_bytes(RUN.encode("utf-16"))
    with pytest.raises(UserError, match=r"a\.run:1: not a line of a TREC run: not UTF-8"):
        read_span_run(tmp_path / "a.run")


def test_a_run_that_is_not_in_the_order_of_its_scores_is_rejected(tmp_path: Path) -> None:
    check_run("a.run.gz", {"q1": {"d2": 1.0, "d1": 1.0, "d3": 0.5}}, ["q1"], ["d1", "d2", "d3"])
    with pytest.raises(UserError, match=r"'q1' are not in the order of their scores"):
        check_run("a.run.gz", {"q1": {"d1": 1.0, "d2": 1.0}}, ["q1"], ["d1", "d2"])


ROWS = (("q1", "d1", 3.0), ("q1", "d2", 2.0), ("q2", "d3", 9.0), ("q2", "d1", 8.0))
CONTRADICTORY = {
    "distances": (
        trec(*ROWS, ranks=[2, 1, 2, 1]),
        r"a\.run:2: document 'd2' has rank 1 for query 'q1', but not the highest score; "
        r".*distances",
    ),
    "ranks of one query": (
        trec(*ROWS, ranks=[1, 2, 2, 1]),
        r"a\.run:4: document 'd1' .* for query 'q2'",
    ),
    "constant": (
        trec(*((query, document, 1) for query, document, _ in ROWS), ranks=[1, 2, 1, 2]),
        r"a\.run: constant scores for 2 of 2 queries, such as 'q1'",
    ),
    "half of it constant": (
        trec(ROWS[0], ("q1", "d2", 3.0), *ROWS[2:]),
        r"a\.run: constant scores for 1 of 2 queries",
    ),
    "another mode": (
        trec(*ROWS, tag="me-instruction_span"),
        r"a\.run: the query mode is 'instruction_span', not 'span'",
    ),
    "no mode": (trec(*ROWS, tag="span-me"), r"a\.run: no query mode in the file name.*-span"),
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN + trec(("q9", "d1", 1)), r"a\.run:6: 1 unknown id, such as 'q9'; .* `limit` keeps"),
        (RUN + trec(("q2", "d9", 1)), r"a\.run:6: 1 unknown document, such as 'd9'"),
        (RUN + trec(("q2", "d1", 1)), r"a\.run:6: query 'q2' ranks 'd1' twice"),
        (RUN + "q2 Q0 d3 1 high me\n", r"a\.run:6: not a line of a TREC run"),
        (RUN + "q2 Q0 d3 1 nan me\n", r"a\.run:6: not a line of a TREC run"),
        (RUN + "q2 Q0 d3 first 9 me\n", r"a\.run:6: not a line of a TREC run"),
        *CONTRADICTORY.values(),
        (RUN[: RUN.index("q2")], r"a\.run: no prediction for 1 of 2 queries, such as 'q2'"),
    ],
)
def test_an_invalid_run_is_reported_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_span_run(write(tmp_path / "a.run", text))


@pytest.mark.parametrize(
    ("file", "tag", "mode"),
    [
        ("mine-span.run.gz", "mine", "span"),
        ("mine.instruction-sentence.run", "1.0", "instruction_sentence"),
        ("a.run", "sentence", "sentence"),
        ("a.run", "sentence-bert.span", "span"),
        ("span/seed-0.run.gz", "mine", "span"),
    ],
)
def test_a_run_names_its_mode_in_its_tag_or_path(
    file: str, tag: str, mode: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    text = trec(*ROWS, ranks=[1, 2, 1, 2], tag=tag).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    assert read_foreign_run(path, ["q1", "q2"], {"d1", "d2", "d3"}, mode=mode, top_k=2)
    for other in {*QUERY_MODES} - {mode}:
        with pytest.raises(UserError, match=f"the query mode is '{mode}', not '{other}'"):
            read_foreign_run(path, ["q1", "q2"], {"d1", "d2", "d3"}, mode=other, top_k=2)


def test_equal_scores_may_have_any_ranks(tmp_path: Path) -> None:
    rows = (("q1", "d1", 1.0), ("q1", "d2", 1.0), ("q1", "d3", 0.5))
    path = write(tmp_path / "a.run", trec(*rows, ranks=[2, 1, 3]))
    run = read_foreign_run(path, ["q1"], {"d1", "d2", "d3"}, mode="span", top_k=3)
    assert list(run["q1"]) == ["d2", "d1", "d3"]


ENTRY = """
mine:
  kind: predictions
  label: Mine
  files:
    - {{study: jam, language: english, setting: tuned, seed: 3, file: {folder}/predictions.csv}}
    - {{study: jam, language: english, setting: zero_shot, file: {folder}/others.csv}}
    - {{study: idiots, setting: tuned, file: {folder}/detections.csv}}
    - {{study: idiolink, setting: span, file: {folder}/mine-span.run}}
"""


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """Create a registry with predictions for every study."""
    for name in ("predictions.csv", "others.csv", "detections.csv", "mine-span.run"):
        write(tmp_path / name, name)
    return registry_with(tmp_path, ENTRY.format(folder=tmp_path))


def test_every_study_reads_its_own_files(entry: Path) -> None:
    run = run_report(
        entry,
        jam={"models": ["mine"], "neutral": None},
        idiots={"models": ["mine"]},
        idiolink={"models": ["bm25", "sbert", "mine"]},
    )
    own_files = {path for path in run_files.metrics(run.studies) if "/mine/" in path}
    assert own_files == {
        "results/metrics/jam/english/mine/tuned/seed-3.json",
        "results/metrics/jam/english/mine/zero_shot/seed-0.json",
        "results/metrics/idiots/mine/tuned/seed-0.json",
        "results/metrics/idiolink/test/mine/span/seed-0.json",
    }
    # No model is queried, and no number of the running text uses external predictions.
    assert not [task for study in run.studies[:2] for task in study.tasks() if task.model == "mine"]
    tables = {
        each.name: given
        for study in run.studies
        for each, given in study.shown.items()
        if each.kind == "table"
    }
    assert not own_files & {*tables["jam_text"].metrics, *tables["idiolink_gains"].metrics}
    for name in ("jam_drift", "idiots_detection", "idiolink_zero_shot"):
        assert own_files & set(tables[name].metrics)
        assert "Mine" in {model.label for model in tables[name].models}
        assert "external" in {run.origin for run in tables[name].runs}


def test_a_query_mode_without_a_run_is_explained(entry: Path) -> None:
    inputs = run_report(entry, idiolink={"models": ["mine"]}).studies[-1].shown[ZERO_SHOT_TABLE]
    made_from = inputs.model_copy(update={"metrics": ()})
    content, _ = make_table(ZERO_SHOT_TABLE.make, ZERO_SHOT_TABLE.numbers, made_from)
    (row,) = (row for group in content.groups for row in group.rows if "Mine" in row.labels[0])
    reasons = {cell.number.reason for cell in row.cells if cell.number}
    assert reasons == {"no such run; the paper prints no such number"}


def test_external_numbers_are_not_compared(entry: Path) -> None:
    run = run_report(entry, jam={"models": ["mine"], "neutral": None}, idiots={"models": ["mine"]})
    jam_study, idiots_study, idiolink = run.studies
    conditions_of_runs = [
        jam_runs.conditions(jam_study, "mine", "tuned"),
        idiots_runs.conditions(idiots_study, "mine", "tuned"),
        idiolink_runs.conditions(idiolink, "mine"),
    ]
    for conditions in conditions_of_runs:
        assert conditions.deviations == ("external predictions",)
        assert not conditions.weights


CWD = str(Path.cwd())
MINE = "mine: {kind: bm25, label: Mine, licence: none}\n"
WRONG_ENTRIES: dict[str, tuple[Callable[[str], str], str]] = {
    "another study": (lambda text: text.replace("study: idiots", "study: jam2"), "no predictions"),
    "no file": (
        lambda text: text.replace("predictions.csv", "gone.csv"),
        rf"models\.yaml: mine: no such file: .*gone\.csv; .*relative to {re.escape(CWD)}\)",
    ),
    "no language": (
        lambda text: text.replace("language: english, setting: tuned", "setting: tuned"),
        "a jam file of 'mine' has no language",
    ),
    "query mode": (lambda text: text.replace("setting: span", "setting: spans"), "setting 'spans'"),
    "same run": (
        lambda text: text.replace("setting: tuned, seed: 3", "setting: zero_shot"),
        "2 files for jam english zero_shot",
    ),
    "one file as two runs": (
        lambda text: text.replace("others.csv", "predictions.csv"),
        r"file '.*predictions.csv' occurs twice",
    ),
    "path in a name": (lambda text: text.replace("setting: tuned", "setting: ../x"), "setting"),
}


@pytest.mark.parametrize("name", WRONG_ENTRIES)
def test_an_unusable_entry_is_rejected(name: str, entry: Path) -> None:
    change, message = WRONG_ENTRIES[name]
    own = entry.with_name("models.local.yaml")
    own.write_text(change(own.read_text("utf-8")), encoding="utf-8")
    of_mine = {"models": ["mine"]}
    with pytest.raises(UserError, match=message):
        run_report(entry, jam=of_mine | {"neutral": None}, idiots=of_mine, idiolink=of_mine)


def test_an_error_names_the_file_that_has_the_entry(tmp_path: Path) -> None:
    registry = load_registry(registry_with(tmp_path, MINE))
    run = Project(registry, LLMSettings(), root=tmp_path)
    assert run.entry_file("mine") == str(tmp_path / "models.local.yaml")
    assert run.entry_file("bm25") == str(tmp_path / "models.yaml")


@pytest.mark.parametrize("models", [["mine"], ["yours", "mine"]])
def test_duplicate_files_are_rejected(models: list[str], entry: Path) -> None:
    files = [entry.with_name(name) for name in ("others.csv", "predictions.csv")]
    files[0].write_bytes(files[1].read_bytes())
    own = entry.with_name("models.local.yaml")
    *_, one, _, _ = own.read_text("utf-8").splitlines(keepends=True)
    yours = f"yours:\n  kind: predictions\n  label: Yours\n  files:\n{one}"
    if "yours" in models:
        write(own, own.read_text("utf-8").replace(one, "") + yours)
    with pytest.raises(UserError, match=r"mine: .*\.csv has the same predictions as .*\.csv; "):
        run_report(entry, jam={"models": models, "neutral": None})


def test_two_entries_with_one_file_are_rejected(entry: Path) -> None:
    own = entry.with_name("models.local.yaml")
    *_, one, _, _ = own.read_text("utf-8").splitlines(keepends=True)
    write(
        own,
        own.read_text("utf-8") + f"yours:\n  kind: predictions\n  label: Yours\n  files:\n{one}",
    )
    with pytest.raises(UserError, match=r"mine: .*\.csv has the same predictions as .*\.csv; "):
        run_report(entry, jam={"models": ["yours", "mine"], "neutral": None})


def test_files_with_the_same_predictions_are_rejected(entry: Path) -> None:
    """The order of rows, spaces and the format are no difference between two runs."""
    one, other = (entry.with_name(name) for name in ("others.csv", "predictions.csv"))
    other.write_text(IDIOMS["b.csv"], "utf-8")
    header, *rows = IDIOMS["b.csv"].splitlines()
    spaced = [row.replace(",", ", ") for row in reversed(rows)]
    one.write_text("\n".join([header, *spaced, ""]), "utf-8")
    problem = r"mine: .*\.csv has the same predictions as .*\.csv; give each run its own"
    with pytest.raises(UserError, match=problem):
        run_report(entry, jam={"models": ["mine"], "neutral": None})


def test_two_models_have_two_labels(tmp_path: Path) -> None:
    own = MINE.replace("Mine", "' bm25 '")
    with pytest.raises(UserError, match="mine: bm25 has the same label 'bm25';"):
        load_registry(registry_with(tmp_path, own))
    both = "a: {kind: bm25, label: A, licence: none}\nb: {kind: bm25, label: A, licence: none}\n"
    with pytest.raises(UserError, match=r"models\.local\.yaml: b: a has the same label 'A';"):
        load_registry(registry_with(tmp_path, both))


def test_a_custom_setting_has_its_own_table_section(entry: Path, tmp_path: Path) -> None:
    study = run_report(entry, jam={"models": ["mine"], "neutral": None}).studies[0]
    rows = write(tmp_path / "a.csv", IDIOMS["b.csv"])
    predictions = {item.id: item for item in jam.read_predictions(rows, SENTENCES)}
    scores = jam_metrics(
        SENTENCES,
        predictions,
        RunIdentity(model="mine", setting="tuned", seed=3),
        Evidence(
            is_released=True,
            conditions=jam_runs.conditions(study, "mine", "tuned"),
            computed_from={},
        ),
        scoring="paper",
        resamples=10,
    )
    path = write(tmp_path / "metrics.json", scores.model_dump_json())
    shown = {"drift", "usage", "confusion", "runs", "pairs"}
    tables = [table for table in study.tables() if table.name.removeprefix("jam_") in shown]
    assert len(tables) == len(shown)
    for table in tables:
        files = {end: tmp_path / f"{table.name}.{end}" for end in ("tex", "csv", "html")}
        made_from = study.shown[table].model_copy(update={"metrics": (str(path),)})
        content, frame = make_table(table.make, table.numbers, made_from)
        write_table(table.name, content, frame, templates=ROOT / "templates", **files)
        if table.name == "jam_pairs":
            continue  # undefined for a single run
        text = files["html"].read_text("utf-8")
        assert "From external" in text
        assert "Mine (external)" not in text
        assert "tuned" in text
        numbers = [row for row in _rows(files["csv"]) if row["model"] == "mine"]
        assert numbers
        assert {row["verdict"] for row in numbers} <= {"not comparable", "not run"}


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
