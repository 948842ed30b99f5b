"""The user's own data: requirements on the folder, and marks on the results."""

import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from own_cases import registry_with, write
from run_script import run_script
from support import ROOT
from table_files import table_rows
from test_adding import BLOCK, SECTIONS

from pieline import languages
from pieline.config import layered, load_config, load_studies
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.core.files import read_json
from pieline.core.imports import import_object
from pieline.core.records import load_jsonl
from pieline.core.upstream import UpstreamFile
from pieline.languages import registry
from pieline.models.registry import load_registry
from pieline.reporting.figures import save_figure, use_style
from pieline.reporting.inputs import DisplayInputs
from pieline.results.page.build import _kind_of_data
from pieline.results.provenance import describe_raw_files
from pieline.results.run_report import RunReport
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import models as idiolink_models
from pieline.studies.idiolink import paths as idiolink_paths
from pieline.studies.idiolink import runs as idiolink_runs
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.tables import zero_shot
from pieline.studies.idiots import files as idiots_files
from pieline.studies.idiots import paths as idiots_paths
from pieline.studies.idiots import runs as idiots_runs
from pieline.studies.jam import files as jam_files
from pieline.studies.jam import paths as jam_paths
from pieline.studies.jam import runs as jam_runs
from pieline.studies.jam.originals import load_decisions
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.study import JamStudy
from pieline.studies.jam.tables import common
from pieline.studies.jam.tables.results import DRIFT_TABLE

SAMPLE = ROOT / "data" / "sample"
BM25 = {"models": ["bm25"], "compositions": ["full"], "bootstrap_resamples": 20}
UPSTREAM = ROOT / "data" / "upstream.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty data folder in the working directory of a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    return tmp_path / "corpus"


@pytest.fixture
def dutch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the language of docs/adding/data.md as a module."""
    module = next(text for _, _, name, text in blocks("A language") if name.endswith("dutch.py"))
    (tmp_path / "languages").mkdir()
    write(tmp_path / "languages" / "dutch.py", module)
    monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(tmp_path / "languages")])
    for known in (registry._languages, registry.answer_words):
        known.cache_clear()
    yield
    for known in (registry._languages, registry.answer_words):
        known.cache_clear()


def blocks(section: str) -> list[tuple[str, str, str, str]]:
    return [block for block in BLOCK.findall(SECTIONS[section]) if block[1]]


def run_report(models: Path = ROOT / "models.yaml", **raw: Any) -> RunReport:
    """Create a run on the folder `corpus`."""
    raw = {"data": "own", "own_data": "corpus"} | raw
    config = load_config(layered(raw, ROOT / "config" / "sample.yaml"))
    return RunReport(load_studies(config, load_registry(models), ROOT), config)


def check_marks(run: RunReport) -> list[str]:
    """Make all tables and figures of the configured studies and return the tables' names."""
    mark = "Own data: corpus."
    assert run.project.notice == run.results.mark == mark
    names = []
    for study in run.studies:
        for metrics in study.metrics():
            stated = read_json(metrics)["conditions"]
            assert stated["settings"]["data"] == "own data: corpus"
            assert stated["deviations"][0] == f"own data, the paper {study.paper}"
        for table in study.tables():
            inputs = DisplayInputs.model_validate_json(run.display_inputs_json(table))
            rows = table_rows(table, inputs, Path())
            assert {row["printed"] for row in rows} <= {""}
            html = Path("table.html").read_text("utf-8")
            assert "<small>" not in html
            assert "(printed)" not in html
            assert {row.get("verdict", "") for row in rows} <= {"", "not comparable", "not run"}
            assert not any("sample" in row["reason"].lower() for row in rows)
            assert mark in Path("table.tex").read_text("utf-8")
            names.append(table.name)
        for figure in study.figures():
            inputs = DisplayInputs.model_validate_json(run.display_inputs_json(figure))
            drawn = import_object(figure.maker)(inputs)
            assert not any("printed" in text.get_text() for text in drawn.findobj(Text))
            save_figure(drawn, pdf="figure.pdf", png="figure.png", mark=inputs.mark)
            assert [text.get_text() for text in drawn.texts].count(mark) == 1
            assert "sample data" not in str([text.get_text() for text in drawn.texts])
        items = study.items()
        assert items
        inputs = DisplayInputs.model_validate_json(run.display_inputs_json(items))
        rows = list(import_object(items.record).of(inputs))
        assert {row.metrics for row in rows} == set(inputs.metrics)
        assert {row.note for row in rows} == ({mark} if inputs.metrics else set())
    return names


