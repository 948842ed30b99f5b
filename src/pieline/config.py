"""Load and validate config.yaml, which has a section for each study."""

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveInt, ValidationError, create_model

from pieline import studies
from pieline.archives.reading import load_archives
from pieline.beyond.extended import Extended
from pieline.beyond.idiolink.study import ExtendedIdiolink
from pieline.beyond.idiots.study import ExtendedIdiots
from pieline.beyond.jam.study import ExtendedJam
from pieline.beyond.settings import MOVED, BeyondSettings
from pieline.core.errors import UserError, nearest
from pieline.core.records import explain
from pieline.core.settings import Field, Settings, keys_at
from pieline.core.yamls import merge, read_yaml
from pieline.llm.settings import LLMSection
from pieline.models.registry import Registry
from pieline.project import Project
from pieline.reporting.inputs import RowChoice
from pieline.study import Study

EXTENDED: Mapping[str, type[Extended[Any, Any]]] = {
    "jam": ExtendedJam,
    "idiots": ExtendedIdiots,
    "idiolink": ExtendedIdiolink,
}
"""Classes that add analyses beyond the paper to a study, by name of the study."""


@cache
def study_classes() -> dict[str, type[Study[Any]]]:
    """Return the study classes by name, in alphabetical order.

    A study is a package in `pieline.studies` whose module `study` defines a subclass of `Study`.
    """
    packages = [module.name for module in pkgutil.iter_modules(studies.__path__) if module.ispkg]
    classes = {}
    for package in sorted(packages):
        module = importlib.import_module(f"{studies.__name__}.{package}.study")
        for attribute in vars(module).values():
            is_class = isinstance(attribute, type) and issubclass(attribute, Study)
            is_defined_here = getattr(attribute, "__module__", "") == module.__name__
            if is_class and is_defined_here:
                classes[attribute.name] = attribute
    return classes


class PageSettings(Settings):
    """Settings of the results page."""

    depth: PositiveInt = Field(
        default=10, affects="display", description="Number of documents shown per query."
    )
    beside: str | None = Field(
        default=None,
        affects="display",
        description="Working directory of another run. If the other run has results, the page shows"
        " its scores and links to its page.",
    )


class Config(Settings):
    """All settings of config.yaml except the studies' sections (see `config_class`)."""

    studies: list[str] = Field(
        default=["idiolink"], affects="display", description="Names of the studies to run."
    )
    data: Literal["sample", "released", "own"] = Field(
        default="sample",
        affects="predictions",
        deviates=False,
        description="Data to use: the bundled sample ('sample'), the papers' public files"
        " ('released'), or your own files ('own').",
    )
    own_data: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="For data 'own': folder with your files, which have the names and formats of"
        " the public files in data/upstream.yaml (docs/adding/data.md).",
    )
    mirror: str | None = Field(
        default=None,
        affects="nothing",
        description="Folder with the papers' public files; if set, data is 'released'.",
    )
    archives: list[str] = Field(
        default=[],
        affects="predictions",
        deviates=False,
        description="Files that `pieline runs export` wrote. A configured run is taken from an"
        " archive that contains it. If the archive states settings that differ from the"
        " configuration, each difference is a deviation.",
    )
    limit: PositiveInt | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Number of originals of ID10M-JAM, sentences of IdioTS and queries of IdioLink"
        " (with the whole index) to use, to try a model before a full run. With a limit, no number"
        " is compared with a printed one; null: use all.",
    )
    tables: dict[str, RowChoice] = Field(
        default={"rows": "paper"},
        affects="display",
        description="Rows of result tables. `rows: paper` shows the paper's models and those of"
        " this run; `rows: run` shows only those of this run, in the order of the configuration. To"
        " set a single table, use its name as the key, such as `idiolink_zero_shot: paper`.",
    )
    beyond: BeyondSettings = BeyondSettings()
    llm: LLMSection = LLMSection()
    page: PageSettings = PageSettings()

    def section(self, study: str) -> Settings:
        """Return the section with the settings of a study."""
        settings: Settings = getattr(self, study)
        return settings

    def rows_of(self, table: str) -> RowChoice:
        """Return which models' rows a result table shows, according to the setting `tables`."""
        return self.tables.get(table, self.tables.get("rows", "paper"))


@cache
def config_class() -> type[Config]:
    """Return a subclass of `Config` that has a section for each study."""
    sections: dict[str, Any] = {
        name: (study.Settings, study.Settings()) for name, study in study_classes().items()
    }
    return create_model("Config", __base__=Config, __doc__="Settings in config.yaml.", **sections)


def layered(raw: Mapping[str, Any], sample: str | Path) -> dict[str, Any]:
    """Return settings, merged over config/sample.yaml if they use the sample data.

    The sample needs config/sample.yaml because the default settings are the papers' values, which
    are too large for the sample.

    Args:
        raw: Settings that Snakemake merged from files and the command line.
        sample: Path of config/sample.yaml.
    """
    if raw.get("data", "sample") != "sample" or raw.get("mirror"):
        return dict(raw)
    return merge(read_yaml(sample), raw)


