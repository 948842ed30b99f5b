"""What a study is: its settings, what it asks of language models, its tables and figures.

A study declares itself once, in `pieline.studies.<name>.study`. Rules, estimate, results page,
claims, document, provenance and SLURM's groups read that declaration.
"""

import filecmp
import inspect
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import Field

from pieline.archives.manifest import METRICS, PREDICTIONS, Archive, below_project
from pieline.archives.matching import Offer, Taking, offer
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError, nearest, pluralize
from pieline.core.evidence import evidence_of
from pieline.core.files import sha256
from pieline.core.settings import Settings
from pieline.core.upstream import UpstreamFile, load_upstream
from pieline.core.yamls import read_mapping, read_yaml
from pieline.llm.obstacles import obstacles
from pieline.llm.prompts import load_prompt
from pieline.llm.settings import LLMSettings
from pieline.llm.task import Task
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import CheckpointEntry
from pieline.models.llm import LLMEntry
from pieline.models.predictions import PredictionFile, PredictionsEntry
from pieline.models.rankers import RerankerEntry
from pieline.models.reference import Specs, entry_deviations, load_reference
from pieline.models.registry import AnyEntry, Registry
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription

S = TypeVar("S", bound=Settings)

NOT_CONFIGURED = "not in this configuration"
"""Why a model of the paper has no row: the configuration does not name it."""
OWN_PROMPT = "the prompt is {}, none of the paper's"
"""How a setting of the user's own deviates."""
REWORDED_PROMPT = "the prompt {} is not the paper's wording"
"""How a changed prompt file deviates."""
MADE_ELSEWHERE = "made elsewhere"
"""What marks predictions that no job of this run made, wherever a model's label stands."""


def match_path(pattern: str, path: str) -> dict[str, str] | None:
    """The wildcards with which a pattern gives a path; None if it does not."""
    regex = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
    found = re.fullmatch(regex, path)
    return found and found.groupdict()


