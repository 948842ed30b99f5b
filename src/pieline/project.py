"""Models, data source and folders that all studies share."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pieline.archives.manifest import Archive
from pieline.core.errors import UserError
from pieline.core.files import check_lfs_pointers, files_below, sha256
from pieline.core.sidecars import LIST_ENDING
from pieline.core.upstream import UpstreamFile, load_upstream
from pieline.core.yamls import read_mapping, read_yaml
from pieline.llm.obstacles import obstacles
from pieline.llm.settings import LLMSection
from pieline.models.adapter_files import check_adapter
from pieline.models.checkpoint_settings import check_ranker_files, checkpoint_settings
from pieline.models.embedder import EmbedderEntry
from pieline.models.entries import CheckpointEntry
from pieline.models.llm import LLMEntry
from pieline.models.rankers import LateInteractionEntry, RerankerEntry
from pieline.models.reference import Specs, entry_deviations, load_reference
from pieline.models.registry import AnyEntry, Registry
from pieline.reporting.models import ModelDescription

EXTERNAL = "external"
"""Marker of external predictions in model labels and deviations."""

_FILES_OF_A_MODEL = ("config.json", "modules.json")
"""Files of which a folder with a model has one: transformers' or sentence-transformers'."""


_MATCHES_NOTHING = "(?!)"


def alternatives(names: Iterable[str]) -> str:
    """Return a wildcard constraint of Snakemake that matches only the given names."""
    return "|".join(re.escape(name) for name in sorted(names)) or _MATCHES_NOTHING


def raw_name(path: str) -> str:
    """Return the name of a raw file in data/upstream.yaml and in mirrors."""
    return path.removeprefix("results/raw/")


def own_data_name(folder: str) -> str:
    """Return the name of the user's own data, which is the name of the folder with the data."""
    return Path(folder).resolve().name


