"""Deliberate errors at the small size, which a rehearsal detects or lists as not covered."""

import shutil
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest
from idiots.idiots_cases import score
from llm.test_answer_forms import NAMES
from small_runs import GRID, ask_all, book_of, jam_sentences
from support import ROOT
from test_ranks import USAGES, dataset_of

from pieline.core.errors import UserError
from pieline.core.files import sha256, write_json
from pieline.core.imports import import_object
from pieline.core.records import load_jsonl
from pieline.core.upstream import UpstreamFile, copy_file
from pieline.llm.answers import Answer
from pieline.llm.idioms import parse_idioms
from pieline.llm.questions import Question
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.tables import write_table
from pieline.results.comparison import ComparedCell, read_cells
from pieline.studies.idiolink.datasets.relevance import meaning_qrels
from pieline.studies.idiolink.metrics.ranking import mean_scores, score_queries
from pieline.studies.idiots import runs as idiots_runs
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.records import DetectionPrediction, IdiotsSentence
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.idiots.study import IdiotsStudy
from pieline.studies.jam.predictions.records import IdiomPrediction
from pieline.studies.jam.records import JamSentence
from rehearsal.answers.jam import printed_jam
from rehearsal.corpora.idiots import write_suite
from rehearsal.ranks import printed_run
from rehearsal.report import NOT_COVERED, count_cells

MODEL = "llama-2-7b-chat"
IDIOTS = GRID | {"studies": ["idiots"], "idiots": {"models": [MODEL]}}
JAM = GRID | {
    "studies": ["jam"],
    "jam": {**GRID["jam"], "models": ["gpt-4o-mini"], "languages": ["english"], "neutral": None,
            "attention": None, "seeds_by_model": {}, "settings": ["zero_shot"]},
}  # fmt: skip


def is_listed(about: str) -> bool:
    """Return whether the page lists an error as not covered."""
    return any(about in line for line in NOT_COVERED)


def detection_cells(folder: Path, root: Path = ROOT) -> list[ComparedCell]:
    """Return one model's cells of IdioTS' Table 1, with the prompts in the project `root`."""
    book, planned = book_of(folder, IDIOTS, root)
    (task,) = planned.tasks
    ask_all(book, task)
    predictions = load_jsonl(task.outputs["predictions"], DetectionPrediction)
    registry = load_registry(root / "models.yaml")
    run = Project(registry, LLMSettings(), root=root)
    study = IdiotsStudy(IdiotsSettings(models=[MODEL]), run)
    conditions = idiots_runs.conditions(study, MODEL, "zero_shot")
    metrics = score(suite(folder), predictions, model=MODEL).model_copy(
        update={"conditions": conditions}
    )
    write_json("metrics.json", metrics.model_dump(mode="json"))
    inputs = DisplayInputs(
        metrics=("metrics.json",),
        files={"published": str(ROOT / "published/idiots_table1.csv")},
        models=run.describe_models([MODEL]),
    )
    content = import_object("pieline.studies.idiots.tables:detection")(inputs)
    outputs = {name: folder / f"idiots_detection.{name}" for name in ("tex", "csv", "html")}
    write_table("idiots_detection", content, templates=ROOT / "templates", **outputs)
    return read_cells([outputs["csv"]])


def suite(folder: Path) -> list[IdiotsSentence]:
    return load_jsonl(folder / "results/datasets/idiots/sentences.jsonl", IdiotsSentence)


def values(cells: Sequence[ComparedCell]) -> list[tuple[str, str]]:
    return [(cell.cell, cell.ours) for cell in cells]


