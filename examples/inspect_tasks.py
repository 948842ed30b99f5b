"""ID10M-JAM and IdioTS as tasks of Inspect AI, with this project's data, prompts and parsing.

Install inspect-ai in an environment of its own, build the datasets, and run:

    inspect eval examples/inspect_tasks.py@idiots --model PROVIDER/MODEL --temperature 0
    inspect eval examples/inspect_tasks.py@jam -T language=german --model PROVIDER/MODEL

Inspect changes into this folder, so paths are relative to the project's root, or absolute.
Inspect's accuracy weights all sentences equally. For the studies' metrics, import the log with
`kind: predictions` and `format: inspect`.
"""

from collections.abc import Sequence
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState, generate

from pieline.core.records import load_jsonl
from pieline.llm.answers import Answer
from pieline.llm.inspect_logs import inspect_answer
from pieline.llm.prompts import load_prompt
from pieline.llm.questions import Message
from pieline.reporting.items import CLASSES
from pieline.studies.idiots.predictions import read_prediction
from pieline.studies.idiots.records import IdiotsSentence
from pieline.studies.jam.metrics.identification import is_correct
from pieline.studies.jam.predictions.prompting import combine, sample_of
from pieline.studies.jam.records import JamSentence, load_sentences

ROOT = Path(__file__).resolve().parents[1]


@task
def idiots(
    sentences: str = "results/datasets/idiots/sentences.jsonl",
    prompt: str = "prompts/idiots/detect.jinja",
) -> Task:
    """Detect whether a sentence contains an idiom, and which one (IdioTS)."""
    asked = load_prompt(ROOT / prompt)
    samples = [
        Sample(
            id=one.id,
            input=_turns(asked.messages(sentence=one.sentence)),
            target=CLASSES[one.is_idiomatic],
            metadata={"sentence": one.model_dump(mode="json")},
        )
        for one in load_jsonl(ROOT / sentences, IdiotsSentence)
    ]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=detection())


@task
def jam(
    language: str = "english",
    sentences: str = "results/datasets/jam/{language}.jsonl",
    prompt: str = "prompts/jam/zero_shot.jinja",
) -> Task:
    """Identify the idioms that a sentence uses figuratively (ID10M-JAM, zero-shot)."""
    asked = load_prompt(ROOT / prompt)
    samples = [
        Sample(
            id=one.id,
            input=_turns(
                asked.messages(sentence=one.sentence.strip(), language=one.language.capitalize())
            ),
            target="; ".join(one.pies) if one.is_figurative else "no idiom",
            metadata={"sentence": one.model_dump(mode="json")},
        )
        for one in load_sentences(ROOT / sentences.format(language=language))
    ]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=identification())


@scorer(metrics=[accuracy(), stderr()])
def detection() -> Scorer:
    """Score agreement with the gold class; an unreadable answer counts as wrong."""

    async def score(state: TaskState, target: Target) -> Score:
        prediction = read_prediction(str(state.sample_id), _answer(state))
        answer = CLASSES.get(prediction.has_idiom) or prediction.outcome
        return Score(value=CORRECT if answer == target.text else INCORRECT, answer=answer)

    return score


@scorer(metrics=[accuracy(), stderr()])
def identification() -> Scorer:
    """Score whether an answer is correct, as in the study with `scoring: paper`."""

    async def score(state: TaskState, target: Target) -> Score:
        sentence = JamSentence.model_validate(state.metadata["sentence"], strict=False)
        samples = [sample_of(_answer(state))]
        prediction = combine(sentence.id, samples, language=sentence.language)
        answer = prediction.outcome if prediction.idioms is None else "; ".join(prediction.idioms)
        is_right = is_correct(prediction.idioms, sentence)
        return Score(value=CORRECT if is_right else INCORRECT, answer=answer)

    return score


def _turns(messages: Sequence[Message]) -> list[ChatMessage]:
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
    return [kinds[one.role](content=one.content) for one in messages]


def _answer(state: TaskState) -> Answer:
    return inspect_answer({"id": state.sample_id, "output": state.output.model_dump(mode="json")})
