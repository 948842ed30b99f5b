"""Runs of a configuration: what each one reads and writes, and why it cannot be made."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pieline.archives.manifest import below_project
from pieline.archives.matching import Offer, offer
from pieline.core.conditions import Conditions
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
        uses: Whether it reads certain files, by path, if its conditions do not state that.
        job: Name of the job that makes it together with other runs; empty if it makes only this.
        experiment: Name of the side experiment to which it belongs, or empty.
        unsupported: Why no answers could make it; empty if answers can, or if it needs none.
        lacks: Why it cannot be made; empty if it can.
        offer: Archived run that differs least from it, if any.
        archived: Whether its predictions are taken from the archive of this offer.
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
    uses: Mapping[str, bool] = field(default_factory=dict)
    job: str = ""
    experiment: str = ""
    unsupported: str = ""
    lacks: str = ""
    offer: Offer | None = None
    archived: bool = False

    @property
    def base(self) -> str:
        """Name of its model in models.yaml, which differs from `model` if that is fine-tuned."""
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
            if not run.archived and not run.unsupported
        ]

    def made(self, **values: str | Collection[str]) -> list[Run]:
        """Return the runs with these values that can be computed or reused."""
        return [run for run in self.select(**values) if not run.lacks]

    def metrics(self, **values: str | Collection[str]) -> list[str]:
        """Return the metric files of the runs that `made` returns."""
        return [run.metrics for run in self.made(**values)]

    def conditions(self, path: str) -> Conditions | None:
        """Return the conditions of a metric file; None if the configuration does not have it."""
        return self[path].conditions if path in self else self.others.get(path)


def make_plan(
    runs: Iterable[Run],
    project: Project,
    lacks: Callable[[Sequence[Run], Collection[str]], Mapping[str, str]],
) -> Plan:
    """Return the plan of these runs, after looking them up in the archives.

    Args:
        runs: Configured runs.
        project: Archives and digests.
        lacks: Function that returns why runs cannot be made, by metric file. Its arguments are the
            runs, and the metric files of those that an archive contains.
    """
    offered = [replace(run, offer=_offer(run, project)) for run in runs]
    # A job that makes several runs is replaced by an archive only if it contains all of them.
    computed = {run.job for run in offered if run.job and not _is_equal(run)}
    archived = {run.metrics for run in offered if _is_equal(run) and run.job not in computed}
    reasons = lacks(offered, archived)
    return Plan(
        tuple(
            replace(run, lacks=reason, archived=run.metrics in archived and not reason)
            for run in offered
            for reason in [reasons.get(run.metrics, "")]
        )
    )


def _offer(run: Run, project: Project) -> Offer | None:
    if not project.archives:
        return None
    uses = {below_project(name): is_read for name, is_read in run.uses.items()}
    return offer(run.metrics, run.conditions.canonical(), project.archives, project.digest, uses)


def _is_equal(run: Run) -> bool:
    return run.offer is not None and not run.offer.differences
