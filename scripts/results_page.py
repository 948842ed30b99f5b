"""Write the results page: one HTML file with claims, tables, figures and the way down."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.reporting.evidence import Limits
from pieline.reporting.models import load_descriptions
from pieline.results.displays import Displays
from pieline.results.page.build import write_page


@program(
    template=Path, models=(load_descriptions, "descriptions of the models, as JSON"),
    displays=Displays, claims=(Path, "claims.json"), items=(int, "sentences shown a metric file"),
    depth=(int, "documents shown a query"), output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    write_page(
        it.output,
        template=it.template,
        displays=it.displays,
        ledger=it.claims,
        models=it.models,
        limits=Limits(items=it.items, depth=it.depth),
    )
