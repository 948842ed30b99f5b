"""Measure time and memory of common tasks, and compare with the baseline in project.json.

    python benchmarks/project.py [NAME ...] [--keep]

prints, for each task, seconds, CPU seconds and peak memory (of the largest process and of all
processes, in 10**6 bytes), with their ratios to the baseline; `--keep` saves the results as the new
baseline. Run it on a quiet machine, in the project's environment. `default_run`, `no_op` and `plan`
use that environment on a copy of the project; `environment` creates its own. `table` and `items`
each measure one process on synthetic data: ten times the papers' sentences, queries and
documents.
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import psutil

from pieline.core.conditions import Evidence, RunIdentity

# Imports are kept light, because a forked process inherits the memory of its parent.

ROOT = Path(__file__).parents[1]
BASELINE = Path(__file__).with_suffix(".json")
MODELS = [f"model-{number:02}" for number in range(31)]
SEEDS = [42, 43, 44]
_SET_CHILD_SUBREAPER = 36
"""Option of Linux's prctl."""


def make_jam() -> None:
    """Save metric files of 93 runs of ID10M-JAM in English, with ten times the sentences."""
    from pieline.core.files import digests, read_json, write_json
    from pieline.core.records import save_jsonl
    from pieline.studies.jam.metrics.scores import jam_metrics
    from pieline.studies.jam.predictions.records import IdiomPrediction
    from pieline.studies.jam.records import JamSentence

    tokens = ("They ", "broke ", "the ", "ice ", "at ", "last", ".")
    sentences = [
        JamSentence(
            id=f"o{original}-v{number}" if number else f"o{original}",
            original_id=f"o{original}",
            variant_number=number,
            language="english",
            sentence="".join(tokens),
            tokens=tokens,
            tags=("O", "B-IDIOM", "I-IDIOM", "I-IDIOM", "O", "O", "O"),
            pies=("broke the ice",),
            true_idioms=("broke the ice",),
            is_figurative=True,
        )
        for original in range(1780)
        for number in range(4)
    ]
    answers = [
        IdiomPrediction(id=item.id, outcome="ok", idioms=("broke the ice",)) for item in sentences
    ]
    dataset, predictions = "results/datasets/english.jsonl", "results/predictions/seed.jsonl"
    save_jsonl(dataset, sentences)
    save_jsonl(predictions, answers)
    metrics = jam_metrics(
        sentences,
        {answer.id: answer for answer in answers},
        RunIdentity(model=MODELS[0], setting="zero_shot", seed=SEEDS[0]),
        Evidence(is_released=True, computed_from=digests([predictions, dataset])),
        scoring="paper",
        resamples=1,
    )
    first = jam_files()[0]
    write_json(first, metrics.model_dump(mode="json"))
    for path in jam_files()[1:]:
        model, seed = Path(path).stem.rsplit("-", 1)
        write_json(path, read_json(first) | {"model": model, "seed": int(seed)})


def jam_files() -> list[str]:
    """Return the paths of the metric files that `make_jam` saves."""
    return [f"results/metrics/jam/{model}-{seed}.json" for model in MODELS for seed in SEEDS]


def jam_inputs():  # type: ignore[no-untyped-def]
    """Return the inputs of the tables and items of the runs that `make_jam` saves."""
    from pieline.reporting.inputs import DisplayInputs, PlannedRun
    from pieline.reporting.models import ModelDescription
    from pieline.studies.jam.tables.results import DRIFT_TABLE

    names = ("tables.yaml", "schema.yaml", *(f"{name}.csv" for name in DRIFT_TABLE.printed))
    files = {Path(name).stem: str(ROOT / "published" / name) for name in names}
    where = {"setting": "zero_shot", "language": "english"}
    return DisplayInputs(
        study="jam",
        display=DRIFT_TABLE.name,
        metrics=tuple(jam_files()),
        runs=tuple(
            PlannedRun(keys={**where, "model": model, "seed": str(seed)}, metrics=path)
            for (model, seed), path in zip(product(MODELS, SEEDS), jam_files(), strict=True)
        ),
        models=tuple(ModelDescription(name=name, kind="llm", label=name) for name in MODELS),
        files=files,
    )


