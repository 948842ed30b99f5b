"""Ask a language model whatever one task of a study wants to know; recorded answers come first."""

import argparse

from pieline.core.errors import run_command
from pieline.llm.client import ask
from pieline.llm.options import load_llm_settings
from pieline.llm.task import load_task


def main() -> None:
    """Parse the command line and ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", required=True, help="module:class")
    parser.add_argument("--given", required=True, help="the task's fields, as JSON")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    it = parser.parse_args()

    task = load_task(it.task, it.given)
    entry, settings = task.entry(), load_llm_settings(it.settings)
    task.run(entry, lambda questions: ask(questions, entry, settings, task.recordings))


if __name__ == "__main__":
    run_command(main)
