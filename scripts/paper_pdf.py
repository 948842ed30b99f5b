"""Compile the LaTeX document."""

from pieline.core.jobs import start_log
from pieline.results.paper import compile_pdf

start_log(snakemake.log[0])
compile_pdf(snakemake.input.source, snakemake.output[0])
