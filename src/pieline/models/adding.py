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
    check_ranker_files,
    checkpoint_settings,
    dtype_of,
    first_module,
    length_limits,
)
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import CheckpointEntry, EncoderEntry
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

_SCHEMA = "# yaml-language-server: $schema=schemas/models.schema.json\n"
_PROMPTS = {
    "gemma_instruct_query": r"<instruct>.*\n<query>",
    "instruct_query": r"Instruct: .*\nQuery: ",
    "instruct_query_unspaced": r"Instruct: .*\nQuery:",
}
"""Patterns of prompts that contain an instruction, by instruction format."""
_SPDX = ("AGPL-3.0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GPL-3.0", "LGPL-3.0", "MIT")


class Checkpoint(NamedTuple):
    """A checkpoint whose small files are in a local folder.

    Attributes:
        folder: Folder with the JSON files and README.md.
        place: Fields of the entry that state where the weights are.
        parameters: Number of parameters; None if the weights do not state it.
    """

    folder: Path
    place: dict[str, Any]
    parameters: int | None


class Fact(NamedTuple):
    """Value of a field of the entry, and its source (empty if the user gave it)."""

    value: Any
    origin: str = ""


class Added(NamedTuple):
    """An added entry.

    Attributes:
        path: File with the entry.
        text: Text of the entry.
        commands: Commands that download the model, if it is on the Hub, and score it.
    """

    path: Path
    text: str
    commands: tuple[str, ...]


def add_model(
    name: str, place: str, given: Mapping[str, Any], models: Path, *, options: Collection[str] = ()
) -> Added:
    """Add a checkpoint to the file models.local.yaml next to models.yaml.

    Args:
        name: Name of the model.
        place: Folder of the checkpoint, or its name on the Hub.
        given: Fields of the entry that replace or complete those from the files.
        models: Path of models.yaml.
        options: Fields that the command sets with an option of their own, for error messages.

    Raises:
        UserError: The checkpoint is unavailable or not supported, its files do not state a required
            field that is not given either, or the entry is invalid or already exists.
    """
    own = local_file(models)
    checkpoint = find_checkpoint(place, given)
    facts = describe(checkpoint, given, options)
    fields = {field: fact.value for field, fact in facts.items()}
    entry = load_registry(models, added={name: fields})[name]
    where = f"{own}: {name}"
    if isinstance(entry, EmbedderEntry):
        checkpoint_settings(entry, checkpoint.folder, where)
    elif isinstance(entry, RerankerEntry | LateInteractionEntry):
        check_ranker_files(entry, checkpoint.folder, where)
    text = _entry_text(name, facts)
    before = read_text(own) if own.exists() else _SCHEMA
    after = f"{before.rstrip()}\n{text}"
    expected = (parse_yaml(before, where=own) or {}) | {name: fields}
    try:
        is_appended = parse_yaml(after, where=own) == expected
    except UserError:
        is_appended = False
    if not is_appended:
        hint = "write its entries as `name:` and indented fields, without braces"
        raise UserError("cannot append an entry to this file", where=own, hint=hint)
    write_text(own, after)
    commands = (shlex.join(command) for command in scoring_commands({name: entry}))
    return Added(own, text, tuple(commands))


def name_of(place: str) -> str:
    """Return the default name of a model: that of its folder or repository, in lower case."""
    last = Path(place).expanduser().absolute().name
    return re.sub(r"[^a-z0-9._-]+", "-", last.lower()).strip("-._")


def entry_of(place: str, registry: Registry) -> str:
    """Return the name of the entry with a name, folder or Hub repository; empty without one."""
    if place in registry:
        return place
    folder = Path(place).expanduser()
    for name, entry in registry.items():
        if not isinstance(entry, CheckpointEntry):
            continue
        is_folder = entry.source == "folder" and entry.path and folder.is_dir()
        if is_folder and Path(str(entry.path)).absolute() == folder.absolute():
            return name
        if entry.source == "hub" and entry.checkpoint == place:
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
    """Return the commands that score models of one kind, and first download their weights.

    Args:
        entries: Entries by name.
        folder: Folder of the run (default: runs/NAME, for the first model).
        options: Options of snakemake.
        files: Configuration files that take precedence over that of the kind.
        settings: Further settings for `--config`.

    Raises:
        UserError: The models do not have one kind that can be scored.
    """
    names, kinds = ", ".join(entries), {_scored_as(entry.kind) for entry in entries.values()}
    if len(kinds) > 1 or "" in kinds:
        each = ", ".join(f"{name}: {entry.kind}" for name, entry in entries.items())
        hint = "score embedders, chat models and encoders separately"
        raise UserError(f"cannot be scored together ({each})", where=names, hint=hint)
    configfiles, target = [*files], "all"
    match kinds.pop():
        case "encoder":
            languages: dict[str, None] = {}
            for entry in entries.values():
                if isinstance(entry, EncoderEntry):
                    languages |= dict.fromkeys(entry.languages)
            neutral = next(iter(entries))
            jam = f"models: [{names}], languages: [{', '.join(languages)}], neutral: {neutral}"
            config, target = [f"jam={{{jam}}}"], "paper_tables/jam_drift.tex"
        case "chat":
            configfiles.insert(0, "config/score_chat.yaml")
            config = [f"{study}={{models: [{names}]}}" for study in ("jam", "idiots")]
        case _:
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