def load_config(raw: Mapping[str, Any], *, where: str = "config.yaml") -> Config:
    """Validate a configuration; if `mirror` is set, `data` becomes 'released'.

    Args:
        raw: Settings that Snakemake merged from files and the command line.
        where: Name of the file for error messages.

    Raises:
        UserError: A key or study is unknown (the hint names the closest key or study), a value is
            invalid, no study is named, the data settings conflict, or a folder does not exist.
    """
    try:
        config = config_class().model_validate(dict(raw))
    except ValidationError as error:
        raise _invalid_config(error, where) from None
    if not config.studies:
        hint = f"choose from {', '.join(study_classes())}"
        raise UserError("empty list", where=f"{where}: studies", hint=hint)
    for name in config.studies:
        if name not in study_classes():
            hint = nearest(name, list(study_classes()))
            raise UserError(f"unknown study {name!r}", where=f"{where}: studies", hint=hint)
    _check_data(config, where)
    return config.model_copy(update={"data": "released"}) if config.mirror else config


def _invalid_config(error: ValidationError, where: str) -> UserError:
    """Convert pydantic's error about a configuration to a user error."""
    first = error.errors(include_url=False)[0]
    if first["type"] != "extra_forbidden":
        return UserError(explain(error), where=where, hint="see schemas/config.schema.json")
    *section, unknown_key = first["loc"]
    location = ".".join(str(key) for key in first["loc"])
    if location in MOVED:
        hint = f"it is now beyond.{location}"
    else:
        hint = nearest(str(unknown_key), keys_at(config_class(), section))
    return UserError(f"unknown key {location!r}", where=where, hint=hint)


def name_source(error: UserError, sources: dict[str, Mapping[str, Any]]) -> UserError:
    """Return an error that names the file with the invalid setting instead of "config.yaml".

    If no file contains the setting, a file that contains the section is named. If there is no such
    file either, the original error is returned.

    Args:
        error: Error raised by `load_config` or `load_studies`.
        sources: Settings by file; later files take precedence.
    """
    match = re.match(r"config\.yaml: (?:unknown key ')?([\w.-]+)", str(error))
    keys = match[1].split(".") if match else []
    while keys:
        for file in reversed(sources):
            if _contains(sources[file], keys):
                where = error.where.replace("config.yaml", file, 1)
                return UserError(error.what, where=where, hint=error.hint)
        keys.pop()  # look for the section that contains the setting
    return error


def _contains(settings: Any, keys: Iterable[str]) -> bool:
    """Return whether nested settings contain the value at these keys, from the outermost key."""
    for key in keys:
        if not isinstance(settings, Mapping) or key not in settings:
            return False
        settings = settings[key]
    return True


def _check_data(config: Config, where: str) -> None:
    """Raise a `UserError` if data settings conflict, or name a missing or invalid folder."""
    if config.data != "own" and config.own_data:
        raise UserError(
            f"own_data is set, but data is {config.data}",
            where=where,
            hint="set data: own, or own_data: null",
        )
    if config.data == "own" and config.mirror:
        raise UserError("mirror is set, but data is own", where=where, hint="set mirror: null")
    if config.data == "own" and not config.own_data:
        raise UserError(
            "data is own, but own_data is null", where=where, hint="set own_data to a folder"
        )
    if re.search("[<>]", config.own_data or ""):
        # Snakemake's report would parse these characters as HTML.
        raise UserError(
            f"own_data contains < or >: {config.own_data}", where=where, hint="rename the folder"
        )
    for name in ("mirror", "own_data"):
        folder = getattr(config, name)
        if folder and not Path(folder).is_dir():
            raise UserError(
                f"no such folder: {folder}",
                where=f"{where}: {name}",
                hint=f"correct the path (relative to {Path.cwd()})",
            )


def load_studies(config: Config, registry: Registry, root: Path) -> dict[str, Study[Any]]:
    """Create all known studies, including studies that the configuration does not name.

    Args:
        config: The configuration.
        registry: All known models.
        root: Project folder, relative to the working directory.

    Returns:
        The studies by name.

    Raises:
        UserError: An archive or the settings of a named study are invalid, the user's own data
            lacks a file, or `tables` names an unknown table.
    """
    project = Project(
        registry=registry,
        llm=config.llm,
        data=config.data,
        mirror=config.mirror,
        root=root,
        own_data=config.own_data,
        archives=load_archives(config.archives, root),
        limit=config.limit,
    )
    loaded: dict[str, Study[Any]] = {}
    for name, study_class in study_classes().items():
        settings = config.section(name)
        chosen = name in config.studies
        if name in EXTENDED:
            beyond = getattr(config.beyond, name)
            loaded[name] = EXTENDED[name](settings, project, beyond, chosen=chosen)
        else:
            loaded[name] = study_class(settings, project, chosen=chosen)
    for name in config.studies:
        loaded[name].check_own_data()
    _check_tables(config, loaded)
    return loaded


def _check_tables(config: Config, loaded: Mapping[str, Study[Any]]) -> None:
    """Raise a `UserError` if `tables` names an unknown table or a table without models."""
    # The key `rows` applies to all tables.
    named_tables = config.tables.keys() - {"rows"}
    if not named_tables:
        return
    result_tables: list[str] = []
    for study in loaded.values():
        for display, inputs in study.shown.items():
            if display.kind == "table" and inputs.shows_models:
                result_tables.append(display.name)
    unknown = sorted(named_tables.difference(result_tables))
    if unknown:
        raise UserError(
            f"this configuration has no result table {unknown[0]!r}",
            where="config.yaml: tables",
            hint=nearest(unknown[0], ["rows", *result_tables]),
        )


def config_schema() -> dict[str, Any]:
    """Return the JSON schema of config.yaml, for editors."""
    schema = config_class().model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
