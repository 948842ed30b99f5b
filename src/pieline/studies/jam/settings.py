"""Settings of ID10M-JAM: the section `jam` of config.yaml."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import PositiveInt, model_validator

from pieline.core.records import Name
from pieline.core.settings import Field, OfModel, Seed, Settings, check_settings
from pieline.languages.settings import LanguageName
from pieline.models.names import LanguageModelName, ModelKinds
from pieline.studies.jam.metrics.identification import Scoring
from pieline.studies.jam.predictions.prompt_settings import (
    FewShot,
    OwnPrompt,
    PromptSetting,
)
from pieline.studies.jam.training.settings import TaggingSettings

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
    max_tokens: PositiveInt = Field(
        default=16384,
        affects="predictions",
        deviates=False,
        description="Maximum tokens per answer, including reasoning.",
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

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
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
    negatives_per_idiom: float | None = Field(
        default=None,
        gt=0,
        affects="predictions",
        description="Training sentences without an idiom per sentence with one; null: all.",
    )


FINE_TUNED = "fine_tuned"
"""Setting of encoders without added training texts."""
AddedTexts = Literal["originals", "neutral", "hard"]
ADDED: Mapping[str, str] = {f"{FINE_TUNED}_{name}": name for name in get_args(AddedTexts)}
"""Texts added to the training data, by encoder setting (docs/beyond.md)."""
BASELINE = "baseline"
"""Setting of baselines that need no model."""
NEUTRAL = "neutral"
"""Experiment of the run on neutral contexts (appendix G)."""
ANALYZED = "english"
"""Language of the neutral contexts and of the attention analysis (appendices G and H)."""


class FewShotSettings(Settings):
    """Sizes of the setting `few_shot_sc_cotbest`, which the sample reduces."""

    examples: PositiveInt = Field(
        default=FewShot().examples,
        affects="predictions",
        description="Number of examples with an idiom, and of those without one.",
    )
    samples: PositiveInt = Field(
        default=FewShot().samples,
        affects="predictions",
        description="Number of answers per sentence; more than half must agree on an idiom.",
    )


class JamSettings(Settings):
    """Settings of the ID10M-JAM study."""

    form: Literal["paper", "released"] = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="Prompts, votes, models counted in Figure 3, training of encoders and, unless"
        " set, scoring: as in the paper's text, or as in the released code"
        " (docs/studies/jam_experiments.md compares both).",
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
    by_model: dict[LanguageModelName, OfModel] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Settings, seeds and lengths of answers of single models.",
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
    few_shot: FewShotSettings = FewShotSettings()
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
    bootstrap_resamples: PositiveInt = Field(
        default=2000, affects="scoring", description="Number of bootstrap resamples, for intervals."
    )
    permutations: PositiveInt = Field(
        default=9999,
        affects="display",
        description="Maximum number of sign patterns of the paired test.",
    )
    neutral: Annotated[str, ModelKinds(("llm", "encoder"))] | None = Field(
        default=None,
        affects="display",
        description="Model whose confusing variants get neutral contexts (appendix G), one of"
        " `models`; null: none.",
    )
    humans: str | list[str] | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Labels of variants by two people (section 5.1): a CSV with both, or filled-in"
        " forms or Label Studio exports; the sample has simulated labels.",
    )
    attention: Annotated[str, ModelKinds(("embedder", "causal_lm"), have_weights=True)] | None = (
        Field(
            default=None,
            affects="display",
            description="Model of the attention analysis (appendix H): a causal model, or an"
            " embedder that is one; null: none.",
        )
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_form(cls, fields: Any) -> Any:
        if isinstance(fields, Mapping) and fields.get("form") == "released":
            return {"scoring": "released", **fields}
        return fields

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        named = list(self.settings)
        limited: list[str] = []
        for own in self.by_model.values():
            named += own.settings or []
            limited += own.max_tokens
        reserved = [FINE_TUNED, *ADDED, BASELINE]
        if misused := set(reserved).intersection(named):
            raise ValueError(f"{min(misused)!r} is not a setting of language models")
        check_settings(named + limited, self.prompts, [*get_args(PromptSetting), *reserved])
        return self

    def settings_of(self, model: str) -> list[str]:
        """Return the prompt settings of a language model."""
        return self.by_model.get(model, OfModel()).settings or self.settings

    def seeds_of(self, model: str) -> list[int]:
        """Return the seeds of a language model."""
        return self.by_model.get(model, OfModel()).seeds or self.seeds
