"""Print calls, tokens and dollars of every language model of the configuration; ask nothing."""

from rich.console import Console
from rich.table import Table

from pieline.core.errors import run_command
from pieline.llm.estimates import estimates
from pieline.planned import planned_parser, planned_tasks


def main() -> None:
    """Parse the command line and print."""
    tasks, settings, registry = planned_tasks(planned_parser(__doc__).parse_args())
    columns = ("model", "questions", "recorded", "to ask", "tokens in", "tokens out", "$")
    table = Table(
        "asked for", *columns, title="at most, by the longest answers", title_justify="left"
    )
    total = 0.0
    unknown: set[str] = set()
    for kind, model, spec, it, missing in estimates(tasks, settings):
        unknown.update(missing)
        usd = "unbounded" if it.usd is None else f"{it.usd:.2f}" if spec.prices else "free"
        out = "unbounded" if it.output_tokens is None else str(it.output_tokens)
        name = (
            f"{model} (retired)"
            if getattr(registry[model], "retired", None) and it.to_ask
            else model
        )
        counts = (it.questions, it.recorded, it.to_ask, it.input_tokens)
        table.add_row(kind, name, *map(str, counts), out, usd)
        total += it.usd or 0.0
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    console.print(f"at most ${total:.2f} in all; llm.max_cost_usd is ${settings.max_cost_usd:.2f}")

    if unknown:
        console.print(f"not known yet, because these are not made: {', '.join(sorted(unknown))}")


if __name__ == "__main__":
    run_command(main)
