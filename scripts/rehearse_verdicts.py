"""Judge the cases of Llama 2 on IdioTS, so that the printed numbers of section 5.2.1 come back."""

from pathlib import Path

from pieline.core.program import Options, program
from pieline.core.records import save_jsonl
from pieline.rehearsal.answers.people import printed_verdicts
from pieline.studies.idiots.verdicts import read_cases


@program(
    cases=(Path, "cases of the run, JSONL"), published=(Path, "folder of the printed numbers"),
    output=Path,
)  # fmt: skip
def main(it: Options) -> None:
    save_jsonl(it.output, printed_verdicts(read_cases(it.cases), it.published))
