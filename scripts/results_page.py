"""Write the results page, and beside it the files that its numbers open."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.reporting.models import load_descriptions
from pieline.results.displays import Displays
from pieline.results.page.build import write_page


@program(
    template=Path, models=(load_descriptions, "descriptions of the models, as JSON"),
    displays=Displays, claims=(Path, "claims.json"), depth=(int, "documents shown for a query"),
    output=Path, items=(Path, "folder for what lies behind each number"),
)  # fmt: skip
def main(it: Options) -> None:
    write_page(
        it.output,
        template=it.template,
        displays=it.displays,
        ledger=it.claims,
        models=it.models,
        depth=it.depth,
        items=it.items,
    )
