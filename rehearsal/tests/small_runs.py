"""Data of the small size, and tasks run on the rehearsal's answers without a server."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from jam.jam_cases import original
from support import ROOT

from pieline.core.records import save_jsonl
from pieline.core.yamls import read_yaml
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.task import Task
from pieline.models.llm import api_model_name
from pieline.planned import PlannedTasks, planned_tasks
from pieline.studies.idiots.datasets import save_dataset
from pieline.studies.idiots.raw import read_sentences
from pieline.studies.jam.records import JamSentence, as_sentence
from pieline.studies.jam.variants.validation import make_variant
from rehearsal.answers.book import Answers
from rehearsal.corpora.idiots import write_suite
from rehearsal.formats import Asked

GRID = read_yaml(ROOT / "config" / "paper.yaml")
SMALL = {"english": (2, 16), "german": (1, 13)}
"""Numbers of literal and idiomatic originals of ID10M-JAM."""
PIES = {
    "english": ("broke the ice", "spilled the beans", "kicked the bucket"),
    "german": ("das Eis gebrochen", "den Faden verloren", "ins Gras gebissen"),
}
WHO = {"english": ("Guest", "In hall {} it had been quiet."),
       "german": ("Hier hat Gast", "In Saal {} war es still.")}  # fmt: skip


def jam_sentences(language: str, literal: int, idiomatic: int) -> list[JamSentence]:
    """Return literal and idiomatic originals, each with three variants."""
    who, where = WHO[language]
    sentences = []
    for number in range(literal + idiomatic):
        pie = PIES[language][number % 3]
        first = original(
            f"{who} {number} {pie}.",
            pie,
            figurative=number >= literal,
            id=f"test-{number:04d}",
            language=language,
        )
        sentences.append(as_sentence(first))
        for place in (1, 2, 3):
            text = f"{where.format(place)} {first.sentence}"
            variant = make_variant(first, text, number=place, source="released")
            sentences.append(as_sentence(variant))
    return sentences


def write_datasets(folder: Path) -> None:
    """Write the inputs of the tasks of `GRID`, with a tenth of the sentences."""
    for language, numbers in SMALL.items():
        save_jsonl(
            folder / f"results/datasets/jam/{language}.jsonl", jam_sentences(language, *numbers)
        )
        train = folder / f"results/raw/id10m/train_{language}.tsv"
        train.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f"data/sample/id10m/train_{language}.tsv", train)
    write_suite(folder / "idiots.tsv", "small", Random(1))
    suite = read_sentences(folder / "idiots.tsv")
    save_dataset(folder / "results/datasets/idiots", suite, origin="released")


def book_of(
    folder: Path, grid: Mapping[str, object] = GRID, root: Path = ROOT
) -> tuple[Answers, PlannedTasks]:
    """Return the answers to a configuration's questions, and its tasks."""
    config, models = json.dumps(grid), root / "models.yaml"
    return Answers(config, models, root, folder), planned_tasks(config, models, root)


def ask_all(
    book: Answers, task: Task, written: Callable[[Question, str], str] = lambda _, text: text
) -> None:
    """Run a task on the book's answers, each of them transformed by `written`."""

    def ask(questions: Sequence[Question]) -> dict[str, Answer]:
        return {item.key: answer(item) for item in questions}

    def answer(question: Question) -> Answer:
        asked = Asked(
            model=api_model_name(question.model),
            turns=tuple((turn.role, turn.content) for turn in question.messages),
            seed=question.parameters.get("seed"),
        )
        text = written(question, book.text(asked))
        return Answer(key=question.key, text=text, finish_reason="stop")

    task.run(task.entry(), ask)