WRONG = {
    "no folder": ({"data": "own"}, "data is own, but own_data is null"),
    "other data": ({"own_data": "corpus"}, "own_data is set, but data is sample; set data: own"),
    "mirror": (
        {"data": "own", "own_data": "corpus", "mirror": "m"},
        "mirror is set, but data is own",
    ),
    "no mirror": ({"mirror": "nowhere"}, "mirror: no such folder: nowhere"),
    "braces": (
        {"data": "own", "own_data": "my {corpus}"},
        "own_data contains braces: 'my {corpus}'",
    ),
    "HTML": ({"data": "own", "own_data": "a<b>"}, "own_data contains < or >: a<b>; rename"),
    "absent": ({"data": "own", "own_data": "nowhere"}, "own_data: no such folder: nowhere"),
}


@pytest.mark.parametrize("name", WRONG)
def test_conflicting_data_settings_are_rejected(name: str, folder: Path) -> None:
    raw, message = WRONG[name]
    assert folder.exists()
    with pytest.raises(UserError, match=message):
        load_config(raw)


def test_a_missing_file_is_reported_before_the_run(folder: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"^corpus: missing idiots/idioms_sentences.tsv, required by .*;"
        r" see data/sample/idiots/README.md$",
    ):
        run_report(studies=["idiots"])
    shutil.copytree(SAMPLE / "idiolink" / "test", folder / "idiolink" / "test")
    (folder / "idiolink" / "test" / "queries.json").unlink()
    with pytest.raises(UserError, match=r"^corpus: missing idiolink/test/queries.json, required"):
        run_report(studies=["idiolink"], idiolink=BM25)
    (folder / "idiolink" / "val").mkdir()
    write(folder / "idiolink" / "val" / "indexes.json", "[]")
    with pytest.raises(UserError, match=r"val/queries.json and idiolink/test/queries.json"):
        run_report(studies=["idiolink"], idiolink=BM25)


def test_own_data_uses_the_papers_settings(folder: Path) -> None:
    shutil.copytree(SAMPLE / "idiolink", folder / "idiolink")
    study = run_report(studies=["idiolink"]).studies[0]
    assert study.settings.finetuning.max_epochs == type(study.settings)().finetuning.max_epochs
    assert study.project.local("idiolink/test/queries.json") == (
        "corpus/idiolink/test/queries.json"
    )
    assert set(study.raw_files()) == {
        f"results/raw/idiolink/{split}/{name}.json"
        for split in ("train", "val", "test")
        for name in ("indexes", "queries")
    }