def alternatives(names: Iterable[str]) -> str:
    """A wildcard constraint that matches exactly these names."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def raw_name(path: str) -> str:
    """Name of a raw file in data/upstream.yaml and in a mirror."""
    return path.removeprefix("results/raw/")


def _model_of(metrics: str) -> str:
    """Return the name of the base model in the path of a metric file."""
    return Path(metrics).parts[-3].partition("+")[0]


def own_name(folder: str) -> str:
    """What data of the user's own are called: their folder's name, wherever it lies."""
    return Path(folder).resolve().name


@dataclass(frozen=True)
class Run:
    """What every study knows of a run besides its own settings.

    Attributes:
        registry: the models that exist.
        llm: how language models may be asked.
        data: our sample corpora, the real public files, or the user's own.
        mirror: folder that holds real files.
        root: folder of the project, as seen from the working directory.
        listed: the list of public files, if it is not the project's.
        own_data: folder that holds the user's own files, if the data are those.
        archives: of runs that were made before, which are taken where they are what is asked for.
    """

    registry: Registry
    llm: LLMSettings
    data: Literal["sample", "released", "own"] = "sample"
    mirror: str | None = None
    root: Path = Path()
    listed: Path | None = None
    own_data: str | None = None
    archives: tuple[Archive, ...] = ()

    @property
    def is_sample(self) -> bool:
        """Whether the data are our own small corpora."""
        return self.data == "sample"

    @property
    def own_label(self) -> str:
        """What data of the user's own are called, by their folder; empty if the data are others."""
        return f"own data: {own_name(self.own_data)}" if self.own_data else ""

    @property
    def upstream(self) -> str:
        """The list of public files with their digests."""
        return str(self.listed or self.root / "data" / "upstream.yaml")

    @cached_property
    def public_files(self) -> Mapping[str, UpstreamFile]:
        """What that list says, read once: every raw file of a plan is looked up in it.

        Raises:
            UserError: names the file and the entry that is wrong.
        """
        return load_upstream(self.upstream)

    @cached_property
    def printed_prompts(self) -> Mapping[str, str]:
        """The digest of each prompt that a paper prints, by its path below prompts/."""
        hint = "write one line PATH: DIGEST for each prompt"
        return read_mapping(self.here("published/prompts.yaml"), hint=hint)

    @cached_property
    def reference(self) -> Specs:
        """What the project's entries of the papers' models compute with."""
        return load_reference(self.here("published/model_entries.json"))

    def changed_entry(self, model: str) -> tuple[str, ...]:
        """How a model's entry differs from the project's entry of the paper's model."""
        # The models of a rehearsal all stand in for the papers'.
        return () if self.listed else entry_deviations(self.entry(model), self.reference)

    def here(self, *parts: str) -> str:
        """A file of the project, as seen from the working directory."""
        return str(self.root.joinpath(*parts))

    def named_file(self, path: str) -> str:
        """A file that a configuration names: of the working directory, or else of the project."""
        return path if Path(path).exists() else self.here(path)

    def recordings(self, *parts: str) -> str:
        """A file of recorded answers: no output of any rule, so that nothing deletes it."""
        return self.here(str(self.llm.recordings_folder), *parts)

    def can_be_had(self, name: str) -> bool:
        """Whether a raw file can be had: a folder may lack some, and some have no public URL.

        Of a file that the list does not name nothing is known against it.
        """
        if folder := self.own_data or self.mirror:
            return Path(folder, name).exists()
        known = self.public_files.get(name)
        return known is None or known.url is not None

    def local(self, name: str) -> list[str]:
        """The file that a raw file is a copy of, if it is the sample's or the user's own."""
        if self.own_data:
            return [str(Path(self.own_data, name))]
        return [self.here("data/sample", name)] if self.is_sample else []

    @cached_property
    def _digests(self) -> dict[str, str | None]:
        return {}

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file that no job makes, by its path below the project.

        Empty if it is not known before a download, None if there is no such file.
        Of a raw file it is that of the file which it is a copy of, or the one that is listed.
        """
        if path not in self._digests:
            self._digests[path] = self._digest(path)
        return self._digests[path]

    def _digest(self, path: str) -> str | None:
        name, is_raw = raw_name(path), path.startswith("results/raw/")
        places = self.local(name) if is_raw else [self.here(path), path]
        listed = self.public_files.get(name) if is_raw and not places else None
        if listed and listed.sha256:
            return listed.sha256
        if is_raw and self.mirror and not places:
            places = [str(Path(self.mirror, name))]
        there = (sha256(place) for place in places if Path(place).is_file())
        return next(there, "" if listed and listed.url and not self.mirror else None)

    def names(self, *kinds: str) -> list[str]:
        """The models of these kinds, in the order of models.yaml."""
        return [name for name, entry in self.registry.items() if entry.kind in kinds]

    def constraint(self, *kinds: str) -> str:
        """A wildcard constraint that matches the models of these kinds."""
        return alternatives(self.names(*kinds))

    def entry(self, model: str) -> AnyEntry:
        """The entry of a model; a fine-tuned one is called model+training mode+loss."""
        return self.registry[model.split("+", maxsplit=1)[0]]

    def entry_file(self, model: str) -> str:
        """The file that has the entry of a model."""
        own = self.here("models.local.yaml")
        return own if Path(own).exists() and model in read_yaml(own) else self.here("models.yaml")

    def check_folder(self, model: str) -> None:
        """Raise a `UserError` for a checkpoint of the user's own that is not in its place."""
        entry = self.entry(model)
        if not isinstance(entry, CheckpointEntry):
            return
        where = f"{self.entry_file(model)}: {model}"
        folders = {"path": entry.path if entry.source == "folder" else None}
        folders["adapter"] = entry.adapter if isinstance(entry, EmbedderEntry) else None
        for name, folder in folders.items():
            if folder and not Path(folder).exists():
                raise UserError(
                    f"no such folder: {folder}",
                    where=where,
                    hint=f"correct {name} (a relative path counts from {Path.cwd()})",
                )
        is_here = Path(entry.checkpoint, "config.json").exists()
        if entry.source == "hub" and is_here and not entry.revision:
            raise UserError(
                f"checkpoint {entry.checkpoint!r} is a folder here",
                where=where,
                hint="write source: folder and path, or pin the revision of that repository",
            )

    def language_model(self, model: str) -> LLMEntry:
        """The entry of a language model.

        Raises:
            UserError: the model is of another kind.
        """
        entry = self.registry[model]
        if not isinstance(entry, LLMEntry):
            raise UserError(f"{model!r} is of kind {entry.kind!r}", hint="name a language model")
        return entry

    def unanswered(self, model: str, recordings: str) -> str:
        """Why no answer of a language model can be had, empty if some can.

        Args:
            model: its name.
            recordings: the file that its answers to one run are recorded in.
        """
        path = Path(recordings)
        if path.exists() and path.stat().st_size:
            return ""
        found = next(obstacles(self.language_model(model), self.llm), None)
        return f"nothing is recorded, and {found.what}" if found else ""

    def unpacked_weights(self, model: str) -> list[str]:
        """The folder of a model's unpacked weights, if they come as GGUF or as a pickle."""
        entry = self.entry(model)
        unpacked = isinstance(entry, CheckpointEntry) and entry.must_be_unpacked
        return [f"results/raw/weights/{model}"] if unpacked else []

    def weights_files(self, model: str) -> list[str]:
        """The files of a local checkpoint or adapter, so that a job is stale if one changes."""
        entry = self.entry(model)
        own = isinstance(entry, CheckpointEntry) and entry.source == "folder"
        places = [Path(str(vars(entry)["path"]))] if own else []
        places += (
            [Path(entry.adapter)] if isinstance(entry, EmbedderEntry) and entry.adapter else []
        )
        files = {file for place in places for file in (place, *place.rglob("*"))}
        return sorted(str(file) for file in files if file.is_file())

    def described(
        self, names: Iterable[str], marks: Mapping[str, str] = {}
    ) -> tuple[ModelDescription, ...]:
        """What tables say of some models; `marks` follow the label of those that have one."""
        fields = set(ModelDescription.model_fields) - {"name"}
        said = {name: self.registry[name].model_dump(include=fields) for name in names}
        for name, of_model in said.items():
            entry = self.registry[name]
            external = isinstance(entry, PredictionsEntry)
            if isinstance(entry, RerankerEntry):
                of_model["label"] += f" (over {self.registry[entry.first_stage].label})"
            if mark := MADE_ELSEWHERE if external else marks.get(name):
                of_model["label"] += f" ({mark})"
        return tuple(ModelDescription(name=name, **of_model) for name, of_model in said.items())