def _scored_as(kind: str) -> str:
    """Return how models of a kind are scored; empty if they are not."""
    if kind in ("llm", "encoder"):
        return {"llm": "chat"}.get(kind, kind)
    return "retrieval" if kind in ("bm25", "embedder", "late_interaction", "reranker") else ""


def find_checkpoint(place: str, given: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint in a folder or on the Hub, from which only small files are downloaded.

    Raises:
        UserError: There is no such checkpoint, it is incomplete, or the Hub does not respond.
    """
    folder = Path(place).expanduser()
    if folder.is_dir():
        return _local_checkpoint(folder)
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", place):
        hint = "pass a folder, or the name of a repository on the hub"
        raise UserError("no such folder", where=place, hint=hint)
    return _hub_checkpoint(
        HubCheckpoint(place, given.get("revision"), pickled=bool(given.get("pickled")))
    )


def _local_checkpoint(folder: Path) -> Checkpoint:
    check_lfs_pointers(folder)
    path = str(folder.absolute())
    if not (folder / "config.json").is_file():
        hint = "pass a folder saved by transformers or sentence-transformers"
        _check_first_module(folder, folder)
        raise UserError("config.json is missing", where=folder, hint=hint)
    return Checkpoint(
        folder,
        {"checkpoint": Path(path).name, "source": "folder", "path": path},
        _count_parameters(folder.glob("*.safetensors")),
    )


def _hub_checkpoint(weights: HubCheckpoint) -> Checkpoint:
    name = weights.repository
    try:
        listing = weights.cached() or weights.request_listing()
    except UnreachableError as error:
        hint = "there is no such folder either; run this on a machine with network access"
        raise UserError(error.what, where=error.where, hint=hint) from None
    for pattern in ("README.md", "*.json"):
        folder = HubCheckpoint(name, listing.commit, only=pattern).snapshot()
    try:
        found = HfApi().get_safetensors_metadata(name, revision=listing.commit).parameter_count
    except (NotASafetensorsRepoError, SafetensorsParsingError):
        found = {}
    return Checkpoint(
        folder,
        {"checkpoint": name, "source": "hub", "revision": listing.commit},
        sum(found.values()) or None,
    )


def describe(
    checkpoint: Checkpoint, given: Mapping[str, Any], options: Collection[str]
) -> dict[str, Fact]:
    """Return the fields of a checkpoint's entry (see `add_model`).

    Raises:
        UserError: A required field is missing; the message lists the options to add.
    """
    folder = checkpoint.folder
    if not given.get("trust_remote_code"):
        _check_first_module(folder, checkpoint.place["checkpoint"])
    has_modules = (folder / "modules.json").is_file()
    kind = Fact("embedder", "modules.json") if has_modules else None
    kind = Fact(given["kind"]) if "kind" in given else kind
    if kind and kind.value not in KINDS:
        hint = f"use one of {', '.join(KINDS)}"
        raise UserError(f"kind {kind.value!r} cannot be added", where="--kind", hint=hint)
    facts: dict[str, Fact | None] = {
        "kind": kind,
        "label": Fact(checkpoint.place["checkpoint"].rpartition("/")[2], "name of the checkpoint"),
        "licence": _licence(folder),
        "parameters": _parameters(checkpoint.parameters),
        **{field: Fact(value) for field, value in checkpoint.place.items()},
        "pooling": None,  # as in the files, unless given
        **_instructions(folder, given),
        "max_length": _max_length(folder),
        "dtype": _dtype(folder, kind.value if kind else ""),
    }
    facts |= {field: Fact(value) for field, value in given.items()}
    entry_class = KINDS[kind.value] if kind else CheckpointEntry
    found = {
        field: fact
        for field, fact in facts.items()
        if fact and (field in entry_class.model_fields or field in given)
    }
    required = [name for name, field in entry_class.model_fields.items() if field.is_required()]
    required += ["kind"] if not kind else []
    required += ["pooling"] if entry_class is EmbedderEntry and not has_modules else []
    if missing := [field for field in required if field not in found]:
        lacking = []
        for field in missing:
            has_option = field in options
            option = f"--{field.replace('_', '-')} " if has_option else f"--set {field}="
            lacking.append(f"{option}{field.upper()}")
        raise UserError(
            f"its files do not state {', '.join(missing)}",
            where=checkpoint.place["checkpoint"],
            hint=f"add {' '.join(lacking)}",
        )
    return found


def _check_first_module(folder: Path, where: str | Path) -> None:
    """Raise a `UserError` that names the type of a checkpoint without a transformer."""
    if (kind := first_module(folder)) not in ("", "Transformer"):
        raise UserError(
            f"modules.json: the model is of type {kind}, which is not supported",
            where=where,
            hint="use a model with a transformer, or rank with another program and add the ranking"
            " (docs/adding/predictions.md)",
        )


def _dtype(folder: Path, kind: str) -> Fact | None:
    """Return the data type of the checkpoint; none for encoders, which are trained in float32."""
    dtype = None if kind == "encoder" else dtype_of(folder)
    return Fact(*dtype) if dtype else None


def _instructions(folder: Path, given: Mapping[str, Any]) -> dict[str, Fact]:
    """Return the fields for instructions, and `overrides`: the settings in files to ignore.

    The given pooling overrides that of the files. If the files have prompts with instructions, the
    study's instructions override these prompts.
    """
    file = "config_sentence_transformers.json"
    prompts = _read(folder, file).get("prompts")
    texts = [text for text in prompts.values() if text] if isinstance(prompts, dict) else []
    formats = [
        name
        for name, pattern in _PROMPTS.items()
        if any(re.fullmatch(pattern, str(text), re.DOTALL) for text in texts)
    ]
    overrides = ["pooling"] if given.get("pooling", "checkpoint") != "checkpoint" else []
    if formats:
        origin = f"prompts in {file}"
        return {
            "overrides": Fact([*overrides, "prompts"], "the study's instruction replaces theirs"),
            "trained_with_instructions": Fact(True, origin),
            "instruction_format": Fact(formats[0], origin),
        }
    facts = {"overrides": Fact(overrides)} if overrides else {}
    if not given.get("trained_with_instructions"):
        origin = "assumed, since no prompt in the files has an instruction"
        facts["trained_with_instructions"] = Fact(False, origin)
        facts["instruction_format"] = Fact("instruction_newline_query", "as for similar models")
    return facts


def _max_length(folder: Path) -> Fact | None:
    limits = [(tokens, file) for file, _, tokens in length_limits(folder)]
    return Fact(*min(limits)) if limits else None


def _licence(folder: Path) -> Fact | None:
    """Return the license in the header of README.md, spelled as an SPDX identifier."""
    path = folder / "README.md"
    header = re.match(r"---\n(.*?)\n---", read_text(path), re.DOTALL) if path.is_file() else None
    line = r"(?m)^(license|license_name):[ \t]*['\"]?([^\s'\"#]+)"
    fields = dict(re.findall(line, header[1] if header else ""))
    name = fields.get("license")
    if name == "other":
        name = fields.get("license_name")
    if not name:
        return None
    spellings = {each.casefold(): each for each in _SPDX}
    name = name.upper() if name.startswith("cc") else spellings.get(name.casefold(), name)
    return Fact(name, "README.md")


def _parameters(count: int | None) -> Fact | None:
    if not count:
        return None
    unit, size = ("B", 1e9) if count >= 999.5e6 else ("M", 1e6)
    digits = max(0, 2 - math.floor(math.log10(count / size)))
    number = f"{count / size:.{digits}f}"
    return Fact((number.rstrip("0").rstrip(".") if "." in number else number) + unit, "weights")


def _count_parameters(files: Iterable[Path]) -> int | None:
    """Count the parameters in safetensors files from their headers; None if there are no files."""
    from safetensors import SafetensorError, safe_open

    count = 0
    for path in files:
        try:
            with safe_open(path, framework="numpy") as weights:
                shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
        except SafetensorError as error:
            hint = "download the file again"
            raise UserError(f"not a safetensors file: {error}", where=path, hint=hint) from None
        count += sum(map(math.prod, shapes))
    return count or None


def _read(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _entry_text(name: str, facts: Mapping[str, Fact]) -> str:
    lines = [f"{name}:"]
    for field, fact in facts.items():
        text = yaml.safe_dump(
            {field: fact.value},
            default_flow_style=None if isinstance(fact.value, list | dict) else False,
            allow_unicode=True,
            width=math.inf,
        )
        first, *rest = text.splitlines()
        comment = f"  # {fact.origin}" if fact.origin and not rest else ""
        lines += [f"  {first}{comment}", *(f"  {line}" for line in rest)]
    return "\n".join(lines) + "\n"
