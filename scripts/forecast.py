"""Estimate what the real run of a configuration will take, from its plan; ask and fetch nothing."""

import json
from pathlib import Path

from pieline.config import load_config, load_studies
from pieline.core.files import read_text, write_json
from pieline.core.program import Options, program
from pieline.llm.estimates import estimates
from pieline.models.registry import load_registry
from pieline.planned import planned_entries, planned_tasks
from pieline.rehearsal.forecast import ASSUMED, Estimator, Texts, forecast, read_submissions
from pieline.rehearsal.plan import read_plan
from pieline.reporting.latex import render_html


@program(
    config=str, models=(Path, "models.yaml"), root=Path,
    plan=(Path, "what `snakemake -n -F all` printed"),
    submissions=(Path | None, "what tools/count_submissions.py printed"),
    datasets=(Path, "folder of the run's datasets"), template=Path, html=Path, json=Path,
)  # fmt: skip
def main(it: Options) -> None:
    registry = load_registry(it.models)
    studies = load_studies(load_config(json.loads(it.config), where="--config"), registry, it.root)
    planned = planned_tasks(it.config, it.models, it.root)
    idiolink, jam = studies["idiolink"], studies["jam"]
    found = forecast(
        read_plan(read_text(it.plan).splitlines()),
        Estimator(
            registry=registry,
            texts=Texts.of(it.datasets),
            # What a rehearsal records are answers of stand-ins, and it does so meanwhile.
            estimates=estimates(planned.tasks, planned.settings, from_recordings=False),
            kinds={
                asking.name: asking.task.__name__
                for study in studies.values()
                for asking in study.askings()
            },
            settings=planned.settings,
            epochs=(idiolink.settings.finetuning.max_epochs, jam.settings.fine_tuning.epochs),
        ),
        models=planned_entries(it.config, it.models, it.root),
        top_k=idiolink.settings.top_k,
        submissions=read_submissions(read_text(it.submissions)) if it.submissions else (),
    )
    write_json(it.json, found.model_dump(mode="json"))
    render_html(it.template, it.html, forecast=found, formulas=ASSUMED)
