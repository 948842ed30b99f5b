"""Edited, copied and leftover files are detected by their sidecars."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import run_snakemake, succeed
from workflow.test_caching import CHAT, plan

from pieline.core.sidecars import sidecar_of

RUN = "results/predictions/idiolink/test/bm25/sentence/seed-0.run.gz"
METRICS = "results/metrics/idiolink/test/bm25/sentence/seed-0.json"
DOCUMENTS = "results/datasets/idiolink/test/documents.jsonl"
ANSWERS = f"recordings/idiots/{CHAT}/zero_shot-seed-0.jsonl"
OLD = (978307200, 978307200)


def error_of_run(folder: Path, *arguments: str) -> str:
    """Run, expect a failure, and return its only error line."""
    result = run_snakemake(folder, "--cores", "1", *arguments)
    assert result.returncode != 0
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    return line


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change a file and give it an old timestamp."""
    text = path.read_text(encoding="utf-8")
    assert change(text) != text
    path.write_text(change(text), encoding="utf-8")
    os.utime(path, OLD)


def test_predictions_on_another_dataset_are_rejected(finished: Path) -> None:
    """Remake the dataset, and copy the predictions from an earlier run."""
    kept = {path: (finished / path).read_bytes() for path in (RUN, sidecar_of(RUN))}
    edit(
        finished / "data/sample/idiolink/test/indexes.json",
        lambda text: text.replace("Voters", "People"),
    )
    succeed(finished, "--cores", "2", RUN)
    for path, content in kept.items():
        (finished / path).write_bytes(content)
    line = error_of_run(finished, "--forcerun", METRICS, "--", METRICS)
    assert f"{RUN}: was made from another {DOCUMENTS.partition('/test')[0]}" in line


RAW = "results/raw/idiolink/test/queries.json"
WEIGHTS = "results/training/idiolink/sbert/sentence/paper/seed-{}/weights"


def test_edited_files_are_reported_before_a_run(finished: Path) -> None:
    """No job reads some of these files again."""
    edited = {
        "results/datasets/idiolink/test/qrels.txt": "",
        "results/items/idiolink.csv.gz": "",
        RAW: "",
        "results/raw/weights/smollm2-135m": "/config.json",
        WEIGHTS.format(42): "/model.safetensors",
    }
    for path, file in edited.items():
        place = finished / f"{path}{file}"
        content = place.read_bytes()
        place.unlink()  # may be linked with that of other tests
        place.write_bytes(content + b"\n")
        os.utime(place, OLD)
    line = error_of_run(finished, "-n")
    first = "error: results/datasets/idiolink/test/qrels.txt: was changed after it was written"
    assert line.startswith(f"{first}, as 4 other files; run the same snakemake command")
    assert line.endswith(" ".join(edited))
    succeed(finished, "-n", "--forcerun", *edited, "--", "all")


def test_weights_of_another_seed_are_reported(finished: Path) -> None:
    weights, others = WEIGHTS.format(42), WEIGHTS.format(43)
    pairs = [(weights, others), (f"{weights}.sha256", f"{others}.sha256")]
    for pair in pairs + [(sidecar_of(ours), sidecar_of(theirs)) for ours, theirs in pairs]:
        ours, theirs = (finished / path for path in pair)
        if ours.is_dir():
            shutil.rmtree(theirs)
            shutil.copytree(ours, theirs)
        else:
            shutil.copy(ours, theirs)
    line = error_of_run(finished, "-n")
    assert f"is a copy of that of {weights}, so {others} may be" in line


