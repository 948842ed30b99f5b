"""Base class of studies, which name their settings, model queries, tables and figures.

Each study is declared once, in `pieline.studies.<name>.study`. The rules, the cost estimate, the
results page, the claims, the provenance and the SLURM groups are derived from this declaration.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args

from pieline.core.conditions import Conditions, deviations, digest_of
from pieline.core.errors import UserError, nearest
from pieline.core.external import predictions_key
from pieline.core.records import Frozen
from pieline.core.settings import Settings
from pieline.llm.prompts import load_prompt
from pieline.llm.task import Task
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.llm import Parameter
from pieline.models.names import ModelKinds, named_models
from pieline.models.predictions import PredictionFile, PredictionsEntry
from pieline.plan import Plan, Run, make_plan
from pieline.project import EXTERNAL, Project, raw_name
from pieline.reporting.displays import Display, Figure, Table
from pieline.reporting.inputs import DisplayInputs, PlannedRun
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription

S = TypeVar("S", bound=Settings)

NOT_CONFIGURED = "not in this configuration"
"""Reason why a row or table of the paper is missing."""
OWN_PROMPT = "the prompt is {}, not one of the paper's"
"""Template of the deviation for a custom prompt."""
REWORDED_PROMPT = "the prompt {} is not the paper's wording"
"""Template of the deviation for an edited prompt file."""


@dataclass(frozen=True)
class Items:
    """Export of a study's predictions with one row per sentence or query, for other programs.

    Attributes:
        study: Study name, which determines the file names.
        record: `module:class` of a row, a subclass of `pieline.reporting.items.Item` that creates
            all rows.
        display_inputs: Metric files of the exported runs, and other inputs.
        behind: Other files to read, such as predictions.
    """

    study: str
    record: str
    display_inputs: DisplayInputs
    behind: tuple[str, ...]

    @property
    def files(self) -> dict[str, str]:
        """Output files by extension."""
        return {end: f"results/items/{self.study}.{end}" for end in ("parquet", "csv.gz")}


@dataclass(frozen=True)
class LLMTaskSpec:
    """A kind of language model tasks, which one rule runs (`rules/ask.smk`).

    Attributes:
        name: Rule name.
        task: Task class.
        make: Function that creates the task for given wildcards.
        runs: Wildcards of all configured runs, including runs that are left out because the model
            cannot be queried and nothing is recorded.
        after_answers: Names of inputs made from other answers; the questions are unknown until
            those answers exist.
    """

    name: str
    task: type[Task]
    make: Callable[..., Task]
    runs: Sequence[Mapping[str, str]]
    after_answers: Collection[str] = ()

    def tasks(self) -> list[Task]:
        """Return the tasks of all runs."""
        return [self.make(**wildcards) for wildcards in self.runs]


class Study(ABC, Generic[S]):
    """Base class for the reproduction of one paper.

    Args:
        settings: The study's section of config.yaml.
        project: Models, data and folders.
        chosen: Whether the configuration names the study; only then are its settings checked.
    """

    name: ClassVar[str]
    """Name of the study's package, its section in config.yaml, and its folders in results/."""
    paper: ClassVar[str]
    """Title of the paper, as shown to readers."""
    Settings: ClassVar[type[Settings]]
    displays: ClassVar[tuple[Display, ...]] = ()
    """Tables and then figures that the study can show, in the paper's order."""

    main_tables: ClassVar[tuple[str, ...]] = ()
    """Names of the tables with the main scores of every model."""

    main_measures: ClassVar[tuple[str, ...]] = ()
    """Names of the main scores, the most important one first."""

    reference_models: ClassVar[tuple[str, ...]] = ()
    """Models with which a run's models are compared; differences are to the first."""

    def __init__(self, settings: S, project: Project, *, chosen: bool = True) -> None:
        self.settings = settings
        self.project = project
        if chosen:
            where = f"config.yaml: {self.name}"
            for place, names, accepted in named_models(settings):
                self.check_models(names, accepted, where=f"{where}.{place}")
            self.check(where)

    def check(self, where: str) -> None:
        """Raise a `UserError` for invalid settings; the names of models are already checked."""

    @cached_property
    def shown(self) -> dict[Display, DisplayInputs]:
        """The inputs of the displays that this configuration shows, in the paper's order."""
        inputs = ((display, display.inputs_in(self)) for display in self.displays)
        return {display: given for display, given in inputs if given is not None}

    def tables(self) -> list[Table]:
        """Return the tables of this configuration in the paper's order."""
        return [display for display in self.shown if isinstance(display, Table)]

    def figures(self) -> list[Figure]:
        """Return the figures of this configuration in the paper's order."""
        return [display for display in self.shown if isinstance(display, Figure)]

    def notes(self) -> tuple[str, ...]:
        """Return notes on data that are not the paper's."""
        return (SAMPLE_NOTE,) if self.project.is_sample else ()

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specifications of the language model tasks."""
        return []

    def why_no_table(self, name: str) -> str:
        """Return why this configuration does not make a table of the paper."""
        return NOT_CONFIGURED

    @abstractmethod
    def models(self) -> list[str]:
        """Return the names of the models that the configuration uses."""

    def raw_files(self) -> list[str]:
        """Return the paths of the raw files on which the results depend."""
        return []

    def check_own_data(self) -> None:
        """Raise a `UserError` if raw files are missing from the user's own data."""
        if not (place := self.project.own_data):
            return
        raw = self.raw_files()
        names = [raw_name(path) for path in raw if path.startswith("results/raw/")]
        if absent := [name for name in names if not self.project.is_available(name)]:
            corpora = sorted({name.partition("/")[0].removesuffix("-jam") for name in absent})
            raise UserError(
                f"missing {' and '.join(absent)}, required by this configuration of {self.name}",
                where=place,
                hint="see " + " and ".join(f"data/sample/{name}/README.md" for name in corpora),
            )

    def configured_runs(self) -> Iterable[Run]:
        """Return all configured runs, without what `make_plan` adds to them."""
        return ()

    def lacks(self, runs: Sequence[Run]) -> Mapping[str, str]:
        """Return why runs cannot be made, by metric file.

        By default, the only reason is that a model cannot answer.
        """
        reasons = {
            run.metrics: run.unsupported or self.project.unanswered(run.model, run.recordings)
            for run in runs
            if run.kind == "llm" and not run.archive
        }
        return {path: reason for path, reason in reasons.items() if reason}

    def other_metrics(self, plan: Plan) -> Mapping[str, Conditions]:
        """Return the conditions of metric files that do not belong to one run, by path.

        `plan` contains only the runs.
        """
        return {}

    def conditions_by_pattern(self) -> Mapping[str, Callable[..., Conditions]]:
        """Return functions from wildcards to conditions, by path pattern of metric files.

        Unlike the plan, they also accept wildcards that are not in the configuration.
        """
        return {}

    @cached_property
    def plan(self) -> Plan:
        """Runs of the configuration, and its other metric files."""
        plan = make_plan(self.configured_runs(), self.project, self.Settings, self.lacks)
        return replace(plan, others=self.other_metrics(plan))

    def archived_models(self) -> set[str]:
        """Return the models whose runs all come from archives, so that no weights are needed."""
        return self.plan.archived_models()

    def items(self) -> Items | None:
        """Return the specification of the items, or None if the study does not export them."""
        return None

    def other_targets(self) -> list[str]:
        """Return targets other than tables, figures and items."""
        return []

    def rules_files(self) -> list[str]:
        """Return the absolute path of the study's `rules.smk` as a list; empty if there is none."""
        place = Path(__file__).with_name("studies") / self.name / "rules.smk"
        return [str(place)] if place.exists() else []

    def targets(self) -> list[str]:
        """Return the paths of all targets of the study."""
        return [
            *(table.files["tex"] for table in self.tables()),
            *(figure.files["pdf"] for figure in self.figures()),
            *(items.files["parquet"] for items in [self.items()] if items),
            *self.other_targets(),
        ]

    def metrics(self) -> list[str]:
        """Return the metric files behind the tables, without duplicates."""
        return list(
            dict.fromkeys(name for table in self.tables() for name in self.shown[table].metrics)
        )

    def tasks(self) -> list[Task]:
        """Return all language model tasks."""
        return [task for asking in self.llm_tasks() for task in asking.tasks()]

    def question_inputs(self) -> list[str]:
        """Return the task inputs that do not depend on answers of language models."""
        paths = []
        for asking in self.llm_tasks():
            for task in asking.tasks():
                inputs = task.inputs.items()
                paths += [path for name, path in inputs if name not in asking.after_answers]
        return paths

    def planned(self, runs: Iterable[Run]) -> tuple[PlannedRun, ...]:
        """Return the rows of runs in the frame of numbers."""
        return tuple(
            PlannedRun(
                keys=run.keys,
                metrics=run.metrics,
                not_run=run.lacks,
                origin=self.origin_of(run),
            )
            for run in runs
        )

    def origin_of(self, run: Run) -> str:
        """Return where a run's predictions come from; empty if this run computes them."""
        if run.kind == "predictions":
            return EXTERNAL
        return f"archive {run.archive.name}" if run.archive else ""

    def display_inputs(
        self,
        runs: Iterable[Run] = (),
        *kinds: str,
        models: Iterable[str] = (),
        others: Iterable[str] = (),
    ) -> DisplayInputs:
        """Return the inputs of a table or figure.

        Args:
            runs: Runs to show, including those that cannot be made.
            kinds: Kinds of models; the paper's models of these kinds follow those in `models`.
            models: Names of the configured models, in order.
            others: Metric files that do not belong to one run.
        """
        planned = self.planned(runs)
        metrics = (*(run.metrics for run in planned if not run.not_run), *others)
        conditions = {path: self.plan.conditions(path) for path in metrics}
        return DisplayInputs(
            study=self.name,
            metrics=metrics,
            digests={path: digest_of(one.canonical()) for path, one in conditions.items() if one},
            runs=planned,
            models=self.describe_models(models, *kinds),
            data="own" if self.project.own_data else self.project.data,
            notes=self.notes(),
            mark=self.project.notice,
        )

    def describe_models(self, names: Iterable[str], *kinds: str) -> tuple[ModelDescription, ...]:
        """Return descriptions of models, then of the paper's other models of these kinds."""
        shown = list(dict.fromkeys(names))
        # Several entries may represent the same model of the paper, as an API and as weights.
        printed = {None, *(self.project.registry[name].published_as for name in shown)}
        absent = []
        for name in self.project.names(*kinds) if kinds else ():
            if (published_as := self.project.registry[name].published_as) not in printed:
                absent.append(name)
                printed.add(published_as)
        of_paper = {"is_configured": False, "not_run": NOT_CONFIGURED}
        return (
            *self.project.describe_models(shown),
            *(one.model_copy(update=of_paper) for one in self.project.describe_models(absent)),
        )

    def items_of(
        self, runs: Iterable[Run], models: Iterable[str], behind: Iterable[str], **files: str
    ) -> Items:
        """Return the specification of the items of some runs.

        The class of the rows is `<Study>Item` in the module `items` of the study's package.
        """
        given = self.display_inputs(runs, models=models)
        # Notes of a study, such as who wrote variants, are about its tables.
        notes = (SAMPLE_NOTE,) if self.project.is_sample else ()
        return Items(
            study=self.name,
            record=f"pieline.studies.{self.name}.items:{self.name.title()}Item",
            display_inputs=given.model_copy(update={"files": files, "notes": notes}),
            behind=tuple(dict.fromkeys(behind)),
        )

    def prediction_files(self, model: str) -> list[PredictionFile]:
        """Return the entries of a model's external predictions for this study.

        The list is empty for models of other kinds.
        """
        entry = self.project.entry(model)
        return entry.files_for(self.name) if isinstance(entry, PredictionsEntry) else []

    def prediction_file(
        self, model: str, setting: str, seed: str, language: str | None = None
    ) -> PredictionFile:
        """Return the entry of the external predictions of one run.

        Raises:
            UserError: The model has no external predictions of this run.
        """
        for one in self.prediction_files(model):
            if (one.setting, one.seed, one.language) == (setting, int(seed), language):
                return one
        raise UserError(f"no predictions for setting {setting!r}, seed {seed}", where=model)

    def external_settings(self) -> set[str]:
        """Return the names of the settings of all external predictions for this study."""
        return {
            one.setting
            for name in self.project.names("predictions")
            for one in self.prediction_files(name)
        }

    def mark_own_data(self, conditions: Conditions) -> Conditions:
        """Return the conditions, with a deviation if the user's own data is used."""
        if not self.project.own_data:
            return conditions
        return conditions.with_own_data(self.project.own_label, self.paper)

    def mark_data(self, conditions: Conditions) -> Conditions:
        """Return the conditions, with deviations for the user's own data and for limited data."""
        marked, limit = self.mark_own_data(conditions), self.project.limit
        return marked.with_limit(limit) if limit else marked

    def prompt_digests(self, *files: str) -> dict[str, str]:
        """Return the digests of prompt files by file name."""
        return {Path(file).name: load_prompt(file).digest for file in files}

    def reworded(self, digests: Mapping[str, str]) -> list[str]:
        """Return a deviation for each prompt, given by name and digest, that is not the paper's."""
        printed = self.project.printed_prompts
        return [
            REWORDED_PROMPT.format(name)
            for name, digest in digests.items()
            if digest != printed.get(f"{self.name}/{name}")
        ]

    def as_sent(
        self,
        model: str,
        parameters: Frozen,
        *,
        withheld: Collection[str] = (),
        ignored: Collection[str] = (),
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the parameters that are sent to a model, and their deviations from the paper.

        A parameter that the model does not accept is None, and fields that are always sent
        (`LLMEntry.defaults`) are included. A default that replaces None is not a deviation.

        Args:
            model: Name of a language model.
            parameters: Request parameters and other settings of the same section.
            withheld: Names of parameters that the study does not send to this model; they are no
                deviations, because the paper does not state whether it sent them.
            ignored: Names of settings that affect no number.
        """
        values = parameters.model_dump()
        requested = {name: values[name] for name in get_args(Parameter) if name in values}
        kept = {name: value for name, value in requested.items() if name not in withheld}
        sent, _ = self.project.language_model(model).split_parameters(kept)
        lacking = {name for name, value in kept.items() if value is not None and name not in sent}
        effective = parameters.model_copy(update=dict.fromkeys(lacking))
        values |= {name: sent.get(name) for name in requested}
        return values, deviations(effective, ignored={*withheld, *ignored})

    def external_conditions(self, **settings: Any) -> Conditions:
        """Return the conditions of external predictions; their model's weights are unknown."""
        return Conditions(settings=settings, deviations=(f"{EXTERNAL} predictions",))

    def _check_external(self, names: Iterable[str], *, where: str) -> None:
        """Raise a `UserError` if external predictions are missing or two of their files are equal.

        Models of other kinds are ignored.
        """
        seen: dict[str, str] = {}
        for name in names:
            if self.project.entry(name).kind != "predictions":
                continue
            if not (files := self.prediction_files(name)):
                raise UserError(
                    f"{name!r} has no predictions for {self.name}",
                    where=where,
                    hint=f"add files with study: {self.name} to its entry",
                )
            for one in files:
                if not Path(one.file).is_file():
                    raise UserError(
                        f"no such file: {one.file}",
                        where=f"{self.project.entry_file(name)}: {name}",
                        hint=f"correct the path (relative to {Path.cwd()})",
                    )
                key = predictions_key(one.file)
                if key in seen:
                    raise UserError(
                        f"{one.file} has the same predictions as {seen[key]}",
                        where=f"{where}: {name}",
                        hint="give each run its own predictions",
                    )
                seen[key] = one.file

    def check_models(self, names: Collection[str], accepted: ModelKinds, *, where: str) -> None:
        """Raise a `UserError` if a model is unknown, of another kind, or invalid.

        See `Project.check_folder`.

        Args:
            names: Model names.
            accepted: Accepted kinds.
            where: Setting that names the models.
        """
        usable = self.project.names(*accepted.kinds)
        for name in names:
            if name not in self.project.registry:
                hint = nearest(name, usable)
                raise UserError(f"unknown model {name!r}", where=where, hint=hint)
            if name not in usable:
                raise UserError(
                    f"model {name!r} is of kind {self.project.registry[name].kind!r}",
                    where=where,
                    hint=f"this study accepts {' and '.join(sorted(accepted.kinds))}",
                )
            if accepted.have_weights and isinstance(self.project.registry[name], ApiEmbedderEntry):
                raise UserError(
                    f"{name!r} is an API model", where=where, hint="choose a model with weights"
                )
            self.project.check_folder(name)
        self._check_external(names, where=where)
