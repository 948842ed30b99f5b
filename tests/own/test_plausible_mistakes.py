"""User mistakes: each one ends with a one-line error, or the result is still correct.

For each path from a user's file to a number, one case with valid files gives the correct number,
followed by one case per mistake. Mistakes with entire folders of results (edited, copied, older
time stamps, no `.snakemake`) are in `tests/workflow/test_evidence.py`. The tests of each reader
have more cases.
"""

import csv
import gzip
import io
import json
import math
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from own_cases import registry_with, write
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.sidecars import (
    Digests,
    check_made,
    sidecar_of,
    write_digest_list,
    write_sidecar,
)
from pieline.core.yamls import read_yaml
from pieline.languages.identification import CODES
from pieline.languages.registry import get_language
from pieline.models.registry import load_registry
from pieline.results.run_files import metrics
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.datasets.reading import read_split
from pieline.studies.idiolink.metrics.scores import score_queries
from pieline.studies.idiolink.predictions.rankings import TextLabels, read_foreign_run
from pieline.studies.idiots import predictions as idiots
from pieline.studies.idiots.datasets import read_sentences
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.verdicts import COLUMNS
from pieline.studies.jam.metrics.drift import accuracy
from pieline.studies.jam.metrics.scores import judge
from pieline.studies.jam.predictions import external as jam
from pieline.studies.jam.raw.checks import check_sentences
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import JamSentence

SAMPLE = ROOT / "data" / "sample"
Rows = list[dict[str, Any]]
Change = Callable[[Path], object]


# --- From files to a number: one pair of functions per path ---


def identification(folder: Path) -> Path:
    """Write sentences of ID10M, and predicted idioms for four of five; return the predictions."""
    shutil.copy(SAMPLE / "id10m" / "test_english.tsv", folder)
    rows = [
        {"id": item.id, "idioms": ";".join(item.idioms) if number % 5 else ""}
        for number, item in enumerate(read_id10m(folder / "test_english.tsv", split="test"))
        if item.idioms
    ]
    return write_rows(folder / "mine.csv", rows)


def identified(folder: Path) -> float | None:
    """Return the accuracy of the predictions on the originals."""
    corpus = folder / "test_english.tsv"
    check_sentences(
        read_id10m(corpus, split="test"),
        path=corpus,
        code="en",
        label="English",
        codes=CODES,
        light_words=get_language("english").light_words,
    )
    sentences = [
        JamSentence(
            id=item.id, original_id=item.id, variant_number=0, language="english",
            sentence=item.text, tokens=tuple(item.tokens), tags=tuple(item.tags),
            pies=tuple(item.idioms), true_idioms=tuple(item.idioms),
            is_figurative=bool(item.idioms),
        )
        for item in read_id10m(folder / "test_english.tsv", split="test")
        if item.idioms
    ]  # fmt: skip
    (path,) = folder.glob("mine*")
    predictions = jam.read_predictions(path, sentences)
    return accuracy(judge(sentences, {item.id: item for item in predictions}))


def detection(folder: Path) -> Path:
    """Write sentences of IdioTS, and a system that marks one distractor of three as idiomatic."""
    shutil.copy(SAMPLE / "idiots" / "idiots.json", folder)
    rows = [
        {"id": item.id, "has_idiom": has_idiom, "idiom": item.pie if has_idiom else ""}
        for number, item in enumerate(read_sentences(folder / "idiots.json"))
        for has_idiom in [item.is_idiomatic or number % 3 == 0]
    ]
    return write_rows(folder / "mine.csv", rows)


def detected(folder: Path) -> float | None:
    """Return the balanced accuracy."""
    sentences = read_sentences(folder / "idiots.json")
    scores = detection_metrics(
        sentences,
        idiots.read_predictions(folder / "mine.csv", sentences),
        RunIdentity("mine", "mine", 0),
        Evidence(),
        origin="own",
        resamples=2,
    )
    return scores.balanced_accuracy.value


def retrieval(folder: Path) -> Path:
    """Write the test split of IdioLink, ranked by the words that query and document share."""
    for name in ("indexes", "queries"):
        shutil.copy(SAMPLE / "idiolink" / "test" / f"{name}.json", folder)
    documents, queries = read_split(folder / "indexes.json", folder / "queries.json")
    lines = []
    for query in queries:
        words = set(query.sentence.split())
        shared = {one.id: len(words & set(one.sentence.split())) for one in documents}
        ranked = sorted(shared, key=lambda name: (-shared[name], name))[:20]
        lines += [f"{query.id} Q0 {name} {rank} {1 / rank} mine-span\n"
                  for rank, name in enumerate(ranked, start=1)]  # fmt: skip
    return write(folder / "mine.run", "".join(lines))