@dataclass(frozen=True)
class Display:
    """A table or figure: where the paper has it, and the function that makes it.

    Attributes:
        name: of its files.
        place: in the paper ("Table 2"), or `not in the paper`.
        caption: one sentence for page and report.
        maker: `module:function`; takes `DisplayInputs` and returns a `TableContent` or a matplotlib
            figure. Only named, so that reading a declaration loads no plotting.
        given: what it is made from; no part of its JSON (see `pieline.results.displays`).
    """

    kind: ClassVar[Literal["table", "figure"]]
    folders: ClassVar[Mapping[str, str]]
    """Where its files lie below paper_tables/, by their ending."""
    name: str
    place: str
    caption: str
    maker: str
    given: Annotated[DisplayInputs, Field(exclude=True)] = field(default_factory=DisplayInputs)

    @property
    def title(self) -> str:
        """Its place in the paper; of what no paper has, what it shows."""
        return self.caption.rstrip(".") if self.place == "not in the paper" else self.place

    @property
    def files(self) -> dict[str, str]:
        """Its files by ending."""
        return {
            end: f"paper_tables/{folder}{self.name}.{end}" for end, folder in self.folders.items()
        }


class Table(Display):
    """A table: as LaTeX, as CSV, and as HTML for the results page."""

    kind = "table"
    folders: ClassVar = {"csv": "", "html": "html/", "tex": ""}


