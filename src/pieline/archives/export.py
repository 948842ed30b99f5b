"""Pack finished runs into archives, with sidecars that state how they were made."""

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from csv import DictReader
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
    member_sidecar,
)
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError, pluralize
from pieline.core.files import canonical_json, indented_json, read_json, sha256_of
from pieline.core.packing import pack
from pieline.core.records import validated
from pieline.core.sidecars import (
    Digests,
    Sidecar,
    check_made,
    is_sidecar,
    load_sidecar,
    move_old_sidecars,
    sidecar_of,
)
from pieline.llm.recordings import raw_lines

_NOT_COMPARED = ("data/upstream.yaml", "results/")
"""Path prefixes of inputs that do not affect predictions (raw files are an exception)."""


class Chains:
    """Sidecars below results/, used to trace files back to inputs that no job made."""

    def __init__(self) -> None:
        self._by_file: dict[str, Sidecar | None] = {}

    def sidecar(self, path: str) -> Sidecar | None:
        """Return the sidecar of a file; None for raw files and for files that no job made."""
        if path not in self._by_file:
            traced = not path.startswith("results/raw/") and Path(sidecar_of(path)).exists()
            self._by_file[path] = load_sidecar(path) if traced else None
        return self._by_file[path]

    def behind(self, path: str) -> tuple[list[Sidecar], dict[str, str]]:
        """Return all sidecars behind a file (its own first), and the digests of original inputs.

        Original inputs are raw files and files that no job made.
        """
        sidecars: dict[str, Sidecar] = {}
        roots: dict[str, str] = {}
        queue = [path]
        while queue:
            sidecar = self.sidecar(queue.pop(0))
            if sidecar and sidecar.path not in sidecars:
                sidecars[sidecar.path] = sidecar
                queue += sidecar.made_from
                roots |= {
                    name: digest
                    for name, digest in sidecar.made_from.items()
                    if not self.sidecar(name)
                }
        return [*sidecars.values()], roots


def export_runs(
    archive: str | Path,
    *,
    is_selected: Callable[[str], bool] = lambda _: True,
    code: str | None = None,
    hardware: str = "",
) -> Manifest:
    """Pack the finished runs of the working directory, except external predictions.

    On a given machine, identical runs produce byte-identical archives.

    Args:
        archive: Path of the archive to write.
        is_selected: Function that returns whether to include the run of a metric file.
        code: Commit of the project; None if unknown.
        hardware: Description of the hardware that computed the runs (default: this machine).

    Returns:
        The manifest of the archive.

    Raises:
        UserError: No finished run is selected, a file does not match its sidecar, an input has no
            sidecar, or recorded answers are missing.
    """
    move_old_sidecars()
    chains = Chains()
    members: dict[str, bytes] = {}
    metrics = [path for path in _metric_files() if _predictions(path, chains) and is_selected(path)]
    runs = [run for path in metrics if (run := _run(path, chains, members))]
    if not runs:
        raise UserError(
            "no finished runs to export",
            where=Path("results/metrics").absolute(),
            hint="run snakemake in this folder first, or select other runs",
        )
    datasets = dict(_datasets(runs, chains, members))
    manifest = Manifest(
        code=code,
        machine=hardware or f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        runs=tuple(runs),
        datasets=datasets,
        files={name: sha256_of(members[name]) for name in sorted(members)},
    )
    manifest = manifest.model_copy(update={"digest": manifest.computed_digest()})
    first = (MANIFEST, f"{canonical_json(manifest.model_dump(mode='json'))}\n".encode())
    pack(archive, [first, *sorted(members.items())])
    return manifest


def _predictions(metrics: str, chains: Chains) -> str:
    """Return the path of the predictions behind a metric file; empty if there are none."""
    sidecar = chains.sidecar(metrics)
    stem = metrics.replace(METRICS, PREDICTIONS, 1).removesuffix(".json")
    files = sidecar.made_from if sidecar else ()
    return next((path for path in files if path.startswith(f"{stem}.")), "")


def _metric_files() -> list[str]:
    files = sorted(map(str, Path(METRICS).rglob("*.json")))
    return [path for path in files if not is_sidecar(path)]


