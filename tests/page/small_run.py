"""A tiny run of all three studies, made with the library."""

import contextlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from frame_cases import CATALOGUE, PRINTED, given_rows, table_of
from support import ROOT

from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.files import digests, read_json, write_json
from pieline.core.records import save_jsonl
from pieline.core.sidecars import write_sidecar
from pieline.reporting.displays import Figure, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import frame_of, numbers_of, write_numbers
from pieline.reporting.tables import (
    Cell,
    Group,
    Head,
    Row,
    TableContent,
    make_table,
    write_table,
)
from pieline.results.claims.claim import Claim, load_claims
from pieline.results.claims.judgement import judge_claims, write_claims
from pieline.results.claims.tables import load_printed
from pieline.results.numbers import Requirements, TableNumbers, all_numbers
from pieline.results.page.build import PageContent, write_page
from pieline.results.run_results import RunResults, ShownStudy, shown_display
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.figures import modes
from pieline.studies.idiolink.metrics.scores import idiolink_metrics
from pieline.studies.idiolink.predictions.rankings import read_run, write_run
from pieline.studies.idiolink.records import Document, Query, QueryUsage, Usage
from pieline.studies.idiolink.tables.zero_shot import zero_shot
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.jam.bio import tags_of
from pieline.studies.jam.metrics.scores import jam_metrics, match_predictions
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

MODELS = [
    ModelDescription(
        name="sbert",
        kind="embedder",
        label="SBERT",
        published_as="sentence-transformers/all-MiniLM-L6-v2",
    ),
    ModelDescription(name="bm25", kind="bm25", label="BM25"),
    ModelDescription(name="vicuna-7b", kind="llm", label="Vicuna 7B", published_as="Vicuna-7b"),
    ModelDescription(name="gpt-4o", kind="llm", label="GPT-4o", published_as="GPT-4o"),
]
SAMPLE = ["sample data"]
LATE = "no time"
"""Why a number was not run."""
PLACES = {
    "jam": ("ID10M-JAM", {"jam_drift": "Table 3"}),
    "idiots": ("IdioTS", {"idiots_detection": "Table 1"}),
    "idiolink": ("IdioLink", {"idiolink_zero_shot": "Table 2", "idiolink_bm25": "Table 4"}),
}
"""Papers and tables of the run, with each table's number in its paper."""

MADE = [table for _, tables in PLACES.values() for table in tables]
ABSENT = {
    file: "nobody had time"
    for table in CATALOGUE.values()
    for file in (table.table, *table.needs)
    if file and file not in MADE
}
"""Reasons why the papers' other tables were not made."""

RECORDINGS = {
    "jam": {
        "results/predictions/jam/english/gpt-4o/zero_shot/seed-42.jsonl": "recordings/jam/no.jsonl"
    },
    "idiots": {
        "results/predictions/idiots/vicuna-7b/zero_shot/seed-0.jsonl": (
            "recordings/vicuna-7b-zero_shot-0.jsonl"
        )
    },
}
"""Recordings by the path of predictions; those of ID10M-JAM do not exist."""

# A single pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c636460f85f0f0002870180eb47ba920000000049454e44ae426082"
)


def make_run(folder: Path) -> Path:
    """Make datasets, predictions, metrics, tables and the page in a folder; return the page."""
    with contextlib.chdir(folder):
        make_idiolink()
        make_idiots()
        make_jam()
        return make_page()


def displays() -> RunResults:
    """Return the run's tables and its figure."""
    figure = Figure(
        "idiolink_modes",
        "Figure 4",
        "Scores by query mode.",
        modes,
        print,
    )
    return RunResults(
        studies=tuple(
            ShownStudy(
                name=study,
                paper=paper,
                items=f"pieline.studies.{study}.items:{study.title()}Item",
                recordings=RECORDINGS.get(study, {}),
                tables=tuple(
                    shown_display(Table(name, place, f"Caption of {name}.", zero_shot, print))
                    for name, place in tables.items()
                ),
                figures=(shown_display(figure),) if study == "idiolink" else (),
                main_tables=tuple(tables)[:1],
                main_measures=("r_precision",) if study == "idiolink" else (),
                reference_models=("sbert",) if study == "idiolink" else (),
            )
            for study, (paper, tables) in PLACES.items()
        ),
        labels={model.name: model.label for model in MODELS},
    )


def layout(numbers: pd.DataFrame, inputs: DisplayInputs) -> TableContent:
    """Lay out the run's numbers, and the one that was not run, in a row each."""
    shown = (each for each in numbers_of(numbers) if each.ours is not None or each.missing == LATE)
    rows = (Row((each.model,), (Cell(each),), each.missing) for each in shown)
    return TableContent(
        heads=((Head("Model"), Head("Score")),),
        groups=(Group(tuple(rows)),),
        caption=f"Caption of {inputs.display}.",
    )