class TestPrompt:
    def test_with_a_changed_prompt_file_no_cell_is_compared(self, folder: Path) -> None:
        before = detection_cells(folder)
        for name in ("published", "models.yaml", "config.yaml", "config", "data"):
            (folder / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "prompts", folder / "prompts")
        file = folder / "prompts/idiots/detect.jinja"
        head, _, rest = file.read_text("utf-8").partition("=== system ===")
        user = rest[rest.index("=== user ===") :]
        hello = "=== system ===\nSay hello and nothing else.\n"
        file.write_text(head + hello + user, encoding="utf-8")
        after = detection_cells(folder, folder)
        # Stand-ins give the same answers to the changed prompt.
        assert values(after) == values(before)
        (known,), (count,) = count_cells(before), count_cells(after)
        assert known.equal >= 3
        assert (count.equal, count.near, count.differing) == (0, 0, ())
        assert all("not the paper's wording" in reason for reason in count.others)

    def test_a_changed_question_is_not_covered(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = detection_cells(folder)
        wrong = "pieline.studies.idiots.predictions.load_prompt"
        prompt = import_object(wrong.replace(".load", ":load"))(
            ROOT / "prompts/idiots/detect.jinja"
        )
        other, changed = type(prompt).messages, []

        def messages(self: Any, **names: Any) -> tuple[Any, ...]:
            turns = tuple(
                turn._replace(content=f"Say hello. {turn.content}") for turn in other(self, **names)
            )
            changed.append(turns)
            return turns

        monkeypatch.setattr(type(prompt), "messages", messages)
        after = detection_cells(folder)
        assert len(changed) >= len(suite(folder))
        assert after == before
        assert is_listed("Whether questions are the papers'")


class TestLabels:
    @pytest.mark.parametrize("changed", ["labels", "split"])
    def test_a_changed_file_is_rejected(self, changed: str, tmp_path: Path) -> None:
        file = tmp_path / "mirror/idiots.tsv"
        write_suite(file, "small", Random(1))
        upstream = UpstreamFile(url=None, sha256=sha256(file))
        if changed == "labels":
            text = file.read_text("utf-8")
            swapped = text.replace("\tTrue\t", "\tX\t").replace("\tFalse\t", "\tTrue\t")
            file.write_text(swapped.replace("\tX\t", "\tFalse\t"), encoding="utf-8")
        else:
            write_suite(file, "small", Random(2))
        with pytest.raises(UserError, match="SHA-256 is"):
            copy_file(file, tmp_path / "raw.tsv", hint="", upstream=upstream)

    def test_labels_that_a_reader_swaps_are_not_covered(self, folder: Path) -> None:
        before = detection_cells(folder)
        sentences = suite(folder)
        kinds = {
            label: [item.id for item in sentences if item.is_idiomatic == label][:4]
            for label in (True, False)
        }
        swapped = [
            item.model_copy(update={"is_idiomatic": not item.is_idiomatic})
            if item.id in kinds[item.is_idiomatic]
            else item
            for item in sentences
        ]
        assert swapped != sentences
        save_dataset(folder / "results/datasets/idiots", swapped, origin="released")
        assert values(detection_cells(folder)) == values(before)
        assert is_listed("Labels swapped by code")


def test_a_wrong_split_is_not_covered() -> None:
    scores = []
    for pies in (16, 17):
        data = dataset_of(pies, USAGES)
        run = printed_run(
            data.queries, data.documents, model="BAAI/bge-m3", query_mode="sentence",
            composition="full", published=ROOT / "published", top_k=60,
        )  # fmt: skip
        qrels = meaning_qrels(data.queries, data.documents)
        scores.append(mean_scores(score_queries(run, qrels), list(qrels)))
    first, second = ((one.r_precision, one.ndcg_at_10) for one in scores)
    assert first == pytest.approx(second, abs=1e-3)
    assert is_listed("A wrong split")


class TestSeeds:
    def test_other_seeds_are_not_covered(self) -> None:
        sentences, key = jam_sentences("english", 2, 16), ("zero_shot", "GPT-4o mini", "english")
        printed = printed_jam(ROOT / "published")
        runs = [
            sorted(str(printed.right(sentences, key, seed)) for seed in seeds)
            for seeds in ((42, 43, 44), (43, 44, 45))
        ]
        assert runs[0] == runs[1]
        assert is_listed("Seeds that differ")

    def test_an_unconfigured_seed_is_rejected(self, folder: Path) -> None:
        book, planned = book_of(folder, JAM)
        task = planned.tasks[0]
        with pytest.raises(KeyError, match="unknown question to gpt-4o-mini"):
            ask_all(book, task.model_copy(update={"seed": 99}))


class TestForms:
    @pytest.fixture
    def task(self, folder: Path) -> Task:
        self.book, planned = book_of(folder, JAM)
        return planned.tasks[0]

    def predictions(self, task: Task) -> list[IdiomPrediction]:
        return load_jsonl(task.outputs["predictions"], IdiomPrediction)

    def test_other_answer_forms_give_the_same_predictions(self, task: Task) -> None:
        """Predictions are equal for all forms that the parser's tests cover."""
        ask_all(self.book, task)
        before = self.predictions(task)
        forms = cycle(text for text, names in NAMES if names == ["a b"])

        def written(_: Question, text: str) -> str:
            idioms = parse_idioms(_answer(text)).value
            return next(forms).replace("a b", idioms[0]) if idioms else "No idiom"

        ask_all(self.book, task, written)
        after = self.predictions(task)
        assert [item.idioms for item in after] == [item.idioms for item in before]

    def test_unreadable_answers_change_predictions(self, task: Task) -> None:
        ask_all(self.book, task)
        before = self.predictions(task)
        ask_all(self.book, task, lambda *_: "Let me think about it.")
        after = self.predictions(task)
        assert {item.outcome for item in before} == {"ok"}
        assert "ok" not in {item.outcome for item in after}
        assert is_listed("Answers in forms")
        assert {sentence.id for sentence in load_jsonl(task.inputs["sentences"], JamSentence)} == {
            item.id for item in after
        }


def _answer(text: str) -> Answer:
    return Answer(key="", text=text, finish_reason="stop")
