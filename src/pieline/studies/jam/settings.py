"""Settings of ID10M-JAM: the section jam of config.yaml."""

from itertools import chain
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, PositiveInt, model_validator

from pieline.core.records import Name
from pieline.core.settings import Seed, Settings, check_settings
from pieline.languages.settings import LanguageName
from pieline.studies.jam.metrics.identification import Scoring
from pieline.studies.jam.predictions.prompt_settings import (
    FewShot,
    OwnPrompt,
    PromptSetting,
    ZeroShot,
)
from pieline.studies.jam.training.settings import EncoderInput, TaggingSettings
from pieline.studies.jam.variants.settings import USUAL_CHECKS, VariantChecks

NO_VARIANTS = "this configuration takes no hard variants (jam.variants.source: none)"
"""Reason for missing numbers on variants."""


class JamVariants(Settings):
    """Source and validation of hard variants (sections 3.3, 3.4)."""

    source: Literal["sample", "released", "generated", "none"] = Field(
        default="released",
        description="Our validated sample; the release, and a model in languages that it lacks;"
        " a model; 'none': no variants.",
    )
    model: str | None = Field(
        default=None, description="Language model that writes and validates generated variants."
    )
    generated: PositiveInt = Field(default=5, description="Variants written of each original.")
    temperature: float = Field(default=1.0, ge=0)
    max_tokens: PositiveInt = Field(default=16384, description="Of one answer, thoughts included.")
    generation_seed: Seed | None = Field(
        default=None, description="Sent to the model where its provider accepts one."
    )
    review: Literal["human", "automatic"] = Field(
        default="human",
        description="Whether a variant nobody judged is invalid, or valid if no check flags it.",
    )
    annotations: dict[LanguageName, list[str]] = Field(
        default={}, description="Label Studio exports (JSON), by language."
    )
    adjudications: dict[LanguageName, str] = Field(
        default={}, description="Decisions on disputed variants (TSV), by language."
    )
    checks: VariantChecks = USUAL_CHECKS
    min_valid: PositiveInt = Field(
        default=3, description="Valid variants that an original needs to stay."
    )
    kept: PositiveInt = Field(default=3, description="Valid variants kept of each original.")
    seed: Seed = Field(
        default=42,
        description="Of the choice among valid variants, and of the one that people label (5.1).",
    )

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.kept > self.min_valid:
            raise ValueError(f"kept ({self.kept}) is above min_valid ({self.min_valid})")
        if self.source == "generated" and self.model is None:
            raise ValueError("source 'generated' needs a model")
        return self


class JamFineTuning(TaggingSettings):
    """Fine-tuning of encoders (ID10M-JAM, appendix D), with the hyperparameters of Table 4."""

    seeds: list[Seed] = Field(default=[5, 7, 42, 123, 1773], min_length=1)
    input: EncoderInput = Field(
        default="text",
        description="The words that are tagged, in training and prediction. 'text': ID10M's tokens,"
        " which the paper's text tags (section 3.1); 'whitespace': what stands between white space,"
        " punctuation included, as the released code reads the sentences that it tags.",
    )
    negatives_per_idiom: float | None = Field(
        default=None,
        gt=0,
        description="Training sentences without an idiom for each with one; null: all.",
    )


class NeutralAblation(Settings):
    """The run whose confusing variants get neutral contexts (ID10M-JAM, appendix G)."""

    model: str = Field(description="One of jam.models.")
    setting: PromptSetting | Literal["fine_tuned"] = Field(
        default="zero_shot", description="'fine_tuned' for an encoder."
    )
    seed: Seed = 42
    language: LanguageName = "english"


FINE_TUNED = "fine_tuned"
"""Setting of encoders."""
BASELINE = "baseline"
"""Setting of baselines that need no model."""


class AttentionAnalysis(Settings):
    """Attention from the PIE to its context (ID10M-JAM, appendix H)."""

    model: str = Field(description="A causal model, or an embedder that is one.")
    language: LanguageName = "english"
    pairs: PositiveInt = Field(
        default=10,
        description="Originals with a variant that misled a model and one all got right.",
    )


class ConfusedModels(Settings):
    """Runs that Figure 3 counts for each hard variant (ID10M-JAM, section 5)."""

    count: Literal["models", "runs"] = Field(
        default="models",
        description="Models that it confuses in one run each, or all runs (a model and a prompt"
        " type) that it confuses in most seeds.",
    )
    setting: Literal["zero_shot", "few_shot_sc_cotbest"] = Field(
        default="few_shot_sc_cotbest",
        description="Prompt type of the runs of 'models'; reasoning models are asked zero-shot.",
    )
    seed: Seed = Field(default=42, description="Of the runs of 'models'.")


