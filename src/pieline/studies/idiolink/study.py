"""IdioLink, a study of whether embeddings match texts by meaning despite different wording."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

from pieline.archives.matching import Extraction
from pieline.core.conditions import Conditions, deviations
from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.core.texts import text_key
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import Bm25Entry
from pieline.models.llm import LLMEntry
from pieline.models.rankers import RerankerEntry
from pieline.project import Project, alternatives, raw_name
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiolink import paths
from pieline.studies.idiolink.datasets.tuples import HARD_NEGATIVES, SOFT_NEGATIVES
from pieline.studies.idiolink.originals.domains import Collection
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.predictions.api_embedding import Embedding
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import QUERY_MODES, Document, query_scores_file
from pieline.studies.idiolink.settings import (
    PAPER_PARAMETERS,
    Bm25Tuning,
    Composition,
    FineTuning,
    IdiolinkSettings,
    Origin,
)
from pieline.studies.idiolink.training.settings import (
    Hyperparameters,
    Loss,
    TrainingSettings,
    evaluated_modes,
)
from pieline.studies.idiolink.variants.generation import Writing
from pieline.studies.idiolink.variants.votes import Validation
from pieline.study import Figure, Items, LLMTaskSpec, Study, Table, match_path

RELEASED_TUPLES = paths.RELEASED_TUPLES.format(split="train")
COLLECTIONS: tuple[Collection, ...] = get_args(Collection)
TEXT_FILES = ("indexes", "queries")
OWN_RANKERS = ("reranker", "late_interaction")
"""Kinds of ranking models that the paper does not evaluate."""
TEXT_MODES = ("sentence", "instruction_sentence")
NO_SPAN_VECTOR = "token vectors are not available"
"""Reason for skipping the span modes of a model."""


class IdiolinkStudy(Study[IdiolinkSettings]):
    """Definition of the IdioLink study: models, runs, file paths, tables and figures."""

    name = "idiolink"
    paper = "IdioLink"
    Settings = IdiolinkSettings
    query_modes = QUERY_MODES

    def __init__(
        self, settings: IdiolinkSettings, project: Project, *, chosen: bool = True
    ) -> None:
        super().__init__(settings, project, chosen=chosen)
        tuning = settings.finetuning
        self._trains = bool(tuning.models)
        # An unselected study may name models that the registry lacks.
        self._skipped = settings.leave_out | (self._unanswered() if chosen else {})
        self.settings = settings.model_copy(
            update={
                "models": self._without_skipped(settings.models),
                "finetuning": tuning.model_copy(
                    update={"models": self._without_skipped(tuning.models)}
                ),
            }
        )
        if chosen:
            self._check_archived(f"config.yaml: {self.name}")

    def _without_skipped(self, models: Iterable[str]) -> list[str]:
        return [name for name in models if name not in self._skipped]

    def _unanswered(self) -> dict[str, str]:
        """Return why API embedders, and rerankers that depend on them, cannot run, by model.

        An API embedder cannot run if its API is unavailable and its vectors are not recorded.
        """
        firsts = self.first_stages()
        reasons = {
            name: reason
            for name in self._embedding_models()
            if isinstance(self.project.registry[name], ApiEmbedderEntry)
            if (reason := self.project.unanswered(name, self._vector_recordings(name, "documents")))
        }
        dependents = {
            name: f"{first}: {reasons[first]}"
            for name, first in firsts.items()
            if first in reasons and not self._is_archived(name)
        }
        return {
            name: reason
            for name, reason in (reasons | dependents).items()
            if name in self.settings.models
        }

    def _is_archived(self, model: str) -> bool:
        """Return whether archives contain all zero-shot runs of a model, with matching settings."""
        compositions = dict.fromkeys(["full", *self.settings.compositions])
        runs = chain.from_iterable(self.metrics_files(name, [model]) for name in compositions)
        return all((offer := self.offer_of(path)) and not offer.differences for path in runs)

    def _embedding_models(self) -> list[str]:
        """Return the models to run and their first stages, except for archived models."""
        models = [name for name in self.settings.models if not self._is_archived(name)]
        firsts = self.first_stages()
        first_stages = (firsts[name] for name in models if name in firsts)
        archived = {*self.settings.models} - {*models}
        return [name for name in dict.fromkeys([*models, *first_stages]) if name not in archived]

    def left_out(self) -> dict[str, str]:
        """Return the reasons for skipping models and modes, by model or `model/mode`."""
        settings = self.settings
        without = {
            f"{model}/{mode}": NO_SPAN_VECTOR
            for model in settings.models
            if not self._has_token_vectors(model)
            for mode in settings.query_modes
            if mode.endswith("span")
        }
        return self._skipped | without

    def check(self, where: str) -> None:
        """Validate the settings for models, the dataset, its construction and fine-tuning.

        Raises:
            UserError: A setting is invalid, or a prompt file is missing.
        """
        settings, tuning = self.settings, self.settings.finetuning
        kinds = ("bm25", "embedder", *OWN_RANKERS, "predictions")
        self.check_models(settings.models, *kinds, where=f"{where}.models")
        self.check_external(settings.models, where=f"{where}.models")
        self._check_first_stages(where)
        for name in settings.models:
            for one in self.prediction_files(name):
                if one.setting not in QUERY_MODES or one.seed:
                    raise UserError(
                        f"{one.file} of {name!r} has setting {one.setting!r} and seed {one.seed}",
                        where=f"{where}.models",
                        hint=f"settings are {', '.join(QUERY_MODES)}; the seed is 0",
                    )
        self.check_models(settings.leave_out, "embedder", where=f"{where}.leave_out")
        if unknown := set(settings.leave_out).difference(settings.models, tuning.models):
            raise UserError(
                f"{min(unknown)!r} is not among the models to run",
                where=f"{where}.leave_out",
                hint="use models in idiolink.models or idiolink.finetuning.models",
            )
        for field, names in (("models", tuning.models), ("batch_sizes", tuning.batch_sizes)):
            place = f"{where}.finetuning.{field}"
            self.check_models(names, "embedder", where=place, have_weights=True)
        self.check_models(self.roles().values(), "llm", where=f"{where}.construction")
        if settings.dataset == "constructed" and not self.constructs():
            raise UserError(
                "the dataset is 'constructed', but the construction is not enabled",
                where=f"{where}.dataset",
                hint="set idiolink.construction.enabled: true, or dataset: released_format",
            )
        if self.constructs():
            for path in map(Path, map(self._prompt, (*COLLECTIONS, "validate"))):
                if not path.is_file():
                    raise UserError(
                        f"{path.parent} has no {path.name}",
                        where=f"{where}.construction.prompts",
                        hint="see the files with the same names in prompts/idiolink",
                    )
        self._check_own_data(where)
        if tuning.models and tuning.tuples == "released" and self.project.is_sample:
            raise UserError(
                "the sample data has no released tuples",
                where=f"{where}.finetuning.tuples",
                hint="set 'sampled' or 'released_where_available', or set data: released",
            )
        for name, most in (("hard_negatives", HARD_NEGATIVES), ("soft_negatives", SOFT_NEGATIVES)):
            count = getattr(tuning, name)
            if tuning.models and count > most and self.tuples_source() == "released":
                raise UserError(
                    f"{count} exceeds the {most} in the released tuples",
                    where=f"{where}.finetuning.{name}",
                    hint="reduce it, or set tuples: sampled",
                )

    def _check_first_stages(self, where: str) -> None:
        for name, first in self.first_stages().items():
            place = f"{self.project.entry_file(name)}: {name}.first_stage"
            self.check_models([first], "bm25", "embedder", where=place)
            if first in self.settings.leave_out:
                raise UserError(
                    f"{first!r} is left out, but {name!r} reranks its results",
                    where=f"{where}.leave_out",
                    hint=f"remove {name!r} from idiolink.models",
                )

    def _check_own_data(self, where: str) -> None:
        settings = self.settings
        absent = [split for split in SPLITS if split not in self.splits(settings.dataset)]
        if settings.finetuning.models and absent:
            raise UserError(
                f"{self.project.own_data} has no {' or '.join(absent)} split for fine-tuning",
                where=f"{where}.finetuning.models",
                hint=f"add idiolink/{absent[0]}, or remove the models",
            )
        follows = settings.construction.exclusions or self.candidates()
        if self.constructs() and self.project.own_data and not follows:
            raise UserError(
                "the manually excluded PIEs are not set",
                where=f"{where}.construction.exclusions",
                hint="set the path of a TSV with the columns pie and reason (rows are optional)",
            )

    def check_own_data(self) -> None:
        """Validate the user's own data; each sentence must occur in only one split.

        Raises:
            UserError: The data are invalid.
        """
        super().check_own_data()
        if not self.project.own_data or self.settings.dataset == "constructed":
            return
        seen: dict[str, str] = {}
        for split, name in product(self.splits("released_format"), TEXT_FILES):
            (path,) = self.project.local(f"idiolink/{split}/{name}.json")
            for text in read_texts(path, Document):
                other = seen.setdefault(text_key(text.sentence), split)
                if other != split:
                    raise UserError(
                        f"the sentence is also in the {other} split",
                        where=f"{path}: {text.id}",
                        hint="remove it from one of the splits",
                    )

    def wildcards(self) -> dict[str, str]:
        """Return a regular expression for each wildcard in the study's paths."""
        compositions = alternatives(set(get_args(Composition)) - {"full"})
        return {
            "split": alternatives(SPLITS),
            "index": rf"({alternatives(SPLITS)})(-({compositions}))?",
            "composition": compositions,
            "query_mode": alternatives(QUERY_MODES),
            "train_mode": alternatives(QUERY_MODES),
            "loss": alternatives(get_args(Loss)),
            "collection": alternatives(COLLECTIONS),
            "origin": alternatives(get_args(Origin)),
        }

    def embedder_constraint(self) -> str:
        """Return a regular expression that matches local embedders, including fine-tuned ones."""
        modes, losses = alternatives(QUERY_MODES), alternatives(get_args(Loss))
        local = alternatives({*self.project.names("embedder")} - {*self.api_embedders()})
        return rf"({local})(\+({modes})\+({losses}))?"

    def api_embedders(self) -> list[str]:
        """Return the embedders in models.yaml that call an API."""
        entries = self.project.registry.items()
        return [name for name, entry in entries if isinstance(entry, ApiEmbedderEntry)]

    def ranker_constraint(self) -> str:
        """Return a regular expression that matches all ranking models."""
        others = self.project.constraint("bm25", *OWN_RANKERS, "predictions")
        return f"{self.embedder_constraint()}|{alternatives(self.api_embedders())}|{others}"

    # Datasets, models and runs

    def dataset(self, index: str) -> list[str]:
        """Return the paths of an index's dataset files, starting with the documents."""
        return list(paths.dataset(index).values())

    def all_documents(self, index: str) -> str:
        """Return the path of the documents in the split that an index is built from."""
        return self.dataset(index.split("-", maxsplit=1)[0])[0]

    def vectors(self, index: str, model: str, what: str, seed: str) -> str:
        """Return the path of a split's embeddings; `what` is `documents` or a query mode."""
        split = index.split("-", maxsplit=1)[0]
        pattern = paths.API_VECTORS if model in self.api_embedders() else paths.VECTORS
        return pattern.format(split=split, model=model, texts=what, seed=seed)

    def models(self) -> list[str]:
        """Return the models for ranking, fine-tuning and, if enabled, construction."""
        roles = self.roles().values() if self.constructs() else ()
        settings = self.settings
        ranking = [*settings.models, *self.first_stages().values(), *settings.finetuning.models]
        return list(dict.fromkeys([*ranking, *roles]))

    def models_of_kinds(self, *kinds: str) -> list[str]:
        """Return the zero-shot models of these kinds."""
        return [name for name in self.settings.models if self.project.registry[name].kind in kinds]

    def first_stages(self) -> dict[str, str]:
        """Return the first-stage models of the configured rerankers, by reranker."""
        entries = ((name, self.project.registry[name]) for name in self.settings.models)
        return {
            name: entry.first_stage for name, entry in entries if isinstance(entry, RerankerEntry)
        }

    def first_stage_run(self, model: str, index: str, query_mode: str) -> str:
        """Return the path of the run that a reranker reorders.

        The run has the reranker's query mode, except that BM25 always ranks by sentence.
        """
        entry = self.project.entry(model)
        assert isinstance(entry, RerankerEntry)
        takes_none = isinstance(self.project.entry(entry.first_stage), Bm25Entry)
        mode = "sentence" if takes_none else query_mode
        return paths.RUN.format(index=index, model=entry.first_stage, query_mode=mode, seed=0)

    def _has_token_vectors(self, model: str) -> bool:
        """Return whether a model supports span modes; API embedders and rerankers do not."""
        return not isinstance(self.project.entry(model), ApiEmbedderEntry | RerankerEntry)

    def tuned_models(self) -> list[str]:
        """Return the names of the fine-tuned models, in the form base+training mode+loss."""
        tuning = self.settings.finetuning
        return [
            f"{model}+{mode}+{loss}"
            for model in tuning.models
            for mode in tuning.train_modes
            for loss in tuning.losses
        ]

    def modes_of(self, model: str) -> list[str]:
        """Return the query modes in which a model is evaluated.

        Fine-tuned models have the modes of Table 5, and external models those of their files. BM25
        skips the instruction modes. Rerankers, which score pairs of texts, and API embedders, which
        return one vector per text, skip the span modes.
        """
        if "+" in model:
            return evaluated_modes(model.split("+")[1])
        if external_runs := self.prediction_files(model):
            settings = {one.setting for one in external_runs}
            return [mode for mode in self.settings.query_modes if mode in settings]
        instructed = not isinstance(self.project.entry(model), Bm25Entry)
        return [
            mode
            for mode in self.settings.query_modes
            if instructed or not mode.startswith("instruction")
            if self._has_token_vectors(model) or not mode.endswith("span")
        ]

    def metrics_files(self, composition: str, models: Iterable[str]) -> list[str]:
        """Return the paths of the metric files of zero-shot models for one index composition.

        External models have files only for the full index.
        """
        index = "test" if composition == "full" else f"test-{composition}"
        return [
            paths.METRICS.format(index=index, model=model, query_mode=mode, seed=0)
            for model in models
            if composition == "full" or not self.prediction_files(model)
            for mode in self.modes_of(model)
        ]

    def tuned_metrics(self) -> list[str]:
        """Return the paths of the fine-tuned models' metric files, for all modes and seeds."""
        return [
            paths.METRICS.format(index="test", model=model, query_mode=mode, seed=seed)
            for model in self.tuned_models()
            for mode in self.modes_of(model)
            for seed in self.settings.finetuning.seeds
        ]

    @property
    def has_texts(self) -> bool:
        """Whether the run has the texts, not only the dataset files that scoring reads."""
        return self.settings.dataset != "archived"

    def archived_datasets(self) -> dict[str, Extraction]:
        """Return the extractions of archived dataset files for a run without texts, by index."""
        if self.has_texts or not self.archived:
            return {}
        archive = next(iter(self.archived.values())).archive
        indexes = {Path(path).parts[3] for path in self.archived}
        return {
            index: Extraction(
                rule=re.sub(r"\W", "_", f"take_idiolink_{index}"),
                archive=archive.path,
                files={
                    name: archive.manifest.files[name]
                    for name in paths.scoring_files(index).values()
                },
                recordings={},
            )
            for index in sorted(indexes)
        }

    def _check_archived(self, where: str) -> None:
        """Raise a `UserError` if a run without texts needs texts or files not in the archives."""
        if self.has_texts:
            return
        if self.settings.shortcuts:
            raise UserError(
                "word overlap needs texts, but dataset is 'archived'",
                where=f"{where}.shortcuts",
                hint="set shortcuts: false, or dataset: released_format",
            )
        missing = [path for path in self.run_metrics() if path not in self.archived]
        if missing or not self.archived:
            archive_names = (
                ", ".join(archive.path for archive in self.project.archives) or "archives (none)"
            )
            offered = self.offers.get(missing[0]) if missing else None
            why = offered.differences[0] if offered and offered.differences else "not in it"
            raise UserError(
                f"without texts, {missing[0] if missing else 'every run'} must come from"
                f" {archive_names}: {why}",
                where=f"{where}.dataset",
                hint="remove the model or mode, or set dataset: released_format",
            )
        archive = next(iter(self.archived.values())).archive
        for path in self.archived:
            folder = str(Path(paths.dataset(Path(path).parts[3])["manifest"]).parent)
            dataset = archive.manifest.datasets.get(folder)
            if dataset is None or any(
                self.project.digest(name) != digest for name, digest in dataset.raw.items()
            ):
                raise UserError(
                    f"{archive.path} has no {folder} for these data",
                    where=f"{where}.dataset",
                    hint="list another archive first",
                )

    def run_metrics(self) -> list[str]:
        """Return the paths of the metric files of all runs."""
        compositions = dict.fromkeys(["full", *self.settings.compositions])
        zero_shot = (self.metrics_files(name, self.settings.models) for name in compositions)
        return [*chain.from_iterable(zero_shot), *self.tuned_metrics()]

    def file_usage(self, metrics: str) -> dict[str, bool]:
        """Return whether a run depends on certain files: MAGPIE and, for BM25, its tuning file."""
        run = match_path(paths.METRICS, metrics)
        assert run
        tuned = self.tuning(run["model"], run["index"], run["query_mode"])
        return {self.magpie(): self.settings.dataset == "constructed", **dict.fromkeys(tuned, True)}

    def archived_models(self) -> set[str]:
        """Return the models with only archived runs, except those that construct the dataset."""
        return super().archived_models() - {*(self.roles().values() if self.constructs() else ())}

    def runs_of_same_job(self, metrics: str) -> list[str]:
        """Return the paths of the metric files of all runs that the same job computes.

        One job ranks with a model in all query modes; BM25, rerankers and API embedders have one
        job per mode.
        """
        run = match_path(paths.METRICS, metrics)
        assert run
        alone = Bm25Entry | RerankerEntry | ApiEmbedderEntry
        if isinstance(self.project.entry(run["model"]), alone):
            return [metrics]
        modes = self.modes_of(run["model"])
        return [paths.METRICS.format(**run | {"query_mode": mode}) for mode in modes]

    def items(self) -> Items:
        """Return the specification of the item rows, one per query and run."""
        metrics = self.run_metrics()
        models = [*self.settings.models, *self.settings.finetuning.models]
        return self.items_of(metrics, dict.fromkeys(models), map(query_scores_file, metrics))

    def significance_tests(self) -> list[str]:
        """Return the paths of the tests of each model that runs in more than one query mode."""
        seeds = {model: [0] for model in self.settings.models}
        seeds |= dict.fromkeys(self.tuned_models(), self.settings.finetuning.seeds)
        return [
            paths.SIGNIFICANCE.format(model=model, seed=seed)
            for model, of_model in seeds.items()
            if len(self.modes_of(model)) > 1
            for seed in of_model
        ]

    def shortcuts(self) -> list[str]:
        """Return the paths of the zero-shot models' word-overlap files; empty if disabled."""
        return [
            paths.SHORTCUTS.format(**run)
            for metrics in self.metrics_files("full", self.settings.models)
            if self.settings.shortcuts and (run := match_path(paths.METRICS, metrics))
        ]

    def tested_runs(self, model: str, seed: str) -> list[str]:
        """Return the paths of the runs that a model's test between query modes compares."""
        return [
            paths.RUN.format(index="test", model=model, query_mode=mode, seed=seed)
            for mode in self.modes_of(model)
        ]

    def tuning(self, model: str, index: str, query_mode: str) -> list[str]:
        """Return the path of the file with a BM25 run's k1 and b; empty for other models.

        The full index uses the values tuned on sentence queries, because the paper reports a single
        pair of values for both query modes. Other compositions use the same values if configured,
        or if there is no validation split.
        """
        if not isinstance(self.project.entry(model), Bm25Entry):
            return []
        composition = index.partition("-")[2]
        apart = self.settings.bm25.tuning == "per_mode_and_composition"
        if composition and apart and self._is_tuned():
            return [
                paths.TUNING.format(index=f"val-{composition}", model=model, query_mode=query_mode)
            ]
        return [paths.TUNING.format(index="val", model=model, query_mode="sentence")]

    def _is_tuned(self) -> bool:
        return "val" in self.splits(self.settings.dataset)

    def tuning_dataset(self, index: str) -> list[str]:
        """Return the paths of the data for tuning k1 and b; empty without a validation split."""
        return self.dataset(index) if self._is_tuned() else []

    def bm25_points(self) -> Bm25Tuning:
        """Return the BM25 grid.

        Without a validation split, the paper's values replace a grid with several points.
        """
        grid = self.settings.bm25
        if self._is_tuned() or len(grid.k1) == len(grid.b) == 1:
            return grid
        return grid.model_copy(update=PAPER_PARAMETERS)

    # Weights and training

    def embedder(self, model: str) -> EmbedderEntry:
        """Return the entry of an embedder, with the configured inputs and device.

        Raises:
            UserError: The model is not an embedder.
        """
        entry = self.project.entry(model)
        if not isinstance(entry, EmbedderEntry):
            raise UserError(
                f"{model!r} is of kind {entry.kind!r}, not an embedder", hint="use an embedder"
            )
        device = self.settings.device or entry.device
        return entry.with_inputs(self.settings.inputs).model_copy(update={"device": device})

    def weights(self, model: str, seed: str) -> list[str]:
        """Return the list of digests of weights that replace a checkpoint, if any.

        They are fine-tuned or unpacked.
        """
        if "+" in model:
            base, train_mode, loss = model.split("+")
            wildcards = {"model": base, "train_mode": train_mode, "loss": loss, "seed": seed}
            return [paths.WEIGHTS_DIGESTS.format(**wildcards)]
        return self.project.unpacked_weights(model)

    def tuples_source(self) -> str:
        """Return the source of training tuples: `sampled` or `released`."""
        source = self.settings.finetuning.tuples
        if source != "released_where_available":
            return source
        name = raw_name(RELEASED_TUPLES)
        is_available = not self.project.is_sample and self.project.is_available(name)
        return "released" if is_available else "sampled"

    def tuples(self, seed: str) -> str:
        """Return the path of the training tuples."""
        sampled = self.tuples_source() == "sampled"
        pattern = paths.SAMPLED_TUPLES if sampled else paths.MINED_TUPLES
        return pattern.format(split="train", seed=seed)

    def training_spec(self, model: str, train_mode: str) -> str:
        """Return the parts of an embedder's entry that affect its training, as JSON."""
        instructed = train_mode.startswith("instruction")
        return self.embedder(model).training_spec(instructed=instructed)

    def training(self, model: str, train_mode: str, loss: str, seed: str) -> TrainingSettings:
        """Return the settings of a training run."""
        tuning = self.settings.finetuning
        shared = tuning.model_dump(include=set(Hyperparameters.model_fields))
        shared["batch_size"] = tuning.batch_sizes.get(model, tuning.batch_size)
        return TrainingSettings.model_validate(
            shared | {"loss": loss, "train_mode": train_mode, "seed": seed}
        )

    # Conditions of the metrics

    def metric_conditions(self) -> dict[str, Callable[..., str]]:
        """Return functions that map wildcards to conditions (JSON), by metric file pattern."""
        return {
            # Must precede paths.METRICS, which also matches these files.
            paths.SIGNIFICANCE: lambda model, **_: self.conditions(model, "permutations"),
            paths.SHORTCUTS: lambda model, **_: self.conditions(model),
            paths.METRICS: lambda model, **_: self.conditions(model),
            paths.CHECKS: self.data_conditions,
            paths.CONSTRUCTION_METRICS: lambda: self.data_conditions("constructed"),
        }

    def conditions(self, model: str, *also: str) -> str:
        """Return the conditions of a model's runs as canonical JSON; `also` adds settings by name.

        Loss, tuples and inputs are recorded but never count as deviations: the paper and its
        released code disagree on them, and it is unknown which of the two produced the numbers.
        """
        return self.mark_own_data(self._conditions(model, *also)).canonical()

    def _conditions(self, model: str, *also: str) -> Conditions:
        """Return the conditions of a model's runs, excluding the conditions of the data."""
        settings = self.settings
        conditions = settings.model_dump(include={"top_k", "bootstrap_resamples", *also})
        if self.prediction_files(model):
            return self.external_conditions(**conditions)
        reasons = [
            *self.project.changed_entry(model),
            *deviations(settings, ignored=set(type(settings).model_fields) - {"top_k"}),
        ]
        entry = self.project.entry(model)
        if isinstance(entry, EmbedderEntry):
            entry = self.embedder(model)
            conditions |= {"inputs": settings.inputs}
        if isinstance(entry, Bm25Entry):
            # Each metric file records which values the ablation used.
            points = self.bm25_points()
            conditions |= points.model_dump(exclude={"tuning"})
            reasons += deviations(points, ignored={"tuning"})
        if "+" in model:
            base, train_mode, loss = model.split("+")
            training = self.training(base, train_mode, loss, seed="0")
            conditions |= training.model_dump(exclude={"seed"}) | {"tuples": self.tuples_source()}
            reasons += _training_deviations(base, training)
        weights = json.loads(entry.execution_spec())
        if isinstance(entry, RerankerEntry):
            first = self._conditions(entry.first_stage)
            conditions |= {"first_stage": first.settings}
            weights |= {"first_stage_weights": first.weights}
            reasons += [reason for reason in first.deviations if reason not in reasons]
        return Conditions(settings=conditions, weights=weights, deviations=tuple(reasons))

    def data_conditions(self, origin: str) -> str:
        """Return the conditions of the counts of an origin's texts, as canonical JSON."""
        if origin != "constructed":
            return self.mark_own_data(Conditions()).canonical()
        construction = self.settings.construction
        of_this_computer = {"enabled", "exclusions", "corrections", "unreviewed", "prompts"}
        roles = {
            role: json.loads(self.project.language_model(name).execution_spec())
            for role, name in self.roles().items()
        }
        besides = of_this_computer | {"attempts", "split_source", "seed", "semantics"}
        filtering = "PIEs filtered as in the released code, unlike the paper's text"
        as_released = construction.semantics == "released"
        return self.mark_own_data(
            Conditions(
                settings=construction.model_dump(mode="json", exclude=of_this_computer),
                weights=roles,
                deviations=(
                    *([filtering] if as_released else []),
                    *deviations(construction, ignored=besides),
                ),
            )
        ).canonical()

    # Construction

    def constructs(self) -> bool:
        """Return whether this run constructs the dataset from MAGPIE."""
        return self.settings.construction.enabled

    def roles(self) -> dict[str, str]:
        """Return the construction's language models by role."""
        roles = {"index_writer", "query_writer", "validator"}
        return self.settings.construction.model_dump(include=roles)

    def magpie(self) -> str:
        """Return the path of the MAGPIE file from which PIEs are selected."""
        name = "MAGPIE_sample" if self.project.is_sample else "MAGPIE_unfiltered"
        return f"results/raw/magpie/{name}.jsonl"

    def released_indexes(self) -> list[str]:
        """Return the paths of the released documents of every split."""
        return [f"results/raw/idiolink/{split}/indexes.json" for split in SPLITS]

    def candidates(self) -> list[str]:
        """Return the path of the released list of candidate PIEs; empty if unavailable."""
        name = raw_name(paths.CANDIDATES)
        is_available = not self.project.is_sample and self.project.is_available(name)
        return [paths.CANDIDATES] if is_available else []

    def compared_indexes(self) -> list[str]:
        """Return the paths of the released documents; empty without the released candidates."""
        return self.released_indexes() if self.candidates() else []

    def split_source_indexes(self) -> list[str]:
        """Return the paths of the released documents; empty if the splits are drawn."""
        follows = self.settings.construction.split_source == "released"
        return self.released_indexes() if follows else []

    def exclusions(self) -> str:
        """Return the path of the TSV of manually excluded PIEs.

        The TSV is the configured file, the sample's, or the one derived from the released files.
        """
        if self.settings.construction.exclusions:
            return self.settings.construction.exclusions
        if self.project.is_sample:
            return self.project.here("data/sample/magpie/exclusions.tsv")
        return paths.EXCLUSIONS

    def corrections(self) -> list[str]:
        """Return the path of the human corrections of generated texts, if any."""
        if self.settings.construction.corrections:
            return [self.settings.construction.corrections]
        if self.project.is_sample:
            return [self.project.here("data/sample/idiolink_construction/corrections.csv")]
        return []

    def pie_options(self) -> str:
        """Return the settings that select PIEs and pairs, as canonical JSON."""
        fields = set(FilterOptions.model_fields)
        return canonical_json(self.settings.construction.model_dump(include=fields))

    def of_collections(self, pattern: str) -> list[str]:
        """Return the paths that a pattern yields for both collections."""
        return [pattern.format(collection=collection) for collection in COLLECTIONS]

    def data_folder(self, origin: str) -> str:
        """Return the folder with an origin's texts in the released format."""
        constructed = origin == "constructed"
        return paths.CONSTRUCTED if constructed else "results/raw/idiolink"

    def splits(self, origin: str) -> list[str]:
        """Return the available splits; in the user's own data, only `test` is required."""
        if origin == "constructed" or not self.project.own_data:
            return list(SPLITS)
        return [
            split
            for split in SPLITS
            if split == "test"
            or any(
                self.project.is_available(f"idiolink/{split}/{name}.json") for name in TEXT_FILES
            )
        ]

    def checked_files(self, origin: str) -> list[str]:
        """Return the paths of the text files in every split of an origin."""
        return [
            f"{self.data_folder(origin)}/{split}/{name}.json"
            for split in self.splits(origin)
            for name in TEXT_FILES
        ]

    def experiment_texts(self, split: str, name: str) -> str:
        """Return the path of a split's texts in the experiments, `indexes` or `queries`."""
        return f"{self.data_folder(self.settings.dataset)}/{split}/{name}.json"

    # LLM tasks

    def writing(self, collection: str) -> Writing:
        """Return the task that generates the texts of a collection."""
        chosen = self.settings.construction
        model = chosen.index_writer if collection == "documents" else chosen.query_writer
        return Writing(
            model=model,
            spec=self.project.language_model(model).execution_spec(),
            inputs={"pairs": paths.PAIRS, "prompt": self._prompt(collection)},
            outputs={
                "texts": paths.TEXTS.format(collection=collection),
                "report": paths.TEXTS_REPORT.format(collection=collection),
            },
            recordings=self._recordings(model, f"write_{collection}"),
            collection="documents" if collection == "documents" else "queries",
            parameters=chosen.parameters,
            attempts=chosen.attempts,
        )

    def validation(self, collection: str) -> Validation:
        """Return the task that validates the texts of a collection."""
        chosen = self.settings.construction
        return Validation(
            model=chosen.validator,
            spec=self.project.language_model(chosen.validator).execution_spec(),
            inputs={
                "texts": paths.TEXTS.format(collection=collection),
                "prompt": self._prompt("validate"),
            },
            outputs={"verdicts": paths.VERDICTS.format(collection=collection)},
            recordings=self._recordings(chosen.validator, f"validate_{collection}"),
            parameters=chosen.parameters,
            runs=chosen.runs,
        )

    def _prompt(self, name: str) -> str:
        folder = self.settings.construction.prompts or self.project.here("prompts/idiolink")
        return f"{folder}/{name}.jinja"

    def _recordings(self, model: str, task: str) -> str:
        return self.project.recordings("idiolink_construction", model, f"{task}.jsonl")

    def embedding(self, split: str, model: str, texts: str, seed: str) -> Embedding:
        """Return the task that embeds the documents of a split, or its queries in one mode."""
        files = paths.dataset(split)
        where = {"split": split, "model": model, "texts": texts, "seed": seed}
        return Embedding(
            model=model,
            spec=self.project.entry(model).execution_spec(),
            inputs={"texts": files["documents" if texts == "documents" else "queries"]},
            outputs={"vectors": paths.API_VECTORS.format(**where)},
            recordings=self._vector_recordings(model, texts),
            texts=texts,
        )

    def _vector_recordings(self, model: str, texts: str) -> str:
        return self.project.recordings("idiolink_embedding", model, f"{texts}.jsonl")

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specifications of the generation, validation and API embedding tasks."""
        runs = [{"collection": name} for name in COLLECTIONS] if self.constructs() else []
        apis = self.api_embedders()
        where = {"collection": alternatives(COLLECTIONS)}
        return [
            LLMTaskSpec(
                "idiolink_generate",
                Writing,
                {"texts": paths.TEXTS, "report": paths.TEXTS_REPORT},
                self.writing,
                runs,
                where,
            ),
            LLMTaskSpec(
                "idiolink_validate",
                Validation,
                {"verdicts": paths.VERDICTS},
                self.validation,
                runs,
                where,
                after_answers=("texts",),
            ),
            LLMTaskSpec(
                "idiolink_embed",
                Embedding,
                {"vectors": paths.API_VECTORS},
                self.embedding,
                [
                    {"split": "test", "model": model, "texts": texts, "seed": "0"}
                    for model in self._embedding_models()
                    if model in apis
                    for texts in ("documents", *TEXT_MODES)
                    if texts == "documents" or texts in self.settings.query_modes
                ],
                {
                    "model": alternatives(apis),
                    "texts": alternatives(["documents", *TEXT_MODES]),
                },
            ),
        ]

    # Tables and figures

    def tables(self) -> list[Table]:
        """Return the paper's tables and additional ones."""
        return list(self._tables())

    def _tables(self) -> Iterator[Table]:
        settings = self.settings
        models, tuned = settings.models, settings.finetuning.models
        as_published = self.metrics_files("full", models)
        # Scores on other data have no counterpart in the released run.
        reference = (
            {"released": self.project.here("published/idiolink_released_run.csv")}
            if self.project.data == "released"
            else {}
        )
        if self.has_texts:
            yield self._table(
                "idiolink_dataset",
                "dataset:dataset",
                "Table 1",
                "Size of the IdioLink dataset.",
                DisplayInputs(metrics=(self._checks(),)),
                published="idiolink_table1",
                text_numbers=self.project.here("published/text_numbers.csv"),
            )
        if self.constructs():
            yield self._table(
                "idiolink_construction",
                "dataset:construction",
                "Sections 3.2.1 to 3.2.4",
                "Statistics of the dataset's construction.",
                DisplayInputs(metrics=(paths.CONSTRUCTION_METRICS,)),
                published="text_numbers",
                filter_report=paths.FILTER_REPORT,
            )
        embedders = self.models_of_kinds("embedder")
        rows = self.models_of_kinds("embedder", *OWN_RANKERS, "predictions")
        yield self._table(
            "idiolink_zero_shot",
            "zero_shot:zero_shot",
            "Table 2",
            "Zero-shot retrieval in four query modes, in percent.",
            self._with_own_models(
                self.display_inputs(self.metrics_files("full", rows), rows, "embedder")
            ),
            published="idiolink_table2",
            **reference,
        )
        if embedders:
            yield self._table(
                "idiolink_gains",
                "gains:gains",
                "Section 6",
                "Average gains by instructions and span embedding, in points.",
                self.display_inputs(self.metrics_files("full", embedders), embedders, "embedder"),
                published="text_numbers",
            )
        if bm25 := self.metrics_files("full", self.models_of_kinds("bm25")):
            yield self._table(
                "idiolink_bm25",
                "zero_shot:bm25",
                "Appendix E",
                "BM25 by sentence and by span.",
                DisplayInputs(metrics=tuple(bm25)),
                published="idiolink_bm25",
            )
        yield self._table(
            "idiolink_hyperparameters",
            "described:hyperparameters",
            "Table 3",
            "Hyperparameters of fine-tuning, as set in this run.",
            DisplayInputs(options=settings.finetuning.model_dump(mode="json")),
            published="idiolink_table3",
        )
        yield self._table(
            "idiolink_artifacts",
            "described:artifacts",
            "Table 4",
            "Data and packages, their licenses and pinned versions.",
            DisplayInputs(),
            published="idiolink_table4",
            lock=self.project.here("envs/requirements.lock"),
            licences=self.project.here("data/licences.yaml"),
            upstream=self.project.upstream,
        )
        if self._trains:
            yield self._table(
                "idiolink_finetuned",
                "finetuning:finetuned",
                "Table 5",
                "Retrieval by fine-tuned models, in percent.",
                self.display_inputs(self.tuned_metrics(), tuned, "embedder"),
                published="idiolink_table5",
            )
        yield self._table(
            "idiolink_checkpoints",
            "described:checkpoints",
            "Table 6",
            "Checkpoints, their licenses, sizes and pinned revisions.",
            DisplayInputs(options=self._checkpoints()),
            published="idiolink_table6",
        )
        every = tuple(
            name
            for composition in settings.compositions
            for name in self.metrics_files(composition, models)
        )
        if every and set(settings.compositions) - {"full"}:
            ranking = self.models_of_kinds("bm25", "embedder", *OWN_RANKERS)
            yield self._table(
                "idiolink_ablation",
                "zero_shot:ablation",
                "not in the paper",
                "The same queries over an index without some usages, in percent.",
                DisplayInputs(metrics=every, models=self.describe_models(ranking)),
            )
        if reference and every:
            yield self._table(
                "idiolink_released",
                "released:released_run",
                "not in the paper",
                "Our scores and those of the authors' released run, in percent.",
                DisplayInputs(metrics=every, models=self.describe_models(models)),
                published="idiolink_table2",
                **reference,
            )
        if tests := self.significance_tests():
            tested = self.describe_models(dict.fromkeys([*models, *tuned]))
            yield self._table(
                "idiolink_significance",
                "significance:significance",
                "not in the paper",
                "Paired randomization tests over PIEs between query modes, with intervals.",
                DisplayInputs(metrics=tuple(tests), models=tested),
            )
        modes = [mode for model in models for mode in self.modes_of(model)]
        if len(modes) > len(set(modes)):
            yield self._table(
                "idiolink_pairs",
                "significance:model_pairs",
                "not in the paper",
                "Paired randomization tests over PIEs between all pairs of models, with intervals.",
                DisplayInputs(
                    metrics=tuple(as_published),
                    models=self.describe_models(models),
                    options={
                        "permutations": settings.permutations,
                        "resamples": settings.bootstrap_resamples,
                    },
                ),
            )
        if as_published:
            yield self._table(
                "idiolink_by_pie",
                "by_pie:by_pie",
                "not in the paper",
                "R-Precision and nDCG@10 of each PIE.",
                DisplayInputs(metrics=(*as_published, *self.tuned_metrics())),
            )
        if measured := self.shortcuts():
            yield self._table(
                "idiolink_overlap",
                "shortcuts:overlap",
                "not in the paper",
                "Words that queries share with their relevant documents.",
                # All runs share the same texts.
                DisplayInputs(metrics=(measured[0],)),
            )
            yield self._table(
                "idiolink_shortcuts",
                "shortcuts:shortcuts",
                "not in the paper",
                "Whether queries that share more words with relevant documents score higher.",
                DisplayInputs(metrics=tuple(measured), models=self.describe_models(models)),
            )

    def why_no_table(self, name: str) -> str:
        """Return the reason why this configuration does not produce a table."""
        reasons = {
            "idiolink_finetuned": "idiolink.finetuning.models names no model",
            "idiolink_construction": "idiolink.construction.enabled is false",
            "idiolink_dataset": "idiolink.dataset is 'archived': there are no texts",
            **dict.fromkeys(
                ("idiolink_overlap", "idiolink_shortcuts"), "idiolink.shortcuts is false"
            ),
        }
        return reasons.get(name, super().why_no_table(name))

    def figures(self) -> list[Figure]:
        """Return the paper's figures and additional ones."""
        return list(self._figures())

    def _figures(self) -> Iterator[Figure]:
        models, tuned = self.settings.models, self.settings.finetuning.models
        as_published = self.metrics_files("full", models)
        if self.has_texts:
            yield self._figure(
                "idiolink_domains",
                "domains:domains",
                "Section 3.2.2",
                "Texts by domain and usage.",
                [self._checks()],
            )
        if as_published:
            yield self._figure(
                "idiolink_modes",
                "modes:modes",
                "Section 6",
                "Each model in the four query modes, with intervals over PIEs.",
                as_published,
                models=models,
            )
        if tuned:
            zero_shot = self.metrics_files("full", self.models_of_kinds("embedder"))
            yield self._figure(
                "idiolink_finetuning",
                "finetuning:finetuning",
                "Figure 3",
                "Fine-tuned models against zero-shot.",
                [*zero_shot, *self.tuned_metrics()],
                models=tuned,
            )
        if as_published:
            yield self._figure(
                "idiolink_by_pie",
                "by_pie:by_pie",
                "not in the paper",
                "nDCG@10 of each PIE.",
                [*as_published, *self.tuned_metrics()],
            )
        if measured := self.shortcuts():
            yield self._figure(
                "idiolink_shortcuts",
                "shortcuts:shortcuts",
                "not in the paper",
                "nDCG@10 by tenth of word overlap.",
                measured,
                models=models,
            )

    def _figure(
        self,
        name: str,
        maker: str,
        place: str,
        caption: str,
        metrics: Iterable[str],
        *,
        models: Iterable[str] = (),
    ) -> Figure:
        """Return a figure; `maker` is the module and function that draw it (`module:function`)."""
        maker = f"pieline.studies.idiolink.figures.{maker}"
        inputs = DisplayInputs(metrics=tuple(metrics), models=self.describe_models(models))
        return Figure(name, place, caption, maker, inputs)

    def _table(
        self,
        name: str,
        maker: str,
        place: str,
        caption: str,
        inputs: DisplayInputs,
        *,
        published: str = "",
        **files: str,
    ) -> Table:
        """Return a table.

        Args:
            name: Name of the table's files.
            maker: Module and function, as `module:function`.
            place: Place in the paper.
            caption: Caption of the table.
            inputs: Inputs of the table.
            published: Name of the CSV in published/ with the printed numbers, if any.
            **files: Other input files, by parameter name.
        """
        if published:
            files["published"] = self.project.here(f"published/{published}.csv")
        maker = f"pieline.studies.idiolink.tables.{maker}"
        return Table(name, place, caption, maker, inputs.with_files(**files))

    def _with_own_models(self, inputs: DisplayInputs) -> DisplayInputs:
        """Return the inputs, with the user's skipped models added to `absent`."""
        registry = self.project.registry
        own = [name for name in self._skipped if registry[name].published_as is None]
        return inputs.model_copy(update={"absent": (*inputs.absent, *self.describe_models(own))})

    def _checkpoints(self) -> dict[str, Any]:
        """Return entry fields of embedders and construction models, by name in Table 6."""
        fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
        entries: dict[str, Any] = {}
        for name in [*self.project.names("embedder"), *self.roles().values()]:
            entry = self.project.registry[name]
            printed, of_entry = entry.published_as, entry.model_dump(include=fields)
            if isinstance(entry, LLMEntry):
                printed = of_entry["checkpoint"] = entry.litellm_id.rpartition("/")[2]
            if printed:
                entries.setdefault(printed, {"name": name, **of_entry})
        return entries

    def _checks(self) -> str:
        """Return the path of the data checks behind Table 1."""
        return paths.CHECKS.format(origin="constructed" if self.constructs() else "released_format")

    # Other inputs and targets

    def raw_files(self) -> list[str]:
        """Return the paths of the raw files that this configuration uses."""
        if not self.has_texts:
            return []
        files = self.checked_files("released_format")
        if self.settings.finetuning.models and self.tuples_source() == "released":
            files.append(RELEASED_TUPLES)
        if self.constructs():
            files += [self.magpie(), *self.candidates()]
            files += [*self.compared_indexes(), *self.split_source_indexes()]
        return files

    def other_targets(self) -> list[str]:
        """Return the paths of the data checks and, with construction, the review sheet."""
        files = [paths.CHECKS.format(origin="released_format")] if self.has_texts else []
        return (
            [*files, paths.CHECKS.format(origin="constructed"), paths.REVIEW]
            if self.constructs()
            else files
        )

    def behind(self, metrics: str) -> list[str]:
        """Return the paths of the run and the dataset behind a metric file.

        The result is empty for significance tests, data checks and construction statistics.
        """
        if not metrics.startswith("results/metrics/idiolink/test") or "/significance/" in metrics:
            return []
        index = metrics.split("/")[3]
        run = metrics.replace("/metrics/", "/predictions/").removesuffix(".json")
        run = run.removesuffix(".shortcuts")
        data = self.dataset(index) if self.has_texts else paths.scoring_files(index).values()
        return [f"{run}.run.gz", *data]


def _training_deviations(model: str, training: TrainingSettings) -> list[str]:
    """Return the deviations of a training run's hyperparameters from Table 3."""
    reasons = deviations(training, ignored={"loss", "train_mode", "seed", "batch_size"})
    papers = FineTuning()
    batch_size = papers.batch_sizes.get(model, papers.batch_size)
    if training.batch_size != batch_size:
        return [*reasons, f"batch size {training.batch_size}, the paper {batch_size}"]
    return list(reasons)
