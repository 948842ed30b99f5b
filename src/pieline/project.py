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
"""A folder with a model has one of these files, for transformers or sentence-transformers."""


def alternatives(names: Iterable[str]) -> str:
    """Return a wildcard constraint that matches exactly these names."""
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


def raw_name(path: str) -> str:
    """Return the name of a raw file in data/upstream.yaml and in mirrors."""
    return path.removeprefix("results/raw/")


def own_data_name(folder: str) -> str:
    """Return the name of the user's own data, which is that of its folder."""
    return Path(folder).resolve().name


@dataclass(frozen=True)
class Project:
    """Models, data source and folders, shared by all studies.

    Attributes:
        registry: All known models.
        llm: Settings of the language model calls.
        data: Data source: our sample, the public files, or the user's own data.
        mirror: Folder with the public files, if set.
        root: Project folder, relative to the working directory.
        own_data: Folder with the user's own data, if used.
        archives: Archives from which the runs that they contain are taken.
        limit: Number of originals, sentences or queries to use; None for all.
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
        """Notice on displays if the data is the user's own or limited; else empty."""
        label = f"{self.own_label[0].upper()}{self.own_label[1:]}." if self.own_data else ""
        first = f"At most the first {self.limit} originals, sentences or queries."
        return " ".join(filter(None, (label, first if self.limit else "")))

    def archive_with(self, *metrics: str) -> Archive | None:
        """Return the first archive that contains the runs of all these metric files, if any."""
        whole = (one for one in self.archives if all(path in one.runs for path in metrics))
        return next(whole, None)

    @property
    def upstream(self) -> str:
        """Path of the list of public files with their digests."""
        return str(self.root / "data" / "upstream.yaml")

    @cached_property
    def public_files(self) -> Mapping[str, UpstreamFile]:
        """Public files by name; read only once, because planning looks up every raw file.

        Raises:
            UserError: An entry is invalid; the message names the file and the entry.
        """
        return load_upstream(self.upstream)

    @cached_property
    def printed_prompts(self) -> Mapping[str, str]:
        """Digests of the prompts printed in the papers, by path below prompts/."""
        hint = "write one line PATH: DIGEST for each prompt"
        return read_mapping(self.here("published/prompts.yaml"), hint=hint)

    @cached_property
    def reference(self) -> Specs:
        """Reference specifications of the papers' models."""
        return load_reference(self.here("published/model_entries.json"))

    def changed_entry(self, model: str) -> tuple[str, ...]:
        """Describe how a model's entry differs from the shipped entry of the paper's model.

        The result is empty for models that are not in a paper.
        """
        return entry_deviations(self.entry(model), self.reference)

    def here(self, *parts: str) -> str:
        """Return the path of a project file, relative to the working directory."""
        return str(self.root.joinpath(*parts))

    def configured_file(self, path: str) -> str:
        """Return a configured path, or that in the project folder if only this file exists."""
        ours = self.here(path)
        return ours if Path(ours).exists() and not Path(path).exists() else path

    def recordings(self, *parts: str) -> str:
        """Return the path of a recordings file.

        No rule declares this file as an output, because Snakemake would delete it before a rerun.
        """
        return self.here(str(self.llm.recordings_folder), *parts)

    def is_available(self, name: str) -> bool:
        """Return whether a raw file is available.

        If `own_data` or `mirror` is set, the file must exist in that folder. Otherwise, it must
        have a URL in upstream.yaml or not be listed there.
        """
        if folder := self.own_data or self.mirror:
            return Path(folder, name).exists()
        known = self.public_files.get(name)
        return known is None or known.url is not None

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

        For a raw file, this is the digest of its source; for public data, a listed digest takes
        precedence. The result is an empty string if the digest is unknown until the file is
        downloaded, and None if there is no such file.
        """
        if path not in self._digests:
            self._digests[path] = self._digest(path)
        return self._digests[path]

    def _digest(self, path: str) -> str | None:
        if not path.startswith("results/raw/"):
            places = [self.here(path), path]
            return next((sha256(place) for place in places if Path(place).is_file()), None)
        name = raw_name(path)
        if local := self.local(name):
            return sha256(local) if Path(local).is_file() else None
        listed = self.public_files.get(name)
        if listed and listed.sha256:
            return listed.sha256
        if self.mirror:
            copy = Path(self.mirror, name)
            return sha256(copy) if copy.is_file() else None
        return "" if listed and listed.url else None

    def names(self, *kinds: str) -> list[str]:
        """Return the names of the models of these kinds, in the order of models.yaml."""
        return [name for name, entry in self.registry.items() if entry.kind in kinds]

    def constraint(self, *kinds: str) -> str:
        """Return a wildcard constraint that matches the names of the models of these kinds."""
        return alternatives(self.names(*kinds))

    def entry(self, model: str) -> AnyEntry:
        """Return the entry of a model."""
        return self.registry[model]

    def entry_file(self, model: str) -> str:
        """Return the path of the file that contains the entry of a model."""
        own = self.here("models.local.yaml")
        names = read_yaml(own) or {} if Path(own).exists() else {}
        return own if model in names else self.here("models.yaml")

    def check_folder(self, model: str) -> None:
        """Raise a `UserError` if local files of a model are missing or its checkpoint is ambiguous.

        The local files are the weights and the adapter. A checkpoint on the Hub without a pinned
        revision is ambiguous if a local folder has the same name and contains a model.
        """
        entry = self.entry(model)
        if not isinstance(entry, CheckpointEntry):
            return
        where = f"{self.entry_file(model)}: {model}"
        if entry.source == "folder" and entry.path:
            _check_weights(str(entry.path), where, is_file=entry.is_gguf)
        if isinstance(entry, EmbedderEntry) and entry.adapter:
            _check_exists(entry.adapter, where, _correct("adapter"))
            check_lfs_pointers(entry.adapter)
            check_adapter(entry)
        if entry.source == "folder" and isinstance(entry, EmbedderEntry):
            checkpoint_settings(entry, str(entry.path), where)
        if entry.source == "folder" and isinstance(entry, RerankerEntry | LateInteractionEntry):
            check_ranker_files(entry, str(entry.path), where)
        is_here = Path(entry.checkpoint, "config.json").exists()
        if entry.source == "hub" and is_here and not entry.revision:
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
        """Return why a language model cannot provide answers; empty if it can.

        Args:
            model: Model name.
            recordings: Recordings file of one run of the model.
        """
        path = Path(recordings)
        if path.exists() and path.stat().st_size:
            return ""
        obstacle = next(obstacles(self.language_model(model), self.llm), None)
        return f"nothing is recorded, and {obstacle.what}" if obstacle else ""

    def execution_spec(self, model: str) -> str:
        """Return the fields of a model's entry that affect its predictions, as JSON."""
        return self.entry(model).execution_spec()

    def unpacked_weights(self, model: str) -> str | None:
        """Return the path of the list of the digests of a model's unpacked weights.

        The result is None unless the weights are in a GGUF file or a pickle.
        """
        entry = self.entry(model)
        unpacked = isinstance(entry, CheckpointEntry) and entry.must_be_unpacked
        return f"results/raw/weights/{model}{LIST_ENDING}" if unpacked else None

    def weights_files(self, model: str) -> list[str]:
        """Return the files of a model's local checkpoint and adapter; jobs rerun if one changes."""
        entry = self.entry(model)
        places = []
        if isinstance(entry, CheckpointEntry) and entry.source == "folder":
            places.append(Path(str(vars(entry)["path"])))
        if isinstance(entry, EmbedderEntry) and entry.adapter:
            places.append(Path(entry.adapter))
        found = [[place] if place.is_file() else files_below(place) for place in places]
        return sorted({str(file) for files in found for file in files})

    def describe_models(self, names: Iterable[str]) -> tuple[ModelDescription, ...]:
        """Return descriptions of models for tables."""
        fields = set(ModelDescription.model_fields) - {"name", "is_configured", "not_run"}
        described = []
        for name in names:
            entry = self.registry[name]
            of_model = entry.model_dump(include=fields)
            if isinstance(entry, RerankerEntry):
                of_model["label"] += f" (over {self.registry[entry.first_stage].label})"
            described.append(ModelDescription(name=name, **of_model))
        return tuple(described)


def _check_weights(path: str, where: str, *, is_file: bool) -> None:
    """Raise a `UserError` unless a path is a folder with a model, or a file if `is_file`."""
    hint = _correct("path")
    _check_exists(path, where, hint, is_file=is_file)
    if not is_file and not any(Path(path, file).exists() for file in _FILES_OF_A_MODEL):
        problem = f"no model in {path}, because it has no config.json"
        raise UserError(problem, where=where, hint=hint)
    check_lfs_pointers(path)


def _check_exists(path: str, where: str, hint: str, *, is_file: bool = False) -> None:
    exists = Path(path).is_file() if is_file else Path(path).is_dir()
    if not exists:
        kind = "file" if is_file else "folder"
        raise UserError(f"no such {kind}: {path}", where=where, hint=hint)


def _correct(field: str) -> str:
    return f"correct {field} (relative to {Path.cwd()})"
