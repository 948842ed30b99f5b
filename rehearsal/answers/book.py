"""Answers to all questions of a configuration, looked up by the content of the request."""

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
from rehearsal.answers.idiots import DetectionCounts, drawn_detections, printed_counts
from rehearsal.answers.jam import printed_jam, shuffle_key
from rehearsal.answers.texts import detection, identification, neutral_variant
from rehearsal.formats import Asked

Key = tuple[str, tuple[str, ...], int | None]
"""Model, message texts and seed of a question."""
Writer = Callable[[Question], str]
AnsweredTask = Identification | Detection | NeutralVariants


class Answers:
    """Answers that reproduce the printed numbers, to the questions of a configuration's tasks.

    The questions of a model's tasks (`Task.questions`) are read again whenever an unknown question
    arrives, because the inputs of some tasks are created while other tasks are answered.

    Args:
        config: Configuration as JSON.
        models: Path of models.yaml.
        root: Project folder, which contains `published/`.
        results: Working directory of the run, which contains `results/`.

    Raises:
        UserError: The configuration or models.yaml is invalid.
    """

    def __init__(self, config: str, models: Path, root: Path, results: Path) -> None:
        planned = planned_tasks(config, models, root)
        self._tasks: defaultdict[str, list[tuple[AnsweredTask, str]]] = defaultdict(list)
        for task in planned.tasks:
            if isinstance(task, AnsweredTask):
                entry = planned.models[task.model]
                inputs = {name: str(results / path) for name, path in task.inputs.items()}
                update = {"inputs": inputs, "recordings": str(results / task.recordings)}
                of_model = self._tasks[api_model_name(entry.checkpoint)]
                of_model.append((task.model_copy(update=update), entry.published_as or ""))
        self._jam = printed_jam(root / "published")
        self._idiots = printed_counts(root / "published")
        self._known: dict[Key, tuple[Writer, Question]] = {}

    def text(self, asked: Asked) -> str:
        """Return the answer to a question.

        Raises:
            KeyError: No task whose inputs exist asks this question.
        """
        key = asked.model, tuple(text for _, text in asked.turns), asked.seed
        if key not in self._known:
            for task, published_as in self._tasks[asked.model]:
                if all(Path(path).exists() for path in task.inputs.values()):
                    self._known |= self._questions(asked.model, task, published_as)
        if key not in self._known:
            last = asked.turns[-1][1] if asked.turns else ""
            raise KeyError(f"unknown question to {asked.model} (seed {asked.seed}): {last[:80]!r}")
        writer, question = self._known[key]
        return writer(question)

    def _questions(
        self, model: str, task: AnsweredTask, published_as: str
    ) -> dict[Key, tuple[Writer, Question]]:
        """Return a task's questions with their writer by key; of equal keys, the first is kept."""
        writer = self._writer(task, published_as)
        questions: dict[Key, tuple[Writer, Question]] = {}
        for question in task.questions(task.entry()):
            texts = tuple(turn.content for turn in question.messages)
            key = model, texts, question.parameters.get("seed")
            questions.setdefault(key, (writer, question))
        return questions

    def _writer(self, task: AnsweredTask, published_as: str) -> Writer:
        """Return the function that writes the answers to a task's questions."""
        if isinstance(task, Identification):
            return self._identification(task, published_as)
        if isinstance(task, Detection):
            return _detection(task, self._idiots.get(published_as))
        return _neutral_variant(task)

    def _identification(self, task: Identification, published_as: str) -> Writer:
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
                # Samples after the first may disagree, but never enough to change the vote.
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


def _detection(task: Detection, counts: DetectionCounts | None) -> Writer:
    sentences = {item.id: item for item in load_jsonl(task.inputs["sentences"], IdiotsSentence)}
    answers = drawn_detections([*sentences.values()], counts)

    def write(question: Question) -> str:
        return detection(
            sentences[question.name],
            **answers[question.name]._asdict(),
            choice=_choice(f"{task.model} {question.name}"),
            schema="response_format" in question.parameters,
        )

    return write


def _neutral_variant(task: NeutralVariants) -> Writer:
    sentences = load_jsonl(task.inputs["dataset"], JamSentence)
    originals = {item.id: item for item in sentences if item.is_original}
    by_question = {f"{item.id} (neutral)": originals[item.original_id] for item in sentences}
    return lambda question: neutral_variant(by_question[question.name], _choice(question.name))


def _choice(about: str) -> int:
    """Return a pseudorandom number that depends only on the text."""
    return int(shuffle_key(about)[:8], 16)