def test_zero_shot_results_need_only_the_test_split(folder: Path) -> None:
    shutil.copytree(SAMPLE / "idiolink" / "test", folder / "idiolink" / "test")
    with pytest.raises(UserError, match="corpus has no train or val split for fine-tuning"):
        run_report(studies=["idiolink"], idiolink={"finetuning": {"models": ["sbert"]}})
    named_point = run_report(studies=["idiolink"], idiolink={"bm25": {"k1": [1.5], "b": [0.2]}})
    study = named_point.all_studies["idiolink"]
    assert isinstance(study, IdiolinkStudy)
    assert (idiolink_models.bm25_points(study).k1, idiolink_models.bm25_points(study).b) == (
        [1.5],
        [0.2],
    )
    run = run_report(studies=["idiolink"], idiolink=BM25)
    study = run.all_studies["idiolink"]
    assert isinstance(study, IdiolinkStudy)
    assert idiolink_files.tuning_dataset(study, "val") == []
    points = idiolink_models.bm25_points(study)
    assert (points.k1, points.b) == ([0.9], [0.4])
    assert idiolink_runs.conditions(study, "bm25").deviations[0] == "own data, the paper IdioLink"
    files = {name: folder / f"idiolink/test/{name}.json" for name in ("indexes", "queries")}
    run_script(
        "idiolink_dataset",
        input={"documents": files["indexes"], "queries": files["queries"], "upstream": UPSTREAM},
        output=idiolink_paths.dataset("test"), wildcards={"split": "test"}, params={"limit": None},
    )  # fmt: skip
    run_script(
        "idiolink_checks", input={"upstream": UPSTREAM, "candidates": []},
        output=[idiolink_paths.CHECKS.format(origin="released_format")],
        params={
            "folder": folder / "idiolink",
            "splits": idiolink_models.splits(study, "released_format"), "sample": False,
            "conditions": idiolink_runs.data_conditions(study, "released_format").canonical(),
        },
        wildcards={"origin": "released_format"},
    )  # fmt: skip
    # tests/test_adding.py computes numbers of own data.
    empty = run_report(studies=["idiolink"], idiolink={"models": [], "finetuning": {"models": []}})
    assert "idiolink_zero_shot" in check_marks(empty)


def test_mathematical_symbols_are_plain_text(tmp_path: Path) -> None:
    use_style(ROOT / "templates" / "pieline.mplstyle")
    figure = Figure()
    axis = figure.subplots()
    axis.set_yticks([0, 1], ["$x^$", r"\frac$"])
    axis.plot([0], label="$_$")
    axis.legend()
    save_figure(
        figure, pdf=tmp_path / "a.pdf", png=tmp_path / "a.png", mark="Own data: a $corpus^$."
    )
    assert (tmp_path / "a.png").stat().st_size


@pytest.mark.parametrize(
    ("study", "test", "other", "message"),
    [
        ("idiolink", "test", "val", r"test/indexes.json: .* is also in the val split; remove it"),
        ("idiolink", "test", "train", r"test/indexes.json: .* is also in the train split; remove"),
        ("jam", "test_english.tsv", "dev_english.tsv", r"dev_english.tsv: the file contains"),
        ("jam", "test_english.tsv", "train_english.tsv", r"train_english.tsv: the file contains"),
        ("jam", "train_english.tsv", "train_english.tsv", None),
    ],
)
def test_a_copied_split_is_rejected(
    study: str, test: str, other: str, message: str | None, folder: Path
) -> None:
    corpus = folder / {"idiolink": "idiolink", "jam": "id10m"}[study]
    shutil.copytree(SAMPLE / corpus.name, corpus)
    if (corpus / test).is_dir():
        shutil.rmtree(corpus / other)
        shutil.copytree(corpus / test, corpus / other)
    elif test != other:
        shutil.copy(corpus / test, corpus / other)
    chosen = {"idiolink": BM25, "jam": {"languages": ["english"], "variants": {"source": "none"}}}
    if message is None:
        assert run_report(studies=[study], **{study: chosen[study]}).studies
        return
    with pytest.raises(UserError, match=message):
        run_report(studies=[study], **{study: chosen[study]})


@pytest.mark.parametrize(
    ("change", "form"),
    [
        (lambda pie: pie.replace("the ", ""), "drop ball"),
        (lambda pie: f"to {pie}", "to drop the ball"),
        (lambda pie: pie.replace("the", "their") + "s", "drop their balls"),
    ],
)
def test_a_pie_in_two_forms_is_rejected(
    change: Callable[[str], str], form: str, folder: Path
) -> None:
    """Otherwise half of its documents would not be relevant."""
    shutil.copytree(SAMPLE / "idiolink/test", folder / "idiolink/test")
    path = folder / "idiolink/test/indexes.json"
    records = json.loads(path.read_text("utf-8"))
    for record in records[::2]:
        record["idiom"] = change(record["idiom"])
    write(path, json.dumps(records))
    problem = rf"test/indexes\.json: .*: idiom '(drop the ball|{form})' is '({form}|drop the ball)'"
    with pytest.raises(UserError, match=problem):
        run_report(studies=["idiolink"], idiolink=BM25)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(".\t", ". \t"),
        lambda text: text.replace(" \t", "  \t"),
        str.upper,
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: text.replace("B-IDIOM", "O").replace("I-IDIOM", "O"),
    ],
)
def test_a_split_that_differs_only_in_form_is_rejected(
    change: Callable[[str], str], folder: Path
) -> None:
    shutil.copytree(SAMPLE / "id10m", folder / "id10m")
    test, train = (folder / "id10m" / f"{split}_german.tsv" for split in ("test", "train"))
    before = test.read_text("utf-8")
    assert change(before) != before
    write(train, change(before))
    with pytest.raises(UserError, match=r"train_german\.tsv: the file contains 34 of the 34"):
        jam("german", variants={"source": "none"})


