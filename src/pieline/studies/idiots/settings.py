"""Settings of IdioTS: the section idiots of config.yaml."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from pieline.core.settings import Settings

DetectionSetting = Literal["zero_shot", "zero_shot_schema"]


class DetectionParameters(Settings):
    """Request parameters of IdioTS (section 4.1); null sends none."""

    temperature: float | None = Field(default=0, ge=0)
    top_k: PositiveInt | None = 40
    top_p: float | None = Field(default=0.95, gt=0, le=1)
    max_tokens: PositiveInt | None = 800


class IdiotsSettings(Settings):
    """The IdioTS study."""

    models: list[str] = Field(
        default=["smollm2-135m-instruct"], min_length=1, description="Names of models.yaml."
    )
    settings: list[DetectionSetting] = Field(
        default=["zero_shot"],
        min_length=1,
        description="'zero_shot' is the paper's; 'zero_shot_schema' has the provider enforce the"
        " JSON fields that the prompt asks for.",
    )
    settings_by_model: dict[str, Annotated[list[DetectionSetting], Field(min_length=1)]] = Field(
        default={}, description="Of models that are prompted otherwise."
    )
    seeds: list[NonNegativeInt] = Field(
        default=[0], min_length=1, description="Sent where the provider accepts a seed."
    )
    parameters: DetectionParameters = DetectionParameters()
    distractor_kinds: str | None = Field(
        default=None,
        description="CSV (sentence_id,kind) for the released distractors; the sample has its own.",
    )
    verdicts: str | None = Field(
        default=None,
        description="Cases that people judged (JSONL or CSV), which replace automatic verdicts.",
    )
    bootstrap_resamples: PositiveInt = 2000