@dataclass(frozen=True)
class Project:
    """Models, data source and folders, shared by all studies.

    Attributes:
        registry: All known models.
        llm: Settings of requests to language models.
        data: Data source: our sample, the public files, or the user's own data.
        mirror: Folder with the public files; None if they are downloaded.
        root: Project folder, relative to the working directory.
        own_data: Folder with the user's own data; None if other data is used.
        archives: Archives with runs that are not computed again.
        limit: Number of originals, sentences or queries to use; None to use all.
    """

    registry: Registry
    llm: LLMSection
    data: Literal["sample", "released", "own"] = "sample"
    mirror: str | None = None
    root: Path = Path()
    own_data: str | None = None
    archives: tuple[Archive, ...] = ()
    limit: int | None = None

    @property
    def is_sample(self) -> bool:
        """Whether the data source is our sample."""
        return self.data == "sample"

    @property
    def own_label(self) -> str:
        """Label of the user's own data; empty for other data."""
        return f"own data: {own_data_name(self.own_data)}" if self.own_data else ""

    @property
    def notice(self) -> str:
        """Notice on tables and figures if the data is the user's own or limited; else empty."""
        sentences = []
        if self.own_data:
            sentences.append(f"{self.own_label[0].upper()}{self.own_label[1:]}.")
        if self.limit:
            sentences.append(f"At most the first {self.limit} originals, sentences or queries.")
        return " ".join(sentences)

    def archive_with(self, *metrics: str) -> Archive | None:
        """Return the first archive with the runs of all metric files, or None if there is none."""
        for archive in self.archives:
            if all(path in archive.runs for path in metrics):
                return archive
        return None

    @property
    def upstream(self) -> str:
        """Path of the list of public files with their digests."""
        return str(self.root / "data" / "upstream.yaml")

    @cached_property
    def public_files(self) -> Mapping[str, UpstreamFile]:
        """Public files by name; cached, because planning looks up every raw file.

        Raises:
            UserError: An entry in upstream.yaml is invalid; the message names the entry.
        """
        return load_upstream(self.upstream)

    @cached_property
    def printed_prompts(self) -> Mapping[str, str]:
        """Digest of each prompt that a paper prints, by path below prompts/."""
        hint = "write one line PATH: DIGEST for each prompt"
        return read_mapping(self.here("published/prompts.yaml"), hint=hint)

    @cached_property
    def reference(self) -> Specs:
        """Our reference entries of the papers' models, with which models.yaml is compared."""
        return load_reference(self.here("published/model_entries.json"))

    def changed_entry(self, model: str) -> tuple[str, ...]:
        """Return a description of each difference between a model's entry and our reference entry.

        The result is empty for models that are not in a paper.
        """
        return entry_deviations(self.entry(model), self.reference)

    def here(self, *parts: str) -> str:
        """Return the path of a project file, relative to the working directory."""
        return str(self.root.joinpath(*parts))

    def configured_file(self, path: str) -> str:
        """Return the path of a configured file, relative to the working directory.

        The configured path may be relative to the working directory or to the project folder. If
        both files exist, or neither, the path is taken to be relative to the working directory.
        """
        in_project = self.here(path)
        is_only_in_project = Path(in_project).exists() and not Path(path).exists()
        return in_project if is_only_in_project else path

    def recordings(self, *parts: str) -> str:
        """Return the path of a recordings file.

        Rules must not declare recordings as outputs, because Snakemake deletes outputs before it
        makes them again.
        """
        return self.here(str(self.llm.recordings_folder), *parts)

    def is_available(self, name: str) -> bool:
        """Return whether a raw file is available.

        If `own_data` or `mirror` is set, the file must exist in this folder. Otherwise, the file
        must have a URL in upstream.yaml, or must not be listed in upstream.yaml.
        """
        if folder := self.own_data or self.mirror:
            return Path(folder, name).exists()
        public_file = self.public_files.get(name)
        return public_file is None or public_file.url is not None

    def local(self, name: str) -> str | None:
        """Return the path of a raw file in the user's own data or the sample.

        The result is None for public data.
        """
        if self.own_data:
            return str(Path(self.own_data, name))
        return self.here("data/sample", name) if self.is_sample else None

    @cached_property
    def _digests(self) -> dict[str, str | None]:
        return {}

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file that no job makes, given its path below the project.

        For a raw file, this is the digest of the file from which the raw file is copied. If
        upstream.yaml lists the digest of a public file, no file is read. The result is an empty
        string if the file must be downloaded to know the digest, and None if there is no such file.
        """
        if path not in self._digests:
            if path.startswith("results/raw/"):
                self._digests[path] = self._digest_of_raw_file(raw_name(path))
            else:
                in_project = self.here(path)
                file = in_project if Path(in_project).is_file() else path
                self._digests[path] = _digest_if_exists(file)
        return self._digests[path]

    def _digest_of_raw_file(self, name: str) -> str | None:
        """Return the SHA-256 of a raw file (see `digest`), given the name of the public file."""
        local_file = self.local(name)
        if local_file:
            return _digest_if_exists(local_file)
        public_file = self.public_files.get(name)
        if public_file and public_file.sha256:
            return public_file.sha256
        if self.mirror:
            return _digest_if_exists(Path(self.mirror, name))
        can_be_downloaded = public_file is not None and public_file.url
        return "" if can_be_downloaded else None

    def names(self, *kinds: str) -> list[str]:
        """Return the names of the models of the given kinds, in the order of models.yaml."""
        return [name for name, entry in self.registry.items() if entry.kind in kinds]

    def constraint(self, *kinds: str) -> str:
        """Return a wildcard constraint that matches the names of the models of the given kinds."""
        return alternatives(self.names(*kinds))

    def entry(self, model: str) -> AnyEntry:
        """Return the entry of a model."""
        return self.registry[model]

    def entry_file(self, model: str) -> str:
        """Return the path of the file with a model's entry: models.yaml or models.local.yaml."""
        local_file = self.here("models.local.yaml")
        if Path(local_file).exists() and model in (read_yaml(local_file) or {}):
            return local_file
        return self.here("models.yaml")

    def check_folder(self, model: str) -> None:
        """Check the local files of a model, and that the name of the checkpoint is unambiguous.

        A checkpoint on the Hub without a pinned revision is ambiguous if a local folder has the
        same name and contains a model.

        Raises:
            UserError: The weights or the adapter are missing or invalid, or the checkpoint is
                ambiguous.
        """
        entry = self.entry(model)
        if not isinstance(entry, CheckpointEntry):
            return
        where = f"{self.entry_file(model)}: {model}"
        if entry.source == "folder" and entry.path:
            _check_weights(str(entry.path), where, is_file=entry.is_gguf)
        if isinstance(entry, EmbedderEntry) and entry.adapter:
            _check_exists(entry.adapter, where, _path_hint("adapter"))
            check_lfs_pointers(entry.adapter)
            check_adapter(entry)
        if entry.source == "folder" and isinstance(entry, EmbedderEntry):
            checkpoint_settings(entry, str(entry.path), where)  # raises an error for invalid files
        if entry.source == "folder" and isinstance(entry, RerankerEntry | LateInteractionEntry):
            check_ranker_files(entry, str(entry.path), where)
        is_local_folder = Path(entry.checkpoint, "config.json").exists()
        if entry.source == "hub" and is_local_folder and not entry.revision:
            raise UserError(
                f"checkpoint {entry.checkpoint!r} is also a local folder",
                where=where,
                hint="set source: folder and path, or pin the revision of the repository",
            )

    def language_model(self, model: str) -> LLMEntry:
        """Return the entry of a language model.

        Raises:
            UserError: The model is of another kind.
        """
        entry = self.registry[model]
        if not isinstance(entry, LLMEntry):
            raise UserError(f"{model!r} is of kind {entry.kind!r}", hint="choose a language model")
        return entry

    def unanswered(self, model: str, recordings: str) -> str:
        """Return why a language model cannot provide answers; empty if the model can answer.

        Args:
            model: Model name.
            recordings: Recordings file of one run of the model.
        """
        path = Path(recordings)
        has_answers = path.exists() and path.stat().st_size > 0
        if has_answers:
            return ""
        first_obstacle = next(obstacles(self.language_model(model), self.llm), None)
        return f"nothing is recorded, and {first_obstacle.what}" if first_obstacle else ""

    def execution_spec(self, model: str) -> str:
        """Return the fields of a model's entry that affect the model's predictions, as JSON."""
        return self.entry(model).execution_spec()

    def unpacked_weights(self, model: str) -> str | None:
        """Return the path of the file with the digests of a model's unpacked weights.

        The result is None if the weights need not be unpacked, because they are neither in a GGUF
        file nor in a pickle.
        """
        entry = self.entry(model)
        if isinstance(entry, CheckpointEntry) and entry.must_be_unpacked:
            return f"results/raw/weights/{model}{LIST_ENDING}"
        return None

    def weights_files(self, model: str) -> list[str]:
        """Return the local files with a model's checkpoint and adapter, as inputs of jobs."""
        entry = self.entry(model)
        files_and_folders: list[Path] = []
        if isinstance(entry, CheckpointEntry) and entry.source == "folder":
            files_and_folders.append(Path(str(entry.path)))
        if isinstance(entry, EmbedderEntry) and entry.adapter:
            files_and_folders.append(Path(entry.adapter))
        files: set[Path] = set()
        for path in files_and_folders:
            files.update([path] if path.is_file() else files_below(path))
        return sorted(str(file) for file in files)

    def describe_models(self, names: Iterable[str]) -> tuple[ModelDescription, ...]:
        """Return descriptions of models for tables."""
        fields_of_entries = set(ModelDescription.model_fields) - {
            "name",
            "is_configured",
            "not_run",
        }
        descriptions = []
        for name in names:
            entry = self.registry[name]
            fields = entry.model_dump(include=fields_of_entries)
            if isinstance(entry, RerankerEntry):
                fields["label"] += f" (over {self.registry[entry.first_stage].label})"
            descriptions.append(ModelDescription(name=name, **fields))
        return tuple(descriptions)


