"""Pack finished runs into archives, with sidecars that state how they were made."""

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    """Sidecars below results/, which trace files back to inputs that no job made."""

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
            if sidecar is None or sidecar.path in sidecars:
                continue
            sidecars[sidecar.path] = sidecar
            queue += sidecar.made_from
            inputs = sidecar.made_from.items()
            roots |= {name: digest for name, digest in inputs if not self.sidecar(name)}
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
    graph = SidecarGraph()
    members: dict[str, bytes] = {}
    runs = []
    for metrics in sorted(map(str, Path(METRICS).rglob("*.json"))):
        if _predictions(metrics, graph) and is_selected(metrics):
            run = _run(metrics, graph, members)
            runs += [run] if run else []
    if not runs:
        raise UserError(
            "no finished runs to export",
            where=Path("results/metrics").absolute(),
            hint="run snakemake in this folder first, or select other runs",
        )
    datasets = dict(_datasets(runs, graph, members))
    manifest = Manifest(
        code=code,
        machine=hardware or f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        runs=tuple(runs),
        datasets=datasets,
        files={name: sha256_of(members[name]) for name in sorted(members)},
    )
    fields = manifest.model_dump(mode="json")
    fields["digest"] = manifest_digest(fields)
    first = (MANIFEST, f"{canonical_json(fields)}\n".encode())
    pack(archive, [first, *sorted(members.items())])
    return manifest


def _predictions(metrics: str, graph: SidecarGraph) -> str:
    """Return the path of the predictions behind a metric file; empty if there are none."""
    sidecar = graph.sidecar(metrics)
    stem = metrics.replace(METRICS, PREDICTIONS, 1).removesuffix(".json")
    files = sidecar.made_from if sidecar else ()
    return next((path for path in files if path.startswith(f"{stem}.")), "")


def _run(metrics: str, graph: SidecarGraph, members: dict[str, bytes]) -> ArchivedRun | None:
    """Return the run of a metric file and add its files to `members`.

    For external predictions, return None and add nothing.
    """
    conditions = validated(
        Conditions, read_json(metrics)["conditions"], where=metrics, hint="make it again"
    )
    # External predictions have no weights.
    if not conditions.weights:
        return None
    predictions = _predictions(metrics, graph)
    others = [path for path in load_sidecar(metrics).made_from if path.startswith(PREDICTIONS)]
    files = list(dict.fromkeys([predictions, *others]))
    check_made([metrics, *files])
    for path in files:
        members[path] = Path(path).read_bytes()
        members[member_sidecar(path)] = _sidecar_member(path)
    sidecars, roots = graph.behind(predictions)
    for path in sorted(roots):
        if path.startswith("results/") and not path.startswith("results/raw/"):
            raise UserError(
                f"no sidecar states how its input {path} was made",
                where=predictions,
                hint="export it where it was computed, or select other runs (--model)",
            )
    packages: dict[str, str] = {}
    training: list[str] = []
    for sidecar in sidecars:
        packages |= sidecar.packages
        if sidecar.path.startswith("results/training/"):
            training += [log for log in sidecar.outputs if log.endswith("/training.json")]
    members |= {path: Path(path).read_bytes() for path in training}
    return ArchivedRun(
        metrics=metrics,
        conditions=conditions,
        raw=compared(roots),
        files=(*files, *map(member_sidecar, files)),
        recordings=_add_answers(predictions, sidecars[0], members),
        training=tuple(training),
        packages=packages,
    )


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
    runs: Iterable[ArchivedRun], graph: SidecarGraph, members: dict[str, bytes]
) -> Iterator[tuple[str, ArchivedDataset]]:
    """Yield the folder and manifest entry of each ranked dataset.

    The files that scoring needs, which contain no texts, are added to `members`.
    """
    folders = set()
    for run in runs:
        for path in load_sidecar(run.metrics).made_from:
            if path.startswith(DATASETS) and path.endswith("/meanings.jsonl"):
                folders.add(str(Path(path).parent))
    for folder in sorted(folders):
        files = (f"{folder}/meanings.jsonl", f"{folder}/manifest.json")
        members |= {path: Path(path).read_bytes() for path in files}
        _, roots = graph.behind(files[0])
        yield folder, ArchivedDataset(raw=compared(roots), files=files)


def compared(roots: Mapping[str, str]) -> dict[str, str]:
    """Select the digests of inputs that affect predictions, by path below the project.

    Of the files below results/, only raw files other than weights are included.
    """
    by_path = {below_project(path): digest for path, digest in roots.items()}
    return {path: by_path[path] for path in sorted(by_path) if _affects_predictions(path)}


def _affects_predictions(path: str) -> bool:
    if path.startswith("results/"):
        return path.startswith("results/raw/") and not path.startswith("results/raw/weights/")
    return path != "data/upstream.yaml"
