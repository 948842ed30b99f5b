"""Print calls, tokens and dollars of every language model of the configuration; ask nothing."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from pieline.core.program import Options, program
from pieline.llm.estimates import estimates
from pieline.planned import planned_tasks


@program(config=str, models=(Path, "models.yaml"), root=Path)
def main(it: Options) -> None:
    tasks, settings, registry = planned_tasks(it.config, it.models, it.root)
    columns = ("model", "questions", "recorded", "to ask", "tokens in", "tokens out", "$")
    table = Table(
        "asked for", *columns, title="at most, by the longest answers", title_justify="left"
    )
    total = 0.0
    unknown: set[str] = set()
    for kind, model, spec, cost, missing in estimates(tasks, settings):
        unknown.update(missing)
        usd = "unbounded" if cost.usd is None else f"{cost.usd:.2f}" if spec.prices else "free"
        out = "unbounded" if cost.output_tokens is None else str(cost.output_tokens)
        name = (
            f"{model} (retired)"
            if getattr(registry[model], "retired", None) and cost.to_ask
            else model
        )
        counts = (cost.questions, cost.recorded, cost.to_ask, cost.input_tokens)
        table.add_row(kind, name, *map(str, counts), out, usd)
        total += cost.usd or 0.0
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    console.print(f"at most ${total:.2f} in all; llm.max_cost_usd is ${settings.max_cost_usd:.2f}")
    if unknown:
        console.print(f"not known yet, because these are not made: {', '.join(sorted(unknown))}")
