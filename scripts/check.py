"""Stop with one error if the answers of some language model can be had from nowhere."""

from pieline.core.errors import run_command
from pieline.llm.estimates import check
from pieline.planned import planned_parser, planned_tasks


def main() -> None:
    """Parse the command line and check."""
    planned = planned_tasks(planned_parser(__doc__).parse_args())
    questions = check(planned.tasks, planned.settings)
    print(f"{questions} questions to language models: all recorded or ready to be asked")


if __name__ == "__main__":
    run_command(main)
