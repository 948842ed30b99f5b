"""Settings of ID10M-JAM: the section `jam` of config.yaml."""

from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import PositiveInt, model_validator

from pieline.core.records import Name
from pieline.core.settings import Field, Seed, Settings, check_settings
from pieline.languages.settings import LanguageName
from pieline.models.names import LanguageModelName, ModelKinds
from pieline.studies.jam.metrics.identification import Scoring
from pieline.studies.jam.predictions.prompt_settings import (
    FewShot,
    OwnPrompt,
    PromptSetting,
    ZeroShot,
)
from pieline.studies.jam.training.settings import EncoderInput, TaggingSettings
from pieline.studies.jam.variants.settings import USUAL_CHECKS, VariantChecks

NO_VARIANTS = "this configuration uses no hard variants (jam.variants.source: none)"
"""Reason for missing numbers on variants."""


class JamVariants(Settings):
    """Settings for the source and validation of hard variants (sections 3.3 and 3.4)."""

    source: Literal["sample", "released", "generated", "none"] = Field(
        default="released",
        affects="predictions",
        deviates=False,
        description="'sample': our validated sample; 'released': the release, or a model for"
        " languages that it lacks; 'generated': a model; 'none': no variants.",
    )
    model: LanguageModelName | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Language model that writes and validates generated variants.",
    )
    generated: PositiveInt = Field(
        default=5,
        affects="predictions",
        deviates=False,
        description="Variants written per original.",
    )
    temperature: float = Field(
        default=1.0,
        ge=0,
        affects="predictions",
        description="Sampling temperature of the model that writes variants.",
    )
    max_tokens: PositiveInt = Field(
        default=16384,
        affects="predictions",
        deviates=False,
        description="Maximum tokens per answer, including reasoning.",
    )
    generation_seed: Seed | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Seed sent to the model if its provider accepts one.",
    )
    review: Literal["human", "automatic"] = Field(
        default="human",
        affects="predictions",
        deviates=False,
        description="Unreviewed variants are invalid ('human'), or valid unless a check flags them"
        " ('automatic').",
    )
    annotations: dict[LanguageName, list[str]] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Label Studio exports (JSON), by language.",
    )
    adjudications: dict[LanguageName, str] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Decisions on disputed variants (TSV), by language.",
    )
    checks: VariantChecks = USUAL_CHECKS
    min_valid: PositiveInt = Field(
        default=3, affects="predictions", description="Valid variants required to keep an original."
    )
    kept: PositiveInt = Field(
        default=3, affects="predictions", description="Valid variants kept per original."
    )
    seed: Seed = Field(
        default=42,
        affects="predictions",
        deviates=False,
        description="Seed for choosing valid variants, and the variants that people label (5.1).",
    )

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.kept > self.min_valid:
            raise ValueError(f"kept ({self.kept}) exceeds min_valid ({self.min_valid})")
        if self.source == "generated" and self.model is None:
            raise ValueError("source 'generated' needs a model")
        return self


class JamFineTuning(TaggingSettings):
    """Settings for fine-tuning encoders (ID10M-JAM, appendix D), with Table 4's hyperparameters."""

    seeds: list[Seed] = Field(
        default=[5, 7, 42, 123, 1773],
        min_length=1,
        affects="display",
        description="Seeds; each trains an encoder of its own.",
    )
    input: EncoderInput = Field(
        default="text",
        affects="predictions",
        description="Units tagged in training and prediction. 'text': ID10M's tokens, as in the"
        " paper's text (section 3.1); 'whitespace': whitespace-separated words including"
        " punctuation, as in the released code. In the released form, training always uses tokens.",
    )
    negatives_per_idiom: float | None = Field(
        default=None,
        gt=0,
        affects="predictions",
        description="Training sentences without an idiom per sentence with one; null: all.",
    )

    @property
    def training_input(self) -> EncoderInput:
        """Units tagged in training."""
        return "text" if self.form == "released" else self.input

    def stated(self, *names: str) -> dict[str, Any]:
        """Return the settings `names`; the form only if it is not the paper's."""
        excluded = {"form"} if self.form == "paper" else set()
        return self.model_dump(include={*names} - excluded)


