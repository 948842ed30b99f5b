"""Runs of a configuration: the files and conditions of each run, and why a run is impossible."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pieline.archives.manifest import Archive
from pieline.archives.reading import stated_conditions
from pieline.core.conditions import Conditions
from pieline.core.settings import Settings, declared_settings, effect_of
from pieline.project import Project

LEFT_OUT = "left out of "
"""Beginning of the lines in which Snakemake's output lists the runs that cannot be made."""


@dataclass(frozen=True)
class Run:
    """One model with one setting, language or query mode, and seed.

    Attributes:
        study: Name of the study.
        model: Name of the model. For a fine-tuned embedder: base model, training mode and loss,
            joined by plus signs.
        keys: Keys that identify the run's numbers in the frame of numbers, together with the study
            and the measure.
        kind: Kind of the model's entry.
        where: Values of the wildcards in the run's paths, by name.
        predictions: Path of the run's predictions.
        metrics: Path of the run's metric file.
        conditions: What determines the run's numbers, and the deviations from the paper.
        recordings: Path of the recorded answers behind the predictions; empty if the run asks no
            language model.
        behind: Predictions and datasets behind the metric file, for the results page.
        experiment: Name of the side experiment to which the run belongs; empty for main runs.
        unsupported: Why the run is impossible even with answers of the language model; otherwise
            empty.
        impossible_because: Why the run cannot be made now; empty if the run can be made.
        archive: Archive from which the predictions are taken; None if they are computed.
    """

    study: str
    model: str
    keys: Mapping[str, str]
    kind: str
    where: Mapping[str, str]
    predictions: str
    metrics: str
    conditions: Conditions
    recordings: str = ""
    behind: tuple[str, ...] = ()
    experiment: str = ""
    unsupported: str = ""
    impossible_because: str = ""
    archive: Archive | None = None

    @property
    def base(self) -> str:
        """Name of the model in models.yaml; for a fine-tuned model, the name of the base model."""
        return self.keys["model"]

    def matches(self, **values: str | Collection[str]) -> bool:
        """Return whether the run has the given values.

        Args:
            values: Accepted value, or collection of accepted values, of each wildcard or field.
        """
        for name, accepted in values.items():
            value = self.where[name] if name in self.where else getattr(self, name)
            accepted_values = [accepted] if isinstance(accepted, str) else accepted
            if value not in accepted_values:
                return False
        return True


@dataclass(frozen=True)
class Plan:
    """Runs of a configuration, and the metric files that do not belong to one run.

    Attributes:
        runs: All configured runs, including runs that cannot be made, in the configuration's order.
        others: Conditions of each metric file that does not belong to one run, by path.
    """

    runs: tuple[Run, ...]
    others: Mapping[str, Conditions] = field(default_factory=dict)

    @cached_property
    def _by_path(self) -> dict[str, Run]:
        return {path: run for run in self.runs for path in (run.metrics, run.predictions)}

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __contains__(self, path: str) -> bool:
        return path in self._by_path

    def __getitem__(self, path: str) -> Run:
        """Return the run to which a file with predictions or metrics belongs."""
        return self._by_path[path]

    def select(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs that have the given values (see `Run.matches`)."""
        return [run for run in self.runs if run.matches(**values)]

    def asked(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs that need answers of language models and have the given values.

        The result includes runs that lack an API key or weights (see `Run.impossible_because`).
        """
        llm_runs = self.select(kind="llm", **values)
        return [run for run in llm_runs if not run.archive and not run.unsupported]

    def made(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs that have the given values and can be made or taken from an archive."""
        return [run for run in self.select(**values) if not run.impossible_because]

    def archived_models(self) -> set[str]:
        """Return the models whose runs all come from archives, so that no weights are needed."""
        archived = {run.base for run in self if run.archive}
        computed = {run.base for run in self if not run.archive}
        return archived - computed

    def metrics(self, **values: str | Collection[str]) -> list[str]:
        """Return the metric files of the runs that `made` returns for the given values."""
        return [run.metrics for run in self.made(**values)]

    def conditions(self, path: str) -> Conditions | None:
        """Return the conditions of a metric file; None if the file is not in the configuration."""
        return self[path].conditions if path in self else self.others.get(path)


def make_plan(
    runs: Iterable[Run],
    project: Project,
    settings: type[Settings],
    impossible_runs: Callable[[Sequence[Run]], Mapping[str, str]],
) -> Plan:
    """Return the plan of runs, with archived conditions and reasons why runs cannot be made.

    Args:
        runs: Configured runs.
        project: Project with the models, and the digests of inputs.
        settings: Class of the study's settings.
        impossible_runs: Function that returns why runs cannot be made, by metric file.
    """
    planned = [_with_archived_conditions(run, project, settings) for run in runs]
    reasons = impossible_runs(planned)
    for index, run in enumerate(planned):
        reason = reasons.get(run.metrics)
        if reason:
            planned[index] = replace(run, impossible_because=reason, archive=None)
    return Plan(tuple(planned))


def _with_archived_conditions(run: Run, project: Project, settings: type[Settings]) -> Run:
    """Return a run with the conditions stated in the archive, if the run is from an archive."""
    if not run.archive:
        return run
    fields = {**dict(declared_settings(settings)), **type(project.entry(run.base)).model_fields}
    # The user's own data and the limit are not settings of a study; without them, None applies.
    defaults: dict[str, list[Any]] = {"data": [None], "limit": [None]}
    scoring: set[str] = set()
    for dotted_name, field_info in fields.items():
        # Conditions contain the names of settings without their sections, so that two settings may
        # have the same name.
        name = dotted_name.rpartition(".")[2]
        default = field_info.get_default(call_default_factory=True)
        defaults.setdefault(name, []).append(default)
        if effect_of(field_info) == "scoring":
            scoring.add(name)
    conditions = stated_conditions(
        run.archive.runs[run.metrics],
        run.conditions,
        scoring=scoring,
        defaults=defaults,
        digest=project.digest,
    )
    return replace(run, conditions=conditions)
