"""Sidecars, and cached digests of large files."""

import os
from pathlib import Path

import numpy as np
import pytest

from pieline.core import files
from pieline.core.errors import UserError
from pieline.core.files import cached_sha256, sha256
from pieline.core.sidecars import (
    Digests,
    check_made,
    check_results,
    check_settings,
    load_sidecar,
    packages_behind,
    settings_digest,
    sidecar_of,
    write_digest_list,
    write_sidecar,
)

SOURCE, OUTPUT, WEIGHTS = "source.txt", "results/output.jsonl", "results/weights"


@pytest.fixture(autouse=True)
def written_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a source, a folder and a file made from it, with their sidecars."""
    monkeypatch.chdir(tmp_path)
    for path in (SOURCE, OUTPUT, f"{WEIGHTS}/part/model"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(path)
    write_sidecar(WEIGHTS, made_from={})
    write_sidecar(OUTPUT, made_from=Digests().of(SOURCE, WEIGHTS))


def test_unchanged_files_pass() -> None:
    # Snakemake adds this file when the job has ended.
    Path(WEIGHTS, ".snakemake_timestamp").touch()
    check_made([OUTPUT, WEIGHTS, "results/archives/a.tar.zst", "results.csv"])
    check_results()
    assert load_sidecar(OUTPUT).made_from.keys() == {SOURCE, f"{WEIGHTS}/part/model"}
    # Temporary files may have been deleted.
    Path(SOURCE).unlink()
    check_made([OUTPUT])


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        (OUTPUT, "edited", "output.jsonl: was changed after it was written"),
        (OUTPUT, None, "output.jsonl: is missing"),
        (SOURCE, "edited", "source.txt: differs from the file that .*was made from"),
        (f"{WEIGHTS}/part/model", "edited", "model: differs from the file that .*was made from"),
    ],
)
def test_changed_files_are_reported_with_the_command(
    path: str, content: str | None, problem: str
) -> None:
    if content is None:
        Path(path).unlink()
    else:
        Path(path).write_text(content)
        os.utime(path, (0, 0))
    with pytest.raises(UserError, match=rf"{problem}; run the same .*--forcerun {OUTPUT}"):
        check_made([OUTPUT])


def test_a_copy_with_its_sidecar_is_rejected() -> None:
    for path in (OUTPUT, sidecar_of(OUTPUT)):
        Path(path.replace("output", "copy")).write_bytes(Path(path).read_bytes())
    problem = r"copy.jsonl.evidence.json: is a copy of that of results/output.jsonl"
    with pytest.raises(UserError, match=problem):
        check_made(["results/copy.jsonl"])
    with pytest.raises(UserError, match=problem):
        check_results()


def test_all_changed_results_are_named_before_a_run() -> None:
    Path(OUTPUT).write_text("edited")
    Path(WEIGHTS, "part", "model").write_text("edited")
    Path(SOURCE).write_text("the run makes the output again")
    with pytest.raises(UserError, match=rf"as 1 other file; .* {OUTPUT} {WEIGHTS}$"):
        check_results()
    # The run makes a deleted file again.
    Path(OUTPUT).unlink()
    Path(WEIGHTS, "part", "model").unlink()
    Path(WEIGHTS, "part").rmdir()
    Path(WEIGHTS).rmdir()
    check_results()


def test_files_made_with_other_settings_are_rejected() -> None:
    path = "results/predictions/answers.jsonl"
    Path(path).parent.mkdir()
    Path(path).write_text("answers")
    settings = {"task": '{"temperature": 0.3}', "answers": "token"}
    write_sidecar(path, made_from={}, settings=settings_digest(settings.items()))
    settings["answers"] = "only makes the job stale"
    check_settings({path: settings_digest(settings.items()), OUTPUT: "file without settings"})
    settings["task"] = '{"temperature": 0.7}'
    with pytest.raises(UserError, match=r"answers.jsonl: was made with settings that differ from"):
        check_settings({path: settings_digest(settings.items())})


def test_packages_of_all_inputs_are_collected() -> None:
    write_sidecar(WEIGHTS, made_from={}, outputs=[WEIGHTS, "results/log"])
    Path("results/log").touch()
    write_sidecar("results/log", made_from={}, outputs=[WEIGHTS, "results/log"])
    packages = packages_behind([OUTPUT])
    # The digests of files in a folder do not lead to its job; the list of digests does.
    assert packages.keys() == {OUTPUT}
    write_digest_list(WEIGHTS, f"{WEIGHTS}.sha256")
    write_sidecar(f"{WEIGHTS}.sha256", made_from={}, outputs=[WEIGHTS, "results/log"])
    write_sidecar(OUTPUT, made_from=Digests().of(f"{WEIGHTS}.sha256"))
    packages = packages_behind([OUTPUT])
    files = {OUTPUT, f"{WEIGHTS}/part/model", f"{WEIGHTS}.sha256", "results/log"}
    assert packages.keys() == files
    assert {versions["numpy"] for versions in packages.values()} == {np.__version__}


def test_a_large_file_is_hashed_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, memory, read = tmp_path / "weights", tmp_path / "memory.json", []
    path.write_bytes(b"first")

    def digest(place: Path) -> str:
        read.append(place)
        return sha256(place)

    monkeypatch.setattr(files, "_LARGE", 4)
    monkeypatch.setattr(files, "sha256", digest)
    first = cached_sha256(path, memory)
    assert cached_sha256(path, memory) == first == sha256(path)
    assert read == [path]
    # Different content with the same length and time stamp.
    state = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert cached_sha256(path, memory) == sha256(path) != first
    assert read == [path, path]
