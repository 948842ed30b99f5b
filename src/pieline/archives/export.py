"""Pack finished runs into archives, with sidecars that state how the files were made."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pieline.archives.manifest import (
    DATASETS,
    MANIFEST,
    METRICS,
    PREDICTIONS,
    ArchivedDataset,
    ArchivedRun,
    Manifest,
    below_project,
    is_sidecar,
    manifest_digest,
    member_sidecar,
)
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError, pluralize
from pieline.core.files import canonical_json, indented_json, read_json, sha256_of
from pieline.core.packing import pack
from pieline.core.records import validated
from pieline.core.sidecars import (
    Sidecar,
    check_made,
    load_sidecar,
    move_old_sidecars,
    sidecar_of,
)
from pieline.llm.recordings import raw_lines


class SidecarGraph:
    """Sidecars below results/, which trace files back to original inputs.

    Original inputs are raw files, and files that no job made.
    """

    def __init__(self) -> None:
        self._by_file: dict[str, Sidecar | None] = {}

    def sidecar(self, path: str) -> Sidecar | None:
        """Return the sidecar of a file; None for original inputs."""
        if path not in self._by_file:
            is_original = path.startswith("results/raw/") or not Path(sidecar_of(path)).exists()
            self._by_file[path] = None if is_original else load_sidecar(path)
        return self._by_file[path]

    def sidecars_behind(self, path: str) -> list[Sidecar]:
        """Return the sidecars of a file (first) and of all files from which the file was made."""
        sidecars: dict[str, Sidecar] = {}
        unvisited = [path]
        while unvisited:
            sidecar = self.sidecar(unvisited.pop(0))
            if sidecar and sidecar.path not in sidecars:
                sidecars[sidecar.path] = sidecar
                unvisited += sidecar.made_from
        return list(sidecars.values())

    def original_inputs(self, sidecars: Iterable[Sidecar]) -> dict[str, str]:
        """Return the SHA-256 of each original input of the files with these sidecars, by path."""
        digests: dict[str, str] = {}
        for sidecar in sidecars:
            originals = [path for path in sidecar.made_from if not self.sidecar(path)]
            for path in originals:
                digests[path] = sidecar.made_from[path]
        return digests


def export_runs(
    archive: str | Path,
    *,
    is_selected: Callable[[str], bool] = lambda _: True,
    code: str | None = None,
    hardware: str = "",
) -> Manifest:
    """Pack the finished runs of the working directory, except external predictions.

    On the same machine, identical runs produce byte-identical archives.

    Args:
        archive: Path of the archive to write.
        is_selected: Function that returns, for a metric file, whether to include the run.
        code: Commit of the project; None if unknown.
        hardware: Description of the hardware that computed the runs (default: this machine).

    Returns:
        The manifest of the archive.

    Raises:
        UserError: No finished run is selected, a file does not match its sidecar, an input has no
            sidecar, or recorded answers are missing.
    """
    move_old_sidecars()
    graph = SidecarGraph()
    runs: list[ArchivedRun] = []
    for metrics in sorted(str(path) for path in Path(METRICS).rglob("*.json")):
        predictions = _predictions_behind(metrics, graph)
        if predictions and is_selected(metrics):
            conditions = _conditions_in(metrics)
            # Predictions that a user added have no weights; only runs of models are exported.
            if conditions.weights:
                runs.append(_archived_run(metrics, predictions, conditions, graph))
    if not runs:
        raise UserError(
            "no finished runs to export",
            where=Path(METRICS).absolute(),
            hint="run snakemake in this folder first, or select other runs",
        )
    datasets = _archived_datasets(runs, graph)
    members = _read_members(runs, datasets)
    manifest = Manifest(
        code=code,
        machine=hardware or f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        runs=tuple(runs),
        datasets=datasets,
        files={name: sha256_of(members[name]) for name in sorted(members)},
    )
    manifest_fields = manifest.model_dump(mode="json")
    manifest_fields["digest"] = manifest_digest(manifest_fields)
    manifest_member = (MANIFEST, f"{canonical_json(manifest_fields)}\n".encode())
    pack(archive, [manifest_member, *sorted(members.items())])
    return manifest


def _predictions_behind(metrics: str, graph: SidecarGraph) -> str:
    """Return the path of the predictions behind a metric file; empty if there are none."""
    sidecar = graph.sidecar(metrics)
    if sidecar is None:
        return ""
    path_without_extension = metrics.replace(METRICS, PREDICTIONS, 1).removesuffix(".json")
    for path in sidecar.made_from:
        if path.startswith(f"{path_without_extension}."):
            return path
    return ""


def _conditions_in(metrics: str) -> Conditions:
    """Return the conditions stated in a metric file."""
    conditions = read_json(metrics)["conditions"]
    return validated(Conditions, conditions, where=metrics, hint="make it again")


def _archived_run(
    metrics: str, predictions: str, conditions: Conditions, graph: SidecarGraph
) -> ArchivedRun:
    """Return the manifest entry of a run.

    Raises:
        UserError: A file does not match its sidecar, or an input has no sidecar.
    """
    made_from = load_sidecar(metrics).made_from
    all_predictions = [path for path in made_from if path.startswith(PREDICTIONS)]
    # The first of `ArchivedRun.files` must be `predictions`.
    prediction_files = list(dict.fromkeys([predictions, *all_predictions]))
    check_made([metrics, *prediction_files])
    sidecars = graph.sidecars_behind(predictions)
    original_inputs = graph.original_inputs(sidecars)
    for path in sorted(original_inputs):
        if path.startswith("results/") and not path.startswith("results/raw/"):
            raise UserError(
                f"no sidecar states how its input {path} was made",
                where=predictions,
                hint="export it where it was computed, or select other runs (--model)",
            )
    packages: dict[str, str] = {}
    training_logs: list[str] = []
    for sidecar in sidecars:
        packages.update(sidecar.packages)
        if sidecar.path.startswith("results/training/"):
            training_logs += [path for path in sidecar.outputs if path.endswith("/training.json")]
    recordings = ""
    if sidecars[0].answers:  # the sidecar of `predictions`
        recordings = f"recordings/{predictions.removeprefix(PREDICTIONS)}"
    return ArchivedRun(
        metrics=metrics,
        conditions=conditions,
        raw=digests_affecting_predictions(original_inputs),
        files=(*prediction_files, *(member_sidecar(path) for path in prediction_files)),
        recordings=recordings,
        training=tuple(training_logs),
        packages=packages,
    )


def _archived_datasets(
    runs: Iterable[ArchivedRun], graph: SidecarGraph
) -> dict[str, ArchivedDataset]:
    """Return the manifest entries of the datasets whose documents the runs rank, by folder."""
    folders: set[str] = set()
    for run in runs:
        for path in load_sidecar(run.metrics).made_from:
            if path.startswith(DATASETS) and path.endswith("/meanings.jsonl"):
                folders.add(str(Path(path).parent))
    datasets: dict[str, ArchivedDataset] = {}
    for folder in sorted(folders):
        # Scoring needs only these files, which contain no texts.
        labels, manifest = f"{folder}/meanings.jsonl", f"{folder}/manifest.json"
        original_inputs = graph.original_inputs(graph.sidecars_behind(labels))
        raw = digests_affecting_predictions(original_inputs)
        datasets[folder] = ArchivedDataset(raw=raw, files=(labels, manifest))
    return datasets


def _read_members(
    runs: Iterable[ArchivedRun], datasets: Mapping[str, ArchivedDataset]
) -> dict[str, bytes]:
    """Return the content of all members of an archive except the manifest, by name.

    Raises:
        UserError: Recorded answers are missing.
    """
    members: dict[str, bytes] = {}
    copied_files: list[str] = []
    for run in runs:
        prediction_files = [name for name in run.files if not is_sidecar(name)]
        copied_files += [*prediction_files, *run.training]
        for path in prediction_files:
            members[member_sidecar(path)] = _sidecar_content(path)
        if run.recordings:
            members[run.recordings] = _recorded_answers(run.predictions)
    for dataset in datasets.values():
        copied_files += dataset.files
    for path in copied_files:
        members[path] = Path(path).read_bytes()
    return members


def _sidecar_content(path: str) -> bytes:
    """Return the sidecar of a file as the content of an archive member.

    In an archive, the field `path` of a sidecar is the name of the sidecar itself.
    """
    sidecar = load_sidecar(path).model_copy(update={"path": member_sidecar(path)})
    return indented_json(
        sidecar.model_dump(mode="json", exclude={"outputs", "settings", "source"})
    ).encode()


def _recorded_answers(predictions: str) -> bytes:
    """Return the recorded answers behind predictions, as lines of a recordings file.

    Raises:
        UserError: Recorded answers are missing.
    """
    sidecar = load_sidecar(predictions)
    # The last line of a question contains the answer; earlier lines contain failures.
    last_line_of_key: dict[str, bytes] = {}
    for path in sidecar.recordings:
        for key, lines in raw_lines(path).items():
            last_line_of_key[key] = lines[-1]
    missing = sidecar.answers.keys() - last_line_of_key.keys()
    if missing:
        raise UserError(
            f"{pluralize(len(missing), 'recorded answer')} missing",
            where=predictions,
            hint="restore the recordings, or make the predictions again",
        )
    return b"".join(last_line_of_key[key] for key in sorted(sidecar.answers))


def digests_affecting_predictions(original_inputs: Mapping[str, str]) -> dict[str, str]:
    """Select the digests of original inputs that affect predictions.

    Args:
        original_inputs: SHA-256 of each input, by path.

    Returns:
        SHA-256 by path below the project.
    """
    digests = {below_project(path): digest for path, digest in original_inputs.items()}
    return {path: digests[path] for path in sorted(digests) if _affects_predictions(path)}


def _affects_predictions(path: str) -> bool:
    """Return whether an input affects predictions; weights do not count (see `Conditions`)."""
    if path.startswith("results/"):
        return path.startswith("results/raw/") and not path.startswith("results/raw/weights/")
    # The list of public files affects predictions only through the raw files.
    return path != "data/upstream.yaml"
