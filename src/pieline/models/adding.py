"""Add a checkpoint to models.local.yaml, with the fields that its own files state."""

import math
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import HfApi
from huggingface_hub.errors import NotASafetensorsRepoError, SafetensorsParsingError

from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, read_json, read_text, write_text
from pieline.core.yamls import parse_yaml
from pieline.models.checkpoint_settings import (
    SETTINGS_FILE,
    check_ranker_files,
    checkpoint_settings,
    dtype_of,
    first_module,
    length_limits,
)
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import HUB_NAME, CheckpointEntry, EncoderEntry
from pieline.models.hub import HubCheckpoint, UnreachableError
from pieline.models.rankers import LateInteractionEntry, RerankerEntry
from pieline.models.registry import AnyEntry, Registry, load_registry, local_file

KINDS: Mapping[str, type[CheckpointEntry]] = {
    "embedder": EmbedderEntry,
    "encoder": EncoderEntry,
    "late_interaction": LateInteractionEntry,
    "reranker": RerankerEntry,
}
"""Classes of the entries that can be added, by kind."""

_SCHEMA_COMMENT = "# yaml-language-server: $schema=schemas/models.schema.json\n"
_INSTRUCTION_PATTERNS = {
    "gemma_instruct_query": r"<instruct>.*\n<query>",
    "instruct_query": r"Instruct: .*\nQuery: ",
    "instruct_query_unspaced": r"Instruct: .*\nQuery:",
}
"""Patterns of prompts that contain an instruction, by instruction format."""
_SPDX = ("AGPL-3.0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GPL-3.0", "LGPL-3.0", "MIT")
_TASKS = {
    "llm": "chat",
    "encoder": "tagging",
    "bm25": "retrieval",
    "embedder": "retrieval",
    "late_interaction": "retrieval",
    "reranker": "retrieval",
}
"""Task in which models are scored, by their kind. Models of other kinds cannot be scored."""


class Checkpoint(NamedTuple):
    """A checkpoint whose small files are in a local folder.

    Attributes:
        folder: Folder with the JSON files and README.md.
        location: Fields of the entry that state where the weights are.
        parameters: Number of parameters; None if the weights do not state it.
    """

    folder: Path
    location: dict[str, Any]
    parameters: int | None


class Fact(NamedTuple):
    """Value of a field of an entry, and where the value comes from.

    Attributes:
        value: Value of the field.
        origin: Source of the value, such as a file; empty if the user set the field.
    """

    value: Any
    origin: str = ""


class AddedEntry(NamedTuple):
    """An entry that was added to models.local.yaml.

    Attributes:
        path: Path of models.local.yaml.
        text: YAML text of the entry.
        commands: Commands that score the model. For a model on the Hub, the first command downloads
            its weights.
    """

    path: Path
    text: str
    commands: tuple[str, ...]


def add_model(
    name: str,
    place: str,
    user_fields: Mapping[str, Any],
    models: Path,
    *,
    options: Collection[str] = (),
) -> AddedEntry:
    """Add the entry of a checkpoint to the file models.local.yaml next to models.yaml.

    Args:
        name: Name of the model.
        place: Folder of the checkpoint, or name of its repository on the Hub.
        user_fields: Fields of the entry that the user sets, which take precedence over the files of
            the checkpoint.
        models: Path of models.yaml.
        options: Fields that have a command-line option. Error messages suggest `--set` for all
            other fields.

    Raises:
        UserError: The checkpoint is unavailable or not supported, neither its files nor the user
            state a required field, or the entry is invalid or already exists.
    """
    local_models = local_file(models)
    checkpoint = find_checkpoint(place, user_fields)
    facts = _collect_facts(checkpoint, user_fields, options)
    fields = {field: fact.value for field, fact in facts.items()}
    entry = load_registry(models, added={name: fields})[name]
    where = f"{local_models}: {name}"
    # Both functions raise an error if the files contradict the entry.
    if isinstance(entry, EmbedderEntry):
        checkpoint_settings(entry, checkpoint.folder, where)
    elif isinstance(entry, RerankerEntry | LateInteractionEntry):
        check_ranker_files(entry, checkpoint.folder, where)
    text = _entry_text(name, facts)
    _append_entry(local_models, text, {name: fields})
    commands = tuple(shlex.join(command) for command in scoring_commands({name: entry}))
    return AddedEntry(local_models, text, commands)