def retrieved(folder: Path) -> float:
    """Return nDCG@10."""
    documents, queries = read_split(folder / "indexes.json", folder / "queries.json")
    (path,) = folder.glob("mine*")
    names = {document.id for document in documents}
    run = read_foreign_run(
        path, [one.id for one in queries], names, mode="span", top_k=20,
        texts=TextLabels(documents, queries),
    )  # fmt: skip
    scores = score_queries(run, meaning_qrels(queries, documents), depth=20)
    return fmean(of["ndcg_at_10"] or 0 for of in scores.values())


def planning(folder: Path) -> Path:
    """Write a configuration and a model of the user's own."""
    registry_with(
        folder,
        "mine: {kind: predictions, label: Mine, files: [{study: idiots, setting: mine,"
        " file: mine.csv}]}\n",
    )
    write(folder / "mine.csv", "id,has_idiom\n")
    return write(folder / "config.yaml", "studies: [idiots]\nidiots: {seeds: [1, 2], models: [mine,"
                 " smollm2-135m-instruct]}\n")  # fmt: skip


def planned(folder: Path) -> int:
    """Return how many metric files a run makes."""
    raw = layered(read_yaml(folder / "config.yaml"), ROOT / "config" / "sample.yaml")
    config = load_config(raw)
    return len(metrics(load_studies(config, load_registry(folder / "models.yaml"), ROOT).values()))


def derivation(folder: Path) -> Path:
    """Write raw data, a dataset, weights of two seeds and predictions, with their sidecars."""
    write(folder / "mine.tsv", "0.25\n")
    made_from = {
        "results/raw/data.tsv": ["mine.tsv"],
        "results/data.jsonl": ["results/raw/data.tsv"],
        "results/seed-1/weights": ["results/data.jsonl"],
        "results/seed-2/weights": ["results/data.jsonl"],
        "results/predictions.jsonl": ["results/data.jsonl", "results/seed-2/weights.sha256"],
    }
    for number, (path, sources) in enumerate(made_from.items()):
        is_folder = path.endswith("weights")
        write_text(f"{path}/model" if is_folder else path, f"0.{number + 1}\n")
        if is_folder:
            write_digest_list(path, f"{path}.sha256")
        for output in (path, f"{path}.sha256") if is_folder else (path,):
            write_sidecar(output, made_from=Digests().of(*sources))
    return folder / "results/predictions.jsonl"


def derived(folder: Path) -> float:
    """Return a number computed from all files that jobs made."""
    lists = [f"results/seed-{seed}/weights.sha256" for seed in (1, 2)]
    files = ["results/raw/data.tsv", "results/data.jsonl", "results/predictions.jsonl"]
    check_made([*files, *lists])
    paths = [*files, *(f"{path.removesuffix('.sha256')}/model" for path in lists)]
    return sum(float(Path(path).read_text("utf-8")) for path in paths)


# --- Mistakes ---


def write_rows(path: Path, rows: Rows, delimiter: str = ",") -> Path:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, rows[0], delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write(path, stream.getvalue())


def text(name: str, change: Callable[[str], str]) -> Change:
    """Return a change of the text of a file."""

    def apply(folder: Path) -> None:
        path = folder / name
        before = path.read_text("utf-8")
        after = change(before)
        assert after != before
        write(path, after)

    return apply


def replace(name: str, old: str, new: str, count: int = -1) -> Change:
    return text(name, lambda before: before.replace(old, new, count))


def rows(change: Callable[[Rows], object], delimiter: str = ",") -> Change:
    """Return a change of the rows of the user's table."""

    def apply(folder: Path) -> None:
        with (folder / "mine.csv").open(encoding="utf-8") as stream:
            read: Rows = list(csv.DictReader(stream))
        change(read)
        write_rows(folder / "mine.csv", read, delimiter)

    return apply


def records(name: str, change: Callable[[Rows], object]) -> Change:
    """Return a change of the records of a JSON file."""

    def apply(folder: Path) -> None:
        read: Rows = json.loads((folder / name).read_text("utf-8"))
        change(read)
        write(folder / name, json.dumps(read))

    return apply


def lines(change: Callable[[list[list[str]]], object]) -> Change:
    """Return a change of the fields of the run's lines."""

    def changed(before: str) -> str:
        fields = [line.split() for line in before.splitlines()]
        change(fields)
        return "".join(" ".join(each) + "\n" for each in fields)

    return text("mine.run", changed)


def swap(name: str, other: str) -> Callable[[Rows], None]:
    def apply(read: Rows) -> None:
        for row in read:
            row[name], row[other] = row[other], row[name]

    return apply


def move(name: str) -> Callable[[Rows], None]:
    """Return a function that gives each row the value of the next row."""

    def apply(read: Rows) -> None:
        values = [row[name] for row in read]
        for row, value in zip(read, [*values[1:], values[0]], strict=True):
            row[name] = value

    return apply


