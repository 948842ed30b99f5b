"""Sidecars, and cached digests of large files."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from pieline.core import files
from pieline.core.errors import UserError
from pieline.core.files import cached_sha256, sha256
from pieline.core.sidecars import (
    Digests,
    Expected,
    check_kept,
    check_made,
    load_sidecar,
    move_old_sidecars,
    packages_behind,
    settings_of,
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
    check_kept({}, [])
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
    problem = r"\.evidence/copy.jsonl.json: is a copy of that of results/output.jsonl"
    with pytest.raises(UserError, match=problem):
        check_made(["results/copy.jsonl"])
    with pytest.raises(UserError, match=problem):
        check_kept({}, [])


def test_sidecars_of_earlier_versions_are_checked_at_their_new_place() -> None:
    for path in (OUTPUT, WEIGHTS):
        Path(sidecar_of(path)).rename(f"{path}.evidence.json")
    Path("results/.evidence").rmdir()
    with pytest.raises(UserError, match=r"results/\.evidence/output\.jsonl\.json: is missing"):
        check_made([OUTPUT])
    Path(OUTPUT).write_text("edited")
    move_old_sidecars()
    with pytest.raises(UserError, match=r"output\.jsonl: was changed after it was written"):
        check_kept({}, [])
    names = [path.name for path in Path("results").iterdir()]
    assert sorted(names) == [".evidence", "output.jsonl", "weights"]


def test_all_changed_results_are_named_before_a_run() -> None:
    Path(OUTPUT).write_text("edited")
    Path(WEIGHTS, "part", "model").write_text("edited")
    Path(SOURCE).write_text("the run makes the output again")
    with pytest.raises(UserError, match=rf"as 1 other file; .* {OUTPUT} {WEIGHTS}$"):
        check_kept({}, [])
    # The run makes a deleted file again.
    Path(OUTPUT).unlink()
    Path(WEIGHTS, "part", "model").unlink()
    Path(WEIGHTS, "part").rmdir()
    Path(WEIGHTS).rmdir()
    check_kept({}, [])


def test_kept_files_made_with_other_settings_are_rejected() -> None:
    settings = {"task": '{"n": 1, "parameters": {"temperature": 0.3}}', "fresh": True}
    write_sidecar(
        OUTPUT, made_from=Digests().of(SOURCE, WEIGHTS), settings=settings_of(settings.items())
    )

    def expected(**changed: str) -> dict[str, Expected]:
        return {OUTPUT: Expected(settings_of((settings | changed).items()), [SOURCE, WEIGHTS])}

    # The order of the fields does not matter, nor does a file that the run makes again.
    check_kept(expected(task='{"parameters": {"temperature": 0.3}, "n": 1}', fresh="no"), [])
    other = expected(task='{"n": 1, "parameters": {"temperature": 0.7}}', top_k="7")
    check_kept(other, [OUTPUT])
    problem = (
        rf"{OUTPUT}: was made with settings that differ from the configuration"
        rf" \(task.parameters.temperature, top_k\); .* --forcerun {OUTPUT}$"
    )
    with pytest.raises(UserError, match=problem):
        check_kept(other, [])


def test_sidecars_of_earlier_versions_state_no_settings() -> None:
    sidecar = json.loads(Path(sidecar_of(OUTPUT)).read_text("utf-8"))
    Path(sidecar_of(OUTPUT)).write_text(json.dumps(sidecar | {"settings": "0123456789abcdef"}))
    check_kept({OUTPUT: Expected({"top_k": "7"}, [SOURCE, WEIGHTS])}, [])


def test_kept_files_made_from_other_inputs_are_rejected() -> None:
    later = "results/later.json"
    Path(later).write_text("{}")
    write_sidecar(later, made_from=Digests().of(OUTPUT), settings={"a": "1"})
    inputs = {OUTPUT: Expected({}, [SOURCE, WEIGHTS]), later: Expected({"a": "1"}, [OUTPUT])}
    check_kept(inputs, [])
    with pytest.raises(UserError, match=r"later.json: was made without source.txt; run"):
        check_kept(inputs | {later: Expected({"a": "1"}, [OUTPUT, SOURCE])}, [])
    no_input = r"output.jsonl: was made from source.txt, which is no input any more"
    with pytest.raises(UserError, match=no_input):
        check_kept(inputs | {OUTPUT: Expected({}, [WEIGHTS])}, [])
    Path(SOURCE).write_text("edited")
    os.utime(SOURCE, (0, 0))
    # The later file is made again with the first one.
    changed = inputs | {later: Expected({"a": "2"}, [OUTPUT])}
    problem = f"output.jsonl: was made from another source.txt; .*--forcerun {OUTPUT}$"
    with pytest.raises(UserError, match=problem):
        check_kept(changed, [])
    # A temporary input may have been deleted.
    Path(SOURCE).unlink()
    check_kept(inputs, [])


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

    monkeypatch.setattr(files, "_MIN_CACHED_BYTES", 4)
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