def table(name: str, data: str = "sample") -> TableNumbers:
    """Return a saved table with its printed numbers."""
    printed = {file: PRINTED[file] for file, entry in CATALOGUE.items() if entry.table == name}
    return table_of(
        name,
        *read_json(f"rows/{name}.json"),
        models=tuple(MODELS),
        files={**printed, "tables": str(ROOT / "published/tables.yaml")},
        data=data,
        otherwise="not chosen",
    )


def save_table(name: str, *rows: Mapping[str, Any]) -> None:
    """Save our rows of a table, and write the table."""
    write_json(f"rows/{name}.json", rows)
    content, numbers = make_table(layout, given_rows, table(name).inputs)
    files = Table(name, "", "", zero_shot, print).files
    write_table(name, content, numbers, templates=ROOT / "templates", **files)


@cache
def claims() -> list[Claim]:
    """Return the papers' claims, which are loaded once."""
    return load_claims(ROOT / "published/claims.yaml")


def make_page(**fields: Any) -> Path:
    """Write the page of the current folder's tables and metric files, and return its path.

    `fields` replace fields of `RunResults`.
    """
    shown = displays().model_copy(update=fields)
    for path in map(Path, [*shown.files("png"), *shown.files("pdf")]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PNG)
    numbers = all_numbers(
        [table(name, shown.data) for name in MADE],
        {} if shown.data == "own" else PRINTED,
        CATALOGUE,
        {},
        requirements=Requirements(absent=ABSENT, models={"gpt-4o": "the key K"}),
    )
    write_numbers("paper_tables/numbers.csv", frame_of(numbers))
    printed = load_printed(ROOT / "published", CATALOGUE)
    judged = judge_claims(claims(), CATALOGUE, printed, numbers)
    ledger = Path("paper_tables/claims.json")
    write_claims(
        judged,
        papers=shown.papers(),
        json=ledger,
        csv=ledger.with_suffix(".csv"),
        tex=ledger.with_suffix(".tex"),
        template=ROOT / "templates/claims.tex.jinja",
    )
    page = Path("paper_tables/index.html")
    content = PageContent(
        results=shown,
        numbers=numbers,
        claims=judged,
        catalogue=CATALOGUE,
        absent=ABSENT,
        models=MODELS,
    )
    write_page(
        page,
        content,
        items="paper_tables/items",
        template=ROOT / "templates/page.html.jinja",
        depth=3,
    )
    return page.resolve()


def text(name: str, usage: Usage, sentence: str, span: str) -> Document:
    """Return a document."""
    return Document(
        id=name,
        sentence=sentence,
        pie="break the ice",
        span=span,
        subject="Sport",
        is_gold=True,
        usage=usage,
    )


def query(name: str, usage: QueryUsage, sentence: str, span: str) -> Query:
    """Return a query."""
    return Query(
        id=name,
        sentence=sentence,
        pie="break the ice",
        span=span,
        subject="Sport",
        is_gold=True,
        usage=usage,
    )


def make_idiolink() -> None:
    """Make a dataset with four documents and two queries, ranked by two models."""
    documents = [
        text("d1", "idiomatic", "A joke broke the ice <b>at</b> last.", "broke the ice"),
        text("d2", "literal", "The ship broke the ice.", "broke the ice"),
        text("d3", "sense", "Music eased the tension.", "eased the tension"),
        text("d4", "literal", "He broke the ice with a pick.", "broke the ice"),
    ]
    queries = [
        query("q1", "idiomatic", "The coach broke the ice.", "broke the ice"),
        query("q2", "literal", "Skaters broke the ice.", "broke the ice"),
    ]
    place = Path("results/datasets/idiolink/test")
    dataset = IdiolinkDataset("test", "full", False, documents, queries)
    dataset.save(place)
    for model, best in (("sbert", ["d1", "d2", "d3"]), ("bm25", ["d2", "d4", "d1"])):
        run = Path(f"results/predictions/idiolink/test/{model}/span/seed-0.run.gz")
        scores = {name: 1 - 0.25 * number for number, name in enumerate(best)}
        write_run(run, {"q1": scores, "q2": scores}, tag=model)
        metrics, _ = idiolink_metrics(
            read_run(run),
            dataset,
            RunIdentity(model=model, setting="span", seed=0),
            Evidence(computed_from=digests([run, *dataset.scoring_files(place)])),
            depth=3,
            resamples=20,
            tuning=None,
        )
        path = f"results/metrics/idiolink/test/{model}/span/seed-0.json"
        write_json(path, metrics.model_dump())
        write_sidecar(path, made_from={})
        name = {"sbert": "idiolink_zero_shot", "bm25": "idiolink_bm25"}[model]
        ours = 100 * (metrics.overall.r_precision or 0)
        keys = {"model": model, "composition": "full", "measure": "r_precision"}
        save_table(
            name,
            keys | {"query_mode": "span", "ours": ours, "files": [path], "obstacles": SAMPLE},
            keys | {"query_mode": "sentence", "ours": None, "not_run": LATE},
        )


