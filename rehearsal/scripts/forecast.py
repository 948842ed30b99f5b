"""Estimate what the real run of a configuration will take, from a dry run of it; ask nothing."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pieline.config import load_config, load_studies
from pieline.core.files import read_text, write_json
from pieline.core.jobs import start_log
from pieline.llm.estimates import estimates
from pieline.models.registry import load_registry
from pieline.planned import planned_entries, planned_tasks
from pieline.reporting.latex import render_html
from rehearsal.forecast import ASSUMED, Forecaster, Texts, read_plan

start_log(snakemake.log[0])
mirror = Path(snakemake.params.mirror).absolute()
profile = str(Path(snakemake.input.profile).parent)
command = [sys.executable, "-m", "snakemake", "--snakefile", snakemake.input.snakefile]
command += ["--profile", profile, "--configfile", snakemake.input.config]
# All that can be asked at any price is in the plan.
command += ["--config", f"mirror={mirror}", "llm={max_cost_usd: 100000}"]
with TemporaryDirectory() as folder:
    command += ["--directory", folder, "--dry-run", "--forceall", "all"]
    plan = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
counting = [sys.executable, snakemake.input.counting]
counted = subprocess.run(counting, input=plan, stdout=subprocess.PIPE, text=True, check=True)

registry = load_registry(snakemake.input.models)
studies = load_studies(
    load_config(json.loads(snakemake.params.config)), registry, snakemake.params.root
)
planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
idiolink, jam = studies["idiolink"], studies["jam"]
forecast = Forecaster(
    registry=registry,
    texts=Texts.of(Path("results/datasets")),
    # What a rehearsal records are answers of stand-ins, and it does so meanwhile.
    estimates=estimates(planned.tasks, planned.settings, from_recordings=False),
    kinds={
        task.name: task.task.__name__ for study in studies.values() for task in study.llm_tasks()
    },
    epochs=(idiolink.settings.finetuning.max_epochs, jam.settings.fine_tuning.epochs),
    top_k=idiolink.settings.top_k,
).forecast(
    read_plan(plan.splitlines()),
    planned_entries(snakemake.params.config, snakemake.input.models, snakemake.params.root),
)
write_json(snakemake.output.json, forecast)
render_html(
    snakemake.input.template,
    snakemake.output.html,
    style=read_text(snakemake.input.style),
    forecast=forecast,
    formulas=ASSUMED,
    submissions=counted.stdout,
)