def test_own_idioms_are_detected(folder: Path, tmp_path: Path) -> None:
    head = "idiom_id\tidiom\tsentence_id\tsentence_has_idiom\ten\tes"
    rows = [
        "1\tBreak the ice\t1-01-id\tTrue\tHis joke broke the ice.\t",
        "1\tBreak the ice\t1-02-di\tFalse\tThe ship broke the ice.\t",
    ]
    (folder / "idiots").mkdir()
    table = write(folder / "idiots" / "idioms_sentences.tsv", "\n".join([head, *rows, ""]))
    own = "{study: idiots, setting: mine, seed: 1, file: mine.csv}"
    entry = f"mine:\n  kind: predictions\n  label: Mine\n  files: [{own}]\n"
    predictions = write(
        Path("mine.csv"), "id,has_idiom,idiom\n1-01-id,true,break the ice\n1-02-di,true,\n"
    )
    run = run_report(
        registry_with(tmp_path, entry), studies=["idiots"], idiots={"models": ["mine"]}
    )
    study = run.all_studies["idiots"]
    data = {"sentences": idiots_paths.SENTENCES, "manifest": idiots_paths.MANIFEST}
    origin = idiots_files.origin(study)
    stated = idiots_runs.conditions(study, "mine", "mine").canonical()
    run_script(
        "idiots_dataset", input={"sentences": table, "kinds": [], "upstream": UPSTREAM},
        output=data, params={"name": idiots_paths.TABLE, "origin": origin, "limit": None},
    )  # fmt: skip
    assert read_json(idiots_paths.MANIFEST)["origin"] == "own"
    job = {"model": "mine", "setting": "mine", "seed": "1"}
    imported = idiots_paths.PREDICTIONS.format(**job)
    run_script(
        "take_idiots_predictions", input={**data, "file": predictions}, output=[imported],
        params={"format": None},
    )  # fmt: skip
    run_script(
        "idiots_metrics", input={**data, "predictions": imported, "verdicts": []},
        output=[idiots_paths.METRICS.format(**job)],
        params={"resamples": 20, "conditions": stated}, wildcards=job,
    )  # fmt: skip
    assert check_marks(run)[:2] == ["idiots_dataset", "idiots_detection"]


def test_sentences_of_idiots_may_be_the_public_json(folder: Path) -> None:
    (folder / "idiots").mkdir()
    array = Path(shutil.copy(SAMPLE / "idiots" / "idiots.json", folder / "idiots"))
    study = run_report(studies=["idiots"]).studies[0]
    assert study.raw_files() == ["results/raw/idiots/idiots.json"]
    described = (
        (SAMPLE / "idiots" / "README.md").read_text("utf-8").partition("distractor_kinds")[0]
    )
    columns = re.findall(r"(?m)^\| `(\w+)` \|", described)
    assert columns == list(read_json(array)[0])
    write(folder / "idiots" / "idioms_sentences.tsv", "")
    with pytest.raises(UserError, match=r"^corpus: both .*tsv and .*json exist; remove one$"):
        run_report(studies=["idiots"])


def jam(*languages: str, **settings: Any) -> JamStudy:
    study = run_report(studies=["jam"], jam={"languages": [*languages], **settings}).studies[0]
    assert isinstance(study, JamStudy)
    return study


