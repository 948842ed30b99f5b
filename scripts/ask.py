"""Run one task of a study with a language model; request only answers that are not recorded."""

import os
import sys
from collections.abc import Sequence

from pieline.core.errors import UserError
from pieline.core.jobs import job
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.questions import Question
from pieline.llm.readings import count_outcomes
from pieline.llm.settings import LLMSettings
from pieline.llm.task import load_task
from pieline.llm.truncation import FirstAnswers

with job(snakemake) as j:
    task = load_task(snakemake.params.kind, snakemake.params.task)
    entry = task.entry()
    settings = LLMSettings.model_validate_json(os.environ["PIELINE_LLM_SETTINGS"])
    if snakemake.input.served:
        settings = settings.model_copy(update={"mode": "replay"})
    answers_read: dict[str, Answer] = {}

    def ask_and_keep(questions: Sequence[Question]) -> dict[str, Answer]:
        """Return the answers to questions, and keep these answers for the sidecars."""
        first_answers = FirstAnswers(entry, task.is_readable, task.limit_setting())
        answers = ask(questions, entry, settings, task.recordings, first_answers=first_answers)
        answers_read.update(answers)
        return answers

    try:
        task.run(entry, ask_and_keep)
    except UserError as error:
        if not snakemake.input.served:
            raise
        # The job that started the model's server has logged why answers are missing.
        hint = "see logs/served for the cause; repeat the command to ask what is missing"
        raise UserError(error.what, where=error.where, hint=hint) from None
    print(f"{entry.label}: {count_outcomes(task, answers_read.values())}", file=sys.stderr)
    j.made_from = j.digests(task.inputs.values())
    j.facts = {
        "answers": {key: answer.digest for key, answer in answers_read.items()},
        "recordings": j.digests(filter(os.path.exists, [task.recordings])),
        "token": snakemake.params.answers,
    }
