"""Start the server of a language model once, and ask all questions of one kind in a run.

The answers are only recorded. The jobs of the individual tasks read the recordings.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pieline.configured_tasks import planned_tasks
from pieline.core.errors import UserError
from pieline.core.files import write_text
from pieline.core.jobs import job
from pieline.core.sidecars import check_made
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.questions import Question
from pieline.llm.server import Server
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.llm.truncation import FirstAnswers
from pieline.models.llm import LLMEntry


def ask_server(
    server: Server,
    task: Task,
    entry: LLMEntry,
    settings: LLMSettings,
    questions: Sequence[Question],
) -> Mapping[str, Answer]:
    """Return the answers to a task's questions; request and record missing answers."""
    first_answers = FirstAnswers(entry, task.is_readable, task.limit_setting())
    return ask(
        questions, entry, settings, task.recordings, server=server, first_answers=first_answers
    )


with job(snakemake):
    planned = planned_tasks(snakemake.params.config, snakemake.input.models, snakemake.params.root)
    tasks = [task for task in planned.tasks if task.recordings in snakemake.params.recordings]
    entry = planned.models[snakemake.wildcards.model]
    errors = []
    with (
        Server(entry, Path(snakemake.log[0] + ".server")) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        for task in tasks:
            # The outputs are discarded, because the task's own job makes them again.
            temporary_outputs = {name: str(Path(folder, name)) for name in task.outputs}
            copy = task.model_copy(update={"outputs": temporary_outputs})
            try:
                check_made(task.inputs.values())
                copy.run(entry, partial(ask_server, server, copy, entry, planned.settings))
            except UserError as error:  # other tasks may still succeed
                errors.append(error)
        # If the server died or no task succeeded, fail so that a cluster retries the job.
        server_error = server.exit_error() if errors else None
        if server_error:
            raise server_error
    if len(errors) == len(tasks):
        raise errors[0]
    for task_error in errors:  # only the jobs that read these answers fail
        print(f"error: {task_error}", file=sys.stderr)
    write_text(snakemake.output[0], "".join(f"{task.recordings}\n" for task in tasks))