def _append_entry(path: Path, text: str, entry: Mapping[str, Any]) -> None:
    """Append the text of an entry to a YAML file, which is created if it does not exist.

    Raises:
        UserError: The text would not add the `entry`, for example because the file uses braces.
    """
    before = read_text(path) if path.exists() else _SCHEMA_COMMENT
    after = f"{before.rstrip()}\n{text}"
    expected = {**(parse_yaml(before, where=path) or {}), **entry}
    try:
        is_appended = parse_yaml(after, where=path) == expected
    except UserError:
        is_appended = False
    if not is_appended:
        hint = "write its entries as `name:` and indented fields, without braces"
        raise UserError("cannot append an entry to this file", where=path, hint=hint)
    write_text(path, after)


def default_name(place: str) -> str:
    """Return a model's default name: the name of its folder or repository, in lower case."""
    folder_name = Path(place).expanduser().absolute().name
    return re.sub(r"[^a-z0-9._-]+", "-", folder_name.lower()).strip("-._")


def find_entry(place: str, registry: Registry) -> str:
    """Return the name of the entry for a model; empty if the registry has no such entry.

    Args:
        place: Name, folder or Hub repository of the model.
        registry: Entries by name.
    """
    if place in registry:
        return place
    folder = Path(place).expanduser().absolute()
    is_folder = folder.is_dir()
    for name, entry in registry.items():
        if not isinstance(entry, CheckpointEntry):
            continue
        if entry.source == "hub" and entry.checkpoint == place:
            return name
        if is_folder and entry.source == "folder" and Path(str(entry.path)).absolute() == folder:
            return name
    return ""


def scoring_commands(
    entries: Mapping[str, AnyEntry],
    *,
    folder: str = "",
    options: Sequence[str] = ("--cores", "all"),
    files: Iterable[str] = (),
    settings: Iterable[str] = (),
) -> list[list[str]]:
    """Return the commands that score models.

    If a model is on the Hub, the first command downloads the weights.

    Args:
        entries: Entries by name.
        folder: Folder of the run (default: runs/NAME, for the first model).
        options: Options of snakemake.
        files: Configuration files, which take precedence over the configuration file of the task.
        settings: Further settings for `--config`.

    Raises:
        UserError: The models have different tasks, or a model cannot be scored.
    """
    names = ", ".join(entries)
    tasks = {_TASKS.get(entry.kind) for entry in entries.values()}
    if len(tasks) > 1 or None in tasks:
        kinds = ", ".join(f"{name}: {entry.kind}" for name, entry in entries.items())
        hint = "score embedders, chat models and encoders separately"
        raise UserError(f"cannot be scored together ({kinds})", where=names, hint=hint)
    task = next(iter(tasks))
    configfiles = [*files]
    target = "all"
    match task:
        case "tagging":
            config = [_tagging_settings(entries)]
            target = "paper_tables/jam_drift.tex"
        case "chat":
            configfiles.insert(0, "config/score_chat.yaml")
            config = [f"{study}={{models: [{names}]}}" for study in ("jam", "idiots")]
        case _:  # retrieval
            configfiles.insert(0, "config/score.yaml")
            models = dict.fromkeys(("bm25", "sbert", *entries))
            config = [f"idiolink={{models: [{', '.join(models)}]}}"]
    run = ["snakemake", *options, "--directory", folder or f"runs/{next(iter(entries))}"]
    if configfiles:
        run += ["--configfile", *configfiles]
    run += ["--config", *config, *settings, "--"]
    commands = [[*run, target]]
    if any(getattr(entry, "source", "") == "hub" for entry in entries.values()):
        commands.insert(0, [*run, "weights"])
    return commands


