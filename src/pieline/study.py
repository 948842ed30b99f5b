"""Base class of studies, which declare their settings, model queries, tables and figures.

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
"""Deviation for a custom prompt; the placeholder is the name of the prompt."""
REWORDED_PROMPT = "the prompt {} is not the paper's wording"
"""Deviation for an edited prompt file; the placeholder is the name of the file."""


@dataclass(frozen=True)
class Items:
    """Specification of the export of a study's predictions, one row per sentence or query.

    Attributes:
        study: Name of the study, which determines the file names.
        record: `module:class` of the rows: a subclass of `pieline.reporting.items.Item`, which
            creates the rows.
        display_inputs: Metric files of the exported runs, with the same fields as for a table.
        behind: Other files from which rows are made, such as predictions.
    """

    study: str
    record: str
    display_inputs: DisplayInputs
    behind: tuple[str, ...]

    @property
    def files(self) -> dict[str, str]:
        """Path of each output file, by extension."""
        return {end: f"results/items/{self.study}.{end}" for end in ("parquet", "csv.gz")}


@dataclass(frozen=True)
class LLMTaskSpec:
    """A kind of language model tasks, which one rule in `rules/ask.smk` runs.

    Attributes:
        name: Name of the rule.
        task: Class of the tasks.
        make: Function that creates the task for given wildcards.
        runs: Wildcards of all configured runs, including runs that are left out because the model
            cannot be queried and nothing is recorded.
        after_answers: Names of the inputs that are made from answers to other questions. Without
            these answers, the questions of this kind are unknown.
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
        chosen: Whether the configuration names the study. If not, the settings are not checked.
    """

    name: ClassVar[str]
    """Name of the study's package, section in config.yaml, and folders in results/."""
    paper: ClassVar[str]
    """Title of the paper, as shown to readers."""
    Settings: ClassVar[type[Settings]]
    displays: ClassVar[tuple[Display, ...]] = ()
    """Tables, then figures that the study can show, each in the paper's order."""

    main_tables: ClassVar[tuple[str, ...]] = ()
    """Names of the tables with the main scores of every model."""

    main_measures: ClassVar[tuple[str, ...]] = ()
    """Names of the main scores, the most important one first."""

    reference_models: ClassVar[tuple[str, ...]] = ()
    """Models with which other models are compared; differences are relative to the first model."""

    def __init__(self, settings: S, project: Project, *, chosen: bool = True) -> None:
        self.settings = settings
        self.project = project
        if chosen:
            where = f"config.yaml: {self.name}"
            for setting, names, accepted in named_models(settings):
                self.check_models(names, accepted, where=f"{where}.{setting}")
            self.check(where)

    def check(self, where: str) -> None:
        """Raise a `UserError` for invalid settings, except names of models (see `check_models`)."""

    @cached_property
    def shown(self) -> dict[Display, DisplayInputs]:
        """Inputs of each table and figure that this configuration makes, in the paper's order."""
        inputs = {display: display.inputs_in(self) for display in self.displays}
        return {
            display: display_inputs
            for display, display_inputs in inputs.items()
            if display_inputs is not None
        }

    def tables(self) -> list[Table]:
        """Return the tables of this configuration in the paper's order."""
        return [display for display in self.shown if isinstance(display, Table)]

    def figures(self) -> list[Figure]:
        """Return the figures of this configuration in the paper's order."""
        return [display for display in self.shown if isinstance(display, Figure)]

    def notes(self) -> tuple[str, ...]:
        """Return the notes below tables on data other than the paper's."""
        return (SAMPLE_NOTE,) if self.project.is_sample else ()

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specifications of the language model tasks."""
        return []

    def why_no_table(self, name: str) -> str:
        """Return the reason why this configuration does not make a table of the paper."""
        return NOT_CONFIGURED

    @abstractmethod
    def models(self) -> list[str]:
        """Return the names of the models that the configuration uses."""

    def raw_files(self) -> list[str]:
        """Return the paths of the raw files on which the results depend."""
        return []

    def check_own_data(self) -> None:
        """Raise a `UserError` if raw files are missing from the user's own data."""
        if not self.project.own_data:
            return
        raw_paths = [path for path in self.raw_files() if path.startswith("results/raw/")]
        names = [raw_name(path) for path in raw_paths]
        missing = [name for name in names if not self.project.is_available(name)]
        if missing:
            folders = {name.partition("/")[0] for name in missing}
            # The README of ID10M also describes the files of ID10M-JAM.
            corpora = sorted({folder.removesuffix("-jam") for folder in folders})
            descriptions = [f"data/sample/{corpus}/README.md" for corpus in corpora]
            raise UserError(
                f"missing {' and '.join(missing)}, required by this configuration of {self.name}",
                where=self.project.own_data,
                hint=f"see {' and '.join(descriptions)}",
            )

    def configured_runs(self) -> Iterable[Run]:
        """Return all configured runs; `make_plan` adds obstacles and conditions from archives."""
        return ()

    def impossible_runs(self, runs: Sequence[Run]) -> Mapping[str, str]:
        """Map the metric file of each run that cannot be made to the reason.

        By default, the only reason is that a language model cannot answer.
        """
        reasons: dict[str, str] = {}
        for run in runs:
            if run.kind == "llm" and not run.archive:
                reason = run.unsupported or self.project.unanswered(run.model, run.recordings)
                if reason:
                    reasons[run.metrics] = reason
        return reasons

    def other_metrics(self, plan: Plan) -> Mapping[str, Conditions]:
        """Return the conditions of each metric file that does not belong to one run, by path.

        Args:
            plan: Plan that contains only the runs.
        """
        return {}

    def conditions_by_pattern(self) -> Mapping[str, Callable[..., Conditions]]:
        """Return functions from wildcards to conditions, by path pattern of metric files.

        Unlike the plan, these functions accept wildcards that are not in the configuration.
        """
        return {}

    @cached_property
    def plan(self) -> Plan:
        """Runs of the configuration, and the metric files that do not belong to one run."""
        plan = make_plan(self.configured_runs(), self.project, self.Settings, self.impossible_runs)
        return replace(plan, others=self.other_metrics(plan))

    def archived_models(self) -> set[str]:
        """Return the models whose runs all come from archives, so that no weights are needed."""
        return self.plan.archived_models()

    def items(self) -> Items | None:
        """Return the specification of the items, or None if the study exports no items."""
        return None

    def other_targets(self) -> list[str]:
        """Return the targets of the study that are neither tables, figures nor items."""
        return []

    def rules_files(self) -> list[str]:
        """Return a list with the path of the study's `rules.smk`; empty if the file is missing."""
        path = Path(__file__).with_name("studies") / self.name / "rules.smk"
        return [str(path)] if path.exists() else []

    def targets(self) -> list[str]:
        """Return the paths of all targets of the study."""
        paths = [table.files["tex"] for table in self.tables()]
        paths += [figure.files["pdf"] for figure in self.figures()]
        if items := self.items():
            paths.append(items.files["parquet"])
        return [*paths, *self.other_targets()]

    def metrics(self) -> list[str]:
        """Return the metric files behind the tables, without duplicates."""
        paths = [path for table in self.tables() for path in self.shown[table].metrics]
        return list(dict.fromkeys(paths))

    def tasks(self) -> list[Task]:
        """Return all language model tasks of the configuration."""
        return [task for spec in self.llm_tasks() for task in spec.tasks()]

    def question_inputs(self) -> list[str]:
        """Return the paths of the task inputs that do not depend on answers of language models."""
        paths: list[str] = []
        for spec in self.llm_tasks():
            for task in spec.tasks():
                for name, path in task.inputs.items():
                    if name not in spec.after_answers:
                        paths.append(path)
        return paths

    def planned(self, runs: Iterable[Run]) -> tuple[PlannedRun, ...]:
        """Return runs in the form that tables, figures and the frame of numbers use."""
        return tuple(
            PlannedRun(
                keys=run.keys,
                metrics=run.metrics,
                not_run=run.impossible_because,
                origin=self.origin_of(run),
            )
            for run in runs
        )

    def origin_of(self, run: Run) -> str:
        """Return the source of a run's predictions; empty if jobs of this workflow compute them."""
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
            runs: Runs to show, including runs that cannot be made.
            kinds: Kinds of models. The paper's models of these kinds that are not configured are
                shown after `models`.
            models: Names of the configured models, in the order of the rows.
            others: Metric files that do not belong to one run.
        """
        planned = self.planned(runs)
        metrics = [run.metrics for run in planned if not run.not_run]
        metrics += others
        digests: dict[str, str] = {}
        for path in metrics:
            if conditions := self.plan.conditions(path):
                digests[path] = digest_of(conditions.canonical())
        return DisplayInputs(
            study=self.name,
            metrics=tuple(metrics),
            digests=digests,
            runs=planned,
            models=self.describe_models(models, *kinds),
            data="own" if self.project.own_data else self.project.data,
            notes=self.notes(),
            mark=self.project.notice,
        )

    def describe_models(self, names: Iterable[str], *kinds: str) -> tuple[ModelDescription, ...]:
        """Return descriptions of the named models, then of models of the paper that are missing.

        Models of the paper are only added if they are of one of the given kinds.
        """
        configured = list(dict.fromkeys(names))
        registry = self.project.registry
        # Several entries may represent the same model of the paper, as an API and as weights.
        represented = {registry[name].published_as for name in configured}
        only_in_paper: list[str] = []
        for name in self.project.names(*kinds):
            model_of_paper = registry[name].published_as
            if model_of_paper is not None and model_of_paper not in represented:
                only_in_paper.append(name)
                represented.add(model_of_paper)
        not_configured = {"is_configured": False, "not_run": NOT_CONFIGURED}
        missing_models = [
            description.model_copy(update=not_configured)
            for description in self.project.describe_models(only_in_paper)
        ]
        return (*self.project.describe_models(configured), *missing_models)

    def items_of(
        self, runs: Iterable[Run], models: Iterable[str], behind: Iterable[str], **files: str
    ) -> Items:
        """Return the specification of the items of runs.

        The class of the rows is `<Study>Item` in the module `items` of the study's package.

        Args:
            runs: Runs whose predictions are exported.
            models: Names of the models of these runs.
            behind: Files from which rows are made, such as predictions.
            files: Further input files, by name.
        """
        inputs = self.display_inputs(runs, models=models)
        # Other notes of a study, such as who wrote variants, are only for tables.
        notes = (SAMPLE_NOTE,) if self.project.is_sample else ()
        return Items(
            study=self.name,
            record=f"pieline.studies.{self.name}.items:{self.name.title()}Item",
            display_inputs=inputs.model_copy(update={"files": files, "notes": notes}),
            behind=tuple(dict.fromkeys(behind)),
        )

    def prediction_files(self, model: str) -> list[PredictionFile]:
        """Return the external predictions of a model for this study, one entry per run.

        The list is empty if the model is not of the kind "predictions".
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
        for entry in self.prediction_files(model):
            if (entry.setting, entry.seed, entry.language) == (setting, int(seed), language):
                return entry
        raise UserError(f"no predictions for setting {setting!r}, seed {seed}", where=model)

    def external_settings(self) -> set[str]:
        """Return the names of the settings of all external predictions for this study."""
        settings: set[str] = set()
        for model in self.project.names("predictions"):
            settings.update(entry.setting for entry in self.prediction_files(model))
        return settings

    def mark_own_data(self, conditions: Conditions) -> Conditions:
        """Return conditions, with a deviation if the user's own data is used."""
        if not self.project.own_data:
            return conditions
        return conditions.with_own_data(self.project.own_label, self.paper)

    def mark_data(self, conditions: Conditions) -> Conditions:
        """Return conditions, with deviations if the user's own data or limited data is used."""
        conditions = self.mark_own_data(conditions)
        if self.project.limit:
            return conditions.with_limit(self.project.limit)
        return conditions

    def prompt_digests(self, *files: str) -> dict[str, str]:
        """Return the digest of each prompt file, by file name."""
        return {Path(file).name: load_prompt(file).digest for file in files}

    def reworded(self, digests: Mapping[str, str]) -> list[str]:
        """Return a deviation for each prompt file that differs from the paper's prompt.

        Args:
            digests: Digest of each prompt file, by file name.
        """
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
        """Return the settings with the parameters sent to a model, and deviations from the paper.

        A parameter that the model does not accept is None. A parameter that is not set has the
        value that is always sent to the model (`LLMEntry.defaults`), if there is one; this value is
        not a deviation.

        Args:
            model: Name of a language model.
            parameters: Request parameters and other settings of the same section.
            withheld: Names of parameters that the study does not send to this model. They are not
                deviations, because the paper does not state whether it sent them.
            ignored: Names of settings that affect no number.
        """
        settings = parameters.model_dump()
        request_parameters = [name for name in get_args(Parameter) if name in settings]
        kept = {name: settings[name] for name in request_parameters if name not in withheld}
        sent, _ = self.project.language_model(model).split_parameters(kept)
        not_accepted = [
            name for name, value in kept.items() if value is not None and name not in sent
        ]
        effective = parameters.model_copy(update=dict.fromkeys(not_accepted))
        for name in request_parameters:
            settings[name] = sent.get(name)
        return settings, deviations(effective, ignored={*withheld, *ignored})

    def external_conditions(self, **settings: Any) -> Conditions:
        """Return the conditions of external predictions, whose models' weights are unknown."""
        return Conditions(settings=settings, deviations=(f"{EXTERNAL} predictions",))

    def _check_external(self, names: Iterable[str], *, where: str) -> None:
        """Check the external predictions among models; models of other kinds are ignored.

        Args:
            names: Names of the models.
            where: Setting that names the models, for error messages.

        Raises:
            UserError: A model has no predictions for this study, a file is missing, or two files
                contain the same predictions.
        """
        file_of_key: dict[str, str] = {}
        for model in names:
            if self.project.entry(model).kind != "predictions":
                continue
            files = [entry.file for entry in self.prediction_files(model)]
            if not files:
                raise UserError(
                    f"{model!r} has no predictions for {self.name}",
                    where=where,
                    hint=f"add files with study: {self.name} to its entry",
                )
            for file in files:
                if not Path(file).is_file():
                    raise UserError(
                        f"no such file: {file}",
                        where=f"{self.project.entry_file(model)}: {model}",
                        hint=f"correct the path (relative to {Path.cwd()})",
                    )
                key = predictions_key(file)
                if key in file_of_key:
                    raise UserError(
                        f"{file} has the same predictions as {file_of_key[key]}",
                        where=f"{where}: {model}",
                        hint="give each run its own predictions",
                    )
                file_of_key[key] = file

    def check_models(self, names: Collection[str], accepted: ModelKinds, *, where: str) -> None:
        """Raise a `UserError` if a model is unknown, not of an accepted kind, or invalid.

        For the files of a model, see `Project.check_folder`.

        Args:
            names: Names of the models.
            accepted: Accepted kinds.
            where: Setting that names the models, for error messages.
        """
        accepted_names = self.project.names(*accepted.kinds)
        for name in names:
            if name not in self.project.registry:
                hint = nearest(name, accepted_names)
                raise UserError(f"unknown model {name!r}", where=where, hint=hint)
            if name not in accepted_names:
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
