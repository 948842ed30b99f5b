"""IdioTS: do chat models detect idioms, and for the right reason?"""

import json
from typing import get_args

from pieline.core.conditions import Conditions, deviations
from pieline.reporting.given import Given
from pieline.studies.idiots.predictions import Detection
from pieline.studies.idiots.settings import DetectionSetting, IdiotsSettings
from pieline.study import Asking, Figure, Study, Table, alternatives

PREDICTIONS = "results/predictions/idiots/{model}/{setting}/seed-{seed}.jsonl"
CASES = "results/predictions/idiots/{model}/{setting}/seed-{seed}.cases.jsonl"
METRICS = "results/metrics/idiots/{model}/{setting}/seed-{seed}.json"
SENTENCES = "results/datasets/idiots/sentences.jsonl"
PROMPT = "prompts/idiots/detect.jinja"


class IdiotsStudy(Study[IdiotsSettings]):
    """The IdioTS study."""

    name = "idiots"
    paper = "IdioTS"
    Settings = IdiotsSettings

    def check(self, where: str) -> None:
        """Raise a `UserError` for a model that is no language model."""
        self.check_models(self.settings.models, "llm", where=f"{where}.models")

    def models(self) -> list[str]:
        """The language models that are asked."""
        return list(self.settings.models)

    def runs(self) -> list[dict[str, str]]:
        """Model, setting and seed of every run."""
        return [
            {"model": model, "setting": setting, "seed": str(seed)}
            for model in self.settings.models
            for setting in self.settings.settings
            for seed in self.settings.seeds
        ]

    def files(self, pattern: str) -> list[str]:
        """A file of every run."""
        return [pattern.format(**run) for run in self.runs()]

    def constraints(self) -> dict[str, str]:
        """What the wildcards of a run may be."""
        return {
            "model": self.run.constraint("llm"),
            "setting": alternatives(get_args(DetectionSetting)),
        }

    def kinds(self) -> list[str]:
        """The file that marks the distractors, if there is one."""
        if self.run.is_sample:
            return ["results/raw/idiots/distractor_kinds.csv"]
        return [self.settings.distractor_kinds] if self.settings.distractor_kinds else []

    def verdicts(self) -> list[str]:
        """The cases that people judged, if there are any."""
        return [self.settings.verdicts] if self.settings.verdicts else []

    def detection(self, model: str, setting: str, seed: str) -> Detection:
        """The task of one run."""
        return Detection(
            model=model,
            spec=self.run.language_model(model).execution_spec(),
            inputs={"sentences": SENTENCES, "prompt": self.run.here(PROMPT)},
            outputs={"predictions": PREDICTIONS.format(model=model, setting=setting, seed=seed)},
            recordings=self.run.recordings("idiots", f"{model}.jsonl"),
            setting=setting,
            seed=int(seed),
            parameters=self.settings.parameters,
        )

    def askings(self) -> list[Asking]:
        """Every sentence is asked about once a run."""
        return [
            Asking(
                name="idiots_detect",
                task=Detection,
                outputs={"predictions": PREDICTIONS},
                make=self.detection,
                runs=self.runs(),
                constraints=self.constraints(),
            )
        ]

    def conditions(self, model: str, setting: str) -> str:
        """Under which conditions a run's numbers are computed, as canonical JSON."""
        parameters = self.settings.parameters
        return Conditions(
            settings={"setting": setting, **parameters.model_dump()},
            weights=json.loads(self.run.entry(model).execution_spec()),
            deviations=deviations(parameters),
        ).canonical()

    def tables(self) -> list[Table]:
        """Tables 1 to 3."""
        given = self._given()

        def table(name: str, number: int, caption: str) -> Table:
            return Table(
                f"idiots_{name}",
                f"Table {number}",
                caption,
                f"pieline.studies.idiots.tables:{name}",
                given.of(published=self.run.here(f"published/idiots_table{number}.csv")),
            )

        return [
            table("detection", 1, "Automatic metrics of idiom detection."),
            table("consistency", 2, "True positives that name the right idiom."),
            table("distractors", 3, "Distractors whose PIE was given a figurative meaning."),
        ]

    def figures(self) -> list[Figure]:
        """Who says "idiom" to everything, and who tells the two apart."""
        return [
            Figure(
                "idiots_recall_specificity",
                "Section 5.1",
                "Recall against specificity of each run.",
                "pieline.studies.idiots.figures:recall_against_specificity",
                self._given().of(published=self.run.here("published/idiots_table1.csv")),
            )
        ]

    def _given(self) -> Given:
        absent, not_run = self.absent("llm")
        return Given(
            metrics=tuple(self.files(METRICS)),
            models=self.run.described(self.settings.models),
            absent=self.run.described(absent),
            not_run=not_run,
        )

    def raw_files(self) -> list[str]:
        """The sentences, and the sample's marked distractors."""
        return ["results/raw/idiots/idiots.json", *self.kinds()]

    def other_targets(self) -> list[str]:
        """The cases for people to judge."""
        return self.files(CASES)

    def behind(self, metrics: str) -> list[str]:
        """The predictions of a run, and the sentences."""
        made = dict(zip(self.files(METRICS), self.files(PREDICTIONS), strict=True))
        return [made[metrics], SENTENCES] if metrics in made else []