class Figure(Display):
    """A figure: as PDF for LaTeX, and as PNG for the results page."""

    kind = "figure"
    folders: ClassVar = {"pdf": "figures/", "png": "figures/"}


@dataclass(frozen=True)
class Items:
    """What a study's runs say of each sentence or query, as files to take away.

    Attributes:
        study: names the files.
        record: `module:class` of a row, a `pieline.reporting.items.Item` that makes them all.
        given: the metric files that the rows count in, and what they are made from besides.
        behind: what else is read.
    """

    study: str
    record: str
    given: DisplayInputs
    behind: tuple[str, ...]

    @property
    def files(self) -> dict[str, str]:
        """Its files by ending."""
        return {end: f"results/items/{self.study}.{end}" for end in ("parquet", "csv.gz")}


@dataclass(frozen=True)
class LLMTaskSpec:
    """One kind of task of a study, for the rule that asks.

    Attributes:
        name: of the rule.
        task: the class.
        outputs: file names with wildcards, by name.
        make: the task of some wildcards.
        runs: the wildcards of every run that the configuration names, also of those that are left
            out because they cannot be asked and nothing is recorded.
        constraints: of the wildcards.
        minutes: time that a cluster should grant at first.
        after_answers: names of the inputs that are made from other answers, so that its questions
            are not known before those are there.
        recordings: pattern of the files that hold the answers behind its `predictions`, if it
            makes such.
    """

    name: str
    task: type[Task]
    outputs: Mapping[str, str]
    make: Callable[..., Task]
    runs: Sequence[Mapping[str, str]]
    constraints: Mapping[str, str] = field(default_factory=dict)
    minutes: int = 240
    after_answers: Collection[str] = ()
    recordings: str = ""

    def written(self, **wildcards: str) -> dict[str, str]:
        """The outputs of some wildcards."""
        return {name: pattern.format(**wildcards) for name, pattern in self.outputs.items()}

    @property
    def evidence(self) -> str:
        """What the outputs were made from, as a pattern."""
        return evidence_of(next(iter(self.outputs.values())))

    def first_output(self) -> str:
        """The first output below results/, without its ending: names the job's log."""
        return next(iter(self.outputs.values())).removeprefix("results/").rsplit(".", 1)[0]

    def tasks(self) -> list[Task]:
        """The tasks of all runs."""
        return [self.make(**wildcards) for wildcards in self.runs]


