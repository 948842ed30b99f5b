"""Items: the rows reproduce the numbers of the metric files, as docs/items.md states."""

import contextlib
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pandas as pd
import pytest
from support import ROOT

from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Evidence, RunIdentity
from pieline.core.files import digests, read_json, write_json
from pieline.core.imports import import_object
from pieline.core.records import save_jsonl
from pieline.core.yamls import read_yaml
from pieline.models.registry import load_registry
from pieline.reporting import items as module
from pieline.reporting.evidence import Pool, load_metric_file
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.items import Item, write_items
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.studies.idiolink.datasets.dataset import IdiolinkDataset
from pieline.studies.idiolink.items import IdiolinkItem
from pieline.studies.idiolink.metrics.scores import idiolink_metrics, save_query_scores
from pieline.studies.idiolink.paths import base_of
from pieline.studies.idiolink.predictions.rankings import read_run, write_run
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, Query, query_scores_file
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.items import IdiotsItem
from pieline.studies.idiots.metrics import detection_metrics
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.verdicts import (
    human_verdicts,
    read_cases,
    review_cases,
    save_cases,
)
from pieline.studies.jam.bio import tags_of
from pieline.studies.jam.items import JamItem
from pieline.studies.jam.metrics.scores import jam_metrics
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence

KINDS: dict[str, type[Item]] = {"jam": JamItem, "idiots": IdiotsItem, "idiolink": IdiolinkItem}
MODELS = ("one", "two")
RANKERS = ("one", "two+span+infonce")
PIES = ("broke the ice", "spilled the beans", "bit the dust", "hit the road", "held the line")
TEXT = (ROOT / "docs" / "items.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"(?ms)^### (.+?)\n(.*?)(?=^##|\Z)", TEXT))
QUESTIONS = {title[:9]: text for title, text in SECTIONS.items() if "```" in text}
ANSWERS: list[Callable[[JamSentence], dict[str, Any]]] = [
    *[lambda item: {"outcome": "ok", "idioms": item.pies}] * 2,
    *[lambda item: {"outcome": "ok", "idioms": ()}] * 2,
    lambda item: {"outcome": "ok", "idioms": ("red herring", "lame duck")},
    lambda item: {"outcome": "unparseable", "idioms": None},
]
"""Answers about a sentence of ID10M-JAM."""


def jam_sentence(language: str, original: int, variant: int) -> JamSentence:
    """Create an original or a variant; every other PIE is literal."""
    pie = PIES[original % len(PIES)]
    tokens = [*["Again "] * variant, "They ", *(f"{word} " for word in pie.split()), "here."]
    figurative = original % 2 == 0
    name = f"test-{original:04}"
    return JamSentence(
        id=f"{name}-v{variant}" if variant else name,
        original_id=name,
        variant_number=variant,
        language=language,
        sentence="".join(tokens),
        tokens=tuple(tokens),
        tags=tuple(tags_of([(variant + 1, variant + 4)] if figurative else [], len(tokens))),
        pies=(pie,),
        true_idioms=(pie,) if figurative else (),
        is_figurative=figurative,
    )


def make_jam() -> DisplayInputs:
    """Create runs in two languages, of two models and seeds, with all kinds of answers."""
    chance, metrics = random.Random(0), []
    for language, count in (("english", 20), ("german", 11)):
        sentences = [
            jam_sentence(language, number, variant)
            for number in range(count)
            for variant in range(4)
        ]
        dataset = f"results/datasets/jam/{language}.jsonl"
        save_jsonl(dataset, sentences)
        for model in MODELS:
            for seed in (1, 2):
                answers = [
                    IdiomPrediction.model_validate({"id": item.id, **chance.choice(ANSWERS)(item)})
                    for item in sentences
                ]
                run = f"jam/{language}/{model}/zero_shot/seed-{seed}.json"
                save_jsonl(f"results/predictions/{run}l", answers)
                metrics.append(f"results/metrics/{run}")
                scores = jam_metrics(
                    sentences,
                    {item.id: item for item in answers},
                    RunIdentity(model=model, setting="zero_shot", seed=seed),
                    Evidence(
                        is_released=False,
                        computed_from=digests([f"results/predictions/{run}l", dataset]),
                    ),
                    scoring="paper",
                    resamples=2,
                )
                write_json(metrics[-1], scores.model_dump())
    return display_inputs(metrics)


def make_idiots() -> DisplayInputs:
    """Create answers of two models; some idioms that the first model names are judged."""
    chance, metrics = random.Random(1), []
    sentences = [
        IdiotsSentence(
            id=f"s{number}",
            pie_id=f"i{number % 5}",
            pie=PIES[number % 5],
            sentence=f"They {PIES[number % 5]} on day {number}.",
            translation="",
            is_idiomatic=number % 3 != 0,
            distractor_kind="parts" if number % 3 == 0 else None,
        )
        for number in range(40)
    ]
    place = Path("results/datasets/idiots")
    save_dataset(place, sentences, origin="sample")
    verdicts = "judged.jsonl"
    for model in MODELS:
        answers = []
        for number, item in enumerate(sentences):
            answer: dict[str, Any] = {"outcome": "ok", "has_idiom": chance.random() < 0.6}
            if answer["has_idiom"]:
                answer["idiom"] = chance.choice([item.pie, "a red herring"])
            if number % 7 == 0:
                answer = {"outcome": "refused"}
            key = f"{number:063}a"
            answers.append(
                DetectionPrediction.model_validate({**answer, "id": item.id, "answer_key": key})
            )
        run = RunIdentity(model, "zero_shot", 0)
        if model == "one":
            cases = [
                case.model_copy(update={"verdict": chance.choice(["yes", "no", ""])})
                for case in review_cases(sentences, answers, run)
            ]
            save_cases(cases, jsonl=verdicts, table="judged.csv")
        judged = human_verdicts(read_cases(verdicts), answers, run)
        assert bool(judged) == (model == "one")
        path = f"idiots/{model}/zero_shot/seed-0.json"
        save_jsonl(f"results/predictions/{path}l", answers)
        metrics.append(f"results/metrics/{path}")
        files = [
            f"results/predictions/{path}l",
            place / "sentences.jsonl",
            place / "manifest.json",
            verdicts,
        ]
        scores = detection_metrics(
            sentences,
            answers,
            run,
            Evidence(computed_from=digests(files)),
            origin="sample",
            resamples=2,
            verdicts=judged,
        )
        write_json(metrics[-1], scores.model_dump())
    return display_inputs(metrics).with_files(verdicts=verdicts)


def make_idiolink() -> DisplayInputs:
    """Rank the sample randomly for two models (one of them fine-tuned) in two modes."""
    chance, metrics = random.Random(2), []
    folder = ROOT / "data/sample/idiolink/test"
    documents = read_texts(folder / "indexes.json", Document)
    queries = read_texts(folder / "queries.json", Query)
    dataset = IdiolinkDataset("test", "full", False, documents, queries)
    dataset.save("results/datasets/idiolink/test")
    for model in RANKERS:
        for mode in ("sentence", "span"):
            run = {
                query.id: {
                    text.id: 1.0 - rank / 100
                    for rank, text in enumerate(chance.sample(documents, len(documents))[:30])
                }
                for query in queries
            }
            path = f"idiolink/test/{model}/{mode}/seed-0"
            write_run(f"results/predictions/{path}.run.gz", run, tag=model)
            metrics.append(f"results/metrics/{path}.json")
            scores, by_query = idiolink_metrics(
                read_run(f"results/predictions/{path}.run.gz"),
                dataset,
                RunIdentity(model=model, setting=mode, seed=0),
                Evidence(computed_from={}),
                depth=30,
                resamples=2,
                tuning=None,
            )
            write_json(metrics[-1], scores.model_dump())
            save_query_scores(query_scores_file(metrics[-1]), scores, by_query, queries)
    return display_inputs(metrics)


def display_inputs(metrics: list[str]) -> DisplayInputs:
    described = [ModelDescription(name=name, kind="llm", label=name.title()) for name in MODELS]
    runs = (
        PlannedRun(keys={"model": base_of(load_metric_file(path).fields["model"])}, metrics=path)
        for path in metrics
    )
    return DisplayInputs(
        metrics=tuple(metrics), runs=tuple(runs), models=tuple(described), notes=("Made up.",)
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the items of all studies."""
    folder = tmp_path_factory.mktemp("run")
    makers = {"jam": make_jam, "idiots": make_idiots, "idiolink": make_idiolink}
    with contextlib.chdir(folder):
        for study, make in makers.items():
            of_study = make()
            write_json(f"given/{study}.json", of_study.model_dump())
            write(study, of_study, Path("results/items"))
    return folder


def write(study: str, of_study: DisplayInputs, folder: Path) -> None:
    write_items(
        KINDS[study],
        KINDS[study].of(of_study),
        parquet=folder / f"{study}.parquet",
        csv=folder / f"{study}.csv.gz",
    )


def by_metric_file(run: Path, study: str) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Return each metric file with its items."""
    items = pd.read_parquet(run / f"results/items/{study}.parquet")
    groups = [(read_json(run / str(path)), rows) for path, rows in items.groupby("metrics")]
    assert len(groups) == len(list((run / f"results/metrics/{study}").rglob("seed-?.json")))
    return groups


def test_items_of_jam_reproduce_the_drift_in_metric_files(run: Path) -> None:
    for metric, items in by_metric_file(run, "jam"):
        for name, rows in (
            ("overall", items),
            ("literal", items[items["usage"] == "literal"]),
            ("idiomatic", items[items["usage"] == "figurative"]),
        ):
            variants, drift = rows[rows["variant"] > 0], metric[name]
            success, flipped = variants["original_correct"].sum(), rows["drifted"].sum()
            assert (len(variants), success) == (drift["variants"], drift["success"])
            assert 0 < flipped == drift["flipped"]
            assert flipped / success == drift["negative_drift"]
        originals = items[items["variant"] == 0]
        assert originals["correct"].mean() == pytest.approx(metric["accuracy"])
        assert items["outcome"].value_counts().to_dict() == metric["outcomes"]
        assert (items["answer"].isna() == (items["outcome"] == "unparseable")).all()
        assert set(items["named"].dropna()) > {"", "red herring; lame duck"}


def test_items_of_idiots_reproduce_both_levels_in_metric_files(run: Path) -> None:
    for metric, items in by_metric_file(run, "idiots"):
        assert items["correct"].mean() == pytest.approx(metric["accuracy"]["value"])
        recall, specificity = (items[items["gold"] == gold] for gold in ("idiom", "no idiom"))
        assert recall["correct"].mean() == pytest.approx(metric["recall"]["value"])
        assert specificity["correct"].mean() == pytest.approx(metric["specificity"]["value"])
        consistency = recall.loc[recall["correct"], "names_pie"].mean()
        assert consistency == pytest.approx(metric["true_positive_consistency"]["value"])
        ratio = specificity["names_pie"].mean()
        assert ratio == pytest.approx(metric["distractor_pie_ratio"]["value"])
        assert (items["judged_by"] == "person").sum() == metric["verdicts"]["human"]


def test_items_of_idiolink_reproduce_the_means_in_metric_files(run: Path) -> None:
    for metric, items in by_metric_file(run, "idiolink"):
        for name in ("r_precision", "ndcg_at_10"):
            for usage, rows in items.groupby("usage"):
                assert rows[name].mean() == pytest.approx(metric["by_usage"][usage][name])
            assert items[name].mean() == pytest.approx(metric["overall"][name])
        ranks = items["first_relevant"]
        assert ((items["ndcg_at_10"] > 0) == (ranks <= 10)).all()
        assert ranks.isna().any() or ranks.max() > 10
        assert set(items["label"]) == {metric["model"].partition("+")[0].title()}


def test_the_page_shows_the_decisions_of_the_items(run: Path) -> None:
    for study in ("jam", "idiots"):
        for metric, items in by_metric_file(run, study):
            with contextlib.chdir(run):
                evidence = KINDS[study].evidence(
                    load_metric_file(items["metrics"].iat[0]), Pool(), 0
                )
            assert evidence
            answers = [answer for row in evidence["rows"] for answer in row.get("sentences", [row])]
            shown = {answer["sentence"]: answer["right"] for answer in answers}
            assert shown == dict(zip(items["id"], items["correct"], strict=True))
            assert 0 < sum(shown.values()) < len(shown) == len(answers)
            if study == "jam":
                assert [row["original"] for row in evidence["rows"]] == list(
                    items["original_id"].unique()
                )
                assert len(evidence["rows"]) == len(metric["judged"])


@pytest.mark.parametrize("study", KINDS)
def test_csv_equals_parquet_and_both_are_reproducible(
    study: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = run / f"results/items/{study}.parquet"
    table, text = pd.read_parquet(parquet), pd.read_csv(parquet.with_suffix(".csv.gz"))
    assert list(table) == list(text) == KINDS[study].columns()
    assert [tuple(map(known, row)) for row in table.to_numpy()] == [
        tuple(map(known, row)) for row in text.to_numpy()
    ]
    assert set(table["note"]) == {"Made up."}
    monkeypatch.chdir(run)
    of_study = DisplayInputs.model_validate(read_json(f"given/{study}.json"))
    write(study, of_study, tmp_path)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (parquet.parent / path.name).read_bytes()
    monkeypatch.setattr(module, "_ROWS_PER_BATCH", 7)
    write(study, of_study.model_copy(update={"mark": "REHEARSAL:"}), tmp_path)
    smaller = pd.read_parquet(tmp_path / parquet.name)
    assert set(smaller["note"]) == {"REHEARSAL: Made up."}
    assert smaller.drop(columns="note").equals(table.drop(columns="note"))


def known(value: Any) -> Any:
    """Map empty texts and nulls to one value, since pandas reads both the same."""
    return None if value == "" or pd.isna(value) else value


def test_no_runs_give_an_empty_table_with_all_columns(tmp_path: Path) -> None:
    write("jam", DisplayInputs(), tmp_path)
    for table in (pd.read_parquet(tmp_path / "jam.parquet"), pd.read_csv(tmp_path / "jam.csv.gz")):
        assert list(table) == JamItem.columns()
        assert table.empty


def test_default_configuration_declares_the_items_of_every_run() -> None:
    raw = layered(read_yaml(ROOT / "config.yaml"), ROOT / "config" / "sample.yaml")
    studies = load_studies(load_config(raw), load_registry(ROOT / "models.yaml"), ROOT)
    for name, study in studies.items():
        declared = study.items()
        assert declared
        assert import_object(declared.record) is KINDS[name]
        assert declared.display_inputs.notes == (SAMPLE_NOTE,)
        scored = {path for path in study.metrics() if "/seed-" in path}
        scored -= {path for path in scored if re.search("baseline|significance|neutral", path)}
        assert set(declared.display_inputs.metrics) == scored != set()
        labels = declared.display_inputs.labels()
        assert all(any(f"/{model}" in path for model in labels) for path in scored)


@pytest.mark.parametrize("study", KINDS)
def test_the_document_describes_every_column(study: str) -> None:
    rows = [
        re.findall(r"(?m)^\| `(\w+)` \| ([a-z ]+) \| .+ \|$", SECTIONS[name])
        for name in (study, "All studies")
    ]
    kind = KINDS[study]
    assert [(name, text) for part in rows for name, text in part] == [
        (name, type_name(kind.model_fields[name].annotation)) for name in kind.columns()
    ]


def type_name(annotation: Any) -> str:
    """Return the document's name of a type."""
    parts = get_args(annotation) if NoneType in get_args(annotation) else (annotation,)
    is_literal = get_origin(parts[0]) is Literal
    names = {bool: "boolean", int: "integer", float: "number", str: "text"}
    kind = "text" if is_literal else names[parts[0]]
    return f"{kind} or null" if NoneType in parts else kind


def answer(block: str, run: Path) -> pd.DataFrame:
    """Run a code block and return the last name that it assigns."""
    names: dict[str, Any] = {}
    with contextlib.chdir(run):
        exec(f"import pandas as pd\n{block}", names)
    value = names[re.findall(r"(?m)^(\w+) = ", block)[-1]]
    assert isinstance(value, pd.DataFrame)
    return value.reset_index(drop=True)


def answers(question: str, run: Path) -> pd.DataFrame:
    """Return the document's answer to a question."""
    asked = QUESTIONS[question].replace("bm25", RANKERS[0]).replace("sbert", RANKERS[1])
    [block] = re.findall(r"(?ms)^```python\n(.*?)^```$", asked)
    return answer(block, run)


def test_some_pies_flip_every_model_and_some_queries_are_found_only_by_their_span(
    run: Path,
) -> None:
    assert 0 < len(answers("Which PIE", run)) < 2 * len(PIES)
    assert len(answers("Which que", run)) > 0


def test_a_model_is_worst_where_the_other_leads_most(run: Path) -> None:
    links = pd.read_parquet(run / "results/items/idiolink.parquet").query("query_mode == 'span'")
    of_model = [
        links.query(f"composition == 'full' and model == '{name}'").set_index("query")["ndcg_at_10"]
        for name in RANKERS
    ]
    behind = sorted((score - of_model[1][query], query) for query, score in of_model[0].items())
    worst = answers("Where is ", run)
    assert list(zip(worst["difference"], worst["query"], strict=True)) == behind[:10]
    assert behind[0][0] < 0


def test_sentences_are_joined_to_their_rows(run: Path) -> None:
    part = TEXT.partition("## The sentences of the rows")[2].partition("\n## ")[0]
    of_jam, of_idiolink = (
        answer(block, run) for block in re.findall(r"(?ms)^```python\n(.*?)^```$", part)
    )
    items = pd.read_parquet(run / "results/items/jam.parquet")
    assert len(of_jam) == items["drifted"].sum()
    for row in of_jam.itertuples():
        variant = jam_sentence(row.language, int(row.original_id[-4:]), row.variant)
        assert (row.id, row.sentence, row.pie) == (variant.id, variant.sentence, variant.pies[0])
    queries = read_texts(ROOT / "data/sample/idiolink/test/queries.json", Query)
    texts = {query.id: (query.sentence, query.span) for query in queries}
    assert len(of_idiolink) == len(pd.read_parquet(run / "results/items/idiolink.parquet"))
    for row in of_idiolink.itertuples():
        assert (row.sentence, row.span) == texts[row.query]