class NeutralAblation(Settings):
    """Run whose confusing variants get neutral contexts (ID10M-JAM, appendix G)."""

    model: Annotated[str, ModelKinds(("llm", "encoder"))] = Field(
        affects="display", description="One of jam.models."
    )
    setting: PromptSetting | Literal["fine_tuned"] = Field(
        default="zero_shot", affects="display", description="'fine_tuned' for an encoder."
    )
    seed: Seed = Field(
        default=42, affects="display", description="Seed of the run; one of its model's seeds."
    )
    language: LanguageName = Field(
        default="english", affects="display", description="Language of the run."
    )


FINE_TUNED = "fine_tuned"
"""Setting of encoders without added training texts."""
AddedTexts = Literal["originals", "neutral", "hard"]
ADDED: Mapping[str, str] = {f"{FINE_TUNED}_{name}": name for name in get_args(AddedTexts)}
"""Texts added to the training data, by encoder setting (docs/beyond.md)."""
BASELINE = "baseline"
"""Setting of baselines that need no model."""
NEUTRAL = "neutral"
"""Experiment of the runs on neutral contexts (Appendix G)."""


class AttentionAnalysis(Settings):
    """Settings of the attention analysis (ID10M-JAM, appendix H)."""

    model: Annotated[str, ModelKinds(("embedder", "causal_lm"), have_weights=True)] = Field(
        affects="display", description="A causal model, or an embedder that is one."
    )
    language: LanguageName = Field(
        default="english", affects="display", description="Language of the variants."
    )
    pairs: PositiveInt = Field(
        default=10,
        affects="predictions",
        description="Maximum number of originals with a misleading and a resolved variant.",
    )


class ConfusedModels(Settings):
    """Selection of the runs that Figure 3 counts for each hard variant (ID10M-JAM, section 5)."""

    count: Literal["models", "released", "runs"] = Field(
        default="models",
        affects="display",
        deviates=True,
        description="'models': models confused in one run each; 'released': the same without"
        " models that have no run of this prompt type, as in the released code; 'runs': all runs (a"
        " model and a prompt type) confused in most seeds.",
    )
    setting: Literal["zero_shot", "few_shot_sc_cotbest"] = Field(
        default="few_shot_sc_cotbest",
        affects="display",
        deviates=True,
        description="Prompt type of the runs for 'models'; reasoning models run zero-shot.",
    )
    seed: Seed = Field(
        default=42, affects="display", deviates=True, description="Seed of the runs for 'models'."
    )


RELEASED: Mapping[str, Any] = {
    "asking": "released",
    "scoring": "released",
    "few_shot": {"votes": "first"},
    "confusion_votes": "strict_majority",
    "figure3": {"count": "released"},
    "fine_tuning": {"form": "released"},
}
"""Default values of other settings if `form` is `released`."""