def _tagging_settings(entries: Mapping[str, AnyEntry]) -> str:
    """Return the setting for `--config` that selects encoders and all their languages."""
    languages: dict[str, None] = {}
    for entry in entries.values():
        if isinstance(entry, EncoderEntry):
            languages |= dict.fromkeys(entry.languages)
    first_model = next(iter(entries))
    return (
        f"jam={{models: [{', '.join(entries)}], languages: [{', '.join(languages)}],"
        f" neutral: {first_model}}}"
    )


def find_checkpoint(place: str, user_fields: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint in a folder or on the Hub, without downloading its weights.

    Raises:
        UserError: The checkpoint does not exist or is incomplete, or the Hub does not respond.
    """
    folder = Path(place).expanduser()
    if folder.is_dir():
        return _local_checkpoint(folder)
    if not HUB_NAME.fullmatch(place):
        hint = "pass a folder, or the name of a repository on the hub"
        raise UserError("no such folder", where=place, hint=hint)
    is_pickled = bool(user_fields.get("pickled"))
    return _hub_checkpoint(HubCheckpoint(place, user_fields.get("revision"), pickled=is_pickled))


def _local_checkpoint(folder: Path) -> Checkpoint:
    """Return the checkpoint in a folder (see `find_checkpoint`)."""
    check_lfs_pointers(folder)
    path = str(folder.absolute())
    if not (folder / "config.json").is_file():
        # The type of the model explains the missing file better, if that type is not supported.
        _check_first_module(folder, folder)
        hint = "pass a folder saved by transformers or sentence-transformers"
        raise UserError("config.json is missing", where=folder, hint=hint)
    return Checkpoint(
        folder,
        {"checkpoint": Path(path).name, "source": "folder", "path": path},
        _count_parameters(folder.glob("*.safetensors")),
    )


def _hub_checkpoint(weights: HubCheckpoint) -> Checkpoint:
    """Download the small files of a checkpoint, and return it (see `find_checkpoint`)."""
    repository = weights.repository
    try:
        listing = weights.cached() or weights.request_listing()
    except UnreachableError as error:
        hint = "there is no such folder either; run this on a machine with network access"
        raise UserError(error.what, where=error.where, hint=hint) from None
    HubCheckpoint(repository, listing.commit, only="README.md").snapshot()
    # This folder also contains README.md.
    folder = HubCheckpoint(repository, listing.commit, only="*.json").snapshot()
    try:
        metadata = HfApi().get_safetensors_metadata(repository, revision=listing.commit)
        parameters = sum(metadata.parameter_count.values())
    except (NotASafetensorsRepoError, SafetensorsParsingError):
        parameters = 0
    return Checkpoint(
        folder,
        {"checkpoint": repository, "source": "hub", "revision": listing.commit},
        parameters or None,
    )


def _collect_facts(
    checkpoint: Checkpoint, user_fields: Mapping[str, Any], options: Collection[str]
) -> dict[str, Fact]:
    """Return the fields of a checkpoint's entry (see `add_model`), from its files and the user.

    Raises:
        UserError: A required field is missing; the message lists the options to add.
    """
    folder, checkpoint_name = checkpoint.folder, checkpoint.location["checkpoint"]
    if not user_fields.get("trust_remote_code"):
        _check_first_module(folder, checkpoint_name)
    kind = _find_kind(folder, user_fields)
    facts: dict[str, Fact | None] = {
        "kind": kind,
        "label": Fact(checkpoint_name.rpartition("/")[2], "name of the checkpoint"),
        "licence": _find_licence(folder),
        "parameters": _format_parameters(checkpoint.parameters),
        **{field: Fact(value) for field, value in checkpoint.location.items()},
        "pooling": None,  # as in the files, unless the user sets it
        **_find_instructions(folder, user_fields),
        "max_length": _find_max_length(folder),
        "dtype": _find_dtype(folder, kind.value if kind else ""),
    }
    for field, value in user_fields.items():
        facts[field] = Fact(value)
    entry_class = KINDS[kind.value] if kind else CheckpointEntry
    fields_of_entry = entry_class.model_fields.keys() | user_fields.keys()
    known_facts = {
        field: fact for field, fact in facts.items() if fact and field in fields_of_entry
    }
    missing = [field for field in _required_fields(entry_class, folder) if field not in known_facts]
    if missing:
        raise UserError(
            f"its files do not state {', '.join(missing)}",
            where=checkpoint_name,
            hint=f"add {' '.join(_option_for(field, options) for field in missing)}",
        )
    return known_facts


def _required_fields(entry_class: type[CheckpointEntry], folder: Path) -> list[str]:
    """Return the fields that the entry of a checkpoint in a folder must have.

    Args:
        entry_class: Class of the entry; `CheckpointEntry` if the kind is not known.
        folder: Folder with the small files of the checkpoint.
    """
    required = [name for name, field in entry_class.model_fields.items() if field.is_required()]
    if entry_class is CheckpointEntry:
        required.append("kind")
    if entry_class is EmbedderEntry and not _has_modules(folder):
        required.append("pooling")
    return required


def _option_for(field: str, options: Collection[str]) -> str:
    """Return the command-line option that sets a field, with a placeholder for the value."""
    placeholder = field.upper()
    if field in options:
        return f"--{field.replace('_', '-')} {placeholder}"
    return f"--set {field}={placeholder}"


def _has_modules(folder: Path) -> bool:
    """Return whether a checkpoint was saved by sentence-transformers."""
    return (folder / "modules.json").is_file()


def _find_kind(folder: Path, user_fields: Mapping[str, Any]) -> Fact | None:
    """Return the kind of the entry; None if neither the user nor the files state it.

    Raises:
        UserError: Models of this kind cannot be added.
    """
    if "kind" not in user_fields:
        return Fact("embedder", "modules.json") if _has_modules(folder) else None
    kind = user_fields["kind"]
    if kind not in KINDS:
        hint = f"use one of {', '.join(KINDS)}"
        raise UserError(f"kind {kind!r} cannot be added", where="--kind", hint=hint)
    return Fact(kind)


def _check_first_module(folder: Path, where: str | Path) -> None:
    """Raise a `UserError` if the first module of a checkpoint is not a transformer."""
    module = first_module(folder)
    if module not in ("", "Transformer"):
        raise UserError(
            f"modules.json: the model is of type {module}, which is not supported",
            where=where,
            hint="use a model with a transformer, or rank with another program and add the ranking"
            " (docs/adding/predictions.md)",
        )


def _find_dtype(folder: Path, kind: str) -> Fact | None:
    """Return the data type that the checkpoint's files set; None if they set none.

    The result is also None for encoders, because they are trained in float32.
    """
    if kind == "encoder":
        return None
    dtype_and_file = dtype_of(folder)
    return Fact(*dtype_and_file) if dtype_and_file else None


def _find_instructions(folder: Path, user_fields: Mapping[str, Any]) -> dict[str, Fact]:
    """Return the entry's fields for instructions, and the field `overrides`.

    The field `overrides` names the settings of the checkpoint's files that the entry replaces:
    `pooling` if the user sets the pooling, and `prompts` if the files have prompts with
    instructions, because the study uses its own instruction.
    """
    overrides = []
    if user_fields.get("pooling", "checkpoint") != "checkpoint":
        overrides.append("pooling")
    instruction_format = _find_instruction_format(folder)
    if instruction_format:
        origin = f"prompts in {SETTINGS_FILE}"
        return {
            "overrides": Fact([*overrides, "prompts"], "the study's instruction replaces theirs"),
            "trained_with_instructions": Fact(True, origin),
            "instruction_format": Fact(instruction_format, origin),
        }
    facts = {}
    if overrides:
        facts["overrides"] = Fact(overrides)
    if not user_fields.get("trained_with_instructions"):
        origin = "assumed, since no prompt in the files has an instruction"
        facts["trained_with_instructions"] = Fact(False, origin)
        facts["instruction_format"] = Fact("instruction_newline_query", "as for similar models")
    return facts


def _find_instruction_format(folder: Path) -> str:
    """Return the format of the instructions in a checkpoint's prompts; empty if there are none."""
    prompts = _read_object(folder / SETTINGS_FILE).get("prompts")
    if not isinstance(prompts, dict):
        return ""
    prompt_texts = [str(text) for text in prompts.values() if text]
    for instruction_format, pattern in _INSTRUCTION_PATTERNS.items():
        if any(re.fullmatch(pattern, text, re.DOTALL) for text in prompt_texts):
            return instruction_format
    return ""


def _find_max_length(folder: Path) -> Fact | None:
    """Return the smallest length limit that the checkpoint's files state; None if there is none."""
    limits = length_limits(folder)
    if not limits:
        return None
    smallest = min(limits, key=lambda limit: (limit.tokens, limit.file))
    return Fact(smallest.tokens, smallest.file)


def _find_licence(folder: Path) -> Fact | None:
    """Return the license in the header of README.md; None if there is none.

    A license with an SPDX identifier is spelled like this identifier.
    """
    readme = folder / "README.md"
    if not readme.is_file():
        return None
    header = re.match(r"---\n(.*?)\n---", read_text(readme), re.DOTALL)
    if not header:
        return None
    license_field = r"(?m)^(license|license_name):[ \t]*['\"]?([^\s'\"#]+)"
    fields = dict(re.findall(license_field, header[1]))
    licence = fields.get("license")
    if licence == "other":
        licence = fields.get("license_name")
    if not licence:
        return None
    if licence.startswith("cc"):  # Creative Commons
        return Fact(licence.upper(), "README.md")
    identifiers = {identifier.casefold(): identifier for identifier in _SPDX}
    return Fact(identifiers.get(licence.casefold(), licence), "README.md")


def _format_parameters(count: int | None) -> Fact | None:
    """Return a number of parameters with three significant digits (22.7M); None if not known."""
    if not count:
        return None
    # 999.5 million is the smallest number that rounds to 1B.
    unit, unit_size = ("B", 1e9) if count >= 999.5e6 else ("M", 1e6)
    integer_digits = 1 + math.floor(math.log10(count / unit_size))
    number = f"{count / unit_size:.{max(0, 3 - integer_digits)}f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return Fact(number + unit, "weights")


def _count_parameters(files: Iterable[Path]) -> int | None:
    """Return the number of parameters that safetensors files contain; None if there are no files.

    Raises:
        UserError: A file is not a safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    count = 0
    for path in files:
        try:
            with safe_open(path, framework="numpy") as weights:
                shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
        except SafetensorError as error:
            hint = "download the file again"
            raise UserError(f"not a safetensors file: {error}", where=path, hint=hint) from None
        count += sum(math.prod(shape) for shape in shapes)
    return count or None


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if the file is missing or contains no object."""
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _entry_text(name: str, facts: Mapping[str, Fact]) -> str:
    """Return the YAML text of an entry, with the origin of each one-line value as a comment."""
    lines = [f"{name}:"]
    for field, fact in facts.items():
        field_text = yaml.safe_dump(
            {field: fact.value},
            default_flow_style=None if isinstance(fact.value, list | dict) else False,
            allow_unicode=True,
            width=math.inf,
        )
        field_lines = field_text.splitlines()
        if fact.origin and len(field_lines) == 1:
            field_lines = [f"{field_lines[0]}  # {fact.origin}"]
        lines += [f"  {line}" for line in field_lines]
    return "\n".join(lines) + "\n"
