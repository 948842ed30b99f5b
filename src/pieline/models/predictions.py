"""Define entries for external predictions, which users made with other programs."""

from collections import Counter
from typing import Literal, Self

from pydantic import Field, model_validator

from pieline.core.records import Name
from pieline.core.settings import Seed, Settings
from pieline.core.texts import Findings, refuse_above
from pieline.languages.settings import LanguageName
from pieline.models.entries import ModelEntry

MOST_MISPLACED = 0.05
"""Maximum share of predicted idioms that do not occur in their sentence."""


def check_named_idioms(misplaced: Findings, total: int) -> None:
    """Raise a `UserError` if too many predicted idioms do not occur in their sentences.

    Args:
        misplaced: Location and text of each predicted idiom that is not in its sentence.
        total: Number of predicted idioms.
    """
    refuse_above(
        MOST_MISPLACED,
        misplaced,
        total,
        "idioms are not in their sentences",
        hint="check the ids, and write idioms exactly as in the sentence",
    )


class PredictionFile(Settings):
    """Entry for a file with external predictions of one run."""

    study: str = Field(description="Study for which the predictions were made.")
    file: str = Field(
        min_length=1,
        description="For jam: JSONL, CSV or Parquet with id and idioms (or BIO tags); for idiots:"
        " the same formats, with id, has_idiom and idiom; for idiolink: a ranking in TREC format.",
    )
    language: LanguageName | None = Field(
        default=None, description="For jam: language of the sentences."
    )
    setting: Name = Field(description="Any name; for idiolink, the query mode of the ranking.")
    seed: Seed = Field(
        default=0, description="Seed of the run; runs that differ only in the seed are averaged."
    )
    format: Literal["mteb", "inspect"] | None = Field(
        default=None,
        description="'mteb': MTEB's predictions (for idiolink); 'inspect': a log (.eval) of a task"
        " in examples/inspect_tasks.py (for jam and idiots); null: the format in the description of"
        " `file`.",
    )

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        supported_format = "mteb" if self.study == "idiolink" else "inspect"
        if self.format and self.format != supported_format:
            raise ValueError(f"{self.study} does not support the format {self.format!r}")
        return self


class PredictionsEntry(ModelEntry):
    """Entry for external predictions, scored without any knowledge of how they were produced."""

    kind: Literal["predictions"] = Field(description="Kind of the model: external predictions.")
    licence: str = Field(default="not stated", description="License of the predictions.")
    files: tuple[PredictionFile, ...] = Field(
        min_length=1, description="Files with predictions, one per run."
    )

    @model_validator(mode="after")
    def _check_duplicates(self) -> Self:
        counts_of_runs = Counter(
            (file.study, file.language, file.setting, file.seed) for file in self.files
        )
        for run, count in counts_of_runs.items():
            if count > 1:
                run_description = " ".join(str(value) for value in run if value)
                raise ValueError(f"{count} files for {run_description}")
        for path, count in Counter(file.file for file in self.files).items():
            if count > 1:
                raise ValueError(f"file {path!r} occurs twice")
        return self

    def execution_spec(self) -> str:
        """Return the `execution_spec` without the files, which are inputs of the jobs."""
        return self._spec("files")

    def files_for(self, study: str) -> list[PredictionFile]:
        """Return the files with predictions for a study."""
        return [file for file in self.files if file.study == study]