def each(name: str, change: Callable[[Any], Any], part: int = 1) -> Callable[[Rows], None]:
    """Return a function that changes a field of the first 1/`part` of the rows."""

    def apply(read: Rows) -> None:
        for row in read[: -(-len(read) // part)]:
            row[name] = change(row[name])

    return apply


def texts(folder: Path) -> dict[str, str]:
    """Return the sentences of ID10M by id, without separators between two idioms."""
    read = read_id10m(folder / "test_english.tsv", split="test")
    return {item.id: item.text.replace(";", ",") for item in read}


def copy_of(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def swap_usage(usage: str) -> str:
    return {"literal": "idiomatic", "idiomatic": "literal"}.get(usage, usage)


def set_field(place: int, value: Callable[[list[str]], object]) -> Change:
    def apply(fields: list[list[str]]) -> None:
        for each in fields:
            each[place] = str(value(each))

    return lines(apply)


def other_split(folder: Path) -> None:
    shutil.copy(SAMPLE / "idiolink" / "val" / "indexes.json", folder)


def composition(folder: Path) -> None:
    """Rank only the literal and idiomatic documents."""
    names = [
        row["id"]
        for row in json.loads((folder / "indexes.json").read_text("utf-8"))
        if row["usage"] in ("literal", "idiomatic")
    ]
    lines(
        lambda fields: [
            each.__setitem__(2, names[(7 * (at // 20) + at % 20) % len(names)])
            for at, each in enumerate(fields)
        ]
    )(folder)


def next_queries(folder: Path) -> None:
    """Rank documents on the idiom and subject of the next query first."""
    documents, queries = (
        json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("indexes", "queries")
    )
    names = ("idiom", "subject")
    found = [
        f"{query['id']} Q0 {document['id']} {rank} {1 / rank} mine-span\n"
        for query, other in zip(queries, [*queries[1:], queries[0]], strict=True)
        for rank, document in enumerate(
            sorted(documents, key=lambda it: -sum(it[name] == other[name] for name in names)), 1
        )
    ]
    write(folder / "mine.run", "".join(found))


def rename_ids(folder: Path) -> None:
    """Give the documents ids that do not state the usage."""
    records("indexes.json", lambda read: [row.update(id=f"d{at}") for at, row in enumerate(read)])(
        folder
    )


def whole_sentences(read: Rows) -> None:
    for row in read:
        row["span"] = row["sentence"]


def tags(distance: int) -> Change:
    """Return a change that moves all tags of a corpus by some tokens."""

    def changed(before: str) -> str:
        rows = [line.split("\t") for line in before.split("\n")]
        places = [at for at, row in enumerate(rows) if len(row) == 2]
        moved = [rows[at][1] for at in places]
        moved = moved[-distance:] + moved[:-distance]
        for at, tag in zip(places, moved, strict=True):
            rows[at][1] = tag
        return "\n".join("\t".join(row) for row in rows)

    return text("test_english.tsv", changed)


def blocks(change: Callable[[list[str]], list[str]]) -> Change:
    """Return a change of the sentences of a corpus, each a block of lines."""
    return text(
        "test_english.tsv",
        lambda before: "\n\n".join(change(before.strip("\n").split("\n\n"))) + "\n\n",
    )


def cover(before: list[str]) -> list[str]:
    """Tag all tokens of each sentence with an idiom, except the last."""
    after = []
    for block in before:
        tokens = [line.split("\t")[0] for line in block.split("\n")]
        tags = ["B-IDIOM", *["I-IDIOM"] * (len(tokens) - 2), "O"]
        rows = [f"{token}\t{tag}" for token, tag in zip(tokens, tags, strict=True)]
        after.append("\n".join(rows) if "B-IDIOM" in block else block)
    return after


def tag_file(distance: int) -> Change:
    """Return a change that predicts the correct tags, moved by some tokens."""

    def apply(folder: Path) -> None:
        read = read_id10m(folder / "test_english.tsv", split="test")
        (folder / "mine.csv").unlink()
        moved = (
            {"id": item.id, "tags": [*item.tags[-distance:], *item.tags[:-distance]]}
            for item in read
            if item.idioms
        )
        write(folder / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in moved))

    return apply


def nulls(folder: Path) -> None:
    with (folder / "mine.csv").open(encoding="utf-8") as stream:
        ids = [row["id"] for row in csv.DictReader(stream)]
    (folder / "mine.csv").unlink()
    write(
        folder / "mine.jsonl", "".join(json.dumps({"id": it, "idioms": None}) + "\n" for it in ids)
    )


def german(before: list[str]) -> list[str]:
    others = (SAMPLE / "id10m" / "test_german.tsv").read_text("utf-8").strip("\n").split("\n\n")
    return [*before, *others[:10]]


def query_in_index(folder: Path) -> None:
    query = json.loads((folder / "queries.json").read_text("utf-8"))[0]
    same = {name: query[name].upper() for name in ("sentence", "span")}
    records("indexes.json", lambda read: read[3].update(same))(folder)


def lose_a_meaning(read: Rows) -> None:
    lost = read[0]["idiom"]
    read[:] = [row for row in read if (row["idiom"], row["usage"]) != (lost, "literal")]


def seed_copied(*parts: str) -> Change:
    """Return a change that copies parts of the results of one seed over those of another."""

    def apply(folder: Path) -> None:
        for part in parts:
            ours, theirs = (folder / f"results/seed-{seed}" / part for seed in (1, 2))
            assert ours.read_bytes() != theirs.read_bytes()
            shutil.copy(ours, theirs)

    return apply


def verdicts(name: str = "cases.csv", **fields: str) -> Change:
    """Return a change that configures a file with one judged answer of a run."""
    case = dict.fromkeys(COLUMNS, "") | {
        "model": "smollm2-135m-instruct", "setting": "zero_shot", "seed": "1", "gold": "idiomatic",
        "sentence_id": "idi001-sen01-id", "answer_key": "a",
    }  # fmt: skip

    def apply(folder: Path) -> None:
        write_rows(folder / name, [case | fields])
        replace("config.yaml", "{seeds", f"{{verdicts: {name}, seeds")(folder)

    return apply


RIGHT = None
PATHS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], float | None]]] = {
    "jam": (identification, identified),
    "idiots": (detection, detected),
    "idiolink": (retrieval, retrieved),
    "plan": (planning, planned),
    "evidence": (derivation, derived),
}
MISTAKES: dict[str, tuple[str, Change, str | None]] = {
    # Changes without effect.
    "a byte order mark": ("jam", text("mine.csv", lambda value: "\ufeff" + value), RIGHT),
    "lines end as on Windows": ("jam", replace("mine.csv", "\n", "\r\n"), RIGHT),
    "rows in another order": ("jam", rows(lambda read: read.reverse()), RIGHT),
    "one column more": ("jam", rows(lambda read: [row.update(note="x") for row in read]), RIGHT),
    "blank idioms": ("jam", replace("mine.csv", ",\n", ", \n"), RIGHT),
    "true in capitals": ("idiots", replace("mine.csv", "True", "TRUE"), RIGHT),
    "records in another order": (
        "idiolink",
        records("indexes.json", lambda read: read.reverse()),
        RIGHT,
    ),
    "lines of the run in another order": (
        "idiolink",
        lines(lambda fields: fields.reverse()),
        RIGHT,
    ),
    "scores of another scale": (
        "idiolink",
        set_field(4, lambda each: 100 * float(each[4]) - 7),
        RIGHT,
    ),
    "a byte order mark in a run": ("idiolink", text("mine.run", lambda it: "\ufeff" + it), RIGHT),
    "tabs in a run": ("idiolink", replace("mine.run", " ", "\t"), RIGHT),
    "a blank last line": ("idiolink", text("mine.run", lambda it: it + "\n"), RIGHT),
    "a tag with a space": ("idiolink", set_field(5, lambda each: "my run-span"), RIGHT),
    "decimal ranks": ("idiolink", set_field(3, lambda each: float(each[3])), RIGHT),
    "rank 0 as in BEIR": ("idiolink", set_field(3, lambda each: 0), RIGHT),
    "ranks that are all 1": ("idiolink", set_field(3, lambda each: 1), RIGHT),
    "scores that are equal as 32-bit floats": (
        "idiolink",
        set_field(4, lambda each: 1 / (1 + math.exp(int(each[3]) / 20 - 21))),
        RIGHT,
    ),
    "a judged answer": ("plan", verdicts(verdict="yes"), RIGHT),
    # Predictions for ID10M-JAM.
    "ids shifted by one": ("jam", rows(move("idioms")), "idioms are not in their sentences"),
    "numbers for ids": (
        "jam",
        rows(lambda read: [row.update(id=str(at)) for at, row in enumerate(read)]),
        "unknown ids",
    ),
    "a row twice": ("jam", rows(lambda read: read.append(read[3])), "is also in line 5"),
    "half of the rows": ("jam", rows(lambda read: read.__delitem__(slice(9))), "no prediction for"),
    "none as an idiom": (
        "jam",
        rows(each("idioms", lambda value: value or "none")),
        "'none' is not an idiom",
    ),
    "whole sentences for idioms": (
        "jam",
        lambda folder: rows(
            lambda read: [row.update(idioms=texts(folder)[row["id"]]) for row in read]
        )(folder),
        "34 of 34 idioms are complete sentences",
    ),
    "no answer at all": ("jam", nulls, r"mine\.jsonl: idioms is null in every row"),
    "tags one token late": (
        "jam",
        tag_file(1),
        "shifted by one token, the tags of 34 of 34 sentences are correct, but .* only of 0",
    ),
    "tags one token early": ("jam", tag_file(-1), "shifted by one token"),
    "its sentences beside": (
        "jam",
        lambda folder: rows(
            lambda read: [row.update(sentence=texts(folder)[row["id"]].upper()) for row in read]
        )(folder),
        RIGHT,
    ),
    "sentences of other data": (
        "jam",
        rows(lambda read: [row.update(sentence="Quite another one.") for row in read]),
        r"mine\.csv:2: sentence 'Quite another one\.' of test-.* is '.*' in the dataset",
    ),
    "a table named .txt": (
        "jam",
        lambda folder: (folder / "mine.csv").rename(folder / "mine.txt"),
        r"must end in \.csv, \.tsv, \.jsonl, \.json or \.parquet",
    ),
    "semicolons between cells": ("jam", rows(lambda read: None, ";"), r"mine\.csv"),
    "another encoding": (
        "jam",
        lambda folder: (folder / "mine.csv").write_bytes(
            (folder / "mine.csv").read_text("utf-8").replace("i", "ï").encode("latin-1")
        ),
        "UTF-8",
    ),
    "tokens without spaces": (
        "jam",
        replace("test_english.tsv", " \t", "\t"),
        "no spaces between the words",
    ),
    "another tag set": ("jam", replace("test_english.tsv", "B-IDIOM", "B"), "unknown tag 'B'"),
    "tags one line late": ("jam", tags(1), r"test_english\.tsv:\d+: 11 of 34 tagged idioms"),
    "tags one line early": ("jam", tags(-1), r"test_english\.tsv:\d+: 23 of 34 tagged idioms"),
    "sentences twice": ("jam", blocks(lambda before: before + before[:2]), "2 of 48 texts are rep"),
    "a sentence twice, with more space": (
        "jam",
        blocks(lambda before: [*before, before[3].replace(" \t", "  \t")]),
        r"test_english\.tsv:\d+: 1 of 47 texts are repeated, such as '.*' \(also .*:\d+\)",
    ),
    "sentences in another language": ("jam", blocks(german), "10 of 56 sentences are not in Engl"),
    "NUL characters": (
        "jam",
        replace("test_english.tsv", "the \t", "the\0 \t"),
        r"such as '.*\\x00.*' \(the control character U\+0000\)",
    ),
    "HTML entities": ("jam", replace("test_english.tsv", "'", "&#39;"), "HTML entity &#39;"),
    "HTML tags": (
        "jam",
        replace("test_english.tsv", "the \t", "<b>the</b> \t"),
        r"42 of 46 texts are damaged, such as '.*' \(the HTML tag <b>\)",
    ),
    "idioms that cover their sentences": (
        "jam",
        blocks(cover),
        "34 of 34 tagged idioms are whole sentences",
    ),
    "UTF-8 as Latin-1": ("jam", replace("test_english.tsv", "the ", "thÃ© "), "another encoding"),
    "one column of the corpus": (
        "jam",
        text("test_english.tsv", lambda value: value.replace("\tO", "")),
        "1 column",
    ),
    # IdioTS.
    "two idioms of one id": (
        "idiots",
        records("idiots.json", lambda read: read[1].update(idiom="To spill the beans")),
        "has the id idi001 of",
    ),
    "another idiom_id in every sentence": (
        "idiots",
        records(
            "idiots.json", lambda read: [row.update(idiom_id=row["sentence_id"]) for row in read]
        ),
        "most idioms have several idiom_id values",
    ),
    "one text under both labels": (
        "idiots",
        records("idiots.json", lambda read: read[2].update(en=read[0]["en"].upper())),
        r"record 3 \(idi001-sen03-di\): same text as idi001-sen01-id, but a different label",
    ),
    "idioms shifted by one": ("idiots", records("idiots.json", move("idiom")), "has the id idi0"),
    "sentences shifted by one": (
        "idiots",
        records("idiots.json", lambda read: [move(name)(read) for name in ("en", "es")]),
        "24 of 82 sentences contain the idiom of other sentences instead of their own, such as",
    ),
    "ids shifted by one idiom": (
        "idiots",
        records(
            "idiots.json",
            lambda read: [move(name)(read) for name in ("sentence_id", "sentence_has_idiom")],
        ),
        "26 of 82 sentence ids do not begin with their idiom_id",
    ),
    "a sentence twice under another id": (
        "idiots",
        records(
            "idiots.json",
            lambda read: read.append(
                read[0] | {"sentence_id": "idi001-sen09-id", "en": f"{read[0]['en']} "}
            ),
        ),
        r"record 83 \(idi001-sen09-id\): 1 of 83 texts are repeated",
    ),
    "entities in the sentences": (
        "idiots",
        records("idiots.json", each("en", lambda value: f"{value} &amp; more", 9)),
        "10 of 82 texts are damaged",
    ),
    "predictions of the next sentence": (
        "idiots",
        rows(lambda read: [move(name)(read) for name in ("has_idiom", "idiom")]),
        r"mine\.csv:\d+: \d+ of 62 idioms are not in their sentences, such as",
    ),
    "predictions of the sentence before": (
        "idiots",
        rows(move("id")),
        "idioms are not in their sentences",
    ),
    "another name of has_idiom": (
        "idiots",
        replace("mine.csv", "has_idiom", "hasIdiom"),
        r"has_idiom: Field required \(is it 'hasIdiom'\?\)",
    ),
    "answers of the next sentence, without idioms": (
        "idiots",
        rows(lambda read: [move("has_idiom")(read), [row.pop("idiom") for row in read]]),
        r"mine\.csv: the answers fit the next sentences: 7\d of 82 are correct for them",
    ),
    "answers of the sentence before, without idioms": (
        "idiots",
        rows(lambda read: [move("id")(read), [row.pop("idiom") for row in read]]),
        r"mine\.csv: the answers fit the previous sentences",
    ),
    "no idioms": ("idiots", rows(lambda read: [row.pop("idiom") for row in read]), RIGHT),
    "English and Spanish swapped": (
        "idiots",
        records("idiots.json", swap("en", "es")),
        "en is in Spanish and es in English",
    ),
    "a usage as a Boolean": (
        "idiots",
        records("idiots.json", each("sentence_has_idiom", lambda value: value == "True")),
        "'True' or 'False'",
    ),
    "no idiom in a sentence with one": (
        "idiots",
        rows(each("idiom", lambda value: value and "none")),
        "has_idiom is true, but idiom is",
    ),
    "no yes, and idioms": (
        "idiots",
        rows(each("has_idiom", lambda value: False)),
        "has_idiom is never true, but 62 rows set idiom",
    ),
    "yes and no swapped": (
        "idiots",
        rows(each("has_idiom", lambda value: value != "True")),
        r"mine\.csv:2: idiom is set in 62 of 62 rows in which has_idiom is false, but empty in 20",
    ),
    "only yes and no shifted by one": (
        "idiots",
        rows(move("has_idiom")),
        "idiom is set in 19 of 20 rows in which has_idiom is false, but empty in 19 of 62",
    ),
    "idioms for noes, too": (
        "idiots",
        rows(lambda read: [row.update(idiom=row["idiom"] or "it") for row in read]),
        RIGHT,
    ),
    "no yes and no no": (
        "idiots",
        rows(each("has_idiom", lambda value: "")),
        "has_idiom is empty in every row",
    ),
    "a probability for yes and no": (
        "idiots",
        rows(each("has_idiom", lambda value: 0.3)),
        r"has_idiom: Input should be true or false \(given: '0\.3'\)",
    ),
    # IdioLink's texts.
    "a query in the index": (
        "idiolink",
        query_in_index,
        r"indexes\.json: .*: the document is also query",
    ),
    "the index of another split": (
        "idiolink",
        other_split,
        r"queries\.json: .*: no relevant document for .*\(40 of 40 queries have none\)",
    ),
    "an index without a meaning": (
        "idiolink",
        records("indexes.json", lose_a_meaning),
        r"queries\.json: .*: no relevant document for .*\(4 of 40 queries have none\)",
    ),
    "a document with the id of another": (
        "idiolink",
        records("indexes.json", lambda read: read[1].update(id=read[0]["id"])),
        r"indexes\.json: duplicate id '",
    ),
    "a text without a subject": (
        "idiolink",
        records("indexes.json", lambda read: read[0].pop("subject")),
        "subject: Field required",
    ),
    "capitals in some PIEs": (
        "idiolink",
        records("indexes.json", each("idiom", str.upper, 9)),
        "idiom '[a-z ]+' is spelled '[A-Z ]+' in another record",
    ),
    "two spaces in some PIEs": (
        "idiolink",
        records("indexes.json", each("idiom", lambda value: value.replace(" ", "  "), 9)),
        "in another record",
    ),
    "hyphens in some PIEs": (
        "idiolink",
        records("indexes.json", each("idiom", lambda value: value.replace(" ", "-"), 9)),
        "in another record",
    ),
    "some PIEs in one word": (
        "idiolink",
        records("indexes.json", each("idiom", lambda value: value.replace(" ", ""), 9)),
        "in another record",
    ),
    "wide letters in some PIEs": (
        "idiolink",
        records("indexes.json", each("idiom", lambda value: value.replace("e", "\uff45"), 9)),
        "in another record",
    ),
    "small letters in some subjects": (
        "idiolink",
        records("indexes.json", each("subject", str.lower, 9)),
        "subject '[A-Z][a-z]+' is spelled '[a-z]+' in another record",
    ),
    "a usage with a capital": (
        "idiolink",
        records("queries.json", each("usage", str.title)),
        "usage: Input should be",
    ),
    "spans of other sentences": (
        "idiolink",
        records("queries.json", move("span")),
        r"record \d \(.*: span '.*' is not in its sentence '.*'; correct this record",
    ),
    "spaces that do not break": (
        "idiolink",
        records("queries.json", each("sentence", lambda text: text.replace(" ", "\xa0"))),
        r"span '[a-z ]*' is not in its sentence '.*\\xa0.*'; correct this record",
    ),
    "a document twice": (
        "idiolink",
        records("indexes.json", lambda read: read.append(read[3] | {"id": "again"})),
        "again: same sentence and idiom as",
    ),
    "one text under several usages": (
        "idiolink",
        records("queries.json", lambda read: read[1].update(copy_of(read[0], "sentence", "span"))),
        "same sentence and idiom as",
    ),
    "idioms of other queries": (
        "idiolink",
        records("queries.json", move("idiom")),
        "5 of 40 literal and idiomatic spans do not match their idiom",
    ),
    "idioms of other documents": (
        "idiolink",
        records("indexes.json", lambda read: [move("idiom")(read) for _ in range(10)]),
        "literal and idiomatic spans do not match their idiom",
    ),
    "a document twice, with more space": (
        "idiolink",
        records(
            "indexes.json",
            lambda read: read.append(
                read[3] | {"id": "again", "sentence": f"{read[3]['sentence']}\u200b "}
            ),
        ),
        "again: same sentence and idiom as",
    ),
    "whole sentences as spans": (
        "idiolink",
        records("indexes.json", whole_sentences),
        r"200 of 200 spans are whole sentences, such as '.*', '.*', '.*'; mark only the words",
    ),
    "spans of all words but the last": (
        "idiolink",
        records(
            "indexes.json",
            lambda read: [row.update(span=row["sentence"].rsplit(" ", 1)[0]) for row in read],
        ),
        "200 of 200 spans are whole sentences",
    ),
    "subjects shifted by one": (
        "idiolink",
        records("indexes.json", move("subject")),
        "subject is 'Sport', but 'Politics' in 004_s01_idiom_01, whose id states the same subject",
    ),
    "idioms of documents shifted by one": (
        "idiolink",
        records("indexes.json", move("idiom")),
        "idiom is 'under the table', but 'drop the ball' in 004_s01_idiom_01, whose id states",
    ),
    "simplification and sense swapped under ids in another format": (
        "idiolink",
        lambda folder: [
            rename_ids(folder),
            records(
                "indexes.json",
                each(
                    "usage",
                    lambda usage: {"sense": "simplification", "simplification": "sense"}.get(
                        usage, usage
                    ),
                ),
            )(folder),
        ],
        "40 of 40 sense texts are copies of idiomatic texts",
    ),
    "usages swapped under ids in another format": (
        "idiolink",
        lambda folder: [
            rename_ids(folder),
            records("indexes.json", each("usage", swap_usage))(folder),
        ],
        "40 of 80 simplification and sense texts are copies of literal texts",
    ),
    "sense and literal swapped under ids in another format": (
        "idiolink",
        lambda folder: [
            rename_ids(folder),
            records(
                "indexes.json",
                each(
                    "usage",
                    lambda usage: {"sense": "literal", "literal": "sense"}.get(usage, usage),
                ),
            )(folder),
        ],
        "spans do not match their idiom",
    ),
    "control characters in documents": (
        "idiolink",
        records("indexes.json", each("sentence", lambda value: f"{value}\x07", 20)),
        "10 of 200 texts are damaged",
    ),
    "literal and idiomatic swapped in the index": (
        "idiolink",
        records("indexes.json", each("usage", swap_usage)),
        "usage is '(literal|idiomatic)', but the id says '(literal|idiomatic)'",
    ),
    # Runs.
    "distances for scores": (
        "idiolink",
        set_field(4, lambda each: int(each[3])),
        "not the highest score",
    ),
    "equal scores": ("idiolink", set_field(4, lambda each: 1), "constant scores"),
    "equal scores of 3 queries": (
        "idiolink",
        lines(lambda fields: [each.__setitem__(4, "1") for each in fields[:60]]),
        "constant scores for 3 of 40 queries",
    ),
    "scores of one digit": (
        "idiolink",
        set_field(4, lambda each: round(float(each[4]), 1)),
        "scores are rounded",
    ),
    "scores that are rounded below the first documents": (
        "idiolink",
        set_field(
            4, lambda each: 9 - int(each[3]) / 10 if int(each[3]) < 12 else 5 - int(each[3]) // 5
        ),
        "scores are rounded",
    ),
    "zeros for documents without a score": (
        "idiolink",
        set_field(4, lambda each: 1 / int(each[3]) if int(each[3]) < 12 else 0),
        RIGHT,
    ),
    "scores of three digits": (
        "idiolink",
        set_field(4, lambda each: round(0.9 - int(each[3]) / 10_000, 3)),
        "scores are rounded",
    ),
    "rankings of the next queries": (
        "idiolink",
        next_queries,
        "the rankings fit the next queries",
    ),
    "a gzipped run without .gz": (
        "idiolink",
        lambda folder: (folder / "mine.run").write_bytes(
            gzip.compress((folder / "mine.run").read_bytes())
        ),
        r"mine\.run: the file is gzipped; rename it to mine\.run\.gz",
    ),
    "half of the queries": (
        "idiolink",
        lines(lambda fields: fields.__delitem__(slice(400))),
        "no prediction for 20 of 40",
    ),
    "another query mode": (
        "idiolink",
        set_field(5, lambda each: "mine-sentence"),
        "the query mode is 'sentence'",
    ),
    "a ranking of an index composition": (
        "idiolink",
        composition,
        r"no query ranks a document with usage '.*' or '.*' \(80 of 200 documents\)",
    ),
    "five columns": (
        "idiolink",
        lines(lambda fields: [each.pop(1) for each in fields]),
        r"mine\.run:1: not a line of a TREC run: 5 fields instead of 6; write `query Q0 document",
    ),
    "documents of another split": (
        "idiolink",
        set_field(2, lambda each: f"x{each[2]}"),
        "unknown documents",
    ),
    "ten documents a query": (
        "idiolink",
        text(
            "mine.run",
            lambda value: "".join(
                line for line in value.splitlines(True) if int(line.split()[3]) <= 10
            ),
        ),
        "fewer than 20 documents",
    ),
    "a score that is no number": (
        "idiolink",
        set_field(4, lambda each: "nan"),
        "not a line of a TREC run",
    ),
    # Settings and entries.
    "no study": (
        "plan",
        replace("config.yaml", "[idiots]", "[]"),
        r"studies: empty list; choose from .*idiots",
    ),
    "braces in a label": (
        "plan",
        replace("models.local.yaml", "Mine", "'Mi{n}e'"),
        "contains braces",
    ),
    "verdicts on a setting that was renamed": (
        "plan",
        verdicts(setting="zero-shot", verdict="yes"),
        "this configuration, only on smollm2-135m-instruct zero-shot 1",
    ),
    "a verdict in another column": (
        "plan",
        verdicts(explanation="yes"),
        "no verdict on a run of this configuration; fill in the column verdict",
    ),
    "verdicts saved as text": ("plan", verdicts("cases.txt"), "save the table as .csv"),
    # Edited or copied results.
    "an edited data set": (
        "evidence",
        replace("results/data.jsonl", "0.2", "0.26"),
        "was changed after it was written",
    ),
    "edited predictions": (
        "evidence",
        replace("results/predictions.jsonl", "0.5", "0.6"),
        "was changed after",
    ),
    "predictions without their evidence": (
        "evidence",
        lambda folder: Path(sidecar_of(folder / "results/predictions.jsonl")).unlink(),
        r"\.evidence/predictions\.jsonl\.json: is missing",
    ),
    "a truncated sidecar": (
        "evidence",
        text("results/.evidence/data.jsonl.json", lambda before: before[:40]),
        r"\.evidence/data\.jsonl\.json:\d+: not JSON: .*; run the same .* results/data\.jsonl",
    ),
    "an edited raw file": (
        "evidence",
        replace("results/raw/data.tsv", "0.1", "0.2"),
        r"data\.tsv: was changed after it was written",
    ),
    "other data where the raw file came from": (
        "evidence",
        replace("mine.tsv", "0.25", "0.26"),
        r"mine\.tsv: differs from the file that results/raw/data\.tsv was made from",
    ),
    "weights of another seed": (
        "evidence",
        seed_copied("weights/model"),
        "seed-2/weights/model: was changed after it was written",
    ),
    "weights of another seed, with their digests": (
        "evidence",
        seed_copied("weights/model", "weights.sha256"),
        "seed-2/weights/model: was changed after it was written",
    ),
    "weights of another seed, with their sidecars": (
        "evidence",
        seed_copied(
            *("weights/model", "weights.sha256"),
            *(".evidence/weights.json", ".evidence/weights.sha256.json"),
        ),
        "is a copy of that of results/seed-1/weights, so results/seed-2/weights may be a copy",
    ),
    "an additional file of weights": (
        "evidence",
        lambda folder: write(folder / "results/seed-2/weights/adapter", "0.1\n"),
        "adapter: was added after results/seed-2/weights was written",
    ),
    "weights without a file": (
        "evidence",
        lambda folder: (folder / "results/seed-2/weights/model").unlink(),
        "seed-2/weights/model: is missing",
    ),
}


@cache
def right_number(path: str, folder: Path) -> float:
    """Return the number computed from valid files."""
    prepare, number = PATHS[path]
    prepare(folder)
    right = number(folder)
    assert right
    return right


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Create a folder with valid files for each path."""
    return {path: tmp_path_factory.mktemp(path) for path in PATHS}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gives_a_one_line_error_or_the_right_number(
    mistake: str, sound: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, make, expected = MISTAKES[mistake]
    _, number = PATHS[path]
    monkeypatch.chdir(sound[path])
    right = right_number(path, sound[path])
    shutil.copytree(sound[path], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    if expected is RIGHT:
        assert number(tmp_path) == right
        return
    with pytest.raises(UserError, match=expected) as caught:
        number(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
