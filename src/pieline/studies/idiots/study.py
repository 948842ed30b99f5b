"""Definition of the IdioTS study: runs, files, language model tasks, tables and figures."""

import json
from collections.abc import Callable
from itertools import product
from typing import get_args

from pieline.core.conditions import Conditions, digest_of
from pieline.core.errors import UserError
from pieline.llm.obstacles import unsupported_reason
from pieline.llm.prompts import load_prompt
from pieline.project import alternatives
from pieline.reporting.inputs import DisplayInputs
from pieline.studies.idiots import paths
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.predictions import Detection, StrictDetection
from pieline.studies.idiots.settings import (
    DetectionParameters,
    DetectionSetting,
    IdiotsSettings,
    OwnParameters,
)
from pieline.studies.idiots.verdicts import read_cases
from pieline.study import OWN_PROMPT, Figure, Items, LLMTaskSpec, Study, Table

PROMPT = "prompts/idiots/detect.jinja"
STRICT = "answers that say true but name no idiom are unreadable, the paper reads true/false alone"
TABLE, ARRAY = "idiots/idioms_sentences.tsv", "idiots/idiots.json"
"""Names of the raw files that may contain the sentences."""


class IdiotsStudy(Study[IdiotsSettings]):
    """The IdioTS study."""

    name = "idiots"
    paper = "IdioTS"
    Settings = IdiotsSettings

    def check(self, where: str) -> None:
        """Validate the models, prompts, data and verdicts.

        Raises:
            UserError: A setting is invalid.
        """
        settings = self.settings
        self.check_models(settings.models, "llm", "predictions", where=f"{where}.models")
        self.check_external(settings.models, where=f"{where}.models")
        self.check_models(settings.settings_by_model, "llm", where=f"{where}.settings_by_model")
        for setting in settings.prompts:
            load_prompt(self.prompt(setting)).check_shows("sentence")
        if self.project.own_data and all(map(self.project.is_available, (TABLE, ARRAY))):
            raise UserError(
                f"both {TABLE} and {ARRAY} exist", where=self.project.own_data, hint="remove one"
            )
        # A rehearsal creates its own verdicts during the run.
        if settings.verdicts and not settings.verdicts.startswith("results/"):
            judged_runs = {case.run for case in read_cases(settings.verdicts) if case.verdict}
            runs = {(run["model"], run["setting"], int(run["seed"])) for run in self.configured()}
            if not judged_runs & runs:
                one = f", only on {' '.join(map(str, min(judged_runs)))}" if judged_runs else ""
                raise UserError(
                    f"no verdict on a run of this configuration{one}",
                    where=settings.verdicts,
                    hint="fill in the column verdict and leave the others unchanged",
                )

    def models(self) -> list[str]:
        """Return the language models and the models with external predictions."""
        return list(self.settings.models)

    def configured(self) -> list[dict[str, str]]:
        """Return model, setting and seed of every run in the configuration."""
        settings = self.settings
        return [
            {"model": model, "setting": setting, "seed": str(seed)}
            for model in settings.models
            for setting, seed in [(one.setting, one.seed) for one in self.prediction_files(model)]
            or product(settings.settings_by_model.get(model, settings.settings), settings.seeds)
        ]

    def run_metrics(self) -> list[str]:
        """Return the paths of the metric files of all configured runs."""
        return [paths.METRICS.format(**run) for run in self.configured()]

    def runs(self) -> list[dict[str, str]]:
        """Return the configured runs that can be computed or reused."""
        return [run for run in self.configured() if not self._why_not(**run)]

    def left_out(self) -> dict[str, str]:
        """Return why configured runs are left out, by `model/setting/seed`."""
        reasons = {"/".join(run.values()): self._why_not(**run) for run in self.configured()}
        return {run: reason for run, reason in reasons.items() if reason}

    def _no_data(self) -> str:
        """Return why the sentences are missing; empty if they are available."""
        name = self.raw_name()
        is_available = self.project.data != "released" or self.project.is_available(name)
        return "" if is_available else f"the mirror has no {name}"

    def _why_not(self, model: str, setting: str, seed: str) -> str:
        if obstacle := self._no_data():
            return obstacle
        path = paths.METRICS.format(model=model, setting=setting, seed=seed)
        if self.prediction_files(model) or path in self.archived:
            return ""
        if obstacle := unsupported_reason(self.project.language_model(model), setting):
            return obstacle
        return self.project.unanswered(
            model, self._recordings().format(model=model, setting=setting, seed=seed)
        )

    def _recordings(self) -> str:
        # One file per run: if a provider does not accept a seed, runs with different seeds ask
        # the same questions, but must not share their answers.
        return self.project.recordings("idiots", "{model}", "{setting}-seed-{seed}.jsonl")

    def files(self, pattern: str) -> list[str]:
        """Return the paths that result from a path pattern, one for each run in `runs`."""
        return [pattern.format(**run) for run in self.runs()]

    def constraints(self, *kinds: str) -> dict[str, str]:
        """Return the wildcard constraints of runs of models of these kinds (default: all kinds)."""
        return {
            "model": self.project.constraint(*kinds or ("llm", "predictions")),
            "setting": alternatives(
                {*get_args(DetectionSetting), *self.settings.prompts, *self.external_settings()}
            ),
        }

    def kinds(self) -> list[str]:
        """Return the path of the file with kinds of distractors; [] if there is none."""
        if self.project.is_sample:
            return [paths.SAMPLE_KINDS]
        return [self.settings.distractor_kinds] if self.settings.distractor_kinds else []

    def verdicts(self) -> list[str]:
        """Return the path of the file with human verdicts; [] if there is none."""
        return [self.settings.verdicts] if self.settings.verdicts else []

    def prompt(self, setting: str) -> str:
        """Return the path of a setting's template."""
        own = self.settings.prompts.get(setting)
        return self.project.configured_file(own.file) if own else self.project.here(PROMPT)

    def parameters(self, setting: str) -> DetectionParameters:
        """Return the request parameters of a setting."""
        if own := self.settings.prompts.get(setting):
            return OwnParameters(**own.model_dump(exclude={"file"}))
        return self.settings.parameters

    def detection(self, model: str, setting: str, seed: str) -> Detection:
        """Return the task that detects idioms in one run."""
        return self._task(
            model=model,
            spec=self.project.language_model(model).execution_spec(),
            inputs={"sentences": paths.SENTENCES, "prompt": self.prompt(setting)},
            outputs={
                "predictions": paths.PREDICTIONS.format(model=model, setting=setting, seed=seed)
            },
            recordings=self._recordings().format(model=model, setting=setting, seed=seed),
            setting=setting,
            seed=int(seed),
            parameters=self.parameters(setting),
        )

    @property
    def _task(self) -> type[Detection]:
        return StrictDetection if self.settings.detection == "strict" else Detection

    def llm_tasks(self) -> list[LLMTaskSpec]:
        """Return the specification of the tasks that detect idioms, one task per run."""
        return [
            LLMTaskSpec(
                name="idiots_detect",
                task=self._task,
                outputs={"predictions": paths.PREDICTIONS},
                make=self.detection,
                runs=[
                    run
                    for run in self.configured()
                    if not self._no_data()
                    and paths.METRICS.format(**run) not in self.archived
                    and not self.prediction_files(run["model"])
                    and not unsupported_reason(
                        self.project.language_model(run["model"]), run["setting"]
                    )
                ],
                constraints=self.constraints("llm"),
                recordings=self._recordings(),
            )
        ]

    def metric_conditions(self) -> dict[str, Callable[..., str]]:
        """Return functions from wildcards to conditions (JSON), by pattern of metric files."""
        return {
            paths.METRICS: lambda model, setting, seed: self.conditions(model, setting),
            paths.BIAS: self._bias_conditions,
        }

    def conditions(self, model: str, setting: str) -> str:
        """Return the conditions of a run as canonical JSON."""
        if self.prediction_files(model):
            return self.mark_own_data(self.external_conditions(setting=setting)).canonical()
        parameters, changed = self.as_sent(model, self.parameters(setting))
        prompts = self.prompt_digests(self.prompt(setting))
        is_own = setting in self.settings.prompts
        wording = [OWN_PROMPT.format(setting)] if is_own else self.reworded(prompts)
        # Only the other value than the paper's is listed, so that earlier results keep their
        # conditions.
        is_strict = self.settings.detection == "strict"
        return self.mark_own_data(
            Conditions(
                settings={
                    "bootstrap_resamples": self.settings.bootstrap_resamples,
                    "setting": setting,
                    "prompts": prompts,
                    **parameters,
                    **({"detection": "strict"} if is_strict else {}),
                },
                weights=json.loads(self.project.entry(model).execution_spec()),
                deviations=(
                    *self.project.changed_entry(model),
                    *wording,
                    *([STRICT] if is_strict else []),
                    *changed,
                ),
            )
        ).canonical()

    def tables(self) -> list[Table]:
        """Return the paper's tables and, if `prompts_against` is set, the comparison of prompts."""
        inputs = self._display_inputs()
        text = self.project.here("published/text_numbers.csv")
        obstacle = self._no_data()
        manifest = {} if obstacle else {"manifest": paths.MANIFEST}

        def printed(number: int) -> DisplayInputs:
            return inputs.with_files(
                published=self.project.here(f"published/idiots_table{number}.csv")
            )

        return [
            Table(
                "idiots_dataset",
                "Section 3",
                "PIEs and sentences of the test suite.",
                "pieline.studies.idiots.tables:dataset",
                DisplayInputs(
                    files={**manifest, "text_numbers": text}, notes=(obstacle,) if obstacle else ()
                ),
            ),
            Table(
                "idiots_detection",
                "Table 1",
                "Automatic metrics of idiom detection.",
                "pieline.studies.idiots.tables:detection",
                printed(1),
            ),
            Table(
                "idiots_consistency",
                "Table 2",
                "True positives that name the right idiom.",
                "pieline.studies.idiots.tables:consistency",
                printed(2),
            ),
            Table(
                "idiots_distractors",
                "Table 3",
                "Distractors whose PIE was given a figurative meaning.",
                "pieline.studies.idiots.tables:distractors",
                printed(3),
            ),
            Table(
                "idiots_errors",
                "Section 5.2.1",
                "Errors, and their types as people sorted them.",
                "pieline.studies.idiots.tables:errors",
                inputs.with_files(text_numbers=text),
            ),
            Table(
                "idiots_prompt",
                "Figures 1 and 2",
                "The prompt, and its layout for Llama 2.",
                "pieline.studies.idiots.tables:prompt",
                DisplayInputs(files={"prompt": self.project.here(PROMPT)}),
            ),
            *(
                [
                    Table(
                        "idiots_bias",
                        "not in the paper",
                        "Effects of prompts on the criterion and on d′.",
                        "pieline.studies.idiots.tables:bias",
                        self._bias(),
                    )
                ]
                if self.settings.prompts_against
                else []
            ),
        ]

    def figures(self) -> list[Figure]:
        """Return the figure of recall and specificity.

        If `prompts_against` is set, the figure of signal detection is also returned.
        """
        return [
            Figure(
                "idiots_recall_specificity",
                "Section 5.1",
                "Recall against specificity of each run.",
                "pieline.studies.idiots.figures:recall_against_specificity",
                self._display_inputs().with_files(
                    published=self.project.here("published/idiots_table1.csv")
                ),
            ),
            *(
                [
                    Figure(
                        "idiots_bias",
                        "not in the paper",
                        "Sensitivity d′ against the criterion.",
                        "pieline.studies.idiots.figures:sensitivity_against_criterion",
                        self._bias(),
                    )
                ]
                if self.settings.prompts_against
                else []
            ),
        ]

    def _bias(self) -> DisplayInputs:
        """Return the inputs of the table and figure that compare settings by signal detection."""
        models = dict.fromkeys(run["model"] for run in self.runs())
        compared = [model for model in models if self.compared(model, paths.METRICS)]
        metrics = [paths.BIAS.format(model=model) for model in compared]
        inputs = self.display_inputs(metrics, self.settings.models, "llm")
        return inputs.model_copy(
            update={"absent": (), "options": {"against": self.settings.prompts_against}}
        )

    def compared(self, model: str, pattern: str) -> list[str]:
        """Return the paths for a model's runs with a custom prompt or the reference setting.

        `pattern` is a path pattern.
        """
        settings = self.settings
        compared_settings = {*settings.prompts, settings.prompts_against}
        return [
            pattern.format(**run)
            for run in self.runs()
            if run["model"] == model and run["setting"] in compared_settings
        ]

    def _bias_conditions(self, model: str) -> str:
        settings = self.settings
        return self.mark_own_data(
            Conditions(
                settings={
                    "against": settings.prompts_against,
                    "permutations": settings.permutations,
                    "bootstrap_resamples": settings.bootstrap_resamples,
                    "runs": {
                        path: digest_of(self.conditions_of(path))
                        for path in self.compared(model, paths.METRICS)
                    },
                }
            )
        ).canonical()

    def _display_inputs(self) -> DisplayInputs:
        return self.display_inputs(self.files(paths.METRICS), self.settings.models, "llm")

    def items(self) -> Items:
        """Return the specification of the items, one per sentence and run."""
        metrics, predictions = self.files(paths.METRICS), self.files(paths.PREDICTIONS)
        behind = [*predictions, paths.SENTENCES] if predictions else []
        reviewed = {"verdicts": self.settings.verdicts} if self.settings.verdicts else {}
        return self.items_of(metrics, self.settings.models, behind, **reviewed)

    def raw_files(self) -> list[str]:
        """Return the paths of the sentences and the kinds of distractors; [] without sentences."""
        return [] if self._no_data() else [f"results/raw/{self.raw_name()}", *self.kinds()]

    def raw_name(self) -> str:
        """Return the raw file name of the sentences.

        The file is a JSON array in the sample, and in own data that has an array but no table. In
        all other cases, the file is a table.
        """
        own_array = self.project.own_data and not self.project.is_available(TABLE)
        is_array = self.project.is_sample or (own_array and self.project.is_available(ARRAY))
        return ARRAY if is_array else TABLE

    def origin(self) -> Origin:
        """Return the origin of the sentences before their digest is checked."""
        return "unverified" if self.project.data == "released" else self.project.data

    def other_targets(self) -> list[str]:
        """Return the paths of the files with cases for human judgment."""
        return self.files(paths.CASES)

    def behind(self, metrics: str) -> list[str]:
        """Return the paths of the predictions and sentences behind a metric file; [] if unknown."""
        predictions = dict(
            zip(self.files(paths.METRICS), self.files(paths.PREDICTIONS), strict=True)
        )
        return [predictions[metrics], paths.SENTENCES] if metrics in predictions else []