def make_idiots() -> None:
    """Make two sentences and a model's answers."""
    sentences = [
        IdiotsSentence(
            id="s1",
            pie_id="i1",
            pie="spill the beans",
            sentence="Do not spill the beans.",
            translation="",
            is_idiomatic=True,
        ),
        IdiotsSentence(
            id="s2",
            pie_id="i1",
            pie="spill the beans",
            sentence="The tin fell and spilled its beans.",
            translation="",
            is_idiomatic=False,
        ),
    ]
    place = Path("results/datasets/idiots")
    save_dataset(place, sentences, origin="sample")
    answers = [
        DetectionPrediction(
            id="s1",
            outcome="ok",
            has_idiom=True,
            idiom="spill the beans",
            meaning="tell a secret",
            answer_key="a" * 64,
        ),
        DetectionPrediction(
            id="s2", outcome="unparseable", reason="no object", answer_key="b" * 64
        ),
    ]
    predictions = "results/predictions/idiots/vicuna-7b/zero_shot/seed-0.jsonl"
    save_jsonl(predictions, answers)
    save_jsonl("recordings/vicuna-7b-zero_shot-0.jsonl", [])
    metrics = detection_metrics(
        sentences,
        answers,
        RunIdentity("vicuna-7b", "zero_shot", 0),
        Evidence(
            computed_from=digests([predictions, place / "sentences.jsonl", place / "manifest.json"])
        ),
        origin="sample",
        resamples=10,
    )
    path = "results/metrics/idiots/vicuna-7b/zero_shot/seed-0.json"
    write_json(path, metrics.model_dump())
    keys = {"model": "vicuna-7b", "setting": "zero_shot", "seed": "0", "measure": "accuracy"}
    accuracy = {"ours": metrics.accuracy.value, "decimals": 3}
    save_table("idiots_detection", keys | accuracy | {"files": [path], "obstacles": SAMPLE})


def jam_sentence(
    number: int, context: list[str], *, original: str, figurative: bool
) -> JamSentence:
    """Return an original, or a variant with a context before it."""
    tokens = [*context, "They ", "broke ", "the ", "ice", "."]
    spans = [(len(context) + 1, len(context) + 4)] if figurative else []
    return JamSentence(
        id=f"{original}-v{number}" if number else original,
        original_id=original,
        variant_number=number,
        language="english",
        sentence="".join(tokens),
        tokens=tuple(tokens),
        tags=tuple(tags_of(spans, len(tokens))),
        pies=("broke the ice",),
        true_idioms=("broke the ice",) if figurative else (),
        is_figurative=figurative,
    )


def make_jam() -> None:
    """Make two originals with one variant each; the figurative variant confuses the model."""
    frozen, party = ["The ", "lake ", "froze. "], ["At ", "the ", "party: "]
    sentences = [
        jam_sentence(0, [], original="test-0001", figurative=True),
        jam_sentence(1, frozen, original="test-0001", figurative=True),
        jam_sentence(0, [], original="test-0002", figurative=False),
        jam_sentence(1, party, original="test-0002", figurative=False),
    ]
    dataset = "results/datasets/jam/english.jsonl"
    save_jsonl(dataset, sentences)
    idioms = [("broke the ice",), (), (), ()]
    predictions = "results/predictions/jam/english/gpt-4o/zero_shot/seed-42.jsonl"
    answers = [
        IdiomPrediction(id=sentence.id, outcome="ok", idioms=named)
        for sentence, named in zip(sentences, idioms, strict=True)
    ]
    save_jsonl(predictions, answers)
    metrics = jam_metrics(
        sentences,
        match_predictions(sentences, answers, where=predictions),
        RunIdentity(model="gpt-4o", setting="zero_shot", seed=42),
        Evidence(is_released=False, computed_from=digests([predictions, dataset])),
        scoring="paper",
        resamples=10,
    )
    path = "results/metrics/jam/english/gpt-4o/zero_shot/seed-42.json"
    write_json(path, metrics.model_dump(mode="json"))
    keys = {"setting": "zero_shot", "model": "gpt-4o", "language": "english"}
    success = {"measure": "success", "ours": 2.0, "files": [path], "obstacles": SAMPLE}
    save_table("jam_drift", keys | success)
