"""Ask a language model whatever one task of a study wants to know; recorded answers come first."""

import os

from pieline.core.errors import UserError
from pieline.core.jobs import start_log
from pieline.llm.client import ask
from pieline.llm.settings import LLMSettings
from pieline.llm.task import load_task

start_log(snakemake.log[0])
task = load_task(snakemake.params.kind, snakemake.params.task)
entry = task.entry()
settings = LLMSettings.model_validate_json(os.environ["PIELINE_LLM_SETTINGS"])
if snakemake.input.served:
    settings = settings.model_copy(update={"mode": "replay"})
try:
    task.run(entry, lambda questions: ask(questions, entry, settings, task.recordings))
except UserError as error:
    if not snakemake.input.served:
        raise
    mend = "see logs/served for why; the same command asks what is missing"
    raise UserError(error.what, where=error.where, mend=mend) from None
