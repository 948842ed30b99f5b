"""Print calls, tokens and dollars of every language model of the configuration; ask nothing."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.core.errors import run_command
from pieline.llm.jobs import estimates, load_jobs
from pieline.llm.options import load_llm_settings
from pieline.models.registry import load_registry


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", required=True, help="the jobs, as JSON")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--models", type=Path, required=True, help="models.yaml")
    arguments = parser.parse_args()

    settings = load_llm_settings(arguments.settings)
    jobs = load_jobs(arguments.jobs, load_registry(arguments.models))
    columns = ("study", "model", "questions", "recorded", "to ask", "tokens in", "tokens out", "$")
    table = Table(*columns, title="at most, by the longest answers", title_justify="left")
    total = 0.0
    for study, model, spec, it in estimates(jobs, settings):
        usd = "unbounded" if it.usd is None else f"{it.usd:.2f}" if spec.prices else "free"
        out = "unbounded" if it.output_tokens is None else str(it.output_tokens)
        name = f"{model} (retired)" if spec.retired and it.to_ask else model
        counts = (it.questions, it.recorded, it.to_ask, it.input_tokens)
        table.add_row(study, name, *map(str, counts), out, usd)
        total += it.usd or 0.0
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    console.print(f"at most ${total:.2f} in all; llm.max_cost_usd is ${settings.max_cost_usd:.2f}")


if __name__ == "__main__":
    run_command(main)
