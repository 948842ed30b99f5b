"""Definition of the ID10M-JAM study: runs, files, language model tasks, tables and figures."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

from pieline.core.conditions import Conditions, deviations
from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_text
from pieline.core.texts import text_key
from pieline.languages.registry import get_language, language_names
from pieline.llm.obstacles import SCHEMA_SETTING, unsupported_reason
from pieline.llm.prompts import load_prompt
from pieline.models.entries import CheckpointEntry
from pieline.models.llm import LLMEntry
from pieline.project import alternatives, raw_name
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.studies.jam import paths
from pieline.studies.jam.predictions.baselines import BASELINES
from pieline.studies.jam.predictions.prompt_settings import (
    RELEASED_EXAMPLES,
    RELEASED_FORM,
    Arranged,
    FewShot,
    PromptSetting,
    ZeroShot,
)
from pieline.studies.jam.predictions.prompting import (
    FEW_SHOT,
    Identification,
    is_asked,
    prompt_file,
)
from pieline.studies.jam.records import DecidedBy
from pieline.studies.jam.settings import (
    ADDED,
    BASELINE,
    FINE_TUNED,
    NO_VARIANTS,
    AttentionAnalysis,
    JamSettings,
    JamVariants,
)
from pieline.studies.jam.training.settings import RELEASED_DEVIATIONS, TaggingSettings
from pieline.studies.jam.variants.generation import (
    GENERATE,
    NEUTRAL,
    REVIEW,
    GenerationSettings,
    HardVariants,
    NeutralContexts,
    NeutralVariants,
)
from pieline.study import OWN_PROMPT, Figure, Items, LLMTaskSpec, Study, Table

WRITER = "Gemini 2.5 Pro"
"""Model that wrote the paper's variants (section 3.3, appendix G)."""
_NOT_OF_PAPER = {
    "file": "{}: originals by custom decisions.",
    "tags": "{}: originals by ID10M's tags alone, without filtering.",
}
"""Notes on languages whose originals are not the released ones, by source of the decisions."""
_MOST_COMMON = 0.05
"""Maximum share of test sentences that another split of the user's data may contain."""
_WRITTEN = "Hard variants by {} ({})."
_STRICT_MAJORITY = "Table 6 by a strict majority of all answers, unlike the paper's vote"


def _listed(languages: Iterable[str]) -> str:
    return ", ".join(get_language(name).label for name in languages)


def _blocks(path: str) -> set[str]:
    """Return the keys (see `text_key`) of the sentences in an ID10M file.

    The function is faster than a parser, because it is called for every run.
    """
    blocks = read_text(path).replace("\r\n", "\n").split("\n\n")
    texts = ("".join(line.partition("\t")[0] for line in block.split("\n")) for block in blocks)
    return {text_key(text) for text in texts if text}


def _with_report(variants: str) -> dict[str, str]:
    """Return the output paths of a task that writes variants and a report."""
    return {"variants": variants, "report": variants.replace(".jsonl", ".report.json")}


