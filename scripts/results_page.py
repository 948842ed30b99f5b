"""Write the results page and the files with the details of its numbers."""

from pieline.core.jobs import job, optional
from pieline.reporting.evidence import check_metrics
from pieline.reporting.models import load_descriptions
from pieline.results.claims.tables import load_catalogue
from pieline.results.page.build import write_page
from pieline.results.run_results import read_results

with job(snakemake) as j:
    check_metrics(snakemake.input.metrics, snakemake.params.asked, j.known)
    write_page(
        snakemake.output.page,
        template=snakemake.input.template,
        results=read_results(snakemake.input.cells),
        catalogue=load_catalogue(snakemake.input.catalogue),
        absent=snakemake.params.absent,
        models=load_descriptions(snakemake.params.models),
        depth=snakemake.params.depth,
        items=snakemake.output.details,
        other=optional(snakemake.input.other_page),
    )
