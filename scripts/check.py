"""Fail with one error that lists the language models whose answers cannot be obtained, if any."""

import sys
from pathlib import Path

from pieline.core.errors import pluralize
from pieline.core.jobs import job
from pieline.llm.estimates import check, estimate_tasks, notices
from pieline.planned import planned_tasks
from pieline.resources import dry_run, read_plan, remade

with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    stale = remade(read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root))))
    noted = notices(planned.tasks, planned.models, planned.settings, stale)
    for line in [*noted, *planned.missing_files(stale)]:
        print(line, file=sys.stderr)
    check(planned.tasks, planned.settings, stale)
    counted = estimate_tasks(planned.tasks, planned.settings, stale)
    if to_ask := sum(item.estimate.to_ask for item in counted):
        print(f"no missing keys or weights found; {pluralize(to_ask, 'answer')} to request")
    else:
        print("no missing keys, weights or recordings found")