class Study(ABC, Generic[S]):
    """One paper: everything that the workflow needs to know of it.

    Args:
        settings: its section of config.yaml.
        run: what it shares with the others.
        chosen: whether the configuration names it, so that its settings must make sense.
    """

    name: ClassVar[str]
    """Of its package, its section of config.yaml and its folders in results/."""
    paper: ClassVar[str]
    """The paper's title for readers."""
    Settings: ClassVar[type[Settings]]

    def __init__(self, settings: S, run: Run, *, chosen: bool = True) -> None:
        self.settings = settings
        self.run = run
        if chosen:
            self.check(f"config.yaml: {self.name}")

    @abstractmethod
    def check(self, where: str) -> None:
        """Raise a `UserError` for settings that cannot be run: unknown models and the like."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """The tables of this configuration, in the order of the paper."""

    def figures(self) -> list[Figure]:
        """The figures of this configuration, in the order of the paper."""
        return []

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """What is asked of language models."""
        return []

    def why_no_table(self, name: str) -> str:
        """Why this configuration makes no table of this name."""
        return NOT_CONFIGURED

    @abstractmethod
    def models(self) -> list[str]:
        """The models that the configuration names."""

    @abstractmethod
    def raw_files(self) -> list[str]:
        """The raw files that the configuration's results come from."""

    def check_own_data(self) -> None:
        """Raise a `UserError` for a raw file that the user's own data lack."""
        if not (place := self.run.own_data):
            return
        raw = self.raw_files()
        names = [raw_name(path) for path in raw if path.startswith("results/raw/")]
        if absent := [name for name in names if not self.run.can_be_had(name)]:
            corpora = sorted({name.partition("/")[0].removesuffix("-jam") for name in absent})
            raise UserError(
                f"no {' and no '.join(absent)}, which {self.name} needs as it is configured",
                where=place,
                hint="see " + " and ".join(f"data/sample/{name}/README.md" for name in corpora),
            )

    def metric_conditions(self) -> Mapping[str, Callable[..., str]]:
        """By pattern of metric files: the conditions of some wildcards, as canonical JSON."""
        return {}

    def asked(self, path: str) -> str:
        """The conditions under which a metric file should be computed; empty for other files."""
        for pattern, conditions in self.metric_conditions().items():
            if (wildcards := match_path(pattern, path)) is not None:
                return conditions(**wildcards)
        return ""

    def run_metrics(self) -> list[str]:
        """The metric files of all runs that the configuration names, also of those left out."""
        return []

    def read_for(self, metrics: str) -> Mapping[str, bool]:
        """Whether a run comes from some files, as far as its conditions do not tell."""
        return {}

    def made_together(self, metrics: str) -> list[str]:
        """The metric files of the runs that one job makes, this one among them."""
        return [metrics]

    def offer_of(self, metrics: str) -> Offer | None:
        """What archives have of the run of a metric file."""
        if not self.run.archives:
            return None
        read = {below_project(name): is_read for name, is_read in self.read_for(metrics).items()}
        asked = self.asked(metrics)
        return offer(metrics, asked, self.run.archives, self.run.digest, read)

    @cached_property
    def offers(self) -> dict[str, Offer]:
        """What archives have of the configuration's runs, by metric file."""
        return {path: found for path in self.run_metrics() if (found := self.offer_of(path))}

    @cached_property
    def archived(self) -> dict[str, Offer]:
        """Those of them that are taken: equal to what is asked for, as are all of their job."""
        equal = {path: found for path, found in self.offers.items() if not found.differences}
        return {
            path: found
            for path, found in equal.items()
            if equal.keys() >= {*self.made_together(path)}
        }

    def takings(self) -> list[Taking]:
        """What jobs take from archives: one for each model."""
        groups: dict[tuple[str, str], list[Offer]] = {}
        for path, found in self.archived.items():
            groups.setdefault((Path(path).parts[-3], found.archive.name), []).append(found)
        # Each file is taken once, with its own run: archives may have it beside others as well.
        owner = {evidence_of(path): path for path in self.run_metrics()}
        rules: Counter[str] = Counter()
        takings = []
        for (model, archive), offers in groups.items():
            files: dict[str, str] = {}
            for found in offers:
                for name in found.run.files:
                    of = name if name.endswith(".evidence.json") else evidence_of(name)
                    key = of.replace(PREDICTIONS, METRICS, 1)
                    if owner.setdefault(key, found.run.metrics) == found.run.metrics:
                        files[name] = found.archive.manifest.files[name]
            rule = re.sub(r"\W", "_", f"take_{self.name}_{model}_from_{archive}")
            rules[rule] += 1
            takings.append(
                Taking(
                    rule=f"{rule}_{rules[rule]}" if rules[rule] > 1 else rule,
                    archive=offers[0].archive.path,
                    files=files,
                    recordings={
                        found.run.recordings: self._recordings_of(found.run.predictions)
                        for found in offers
                        if found.run.recordings
                    },
                )
            )
        return takings

    def _recordings_of(self, predictions: str) -> str:
        """The file of the recorded answers that predictions are read from."""
        for spec in self.llm_tasks():
            pattern = spec.outputs.get("predictions", "")
            if (wildcards := match_path(pattern, predictions)) is not None:
                return spec.make(**wildcards).recordings
        raise ValueError(f"no answers are behind {predictions}")

    def archive_notes(self) -> list[str]:
        """What is taken from archives and what is not, a line for each reason."""
        taken = Counter(found.archive.name for found in self.archived.values())
        lines = [
            f"taken from archive {name}: {pluralize(count, 'run')} of {self.name}"
            for name, count in taken.items()
        ]
        reasons: dict[str, list[str]] = {}
        for path, found in self.offers.items():
            if path not in self.archived:
                reason = found.differences[0] if found.differences else "its job makes others, too"
                reasons.setdefault(f"{found.archive.name} ({reason})", []).append(path)
        return lines + [
            f"not taken from archive {reason}: {pluralize(len(paths), 'run')}, such as {paths[0]}"
            for reason, paths in reasons.items()
        ]

    def taken_models(self) -> set[str]:
        """The models all of whose runs are taken from archives, so that nothing loads them."""
        made = {_model_of(path) for path in self.run_metrics() if path not in self.archived}
        return {_model_of(path) for path in self.archived} - made

    def marks(self) -> dict[str, str]:
        """What follows the labels of models whose runs, or some of them, are from an archive."""
        runs = Counter(map(_model_of, self.run_metrics()))
        taken: dict[str, list[Offer]] = {}
        for path, found in self.archived.items():
            taken.setdefault(_model_of(path), []).append(found)
        return {
            model: ("" if len(offers) == runs[model] else "partly ")
            + "from archive "
            + ", ".join(sorted({found.archive.name for found in offers}))
            for model, offers in taken.items()
        }

    def described(self, names: Iterable[str]) -> tuple[ModelDescription, ...]:
        """What tables say of some models."""
        return self.run.described(names, self.marks())

    def items(self) -> Items | None:
        """What each run says of each sentence or query, if the study gives it away."""
        return None

    def other_targets(self) -> list[str]:
        """What a run makes besides tables, figures and items."""
        return []

    def rules_files(self) -> list[str]:
        """The study's own rules, if its package has a file `rules.smk`; absolute, for `include`."""
        place = Path(inspect.getfile(type(self))).with_name("rules.smk")
        return [str(place)] if place.exists() else []

    def behind(self, metrics: str) -> list[str]:
        """Predictions and datasets behind a metric file, which the results page shows."""
        return []

    def targets(self) -> list[str]:
        """Everything that the study makes."""
        return [
            *(table.files["tex"] for table in self.tables()),
            *(figure.files["pdf"] for figure in self.figures()),
            *(items.files["parquet"] for items in [self.items()] if items),
            *self.other_targets(),
        ]

    def metrics(self) -> list[str]:
        """The metric files that numbers of tables come from, each once."""
        return list(dict.fromkeys(name for table in self.tables() for name in table.given.metrics))

    def tasks(self) -> list[Task]:
        """Everything that is asked of language models."""
        return [task for asking in self.llm_tasks() for task in asking.tasks()]

    def questions_made_from(self) -> list[str]:
        """The files that questions are made from, as far as they come from no answer."""
        return [
            path
            for asking in self.llm_tasks()
            for task in asking.tasks()
            for name, path in task.inputs.items()
            if name not in asking.after_answers
        ]

    def left_out(self) -> dict[str, str]:
        """Why configured runs are not made, by run (see `DisplayInputs.not_run`)."""
        return {}

    def given(self, metrics: Iterable[str], models: Iterable[str], *kinds: str) -> DisplayInputs:
        """What a table or figure of some models is made from.

        The paper's other models of these kinds are named, with the reason why they were not run.
        """
        shown = list(models)
        # Several entries may stand for one model of the paper: a provider's, and its weights.
        told = {None, *(self.run.registry[name].published_as for name in shown)}
        absent = []
        for name in self.run.names(*kinds):
            printed = self.run.registry[name].published_as
            if printed not in told:
                absent.append(name)
                told.add(printed)
        return DisplayInputs(
            metrics=tuple(metrics),
            models=self.described(shown),
            absent=self.run.described(absent),
            not_run=dict.fromkeys(absent, NOT_CONFIGURED) | self.left_out(),
        )

    def items_of(
        self, metrics: Iterable[str], models: Iterable[str], behind: Iterable[str], **files: str
    ) -> Items:
        """The items of some runs; the record is `<Study>Item` in the package's module `items`."""
        return Items(
            study=self.name,
            record=f"{type(self).__module__.rpartition('.')[0]}.items:{self.name.title()}Item",
            given=DisplayInputs(
                metrics=tuple(metrics),
                files=files,
                models=self.described(models),
                notes=(SAMPLE_NOTE,) if self.run.is_sample else (),
            ),
            behind=tuple(dict.fromkeys(behind)),
        )

    def taken(self, model: str) -> list[PredictionFile]:
        """The runs of this study that a model's predictions were made of elsewhere."""
        entry = self.run.entry(model)
        return entry.of(self.name) if isinstance(entry, PredictionsEntry) else []

    def taken_run(
        self, model: str, setting: str, seed: str, language: str | None = None
    ) -> PredictionFile:
        """One of these runs."""
        for one in self.taken(model):
            if (one.setting, one.seed, one.language) == (setting, int(seed), language):
                return one
        raise UserError(f"no predictions in setting {setting!r}, seed {seed}", where=model)

    def taken_settings(self) -> set[str]:
        """The settings of all these runs, whatever the model."""
        return {one.setting for name in self.run.names("predictions") for one in self.taken(name)}

    def of_data(self, conditions: Conditions) -> Conditions:
        """The same conditions; on data of the user's own they say so, and deviate."""
        if not self.run.own_data:
            return conditions
        return conditions.of_own_data(self.run.own_label, self.paper)

    def prompt_digests(self, *files: str) -> dict[str, str]:
        """The digests of prompt files, by their name."""
        return {Path(file).name: load_prompt(file).digest for file in files}

    def reworded(self, digests: Mapping[str, str]) -> list[str]:
        """The deviations of this study's prompts whose wording is not the printed one."""
        printed = self.run.printed_prompts
        return [
            REWORDED_PROMPT.format(name)
            for name, digest in digests.items()
            if digest != printed.get(f"{self.name}/{name}")
        ]

    def elsewhere(self, **settings: Any) -> Conditions:
        """The conditions of such predictions: of what made them nothing is known."""
        return Conditions(settings=settings, deviations=(f"predictions {MADE_ELSEWHERE}",))

    def check_taken(self, names: Iterable[str], *, where: str) -> None:
        """Raise a `UserError` for predictions made elsewhere that are not there, or there twice."""
        seen: list[str] = []
        for name in names:
            if self.run.entry(name).kind != "predictions":
                continue
            if not (files := self.taken(name)):
                raise UserError(
                    f"{name!r} has no predictions for {self.name}",
                    where=where,
                    hint=f"add files with study: {self.name} to its entry",
                )
            for one in files:
                if not Path(one.file).is_file():
                    raise UserError(
                        f"no such file: {one.file}",
                        where=f"{self.run.entry_file(name)}: {name}",
                        hint=f"correct it (a relative path counts from {Path.cwd()})",
                    )
                for other in seen:
                    if filecmp.cmp(other, one.file, shallow=False):
                        raise UserError(
                            f"{one.file} is a copy of {other}",
                            where=f"{where}: {name}",
                            hint="give each run its own predictions",
                        )
                seen.append(one.file)

    def check_models(
        self, names: Iterable[str], *kinds: str, where: str, have_weights: bool = False
    ) -> None:
        """Raise a `UserError` for a name or a kind that cannot be used, or a missing checkpoint.

        Args:
            names: of models.
            kinds: that can be used.
            where: the setting that names them.
            have_weights: whether an embedder behind an API cannot be used.
        """
        usable = self.run.names(*kinds)
        for name in names:
            if name not in self.run.registry:
                hint = nearest(name, usable)
                raise UserError(f"unknown model {name!r}", where=where, hint=hint)
            if name not in usable:
                raise UserError(
                    f"model {name!r} is of kind {self.run.registry[name].kind!r}",
                    where=where,
                    hint=f"this study takes {' and '.join(sorted(kinds))}",
                )
            if have_weights and isinstance(self.run.registry[name], ApiEmbedderEntry):
                raise UserError(
                    f"{name!r} is behind an API", where=where, hint="name a model with weights"
                )
            self.run.check_folder(name)