class JamStudy(Study[JamSettings]):
    """The ID10M-JAM study."""

    name = "jam"
    paper = "ID10M-JAM"
    Settings = JamSettings

    # Settings ------------------------------------------------------------------------------------

    def check(self, where: str) -> None:
        """Validate the models, prompts, decision files and source of variants.

        Raises:
            UserError: A setting is invalid.
        """
        settings, variants = self.settings, self.settings.variants
        self.check_models(settings.models, "llm", "encoder", "predictions", where=f"{where}.models")
        self.check_external(settings.models, where=f"{where}.models")
        for name in ("settings_by_model", "seeds_by_model", "max_tokens_by_model"):
            self.check_models(getattr(settings, name), "llm", where=f"{where}.{name}")
        self._check_prompts(where)
        if settings.decisions and not any(map(self.own_decisions, settings.languages)):
            raise UserError(
                f"{settings.decisions} has no file for {' or '.join(settings.languages)}",
                where=f"{where}.decisions",
                hint=f"name a folder with {settings.languages[0]}.tsv",
            )
        for path in sorted(Path(settings.decisions).iterdir()) if settings.decisions else ():
            language = path.stem.lower()
            if path.name not in {f"{name}.tsv" for name in language_names()} and (
                path.suffix == ".tsv" or language in language_names()
            ):
                name = language if language in language_names() else "LANGUAGE"
                raise UserError(
                    "the file name is not that of a language",
                    where=path,
                    hint=f"rename it to {name}.tsv",
                )
        if variants.model:
            self.check_models([variants.model], "llm", where=f"{where}.variants.model")
        if settings.attention:
            self._check_attention(settings.attention.model, f"{where}.attention.model")
        for name in settings.models:
            if any(one.language is None for one in self.prediction_files(name)):
                raise UserError(
                    f"a jam file of {name!r} has no language",
                    where=f"{where}.models",
                    hint="add `language` to its entry",
                )
        if settings.neutral:
            where_neutral = f"{where}.neutral.model"
            self.check_models([settings.neutral.model], "llm", "encoder", where=where_neutral)
        if settings.neutral and settings.neutral.model not in settings.models:
            raise UserError(
                f"{settings.neutral.model!r} is not in jam.models",
                where=f"{where}.neutral.model",
                hint="choose one of them, or set jam.neutral: null",
            )
        usable, other = ("sample", "released") if self.project.is_sample else ("released", "sample")
        if variants.source == other:
            raise UserError(
                f"{other} variants do not fit the {self.project.data} originals",
                where=f"{where}.variants.source",
                hint=f"choose {usable!r}, 'generated' or 'none'",
            )
        if self.written_languages and not variants.model:
            lacking = self.written_languages[0]
            raise UserError(
                f"no {paths.VALIDATED.format(language=lacking)} in {self.project.own_data}"
                if self.project.own_data
                else f"there are no released variants in {get_language(lacking).label}",
                where=f"{where}.variants.model",
                hint="name a model to write them, or set the source to 'none'",
            )

    def _check_attention(self, model: str, where: str) -> None:
        self.check_models([model], "embedder", "causal_lm", where=where, have_weights=True)
        if getattr(self.project.entry(model), "adapter", None):
            raise UserError(
                f"{model!r} has an adapter, which is used only for embedding",
                where=where,
                hint="merge the adapter into its base model, and name the merged model",
            )

    def _check_prompts(self, where: str) -> None:
        settings = self.settings
        released = get_args(PromptSetting) if settings.asking == "released" else ()
        for setting in (*settings.prompts, *released):
            prompt = load_prompt(self.prompt_files(setting)["prompt"])
            prompt.check_shows("sentence", language="")
            if setting in released and not prompt.response_format:
                raise UserError(
                    "the front matter lacks `answer`, which the released form enforces",
                    where=prompt.path,
                    hint="copy it from prompts/jam/released",
                )
        for name, ways in settings.settings_by_model.items():
            if not all(is_asked(self.project.language_model(name), way) for way in ways):
                raise UserError(
                    f"{name!r} is a reasoning model, which supports only zero-shot (section 4.3)",
                    where=f"{where}.settings_by_model",
                    hint="use zero_shot or zero_shot_schema",
                )

    def is_written(self, language: str) -> bool:
        """Return whether a model writes the variants of a language.

        The result is True if the source is `generated`, or if it is `released` and the release or
        the user's own data lacks the language.
        """
        source = self.settings.variants.source
        # A language has either all public files or none.
        wanted = paths.VALIDATED if self.project.own_data else paths.RELEASED
        return source == "generated" or (source == "released" and not self._has(wanted, language))

    @property
    def written_languages(self) -> list[str]:
        """Return the languages whose variants a model writes."""
        return [name for name in self.settings.languages if self.is_written(name)]

    def validated_languages(self) -> str:
        """Return a wildcard constraint for languages whose variants are not written by a model."""
        return alternatives(name for name in language_names() if not self.is_written(name))

    @property
    def has_variants(self) -> bool:
        """Return whether the study uses hard variants."""
        return self.settings.variants.source != "none"

    def constraints(self, *kinds: str) -> dict[str, str]:
        """Return the wildcard constraints of runs of models of these kinds."""
        return {
            "language": alternatives(language_names()),
            "model": self.project.constraint(*kinds),
            "setting": alternatives(
                {
                    *get_args(PromptSetting),
                    FINE_TUNED,
                    *ADDED,
                    *self.settings.prompts,
                    *self.external_settings(),
                }
            ),
        }

    # Runs ----------------------------------------------------------------------------------------

    def configured(self, *kinds: str) -> Iterator[dict[str, str]]:
        """Yield language, model, setting and seed of every configured run of models of these kinds.

        The runs include those that `left_out` returns.
        """
        settings = self.settings
        for model in settings.models:
            entry = self.project.entry(model)
            if entry.kind not in kinds:
                continue
            runs = [
                (one.language, one.setting, one.seed)
                for one in self.prediction_files(model)
                if one.language in settings.languages
            ]
            for language in settings.languages:
                seeds: Sequence[int] = settings.seeds_by_model.get(model, settings.seeds)
                if isinstance(entry, LLMEntry):
                    named = settings.settings_by_model.get(model, settings.settings)
                    ways: list[str] = [way for way in named if is_asked(entry, way)]
                else:
                    seeds = settings.fine_tuning.seeds
                    tagged = language in getattr(entry, "languages", ())
                    ways = [FINE_TUNED, *self.added_settings] if tagged else []
                runs += product([language], ways, seeds)
            for language, setting, seed in runs:
                yield {
                    "language": language,
                    "model": model,
                    "setting": setting,
                    "seed": str(seed),
                }

    def runs(self, *kinds: str) -> Iterator[dict[str, str]]:
        """Yield the configured runs that can be computed or reused, for models of these kinds."""
        return (run for run in self.configured(*kinds) if not self._why_not(run))

    def left_out(self) -> dict[str, str]:
        """Return why configured runs are left out, by `model/setting/language/seed`."""
        return {
            "/".join(run[name] for name in ("model", "setting", "language", "seed")): reason
            for run in self.configured("llm", "encoder")
            if (reason := self._why_not(run))
        }

    def run_metrics(self) -> list[str]:
        """Return the paths of the metric files of all configured runs and of the ablation."""
        named = [
            paths.METRICS.format(**run) for run in self.configured("llm", "encoder", "predictions")
        ]
        neutral = self.neutral_run("llm", "encoder")
        return [*named, *(paths.NEUTRAL_METRICS.format(**run) for run in neutral)]

    def _why_not(self, run: Mapping[str, str]) -> str:
        entry = self.project.entry(run["model"])
        if paths.METRICS.format(**run) in self.archived:
            return ""
        if not isinstance(entry, LLMEntry):
            return self._no_contexts(run)
        if lack := self._lacks(entry, run["setting"]) or self._no_contexts(run):
            return lack
        return self.project.unanswered(run["model"], self._recordings("jam").format(**run))

    def _no_contexts(self, run: Mapping[str, str]) -> str:
        """Return why a run lacks its neutral contexts; empty if it has them or needs none."""
        language, writer = run["language"], self.settings.variants.model
        if not self._shows_neutral(run["setting"]):
            return ""
        if writer:
            return self.project.unanswered(writer, self.neutral_contexts(language).recordings)
        in_sample = Path(
            self.project.here("data/sample/id10m/neutral", f"{language}.json")
        ).exists()
        if self.project.is_sample and in_sample:
            return ""
        return f"no neutral contexts in {language.capitalize()} (jam.variants.model writes them)"

    def _shows_neutral(self, setting: str) -> bool:
        if setting in ADDED:
            return ADDED[setting] == "neutral"
        own = self.settings.prompts.get(setting)
        return own is not None and own.context == "neutral"

    def _lacks(self, entry: LLMEntry, setting: str) -> str:
        """Return why a model does not support a setting; empty if it does.

        The released prompts require a model that supports an enforced response format.
        """
        enforced = self.settings.asking == "released" and setting not in self.settings.prompts
        return unsupported_reason(entry, SCHEMA_SETTING if enforced else setting)

    def metrics_on(self, *languages: str, besides: Sequence[str] = ()) -> list[str]:
        """Return the paths of the metric files of runs in these languages.

        The runs are those of language models, encoders and the kinds of models in `besides`.
        """
        runs = self.runs("llm", "encoder", *besides)
        return [paths.METRICS.format(**run) for run in runs if run["language"] in languages]

    def baselines(self, language: str) -> list[str]:
        """Return the paths of the metric files of a language's baselines."""
        run = {"language": language, "setting": BASELINE, "seed": "0"}
        return [paths.METRICS.format(model=name, **run) for name in BASELINES]

    def neutral_run(self, *kinds: str) -> list[dict[str, str]]:
        """Return the run of the neutral-context ablation, as a list.

        The list is empty if there is no ablation or its model is not of these kinds.
        """
        neutral = self.settings.neutral
        if neutral is None or self.project.entry(neutral.model).kind not in kinds:
            return []
        return [{name: str(value) for name, value in neutral.model_dump().items()}]

    def _why_no_neutral(self, run: Mapping[str, str]) -> str:
        """Return why the ablation is not possible: its run, texts or answers are missing.

        The result is empty if the ablation is possible.
        """
        found, writer = self._why_not(run), self.settings.variants.model
        if not found and writer:
            reason = self.project.unanswered(writer, self.neutral_variants(**run).recordings)
            found = (
                reason
                and f"of {self.project.entry(writer).label}, which writes the texts, {reason}"
            )
        archived = paths.NEUTRAL_METRICS.format(**run) in self.archived
        if not (found or archived) and self.project.entry(run["model"]).kind == "llm":
            found = self.project.unanswered(
                run["model"], self._recordings("jam_neutral").format(**run)
            )
        return found

    # Originals, variants, dataset ----------------------------------------------------------------

    def own_decisions(self, language: str) -> str:
        """Return the path of the user's decision file for a language; empty if there is none."""
        path = Path(self.settings.decisions or "", f"{language}.tsv")
        return str(path) if self.settings.decisions and path.exists() else ""

    def decided_by(self, language: str) -> DecidedBy:
        """Return the source of the decisions on raw sentences.

        The source is a decision file of the user or of the sample, else the released originals. If
        a language has neither, the source is ID10M's tags.
        """
        if self.project.is_sample or self.own_decisions(language):
            return "file"
        return "release" if self._has(paths.RELEASED, language) else "tags"

    def _has(self, name: str, language: str) -> bool:
        """Return whether a language's file is in the user's own data, if set, or in the release."""
        name = name.format(language=language)
        if self.project.own_data:
            return self.project.is_available(name)
        return name in self.project.public_files

    def released_originals(self, language: str) -> list[str]:
        """Return the path of the released originals if decisions are derived from them; else []."""
        released = self.decided_by(language) == "release"
        return [paths.RELEASED_ORIGINALS.format(language=language)] if released else []

    def extra_pie_sources(self, language: str) -> list[str]:
        """Return the path of the dev split, whose tags provide further PIEs.

        The list is empty if decisions do not come from tags, or if the user's data lacks the split.
        """
        split = paths.DEV_SPLIT.format(language=language)
        lacks = self.project.own_data and not self.project.is_available(raw_name(split))
        by_tags = self.decided_by(language) == "tags"
        return [split] if by_tags and not lacks else []

    def decisions(self, language: str) -> str:
        """Return the path of the decision file: the user's, the sample's or a derived one."""
        if own := self.own_decisions(language):
            return own
        if self.project.is_sample:
            return self.project.here(f"data/sample/id10m/decisions/{language}.tsv")
        return paths.DECISIONS.format(language=language)

    def variants_file(self, language: str) -> str:
        """Return the path of the file with validated variants: the sample's or the released one."""
        if self.settings.variants.source == "sample":
            return self.project.here(f"data/sample/id10m/variants/{language}.json")
        return paths.RELEASED_VARIANTS.format(language=language)

    def variants_of(self, language: str) -> str:
        """Return the path of a language's checked variants.

        Raises:
            UserError: This configuration has no variants, although files of an earlier one may
                exist.
        """
        if not self.has_variants:
            raise UserError(
                f"{paths.DATASET.format(language=language)} needs variants, but there are none",
                where="jam.variants.source",
                hint="choose 'sample', 'released' or 'generated'",
            )
        return paths.VARIANTS.format(language=language)

    def released_variants(self, language: str) -> list[str]:
        """Return the path of the released variants if the dataset uses them; else []."""
        released = self.settings.variants.source == "released" and not self.is_written(language)
        return [self.variants_file(language)] if released else []

    def file_usage(self, metrics: str) -> dict[str, bool]:
        """Return whether a run reads each file of decisions, variants or reviews, by path."""
        language = Path(metrics).parts[3]
        decided = self.decisions(language)
        released = paths.RELEASED_VARIANTS.format(language=language)
        sample = self.project.here(f"data/sample/id10m/variants/{language}.json")
        return {
            **({} if decided.startswith("results/originals/") else {decided: True}),
            sample: self.settings.variants.source == "sample",
            released: bool(self.released_variants(language)),
            **dict.fromkeys([*self.annotations(language), *self.adjudications(language)], True),
        }

    def archived_models(self) -> set[str]:
        """Return the models for which all runs come from archives, so weights are not needed.

        The models used for the attention analysis and for writing variants are excluded.
        """
        attention = self.settings.attention
        others = {self.settings.variants.model, attention and attention.model}
        return super().archived_models() - others

    def annotations(self, language: str) -> list[str]:
        """Return the paths of the Label Studio exports for a language; may be empty."""
        return self.settings.variants.annotations.get(language, [])

    def adjudications(self, language: str) -> list[str]:
        """Return the path of the decisions on a language's disputed variants; [] if not set."""
        path = self.settings.variants.adjudications.get(language)
        return [path] if path else []

    def training_file(self, language: str) -> list[str]:
        """Return the path of ID10M's train split; [] if it is not available."""
        split = paths.TRAIN_SPLIT.format(language=language)
        return [split] if self.project.is_available(raw_name(split)) else []

    def manifest(self, language: str) -> list[str]:
        """Return the path of the dataset's manifest; [] if the study uses only originals."""
        return [paths.MANIFEST.format(language=language)] if self.has_variants else []

    def sentences(self, language: str) -> str:
        """Return the path of the dataset, or of the originals if there are no variants."""
        return (paths.DATASET if self.has_variants else paths.ORIGINALS).format(language=language)

    # Training ------------------------------------------------------------------------------------

    def train_split(self, language: str) -> list[str]:
        """Return the path of ID10M's train split; [] if encoders are trained on its dev split."""
        dev = self.settings.train_split == "dev"
        return [] if dev else [paths.TRAIN_SPLIT.format(language=language)]

    @property
    def added_settings(self) -> list[str]:
        """Return the configured encoder settings that add training texts."""
        return [name for name, texts in ADDED.items() if texts in self.settings.training_contexts]

    def added_texts(self, language: str, setting: str) -> str:
        """Return the path of the texts that a setting adds to the training data."""
        neutral = self._shows_neutral(setting)
        return (paths.NEUTRAL_CONTEXTS if neutral else paths.DATASET).format(language=language)

    def tagging_settings(self) -> str:
        """Return the hyperparameters of encoders as canonical JSON."""
        return canonical_json(self.settings.fine_tuning.stated(*TaggingSettings.model_fields))

    # Language model tasks ------------------------------------------------------------------------

    def parameters(self, model: str, setting: str) -> ZeroShot | FewShot:
        """Return the request parameters of a model in a setting."""
        own = self.settings.prompts.get(setting)
        found = self.settings.few_shot if setting == FEW_SHOT else self.settings.zero_shot
        if own:
            found = Arranged(**own.model_dump(exclude={"file"}))
        limit = self.settings.max_tokens_by_model.get(model, {}).get(setting)
        return found.model_copy(update={"max_tokens": limit}) if limit else found

    def prompt_files(self, setting: str) -> dict[str, str]:
        """Return the template paths of a setting: `prompt`, and `example` if it has examples."""
        if own := self.settings.prompts.get(setting):
            return {"prompt": self.project.configured_file(own.file)}
        folder = self.project.here("prompts/jam")
        if self.settings.asking == "released":
            folder = self.settings.released_prompts or f"{folder}/released"
        found = {"prompt": f"{folder}/{prompt_file(setting)}"}
        if setting == FEW_SHOT:
            found["example"] = f"{folder}/few_shot_example.jinja"
        return found

    def examples(self, language: str, setting: str) -> list[str]:
        """Return the path of the split that examples are drawn from; [] if a setting has none."""
        if setting != FEW_SHOT:
            return []
        return [paths.SPLIT.format(split=self.settings.train_split, language=language)]

    def identification(self, **run: str) -> Identification:
        """Return the task of one run, which identifies idioms in the input sentences."""
        language = run["language"]
        task = self._identification("jam", self.sentences(language), paths.PREDICTIONS, run)
        if not self._shows_neutral(run["setting"]):
            return task
        neutral = paths.NEUTRAL_CONTEXTS.format(language=language)
        return task.model_copy(update={"inputs": {**task.inputs, "neutral": neutral}})

    def neutral_identification(self, **run: str) -> Identification:
        """Return the task of the ablation's run, which identifies idioms in neutral variants."""
        sentences = paths.NEUTRAL_VARIANTS.format(**run)
        return self._identification("jam_neutral", sentences, paths.NEUTRAL_PREDICTIONS, run)

    def _identification(
        self, folder: str, sentences: str, predictions: str, run: dict[str, str]
    ) -> Identification:
        language, model, setting = run["language"], run["model"], run["setting"]
        inputs = {"sentences": sentences, **self.prompt_files(setting)}
        for train in self.examples(language, setting):
            inputs["train"] = train
        return Identification(
            **self._of_model(model),
            inputs=inputs,
            outputs={"predictions": predictions.format(**run)},
            recordings=self._recordings(folder).format(**run),
            setting=setting,
            seed=int(run["seed"]),
            parameters=self.parameters(model, setting),
        )

    def _recordings(self, folder: str) -> str:
        # Use one file per run: if a provider accepts no seed, runs with different seeds ask the
        # same questions but must not share answers.
        return self.project.recordings(
            folder, "{language}", "{model}", "{setting}-seed-{seed}.jsonl"
        )

    def _of_model(self, model: str) -> dict[str, str]:
        """Return the task fields that describe a model."""
        return {"model": model, "spec": self.project.language_model(model).execution_spec()}

    def generation(self) -> GenerationSettings:
        """Return the parameters for generating variants."""
        variants = self.settings.variants
        return GenerationSettings(
            count=variants.generated,
            temperature=variants.temperature,
            max_tokens=variants.max_tokens,
            seed=variants.generation_seed,
        )

    def _writer(self) -> str:
        assert self.settings.variants.model  # required by every task that calls this
        return self.settings.variants.model

    def hard_variants(self, language: str) -> HardVariants:
        """Return the task that writes the variants of a language."""
        model = self._writer()
        return HardVariants(
            **self._of_model(model),
            inputs={
                "originals": paths.ORIGINALS.format(language=language),
                "generate": self.project.here("prompts/jam", GENERATE),
                "review": self.project.here("prompts/jam", REVIEW),
            },
            outputs=_with_report(paths.VARIANTS.format(language=language)),
            recordings=self.project.recordings("jam_variants", language, f"{model}.jsonl"),
            generation=self.generation(),
            checks=self.settings.variants.checks,
        )

    def neutral_variants(self, **run: str) -> NeutralVariants:
        """Return the task that writes neutral variants for the hard ones that confused a run."""
        language, model = run["language"], self._writer()
        name = f"{run['model']}-{run['setting']}-{run['seed']}.jsonl"
        return NeutralVariants(
            **self._of_model(model),
            inputs={
                "dataset": paths.DATASET.format(language=language),
                "metrics": paths.METRICS.format(**run),
                "prompt": self.project.here("prompts/jam", NEUTRAL),
            },
            outputs=_with_report(paths.NEUTRAL_VARIANTS.format(**run)),
            recordings=self.project.recordings("jam_neutral", language, model, name),
            generation=self.generation(),
        )

    def neutral_contexts(self, language: str) -> NeutralContexts:
        """Return the task that writes a neutral variant for each hard variant of a language."""
        model = self._writer()
        return NeutralContexts(
            **self._of_model(model),
            inputs={
                "dataset": paths.DATASET.format(language=language),
                "prompt": self.project.here("prompts/jam", NEUTRAL),
            },
            outputs=_with_report(paths.NEUTRAL_CONTEXTS.format(language=language)),
            recordings=self.project.recordings("jam_neutral", language, f"{model}.jsonl"),
            generation=self.generation(),
        )

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specifications of the tasks that write variants or identify idioms."""
        llm = self.constraints("llm")
        found = []
        writes = self.written_languages
        shown = any(map(self._shows_neutral, [*self.settings.prompts, *self.added_settings]))
        written_contexts = shown and bool(self.settings.variants.model)
        answered = [*(["sentences"] if writes else []), *(["neutral"] if written_contexts else [])]
        if writes:
            found.append(
                LLMTaskSpec(
                    name="jam_generate_variants",
                    task=HardVariants,
                    outputs=_with_report(paths.VARIANTS),
                    make=self.hard_variants,
                    runs=[{"language": language} for language in writes],
                    constraints={
                        "language": alternatives(filter(self.is_written, language_names()))
                    },
                )
            )
        found.append(
            LLMTaskSpec(
                name="prompt_idioms",
                task=Identification,
                outputs={"predictions": paths.PREDICTIONS},
                make=self.identification,
                runs=[
                    run
                    for run in self.configured("llm")
                    if paths.METRICS.format(**run) not in self.archived
                    and not self._lacks(self.project.language_model(run["model"]), run["setting"])
                    and (self.settings.variants.model or not self._no_contexts(run))
                ],
                constraints=llm,
                after_answers=answered,
                recordings=self._recordings("jam"),
            )
        )
        if self.settings.variants.model:
            found.append(
                LLMTaskSpec(
                    name="jam_neutral_variants",
                    task=NeutralVariants,
                    outputs=_with_report(paths.NEUTRAL_VARIANTS),
                    make=self.neutral_variants,
                    runs=self.neutral_run("llm", "encoder"),
                    constraints=self.constraints("llm", "encoder"),
                    minutes=60,
                    after_answers=("metrics", "dataset") if writes else ("metrics",),
                )
            )
        if written_contexts:
            found.append(
                LLMTaskSpec(
                    name="jam_neutral_contexts",
                    task=NeutralContexts,
                    outputs=_with_report(paths.NEUTRAL_CONTEXTS),
                    make=self.neutral_contexts,
                    runs=[{"language": language} for language in self.settings.languages],
                    constraints={"language": alternatives(language_names())},
                    minutes=60,
                    after_answers=("dataset",) if writes else (),
                )
            )
        found.append(
            LLMTaskSpec(
                name="prompt_neutral",
                task=Identification,
                outputs={"predictions": paths.NEUTRAL_PREDICTIONS},
                make=self.neutral_identification,
                runs=[
                    run
                    for run in self.neutral_run("llm")
                    if paths.NEUTRAL_METRICS.format(**run) not in self.archived
                ],
                constraints=llm,
                minutes=120,
                after_answers=("sentences",),
                recordings=self._recordings("jam_neutral"),
            )
        )
        return found

    # Conditions ----------------------------------------------------------------------------------

    def metric_conditions(self) -> dict[str, Callable[..., str]]:
        """Return functions from wildcards to conditions (JSON), by pattern of metric files."""

        def of_run(model: str, setting: str, **_: str) -> str:
            is_baseline = setting == BASELINE
            return self.baseline_conditions() if is_baseline else self.conditions(model, setting)

        return {
            paths.METRICS: of_run,
            paths.NEUTRAL_METRICS: lambda model, setting, **_: self.neutral_conditions(
                model, setting
            ),
            paths.ATTENTION: lambda model, **_: self.attention_conditions(model),
            paths.STATISTICS: lambda **_: self.data_conditions(),
            paths.HUMANS: self.data_conditions,
        }

    def conditions(self, model: str, setting: str) -> str:
        """Return the conditions of a run as canonical JSON."""
        return self.mark_own_data(self._conditions(model, setting)).canonical()

    def baseline_conditions(self) -> str:
        """Return the conditions of baselines as canonical JSON."""
        settings = self.settings.model_dump(include={"scoring", "bootstrap_resamples"})
        return self.mark_own_data(Conditions(settings=settings)).canonical()

    def data_conditions(self) -> str:
        """Return the conditions of data counts and human labels as canonical JSON."""
        return self.mark_own_data(Conditions()).canonical()

    def neutral_conditions(self, model: str, setting: str) -> str:
        """Return the conditions of the neutral-context ablation as canonical JSON."""
        run, writer = self._conditions(model, setting), self.settings.variants.model
        written, reasons = {}, []
        if writer:
            sent, _ = self.as_sent(writer, self.generation())
            written = {"writer": writer, "generation": sent}
            reasons.append("neutral contexts by our prompt, the paper's is not printed")
            entry = self.project.language_model(writer)
            if entry.published_as != WRITER:
                reasons.append(f"neutral contexts by {entry.label}, the paper's by {WRITER}")
            reasons += self._of_variants("temperature")
        return self.mark_own_data(
            Conditions(
                settings={**run.settings, **written},
                weights=run.weights,
                deviations=(*run.deviations, *reasons),
            )
        ).canonical()

    def attention_conditions(self, model: str) -> str:
        """Return the conditions of the attention analysis as canonical JSON."""
        analysis = self.settings.attention or AttentionAnalysis(model=model)
        return self.mark_own_data(
            Conditions(
                settings={
                    "pairs": analysis.pairs,
                    "bootstrap_resamples": self.settings.bootstrap_resamples,
                },
                weights=json.loads(self.weights_spec(model)),
                deviations=(
                    *self.project.changed_entry(model),
                    *deviations(analysis, ignored={"model", "language"}),
                ),
            )
        ).canonical()

    def _of_variants(self, *names: str) -> tuple[str, ...]:
        """Return how the variant settings `names` deviate from the paper's."""
        others = JamVariants.model_fields.keys() - set(names)
        return deviations(self.settings.variants, ignored=others)

    def _conditions(self, model: str, setting: str) -> Conditions:
        settings = self.settings
        used = settings.model_dump(include={"scoring", "bootstrap_resamples"})
        used |= {"setting": setting}
        if self.prediction_files(model):
            return self.external_conditions(**used)
        reasons = [*self.project.changed_entry(model)]
        if settings.scoring != "paper":
            reasons.append("scored as in the released analysis, unlike the paper's text")
        reasons += self._of_variants("min_valid", "kept")
        tagged = setting in (FINE_TUNED, *ADDED)
        if tagged:
            tuning = settings.fine_tuning
            used |= tuning.stated(*type(tuning).model_fields.keys() - {"seeds"})
            reasons += deviations(tuning, ignored={"seeds", "form"})
            reasons += RELEASED_DEVIATIONS if tuning.form == "released" else ()
            if setting in ADDED:
                reasons.append(f"also trained with texts of other PIEs ({ADDED[setting]})")
        else:
            prompts = self.prompt_digests(*self.prompt_files(setting).values())
            used |= {"asking": settings.asking, "prompts": prompts}
            # The paper does not state whether reasoning models were sent the temperature.
            withheld = {"temperature"} if self.project.language_model(model).reasoning else set()
            sent, changed = self.as_sent(model, self.parameters(model, setting), withheld=withheld)
            used |= sent
            if setting in settings.prompts:
                reasons.append(OWN_PROMPT.format(setting))
            elif settings.asking == "released":
                reasons += RELEASED_FORM
                reasons += RELEASED_EXAMPLES if setting == FEW_SHOT else ()
            else:
                reasons += self.reworded(prompts)
            reasons += changed
            if setting == FEW_SHOT and settings.confusion_votes != "as_predicted":
                used |= {"confusion_votes": settings.confusion_votes}
                reasons.append(_STRICT_MAJORITY)
        if tagged or setting == FEW_SHOT:
            used["train_split"] = settings.train_split
            if settings.train_split != "train":
                kind = "trained on" if tagged else "examples from"
                reasons.append(f"{kind} ID10M's {settings.train_split} split, the paper's train")
        return Conditions(
            settings=used,
            weights=json.loads(self.project.entry(model).execution_spec()),
            deviations=tuple(reasons),
        )

    # Appendices ----------------------------------------------------------------------------------

    def human_labels(self) -> list[str]:
        """Return the paths of two annotators' labels; by default, the sample's simulated labels."""
        named, sample = self.settings.humans, "data/sample/id10m/humans/english_simulated.csv"
        return [named] if isinstance(named, str) else named or [self.project.here(sample)]

    @property
    def _missing_labels(self) -> str:
        """Return why there is no human baseline; empty if there is one."""
        if self.settings.humans or self.settings.variants.source == "sample":
            return ""
        return (
            f"the variants are not labeled: have two people fill in {paths.HUMAN_FORM}"
            " (snakemake jam_human_form writes it) and name their files in jam.humans"
        )

    @property
    def pairs(self) -> int:
        """Return the maximum number of pairs in the attention analysis."""
        return (self.settings.attention or AttentionAnalysis(model="")).pairs

    def weights_spec(self, model: str) -> str:
        """Return the specification of a model's weights as canonical JSON.

        Raises:
            UserError: The model has no weights.
        """
        entry = self.project.entry(model)
        if not isinstance(entry, CheckpointEntry):
            raise UserError(f"{model!r} has no weights", hint="name a causal model")
        return entry.weights_spec()

    # Tables and figures --------------------------------------------------------------------------

    def models(self) -> list[str]:
        """Return the evaluated and analyzed models, and the model that writes variants, if any."""
        settings = self.settings
        names = [*settings.models]
        if settings.attention:
            names.append(settings.attention.model)
        if settings.variants.model and (self.written_languages or settings.neutral):
            names.append(settings.variants.model)
        return list(dict.fromkeys(names))

    def tables(self) -> list[Table]:
        """Return the tables available in this configuration.

        Table 2 is always included; the paper's other tables require models and variants. If there
        are models but no variants, a table of originals replaces the other tables.
        """
        numbers = self.project.here("published/text_numbers.csv")
        # The numbers in the text and the figures cover only runs of this project, not external
        # ones.
        made_here, results, settings = self._runs(), self._results(), self.settings
        sizes = Table(
            "jam_statistics",
            "Table 2",
            "Sentences and variants of ID10M and ID10M-JAM.",
            "pieline.studies.jam.tables.dataset:statistics",
            self._statistics().with_files(published=self._published(2), text_numbers=numbers),
        )
        if not self.settings.models:
            return [sizes]
        if not self.has_variants:
            originals = Table(
                "jam_originals",
                "not in the paper",
                "Originals judged correctly, by model and usage.",
                "pieline.studies.jam.tables.results:originals_table",
                self._runs("predictions").model_copy(update={"absent": ()}),
            )
            return [sizes, originals]
        example, datasets, hyperparameters, prompt, checkpoints, artifacts = self._descriptions()
        tables = [
            example,
            datasets,
            sizes,
            Table(
                "jam_drift",
                "Table 3",
                "Successes and negative drift of every model.",
                "pieline.studies.jam.tables.results:drift_table",
                results.with_files(published=self._published(3)),
            ),
            Table(
                "jam_text",
                "Section 5",
                "Numbers of the running text that follow from the figures.",
                "pieline.studies.jam.tables.text:text",
                made_here.with_files(text_numbers=numbers, published=self._published(3)).model_copy(
                    update={"options": {"figure3": settings.figure3.model_dump()}}
                ),
            ),
        ]
        if "english" in settings.languages:
            reason = self._missing_labels
            humans = DisplayInputs(
                metrics=() if reason else (paths.HUMANS,),
                files={"text_numbers": numbers},
                not_run={"people": reason} if reason else {},
                notes=self._notes,
            )
            tables.append(
                Table(
                    "jam_humans",
                    "Section 5.1",
                    "Two people on the hard variants, in percent.",
                    "pieline.studies.jam.tables.appendix:humans",
                    humans,
                )
            )
        tables += [
            hyperparameters,
            prompt,
            Table(
                "jam_usage",
                "Table 5",
                "Successes and negative drift by usage.",
                "pieline.studies.jam.tables.results:usage_table",
                results.with_files(published=self._published(5)),
            ),
            Table(
                "jam_confusion",
                "Table 6",
                "Originals of which all, none or some variants confuse a model.",
                "pieline.studies.jam.tables.results:confusion_table",
                results.with_files(published=self._published(6)),
            ),
        ]
        for run in self.neutral_run("llm", "encoder"):
            reason = self._why_no_neutral(run)
            neutral = DisplayInputs(
                metrics=() if reason else (paths.NEUTRAL_METRICS.format(**run),),
                files={"text_numbers": numbers},
                models=self.describe_models([run["model"]]),
                not_run={run["model"]: reason} if reason else {},
                options=run,
                notes=self._notes,
            )
            tables.append(
                Table(
                    "jam_neutral",
                    "Appendix G",
                    "Confusing variants with neutral context.",
                    "pieline.studies.jam.tables.appendix:neutral",
                    neutral,
                )
            )
        if settings.attention:
            tables.append(
                Table(
                    "jam_attention",
                    "Appendix H",
                    "Where the tokens of a PIE attend to.",
                    "pieline.studies.jam.tables.appendix:attention",
                    self._attention(),
                )
            )
        if self._compares_effects:
            tables.append(
                Table(
                    "jam_prompts",
                    "not in the paper",
                    "Effects of prompts and training data, on the same originals.",
                    "pieline.studies.jam.tables.prompt_effects:prompts",
                    self._prompt_effects(),
                )
            )
        return [
            *tables,
            checkpoints,
            artifacts,
            Table(
                "jam_pairs",
                "not in the paper",
                "Which of two runs drifts more, by a paired randomization test over originals.",
                "pieline.studies.jam.tables.runs:pairs",
                self._runs("predictions").model_copy(
                    update={"options": {"permutations": settings.permutations}}
                ),
            ),
            Table(
                "jam_runs",
                "not in the paper",
                "Every run with its seeds and intervals.",
                "pieline.studies.jam.tables.runs:runs",
                results,
            ),
        ]

    def why_no_table(self, name: str) -> str:
        """Return why this configuration does not include a table."""
        if not self.has_variants:
            return NO_VARIANTS
        return super().why_no_table(name) if self.settings.models else "jam.models names no model"

    def _descriptions(self) -> list[Table]:
        """Return the displays that need no run: Figures 1 and 4, Tables 1, 4, 7 and 8."""
        settings, upstream = self.settings, self.project.upstream
        sentences = {name: paths.DATASET.format(language=name) for name in settings.languages}
        fields = type(settings.fine_tuning).model_fields
        tuning = settings.fine_tuning.stated(*fields) if list(self.configured("encoder")) else {}
        setting_of: dict[str, str] = {}
        for setting in chain(settings.settings, *settings.settings_by_model.values()):
            for kind, file in self.prompt_files(setting).items():
                setting_of.setdefault(file, setting if kind == "prompt" else "few_shot_example")
        prompts = {setting: file for file, setting in setting_of.items()}
        return [
            Table(
                "jam_example",
                "Figure 1",
                "An original of each usage and a hard variant of it.",
                "pieline.studies.jam.tables.described:example",
                DisplayInputs(files=sentences, notes=self._notes),
            ),
            Table(
                "jam_datasets",
                "Table 1",
                "Datasets of idioms and their languages.",
                "pieline.studies.jam.tables.described:datasets",
                DisplayInputs(files={"published": self._published(1), "upstream": upstream}),
            ),
            Table(
                "jam_hyperparameters",
                "Table 4",
                "Hyperparameters of encoders, as set in this run.",
                "pieline.studies.jam.tables.described:hyperparameters",
                DisplayInputs(files={"published": self._published(4)}, options=tuning),
            ),
            Table(
                "jam_prompt",
                "Figure 4",
                "The prompts of this run.",
                "pieline.studies.jam.tables.described:prompt",
                DisplayInputs(files=prompts, options={"prompts": list(prompts)}),
            ),
            Table(
                "jam_checkpoints",
                "Table 7",
                "Checkpoints, their licenses, sizes and pinned revisions.",
                "pieline.reporting.described:checkpoints",
                DisplayInputs(files={"published": self._published(7)}, options=self._checkpoints()),
            ),
            Table(
                "jam_artifacts",
                "Table 8",
                "Data and software, their licenses and pinned versions.",
                "pieline.reporting.described:artifacts",
                DisplayInputs(
                    files={
                        "published": self._published(8),
                        "lock": self.project.here("envs/requirements.lock"),
                        "licences": self.project.here("data/licences.yaml"),
                        "upstream": upstream,
                    }
                ),
            ),
        ]

    def _checkpoints(self) -> dict[str, Any]:
        """Return the entries of the paper's models by their name in Table 7."""
        fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
        found: dict[str, Any] = {}
        for name in self.project.names("llm", "encoder", "causal_lm"):
            entry = self.project.registry[name]
            stated = entry.model_dump(include=fields)
            if isinstance(entry, LLMEntry):
                stated["checkpoint"] = entry.litellm_id.partition("/")[2]
            if entry.published_as:
                found.setdefault(entry.published_as, {"name": name, **stated})
        return found

    def figures(self) -> list[Figure]:
        """Return the flow figure and, if there are models and variants, the figures of results.

        These are Figures 2, 3 and 6, and those of the attention analysis and of prompt effects if
        they are configured.
        """
        flow = Figure(
            "jam_flow",
            "Section 3",
            "From ID10M's test split to originals and hard variants.",
            "pieline.studies.jam.figures.dataset:flow",
            self._statistics(),
        )
        if not (self.has_variants and self.settings.models):
            return [flow]
        options = {
            "languages": list(self.settings.languages),
            "figure3": self.settings.figure3.model_dump(),
        }
        runs = self._runs().model_copy(update={"options": options})
        numbers = self.project.here("published/text_numbers.csv")
        figures = [
            flow,
            Figure(
                "jam_accuracy_vs_drift",
                "Figure 2",
                "Accuracy on the originals against negative drift.",
                "pieline.studies.jam.figures.results:accuracy_vs_drift",
                runs.with_files(published=self._published(3), text_numbers=numbers),
            ),
            Figure(
                "jam_confused_models",
                "Figure 3",
                "How many models each hard variant confuses.",
                "pieline.studies.jam.figures.results:confused_models",
                runs.with_files(text_numbers=numbers),
            ),
            Figure(
                "jam_all_vs_mixed",
                "Figure 6",
                "All-confused against partly confused originals.",
                "pieline.studies.jam.figures.results:all_vs_mixed",
                runs.with_files(published=self._published(6)),
            ),
        ]
        if self.settings.attention and (attention := self._attention()).metrics:
            figures.append(
                Figure(
                    "jam_attention",
                    "Figure 7",
                    "Attention from the tokens of a PIE to its context.",
                    "pieline.studies.jam.figures.attention:attention",
                    attention,
                )
            )
        if self._compares_effects:
            figures.append(
                Figure(
                    "jam_prompts",
                    "not in the paper",
                    "Effects of prompts and training data, with 95% intervals.",
                    "pieline.studies.jam.figures.prompt_effects:forest",
                    self._prompt_effects(),
                )
            )
        return figures

    @property
    def _notes(self) -> tuple[str, ...]:
        """Return notes on data that are not the paper's."""
        if self.project.is_sample:
            return (SAMPLE_NOTE,)
        notes = []
        for decided, note in _NOT_OF_PAPER.items():
            chosen = [name for name in self.settings.languages if self.decided_by(name) == decided]
            notes += [note.format(_listed(chosen))] if chosen else []
        # An inactive study may lack its writer model.
        if (model := self.settings.variants.model) and self.written_languages:
            writer = self.project.entry(model).label
            notes.append(_WRITTEN.format(writer, _listed(self.written_languages)))
        return tuple(notes)

    def _published(self, number: int) -> str:
        return self.project.here(f"published/jam_table{number}.csv")

    def _runs(self, *besides: str) -> DisplayInputs:
        """Return inputs with all runs, and the reasons for missing runs.

        The runs are those of language models, encoders and the kinds of models in `besides`.
        """
        languages, models = self.settings.languages, self.settings.models
        metrics = self.metrics_on(*languages, besides=besides)
        given = self.display_inputs(metrics, models, "llm", "encoder")
        return given.model_copy(update={"notes": self._notes})

    def _results(self) -> DisplayInputs:
        """Return inputs with all runs, including external ones, and baselines."""
        runs = self._runs("predictions")
        scored = (path for name in self.settings.languages for path in self.baselines(name))
        described = (
            ModelDescription(name=name, kind="baseline", label=label)
            for name, label in BASELINES.items()
        )
        return runs.model_copy(
            update={"metrics": (*runs.metrics, *scored), "models": (*runs.models, *described)}
        )

    @property
    def _compares_effects(self) -> bool:
        return bool(self.settings.prompts_against or self.added_settings)

    def _prompt_effects(self) -> DisplayInputs:
        """Return inputs with the runs to compare, their references and `always-none`."""
        settings, runs, added = self.settings, self._runs(), self.added_settings
        shown = {settings.prompts_against, *([FINE_TUNED] if added else []), *added}
        shown |= {*settings.prompts} if settings.prompts_against else set()
        made = [path for path in runs.metrics if Path(path).parts[-2] in shown]
        none = [self.baselines(language)[0] for language in settings.languages]
        options = {
            "against": settings.prompts_against,
            "added": bool(added),
            "permutations": settings.permutations,
            "resamples": settings.bootstrap_resamples,
        }
        return runs.model_copy(update={"metrics": (*made, *none), "absent": (), "options": options})

    def _statistics(self) -> DisplayInputs:
        languages = self.settings.languages
        metrics = tuple(paths.STATISTICS.format(language=name) for name in languages)
        return DisplayInputs(metrics=metrics, notes=self._notes)

    def _attention(self) -> DisplayInputs:
        analysis = self.settings.attention
        assert analysis  # callers check this
        place = analysis.model_dump(include={"language", "model"})
        made = bool(self.metrics_on(analysis.language))
        return DisplayInputs(
            metrics=(paths.ATTENTION.format(**place),) if made else (),
            models=self.describe_models([analysis.model]),
            not_run={} if made else {analysis.model: "no run shows which variants mislead"},
            options=place,
            notes=self._notes,
        )

    def items(self) -> Items:
        """Return the specification of the items, one per sentence and run."""
        made = list(self.runs("llm", "encoder", "predictions"))
        behind = (
            path
            for run in made
            for path in (paths.PREDICTIONS.format(**run), self.sentences(run["language"]))
        )
        metrics = [paths.METRICS.format(**run) for run in made]
        return self.items_of(metrics, self.settings.models, behind)

    # Targets and inputs --------------------------------------------------------------------------

    def other_targets(self) -> list[str]:
        """Return the paths of the sentences and, with variants, of files for human annotators.

        The latter are the labeling configurations and the English form of the human baseline.
        """
        languages = self.settings.languages
        names = [self.sentences(language) for language in languages]
        if not self.has_variants:
            return names
        names += [paths.LABELLING.format(language=language) for language in languages]
        return [*names, paths.HUMAN_FORM] if "english" in languages else names

    def raw_files(self) -> list[str]:
        """Return the paths of the raw files on which the configured results depend."""
        names = []
        for language in self.settings.languages:
            names += [paths.TEST_SPLIT.format(language=language), *self.training_file(language)]
            names += [*self.released_originals(language), *self.extra_pie_sources(language)]
            names += self.released_variants(language)
        for run in self.runs("encoder"):
            if paths.METRICS.format(**run) in self.archived:
                continue
            names += [paths.DEV_SPLIT.format(**run)]
            names += self.train_split(run["language"])
        for run in self.runs("llm"):
            names += self.examples(run["language"], run["setting"])
        return sorted(set(names))

    def check_own_data(self) -> None:
        """Raise a `UserError` if user data is missing, or if another split overlaps with test."""
        super().check_own_data()
        for language in self.settings.languages if self.project.own_data else ():
            (test,) = self.project.local(raw_name(paths.TEST_SPLIT.format(language=language)))
            blocks = _blocks(test)
            for split in ("train", "dev"):
                name = raw_name(paths.SPLIT.format(split=split, language=language))
                if not self.project.is_available(name):
                    continue
                (path,) = self.project.local(name)
                common = len(blocks & _blocks(path))
                if common > _MOST_COMMON * len(blocks):
                    raise UserError(
                        f"the file contains {common} of the {len(blocks)} sentences of {test}",
                        where=path,
                        hint="remove the overlap between the splits",
                    )

    def behind(self, metrics: str) -> list[str]:
        """Return the paths of the predictions and sentences behind a metric file; [] if unknown."""
        for run in self.runs("llm", "encoder", "predictions"):
            if paths.METRICS.format(**run) == metrics:
                return [paths.PREDICTIONS.format(**run), self.sentences(run["language"])]
        return []