def test_originals_and_variants_come_from_the_folder(folder: Path) -> None:
    shutil.copytree(SAMPLE / "id10m", folder / "id10m")
    with pytest.raises(UserError, match=r"no id10m-jam/variants/english.json in corpus; name a"):
        jam("english")
    with pytest.raises(UserError, match=r"sample variants .* own originals; choose 'released',"):
        jam("english", variants={"source": "sample"})
    study = jam("english", variants={"source": "none"})
    assert jam_files.decided_by(study, "english") == "tags"
    with pytest.raises(UserError, match=r"jam/english.jsonl needs variants, but there are none"):
        jam_files.variants_of(study, "english")
    assert jam_files.extra_pie_source(study, "english") == "results/raw/id10m/dev_english.tsv"
    (folder / "id10m" / "dev_english.tsv").unlink()
    (folder / "id10m" / "train_english.tsv").unlink()
    assert jam_files.extra_pie_source(study, "english") is None
    assert study.raw_files() == ["results/raw/id10m/test_english.tsv"]
    for models in (["minilm-tagger"], ["smollm2-135m-instruct"]):
        with pytest.raises(UserError, match=r"missing id10m/.*train_english.tsv, required by"):
            jam("english", variants={"source": "none"}, models=models)
    (folder / "id10m-jam" / "variants").mkdir(parents=True)
    write(folder / "id10m-jam" / "english.json", "[]")
    write(folder / "id10m-jam" / "variants" / "english.json", "[]")
    study = jam("english")
    assert jam_files.decided_by(study, "english") == "release"
    assert jam_files.written_languages(study) == []
    assert "results/raw/id10m-jam/variants/english.json" in study.raw_files()


