"""What to run: the settings of config.yaml."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from pieline.errors import UserError
from pieline.llm.spec import LLMSettings
from pieline.records import explain
from pieline.registry import Registry

DetectionSetting = Literal["zero_shot", "zero_shot_schema"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
Study = Literal["idiolink", "idiots"]


class Settings(BaseModel):
    """A part of config.yaml: unknown keys are errors, everything has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Bm25Grid(Settings):
    """Grid for k1 and b, searched on the validation split (IdioLink, appendix E.1)."""

    k1: list[PositiveFloat] = Field(default=[0.6, 0.9, 1.2, 1.5, 2.0], min_length=1)
    b: list[float] = Field(default=[0.2, 0.4, 0.6, 0.75, 0.9], min_length=1)


class IdiolinkSettings(Settings):
    """The IdioLink study."""

    models: list[str] = Field(default=["bm25", "sbert"], description="Names of models.yaml.")
    query_modes: list[QueryMode] = Field(
        default=["sentence", "span", "instruction_sentence", "instruction_span"]
    )
    compositions: list[Literal["full", "lit_sim_sense", "lit_idiom"]] = Field(
        default=["full", "lit_sim_sense", "lit_idiom"],
        description="Index compositions; every one but 'full' is the ablation.",
    )
    top_k: PositiveInt = Field(default=100, description="Documents kept for each query.")
    bm25: Bm25Grid = Bm25Grid()


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


class Config(Settings):
    """The whole of config.yaml."""

    studies: list[Study] = ["idiolink"]
    data: Literal["sample", "released"] = Field(
        default="sample", description="Our sample corpora, or the real public files."
    )
    mirror: str | None = Field(
        default=None,
        description="Folder that holds the real files; naming one sets data to 'released'.",
    )
    idiolink: IdiolinkSettings = IdiolinkSettings()
    idiots: IdiotsSettings = IdiotsSettings()
    llm: LLMSettings = LLMSettings()


def load_config(
    raw: Mapping[str, Any], registry: Registry, *, where: str = "config.yaml"
) -> Config:
    """Validate the configuration that Snakemake merged from file and command line.

    Args:
        raw: the merged mapping.
        registry: the models that exist.
        where: the file to name in an error.

    Raises:
        UserError: an unknown key (with the nearest known one), a wrong value, an unknown model.
    """
    try:
        config = Config.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = _keys_at(first["loc"][:-1])
            raise UserError(
                f"unknown key {location!r}",
                where=where,
                mend=_suggest(str(first["loc"][-1]), known),
            ) from None
        raise UserError(
            explain(error), where=where, mend="see schemas/config.schema.yaml"
        ) from None
    _check_models(
        config.idiolink.models, {"bm25", "embedder"}, registry, f"{where}: idiolink.models"
    )
    _check_models(config.idiots.models, {"llm"}, registry, f"{where}: idiots.models")
    if config.mirror:
        config = config.model_copy(update={"data": "released"})
    return config


def _check_models(names: Iterable[str], kinds: set[str], registry: Registry, where: str) -> None:
    """Raise a `UserError` for a name that models.yaml lacks or whose kind the study cannot use."""
    usable = sorted(name for name, entry in registry.items() if entry.kind in kinds)
    for name in names:
        if name not in registry:
            raise UserError(f"unknown model {name!r}", where=where, mend=_suggest(name, usable))
        if name not in usable:
            raise UserError(
                f"model {name!r} is of kind {registry[name].kind!r}",
                where=where,
                mend=f"this study takes {' and '.join(sorted(kinds))}",
            )


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """Keys that config.yaml may have at a place."""
    model: Any = Config
    for part in location:
        if hasattr(model, "model_fields"):
            model = model.model_fields[str(part)].annotation
        else:  # a mapping: its keys are free, its values are of one kind
            model = get_args(model)[1]
    return list(model.model_fields)


def _suggest(given: str, known: list[str]) -> str:
    """A mend that names the nearest known word, or all of them."""
    near = get_close_matches(given, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def config_schema() -> dict[str, Any]:
    """JSON schema of config.yaml, for editors and for Snakemake's `validate`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Config.model_json_schema()