def test_raw_files_of_other_data_are_rejected(finished: Path) -> None:
    """Copy a raw file with its sidecar from a run on other data, before the run starts."""
    other = finished / "data/sample/idiolink/test/queries.json"
    config = finished / "own.yaml"
    shutil.copytree(finished / "data/sample/idiolink", finished / "corpus/idiolink")
    own = finished / "corpus/idiolink/test/queries.json"
    text = own.read_text(encoding="utf-8")
    own.write_text(text.replace("the", "a", 1), encoding="utf-8")
    settings = {"data": "own", "own_data": "corpus", "studies": ["idiolink"]}
    config.write_text(json.dumps(settings), encoding="utf-8")
    kept = {path: (finished / path).read_bytes() for path in (RAW, sidecar_of(RAW))}
    mine = ("--configfile", "own.yaml", "--", "results/datasets/idiolink/test/documents.jsonl")
    succeed(finished, "--cores", "2", *mine)
    assert (finished / RAW).read_bytes() == own.read_bytes() != other.read_bytes()
    for path, content in kept.items():
        (finished / path).write_bytes(content)
    expected = f"{RAW}: is not from the configured data, corpus/idiolink/test/queries.json, but"
    assert expected in error_of_run(finished, *mine)
    shutil.rmtree(finished / ".snakemake")
    assert expected in error_of_run(finished, "-n", *mine)


