"""Runs of a configuration: what each one reads and writes, and why it cannot be made."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pieline.archives.manifest import Archive
from pieline.archives.reading import stated_conditions
from pieline.core.conditions import Conditions
from pieline.core.settings import Settings, declared_settings, effect_of
from pieline.project import Project


@dataclass(frozen=True)
class Run:
    """One model with one setting, language or query mode, and seed.

    Attributes:
        study: Name of the study.
        model: Name of the model; for a fine-tuned embedder, base+training mode+loss.
        keys: Keys that identify its numbers in the frame of numbers, besides study and measure.
        kind: Kind of the model's entry.
        where: Wildcard values of its paths, by name.
        predictions: Path of its predictions.
        metrics: Path of its metric file.
        conditions: What determines its numbers, and the deviations from the paper.
        recordings: Path of the answers behind its predictions; empty if it asks no model.
        behind: Predictions and datasets behind its metric file, for the results page.
        experiment: Name of the side experiment to which it belongs, or empty.
        unsupported: Why no answers could make it; empty if answers can, or if it needs none.
        lacks: Why it cannot be made; empty if it can.
        archive: Archive from which its predictions are taken, if any.
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
    lacks: str = ""
    archive: Archive | None = None

    @property
    def base(self) -> str:
        """Name of its model in models.yaml; for a fine-tuned model, that of the base."""
        return self.keys["model"]

    def matches(self, **values: str | Collection[str]) -> bool:
        """Return whether fields or wildcards have these values, or are among these values."""
        for name, wanted in values.items():
            value = self.where[name] if name in self.where else getattr(self, name)
            if value != wanted if isinstance(wanted, str) else value not in wanted:
                return False
        return True


@dataclass(frozen=True)
class Plan:
    """Runs of a configuration in its order, and the other metric files.

    Attributes:
        runs: All configured runs, including those that cannot be made.
        others: Conditions of the metric files that do not belong to one run, by path.
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
        """Return the run of a predictions or metric file."""
        return self._by_path[path]

    def select(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs with these values of fields or wildcards; see `Run.matches`."""
        return [run for run in self.runs if run.matches(**values)]

    def asked(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs of language models with these values that need answers.

        Some may lack a key or weights; `lacks` states what.
        """
        return [
            run
            for run in self.select(kind="llm", **values)
            if not run.archive and not run.unsupported
        ]

    def made(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs with these values that can be computed or read from an archive."""
        return [run for run in self.select(**values) if not run.lacks]

    def archived_models(self) -> set[str]:
        """Return the models whose runs all come from archives, so that no weights are needed."""
        return {run.base for run in self if run.archive} - {
            run.base for run in self if not run.archive
        }

    def metrics(self, **values: str | Collection[str]) -> list[str]:
        """Return the metric files of the runs that `made` returns."""
        return [run.metrics for run in self.made(**values)]

    def conditions(self, path: str) -> Conditions | None:
        """Return the conditions of a metric file; None if the configuration does not have it."""
        return self[path].conditions if path in self else self.others.get(path)


def make_plan(
    runs: Iterable[Run],
    project: Project,
    settings: type[Settings],
    lacks: Callable[[Sequence[Run]], Mapping[str, str]],
) -> Plan:
    """Return the plan of these runs; archived runs have the conditions that archives state.

    Args:
        runs: Configured runs.
        project: Models and digests.
        settings: Class of the study's settings.
        lacks: Function that returns why runs cannot be made, by metric file.
    """
    planned = [_with_stated(run, project, settings) if run.archive else run for run in runs]
    reasons = lacks(planned)
    result = []
    for run in planned:
        reason = reasons.get(run.metrics)
        result.append(replace(run, lacks=reason, archive=None) if reason else run)
    return Plan(tuple(result))


def _with_stated(run: Run, project: Project, settings: type[Settings]) -> Run:
    """Return an archived run with the conditions that its archive states."""
    assert run.archive
    fields = dict(declared_settings(settings))
    fields |= type(project.entry(run.base)).model_fields
    # The names in conditions do not contain those of sections.
    defaults: dict[str, list[Any]] = {"data": [None], "limit": [None]}
    for name, each in fields.items():
        default = each.get_default(call_default_factory=True)
        defaults.setdefault(name.rpartition(".")[2], []).append(default)
    conditions = stated_conditions(
        run.archive.runs[run.metrics],
        run.conditions,
        scoring={
            name.rpartition(".")[2] for name, each in fields.items() if effect_of(each) == "scoring"
        },
        defaults=defaults,
        digest=project.digest,
    )
    return replace(run, conditions=conditions)
