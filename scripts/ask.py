"""Ask a language model whatever one task of a study wants to know; recorded answers come first."""

from pieline.core.program import Options, program
from pieline.llm.client import ask
from pieline.llm.settings import LLMSettings
from pieline.llm.task import load_task


@program(
    task=(str, "module:class"), given=(str, "the task's fields, as JSON"),
    settings=(LLMSettings, "the section llm of config.yaml, as JSON"),
)  # fmt: skip
def main(it: Options) -> None:
    task = load_task(it.task, it.given)
    entry = task.entry()
    task.run(entry, lambda questions: ask(questions, entry, it.settings, task.recordings))
