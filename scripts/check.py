"""Check that the answers of all configured language models can be obtained.

If some answers cannot be obtained, one error lists the models.
"""

import sys
from pathlib import Path

from pieline.configured_tasks import planned_tasks
from pieline.core.errors import pluralize
from pieline.core.jobs import job
from pieline.llm.estimates import check, estimate_tasks, notices
from pieline.resources import dry_run, read_plan, remade

with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    plan = read_plan(dry_run(snakemake.params.config, Path(snakemake.params.root)))
    files_to_remake = remade(plan)
    for line in notices(planned.tasks, planned.models, planned.settings, files_to_remake):
        print(line, file=sys.stderr)
    for line in planned.messages_on_missing_files(files_to_remake, snakemake.params.options):
        print(line, file=sys.stderr)
    check(planned.tasks, planned.settings, files_to_remake)
    estimates = estimate_tasks(planned.tasks, planned.settings, files_to_remake)
    answers_to_request = sum(task.estimate.to_ask for task in estimates)
    models_with_unknown_questions = {task.model for task in estimates if task.unknown}
    remarks = []
    if answers_to_request:
        remarks.append(f"{pluralize(answers_to_request, 'answer')} to request")
    if models_with_unknown_questions:
        models = pluralize(len(models_with_unknown_questions), "model")
        remarks.append(f"some questions of {models} not known yet")
    if remarks:
        print(f"no missing keys or weights found; {' and '.join(remarks)}")
    else:
        print("no missing keys, weights or recordings found")