def table() -> None:
    """Write Table 3 of ID10M-JAM from all runs."""
    from pieline.reporting.tables import make_table, write_table
    from pieline.studies.jam.tables.results import DRIFT_TABLE as TABLE

    content, numbers = make_table(TABLE.make, TABLE.numbers, jam_inputs())
    templates = ROOT / "templates"
    write_table(TABLE.name, content, numbers, templates=templates, **TABLE.files)


def items() -> None:
    """Write the items of ID10M-JAM from all runs."""
    from pieline.reporting.items import write_items
    from pieline.studies.jam.items import JamItem

    write_items(JamItem, JamItem.of(jam_inputs()), parquet="jam.parquet", csv="jam.csv.gz")


PROCESSES: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
    "table": (make_jam, table),
    "items": (make_jam, items),
}
"""For each task, the function that creates its data and the function that is measured."""

# The environment is up to date regardless of the modification times in the copy.
MAKE = ["make", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.ready"]
SNAKEMAKE = [f"{sys.prefix}/bin/snakemake"]
COMMANDS: dict[str, tuple[list[list[str]], list[str]]] = {
    "environment": ([], ["make", "environment"]),
    "default_run": ([], [*MAKE, "reproduce"]),
    "no_op": ([[*MAKE, "reproduce"]], [*SNAKEMAKE, "--cores", "all", "all"]),
    "plan": (
        [],
        [*SNAKEMAKE, "-n", "--quiet", "all", "--configfile", "config/paper.yaml", "--", "all"],
    ),
}
"""For each task, the preparatory commands and the measured one, run in a copy of the project."""


class MemoryMonitor(threading.Thread):
    """Thread that samples the memory of all descendants of this process twice per second.

    Attributes:
        peak: Maximum of the descendants' total memory, in bytes.
        ended: Event that ends the thread.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Sample until `ended` is set."""
        while not self.ended.wait(0.5):
            now = 0
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    # Shared pages count once.
                    now += process.memory_full_info().pss
            self.peak = max(self.peak, now)


def measured(command: list[str], folder: Path, *, code: Path) -> dict[str, float]:
    """Run a command; return its seconds, CPU seconds, and peak memory in MB (10**6 bytes).

    The peak memory is that of the largest process and that of all processes together. If the
    command fails, the benchmark exits with its output.
    """
    # Orphaned processes become children of this one, so that their time counts.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    together = MemoryMonitor()
    together.start()
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(code / "src")}
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
    seconds, usages = time.perf_counter() - began, [usage]
    with suppress(ChildProcessError):
        while True:
            usages.append(os.wait4(-1, 0)[2])
    together.ended.set()
    if status:
        sys.exit(f"{' '.join(command)} failed:\n{(folder / 'output.txt').read_text()[-2000:]}")
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(each.ru_utime + each.ru_stime for each in usages), 1),
        "peak_mb": round(max(each.ru_maxrss for each in usages) * 1024 / 1e6),
        "together_mb": round(together.peak / 1e6),
    }


def measure(name: str, folder: Path) -> dict[str, float]:
    """Measure one task in an empty folder."""
    if name in PROCESSES:
        here = [sys.executable, __file__, "--inside"]
        measured([*here, "make", name], folder, code=ROOT)
        return measured([*here, "measure", name], folder, code=ROOT)
    copied = f"git -C {ROOT} archive HEAD | tar x -C {folder}"
    subprocess.run(["bash", "-o", "pipefail", "-c", copied], check=True)
    before, command = COMMANDS[name]
    for each in before:
        measured(each, folder, code=folder)
    return measured(command, folder, code=folder)


def main() -> None:
    """Measure, and print the results with ratios to the baseline."""
    names = [*COMMANDS, *PROCESSES]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--keep", action="store_true", help="save as the new baseline")
    parser.add_argument("--inside", choices=["make", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"unknown name: {', '.join(sorted(unknown))}")
    if options.inside:
        gc.set_threshold(100_000)  # as in jobs
        PROCESSES[options.names[0]][options.inside == "measure"]()
        return
    baseline = json.loads(BASELINE.read_text())
    for name in options.names or names:
        with tempfile.TemporaryDirectory() as folder:
            results = measure(name, Path(folder))
        parts = []
        for what, value in results.items():
            before = baseline.get(name, {}).get(what)
            parts.append(f"{what} {value:g}" + (f" = {value / before:.2f} x" if before else ""))
        print(f"{name:12} {', '.join(parts)}", flush=True)
        if options.keep:
            baseline[name] = results
            BASELINE.write_text(json.dumps(baseline, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
