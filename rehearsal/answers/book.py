"""The answers to all questions that a configuration asks, by what goes over the wire."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pieline.core.records import load_jsonl
from pieline.llm.questions import Question
from pieline.models.llm import api_model_name
from pieline.planned import planned_tasks
from pieline.studies.idiots.predictions import Detection
from pieline.studies.idiots.records import IdiotsSentence
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.prompt_settings import FewShot
from pieline.studies.jam.predictions.prompting import Identification
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.generation import NeutralVariants
from rehearsal.answers.idiots import DetectionCounts, printed_counts, said
from rehearsal.answers.jam import mixed, printed_jam
from rehearsal.answers.texts import detection, identification, neutral_variant
from rehearsal.formats import Asked

Key = tuple[str, tuple[str, ...], int | None]
"""Model, texts of the turns, seed."""
Written = Callable[[Question], str]
Prepared = Identification | Detection | NeutralVariants


class Answers:
    """What to answer to each question, so that the printed numbers come back.

    The questions are those of the tasks of a configuration (`Task.questions`). Those of a model are
    read when a question is not among the known ones, since the inputs of some tasks are made while
    others are answered.

    Args:
        config: the whole configuration, as JSON.
        models: models.yaml.
        root: folder of the project, with the printed numbers.
        results: the folder in which the configuration is run, that of `results/`.

    Raises:
        UserError: configuration or models are wrong.
    """

    def __init__(self, config: str, models: Path, root: Path, results: Path) -> None:
        planned = planned_tasks(config, models, root)
        self._tasks: defaultdict[str, list[tuple[Prepared, str]]] = defaultdict(list)
        for task in planned.tasks:
            if isinstance(task, Prepared):
                entry = planned.models[task.model]
                inputs = {name: str(results / path) for name, path in task.inputs.items()}
                update = {"inputs": inputs, "recordings": str(results / task.recordings)}
                of_model = self._tasks[api_model_name(entry.checkpoint)]
                of_model.append((task.model_copy(update=update), entry.published_as or ""))
        self._jam = printed_jam(root / "published")
        self._idiots = printed_counts(root / "published")
        self._known: dict[Key, tuple[Written, Question]] = {}

    def text(self, asked: Asked) -> str:
        """What to answer.

        Raises:
            KeyError: no task of the configuration asks this, as far as its inputs are made.
        """
        key = asked.model, tuple(text for _, text in asked.turns), asked.seed
        if key not in self._known:
            for task, published_as in self._tasks[asked.model]:
                if all(Path(path).exists() for path in task.inputs.values()):
                    self._known |= self._answered(asked.model, task, published_as)
        if key not in self._known:
            last = asked.turns[-1][1] if asked.turns else ""
            raise KeyError(f"nothing asks {asked.model} (seed {asked.seed}) this: {last[:80]!r}")
        written, question = self._known[key]
        return written(question)

    def _answered(
        self, model: str, task: Prepared, published_as: str
    ) -> dict[Key, tuple[Written, Question]]:
        """The questions of a task; the first of those with the same key counts."""
        written = self._written(task, published_as)
        found: dict[Key, tuple[Written, Question]] = {}
        for question in task.questions(task.entry()):
            texts = tuple(turn.content for turn in question.messages)
            key = model, texts, question.parameters.get("seed")
            found.setdefault(key, (written, question))
        return found

    def _written(self, task: Prepared, published_as: str) -> Written:
        """How the answers to a task's questions are written."""
        if isinstance(task, Identification):
            return self._identification(task, published_as)
        if isinstance(task, Detection):
            return _detection(task, self._idiots.get(published_as))
        return _neutral_variant(task)

    def _identification(self, task: Identification, published_as: str) -> Written:
        sentences = load_sentences(task.inputs["sentences"])
        key = task.setting, published_as, sentences[0].language if sentences else ""
        right = self._jam.right(sentences, key, task.seed)
        by_id = {item.id: item for item in sentences}
        few_shot = task.parameters if isinstance(task.parameters, FewShot) else None

        def write(question: Question) -> str:
            sentence = by_id[question.name]
            named = right[sentence.id] == sentence.is_figurative
            about = f"{task.model} {task.setting} {task.seed} {sentence.id}"
            if few_shot:
                # As many of the samples say otherwise as the vote allows; the first never does.
                spare = few_shot.samples - few_shot.min_votes if named else few_shot.min_votes - 1
                dissents = 0 < question.sample <= _choice(about) % (spare + 1)
                named = named != dissents
            return identification(
                sentence,
                named=named,
                choice=_choice(f"{about} {question.sample}"),
                explains=few_shot is not None,
                schema="response_format" in question.parameters,
            )

        return write


def _detection(task: Detection, counts: DetectionCounts | None) -> Written:
    sentences = {item.id: item for item in load_jsonl(task.inputs["sentences"], IdiotsSentence)}
    says = said([*sentences.values()], counts)

    def write(question: Question) -> str:
        return detection(
            sentences[question.name],
            **says[question.name]._asdict(),
            choice=_choice(f"{task.model} {question.name}"),
            schema="response_format" in question.parameters,
        )

    return write


def _neutral_variant(task: NeutralVariants) -> Written:
    sentences = load_jsonl(task.inputs["dataset"], JamSentence)
    originals = {item.id: item for item in sentences if item.is_original}
    by_question = {f"{item.id} (neutral)": originals[item.original_id] for item in sentences}
    return lambda question: neutral_variant(by_question[question.name], _choice(question.name))


def _choice(about: str) -> int:
    """A number that has nothing to do with what it is about, but is always the same."""
    return int(mixed(about)[:8], 16)
