"""Fail with one error that lists the language models whose answers cannot be obtained, if any."""

import sys
from pathlib import Path

from pieline.configured_tasks import planned_tasks
from pieline.core.errors import pluralize
from pieline.core.jobs import job
from pieline.llm.estimates import check, estimate_tasks, notices
from pieline.resources import dry_run, read_plan, remade

with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    stale = remade(read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root))))
    noted = notices(planned.tasks, planned.models, planned.settings, stale)
    for line in [*noted, *planned.missing_files(stale, snakemake.params.options)]:
        print(line, file=sys.stderr)
    check(planned.tasks, planned.settings, stale)
    counted = estimate_tasks(planned.tasks, planned.settings, stale)
    to_ask = sum(item.estimate.to_ask for item in counted)
    unknown = len({item.model for item in counted if item.unknown})
    open_questions = []
    if to_ask:
        open_questions.append(f"{pluralize(to_ask, 'answer')} to request")
    if unknown:
        open_questions.append(f"some questions of {pluralize(unknown, 'model')} not known yet")
    if open_questions:
        print(f"no missing keys or weights found; {' and '.join(open_questions)}")
    else:
        print("no missing keys, weights or recordings found")