def test_a_copied_run_plans_nothing(finished: Path, tmp_path: Path) -> None:
    """`cp -r` changes all time stamps, so a folder may become newer than what was made from it."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy, copy_function=shutil.copyfile, symlinks=True)
    begin = time.time() - 10_000
    inputs_last = sorted(
        (path for path in copy.rglob("*") if path.is_file()),
        key=lambda path: ("weights" in path.parts, path.suffix in (".sha256", ".safetensors")),
    )
    for number, path in enumerate(inputs_last):
        os.utime(path, (begin + number, begin + number))
    assert plan(copy) == []


def test_kept_results_are_compared_with_the_settings_of_every_run(finished: Path) -> None:
    """Snakemake trusts time stamps after --touch, without its metadata, or if it is asked to."""
    (finished / "other.yaml").write_text("idiolink: {top_k: 7}\n", encoding="utf-8")
    other = ("--configfile", "other.yaml", "--", "paper_tables/idiolink_zero_shot.tex")
    problem = "was made with settings that differ from the configuration (top_k), as 3 other files"
    touched = error_of_run(finished, "--touch", *other)
    assert problem in touched
    assert touched.endswith("leave out --touch")
    again = "run the same snakemake command with --forcerun results/predictions/idiolink/"
    for option in ("--rerun-triggers=mtime", "--cores=1"):
        line = error_of_run(finished, "-n", option, *other)
        assert problem in line, line
        assert again in line
        shutil.rmtree(finished / ".snakemake")
    # A run that makes these files again may start.
    files = line.split("--forcerun ")[1].split()
    succeed(finished, "-n", "--forcerun", *files, *other)
    shutil.rmtree(finished / ".snakemake")
    succeed(finished, "-n", "all")


def test_results_touched_after_a_change_of_data_are_reported(finished: Path) -> None:
    edit(finished / "data/sample/idiolink/test/indexes.json", lambda text: text.replace("a", "b"))
    line = error_of_run(finished, "--touch", "--", METRICS)
    assert "is not from the configured data" in line


def test_a_user_file_with_an_old_timestamp_is_detected(finished: Path) -> None:
    """`mv`, `cp -p` and unpacking keep old timestamps."""
    labels = finished / "data/sample/id10m/humans/english_simulated.csv"
    edit(labels, lambda text: text.replace("literal", "figurative", 1))
    assert "jam_humans" in {job.rule for job in plan(finished)}


def test_an_edited_answer_is_read_again_once(finished: Path) -> None:
    def other_answer(text: str) -> str:
        lines = text.splitlines()
        value = json.loads(lines[0])
        value["answer"]["text"] = "Yes: another answer."
        return "\n".join([json.dumps(value, sort_keys=True), *lines[1:], ""])

    predictions = f"results/predictions/idiots/{CHAT}/zero_shot/seed-0.jsonl"
    edit(finished / ANSWERS, other_answer)
    assert [job.rule for job in plan(finished, "--", predictions)] == ["idiots_detect"]
    again = succeed(finished, "--cores", "1", "--", predictions)
    assert "idiots_detect: '' → edited answers (" in again.stderr
    assert plan(finished, "--", predictions) == []
    # A new timestamp alone makes nothing stale.
    path = finished / ANSWERS
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    assert plan(finished, "--", predictions) == []


def test_own_originals_do_not_use_variants_of_an_earlier_run(finished: Path) -> None:
    shutil.copytree(finished / "data/sample/id10m", finished / "corpus/id10m")
    config: dict[str, Any] = {"data": "own", "own_data": "corpus", "studies": ["jam"]}
    config["jam"] = {"models": [], "languages": ["english"], "variants": {"source": "none"}}
    (finished / "own.yaml").write_text(json.dumps(config), encoding="utf-8")
    own = ("--configfile", "own.yaml", "-n", "--")
    line = error_of_run(finished, *own, "results/datasets/jam/english.jsonl")
    assert "jam.variants.source: results/datasets/jam/english.jsonl needs variants" in line
    succeed(finished, "--cores", "1", *own, "all")


# In each case, one job changes an input of the next one. A failed job loses its outputs, so no
# later run reads them.
EDITED: list[dict[str, tuple[str, str, str]]] = [
    {
        "paper_tables/numbers.csv": (",no,", "export", "results/export.csv"),
    },
    {
        "results/datasets/idiolink/constructed/test/queries.json": (
            "the", "idiolink_checks", "results/metrics/idiolink/checks/constructed.json",
        ),
        METRICS: ("dataset_is_released", "table", "paper_tables/idiolink_bm25.tex"),
        "results/predictions/idiolink/val/bm25/sentence/tuning.json": ("k1", "bm25_search", RUN),
        "results/datasets/jam_tagging/english/train.tsv": (
            "B-IDIOM", "fine_tune_tagger",
            "results/training/jam/english/minilm-tagger/seed-5/training.json",
        ),
    },
    {
        "results/variants/idiolink/queries.texts.jsonl": (
            "the", "idiolink_construct", "results/datasets/idiolink/constructed/test/queries.json",
        ),
        f"results/predictions/jam/english/{CHAT}/zero_shot/seed-42.jsonl": (
            "truncated", "jam_metrics",
            f"results/metrics/jam/english/{CHAT}/zero_shot/seed-42.json",
        ),
        DOCUMENTS: ("literal", "idiolink_metrics", METRICS.replace("bm25", "sbert")),
        "results/datasets/idiolink/val/queries.jsonl": (
            "literal", "bm25_tune",
            "results/predictions/idiolink/val/bm25/sentence/tuning.json",
        ),
    },
]  # fmt: skip


def test_files_edited_between_two_jobs_are_rejected(finished: Path) -> None:
    for edited in EDITED:
        kept = {path: (finished / path).read_bytes() for path in edited}
        for path, (old, _, _) in edited.items():
            edit(finished / path, lambda text, old=old: text.replace(old, f"{old} ", 1))
        rules = {rule for _, rule, _ in edited.values()}
        targets = [target for _, _, target in edited.values()]
        only = ("--keep-going", "--allowed-rules", *rules, "--forcerun", *rules, "--", *targets)
        # Otherwise the run would not start.
        unchecked = "import pieline.patches as p; p.check_plans = lambda *arguments: None"
        result = run_snakemake(finished, "--cores", "2", *only, first=unchecked)
        assert result.returncode != 0
        lines = {line for line in result.stderr.splitlines() if line.startswith("error: ")}
        for path in edited:
            assert any(f"{path}: was changed after it was written" in line for line in lines), path
        assert len(lines) == len(edited)
        for path, content in kept.items():
            (finished / path).write_bytes(content)
            os.utime(finished / path, OLD)
