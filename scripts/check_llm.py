"""Stop with one error if the answers of some language model can be had from nowhere."""

import argparse
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_text
from pieline.llm.jobs import check, load_jobs
from pieline.llm.options import load_llm_settings
from pieline.models.registry import load_registry


def main() -> None:
    """Parse the command line and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", required=True, help="the jobs, as JSON")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--models", type=Path, required=True, help="models.yaml")
    parser.add_argument("--output", type=Path, nargs="?", help="file to write if all is well")
    arguments = parser.parse_args()

    jobs = load_jobs(arguments.jobs, load_registry(arguments.models))
    check(jobs, load_llm_settings(arguments.settings))
    questions = sum(len(job.questions) for job in jobs)
    told = f"{questions} questions to language models: all recorded or ready to be asked\n"
    if arguments.output:
        write_text(arguments.output, told)
    else:
        print(told, end="")


if __name__ == "__main__":
    run_command(main)