class JamSettings(Settings):
    """The ID10M-JAM study."""

    languages: list[LanguageName] = Field(default=["english", "german"], min_length=1)
    decisions: str | None = Field(
        default=None,
        description="Folder with <language>.tsv that filters ID10M's test split. A language without"
        " such a file has those of the sample, or on real data those derived from the released"
        " originals, and from ID10M's tags where nothing is released.",
    )
    variants: JamVariants = JamVariants()
    models: list[str] = Field(
        default=[], description="Language models and encoders of models.yaml; none: only the data."
    )
    settings: list[PromptSetting | str] = Field(
        default=["zero_shot", "few_shot_sc_cotbest"],
        min_length=1,
        description="How language models are prompted (section 4.2); reasoning models only"
        " zero_shot. 'zero_shot_schema' is ours: the provider enforces the form of the answer. Any"
        " other is one of `prompts`.",
    )
    settings_by_model: dict[str, Annotated[list[PromptSetting | str], Field(min_length=1)]] = Field(
        default={}, description="Of language models that are prompted otherwise."
    )
    asking: Literal["paper", "released"] = Field(
        default="paper",
        description="How the paper's settings ask: by its text, or in the form of the released code"
        " (docs/studies/jam_experiments.md has both side by side).",
    )
    released_prompts: str | None = Field(
        default=None,
        description="Folder with the authors' wording of the released form, of the files in"
        " prompts/jam/released; null: those, in which the schemas are described in our words.",
    )
    prompts: dict[Name, OwnPrompt] = Field(
        default={}, description="Settings of your own by name (docs/adding.md)."
    )
    prompts_against: str | None = Field(
        default=None,
        description="The setting that each of `prompts` is compared with on the same originals"
        " (docs/beyond.md); null: none.",
    )
    seeds: list[Seed] = Field(default=[42, 43, 44], min_length=1, description="Of prompted models.")
    seeds_by_model: dict[str, list[Seed]] = Field(
        default={}, description="Of prompted models that are run with other seeds."
    )
    zero_shot: ZeroShot = ZeroShot()
    few_shot: FewShot = FewShot()
    train_split: Literal["train", "dev"] = Field(
        default="train",
        description="Split of ID10M that encoders learn from and examples are drawn from. Of 'dev'"
        " a tenth is held out, on which each epoch is scored.",
    )
    fine_tuning: JamFineTuning = JamFineTuning()
    scoring: Scoring = Field(
        default="paper",
        description="What counts as right: the paper's rule or the released analysis's.",
    )
    bootstrap_resamples: PositiveInt = 2000
    permutations: PositiveInt = Field(
        default=9999, description="Sign patterns of the paired test of two runs, at most."
    )
    neutral: NeutralAblation | None = Field(
        default=None, description="The neutral-context ablation (appendix G); null: none."
    )
    figure3: ConfusedModels = ConfusedModels()
    humans: str | list[str] | None = Field(
        default=None,
        description="Two people's labels of variants (section 5.1): a CSV of both, or the forms or"
        " Label Studio exports that they filled in; the sample has simulated ones.",
    )
    attention: AttentionAnalysis | None = Field(
        default=None, description="The attention analysis (appendix H); null: none."
    )

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        named = [*chain(self.settings, *self.settings_by_model.values())]
        if odd := {FINE_TUNED, BASELINE}.intersection(named):
            raise ValueError(f"{min(odd)!r} is no setting of language models")
        if self.released_prompts and self.asking != "released":
            raise ValueError("released_prompts is read only with asking: released")
        check_settings(named, self.prompts, [*get_args(PromptSetting), FINE_TUNED, BASELINE])
        if self.prompts_against and self.prompts_against not in named:
            raise ValueError(f"prompts_against {self.prompts_against!r} is none of the settings")
        if self.neutral and self.neutral.seed not in self.seeds_of(self.neutral):
            raise ValueError(f"neutral.seed {self.neutral.seed} is none of its model's seeds")
        return self

    def seeds_of(self, run: NeutralAblation) -> list[int]:
        """Return the seeds of a model in a setting."""
        if run.setting == FINE_TUNED:
            return self.fine_tuning.seeds
        return self.seeds_by_model.get(run.model, self.seeds)
