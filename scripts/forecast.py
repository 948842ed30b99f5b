"""Estimate what the real run of a configuration will take, from its plan; ask and fetch nothing."""

import json
from pathlib import Path

from pieline.config import load_config, load_studies
from pieline.core.files import read_text, write_json
from pieline.core.jobs import start_log
from pieline.llm.estimates import estimates
from pieline.models.registry import load_registry
from pieline.planned import planned_entries, planned_tasks
from pieline.rehearsal.forecast import ASSUMED, Estimator, Texts, forecast, read_submissions
from pieline.rehearsal.plan import read_plan
from pieline.reporting.latex import render_html

start_log(snakemake.log[0])
config = snakemake.params.config
models = snakemake.input.models
root = snakemake.params.root
registry = load_registry(models)
studies = load_studies(load_config(json.loads(config), where="--config"), registry, root)
planned = planned_tasks(config, models, root)
idiolink, jam = studies["idiolink"], studies["jam"]
found = forecast(
    read_plan(read_text(snakemake.input.plan).splitlines()),
    Estimator(
        registry=registry,
        texts=Texts.of(Path("results/datasets")),
        # What a rehearsal records are answers of stand-ins, and it does so meanwhile.
        estimates=estimates(planned.tasks, planned.settings, from_recordings=False),
        kinds={
            asking.name: asking.task.__name__
            for study in studies.values()
            for asking in study.llm_tasks()
        },
        settings=planned.settings,
        epochs=(idiolink.settings.finetuning.max_epochs, jam.settings.fine_tuning.epochs),
    ),
    models=planned_entries(config, models, root),
    top_k=idiolink.settings.top_k,
    submissions=read_submissions(read_text(snakemake.input.submissions)),
)
write_json(snakemake.output.json, found.model_dump(mode="json"))
render_html(snakemake.input.template, snakemake.output.html, forecast=found, formulas=ASSUMED)
