"""Ask a language model whatever one task of a study wants to know; recorded answers come first."""

from pieline.core.errors import UserError
from pieline.core.program import Options, program
from pieline.llm.client import ask
from pieline.llm.settings import LLMSettings
from pieline.llm.task import load_task


@program(
    task=(str, "module:class"), given=(str, "the task's fields, as JSON"),
    settings=(LLMSettings, "the section llm of config.yaml, as JSON"),
    recorded=(bool, "everything is recorded already: ask nothing"),
)  # fmt: skip
def main(it: Options) -> None:
    task = load_task(it.task, it.given)
    entry = task.entry()
    mode = "replay" if it.recorded else it.settings.mode
    settings = it.settings.model_copy(update={"mode": mode})
    try:
        task.run(entry, lambda questions: ask(questions, entry, settings, task.recordings))
    except UserError as error:
        if not it.recorded:
            raise
        mend = "see logs/served for why; the same command asks what is missing"
        raise UserError(error.what, where=error.where, mend=mend) from None
