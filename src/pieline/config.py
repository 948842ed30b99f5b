"""What to run: the settings of config.yaml."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

from pydantic import (
    Field,
    PositiveInt,
    ValidationError,
)

from pieline.core.errors import UserError
from pieline.core.records import explain
from pieline.core.settings import Settings
from pieline.llm.settings import LLMSettings
from pieline.models.registry import Registry
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiots.settings import IdiotsSettings
from pieline.studies.jam.settings import JamSettings

Study = Literal["jam", "idiolink", "idiots"]


class PageSettings(Settings):
    """How much of the predictions the results page holds."""

    items: PositiveInt = Field(
        default=40, description="Queries, sentences or originals shown behind a number."
    )
    depth: PositiveInt = Field(default=10, description="Documents shown for a query.")


class Config(Settings):
    """The whole of config.yaml."""

    studies: list[Study] = Field(default=["idiolink"])
    data: Literal["sample", "released"] = Field(
        default="sample", description="Our sample corpora, or the real public files."
    )
    mirror: str | None = Field(
        default=None,
        description="Folder that holds the real files; naming one sets data to 'released'.",
    )
    jam: JamSettings = JamSettings()
    idiolink: IdiolinkSettings = IdiolinkSettings()
    idiots: IdiotsSettings = IdiotsSettings()
    llm: LLMSettings = LLMSettings()
    page: PageSettings = PageSettings()

    @property
    def constructs_idiolink(self) -> bool:
        """Whether IdioLink is constructed from MAGPIE, and not only read."""
        enabled = self.idiolink.construction.enabled
        return self.data == "sample" if enabled is None else enabled


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
    tuning = config.idiolink.finetuning
    place = f"{where}: idiolink.finetuning"
    _check_models(tuning.models, {"embedder"}, registry, f"{place}.models")
    _check_models(tuning.batch_sizes, {"embedder"}, registry, f"{place}.batch_sizes")
    construction = config.idiolink.construction
    roles = (construction.index_writer, construction.query_writer, construction.validator)
    _check_models(roles, {"llm"}, registry, f"{where}: idiolink.construction")
    _check_models(config.idiots.models, {"llm"}, registry, f"{where}: idiots.models")
    if config.mirror:
        config = config.model_copy(update={"data": "released"})
    _check_variants(config, registry, f"{where}: jam.variants")
    _check_jam_models(config.jam, registry, f"{where}: jam")
    if config.idiolink.dataset == "constructed" and not config.constructs_idiolink:
        raise UserError(
            "the experiments take the constructed data set and nothing constructs it",
            where=f"{where}: idiolink.dataset",
            mend="set idiolink.construction.enabled: true, or choose 'released_format'",
        )
    if tuning.models and tuning.tuples == "released" and config.data == "sample":
        raise UserError(
            "the sample data has no released tuples",
            where=f"{place}.tuples",
            mend="choose 'sampled', or data: released",
        )
    return config


def _check_variants(config: Config, registry: Registry, where: str) -> None:
    """Raise a `UserError` if the hard variants cannot belong to the originals."""
    variants = config.jam.variants
    if variants.model is not None:
        _check_models([variants.model], {"llm"}, registry, f"{where}.model")
    impossible = {"released": "sample", "sample": "released"}[config.data]
    if "jam" in config.studies and variants.source == impossible:
        raise UserError(
            f"the {impossible} variants do not belong to the {config.data} originals",
            where=f"{where}.source",
            mend=f"choose {config.data!r}, 'generated' or 'none'",
        )


def _check_jam_models(jam: JamSettings, registry: Registry, where: str) -> None:
    """Raise a `UserError` for a model that the ID10M-JAM experiments cannot use."""
    _check_models(jam.models, {"llm", "encoder"}, registry, f"{where}.models")
    _check_models(jam.seeds_by_model, {"llm"}, registry, f"{where}.seeds_by_model")
    if jam.attention:
        _check_models(
            [jam.attention.model], {"embedder", "causal_lm"}, registry, f"{where}.attention.model"
        )
    if jam.neutral and jam.neutral.model not in jam.models:
        raise UserError(
            f"{jam.neutral.model!r} is not among jam.models",
            where=f"{where}.neutral.model",
            mend="choose one of them",
        )


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
