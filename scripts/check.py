"""Stop with one error if nothing can give the answers of some language model."""

import sys

from pieline.core.jobs import start_log
from pieline.llm.estimates import check, estimates, record_now
from pieline.planned import planned_tasks

start_log(snakemake.log[0])
planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
ending = [task for task in planned.tasks if planned.models[task.model].ends]
for line in record_now(estimates(ending, planned.settings), planned.models):
    print(line, file=sys.stderr)
unknown = planned.not_made()
check(planned.tasks, planned.settings, unknown)
print("; ".join(["no key, weights or recordings are known to be missing", *unknown]))