@pytest.mark.usefixtures("dutch")
def test_a_new_language_appears_in_all_tables(folder: Path, tmp_path: Path) -> None:
    raw = folder / "id10m" / "test_dutch.tsv"
    raw.parent.mkdir()
    write(
        raw,
        next(
            text
            for _, _, name, text in blocks("A language")
            if name.endswith(".tsv") and "/test" in name
        ),
    )
    variants = folder / "id10m-jam" / "variants" / "dutch.json"
    variants.parent.mkdir(parents=True)
    rows = [
        {"sentence": sentence, "PIE": [pie], "is_figurative": True, "variant_number": number,
         "variant_sentence": f"{context} {sentence}"}
        for sentence, pie in (
            ("Opa heeft de bloemetjes buitengezet.", "de bloemetjes buitengezet"),
            ("De buurvrouw viel met de deur in huis.", "viel met de deur in huis"),
        )
        for number, context in enumerate(("Het regende.", "De tuin was leeg.", "Toen kwam oma."), 1)
    ]  # fmt: skip
    write(variants, json.dumps(rows))
    own = "{study: jam, language: dutch, setting: zero_shot, seed: 1, file: mine.jsonl}"
    entry = f"mine:\n  kind: predictions\n  label: Mine\n  files: [{own}]\n"
    write(Path("mine.jsonl"), "")
    settings = {"languages": ["dutch"], "models": ["mine"]}
    run = run_report(registry_with(tmp_path, entry), studies=["jam"], jam=settings)
    study = run.all_studies["jam"]
    assert isinstance(study, JamStudy)

    job = {"language": "dutch", "model": "mine", "setting": "zero_shot", "seed": "1"}

    def place(pattern: str) -> str:
        return pattern.format(**job)

    decisions = place(jam_paths.DECISIONS)
    originals = {
        "originals": place(jam_paths.ORIGINALS),
        "report": place(jam_paths.ORIGINALS_REPORT),
    }
    run_script(
        "jam_decisions", input={"raw": raw, "released": [], "dev": []}, output=[decisions],
        wildcards=job,
    )  # fmt: skip
    assert [item.decision for item in load_decisions(decisions)] == ["keep", "keep"]
    run_script(
        "jam_originals", input={"raw": raw, "decisions": decisions, "upstream": UPSTREAM},
        output=originals, params={"limit": None, "decided_by": "tags"}, wildcards=job,
    )  # fmt: skip
    checked, chosen = place(jam_paths.VARIANTS), study.settings.variants
    run_script(
        "jam_variants", input={**originals, "variants": variants},
        output={"variants": checked, "report": place(jam_paths.VARIANTS_REPORT)},
        params={"source": "released"},
    )  # fmt: skip
    data, manifest = place(jam_paths.DATASET), place(jam_paths.MANIFEST)
    run_script(
        "jam_dataset",
        input={
            **originals, "variants": checked, "released": [variants], "upstream": UPSTREAM,
            "annotations": [], "adjudications": [],
        },
        output={"dataset": data, "manifest": manifest, "disputed": place(jam_paths.DISPUTED)},
        params={"review": chosen.review, "limit": None},
    )  # fmt: skip
    sentences = load_jsonl(data, JamSentence)
    assert len(sentences) == 8
    answers = ({"id": item.id, "idioms": list(item.true_idioms)} for item in sentences)
    write(Path("mine.jsonl"), "".join(f"{json.dumps(answer)}\n" for answer in answers))
    counted = jam_runs.data_conditions(study).canonical()
    run_script(
        "jam_statistics", input={**originals, "train": [], "manifest": manifest},
        output=[place(jam_paths.STATISTICS)], params={"conditions": counted},
    )  # fmt: skip
    predictions = place(jam_paths.PREDICTIONS)
    run_script(
        "take_jam_predictions", input={"file": "mine.jsonl", "sentences": data},
        output=[predictions], params={"format": None},
    )  # fmt: skip
    scoring = {"scoring": "paper", "resamples": 20}
    stated = jam_runs.conditions(study, "mine", "zero_shot").canonical()
    run_script(
        "jam_metrics",
        input={
            "predictions": predictions, "sentences": data, "manifest": manifest,
            "report": originals["report"],
        },
        output=[place(jam_paths.METRICS)],
        params={
            **scoring, "conditions": stated, "strict_majority": False
        },
        wildcards=job,
    )  # fmt: skip
    run_script(
        "jam_baselines", input={"sentences": data, "manifest": manifest},
        output=jam_paths.baselines("dutch"),
        params={**scoring, "conditions": jam_runs.baseline_conditions(study).canonical()},
    )  # fmt: skip
    assert "jam_drift" in check_marks(run)
    inputs = DisplayInputs.model_validate_json(run.display_inputs_json(DRIFT_TABLE))
    rows = [row for row in table_rows(DRIFT_TABLE, inputs, Path()) if row["model"] == "mine"]
    assert {row["ours"] for row in rows if row["measure"] == "negative_drift"} == {"0.0"}
    assert "Dutch" in Path("table.tex").read_text("utf-8")


@pytest.mark.parametrize("released", [True, False])
def test_copies_of_the_papers_files_count_as_own_data(released: bool) -> None:
    stated = Conditions(deviations=("epochs 4, the paper 20",)).with_own_data("own data: x", "P")
    item = SimpleNamespace(dataset_is_released=released, conditions=stated)
    assert zero_shot.obstacles_of(item) == ["own data, the paper P", "epochs 4, the paper 20"]
    assert zero_shot.notes_on([item]) == ()
    assert common.data_obstacles(item) == []


def test_page_and_provenance_state_the_data_source(folder: Path) -> None:
    shutil.copytree(SAMPLE / "idiolink" / "test", folder / "idiolink" / "test")
    run = run_report(studies=["idiolink"], idiolink=BM25)
    assert _kind_of_data(run.results, []) == "own"
    described = json.loads(run.description())
    assert (described["config"]["data"], described["config"]["own_data"]) == ("own", "corpus")
    name = "idiolink/test/queries.json"
    listed = {name: UpstreamFile(url="https://example.org/queries.json")}
    (raw,) = describe_raw_files([folder / name], "own", listed, {}, folder=str(folder))
    assert (raw.url, raw.licence, raw.is_sample) == (None, None, False)