def _digest_if_exists(path: str | Path) -> str | None:
    """Return the SHA-256 of a file; None if there is no such file."""
    return sha256(path) if Path(path).is_file() else None


def _check_weights(path: str, where: str, *, is_file: bool) -> None:
    """Raise a `UserError` if local weights are missing or are Git LFS pointers.

    Args:
        path: Path of the weights.
        where: Location for error messages.
        is_file: Whether the path must be a file; otherwise, it must be a folder with a model.
    """
    hint = _path_hint("path")
    _check_exists(path, where, hint, is_file=is_file)
    if not is_file and not any(Path(path, file).exists() for file in _FILES_OF_A_MODEL):
        problem = f"no model in {path}, because it has no config.json"
        raise UserError(problem, where=where, hint=hint)
    check_lfs_pointers(path)


def _check_exists(path: str, where: str, hint: str, *, is_file: bool = False) -> None:
    """Raise a `UserError` unless the folder (or the file, if `is_file`) exists."""
    exists = Path(path).is_file() if is_file else Path(path).is_dir()
    if not exists:
        kind = "file" if is_file else "folder"
        raise UserError(f"no such {kind}: {path}", where=where, hint=hint)


def _path_hint(field: str) -> str:
    """Return a hint to correct a field of an entry that contains the path of a missing file."""
    return f"correct {field} (relative to {Path.cwd()})"