def _run(metrics: str, chains: Chains, members: dict[str, bytes]) -> ArchivedRun | None:
    """Return the run of a metric file and add its files to `members`.

    For external predictions and for metrics without a sidecar, return None and add nothing.
    """
    sidecar, predictions = chains.sidecar(metrics), _predictions(metrics, chains)
    # External predictions have no weights.
    conditions = validated(
        Conditions, read_json(metrics)["conditions"], where=metrics, hint="make it again"
    )
    if not sidecar or not conditions.weights:
        return None
    known = Digests()
    check_made([metrics], known)
    others = (path for path in sidecar.made_from if path.startswith(PREDICTIONS))
    files = list(dict.fromkeys([predictions, *others]))
    for path in files:
        check_made([path], known)
        members |= {path: Path(path).read_bytes(), member_sidecar(path): _sidecar_member(path)}
    files += map(member_sidecar, files.copy())
    behind, roots = chains.behind(predictions)
    if unknown := [path for path in sorted(roots) if _is_made(path)]:
        raise UserError(
            f"no sidecar states how its input {unknown[0]} was made",
            where=predictions,
            hint="export it where it was computed, or select other runs (--model)",
        )
    training = [
        log
        for each in behind
        if each.path.startswith("results/training/")
        for log in each.outputs
        if log.endswith("/training.json")
    ]
    members |= {path: Path(path).read_bytes() for path in training}
    return ArchivedRun(
        metrics=metrics,
        conditions=conditions,
        raw=compared(roots),
        files=tuple(files),
        recordings=_add_answers(predictions, behind[0], members),
        training=tuple(training),
        packages={name: version for each in behind for name, version in each.packages.items()},
        seconds=_seconds(metrics),
    )


def _is_made(path: str) -> bool:
    """Return whether a file is made by a job and is not a raw file."""
    return path.startswith("results/") and not path.startswith("results/raw/")


def _sidecar_member(path: str) -> bytes:
    """Return the sidecar of a file in the format of archives, which states its own path."""
    sidecar = load_sidecar(path).model_copy(update={"path": member_sidecar(path)})
    return indented_json(
        sidecar.model_dump(mode="json", exclude={"outputs", "settings", "source"})
    ).encode()


def _add_answers(predictions: str, sidecar: Sidecar, members: dict[str, bytes]) -> str:
    """Add the recorded answers behind predictions as a member, and return its name.

    If there are no recorded answers, return an empty string.
    """
    if not sidecar.answers:
        return ""
    lines = {key: own[-1] for path in sidecar.recordings for key, own in raw_lines(path).items()}
    if missing := sidecar.answers.keys() - lines.keys():
        raise UserError(
            f"{pluralize(len(missing), 'recorded answer')} missing",
            where=predictions,
            hint="restore the recordings, or make the predictions again",
        )
    name = f"recordings/{predictions.removeprefix(PREDICTIONS)}"
    members[name] = b"".join(lines[key] for key in sorted(sidecar.answers))
    return name


def _datasets(
    runs: Iterable[ArchivedRun], chains: Chains, members: dict[str, bytes]
) -> Iterator[tuple[str, ArchivedDataset]]:
    """Yield the folder and manifest entry of each ranked dataset.

    The files that scoring needs, which contain no texts, are added to `members`.
    """
    folders = {
        str(Path(path).parent)
        for run in runs
        if (sidecar := chains.sidecar(run.metrics))
        for path in sidecar.made_from
        if path.startswith(DATASETS) and path.endswith("/meanings.jsonl")
    }
    for folder in sorted(folders):
        files = (f"{folder}/meanings.jsonl", f"{folder}/manifest.json")
        members |= {path: Path(path).read_bytes() for path in files}
        _, roots = chains.behind(files[0])
        yield folder, ArchivedDataset(raw=compared(roots), files=files)


def compared(roots: Mapping[str, str]) -> dict[str, str]:
    """Select the digests of inputs that affect predictions, by path below the project.

    Of the files below results/, only raw files other than weights are included.
    """
    by_path = {below_project(path): digest for path, digest in roots.items()}
    return {
        path: by_path[path]
        for path in sorted(by_path)
        if not path.startswith(_NOT_COMPARED)
        or (path.startswith("results/raw/") and not path.startswith("results/raw/weights/"))
    }


def _seconds(metrics: str) -> dict[str, float]:
    """Return the run times in seconds that Snakemake measured for a run's jobs, by benchmark file.

    The jobs are those whose benchmark file has the model and seed of the run in its path.
    """
    *_, seed = Path(metrics).parts
    model = Path(metrics).parts[-3]
    files = (
        path
        for path in Path("logs/benchmarks").rglob(f"{Path(seed).stem}.tsv")
        if model in path.parts
    )
    seconds = {}
    for path in sorted(files):
        with path.open(encoding="utf-8") as stream:
            seconds[str(path)] = sum(float(row["s"]) for row in DictReader(stream, delimiter="\t"))
    return seconds