class JamSettings(Settings):
    """Settings of the ID10M-JAM study."""

    form: Literal["paper", "released"] = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="'released': default values of asking, scoring, few_shot.votes,"
        " confusion_votes, figure3.count and fine_tuning.form as in the released code"
        " (docs/studies/jam_experiments.md).",
    )
    languages: list[LanguageName] = Field(
        default=["english", "german"],
        min_length=1,
        affects="display",
        description="Languages of the sentences; each is evaluated on its own.",
    )
    decisions: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Folder of <language>.tsv files that filter ID10M's test split. Languages"
        " without a file use the sample's decisions, or on real data decisions derived from the"
        " released originals, or from ID10M's tags if there is no release.",
    )
    variants: JamVariants = JamVariants()
    models: list[Annotated[str, ModelKinds(("llm", "encoder", "predictions"))]] = Field(
        default=[],
        affects="display",
        description="Language models and encoders of models.yaml; none: only the data.",
    )
    settings: list[PromptSetting | str] = Field(
        default=["zero_shot", "few_shot_sc_cotbest"],
        min_length=1,
        affects="display",
        description="Prompt settings of language models (section 4.2); reasoning models use only"
        " zero_shot. 'zero_shot_schema' is not in the paper: the provider enforces the response"
        " format. Other names refer to `prompts`.",
    )
    settings_by_model: dict[
        LanguageModelName, Annotated[list[PromptSetting | str], Field(min_length=1)]
    ] = Field(
        default={}, affects="display", description="Settings of models that differ from `settings`."
    )
    asking: Literal["paper", "released"] = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="Prompts of the paper's settings: as in its text, or as in the released code"
        " (docs/studies/jam_experiments.md compares both).",
    )
    released_prompts: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Folder with the authors' wording of the files in prompts/jam/released; null:"
        " those files, whose schema descriptions are ours.",
    )
    prompts: dict[Name, OwnPrompt] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Custom prompt settings by name (docs/adding/code.md).",
    )
    seeds: list[Seed] = Field(
        default=[42, 43, 44],
        min_length=1,
        affects="display",
        description="Seeds of prompted models.",
    )
    seeds_by_model: dict[LanguageModelName, list[Seed]] = Field(
        default={},
        affects="display",
        description="Seeds of prompted models that differ from `seeds`.",
    )
    max_tokens_by_model: dict[LanguageModelName, dict[str, PositiveInt]] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Maximum tokens of the answers of single models, by setting, such as {o3-mini:"
        " {zero_shot: 20000}}; replaces max_tokens of the setting.",
    )
    zero_shot: ZeroShot = ZeroShot()
    few_shot: FewShot = FewShot()
    train_split: Literal["train", "dev"] = Field(
        default="train",
        affects="predictions",
        deviates=False,
        description="ID10M split for training encoders and drawing examples. With 'dev', a tenth is"
        " held out to score each epoch.",
    )
    fine_tuning: JamFineTuning = JamFineTuning()
    scoring: Scoring = Field(
        default="paper",
        affects="scoring",
        description="Scoring rule: the paper's, or that of the released analysis.",
    )
    confusion_votes: Literal["as_predicted", "strict_majority"] = Field(
        default="as_predicted",
        affects="scoring",
        description="Predictions counted in Table 6. 'as_predicted': those of the other tables;"
        " 'strict_majority': the idioms that are named more often than half the number of answers,"
        " in the same words, unreadable answers included, as in the released code.",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000, affects="scoring", description="Number of bootstrap resamples, for intervals."
    )
    permutations: PositiveInt = Field(
        default=9999,
        affects="display",
        description="Maximum number of sign patterns of the paired test.",
    )
    neutral: NeutralAblation | None = Field(
        default=None,
        affects="display",
        description="The neutral-context ablation (appendix G); null: none.",
    )
    figure3: ConfusedModels = ConfusedModels()
    humans: str | list[str] | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Labels of variants by two people (section 5.1): a CSV with both, or filled-in"
        " forms or Label Studio exports; the sample has simulated labels.",
    )
    attention: AttentionAnalysis | None = Field(
        default=None,
        affects="display",
        description="The attention analysis (appendix H); null: none.",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_form(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or fields.get("form") != "released":
            return fields
        filled = {**fields}
        for name, value in RELEASED.items():
            given = fields.get(name)
            if isinstance(value, Mapping) and (given is None or isinstance(given, Mapping)):
                filled[name] = {**value, **(given or {})}
            else:
                filled.setdefault(name, value)
        return filled

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        named = [*chain(self.settings, *self.settings_by_model.values())]
        reserved = [FINE_TUNED, *ADDED, BASELINE]
        if odd := set(reserved).intersection(named):
            raise ValueError(f"{min(odd)!r} is not a setting of language models")
        if self.released_prompts and self.asking != "released":
            raise ValueError("released_prompts requires asking: released")
        limited = chain.from_iterable(self.max_tokens_by_model.values())
        check_settings([*named, *limited], self.prompts, [*get_args(PromptSetting), *reserved])
        if self.neutral and self.neutral.seed not in self.seeds_of(self.neutral):
            raise ValueError(f"neutral.seed {self.neutral.seed} is not one of its model's seeds")
        return self

    def seeds_of(self, run: NeutralAblation) -> list[int]:
        """Return the configured seeds for the model and setting of the ablation's run."""
        if run.setting == FINE_TUNED:
            return self.fine_tuning.seeds
        return self.seeds_by_model.get(run.model, self.seeds)
