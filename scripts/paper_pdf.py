"""Compile the LaTeX document with all tables and figures."""

from pieline.core.jobs import job
from pieline.results.paper import compile_pdf

with job(snakemake):
    compile_pdf(snakemake.input.source, snakemake.output[0])
