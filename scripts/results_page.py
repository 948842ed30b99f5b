"""Write the results page, and the files with the details of the page's numbers."""

from pieline.core.jobs import job, optional
from pieline.reporting.evidence import check_metrics
from pieline.reporting.models import load_descriptions
from pieline.reporting.numbers import read_numbers
from pieline.reporting.published import load_catalogue
from pieline.results.claims.judgement import load_judged
from pieline.results.page.build import PageContent, write_page
from pieline.results.run_results import RunResults

with job(snakemake) as j:
    check_metrics(snakemake.input.metrics, snakemake.params.asked, j.known)
    content = PageContent(
        results=RunResults.model_validate_json(snakemake.params.results),
        numbers=read_numbers(snakemake.input.numbers),
        claims=load_judged(snakemake.input.claims),
        catalogue=load_catalogue(snakemake.input.catalogue),
        absent=snakemake.params.absent,
        models=load_descriptions(snakemake.params.models),
    )
    write_page(
        snakemake.output.page,
        content,
        items=snakemake.output.details,
        template=snakemake.input.template,
        depth=snakemake.params.depth,
        other=optional(snakemake.input.other_page),
    )
