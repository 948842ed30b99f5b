"""All language-model jobs of a configuration: what they would cost, and whether they can run.

A job says where its questions come from; each study has one function that makes them. To add a
study, write that function and put it into `QUESTIONS`.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pieline.core.errors import UserError
from pieline.core.records import explain, load_jsonl
from pieline.llm.costs import Estimate, estimate
from pieline.llm.keys import api_key
from pieline.llm.prompts import PromptFolder
from pieline.llm.questions import Question
from pieline.llm.recordings import read_answers
from pieline.llm.server import weights_path
from pieline.llm.settings import LLMSettings
from pieline.models.llm import LLMEntry, LLMSpec
from pieline.models.registry import Registry
from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.variants.generation import Pair, Writer, generation_question
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.predictions import detection_questions
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.prompting import parse_prompting, questions_about
from pieline.studies.jam.raw.id10m import read_id10m
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.generation import GenerationSettings, questions_ahead


class LLMJob(BaseModel):
    """One job: a model under one setting and seed.

    Attributes:
        study: names the function in `QUESTIONS`.
        model: name in models.yaml.
        dataset: folder or file that the questions are about.
        prompt: template file.
        setting, seed, parameters: how the model is asked.
        recordings: file that may have the answers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str
    model: str
    dataset: Path
    prompt: Path
    setting: str
    seed: int
    parameters: dict[str, Any]
    recordings: Path


class Asked(NamedTuple):
    """A job with its model and questions."""

    job: LLMJob
    spec: LLMSpec
    questions: list[Question]


def idiots_questions(job: LLMJob, spec: LLMSpec) -> list[Question]:
    """Questions of an IdioTS job."""
    return detection_questions(
        IdiotsDataset.load(job.dataset).sentences,
        spec,
        PromptFolder(job.prompt.parent).load(job.prompt.name),
        job.parameters,
        setting=job.setting,
        seed=job.seed,
    )


def jam_variants_questions(job: LLMJob, spec: LLMSpec) -> list[Question]:
    """Questions of a job that writes hard variants: both calls, the second as far as known."""
    return questions_ahead(
        load_jsonl(job.dataset, Original),
        spec,
        GenerationSettings.model_validate(job.parameters),
        PromptFolder(job.prompt.parent),
        lambda keys: read_answers(job.recordings, keys),
    )


def jam_questions(job: LLMJob, spec: LLMSpec) -> list[Question]:
    """Questions of a job that asks for the idioms of ID10M-JAM's sentences."""
    parameters = dict(job.parameters)
    train = parameters.pop("train", None)
    prompting = parse_prompting(
        json.dumps(parameters),
        setting=job.setting,
        seed=job.seed,
        prompts=PromptFolder(job.prompt.parent),
        examples_from=read_id10m(train, split="train") if train else [],
    )
    groups = questions_about(load_sentences(job.dataset), spec, prompting)
    return [question for group in groups.values() for question in group]


def construction_questions(job: LLMJob, spec: LLMSpec) -> list[Question]:
    """Questions of a job that writes IdioLink's texts: the first attempt on every pair."""
    collection: Collection = "queries" if job.setting == "queries" else "documents"
    prompt = PromptFolder(job.prompt.parent).load(job.prompt.name)
    writer = Writer(job.model, spec, prompt, job.parameters, attempts=1)
    return [
        generation_question(pair, writer, collection, attempt=0)
        for pair in load_jsonl(job.dataset, Pair)
    ]


QUESTIONS: dict[str, Callable[[LLMJob, LLMSpec], list[Question]]] = {
    "idiolink_construction": construction_questions,
    "idiots": idiots_questions,
    "jam": jam_questions,
    "jam_variants": jam_variants_questions,
}
"""What makes a study's questions."""


def load_jobs(text: str, registry: Registry) -> list[Asked]:
    """Jobs from JSON, with their models and questions.

    Raises:
        UserError: no such list, study or model; or the questions cannot be made.
    """
    try:
        jobs = TypeAdapter(list[LLMJob]).validate_json(text)
    except ValidationError as error:
        raise UserError(explain(error), where="--jobs", mend="pass a JSON list of jobs") from None
    made = []
    for job in jobs:
        entry = registry.get(job.model)
        if job.study not in QUESTIONS or not isinstance(entry, LLMEntry):
            raise UserError(f"no study {job.study!r} or no language model {job.model!r}")
        made.append(Asked(job, entry, QUESTIONS[job.study](job, entry)))
    return made


class JobEstimate(NamedTuple):
    """What one model will cost in one study, all its settings and seeds together."""

    study: str
    model: str
    spec: LLMSpec
    estimate: Estimate


def estimates(jobs: Iterable[Asked], settings: LLMSettings) -> list[JobEstimate]:
    """Calls, tokens and dollars by study and model, in the order of the jobs."""
    groups: dict[tuple[str, str], list[Asked]] = {}
    for asked in jobs:
        groups.setdefault((asked.job.study, asked.job.model), []).append(asked)
    result = []
    for (study, model), members in groups.items():
        spec = members[0].spec
        questions = [question for asked in members for question in asked.questions]
        recorded: set[str] = set()
        if settings.mode != "fresh":
            wanted = {question.key for question in questions}
            for path in {asked.job.recordings for asked in members}:
                recorded |= read_answers(path, wanted).keys()
        result.append(JobEstimate(study, model, spec, estimate(questions, spec, recorded)))
    return result


def check(jobs: Iterable[Asked], settings: LLMSettings) -> None:
    """Stop before anything is asked if some answers can be had from nowhere.

    Raises:
        UserError: one for everything that is missing: for each model the number of answers that
            are not recorded and the key, the weights or the money that it takes to ask for them.
    """
    problems = []
    for item in estimates(jobs, settings):
        lack = _lack(item, settings)
        if item.estimate.to_ask and lack:
            problems.append(f"{item.model} ({item.estimate.to_ask} answers not recorded): {lack}")
    if problems:
        raise UserError(
            "; ".join(problems),
            where="language models",
            mend="mend this, import recordings, or leave these models out",
        )


def _lack(item: JobEstimate, settings: LLMSettings) -> str:
    """What keeps a model from being asked, empty if nothing does."""
    if settings.mode == "replay":
        return "llm.mode is replay"
    if not item.estimate.to_ask:
        return ""
    spec, usd = item.spec, item.estimate.usd
    try:
        api_key(spec)
        if spec.is_local:
            weights_path(spec)
    except UserError as error:
        return f"{error.where}: {error.what}" if spec.is_local else error.what
    if spec.prices and settings.max_cost_usd == 0:
        cost = "an unknown sum" if usd is None else f"up to ${usd:.2f}"
        return f"costs {cost} and llm.max_cost_usd is 0"
    return ""
